/* SPDX-License-Identifier: Apache-2.0
 *
 * shallow_wgmma.c - the variant conv_shallow_wgmma: images of few channels, forward, in 16-bit types, on
 * NVIDIA's sm_90.
 */
#include "gemm/gemm.h"
#include "shallow_wgmma.h"
#include "wgmma.h"

enum { BLK_N, STAGES, WARPGROUPS, ACROSS_STRIP, TAP_ROWS, TENANTS };    /* its parameters */
enum { EFF, SHARE, FIXED_NS, FILTER_NS, STAGE_NS, ELEMENTS_NS, ROW_NS };  /* its costs */
enum { H = DIMS - 2, W = DIMS - 1 };
enum { STEP = 2, WARPGROUP = 128, WARPGROUP_M = 64 };    /* STEP: units of a product, forward */
enum { OTHER = 2048 };                          /* bytes of local memory beside what is planned: barriers */

/* ---- units ---------------------------------------------------------------------------- */

/* Of planes whose rows do not move, the stride has no meaning. */
static int is_stride(const struct conv *c, int64_t stride)
{
    return c->stride[W] == stride && (c->stride[H] == stride || c->y.extent[2 + H] == 1);
}

/* Whether units are words of the source that follow each other: whole pixels, none half in the image. */
static int has_words(const struct conv *c)
{
    const vn_tensor *const x = &c->x;
    const int64_t channels = x->extent[1], stride = c->stride[W];

    return (channels == 1 || x->stride[1] == 1) && (x->extent[2 + W] == 1 || x->stride[2 + W] == channels) &&
           stride * channels % 2 == 0 && x->extent[2 + W] % stride == 0 && x->start % 2 == 0 &&
           (x->extent[0] == 1 || x->stride[0] % 2 == 0) &&
           (x->extent[2 + H] == 1 || x->stride[2 + H] % 2 == 0);
}

int vn__shallow_words(const struct conv *c)
{
    return has_words(c) ? (int)(c->stride[W] * c->w.extent[1] / 2) : 0;
}

int vn__shallow_lag(const struct conv *c) { return has_words(c) ? VN_MOST_OPEN : 0; }

/* By which units begin where those of the image do. */
int64_t vn__shallow_skipped(const struct conv *c)
{
    return has_words(c) ? VN_CEIL_DIV(c->pad[W], c->stride[W]) * c->stride[W] - c->pad[W] : 0;
}

int64_t vn__shallow_units(const struct conv *c)
{
    return VN_CEIL_DIV(VN_CEIL_DIV(c->w.extent[2 + W] + vn__shallow_skipped(c), c->stride[W]), STEP) * STEP;
}

const char *vn__fits_shallow_units(const struct conv *c, const struct vn_facts *f)
{
    if (vn__sm(f) != 90)
        return "it needs an NVIDIA GPU of sm_90, for wgmma";
    if (c->p.type != VN_F16 && c->p.type != VN_BF16)
        return "it needs f16 or bf16";
    if (c->groups != 1)
        return "it takes no groups";
    if (c->x.extent[2] != 1 || c->y.extent[2] != 1 || c->w.extent[2] != 1)
        return "it is for one and two dimensions";
    if (!is_stride(c, 1) && !is_stride(c, 2))
        return "it is for strides of 1 or 2";
    if (c->w.extent[1] * c->stride[W] > VN_UNIT)
        return "it is for at most 8 channels, or 4 with a stride of 2";
    if ((c->dilation[H] != 1 && c->w.extent[2 + H] > 1) || (c->dilation[W] != 1 && c->w.extent[2 + W] > 1))
        return "it is for filters without dilation";
    if (vn__conv_pixels(&c->y) > VN_CONV_MOST / 2)
        return "pixels of the output must stay below 2^30";
    return vn__shallow_units(c) > VN_UNITS ? "rows of taps must have at most 8 vectors"
                                           : vn__fits_elements(c);
}

const char *vn__shallow_bands(struct shallow_bands *out, const struct conv *c, int64_t columns,
                              int64_t groups)
{
    out->across = VN_CEIL_DIV(c->y.extent[2 + W], columns);
    out->rows = c->y.extent[0] * out->across * c->y.extent[2 + H];
    if (out->rows > VN_CONV_MOST / 2)
        return "its rows of the output must stay below 2^30";
    out->own = VN_CEIL_DIV(out->rows, groups);
    out->groups = VN_CEIL_DIV(out->rows, out->own);
    return NULL;
}

void vn__shallow_arg_bands(struct vn_launch *l, const struct conv *c, const struct shallow_bands *b)
{
    vn__arg_view(l, (int64_t[8]){ b->rows, b->own, b->across, vn__divisor(c->y.extent[2 + H]),
                                  vn__divisor(b->across), vn__shallow_skipped(c) });
}

/* ---- forward -------------------------------------------------------------------------- */

const char *vn__fits_conv_shallow_wgmma(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;
    const char *const why = vn__fits_shallow_units(c, f);

    return why ? why : c->direction != FORWARD ? "it computes no gradients" : vn__fits_conv_across(c);
}

void vn__constants_conv_shallow_wgmma(int *constants, const void *problem)
{
    const struct conv *c = problem;

    constants[0] = (int)c->stride[W];
    constants[1] = (int)vn__shallow_units(c);
    constants[2] = vn__shallow_words(c);
    constants[3] = vn__conv_has_bias_of_channels(c);
    constants[4] = vn__conv_is_across(c);
}

static const char *bands_of(struct shallow_bands *out, const struct conv *c, const int *p, int units)
{
    const int64_t groups = units * p[TENANTS] / VN_CEIL_DIV(vn__conv_rows(c), p[BLK_N]);

    return vn__shallow_bands(out, c, WARPGROUP_M * p[ACROSS_STRIP], groups > 1 ? groups : 1);
}

const char *vn__plan_conv_shallow_wgmma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                        const struct vn_site *site)
{
    const struct conv *c = problem;
    const int *const p = row->p;
    const int64_t stride = c->stride[W], units = vn__shallow_units(c);
    const int64_t taps_h = c->w.extent[2 + H], more = (taps_h - 1) / stride;
    const int64_t strip = WARPGROUP_M * p[ACROSS_STRIP];
    const int64_t blocks = VN_CEIL_DIV(vn__conv_rows(c), p[BLK_N]);
    const int64_t filter = p[TAP_ROWS] * units * p[BLK_N], stage = stride * (strip + units);
    const double load = row->cost[has_words(c) ? STAGE_NS : ELEMENTS_NS];
    struct shallow_bands b = { 0, 0, 0, 0 };
    double flops, each;
    const char *why;

    out->seconds = -1;
    if (taps_h > p[TAP_ROWS])
        return "its filter has more rows of taps than this row of parameters";
    if ((double)(p[TENANTS] * ((filter + p[STAGES] * stage) * 2 * VN_UNIT + OTHER)) >
        site->rates->local_kib * 1024)
        return "this row of parameters takes more local memory than there is";
    if (vn__shallow_lag(c) + more + 1 + p[WARPGROUPS] / p[ACROSS_STRIP] > p[STAGES])
        return "its stages hold too few rows of the source";
    if ((why = bands_of(&b, c, p, site->facts->units)))
        return why;

    out->seconds = 0;
    if (row->cost[EFF] <= 0 || row->cost[SHARE] <= 0)           /* the row has no costs */
        return NULL;
    flops = 2.0 * (double)(strip * p[BLK_N] * units * VN_UNIT * taps_h);
    each = flops / (row->cost[EFF] * 1e-3 * site->rates->mma16 * 1e9) + row->cost[ROW_NS] * 1e-9;
    each = (double)b.own * each +
           (double)(b.own + more * VN_CEIL_DIV(b.own, c->y.extent[2 + H])) * load * 1e-9;
    each *= larger((double)(b.groups * blocks) / site->facts->units, 1);
    out->seconds = (row->cost[FIXED_NS] + (double)(taps_h * units) * row->cost[FILTER_NS]) * 1e-9 +
                   larger(each, vn__move_seconds(c->p.bytes, row->cost[SHARE], site));
    return NULL;
}

vn_status vn__run_conv_shallow_wgmma(vn_queue *q, const struct vn_choice *it, const void *problem,
                                     const struct vn_plan *plan)
{
    const struct conv joined = vn__conv_joined(problem);
    struct vn_launch l = { .items = WARPGROUP * (it->p[WARPGROUPS] + 1) };
    struct shallow_bands b = { 0, 0, 0, 0 };

    (void)plan;
    bands_of(&b, &joined, it->p, q->device->facts.units);
    l.groups[0] = b.groups;
    l.groups[1] = VN_CEIL_DIV(vn__conv_rows(&joined), it->p[BLK_N]);
    l.groups[2] = 1;
    vn__conv_arg_problem(&l, &joined);
    vn__shallow_arg_bands(&l, &joined, &b);
    return vn__launch(q, it, 0, &l);
}
