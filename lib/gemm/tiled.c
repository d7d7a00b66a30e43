/* SPDX-License-Identifier: Apache-2.0
 *
 * tiled.c - the variant gemm: any device, any type, any strides.
 */
#include "gemm.h"

enum { BLK_M, BLK_N, BLK_K, THR_M, THR_N };     /* its parameters */
enum { MN_A = VN_TILE_COSTS, MN_B };            /* its cost columns after the tiles': thousandths of EFF where
                                                   A is M-major, B is N-major */

const char *vn__fits_tiled(const void *problem, const struct vn_facts *f)
{
    (void)f;
    return vn__fits_sizes(problem);
}

static int items_of(const int *p)
{
    return p[BLK_M] / p[THR_M] * (p[BLK_N] / p[THR_N]);
}

const char *vn__plan_tiled(struct vn_plan *out, const void *problem, const struct vn_row *row,
                           const struct vn_site *site)
{
    const struct gemm *g = problem;
    const int *p = row->p;
    const double a = vn__is_mn_major_a(g) ? row->cost[MN_A] / 1000.0 : 1;
    const double b = vn__is_mn_major_b(g) ? row->cost[MN_B] / 1000.0 : 1;

    out->seconds = vn__gemm_seconds(g, p[BLK_M], p[BLK_N], VN_CEIL_DIV(g->k, p[BLK_K]) * p[BLK_K],
                                    (double)g->batches, vn__fma_peak(g, site) * a * b,
                                    vn__resident(items_of(p)), row, site);
    return NULL;
}

vn_status vn__run_tiled(vn_queue *q, const struct vn_choice *it, const void *problem,
                        const struct vn_plan *plan)
{
    const int *p = it->p;

    (void)plan;
    return vn__gemm_launch_tiles(q, it, problem, p[BLK_M], p[BLK_N], items_of(p));
}
