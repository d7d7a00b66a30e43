/* SPDX-License-Identifier: Apache-2.0
 *
 * checks.c - what a convolution must be, or is refused for.
 */
#include "conv.h"

/* What the operands are called in the call that was made. */
static const struct { const char *x, *w, *y, *out; } names[] = {
    [FORWARD]         = { "x",  "w",  "y",  "y"  },
    [BACKWARD_DATA]   = { "dx", "w",  "dy", "dx" },
    [BACKWARD_FILTER] = { "x",  "dw", "dy", "dw" },
};

/* The inputs have one type, and so has the output, or f32 where theirs has 16 bits. */
static vn_status check_types(const struct conv *c, const char *x, const char *w, const char *y)
{
    const vn_type out = vn__conv_output(c)->type, in = c->p.type;
    const vn_type other = c->direction == FORWARD ? c->w.type : c->y.type;

    if (in == other && (out == in || (out == VN_F32 && vn_type_bytes(in) == 2)))
        return VN_OK;
    return vn__fail(VN_INVALID, "%s, %s and %s have types %s, %s and %s; they need one type, or f32 as %s of "
                    "16 bits", x, w, y, vn_type_name(c->x.type), vn_type_name(c->w.type),
                    vn_type_name(c->y.type), names[c->direction].out);
}

static vn_status check_views(const struct conv *c, const vn_queue *q)
{
    const char *const x = names[c->direction].x, *const w = names[c->direction].w;
    const char *const y = names[c->direction].y;
    vn_status s;

    if ((s = vn__check_tensor(&c->x, x, q, 3, RANK, c->direction == BACKWARD_DATA)) ||
        (s = vn__check_tensor(&c->w, w, q, 3, RANK, c->direction == BACKWARD_FILTER)) ||
        (s = vn__check_tensor(&c->y, y, q, 3, RANK, c->direction == FORWARD)))
        return s;
    if (c->x.rank != c->w.rank || c->x.rank != c->y.rank)
        return vn__fail(VN_INVALID, "%s, %s and %s have ranks %d, %d and %d; they need one rank", x, w, y,
                        c->x.rank, c->w.rank, c->y.rank);
    return check_types(c, x, w, y);
}

static vn_status check_option(int v, const char *name, int i)
{
    if (v >= 0)
        return VN_OK;
    return vn__fail(VN_INVALID, "%s[%d] is %d; it needs 0 or more", name, i, v);
}

static vn_status check_options(const struct conv_call *o)
{
    vn_status s;

    for (int i = 0; i < DIMS; i++)
        if ((s = check_option(o->stride[i], "options.stride", i)) ||
            (s = check_option(o->dilation[i], "options.dilation", i)) ||
            (s = check_option(o->pad_before[i], "options.pad_before", i)) ||
            (s = check_option(o->pad_after[i], "options.pad_after", i)))
            return s;
    if (o->groups < 0)
        return vn__fail(VN_INVALID, "options.groups is %d; it needs 0 or more", o->groups);
    if ((s = vn__check_enum((int)o->math, VN_MATH_COUNT, "options.math")))
        return s;
    return vn__check_enum((int)o->activation, VN_ACTIVATION_COUNT, "options.activation");
}

static vn_status check_extent(const char *name, const vn_tensor *t, int i, int64_t want, const char *because)
{
    if (t->extent[i] == want)
        return VN_OK;
    return vn__fail(VN_INVALID, "%s has extent %lld along dimension %d; it needs %lld, %s", name,
                    (long long)t->extent[i], i, (long long)want, because);
}

static vn_status check_channels(const struct conv *c)
{
    const char *const x = names[c->direction].x, *const w = names[c->direction].w;
    const char *const y = names[c->direction].y;
    vn_status s;

    if (c->x.extent[1] % c->groups)
        return vn__fail(VN_INVALID, "%s has %lld channels in %lld groups; the groups need to divide them", x,
                        (long long)c->x.extent[1], (long long)c->groups);
    if (c->w.extent[0] % c->groups)
        return vn__fail(VN_INVALID, "%s has %lld filters in %lld groups; the groups need to divide them", w,
                        (long long)c->w.extent[0], (long long)c->groups);
    if ((s = check_extent(w, &c->w, 1, c->x.extent[1] / c->groups, "the channels of x in each group")) ||
        (s = check_extent(y, &c->y, 0, c->x.extent[0], "the images of x")))
        return s;
    return check_extent(y, &c->y, 1, c->w.extent[0], "the filters of w");
}

/* The extent of y that follows from those of x and w, along one dimension. */
static vn_status find_extent(int64_t *out, const struct conv *c, int i, int64_t after)
{
    const int d = i + DIMS - (c->x.rank - 2);       /* the options count from the outermost that is there */
    int64_t padded, window;

    if (c->w.extent[2 + i] < 1)
        return vn__fail(VN_INVALID, "%s has extent %lld along dimension %d; a filter needs 1 or more",
                        names[c->direction].w, (long long)c->w.extent[2 + i], 2 + i);
    if (!vn__add(&padded, c->x.extent[2 + i], c->pad[d]) || !vn__add(&padded, padded, after) ||
        !vn__mul(&window, c->dilation[d], c->w.extent[2 + i] - 1) || !vn__add(&window, window, 1))
        return vn__fail(VN_INVALID, "the extents, padding and dilation along dimension %d overflow 63 bits; "
                        "they need to be smaller", 2 + i);
    *out = padded < window ? 0 : (padded - window) / c->stride[d] + 1;
    if (padded < window && c->y.extent[2 + i] != 0)
        return vn__fail(VN_INVALID, "%s reaches over %lld elements along dimension %d, where the padded %s "
                        "has %lld; %s needs extent 0 there, not %lld", names[c->direction].w,
                        (long long)window, 2 + i, names[c->direction].x, (long long)padded,
                        names[c->direction].y,
                        (long long)c->y.extent[2 + i]);
    return VN_OK;
}

static vn_status check_pixels(const struct conv *c, const struct conv_call *o)
{
    static const char because[] = "floor((in + before + after - dilation (filter - 1) - 1) / stride) + 1";

    for (int i = 0; i < c->x.rank - 2; i++) {
        int64_t want = 0;
        vn_status s = find_extent(&want, c, i, o->pad_after[i]);

        if (s)
            return s;
        if ((s = check_extent(names[c->direction].y, &c->y, 2 + i, want, because)))
            return s;
    }
    return VN_OK;
}

/* One value for each channel of the output becomes a tensor that repeats. */
static void spread(vn_tensor *t, const struct conv *c)
{
    const vn_tensor one = *t, *out = vn__conv_output(c);
    const int channel = c->direction == BACKWARD_FILTER ? 0 : 1;

    t->rank = out->rank;
    for (int i = 0; i < out->rank; i++) {
        t->extent[i] = i == channel ? one.extent[0] : 1;
        t->stride[i] = i == channel ? one.stride[0] : 0;
    }
}

/* A tensor that is added to the output, with its extents.  Beside types of 16 bits, f32 is taken, too. */
static vn_status check_summand(vn_tensor *t, const char *name, const struct conv *c, const vn_queue *q,
                               const char *out_name)
{
    const vn_tensor *out = vn__conv_output(c);
    vn_status s;

    if ((s = vn__check_tensor(t, name, q, 1, RANK, 0)))
        return s;
    if (t->type != out->type && t->type != c->p.type &&
        !(t->type == VN_F32 && vn_type_bytes(out->type) == 2))
        return vn__fail(VN_INVALID, "%s has type %s; it needs that of %s, %s%s", name, vn_type_name(t->type),
                        out_name, vn_type_name(out->type),
                        vn_type_bytes(c->p.type) == 2 ? ", f32, or that of the inputs" : "");
    if (t->rank == 1) {
        const int64_t channels = out->extent[c->direction == BACKWARD_FILTER ? 0 : 1];

        if (t->extent[0] != channels && t->extent[0] != 1)
            return vn__fail(VN_INVALID,
                            "%s has %lld elements; it needs one for each of the %lld channels of %s", name,
                            (long long)t->extent[0], (long long)channels, out_name);
        spread(t, c);
    }
    return vn__broadcast(t, name, out, out_name);
}

static vn_status check_bias(struct conv *c, const vn_queue *q, const char *out_name)
{
    vn_status s;

    if (!(c->has_bias = vn__given(&c->bias)))
        return VN_OK;
    if ((s = check_summand(&c->bias, "options.bias", c, q, out_name)))
        return s;
    return vn__check_overlap(vn__conv_output(c), out_name, &c->bias, "options.bias");
}

/* What beta multiplies: the output itself, unless something else is given. */
static vn_status check_residual(struct conv *c, const vn_queue *q, const char *out_name)
{
    const vn_tensor *out = vn__conv_output(c);
    vn_status s;

    if (!vn__given(&c->residual)) {
        c->residual = *out;
        return VN_OK;
    }
    if ((s = check_summand(&c->residual, "options.residual", c, q, out_name)))
        return s;
    return vn__same_view(&c->residual, out)
         ? VN_OK : vn__check_overlap(out, out_name, &c->residual, "options.residual");
}

static vn_status check_overlaps(const struct conv *c)
{
    const vn_tensor *const t[] = { &c->x, &c->w, &c->y }, *out = vn__conv_output(c);
    const char *const name[] = { names[c->direction].x, names[c->direction].w, names[c->direction].y };
    const int at = c->direction == FORWARD ? 2 : c->direction == BACKWARD_DATA ? 0 : 1;

    for (int i = 0; i < 3; i++) {
        vn_status s = i == at ? VN_OK : vn__check_overlap(out, name[at], t[i], name[i]);

        if (s)
            return s;
    }
    return VN_OK;
}

/* The options count dimensions from the outermost that is there; the problem has three. */
static void take_options(struct conv *c, const struct conv_call *o)
{
    const int missing = RANK - c->x.rank;

    for (int d = 0; d < DIMS; d++) {
        const int i = d - missing;

        c->stride[d]   = i >= 0 && o->stride[i] ? o->stride[i] : 1;
        c->dilation[d] = i >= 0 && o->dilation[i] ? o->dilation[i] : 1;
        c->pad[d]      = i >= 0 ? o->pad_before[i] : 0;
    }
    c->groups = o->groups ? o->groups : 1;
}

vn_status vn__conv_check(struct conv *c, const vn_queue *q, const struct conv_call *o)
{
    vn_status s;

    if ((s = check_views(c, q)) || (s = check_options(o)))
        return s;
    take_options(c, o);
    if ((s = check_channels(c)) || (s = check_pixels(c, o)) ||
        (s = check_bias(c, q, names[c->direction].out)) ||
        (s = check_residual(c, q, names[c->direction].out)) || (s = check_overlaps(c)))
        return s;
    return VN_OK;
}
