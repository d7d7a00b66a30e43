/* SPDX-License-Identifier: Apache-2.0
 *
 * mma_filter.c - the variant conv_mma_filter: the gradient of a filter in 16-bit types, in groups or not, by
 * the matrix engine of NVIDIA's sm_80 and up.
 *
 * A gradient has few tiles and sums over many pixels, which are divided into parts.
 */
#include <limits.h>

#include "filter.h"
#include "gemm/gemm.h"
#include "repack.h"

enum { BLK_M, BLK_N, BLK_K };                   /* of its parameters */
enum { EFF, L2, FIXED_NS, TILE_NS, UNGROUPED }; /* and costs */
enum { PARTS, SPAN };                           /* of a plan; SPAN: slices of a part */
enum { MULTIPLY, ADD };                         /* its kernels */
enum { VECTOR = 8, BYTES = 2 };                 /* elements of a vector; of an element */

/* Columns of a filter: channels of each tap in whole vectors. */
static int64_t columns_of(const struct conv *c)
{
    return vn__conv_taps(c) * VN_CEIL_DIV(c->w.extent[1], VECTOR) * VECTOR;
}

static int64_t filters_of(const struct conv *c) { return c->w.extent[0] / c->groups; }

const char *vn__fits_conv_mma_filter(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;
    const char *why;

    if (c->direction != BACKWARD_FILTER)
        return "it is for the gradient of the filter";
    if ((why = vn__fits_conv_gather(c, f)))
        return why;
    if (vn__conv_pixels(&c->y) > VN_CONV_MOST / 2 || vn__conv_rows(c) > VN_CONV_MOST / 2 / VECTOR)
        return "its pixels and columns must stay below 2^30";
    if (c->groups > 1 && (c->w.extent[1] % VECTOR || filters_of(c) % VECTOR))
        return "channels and filters of a group must be multiples of 8";
    return vn__conv_is_rows(&c->x) && vn__conv_is_rows(&c->y)
         ? NULL : "channels must be contiguous, and begin at multiples of 16 bytes: NHWC";
}

void vn__constants_conv_mma_filter(int *out, const void *problem)
{
    out[0] = vn__im2col_rank(problem);
}

/* NULL, or why there are too many. */
static const char *tiles_of(struct filter_cut *out, const struct conv *c, const int *p)
{
    const int64_t across = VN_CEIL_DIV(columns_of(c), p[BLK_N]);

    *out = (struct filter_cut){ .elements = (int64_t)p[BLK_M] * p[BLK_N], .parts = 1, .resident = 2,
                                .slices = VN_CEIL_DIV(vn__conv_pixels(&c->y), p[BLK_K]) };
    return vn__mul(&out->tiles, VN_CEIL_DIV(filters_of(c), p[BLK_M]), across) &&
           vn__mul(&out->tiles, out->tiles, c->groups) && out->tiles < INT_MAX / 4 / out->elements
         ? NULL : "dW must stay below 2^29 elements";
}

const char *vn__plan_conv_mma_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                     const struct vn_site *site)
{
    const struct conv *c = problem;
    const int *const p = row->p, *const cost = row->cost;
    const double bytes = BYTES * ((double)vn__elements(&c->x) + (double)vn__elements(&c->y));
    const double flops = 2.0 * p[BLK_M] * p[BLK_N] * p[BLK_K];
    const double load = (double)site->facts->units * (p[BLK_M] + p[BLK_N]) * p[BLK_K] * BYTES;
    struct filter_cut cut;
    double multiply, read, seconds;
    const char *why = tiles_of(&cut, c, p);

    if (!why && (cost[EFF] <= 0 || cost[L2] <= 0 || cost[UNGROUPED] <= 0))
        why = "its row has no costs";
    if (!why) {
        multiply = flops / (site->rates->mma16 * 1e6 * cost[EFF]);
        read = load / (site->rates->l2_gbps * 1e6 * cost[L2]);
        why = vn__filter_share(&cut, &seconds, 1, multiply > read ? multiply : read, cost[TILE_NS] * 1e-9,
                               site);
    }
    if (why) {
        out->seconds = -1;
        return why;
    }
    out->v[SPAN] = VN_CEIL_DIV(cut.slices, cut.parts);
    out->v[PARTS] = VN_CEIL_DIV(cut.slices, out->v[SPAN]);
    out->workspace = (size_t)(out->v[PARTS] * c->w.extent[0] * columns_of(c)) * sizeof(float);
    out->seconds = cost[FIXED_NS] * 1e-9 + vn__together(seconds, bytes / (site->rates->gbps * 1e9));
    if (c->groups == 1)
        out->seconds *= 1000.0 / cost[UNGROUPED];
    return NULL;
}

vn_status vn__run_conv_mma_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                  const struct vn_plan *plan)
{
    const struct conv *c = problem;
    struct vn_launch l = { .items = vn__mma_items(it->p) };
    struct filter_cut cut;
    vn_buffer *sums;
    vn_status s = vn__workspace(&sums, q, plan->workspace);

    if (s)
        return s;
    tiles_of(&cut, c, it->p);
    l.groups[0] = cut.tiles * plan->v[PARTS];
    l.groups[1] = l.groups[2] = 1;
    vn__conv_arg_inputs(&l, c);
    vn__conv_arg_shape(&l, c);
    vn__arg_int(&l, plan->v[SPAN]);
    vn__arg_buffer(&l, sums);
    return (s = vn__launch(q, it, MULTIPLY, &l)) ? s : vn__filter_columns_sum(q, it, ADD, c, columns_of(c),
                                                                            plan->v[PARTS], sums);
}
