/* SPDX-License-Identifier: Apache-2.0
 *
 * cross_entropy.c - the loss of rows of logits, and its gradient: check it, choose a variant, run it.
 */
#include <math.h>

#include "cross_entropy.h"

/* ---- the call -------------------------------------------------------------------- */

struct call {
    struct vn_call head;
    vn_tensor t[VIEWS];           /* rank 0: not there */
    vn_ints   targets;
    int64_t   ignore;
    double    smoothing, z_loss;
};

static const char *const names[VIEWS] = { "x", "dx", "loss", "options.weights", "options.lse" };

/* ---- checks ---------------------------------------------------------------------- */

/* The type of losses: what logits are computed in. */
static vn_type sums_of(vn_type t)
{
    return t == VN_F64 ? VN_F64 : VN_F32;
}

/* One number for each row: of rank 1. */
static vn_status check_column(const vn_tensor *t, const char *name, const vn_queue *q, const vn_tensor *x,
                              int output)
{
    const vn_type type = sums_of(x->type);
    vn_status s;

    if ((s = vn__check_tensor(t, name, q, 1, 1, output)))
        return s;
    if (t->type != type)
        return vn__fail(VN_INVALID, "%s is %s; beside x of %s it needs %s", name, vn_type_name(t->type),
                        vn_type_name(x->type), vn_type_name(type));
    if (t->extent[0] != x->extent[0] && (output || t->extent[0] != 1))
        return vn__fail(VN_INVALID, "%s has extent %lld; it needs one for each row of x, %lld", name,
                        (long long)t->extent[0], (long long)x->extent[0]);
    return VN_OK;
}

static vn_status check_gradient(const vn_tensor *dx, const vn_queue *q, const vn_tensor *x)
{
    vn_status s;

    if ((s = vn__check_tensor(dx, "dx", q, 2, 2, 1)))
        return s;
    if (dx->type != x->type)
        return vn__fail(VN_INVALID, "dx is %s; it needs the type of x, %s", vn_type_name(dx->type),
                        vn_type_name(x->type));
    for (int d = 0; d < 2; d++)
        if (dx->extent[d] != x->extent[d])
            return vn__fail(VN_INVALID, "dx has extent %lld along dimension %d; it needs that of x, %lld",
                            (long long)dx->extent[d], d, (long long)x->extent[d]);
    return vn__same_view(dx, x) ? VN_OK : vn__check_overlap(dx, "dx", x, "x");
}

/* No output shares memory with anything else, save dx with x. */
static vn_status check_overlaps(const struct call *c)
{
    static const int outputs[] = { LOSS, LSE, DX };
    const vn_tensor targets = vn__ints_view(&c->targets);
    vn_status s = VN_OK;

    for (int i = 0; i < 3 && !s; i++) {
        const int o = outputs[i];

        if (c->t[o].rank == 0)
            continue;
        s = vn__check_overlap(&c->t[o], names[o], &targets, "targets");
        for (int v = 0; v < VIEWS && !s; v++)
            if (v != o && c->t[v].rank && !(o == DX && v == X))
                s = vn__check_overlap(&c->t[o], names[o], &c->t[v], names[v]);
    }
    return s;
}

static vn_status check(const struct call *c, const vn_queue *q)
{
    const vn_tensor *const x = &c->t[X];
    vn_status s;

    if ((s = vn__check_tensor(x, "x", q, 2, 2, 0)) ||
        (s = vn__check_ints(&c->targets, "targets", q, x->extent[0], "row of x", 1)) ||
        (s = check_column(&c->t[LOSS], "loss", q, x, 1)) ||
        (c->t[DX].rank && (s = check_gradient(&c->t[DX], q, x))) ||
        (c->t[WEIGHTS].rank && (s = check_column(&c->t[WEIGHTS], names[WEIGHTS], q, x, 0))) ||
        (c->t[LSE].rank && (s = check_column(&c->t[LSE], names[LSE], q, x, 1))))
        return s;
    if (x->extent[1] == 0 && x->extent[0] > 0)
        return vn__fail(VN_INVALID, "x has extent 0 along dimension 1; it needs a class or more");
    if (!(c->smoothing >= 0 && c->smoothing <= 1))
        return vn__fail(VN_INVALID, "options.smoothing is %g; it needs a number from 0 to 1", c->smoothing);
    if (!isfinite(c->z_loss))
        return vn__fail(VN_INVALID, "options.z_loss is %g; it needs a finite number", c->z_loss);
    return x->extent[0] ? check_overlaps(c) : VN_OK;
}

/* ---- the problem ------------------------------------------------------------------ */

static int is_whole(const vn_tensor *t)
{
    const int64_t run = 16 / (int64_t)vn_type_bytes(t->type);

    return t->stride[1] == 1 && t->extent[1] % run == 0 && t->start % run == 0 && t->stride[0] % run == 0;
}

static void describe(struct cross_entropy *e)
{
    const double elements = (double)e->rows * (double)e->n, bytes = (double)vn_type_bytes(e->t[X].type);
    int wide = e->rows > INT32_MAX / 2 || e->n > INT32_MAX / 2;

    for (int v = 0; v < VIEWS; v++)
        wide |= vn__is_wide(&e->t[v]);
    e->head = (struct vn_problem){
        .op     = "cross_entropy",
        .type   = e->t[X].type,
        .bucket = e->n <= 512 ? VN_SMALL : e->n <= 2048 ? VN_MEDIUM : VN_LARGE,
        .wide   = wide,
        .flops  = (e->has_dx ? 6 : 4) * elements,
        .bytes  = (e->has_dx ? 2 : 1) * elements * bytes,
    };
}

static vn_status pose(void *problem, int *done, const vn_queue *q, const void *given)
{
    const struct call *const c = given;
    struct cross_entropy *const e = problem;
    const vn_status s = check(c, q);

    if (s)
        return s;
    if ((*done = c->t[X].extent[0] == 0))
        return VN_OK;
    *e = (struct cross_entropy){
        .targets = c->targets, .ignore = c->ignore ? c->ignore : -100,
        .rows = c->t[X].extent[0], .n = c->t[X].extent[1],
        .smoothing = c->smoothing, .z_loss = c->z_loss,
        .has_dx = c->t[DX].rank != 0, .has_weights = c->t[WEIGHTS].rank != 0, .has_lse = c->t[LSE].rank != 0,
        .units = q->device->facts.units,
    };
    e->t[X] = c->t[X];
    e->t[LOSS] = c->t[LOSS];
    e->t[DX] = e->has_dx ? c->t[DX] : c->t[X];
    e->t[WEIGHTS] = e->has_weights ? c->t[WEIGHTS] : c->t[LOSS];
    e->t[LSE] = e->has_lse ? c->t[LSE] : c->t[LOSS];
    if (e->t[WEIGHTS].extent[0] == 1)
        e->t[WEIGHTS].stride[0] = 0;
    e->whole = is_whole(&e->t[X]) && is_whole(&e->t[DX]);
    describe(e);
    return VN_OK;
}

const struct vn_operation vn__cross_entropy = {
    .name = "cross_entropy", .functions = { "vn_cross_entropy" }, .variants = vn__cross_entropy_variants,
    .call_size = sizeof(struct call), .problem_size = sizeof(struct cross_entropy), .pose = pose,
};

/* One that is there; else zeros, so that calls without it are the same bytes. */
static vn_tensor given(const vn_tensor *t)
{
    return t->rank && t->buffer ? *t : (vn_tensor){ .rank = 0 };
}

vn_status vn_cross_entropy(vn_queue *q, vn_tensor x, vn_ints targets, vn_tensor loss, vn_tensor dx,
                           const vn_cross_entropy_options *o)
{
    static const vn_cross_entropy_options usual;
    struct call call = { .head = { &vn__cross_entropy, NULL, 0, 0 }, .targets = targets };
    vn_status s;

    o = o ? o : &usual;
    if (o->size != 0 && o->size != sizeof *o)
        return (s = vn__enter("vn_cross_entropy"))
             ? s : vn__fail(VN_INVALID, "options.size is %zu; it needs 0 or "
                            "sizeof(vn_cross_entropy_options), %zu", o->size, sizeof *o);
    call.head.variant = o->variant;
    call.t[X] = x;
    call.t[LOSS] = loss;
    call.t[DX] = given(&dx);
    call.t[WEIGHTS] = given(&o->weights);
    call.t[LSE] = given(&o->lse);
    call.ignore = o->ignore;
    call.smoothing = o->smoothing;
    call.z_loss = o->z_loss;
    return vn__operate(q, &call.head);
}
