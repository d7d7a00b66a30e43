/* SPDX-License-Identifier: Apache-2.0
 *
 * matrix.c - the variants gemm_mfma, gemm_wmma, gemm_dpas: matrix engines of AMD and Intel.
 *
 * A row of parameters names the engine; whether the device has it is found by trying: the row
 * is used if its kernel builds and a small product comes out exactly.
 */
#include "gemm.h"

enum { BLK_M, BLK_N, BLK_K, WAVE_M, WAVE_N, ENGINE, LANES };    /* their parameters */

static const char *fits(const struct gemm *g, unsigned types)
{
    const char *why;

    if (!(types & 1u << g->head.type))
        return "the matrix engine does not multiply this type";
    if (g->k == 0)
        return "there is nothing to multiply";
    return (why = vn__fits_order(g)) ? why : vn__fits_sizes(g);
}

const char *vn__fits_matrix_mfma(const void *problem, const struct vn_facts *f)
{
    const unsigned types = vn__matrix_types(f, "MFMA");

    return types ? fits(problem, types) : "it needs an AMD GPU of CDNA, for MFMA";
}

const char *vn__fits_matrix_wmma(const void *problem, const struct vn_facts *f)
{
    const unsigned types = vn__matrix_types(f, "WMMA");

    return types ? fits(problem, types) : "it needs an AMD GPU of RDNA 3 or 4, for WMMA";
}

const char *vn__fits_matrix_dpas(const void *problem, const struct vn_facts *f)
{
    const unsigned types = vn__matrix_types(f, "DPAS");

    return types ? fits(problem, types) : "it needs a GPU of Intel's, for dpas";
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

#define HOOKS(engine)                                                                                        \
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
HOOKS(mfma)
HOOKS(wmma)
HOOKS(dpas)
