/* SPDX-License-Identifier: Apache-2.0
 *
 * matrix.c - the variants gemm_mfma, gemm_wmma, gemm_dpas: matrix engines of AMD and Intel.
 *
 * A row of parameters names the engine; whether the device has it is found by trying: the variant
 * is used if its kernel builds and a small product comes out exactly.
 */
#include <limits.h>
#include <string.h>

#include "gemm.h"

enum { BLK_M, BLK_N, BLK_K, WAVE_M, WAVE_N, ENGINE, LANES };    /* their parameters */
enum { MOST = INT_MAX - 4096 };     /* past this an int in the kernel could overflow */

static const char *fits(const struct gemm *g, const struct vn_facts *f, const char *family, unsigned types)
{
    if (strcmp(f->family, family))
        return "the device is of another maker than the matrix engine";
    if (!(types & 1u << g->head.type))
        return "the matrix engine does not multiply this type";
    if (g->math == VN_MATH_BITWISE)
        return "it sums in another order than VN_MATH_BITWISE promises";
    if (g->k == 0)
        return "there is nothing to multiply";
    if (g->m > MOST || g->n > MOST || g->k > MOST || g->batches > MOST)
        return "M, N, K and the batches must stay below 2^31";
    return NULL;
}

enum { HALVES = 1u << VN_F16 | 1u << VN_BF16, CDNA1 = HALVES | 1u << VN_F32, CDNA = CDNA1 | 1u << VN_F64 };

/* The engines of architectures differ, and some compilers die of an instruction that is not there. */
static unsigned types_of(const struct vn_facts *f, const char *const prefixes[], unsigned types)
{
    for (; *prefixes; prefixes++)
        if (!strncmp(f->arch, *prefixes, strlen(*prefixes)))
            return types;
    return 0;
}

const char *vn__fits_mfma(const void *problem, const struct vn_facts *f)
{
    const unsigned types = types_of(f, (const char *const []){ "gfx90a", "gfx94", NULL }, CDNA) |
                           types_of(f, (const char *const []){ "gfx908", NULL }, CDNA1);

    return types ? fits(problem, f, "amd", types) : "it needs an AMD GPU of CDNA, for MFMA";
}

const char *vn__fits_wmma(const void *problem, const struct vn_facts *f)
{
    const unsigned types = types_of(f, (const char *const []){ "gfx11", "gfx120", NULL }, HALVES);

    return types ? fits(problem, f, "amd", types) : "it needs an AMD GPU of RDNA 3 or 4, for WMMA";
}

const char *vn__fits_dpas(const void *problem, const struct vn_facts *f)
{
    return fits(problem, f, "intel", HALVES);
}

const char *vn__pays_matrix(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    (void)f;
    return g->m < 16 || g->n < 16 || g->k < 16 ? "M, N or K is below 16: most of a tile would be idle" : NULL;
}

vn_status vn__run_matrix(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct gemm *g = problem;
    const int *p = it->p;
    const int waves = p[BLK_M] / p[WAVE_M] * (p[BLK_N] / p[WAVE_N]);
    struct vn_launch l = { .groups = { 1, 1, 1 }, .items = waves * p[LANES] };
    const int64_t tiles = VN_CEIL_DIV(g->m, p[BLK_M]) * VN_CEIL_DIV(g->n, p[BLK_N]);

    if (!vn__mul(&l.groups[0], tiles, g->batches) || l.groups[0] > INT_MAX)
        return vn__fail(VN_UNSUPPORTED, "C has %lld tiles of %d x %d; a launch holds %d", (long long)tiles,
                        p[BLK_M], p[BLK_N], INT_MAX);
    vn__gemm_sizes(&l, g);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__gemm_inputs(&l, g);
    vn__gemm_output(&l, g);
    return vn__launch(q, it, 0, &l);
}
