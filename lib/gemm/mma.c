/* SPDX-License-Identifier: Apache-2.0
 *
 * mma.c - the variant gemm_mma: the matrix engine of NVIDIA's sm_80 and up, out of registers.
 */
#include "gemm.h"

enum { BLK_M, BLK_N, BLK_K, WARP_M, WARP_N };   /* those of its parameters that a launch goes by */
enum { ODD = VN_TILE_COSTS };                   /* its cost column after the tiles' */

const char *vn__fits_mma(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;
    const char *why;

    if (vn__sm(f) < 80)
        return "it needs an NVIDIA GPU of sm_80 or above, for its matrix engine";
    if (g->head.type == VN_F32 && g->math != VN_MATH_TF32)
        return "its engine rounds f32 to tf32, which VN_MATH_TF32 alone allows";
    return (why = vn__fits_order(g)) ? why : vn__fits_half_sizes(g);
}

void vn__constants_mma(int *c, const void *problem)
{
    c[0] = vn__is_mn_major_a(problem);
    c[1] = vn__is_mn_major_b(problem);
}

static int items_of(const int *p)
{
    return 32 * (p[BLK_M] / p[WARP_M]) * (p[BLK_N] / p[WARP_N]);
}

/* An operand that is not read in 16-byte vectors is read in smaller ones, ODD thousandths as fast. */
static double odd_of(const vn_tensor *t, const struct vn_row *row)
{
    const int rows = t->rank - 2, cols = t->rank - 1, k_major = t->stride[cols] == 1;

    return vn__fits_tma(t, t->stride[k_major ? cols : rows], t->stride[k_major ? rows : cols]) ? 1
         : row->cost[ODD] / 1000.0;
}

const char *vn__plan_mma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                         const struct vn_site *site)
{
    const struct gemm *g = problem;
    const int *p = row->p;

    out->seconds = vn__gemm_seconds(g, p[BLK_M], p[BLK_N], VN_CEIL_DIV(g->k, p[BLK_K]) * p[BLK_K],
                                    (double)g->batches,
                                    vn__mma_peak(g, site) * odd_of(&g->a, row) * odd_of(&g->b, row),
                                    vn__resident(items_of(p)), row, site);
    return NULL;
}

vn_status vn__run_mma(vn_queue *q, const struct vn_choice *it, const void *problem,
                      const struct vn_plan *plan)
{
    const int *p = it->p;

    (void)plan;
    return vn__gemm_launch_tiles(q, it, problem, p[BLK_M], p[BLK_N], items_of(p));
}
