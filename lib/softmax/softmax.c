/* SPDX-License-Identifier: Apache-2.0
 *
 * softmax.c - softmax along an axis, and its gradient: check it, choose a variant, run it.
 */
#include "softmax.h"

/* ---- launches ------------------------------------------------------------------ */

struct parts vn__softmax_parts(const struct softmax *s, int64_t places, int64_t grain)
{
    const int64_t wanted = VN_CEIL_DIV(4 * (int64_t)s->units, s->rows);
    const int64_t span = VN_CEIL_DIV(VN_CEIL_DIV(places, wanted), grain) * grain;

    return (struct parts){ span, VN_CEIL_DIV(places, span) };
}

size_t vn__softmax_pairs_bytes(const struct softmax *s, int64_t parts)
{
    return (size_t)(2 * s->rows * parts) * (s->head.type == VN_F64 ? sizeof(double) : sizeof(float));
}

void vn__softmax_begin(struct vn_launch *l, const struct softmax *s, int64_t each)
{
    const vn_tensor *x = &s->t[X];
    int64_t shape[8] = { s->rows, 1, 1, 1, 1, 1, 1, each };

    for (int i = 0; i < x->rank; i++)
        shape[7 - x->rank + i] = x->extent[i];
    vn__arg_view(l, shape);
    vn__arg_int(l, s->log);
    vn__arg_int(l, s->causal);
    vn__arg_real(l, s->head.type, s->scale);
    vn__arg_tensor(l, &s->t[X]);
    vn__arg_tensor(l, &s->t[W]);
    vn__arg_int(l, s->has_w);
    vn__arg_tensor(l, &s->t[Y]);
}

vn_status vn__run_softmax_parts(vn_queue *q, const struct vn_choice *it, const struct softmax *s,
                                struct parts parts, int items)
{
    struct vn_launch l = { .groups = { 1, 1, 1 }, .items = items };
    vn_buffer *pairs;
    vn_status status;

    if (!vn__mul(&l.groups[0], s->rows, parts.count) || l.groups[0] > INT32_MAX)
        return vn__fail(VN_UNSUPPORTED, "x has %lld rows in %lld parts; %s takes at most %d parts of rows",
                        (long long)s->rows, (long long)parts.count, it->variant->name, INT32_MAX);
    if ((status = vn__workspace(&pairs, q, vn__softmax_pairs_bytes(s, parts.count))))
        return status;
    vn__softmax_begin(&l, s, parts.span);
    vn__arg_buffer(&l, pairs);
    vn__arg_int(&l, parts.count);
    if ((status = vn__launch(q, it, 0, &l)))
        return status;
    return vn__launch(q, it, 1, &l);
}

/* ---- from views to rows --------------------------------------------------------- */

/* Dimension d of `from`, appended to the views; or merged with their last, where it goes on
 * from there in all of them.                                                              */
static void append(struct softmax *s, const vn_tensor from[VIEWS], int d, int may_merge)
{
    int merge = may_merge && s->t[X].rank > 0;

    for (int v = 0; v < VIEWS && merge; v++)
        merge = s->t[v].stride[s->t[v].rank - 1] == from[v].stride[d] * from[v].extent[d];
    for (int v = 0; v < VIEWS; v++) {
        vn_tensor *t = &s->t[v];
        const int at = merge ? t->rank - 1 : t->rank++;

        t->extent[at] = (merge ? t->extent[at] : 1) * from[v].extent[d];
        t->stride[at] = from[v].stride[d];
    }
}

/* The row dimensions, widest step of the output first, so that rows side by side get
 * adjacent numbers; the one that the causal mask counts along stays by itself, last.    */
static void lay_out(struct softmax *s, const vn_tensor from[VIEWS], int axis)
{
    int order[VN_RANK], count = 0;

    for (int d = 0; d < from[X].rank; d++) {
        int at = count;

        if (d == axis || (s->causal && d == axis - 1) || from[X].extent[d] == 1)
            continue;
        for (; at > 0 && from[Y].stride[order[at - 1]] < from[Y].stride[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
        count++;
    }
    for (int v = 0; v < VIEWS; v++) {
        s->t[v] = from[v];
        s->t[v].rank = 0;
    }
    for (int i = 0; i < count; i++)
        append(s, from, order[i], 1);
    if (s->causal)
        append(s, from, axis - 1, 0);
    append(s, from, axis, 0);
}

static int is_across(const struct softmax *s)
{
    const int axis = s->t[X].rank - 1, row = axis - 1;

    return row >= 0 && s->t[X].extent[row] > 1 &&
           s->t[X].stride[row] == 1 && s->t[Y].stride[row] == 1 && s->t[X].stride[axis] != 1;
}

static int is_whole(const struct softmax *s)
{
    const int64_t run = 16 / (int64_t)vn_type_bytes(s->t[X].type);
    int whole = s->n % run == 0;

    for (int v = 0; v < VIEWS; v++) {
        whole &= s->t[v].start % run == 0 && s->t[v].stride[s->t[v].rank - 1] == 1;
        for (int d = 0; d + 1 < s->t[v].rank; d++)
            whole &= s->t[v].stride[d] % run == 0;
    }
    return whole;
}

static int is_wide(const struct softmax *s)
{
    int wide = s->rows > INT32_MAX / 2 || s->n > INT32_MAX / 2;    /* indices run past the end by a tile */

    for (int v = 0; v < VIEWS; v++)
        wide |= vn__is_wide(&s->t[v]);
    return wide;
}

static void describe(struct softmax *s)
{
    const double elements = (double)s->rows * (double)s->n, bytes = (double)vn_type_bytes(s->t[X].type);

    s->head = (struct vn_problem){
        .op     = "softmax",
        .type   = s->t[X].type,
        .bucket = s->n <= 512 ? VN_SMALL : s->n <= 2048 ? VN_MEDIUM : VN_LARGE,
        .wide   = is_wide(s),
        .flops  = (s->backward ? 4 : 5) * elements,
        .bytes  = (s->has_w ? 3 : 2) * elements * bytes,
    };
}

/* ---- the call -------------------------------------------------------------------- */

enum { FORWARD, BACKWARD };

struct call {
    struct vn_call head;                        /* its function is a direction */
    vn_tensor      t[VIEWS];                    /* W, forward: the mask, as it is given */
    double         scale;
    int            axis, log, causal, unused;   /* unused: 0 */
};

/* ---- checks ---------------------------------------------------------------------- */

static vn_status check_like(const vn_tensor *t, const char *name, const vn_tensor *like,
                            const char *like_name)
{
    if (t->type != like->type)
        return vn__fail(VN_INVALID, "%s is %s and %s is %s; they need one type", name, vn_type_name(t->type),
                        like_name, vn_type_name(like->type));
    if (t->rank != like->rank)
        return vn__fail(VN_INVALID, "%s has rank %d; it needs that of %s, %d", name, t->rank, like_name,
                        like->rank);
    for (int i = 0; i < t->rank; i++)
        if (t->extent[i] != like->extent[i])
            return vn__fail(VN_INVALID, "%s has extent %lld along dimension %d; it needs that of %s, %lld",
                            name, (long long)t->extent[i], i, like_name, (long long)like->extent[i]);
    return VN_OK;
}

static vn_status check_options(const struct call *o, const vn_tensor *x, const char *x_name)
{
    if (o->axis < 0 || o->axis >= x->rank)
        return vn__fail(VN_INVALID,
                        "options.axis is %d, counted from the last; %s has rank %d, so it needs 0 to %d",
                        o->axis, x_name, x->rank, x->rank - 1);
    if (o->causal && o->axis != 0)
        return vn__fail(VN_INVALID, "options.causal is %d with options.axis %d; it needs axis 0", o->causal,
                        o->axis);
    if (o->causal && x->rank < 2)
        return vn__fail(VN_INVALID, "options.causal is %d and %s has rank %d; it needs rank 2 or more",
                        o->causal, x_name, x->rank);
    return VN_OK;
}

/* Unless they are the same view. */
static vn_status check_aside(const vn_tensor *out, const char *out_name, const vn_tensor *in,
                             const char *in_name)
{
    return vn__same_view(out, in) ? VN_OK : vn__check_overlap(out, out_name, in, in_name);
}

static vn_status check_mask(vn_tensor *mask, const vn_queue *q, const vn_tensor *x, const vn_tensor *y)
{
    vn_status s;

    if ((s = vn__check_tensor(mask, "options.mask", q, 1, VN_RANK, 0)))
        return s;
    if (mask->type != x->type)
        return vn__fail(VN_INVALID, "options.mask is %s; it needs the type of x, %s",
                        vn_type_name(mask->type), vn_type_name(x->type));
    if ((s = vn__broadcast(mask, "options.mask", x, "x")))
        return s;
    return vn__check_overlap(y, "y", mask, "options.mask");
}

static vn_status check_forward(vn_tensor t[VIEWS], int *has_mask, const vn_queue *q, const struct call *call)
{
    vn_status s;

    *has_mask = t[W].buffer && t[W].rank != 0;
    if ((s = vn__check_tensor(&t[X], "x", q, 1, VN_RANK, 0)) ||
        (s = vn__check_tensor(&t[Y], "y", q, 1, VN_RANK, 1)) ||
        (s = check_like(&t[Y], "y", &t[X], "x")) ||
        (s = check_options(call, &t[X], "x")) ||
        (s = check_aside(&t[Y], "y", &t[X], "x")) ||
        (*has_mask && (s = check_mask(&t[W], q, &t[X], &t[Y]))))
        return s;
    if (!*has_mask)
        t[W] = t[X];
    return VN_OK;
}

static vn_status check_backward(vn_tensor t[VIEWS], int *has_dy, const vn_queue *q, const struct call *call)
{
    vn_status s;

    *has_dy = 1;
    if ((s = vn__check_tensor(&t[X], "y", q, 1, VN_RANK, 0)) ||
        (s = vn__check_tensor(&t[W], "dy", q, 1, VN_RANK, 0)) ||
        (s = vn__check_tensor(&t[Y], "dx", q, 1, VN_RANK, 1)) ||
        (s = check_like(&t[W], "dy", &t[X], "y")) ||
        (s = check_like(&t[Y], "dx", &t[X], "y")) ||
        (s = check_options(call, &t[X], "y")) ||
        (s = vn__check_overlap(&t[Y], "dx", &t[X], "y")) ||
        (s = check_aside(&t[Y], "dx", &t[W], "dy")))
        return s;
    return VN_OK;
}

static vn_status pose(void *problem, int *done, const vn_queue *q, const void *given)
{
    static vn_status (*const check[])(vn_tensor t[VIEWS], int *has_w, const vn_queue *,
                                      const struct call *) = {
        [FORWARD] = check_forward, [BACKWARD] = check_backward };
    const struct call *const call = given;
    struct softmax *const s = problem;
    vn_tensor t[VIEWS] = { call->t[X], call->t[W], call->t[Y] };
    vn_status status;
    int axis;

    *s = (struct softmax){
        .scale    = call->scale == 0 ? 1 : call->scale,
        .backward = call->head.function == BACKWARD,
        .log      = call->log != 0,
        .causal   = call->causal != 0,
        .units    = q->device->facts.units,
    };
    if ((status = check[call->head.function](t, &s->has_w, q, call)))
        return status;
    if ((*done = vn__elements(&t[X]) == 0))
        return VN_OK;
    axis = t[X].rank - 1 - call->axis;
    lay_out(s, t, axis);
    s->n = t[X].extent[axis];
    s->rows = vn__elements(&t[X]) / s->n;
    s->across = is_across(s);
    s->whole = is_whole(s);
    describe(s);
    return VN_OK;
}

const struct vn_operation vn__softmax = {
    .name = "softmax",
    .functions = { [FORWARD] = "vn_softmax", [BACKWARD] = "vn_softmax_backward" },
    .variants = vn__softmax_variants,
    .call_size = sizeof(struct call), .problem_size = sizeof(struct softmax), .pose = pose,
};

static vn_status softmax(vn_queue *q, int function, const vn_tensor *x, const vn_tensor *w,
                         const vn_tensor *y, const vn_softmax_options *o)
{
    struct call call = {
        .head = { &vn__softmax, o->variant, function, 0 },
        .t = { [X] = *x, [W] = *w, [Y] = *y },
        .scale = o->scale, .axis = o->axis, .log = o->log, .causal = o->causal, .unused = 0,
    };

    return vn__operate(q, &call.head);
}

static const vn_softmax_options usual;

vn_status vn_softmax(vn_queue *q, vn_tensor x, vn_tensor y, const vn_softmax_options *o)
{
    o = o ? o : &usual;
    return softmax(q, FORWARD, &x, &o->mask, &y, o);
}

vn_status vn_softmax_backward(vn_queue *q, vn_tensor y, vn_tensor dy, vn_tensor dx,
                              const vn_softmax_options *o)
{
    return softmax(q, BACKWARD, &y, &dy, &dx, o ? o : &usual);
}
