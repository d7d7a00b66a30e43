/* SPDX-License-Identifier: Apache-2.0
 *
 * batched.c - the variants gemm_batched and gemm_batched_fma: many small matrices of 16-bit types and f32,
 * on NVIDIA's sm_80 and up.
 */
#include <limits.h>

#include "gemm.h"

enum { BLK_M, BLK_N, BLK_K, PART_M, PART_N, STAGES, GROUPS, PARTS_K };     /* their parameters; the last is
                                                                   of gemm_batched_fma */
enum { C = VN_TILE_COSTS, HALF_C };     /* their cost columns after the tiles'; C: thousandths of its bytes
                                           more that any C takes to be stored; HALF_C: of gemm_batched */
enum { TILES, ALL_GROUPS };     /* values of a plan */

static int fits_vectors(const vn_tensor *t)
{
    return vn__fits_tma(t, vn__col(t), vn__row(t)) || vn__fits_tma(t, vn__row(t), vn__col(t));
}

static const char *fits(const struct gemm *g, const struct vn_facts *f, int is_type, const char *type)
{
    const char *why;

    if (vn__sm(f) < 80)
        return "it needs an NVIDIA GPU of sm_80 or above";
    if (!is_type)
        return type;
    if (g->k == 0)
        return "there is nothing to multiply";
    if ((why = vn__fits_order(g)) || (why = vn__fits_half_sizes(g)))
        return why;
    return fits_vectors(&g->a) && fits_vectors(&g->b) ? NULL
         : "A and B must be contiguous along a dimension, with 16-byte aligned rows and at most one batch "
           "dimension";
}

const char *vn__fits_batched(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    return fits(g, f, vn_type_bytes(g->head.type) == 2, "it needs f16 or bf16");
}

const char *vn__fits_batched_fma(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    return fits(g, f, g->head.type == VN_F32, "it needs f32");
}

/* An operand that is contiguous either way is read as K-major. */
void vn__constants_batched(int *c, const void *problem)
{
    const struct gemm *g = problem;

    c[0] = !vn__fits_tma(&g->a, vn__col(&g->a), vn__row(&g->a));
    c[1] = !vn__fits_tma(&g->b, vn__row(&g->b), vn__col(&g->b));
}

/* The third and fourth parameters are a warp's tile, or a work-item's. */
static int items_of(const int *p, int warp)
{
    return warp * (p[BLK_M] / p[PART_M]) * (p[BLK_N] / p[PART_N]);
}

/* A matrix of a batch is found without divisions. */
static const char *plan_of(struct vn_plan *out, const struct gemm *g, double peak, const struct vn_row *row,
                           const struct vn_site *site)
{
    const int *p = row->p;
    const int64_t matrix = VN_CEIL_DIV(g->m, p[BLK_M]) * VN_CEIL_DIV(g->n, p[BLK_N]);
    const int64_t groups = (int64_t)site->facts->units * p[GROUPS];
    const double c = (double)g->m * (double)g->n * (double)g->batches * (double)vn_type_bytes(g->head.type);
    const struct vn_tiles t = {
        .tiles = (double)matrix * (double)g->batches,
        .flops = 2.0 * p[BLK_M] * p[BLK_N] * (double)(VN_CEIL_DIV(g->k, p[BLK_K]) * p[BLK_K]),
        .bytes = vn__tiles_bytes(g, row) + c * row->cost[C] / 1000 + vn__half_c_bytes(g, row->cost[HALF_C]),
        .peak = peak, .resident = p[GROUPS] };

    if (!vn__mul(&out->v[TILES], matrix, g->batches) || out->v[TILES] > INT_MAX / 2) {
        out->seconds = -1;
        return "C has more than 2^30 tiles";
    }
    out->v[ALL_GROUPS] = groups < out->v[TILES] ? groups : out->v[TILES];
    out->seconds = vn__tiles_seconds(&t, row, site);
    return NULL;
}

const char *vn__plan_batched(struct vn_plan *out, const void *problem, const struct vn_row *row,
                             const struct vn_site *site)
{
    return plan_of(out, problem, site->rates->mma16, row, site);
}

const char *vn__plan_batched_fma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                 const struct vn_site *site)
{
    return plan_of(out, problem, site->rates->fma32, row, site);
}

static vn_status run(vn_queue *q, const struct vn_choice *it, const struct gemm *g,
                     const struct vn_plan *plan, int items)
{
    struct vn_launch l = { .groups = { plan->v[ALL_GROUPS], 1, 1 }, .items = items };

    vn__gemm_sizes(&l, g);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__arg_int(&l, plan->v[ALL_GROUPS]);
    vn__arg_int(&l, plan->v[TILES]);
    vn__gemm_inputs(&l, g);
    vn__gemm_output(&l, g);
    return vn__launch(q, it, 0, &l);
}

vn_status vn__run_batched(vn_queue *q, const struct vn_choice *it, const void *problem,
                          const struct vn_plan *plan)
{
    return run(q, it, problem, plan, items_of(it->p, 32));
}

vn_status vn__run_batched_fma(vn_queue *q, const struct vn_choice *it, const void *problem,
                              const struct vn_plan *plan)
{
    return run(q, it, problem, plan, items_of(it->p, it->p[PARTS_K]));
}
