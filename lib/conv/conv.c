/* SPDX-License-Identifier: Apache-2.0
 *
 * conv.c - convolution and its two gradients: check them, choose a variant, run it.
 *
 * Every direction is a matrix product whose operands are gathered while it runs:
 *
 *                     rows            columns            summed over
 *   forward           channels of y   pixels of y        taps, channels of x
 *   backward data     channels of x   pixels of x        taps, channels of y
 *   backward filter   taps, channels  channels of y      pixels of y
 *
 * A tap is one place of the filter.  Backward data takes its pixels a phase at a time: those
 * that leave the same remainder when divided by the stride meet the same taps.
 */
#include <stddef.h>
#include <string.h>

#include "conv.h"

/* ---- the problem as a matrix product ------------------------------------------- */

const vn_tensor *vn__conv_output(const struct conv *c)
{
    return c->direction == FORWARD ? &c->y : c->direction == BACKWARD_DATA ? &c->x : &c->w;
}

int64_t vn__conv_pixels(const vn_tensor *t)
{
    return t->extent[0] * t->extent[2] * t->extent[3] * t->extent[4];
}

int64_t vn__conv_taps(const struct conv *c)
{
    return c->w.extent[2] * c->w.extent[3] * c->w.extent[4];
}

int64_t vn__conv_rows(const struct conv *c)
{
    const int64_t taps = vn__conv_taps(c), inner = c->w.extent[1], filters = c->w.extent[0] / c->groups;

    return c->direction == FORWARD ? filters : c->direction == BACKWARD_DATA ? inner : taps * inner;
}

/* How many phases the pixels of the output fall into, along one dimension. */
static int64_t phases_along(const struct conv *c, int d)
{
    return c->direction == BACKWARD_DATA ? min_of(c->stride[d], c->x.extent[2 + d]) : 1;
}

int64_t vn__conv_phases(const struct conv *c)
{
    return phases_along(c, 0) * phases_along(c, 1) * phases_along(c, 2);
}

/* Columns of the largest phase, which is the first. */
int64_t vn__conv_columns(const struct conv *c)
{
    const vn_tensor *out = vn__conv_output(c);
    int64_t n = out->extent[0];

    if (c->direction == BACKWARD_FILTER)
        return n / c->groups;
    for (int d = 0; d < DIMS; d++)
        n *= VN_CEIL_DIV(out->extent[2 + d], phases_along(c, d));
    return n;
}

int64_t vn__conv_depth(const struct conv *c)
{
    return c->direction == FORWARD ? vn__conv_taps(c) * c->w.extent[1]
         : c->direction == BACKWARD_DATA ? vn__conv_taps(c) * c->w.extent[0] / c->groups
         : vn__conv_pixels(&c->y);
}

/* ---- the arguments that all kernels take: see cl/conv/conv.h ---------------------------- */

/* s0 the start, s1 one group further, s2 to s6 the strides, of the filter's channels swapped if need be */
static void arg_operand(struct vn_launch *l, const vn_tensor *t, vn_buffer *b, int64_t groups, int grouped,
                        int swapped)
{
    int64_t v[8] = { t->start, t->extent[grouped] / groups * t->stride[grouped] };

    for (int i = 0; i < RANK; i++)
        v[2 + i] = t->stride[i];
    if (swapped) {
        v[2] = t->stride[1];
        v[3] = t->stride[0];
    }
    vn__arg_buffer(l, b);
    vn__arg_view(l, v);
}

static void arg_extents(struct vn_launch *l, int64_t s0, int64_t s1, int64_t s2, int64_t s3,
                        const int64_t dims[DIMS])
{
    const int64_t v[8] = { s0, s1, s2, s3, dims[0], dims[1], dims[2], 0 };

    vn__arg_view(l, v);
}

/* The operands that make up rows, columns and output, in each direction. */
static const struct { size_t a, b, c; int a_group, b_group, c_group; } roles[] = {
#define AT(t) offsetof(struct conv, t)
    [FORWARD]         = { AT(w), AT(x), AT(y), 0, 1, 1 },
    [BACKWARD_DATA]   = { AT(w), AT(y), AT(x), 0, 1, 1 },
    [BACKWARD_FILTER] = { AT(x), AT(y), AT(w), 1, 1, 0 },
#undef AT
};

static const vn_tensor *role(const struct conv *c, size_t at)
{
    return (const vn_tensor *)((const char *)c + at);
}

int vn__conv_has_bias_of_channels(const struct conv *c)
{
    const int64_t *const s = c->bias.stride;

    return c->has_bias && (s[0] | s[2] | s[3] | s[4]) == 0;
}

void vn__conv_arg_output(struct vn_launch *l, const struct conv *c)
{
    const vn_tensor *out = vn__conv_output(c);
    const int grouped = roles[c->direction].c_group;

    arg_operand(l, out, out->buffer, c->groups, grouped, 0);
    if (c->p.epilogue.residual) {
        vn__arg_real(l, c->p.type, c->beta);
        arg_operand(l, &c->residual, c->residual.buffer, c->groups, grouped, 0);
    }
    if (c->p.epilogue.bias)
        arg_operand(l, &c->bias, c->bias.buffer, c->groups, grouped, 0);
}

void vn__conv_arg_taps(struct vn_launch *l, const struct conv *c)
{
    const int64_t channels = c->direction == BACKWARD_DATA ? c->w.extent[0] / c->groups : c->w.extent[1];
    const int sums_channels = c->direction != BACKWARD_FILTER;

    arg_extents(l, c->groups, 0, 0, sums_channels && c->is_empty ? 0 : channels, c->w.extent + 2);
}

void vn__conv_arg_alpha(struct vn_launch *l, const struct conv *c)
{
    vn__arg_real(l, c->p.type, c->alpha);
}

const char *vn__fits_elements(const struct conv *c)
{
    if (c->is_empty)
        return "there is nothing to multiply";
    if (c->math == VN_MATH_BITWISE)
        return "bitwise mathematics needs the order of sums of conv";
    return vn__elements(&c->x) > VN_CONV_MOST || vn__elements(&c->y) > VN_CONV_MOST ||
           c->pad[1] > VN_CONV_MOST / 16 || c->pad[2] > VN_CONV_MOST / 16
         ? "its elements must stay below 2^31" : NULL;
}

int64_t vn__conv_tap_step(const struct conv *c, int d)
{
    return c->direction == BACKWARD_DATA
         ? c->stride[d] / vn__common_divisor(c->dilation[d], c->stride[d]) : 1;
}

/* Which taps contribute to one phase of backward data: see find_taps() of cl/conv/conv.h. */
static void arg_meet(struct vn_launch *l, const struct conv *c, int64_t limit)
{
    int64_t v[8] = { limit };

    for (int d = 0; d < DIMS; d++) {
        const int64_t g = vn__common_divisor(c->dilation[d], c->stride[d]);

        v[4 + d] = c->stride[d] / g;
        v[1 + d] = vn__inverse(c->dilation[d] / g, c->stride[d] / g);
    }
    vn__arg_view(l, v);
}

/* The pixels that are iterated over, their images and channels. */
static void arg_pixels(struct vn_launch *l, const struct conv *c)
{
    const enum direction d = c->direction;
    const vn_tensor *out = d == BACKWARD_DATA ? &c->x : &c->y;
    const int64_t channels = d == BACKWARD_DATA ? c->w.extent[1] : c->w.extent[0] / c->groups;
    const int64_t images = d == BACKWARD_FILTER && c->is_empty ? 0 : out->extent[0];

    arg_extents(l, 0, 0, images, channels, out->extent + 2);
}

static void arg_limit(struct vn_launch *l, const struct conv *c)
{
    const vn_tensor *a = role(c, roles[c->direction].a);

    arg_meet(l, c, c->is_empty ? 0 : (int64_t)(a->buffer->bytes / vn_type_bytes(a->type)));
}

/* The step of conv_taps(), cl/conv/conv.h, as a prepared divisor. */
static int64_t divisor_of_step(const struct conv *c, int d)
{
    return vn__divisor(c->stride[d] / vn__common_divisor(c->dilation[d], c->stride[d]));
}

void vn__conv_arg_steps(struct vn_launch *l, const struct conv *c)
{
    arg_pixels(l, c);
    arg_extents(l, 0, c->dilation[0], c->dilation[1], c->dilation[2], c->stride);
    arg_extents(l, 0, divisor_of_step(c, 0), divisor_of_step(c, 1), divisor_of_step(c, 2), c->pad);
    arg_limit(l, c);
}

void vn__conv_arg_filter(struct vn_launch *l, const struct conv *c)
{
    const vn_tensor *a = role(c, roles[c->direction].a);

    arg_operand(l, a, a->buffer, c->groups, roles[c->direction].a_group, c->direction == BACKWARD_DATA);
    vn__conv_arg_taps(l, c);
    vn__conv_arg_steps(l, c);
}

void vn__conv_arg_inputs(struct vn_launch *l, const struct conv *c)
{
    const enum direction d = c->direction;
    const vn_tensor *a = role(c, roles[d].a), *b = role(c, roles[d].b);
    vn_buffer *stand_in = vn__conv_output(c)->buffer;     /* inputs that are not read may have none */

    arg_operand(l, a, c->is_empty ? stand_in : a->buffer, c->groups, roles[d].a_group, d == BACKWARD_DATA);
    arg_operand(l, b, c->is_empty ? stand_in : b->buffer, c->groups, roles[d].b_group, 0);
}

void vn__conv_arg_shape(struct vn_launch *l, const struct conv *c)
{
    const vn_tensor *in = c->direction == BACKWARD_DATA ? &c->y : &c->x;
    const int64_t limit = c->is_empty ? 0 : (int64_t)(in->buffer->bytes / vn_type_bytes(in->type));

    vn__conv_arg_taps(l, c);
    arg_extents(l, limit, 0, in->extent[0], 0, in->extent + 2);
    vn__conv_arg_steps(l, c);
}

void vn__conv_arg_problem(struct vn_launch *l, const struct conv *c)
{
    l->nargs = 0;
    vn__conv_arg_inputs(l, c);
    vn__conv_arg_output(l, c);
    vn__conv_arg_shape(l, c);
    vn__conv_arg_alpha(l, c);
}

/* ---- the call --------------------------------------------------------------------------------- */

/* Gives a view three spatial dimensions. */
static void widen(vn_tensor *t)
{
    const int missing = RANK - t->rank;

    for (int i = RANK - 1; i >= 2; i--) {
        t->extent[i] = i - missing >= 2 ? t->extent[i - missing] : 1;
        t->stride[i] = i - missing >= 2 ? t->stride[i - missing] : 0;
    }
    t->rank = RANK;
}

/* A filter of 1 that goes step by step sees pixels, not rows of them. */
static int is_plain(const struct conv *c, int d)
{
    return c->w.extent[2 + d] == 1 && c->stride[d] == 1 && c->pad[d] == 0 &&
           c->x.extent[2 + d] == c->y.extent[2 + d];
}

static int follows(const vn_tensor *t, int d)
{
    return t->stride[2 + d] == t->stride[RANK - 1] * t->extent[RANK - 1];
}

/* Joins dimension d to the last one. */
static void join(vn_tensor *t, int d)
{
    t->extent[RANK - 1] *= t->extent[2 + d];
    t->extent[2 + d] = 1;
    t->stride[2 + d] = 0;
}

/* Long rows are what kernels gather and store well. */
static void flatten(struct conv *c)
{
    const int sides_too = c->direction != BACKWARD_FILTER, bias_too = c->has_bias && sides_too;
    const int residual_too = c->beta != 0 && sides_too;

    for (int d = DIMS - 2; d >= 0 && is_plain(c, DIMS - 1); d--) {
        if (!is_plain(c, d) || !follows(&c->x, d) || !follows(&c->y, d) ||
            (bias_too && !follows(&c->bias, d)) || (residual_too && !follows(&c->residual, d)))
            return;
        join(&c->x, d);
        join(&c->y, d);
        if (bias_too)
            join(&c->bias, d);
        if (residual_too)
            join(&c->residual, d);
    }
}

/* What variants and tune rows go by. */
static void size_up(struct conv *c)
{
    const vn_tensor *out = vn__conv_output(c);
    const double macs = (double)vn__conv_depth(c) * (double)vn__conv_rows(c) *
                        (double)(c->direction == BACKWARD_FILTER ? vn__conv_columns(c)
                                                                 : vn__conv_pixels(out));
    const double elements = (double)vn__elements(&c->x) + (double)vn__elements(&c->w) +
                            (double)vn__elements(&c->y);
    const double again = c->beta != 0.0 ? (double)vn__elements(out) : 0.0;

    c->p.epilogue = (struct vn_epilogue){
        .act = (int)c->activation, .residual = c->beta != 0 ? VN_FULL : VN_NONE,
        .bias = c->has_bias ? VN_FULL : VN_NONE,
        .fast_act = c->activation ? c->fast : 0,
        .type_c = (int)out->type, .type_residual = (int)(c->beta != 0 ? c->residual.type : out->type),
        .type_bias = (int)(c->has_bias ? c->bias.type : out->type),
    };
    c->p.bucket = macs <= 0x1p24 ? VN_SMALL : macs <= 0x1p30 ? VN_MEDIUM : VN_LARGE;
    c->p.wide = vn__is_wide(&c->x) || vn__is_wide(&c->w) || vn__is_wide(&c->y) ||
                (c->has_bias && vn__is_wide(&c->bias)) ||
                (c->beta != 0 && vn__is_wide(&c->residual)) || vn__conv_pixels(&c->x) > VN_CONV_MOST ||
                vn__conv_pixels(&c->y) > VN_CONV_MOST || vn__conv_depth(c) > VN_CONV_MOST;
    for (int d = 0; d < DIMS; d++)              /* places in the padding */
        if ((double)c->x.extent[2 + d] + (double)c->dilation[d] * (double)c->w.extent[2 + d] +
            (double)c->stride[d] + 2.0 * (double)c->pad[d] > VN_CONV_MOST)
            c->p.wide = 1;
    c->p.flops = 2.0 * macs * (double)c->groups;
    c->p.bytes = (elements + again) * (double)vn_type_bytes(c->p.type);
}

void vn__conv_settle(struct conv *c)
{
    const int64_t row = c->x.extent[RANK - 1];

    flatten(c);
    c->joined = row ? c->x.extent[RANK - 1] / row : 1;
    size_up(c);
}

static vn_status pose(void *problem, int *done, const vn_queue *q, const void *given)
{
    static const char *const ops[] = { "conv_forward", "conv_backward_data", "conv_backward_filter" };
    const struct conv_call *const call = given;
    struct conv *const c = problem;
    vn_status s;

    *c = (struct conv){ .p = { .op = ops[call->head.function],
                               .type = call->head.function == BACKWARD_DATA ? call->w.type : call->x.type },
                        .direction = (enum direction)call->head.function,
                        .alpha = call->alpha, .beta = call->beta,
                        .x = call->x, .w = call->w, .y = call->y, .bias = call->bias,
                        .residual = call->residual,
                        .math = call->math, .activation = call->activation };
    c->fast = vn__fast_act(call->math, vn__conv_output(c)->type, &q->device->facts);
    if ((s = vn__conv_check(c, q, call)) ||
        (call->packed_w && (s = vn__conv_take(c, q, call->packed_w))))
        return s;
    if ((*done = vn__elements(vn__conv_output(c)) == 0))
        return VN_OK;
    widen(&c->x);
    widen(&c->w);
    widen(&c->y);
    if (c->has_bias)
        widen(&c->bias);
    widen(&c->residual);
    c->is_empty = c->alpha == 0.0 || vn__elements(&c->x) == 0 || vn__elements(&c->w) == 0 ||
                  vn__elements(&c->y) == 0;
    vn__conv_settle(c);
    return VN_OK;
}

const struct vn_operation vn__conv = {
    .name = "conv",
    .functions = {
        [FORWARD]         = "vn_conv_forward",
        [BACKWARD_DATA]   = "vn_conv_backward_data",
        [BACKWARD_FILTER] = "vn_conv_backward_filter",
    },
    .variants = vn__conv_variants,
    .call_size = sizeof(struct conv_call), .problem_size = sizeof(struct conv), .pose = pose,
};

/* What 0.1 called the options had neither residual nor pack. */
vn_status vn__conv_say(struct conv_call *call, enum direction d, double alpha, const vn_tensor *x,
                       const vn_tensor *w, double beta, const vn_tensor *y, const vn_conv_options *o)
{
    static const vn_conv_options usual;

    if (!o)
        o = &usual;
    if (o->size != 0 && o->size != sizeof *o)
        return vn__fail(VN_INVALID, "options.size is %u; it needs 0 or sizeof(vn_conv_options), %zu",
                        (unsigned)o->size, sizeof *o);
    call->residual = o->size ? o->residual : (vn_tensor){ .rank = 0 };
    call->packed_w = o->size ? o->packed_w : NULL;
    call->head = (struct vn_call){ &vn__conv, o->variant, (int)d, 0 };
    call->w = *w;
    call->x = *x;
    call->y = *y;
    call->bias = o->bias;
    call->alpha = alpha;
    call->beta = beta;
    memcpy(call->stride,     o->stride,     sizeof call->stride);
    memcpy(call->dilation,   o->dilation,   sizeof call->dilation);
    memcpy(call->pad_before, o->pad_before, sizeof call->pad_before);
    memcpy(call->pad_after,  o->pad_after,  sizeof call->pad_after);
    call->groups = o->groups;
    call->math = o->math;
    call->activation = o->activation;
    call->unused = 0;
    return VN_OK;
}

static vn_status conv(vn_queue *q, enum direction d, double alpha, const vn_tensor *x, const vn_tensor *w,
                      double beta, const vn_tensor *y, const vn_conv_options *o)
{
    struct conv_call call;                      /* a literal would be cleared as a whole first */
    vn_status s;

    if (o && o->size && o->size != sizeof *o && (s = vn__enter(vn__conv.functions[d])))
        return s;                               /* else the sentence would name another function */
    if ((s = vn__conv_say(&call, d, alpha, x, w, beta, y, o)))
        return s;
    return vn__operate(q, &call.head);
}

vn_status vn_conv_forward(vn_queue *q, double alpha, vn_tensor x, vn_tensor w,
                          double beta, vn_tensor y, const vn_conv_options *o)
{
    return conv(q, FORWARD, alpha, &x, &w, beta, &y, o);
}

vn_status vn_conv_backward_data(vn_queue *q, double alpha, vn_tensor dy, vn_tensor w,
                                double beta, vn_tensor dx, const vn_conv_options *o)
{
    return conv(q, BACKWARD_DATA, alpha, &dx, &w, beta, &dy, o);
}

vn_status vn_conv_backward_filter(vn_queue *q, double alpha, vn_tensor x, vn_tensor dy,
                                  double beta, vn_tensor dw, const vn_conv_options *o)
{
    return conv(q, BACKWARD_FILTER, alpha, &x, &dw, beta, &dy, o);
}
