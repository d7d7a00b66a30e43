/* SPDX-License-Identifier: Apache-2.0
 *
 * matrix.c - the variants gemm_mfma, gemm_wmma, gemm_dpas: matrix engines of AMD and Intel.
 *
 * A row of parameters names the engine; whether the device has it is found by trying: the row
 * is used if its kernel builds and a small product comes out exactly.
 */
#include "gemm.h"

enum { BLK_M, BLK_N, BLK_K, WAVE_M, WAVE_N, ENGINE, LANES };    /* their parameters */

static const char *fits(const struct gemm *g)
{
    const char *why;

    if (g->k == 0)
        return "there is nothing to multiply";
    return (why = vn__fits_order(g)) ? why : vn__fits_sizes(g);
}

static int items_of(const int *p)
{
    return p[BLK_M] / p[WAVE_M] * (p[BLK_N] / p[WAVE_N]) * p[LANES];
}

static const char *plan_matrix(struct vn_plan *out, const struct gemm *g, const struct vn_row *row,
                               const struct vn_site *site)
{
    const int *p = row->p;

    out->seconds = vn__gemm_seconds(g, p[BLK_M], p[BLK_N], VN_CEIL_DIV(g->k, p[BLK_K]) * p[BLK_K],
                                    (double)g->batches, vn__mma_peak(g, site), vn__resident(items_of(p)),
                                    row, site);
    return NULL;
}

static vn_status run_matrix(vn_queue *q, const struct vn_choice *it, const struct gemm *g)
{
    const int *p = it->p;

    return vn__gemm_launch_tiles(q, it, g, p[BLK_M], p[BLK_N], items_of(p));
}

#define HOOKS(engine, name)                                                                                  \
    const char *vn__fits_matrix_##engine(const void *problem, const struct vn_facts *f)                      \
    {                                                                                                        \
        const char *const why = vn__lacks_engine(f, name, ((const struct gemm *)problem)->head.type);        \
                                                                                                             \
        return why ? why : fits(problem);                                                                    \
    }                                                                                                        \
    const char *vn__plan_matrix_##engine(struct vn_plan *out, const void *problem, const struct vn_row *row, \
                                         const struct vn_site *site)                                         \
    {                                                                                                        \
        return plan_matrix(out, problem, row, site);                                                         \
    }                                                                                                        \
    vn_status vn__run_matrix_##engine(vn_queue *q, const struct vn_choice *it, const void *problem,          \
                                      const struct vn_plan *plan)                                            \
    {                                                                                                        \
        (void)plan;                                                                                          \
        return run_matrix(q, it, problem);                                                                   \
    }
HOOKS(mfma, "MFMA")
HOOKS(wmma, "WMMA")
HOOKS(dpas, "DPAS")
