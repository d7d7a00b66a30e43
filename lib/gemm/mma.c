/* SPDX-License-Identifier: Apache-2.0
 *
 * mma.c - the variant gemm_mma: the matrix engine of NVIDIA's sm_80 and up, out of registers.
 */
#include "gemm.h"

enum { BLK_M, BLK_N, BLK_K, WARP_M, WARP_N };   /* those of its parameters that a launch goes by */
enum { ODD = VN_TILE_COSTS, EDGE };             /* its cost columns after the tiles' */

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

int vn__mma_items(const int *p)
{
    return 32 * (p[BLK_M] / p[WARP_M]) * (p[BLK_N] / p[WARP_N]);
}

static int is_odd(const vn_tensor *t)
{
    const int rows = t->rank - 2, cols = t->rank - 1, k_major = t->stride[cols] == 1;

    return !vn__fits_tma(t, t->stride[k_major ? cols : rows], t->stride[k_major ? rows : cols]);
}

/* Blocks along a dimension that are all inside; of the larger types, the last one is moved there if most
 * of it is, as in the kernel.                                                                           */
static int64_t inside(int64_t extent, int block, const struct gemm *g)
{
    const int64_t whole = extent / block, rest = extent - whole * block;

    return whole + (vn_type_bytes(g->head.type) > 2 && whole > 0 && rest > block / 2);
}

/* A tile that is not all inside C is made at EDGE thousandths of EFF, for its copies ask for each vector
 * whether it is inside.  So are all tiles where an operand is not read in 16-byte vectors, and for each
 * such operand at ODD thousandths of that.                                                             */
static void add_tiles(struct vn_tiles *t, const struct gemm *g, const struct vn_row *row)
{
    const int *p = row->p, odd = is_odd(&g->a) + is_odd(&g->b);
    const double flops = 2.0 * p[BLK_M] * p[BLK_N] * (double)(VN_CEIL_DIV(g->k, p[BLK_K]) * p[BLK_K]);
    const double all = (double)VN_CEIL_DIV(g->m, p[BLK_M]) * (double)VN_CEIL_DIV(g->n, p[BLK_N]);
    const double whole = odd ? 0 : (double)inside(g->m, p[BLK_M], g) * (double)inside(g->n, p[BLK_N], g);
    const double slow = 1000.0 / row->cost[ODD];
    const double edge = flops * 1000 / row->cost[EDGE] * (odd > 0 ? slow : 1) * (odd > 1 ? slow : 1);

    t->tiles   = all * (double)g->batches;
    t->longest = all > whole ? edge : flops;
    t->flops   = (whole * flops + (all - whole) * edge) / all;
}

const char *vn__plan_mma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                         const struct vn_site *site)
{
    const struct gemm *g = problem;
    struct vn_tiles t = { .bytes = vn__tiles_bytes(g, row), .peak = vn__mma_peak(g, site),
                          .start = vn__batch_seconds(g, site),
                          .resident = vn__resident(vn__mma_items(row->p)) };

    if (row->cost[ODD] > 0 && row->cost[EDGE] > 0) {
        add_tiles(&t, g, row);
        out->seconds = vn__tiles_seconds(&t, row, site);
    }
    return NULL;
}

vn_status vn__run_mma(vn_queue *q, const struct vn_choice *it, const void *problem,
                      const struct vn_plan *plan)
{
    const int *p = it->p;

    (void)plan;
    return vn__gemm_launch_tiles(q, it, problem, p[BLK_M], p[BLK_N], vn__mma_items(p));
}
