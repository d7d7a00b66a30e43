/* SPDX-License-Identifier: Apache-2.0
 *
 * shallow.c - the variant conv_shallow: images of few channels, forward, by multiply-adds on GPUs.
 */
#include <string.h>

#include "gemm/gemm.h"
#include "strips.h"

enum { BLK_K, THR_K, THR_H, LANES, EXTRA, FILTERS, WINDOW };    /* its parameters */
enum { EFF, FIXED_NS, TILE_NS };       /* its costs */
enum { TILES, ACROSS, DOWN, GROUPS, TOGETHER }; /* the plan's numbers */
enum { MOST_CHANNELS = 4, VECTOR = 8 };         /* of the source; channels that are stored at once */
enum { TENANTS = 4 };                           /* work-groups of a compute unit: each takes several tiles */

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

void vn__constants_conv_shallow(int *constants, const void *problem)
{
    const struct conv *c = problem;

    constants[0] = (int)stride_of(c);
    constants[1] = vn__strips_channels_last(&c->y) && (c->y.extent[1] / c->groups) % VECTOR == 0;
}

/* Rows and columns of the source that so many outputs and all taps see. */
static int64_t seen(const struct conv *c, int d, int64_t outputs)
{
    return (outputs - 1) * stride_of(c) + (c->w.extent[2 + d] - 1) * c->dilation[d] + 1;
}

static int64_t tiles_of(int64_t *down, int64_t *across, const struct conv *c, const int *p)
{
    *down   = VN_CEIL_DIV(c->y.extent[3], p[THR_H]);
    *across = VN_CEIL_DIV(c->y.extent[4], p[LANES]);
    return c->y.extent[0] * *down * *across;
}

const char *vn__plan_conv_shallow(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                  const struct vn_site *site)
{
    const struct conv *c = problem;
    const int *const p = row->p;
    const int64_t taps = c->w.extent[1] * c->w.extent[3] * c->w.extent[4];
    const int64_t pitch = (p[LANES] + p[EXTRA]) * stride_of(c), units = site->facts->units;
    const int64_t blocks = c->groups * VN_CEIL_DIV(c->y.extent[1] / c->groups, p[BLK_K]);
    double waves, flops, tile;

    out->seconds = -1;
    if ((size_t)(p[FILTERS] + p[WINDOW]) * sizeof(float) > (size_t)site->facts->local_bytes)
        return "this row takes more local memory than there is";
    if (taps * p[BLK_K] > p[FILTERS])
        return "its taps do not fit local memory";
    out->v[TOGETHER] = p[WINDOW] / (seen(c, 1, p[THR_H]) * pitch);
    if (seen(c, 2, p[LANES]) > pitch || out->v[TOGETHER] == 0)
        return "its window does not fit local memory";
    out->v[TILES]  = tiles_of(&out->v[DOWN], &out->v[ACROSS], c, p);
    out->v[GROUPS] = min_of(out->v[TILES], VN_CEIL_DIV(units * TENANTS, blocks));
    waves = (double)(out->v[TILES] * blocks) / (double)units;
    flops = 2.0 * (double)(taps * p[BLK_K] * p[THR_H] * p[LANES]);
    tile  = flops / (row->cost[EFF] * 1e-3 * site->rates->fma32 * 1e9) + row->cost[TILE_NS] * 1e-9;
    out->seconds = row->cost[FIXED_NS] * 1e-9 +
                   larger(larger(waves, 1) * tile, vn__move_seconds(c->p.bytes, 1000, site));
    return strcmp(site->facts->family, "cpu") ? NULL : "it is for GPUs, unless it is named";
}

vn_status vn__run_conv_shallow(vn_queue *q, const struct vn_choice *it, const void *problem,
                               const struct vn_plan *plan)
{
    const struct conv *c = problem;
    const int *const p = it->p;
    const int64_t *const v = plan->v;
    struct vn_launch l = { .groups = { v[GROUPS], VN_CEIL_DIV(c->y.extent[1] / c->groups, p[BLK_K]),
                                       c->groups },
                           .items = p[LANES] * (p[BLK_K] / p[THR_K]) };

    vn__conv_arg_problem(&l, c);
    vn__arg_view(&l, (int64_t[8]){ v[TILES], v[ACROSS], v[DOWN], v[GROUPS], v[TOGETHER] });
    return vn__launch(q, it, 0, &l);
}
