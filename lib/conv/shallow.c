/* SPDX-License-Identifier: Apache-2.0
 *
 * shallow.c - the variants conv_shallow and conv_shallow_mma: images of few channels, forward, on GPUs; by
 * multiply-adds, and in 16-bit types by the matrix engine of NVIDIA's sm_80 and up.
 */
#include <string.h>

#include "gemm/gemm.h"
#include "strips.h"

enum { BLK_K, THR_K, THR_H, LANES, EXTRA, FILTERS, WINDOW };    /* its parameters */
enum { EFF, FIXED_NS, TILE_NS };       /* its costs */
enum { MMA_THR_H = 1, MMA_LANES, MMA_EXTRA, MMA_WINDOW };      /* of conv_shallow_mma, after BLK_K ... */
enum { MMA_FIXED_NS, FILTER_NS, MMA_TILE_NS, STEP_NS, COPY_NS };       /* ... its costs */
enum { TILES, ACROSS, DOWN, GROUPS, TOGETHER }; /* the plan's numbers */
enum { MOST_CHANNELS = 4, VECTOR = 8 };         /* of the source; channels that are stored at once */
enum { TENANTS = 4 };                           /* work-groups of a compute unit: each takes several tiles */
enum { STEP = 16, MMA_ITEMS = 256, MMA_TENANTS = 2, FILTER_WORDS = 64, FLIGHT = 4 };

/* Of planes whose rows do not move, the stride has no meaning. */
static int64_t stride_of(const struct conv *c)
{
    return c->y.extent[3] == 1 || c->stride[1] == c->stride[2] ? c->stride[2] : 0;
}

const char *vn__fits_conv_shallow(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;

    (void)f;
    if (c->direction != FORWARD)
        return "it computes no gradients";
    if (c->w.extent[1] > MOST_CHANNELS)
        return "it is for at most 4 channels of a group";
    if (c->x.extent[2] != 1 || c->y.extent[2] != 1 || c->w.extent[2] != 1)
        return "it is for one and two dimensions";
    if (stride_of(c) != 1 && stride_of(c) != 2)
        return "it is for strides of 1 or 2";
    if (c->p.type == VN_F64)
        return "it is for f32 and 16-bit types";
    return vn__fits_elements(c);
}

/* Whether channels of the output are stored as vectors. */
static int stores_vectors(const struct conv *c)
{
    return vn__strips_channels_last(&c->y) && (c->y.extent[1] / c->groups) % VECTOR == 0;
}

void vn__constants_conv_shallow(int *constants, const void *problem)
{
    const struct conv *c = problem;

    constants[0] = (int)stride_of(c);
    constants[1] = stores_vectors(c);
}

/* Rows and columns of the source that so many outputs and all taps see. */
static int64_t seen(const struct conv *c, int d, int64_t outputs)
{
    return (outputs - 1) * stride_of(c) + (c->w.extent[2 + d] - 1) * c->dilation[d] + 1;
}

/* Tiles of `rows` by `columns` for `blocks` of channels of each group, shared by `tenants` work-groups of a
 * unit; returns tiles of a unit. */
static double cut_up(struct vn_plan *out, const struct conv *c, int rows, int columns, int64_t blocks,
                     int units, int tenants)
{
    blocks *= c->groups;
    out->v[DOWN]   = VN_CEIL_DIV(c->y.extent[3], rows);
    out->v[ACROSS] = VN_CEIL_DIV(c->y.extent[4], columns);
    out->v[TILES]  = c->y.extent[0] * out->v[DOWN] * out->v[ACROSS];
    out->v[GROUPS] = min_of(out->v[TILES], VN_CEIL_DIV((int64_t)units * tenants, blocks));
    return larger((double)(out->v[TILES] * blocks) / units, 1);
}

static int64_t taps_of(const struct conv *c)
{
    return c->w.extent[1] * c->w.extent[3] * c->w.extent[4];
}

/* Blocks of so many output channels, of one group. */
static int64_t blocks_of(const struct conv *c, int channels)
{
    return VN_CEIL_DIV(c->y.extent[1] / c->groups, channels);
}

const char *vn__plan_conv_shallow(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                  const struct vn_site *site)
{
    const struct conv *c = problem;
    const int *const p = row->p;
    const int64_t taps = taps_of(c), pitch = (p[LANES] + p[EXTRA]) * stride_of(c);
    double waves, flops, tile;

    out->seconds = -1;
    if ((size_t)(p[FILTERS] + p[WINDOW]) * sizeof(float) > (size_t)site->facts->local_bytes)
        return "this row takes more local memory than there is";
    if (taps * p[BLK_K] > p[FILTERS])
        return "its taps do not fit local memory";
    out->v[TOGETHER] = p[WINDOW] / (seen(c, 1, p[THR_H]) * pitch);
    if (seen(c, 2, p[LANES]) > pitch || out->v[TOGETHER] == 0)
        return "its window does not fit local memory";
    waves = cut_up(out, c, p[THR_H], p[LANES], blocks_of(c, p[BLK_K]), site->facts->units, TENANTS);
    flops = 2.0 * (double)(taps * p[BLK_K] * p[THR_H] * p[LANES]);
    tile  = flops / (row->cost[EFF] * 1e-3 * site->rates->fma32 * 1e9) + row->cost[TILE_NS] * 1e-9;
    out->seconds = row->cost[FIXED_NS] * 1e-9 +
                   larger(waves * tile, vn__move_seconds(c->p.bytes, 1000, site));
    return strcmp(site->facts->family, "cpu") ? NULL : "it is for GPUs, unless it is named";
}

vn_status vn__run_conv_shallow(vn_queue *q, const struct vn_choice *it, const void *problem,
                               const struct vn_plan *plan)
{
    const struct conv *c = problem;
    const int *const p = it->p;
    const int64_t *const v = plan->v;
    struct vn_launch l = { .groups = { v[GROUPS], blocks_of(c, p[BLK_K]), c->groups },
                           .items = p[LANES] * (p[BLK_K] / p[THR_K]) };

    vn__conv_arg_problem(&l, c);
    vn__arg_view(&l, (int64_t[8]){ v[TILES], v[ACROSS], v[DOWN], v[GROUPS], v[TOGETHER] });
    return vn__launch(q, it, 0, &l);
}

/* ---- conv_shallow_mma ---- */

static int64_t steps_of(const struct conv *c)
{
    return VN_CEIL_DIV(taps_of(c), STEP);
}

const char *vn__fits_conv_shallow_mma(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;
    const char *why = vn__fits_conv_shallow(problem, f);

    if (why || (why = vn__fits_conv_gather(c, f)))
        return why;
    return stores_vectors(c)
         ? NULL : "channels of the output must be contiguous, and a multiple of 8 in each group";
}

void vn__constants_conv_shallow_mma(int *constants, const void *problem)
{
    constants[0] = (int)stride_of(problem);
    constants[1] = (int)steps_of(problem);
    constants[2] = vn__conv_has_bias_of_channels(problem);
}

const char *vn__plan_conv_shallow_mma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                      const struct vn_site *site)
{
    const struct conv *c = problem;
    const int *const p = row->p;
    const int64_t pitch = (p[MMA_LANES] + p[MMA_EXTRA]) * stride_of(c), steps = steps_of(c);
    const int64_t rows = c->w.extent[1] * seen(c, 1, p[MMA_THR_H]);     /* of all windows */
    const int64_t copies = VN_CEIL_DIV(rows, FLIGHT * MMA_ITEMS / p[MMA_LANES]);
    double waves, tile;

    out->seconds = -1;
    if (steps > FILTER_WORDS / (p[BLK_K] / 4))
        return "its taps do not fit the registers";
    if (seen(c, 2, p[MMA_LANES]) > pitch || rows * pitch > p[MMA_WINDOW])
        return "its windows do not fit local memory";
    waves = cut_up(out, c, p[MMA_THR_H], p[MMA_LANES], blocks_of(c, p[BLK_K]), site->facts->units,
                   MMA_TENANTS);
    tile = row->cost[MMA_TILE_NS] + (double)steps * row->cost[STEP_NS] + (double)copies * row->cost[COPY_NS];
    out->seconds = (row->cost[MMA_FIXED_NS] + (double)steps * row->cost[FILTER_NS]) * 1e-9 +
                   larger(waves * tile * 1e-9, vn__move_seconds(c->p.bytes, 1000, site));
    return NULL;
}

vn_status vn__run_conv_shallow_mma(vn_queue *q, const struct vn_choice *it, const void *problem,
                                   const struct vn_plan *plan)
{
    const struct conv *c = problem;
    const int64_t *const v = plan->v;
    struct vn_launch l = { .groups = { v[GROUPS], blocks_of(c, it->p[BLK_K]), c->groups },
                           .items = MMA_ITEMS };

    vn__conv_arg_problem(&l, c);
    vn__arg_view(&l, (int64_t[8]){ v[TILES], v[ACROSS], v[DOWN], v[GROUPS] });
    return vn__launch(q, it, 0, &l);
}
