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
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "conv.h"
#include "vendors/vendor.h"

/* ---- the problem as a matrix product ------------------------------------------- */

static int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }

static const vn_tensor *output_of(const struct conv *c)
{
    return c->direction == FORWARD ? &c->y : c->direction == BACKWARD_DATA ? &c->x : &c->w;
}

static int64_t pixels_of(const vn_tensor *t)
{
    return t->extent[0] * t->extent[2] * t->extent[3] * t->extent[4];
}

static int64_t taps_of(const struct conv *c)
{
    return c->w.extent[2] * c->w.extent[3] * c->w.extent[4];
}

static int64_t rows_of(const struct conv *c)
{
    const int64_t taps = taps_of(c), inner = c->w.extent[1], filters = c->w.extent[0] / c->groups;

    return c->direction == FORWARD ? filters : c->direction == BACKWARD_DATA ? inner : taps * inner;
}

/* How many phases the pixels of the output fall into, along one dimension. */
static int64_t phases_along(const struct conv *c, int d)
{
    return c->direction == BACKWARD_DATA ? min_of(c->stride[d], c->x.extent[2 + d]) : 1;
}

static int64_t phases_of(const struct conv *c)
{
    return phases_along(c, 0) * phases_along(c, 1) * phases_along(c, 2);
}

/* Columns of the largest phase, which is the first. */
static int64_t columns_of(const struct conv *c)
{
    const vn_tensor *out = output_of(c);
    int64_t n = out->extent[0];

    if (c->direction == BACKWARD_FILTER)
        return n / c->groups;
    for (int d = 0; d < DIMS; d++)
        n *= VN_CEIL_DIV(out->extent[2 + d], phases_along(c, d));
    return n;
}

static int64_t depth_of(const struct conv *c)
{
    return c->direction == FORWARD ? taps_of(c) * c->w.extent[1]
         : c->direction == BACKWARD_DATA ? taps_of(c) * c->w.extent[0] / c->groups : pixels_of(&c->y);
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

static void arg_extents(struct vn_launch *l, int64_t s0, int64_t s1, int64_t s2, int64_t s3, const int64_t dims[DIMS])
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

static void arg_output(struct vn_launch *l, const struct conv *c)
{
    const vn_tensor *out = output_of(c), *bias = c->has_bias ? &c->bias : out;
    const int grouped = roles[c->direction].c_group;

    arg_operand(l, out, out->buffer, c->groups, grouped, 0);
    arg_operand(l, bias, bias->buffer, c->groups, grouped, 0);
}

static void arg_taps(struct vn_launch *l, const struct conv *c)
{
    const int64_t channels = c->direction == BACKWARD_DATA ? c->w.extent[0] / c->groups : c->w.extent[1];
    const int sums_channels = c->direction != BACKWARD_FILTER;

    arg_extents(l, c->groups, 0, 0, sums_channels && c->is_empty ? 0 : channels, c->w.extent + 2);
}

static void arg_epilogue(struct vn_launch *l, const struct conv *c)
{
    vn__arg_real(l, c->p.type, c->alpha);
    vn__arg_real(l, c->p.type, c->beta);
    vn__arg_int(l, c->has_bias);
    vn__arg_int(l, (int64_t)c->activation);
}

static void arg_problem(struct vn_launch *l, const struct conv *c)
{
    const enum direction d = c->direction;
    const vn_tensor *a = role(c, roles[d].a), *b = role(c, roles[d].b);
    const vn_tensor *in = d == BACKWARD_DATA ? &c->y : &c->x, *out = d == BACKWARD_DATA ? &c->x : &c->y;
    const int64_t out_channels = d == BACKWARD_DATA ? c->w.extent[1] : c->w.extent[0] / c->groups;
    const int64_t images = d == BACKWARD_FILTER && c->is_empty ? 0 : out->extent[0];

    const int64_t limit = c->is_empty ? 0 : (int64_t)(in->buffer->bytes / vn_type_bytes(in->type));
    vn_buffer *stand_in = output_of(c)->buffer;     /* inputs that are not read may have none */

    l->nargs = 0;
    arg_operand(l, a, c->is_empty ? stand_in : a->buffer, c->groups, roles[d].a_group, d == BACKWARD_DATA);
    arg_operand(l, b, c->is_empty ? stand_in : b->buffer, c->groups, roles[d].b_group, 0);
    arg_output(l, c);
    arg_taps(l, c);
    arg_extents(l, limit, 0, in->extent[0], 0, in->extent + 2);
    arg_extents(l, 0, 0, images, out_channels, out->extent + 2);
    arg_extents(l, 0, c->dilation[0], c->dilation[1], c->dilation[2], c->stride);
    arg_extents(l, 0, 0, 0, 0, c->pad);
    arg_epilogue(l, c);
}

/* ---- variants ------------------------------------------------------------------------ */

/* Past these an int in a kernel could overflow, also when rounded up to a tile. */
enum { MOST = INT_MAX - 4096 };

static const char *fits_direction(const struct conv *c, enum direction d)
{
    static const char *const why[] = {
        "this row of it goes forward", "this row of it makes the gradient of the data",
        "this row of it makes the gradient of the filter" };

    if (rows_of(c) > MOST || columns_of(c) > MOST || phases_of(c) > MOST / (columns_of(c) / 8 + 1) ||
        depth_of(c) > MOST || c->groups > MOST)
        return "its rows, columns and sums must stay below 2^31";
    return c->direction == d ? NULL : why[d];
}

static const char *fits_cpu(const struct conv *c, const struct vn_facts *f, enum direction d)
{
    if (strcmp(f->family, "cpu"))
        return "the device is no CPU";
    if (f->vector < 2)
        return "the device does not ask for explicit vectors";
    if (f->local_bytes < 256 << 10)
        return "the device has less than 256 KiB of local memory";
    if (c->math == VN_MATH_BITWISE)
        return "bitwise mathematics needs the order of sums of conv";
    return fits_direction(c, d);
}

static const char *fits_depthwise(const struct conv *c, const struct vn_facts *f, enum direction d)
{
    if (c->w.extent[0] != c->groups || c->w.extent[1] != 1 || c->groups == 1)
        return "each channel needs a filter of its own";
    return fits_cpu(c, f, d);
}

#define FITS(name, fits, d) \
    static const char *name(const void *problem, const struct vn_facts *f) { return fits(problem, f, d); }

static const char *fits_any(const struct conv *c, const struct vn_facts *f, enum direction d)
{
    (void)f;
    return fits_direction(c, d);
}

FITS(fits_forward,    fits_any, FORWARD)
FITS(fits_data,       fits_any, BACKWARD_DATA)
FITS(fits_filter,     fits_any, BACKWARD_FILTER)
FITS(fits_depthwise_forward, fits_depthwise, FORWARD)
FITS(fits_depthwise_data,    fits_depthwise, BACKWARD_DATA)
FITS(fits_cpu_forward, fits_cpu, FORWARD)
FITS(fits_cpu_data,    fits_cpu, BACKWARD_DATA)
FITS(fits_cpu_filter,  fits_cpu, BACKWARD_FILTER)

static vn_status run_tiled(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    enum { BLK_M, BLK_N, BLK_K, THR_M, THR_N };
    const struct conv *c = problem;
    const int *p = it->p;
    const int64_t panels = VN_CEIL_DIV(columns_of(c), p[BLK_N]);
    struct vn_launch l;

    l.groups[0] = panels * phases_of(c);
    l.groups[1] = VN_CEIL_DIV(rows_of(c), p[BLK_M]);
    l.groups[2] = c->groups;
    l.items = p[BLK_M] / p[THR_M] * (p[BLK_N] / p[THR_N]);
    arg_problem(&l, c);
    vn__arg_int(&l, panels);
    return vn__launch(q, it, 0, &l);
}

/* ---- on CPUs --------------------------------------------------------------------------- */

enum { CPU_THR_M, CPU_THR_V, CPU_VEC, CPU_BLK_M, CPU_BLK_K };
enum { GROUPS_PER_UNIT = 4, PANELS_PER_GROUP = 4 };     /* work-groups wanted; tiles that repay a gathering */

/* Of `tiles`, how many one work-group takes: as many as its local memory allows, but not so
 * many that cores go idle, nor so few that gathering outweighs them.  Parts of one panel are
 * alike, and each gathers it anew: of those, half as many do.                             */
static int64_t share_of(const vn_queue *q, int64_t tiles, int64_t others, const int *p)
{
    const int64_t wanted = GROUPS_PER_UNIT / (others == 1 ? 2 : 1) * (int64_t)q->device->facts.units;
    const int64_t most = p[CPU_BLK_M] / p[CPU_THR_M], parts = VN_CEIL_DIV(wanted, others);
    const int64_t share = max_of(VN_CEIL_DIV(tiles, parts), min_of(tiles, PANELS_PER_GROUP));

    return VN_CEIL_DIV(tiles, VN_CEIL_DIV(tiles, min_of(share, most)));
}

static vn_status run_cpu(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct conv *c = problem;
    const int *p = it->p;
    const int64_t panels = VN_CEIL_DIV(columns_of(c), p[CPU_THR_V] * p[CPU_VEC]);
    const int64_t tiles = VN_CEIL_DIV(rows_of(c), p[CPU_THR_M]);
    const int64_t share = share_of(q, tiles, panels * phases_of(c) * c->groups, p);
    struct vn_launch l;

    l.groups[0] = panels * phases_of(c);
    l.groups[1] = VN_CEIL_DIV(tiles, share);
    l.groups[2] = c->groups;
    l.items = 1;
    arg_problem(&l, c);
    vn__arg_int(&l, panels);
    vn__arg_int(&l, share * p[CPU_THR_M]);
    return vn__launch(q, it, 0, &l);
}

/* One channel to each group: the groups become the rows of a single one. */
static vn_status run_depthwise(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    struct conv c = *(const struct conv *)problem;

    c.groups = 1;
    if (c.direction == BACKWARD_DATA) {
        const int64_t extent = c.w.extent[0], stride = c.w.stride[0];

        c.w.extent[0] = c.w.extent[1];
        c.w.stride[0] = c.w.stride[1];
        c.w.extent[1] = extent;
        c.w.stride[1] = stride;
    }
    return run_cpu(q, it, &c);
}

/* The gradient of a small filter has few tiles but long sums: these are cut in parts.  How
 * many is a matter of the problem alone, so that a result does not depend on the device.  */
static int64_t splits_of(const struct conv *c, const int *p)
{
    const int64_t tiles = taps_of(c) * VN_CEIL_DIV(c->w.extent[1], p[CPU_THR_M]) *
                          VN_CEIL_DIV(columns_of(c), p[CPU_THR_V] * p[CPU_VEC]) * c->groups;
    const int64_t blocks = c->is_empty ? 0 : VN_CEIL_DIV(pixels_of(&c->y), p[CPU_BLK_K]);

    return max_of(1, min_of(blocks / 4, VN_CEIL_DIV(64, tiles)));
}

static size_t cpu_workspace(const void *problem, const int *p)
{
    const struct conv *c = problem;
    const int64_t splits = splits_of(c, p);
    int64_t bytes = c->p.type == VN_F64 ? 8 : 4;

    if (splits == 1)
        return 0;
    return vn__mul(&bytes, bytes, vn__elements(&c->w)) && vn__mul(&bytes, bytes, splits) ? (size_t)bytes : SIZE_MAX;
}

static vn_status run_sum(vn_queue *q, const struct vn_choice *it, const struct conv *c, int64_t splits, vn_buffer *sums)
{
    struct vn_launch l;

    l.groups[0] = rows_of(c);
    l.groups[1] = 1;
    l.groups[2] = c->groups;
    l.items = 1;
    l.nargs = 0;
    arg_output(&l, c);
    arg_taps(&l, c);
    arg_epilogue(&l, c);
    vn__arg_int(&l, splits);
    vn__arg_int(&l, columns_of(c));
    vn__arg_buffer(&l, sums);
    return vn__launch(q, it, 1, &l);
}

static vn_status run_cpu_filter(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct conv *c = problem;
    const int *p = it->p;
    const int64_t panels = VN_CEIL_DIV(columns_of(c), p[CPU_THR_V] * p[CPU_VEC]);
    const int64_t tiles = taps_of(c) * VN_CEIL_DIV(c->w.extent[1], p[CPU_THR_M]);
    const int64_t splits = splits_of(c, p), share = share_of(q, tiles, panels * splits * c->groups, p);
    const size_t bytes = cpu_workspace(c, p);
    vn_buffer *sums = c->w.buffer;
    struct vn_launch l;
    vn_status s;

    if (bytes && (s = vn__workspace(&sums, q, bytes)))
        return s;
    l.groups[0] = VN_CEIL_DIV(tiles, share);
    l.groups[1] = panels * splits;
    l.groups[2] = c->groups;
    l.items = 1;
    arg_problem(&l, c);
    vn__arg_int(&l, splits);
    vn__arg_int(&l, share);
    vn__arg_buffer(&l, sums);
    if ((s = vn__launch(q, it, 0, &l)) || splits == 1)
        return s;
    return run_sum(q, it, c, splits, sums);
}

/* ---- the table ---------------------------------------------------------------------------- */

#define TILED(fits_it, direction) \
    { .name = "conv", .fits = fits_it, .run = run_tiled, .texts = "cl/tile/epilogue.h cl/conv/conv.h cl/tile/fma.h cl/conv/tiled.cl", \
      .entries = "conv", .params = "BLK_M BLK_N BLK_K THR_M THR_N", .defines = "#define DIRECTION " direction "\n" }
#define CPU(variant, fits_it, run_it, workspace_of, entry_list, direction, depthwise) \
    { .name = variant, .fits = fits_it, .run = run_it, .workspace = workspace_of, \
      .texts = "cl/tile/epilogue.h cl/conv/conv.h cl/tile/cpu.h cl/conv/cpu.cl", .entries = entry_list, \
      .params = "THR_M THR_V VEC BLK_M BLK_K", \
      .defines = "#define DIRECTION " direction "\n#define DEPTHWISE " depthwise "\n" }

/* Tried from the top; the first that fits is used.  One name stands for three directions. */
const struct vn_variant vn__conv_variants[] = {
    VN_CUDNN_CONV
    CPU("conv_depthwise", fits_depthwise_forward, run_depthwise, NULL, "conv_cpu", "0", "1"),
    CPU("conv_depthwise", fits_depthwise_data,    run_depthwise, NULL, "conv_cpu", "1", "1"),
    CPU("conv_cpu", fits_cpu_forward, run_cpu,        NULL,          "conv_cpu",          "0", "0"),
    CPU("conv_cpu", fits_cpu_data,    run_cpu,        NULL,          "conv_cpu",          "1", "0"),
    CPU("conv_cpu", fits_cpu_filter,  run_cpu_filter, cpu_workspace, "conv_cpu conv_sum", "2", "0"),
    TILED(fits_forward, "0"),
    TILED(fits_data,    "1"),
    TILED(fits_filter,  "2"),
    { .name = NULL }
};

/* ---- checks --------------------------------------------------------------------------------- */

/* What the operands are called in the call that was made. */
static const struct { const char *function, *x, *w, *y, *out; } names[] = {
    [FORWARD]         = { "vn_conv_forward",         "x",  "w",  "y",  "y"  },
    [BACKWARD_DATA]   = { "vn_conv_backward_data",   "dx", "w",  "dy", "dx" },
    [BACKWARD_FILTER] = { "vn_conv_backward_filter", "x",  "dw", "dy", "dw" },
};

static vn_status check_views(const struct conv *c, const vn_queue *q)
{
    const char *const x = names[c->direction].x, *const w = names[c->direction].w, *const y = names[c->direction].y;
    vn_status s;

    if ((s = vn__check_tensor(&c->x, x, q, 3, RANK, c->direction == BACKWARD_DATA)) ||
        (s = vn__check_tensor(&c->w, w, q, 3, RANK, c->direction == BACKWARD_FILTER)) ||
        (s = vn__check_tensor(&c->y, y, q, 3, RANK, c->direction == FORWARD)))
        return s;
    if (c->x.rank != c->w.rank || c->x.rank != c->y.rank)
        return vn__fail(VN_INVALID, "%s, %s and %s have ranks %d, %d and %d; they need one rank", x, w, y,
                        c->x.rank, c->w.rank, c->y.rank);
    if (c->x.type != c->w.type || c->x.type != c->y.type)
        return vn__fail(VN_INVALID, "%s, %s and %s have types %s, %s and %s; they need one type", x, w, y,
                        vn_type_name(c->x.type), vn_type_name(c->w.type), vn_type_name(c->y.type));
    return VN_OK;
}

static vn_status check_option(int v, const char *name, int i)
{
    if (v >= 0)
        return VN_OK;
    return vn__fail(VN_INVALID, "%s[%d] is %d; it needs 0 or more", name, i, v);
}

static vn_status check_options(const vn_conv_options *o)
{
    vn_status s;

    for (int i = 0; i < DIMS; i++)
        if ((s = check_option(o->stride[i], "stride", i)) || (s = check_option(o->dilation[i], "dilation", i)) ||
            (s = check_option(o->pad_before[i], "pad_before", i)) ||
            (s = check_option(o->pad_after[i], "pad_after", i)))
            return s;
    if (o->groups < 0)
        return vn__fail(VN_INVALID, "groups is %d; it needs 0 or more", o->groups);
    if ((s = vn__check_enum((int)o->math, VN_MATH_COUNT, "math")))
        return s;
    return vn__check_enum((int)o->activation, VN_ACTIVATION_COUNT, "activation");
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
    const char *const x = names[c->direction].x, *const w = names[c->direction].w, *const y = names[c->direction].y;
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
    return VN_OK;
}

static vn_status check_pixels(const struct conv *c, const vn_conv_options *o)
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
static void spread_bias(struct conv *c)
{
    const vn_tensor one = c->bias, *out = output_of(c);
    const int channel = c->direction == BACKWARD_FILTER ? 0 : 1;

    c->bias.rank = out->rank;
    for (int i = 0; i < out->rank; i++) {
        c->bias.extent[i] = i == channel ? one.extent[0] : 1;
        c->bias.stride[i] = i == channel ? one.stride[0] : 0;
    }
}

static vn_status check_bias(struct conv *c, const vn_queue *q, const char *out_name)
{
    const vn_tensor *out = output_of(c);
    vn_status s;

    if (!(c->has_bias = vn__given(&c->bias)))
        return VN_OK;
    if ((s = vn__check_tensor(&c->bias, "bias", q, 1, RANK, 0)))
        return s;
    if (c->bias.type != out->type)
        return vn__fail(VN_INVALID, "bias has type %s; it needs that of %s, %s", vn_type_name(c->bias.type), out_name,
                        vn_type_name(out->type));
    if (c->bias.rank == 1) {
        const int64_t channels = out->extent[c->direction == BACKWARD_FILTER ? 0 : 1];

        if (c->bias.extent[0] != channels && c->bias.extent[0] != 1)
            return vn__fail(VN_INVALID, "bias has %lld elements; it needs one for each of the %lld channels of %s",
                            (long long)c->bias.extent[0], (long long)channels, out_name);
        spread_bias(c);
    }
    if ((s = vn__broadcast(&c->bias, "bias", out, out_name)))
        return s;
    return vn__check_overlap(out, out_name, &c->bias, "bias");
}

static vn_status check_overlaps(const struct conv *c)
{
    const vn_tensor *const t[] = { &c->x, &c->w, &c->y }, *out = output_of(c);
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
static void take_options(struct conv *c, const vn_conv_options *o)
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

static vn_status check(struct conv *c, const vn_queue *q, const vn_conv_options *o)
{
    vn_status s;

    if ((s = check_views(c, q)) || (s = check_options(o)))
        return s;
    take_options(c, o);
    if ((s = check_channels(c)) || (s = check_pixels(c, o)) || (s = check_bias(c, q, names[c->direction].out)) ||
        (s = check_overlaps(c)))
        return s;
    return VN_OK;
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
    return c->w.extent[2 + d] == 1 && c->stride[d] == 1 && c->pad[d] == 0 && c->x.extent[2 + d] == c->y.extent[2 + d];
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
    const int bias_too = c->has_bias && c->direction != BACKWARD_FILTER;

    for (int d = DIMS - 2; d >= 0 && is_plain(c, DIMS - 1); d--) {
        if (!is_plain(c, d) || !follows(&c->x, d) || !follows(&c->y, d) || (bias_too && !follows(&c->bias, d)))
            return;
        join(&c->x, d);
        join(&c->y, d);
        if (bias_too)
            join(&c->bias, d);
    }
}

/* What variants and tune rows go by. */
static void size_up(struct conv *c)
{
    const double macs = (double)depth_of(c) * (double)rows_of(c) *
                        (double)(c->direction == BACKWARD_FILTER ? columns_of(c) : pixels_of(output_of(c)));
    const double elements = (double)vn__elements(&c->x) + (double)vn__elements(&c->w) + (double)vn__elements(&c->y);
    const double again = c->beta != 0.0 ? (double)vn__elements(output_of(c)) : 0.0;

    c->p.bucket = macs <= 0x1p24 ? VN_SMALL : macs <= 0x1p30 ? VN_MEDIUM : VN_LARGE;
    c->p.wide = vn__is_wide(&c->x) || vn__is_wide(&c->w) || vn__is_wide(&c->y) ||
                (c->has_bias && vn__is_wide(&c->bias)) || pixels_of(&c->x) > MOST || pixels_of(&c->y) > MOST ||
                depth_of(c) > MOST;
    for (int d = 0; d < DIMS; d++)              /* places in the padding */
        if ((double)c->x.extent[2 + d] + (double)c->dilation[d] * (double)c->w.extent[2 + d] +
            (double)c->stride[d] + 2.0 * (double)c->pad[d] > MOST)
            c->p.wide = 1;
    c->p.flops = 2.0 * macs * (double)c->groups;
    c->p.bytes = (elements + again) * (double)vn_type_bytes(c->p.type);
}

static vn_status conv(vn_queue *q, struct conv *c, const vn_conv_options *o)
{
    static const vn_conv_options usual;
    const struct vn_choice *it;
    int64_t row;
    vn_status s;

    if (!o)
        o = &usual;
    c->bias = o->bias;
    c->math = o->math;
    c->activation = o->activation;
    if ((s = vn__enter(names[c->direction].function)) || (s = vn__handle_check(q, VN_QUEUE, "queue")) ||
        (s = check(c, q, o)))
        return s;
    if (vn__elements(output_of(c)) == 0)
        return VN_OK;

    widen(&c->x);
    widen(&c->w);
    widen(&c->y);
    if (c->has_bias)
        widen(&c->bias);
    c->p.type = c->x.type;
    c->is_empty = c->alpha == 0.0 || vn__elements(&c->x) == 0 || vn__elements(&c->w) == 0 || vn__elements(&c->y) == 0;
    row = c->x.extent[RANK - 1];
    flatten(c);
    c->joined = row ? c->x.extent[RANK - 1] / row : 1;
    size_up(c);
    if ((s = vn__choose(&it, q, vn__conv_variants, c, sizeof *c, o->variant)))
        return s;
    return it->variant->run(q, it, c);
}

vn_status vn_conv_forward(vn_queue *q, double alpha, vn_tensor x, vn_tensor w,
                          double beta, vn_tensor y, const vn_conv_options *o)
{
    struct conv c = { .p = { .op = "conv_forward" }, .direction = FORWARD, .alpha = alpha, .beta = beta,
                      .x = x, .w = w, .y = y };

    return vn__leave(conv(q, &c, o));
}

vn_status vn_conv_backward_data(vn_queue *q, double alpha, vn_tensor dy, vn_tensor w,
                                double beta, vn_tensor dx, const vn_conv_options *o)
{
    struct conv c = { .p = { .op = "conv_backward_data" }, .direction = BACKWARD_DATA, .alpha = alpha, .beta = beta,
                      .x = dx, .w = w, .y = dy };

    return vn__leave(conv(q, &c, o));
}

vn_status vn_conv_backward_filter(vn_queue *q, double alpha, vn_tensor x, vn_tensor dy,
                                  double beta, vn_tensor dw, const vn_conv_options *o)
{
    struct conv c = { .p = { .op = "conv_backward_filter" }, .direction = BACKWARD_FILTER, .alpha = alpha,
                      .beta = beta, .x = x, .w = dw, .y = dy };

    return vn__leave(conv(q, &c, o));
}
