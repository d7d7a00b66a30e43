/* SPDX-License-Identifier: Apache-2.0
 *
 * shallow_wgmma.c - the variant conv_shallow_wgmma: images of few channels, forward, in 16-bit types, on
 * NVIDIA's sm_90.
 */
#include "gemm/gemm.h"
#include "wgmma.h"

enum { BLK_N, STAGES, WARPGROUPS, ACROSS_STRIP, TAP_ROWS, TENANTS };    /* its parameters */
enum { EFF, SHARE, FIXED_NS, FILTER_NS, STAGE_NS, ELEMENTS_NS, ROW_NS };  /* its costs */
enum { ROWS, OWN, BANDS, GROUPS };              /* the plan's numbers, as vBands has them */
enum { H = DIMS - 2, W = DIMS - 1 };
enum { UNIT = 8, STEP = 2, WARPGROUP = 128, WARPGROUP_M = 64, MOST_UNITS = 8, LAG = 3 };  /* UNIT: elements */
enum { OTHER = 2048 };                          /* bytes of local memory beside what is planned: barriers */

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

/* Taps of zeros before the first of a row, by which units begin where those of the image do. */
static int64_t skipped(const struct conv *c)
{
    return has_words(c) ? VN_CEIL_DIV(c->pad[W], c->stride[W]) * c->stride[W] - c->pad[W] : 0;
}

/* Units of a row of taps, an even number. */
static int64_t units_of(const struct conv *c)
{
    return VN_CEIL_DIV(VN_CEIL_DIV(c->w.extent[2 + W] + skipped(c), c->stride[W]), STEP) * STEP;
}

const char *vn__fits_conv_shallow_wgmma(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;
    const char *why;

    if (vn__sm(f) != 90)
        return "it needs an NVIDIA GPU of sm_90, for wgmma";
    if (c->p.type != VN_F16 && c->p.type != VN_BF16)
        return "it needs f16 or bf16";
    if (c->direction != FORWARD)
        return "it computes no gradients";
    if (c->groups != 1)
        return "it takes no groups";
    if (c->x.extent[2] != 1 || c->y.extent[2] != 1 || c->w.extent[2] != 1)
        return "it is for one and two dimensions";
    if (!is_stride(c, 1) && !is_stride(c, 2))
        return "it is for strides of 1 or 2";
    if (c->w.extent[1] * c->stride[W] > UNIT)
        return "it is for at most 8 channels, or 4 with a stride of 2";
    if ((c->dilation[H] != 1 && c->w.extent[2 + H] > 1) || (c->dilation[W] != 1 && c->w.extent[2 + W] > 1))
        return "it is for filters without dilation";
    if ((why = vn__fits_elements(c)) || (why = vn__fits_conv_across(c)))
        return why;
    if (vn__conv_pixels(&c->y) > VN_CONV_MOST / 2)
        return "pixels of the output must stay below 2^30";
    return units_of(c) > MOST_UNITS ? "rows of taps must have at most 8 vectors" : NULL;
}

void vn__constants_conv_shallow_wgmma(int *constants, const void *problem)
{
    const struct conv *c = problem;

    constants[0] = (int)c->stride[W];
    constants[1] = (int)units_of(c);
    constants[2] = has_words(c);
    constants[3] = vn__conv_has_bias_of_channels(c);
    constants[4] = vn__conv_is_across(c);
}

const char *vn__plan_conv_shallow_wgmma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                        const struct vn_site *site)
{
    const struct conv *c = problem;
    const int *const p = row->p;
    const int64_t stride = c->stride[W], units = units_of(c), height = c->y.extent[2 + H];
    const int64_t taps_h = c->w.extent[2 + H], more = (taps_h - 1) / stride;
    const int64_t strip = WARPGROUP_M * p[ACROSS_STRIP];
    const int64_t blocks = VN_CEIL_DIV(vn__conv_rows(c), p[BLK_N]);
    const int64_t filter = p[TAP_ROWS] * units * p[BLK_N], stage = stride * (strip + units);
    int64_t groups, own;
    const double load = row->cost[has_words(c) ? STAGE_NS : ELEMENTS_NS];
    double flops, each;

    out->seconds = -1;
    if (taps_h > p[TAP_ROWS])
        return "its filter has more rows of taps than this row of parameters";
    if ((double)(p[TENANTS] * ((filter + p[STAGES] * stage) * 2 * UNIT + OTHER)) >
        site->rates->local_kib * 1024)
        return "this row of parameters takes more local memory than there is";
    if (LAG + more + 1 + p[WARPGROUPS] / p[ACROSS_STRIP] > p[STAGES])
        return "its stages hold too few rows of the source";
    out->v[BANDS] = VN_CEIL_DIV(c->y.extent[2 + W], strip);
    out->v[ROWS] = c->y.extent[0] * out->v[BANDS] * height;
    if (out->v[ROWS] > VN_CONV_MOST / 2)
        return "its rows of the output must stay below 2^30";
    groups = (int64_t)larger((double)(site->facts->units * p[TENANTS] / blocks), 1);
    out->v[OWN] = own = VN_CEIL_DIV(out->v[ROWS], groups);
    out->v[GROUPS] = VN_CEIL_DIV(out->v[ROWS], own);

    out->seconds = 0;
    if (row->cost[EFF] <= 0 || row->cost[SHARE] <= 0)           /* the row has no costs */
        return NULL;
    flops = 2.0 * (double)(strip * p[BLK_N] * units * UNIT * taps_h);
    each = flops / (row->cost[EFF] * 1e-3 * site->rates->mma16 * 1e9) + row->cost[ROW_NS] * 1e-9;
    each = (double)own * each + (double)(own + more * VN_CEIL_DIV(own, height)) * load * 1e-9;
    each *= larger((double)(out->v[GROUPS] * blocks) / site->facts->units, 1);
    out->seconds = (row->cost[FIXED_NS] + (double)(taps_h * units) * row->cost[FILTER_NS]) * 1e-9 +
                   larger(each, vn__move_seconds(c->p.bytes, row->cost[SHARE], site));
    return NULL;
}

vn_status vn__run_conv_shallow_wgmma(vn_queue *q, const struct vn_choice *it, const void *problem,
                                     const struct vn_plan *plan)
{
    const struct conv joined = vn__conv_joined(problem);
    const int64_t *const v = plan->v;
    struct vn_launch l = { .groups = { v[GROUPS], VN_CEIL_DIV(vn__conv_rows(&joined), it->p[BLK_N]), 1 },
                           .items = WARPGROUP * (it->p[WARPGROUPS] + 1) };

    vn__conv_arg_problem(&l, &joined);
    vn__arg_view(&l, (int64_t[8]){ v[ROWS], v[OWN], v[BANDS], vn__divisor(joined.y.extent[2 + H]),
                                   vn__divisor(v[BANDS]), skipped(&joined),
                                   joined.stride[W] * joined.w.extent[1] / 2 });
    return vn__launch(q, it, 0, &l);
}
