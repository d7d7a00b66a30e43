/* SPDX-License-Identifier: Apache-2.0
 *
 * mma.c - the variant gemm_mma: matrix engines of NVIDIA's sm_80 and up.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "gemm.h"

enum { BLK_M, BLK_N, BLK_K, WARP_M, WARP_N };   /* those of its parameters that a launch goes by */

static int arch_of(const struct vn_facts *f)
{
    return !strcmp(f->family, "nvidia") && !strncmp(f->arch, "sm_", 3) ? atoi(f->arch + 3) : 0;
}

/* A matrix whose numbers run along neither dimension is taken as if along K, in small pieces. */
static int runs_across(int64_t along_k, int64_t along_x)
{
    return along_x == 1 && along_k != 1;
}

static const char *fits(const struct gemm *g, const struct vn_facts *f, int across_a, int across_b)
{
    if (arch_of(f) < 80)
        return "it needs an NVIDIA GPU of sm_80 or above, for its matrix engine";
    if (g->head.type == VN_F32 && g->math != VN_MATH_TF32)
        return "its engine rounds f32 to tf32, which VN_MATH_TF32 alone allows";
    if (g->math == VN_MATH_BITWISE)
        return "it sums in another order than VN_MATH_BITWISE promises";
    if (g->m > INT_MAX / 2 || g->n > INT_MAX / 2 || g->k > INT_MAX / 2 || g->batches > INT_MAX / 2)
        return "M, N, K and the batches must stay below 2^30";
    if (runs_across(vn__col(&g->a), vn__row(&g->a)) != across_a)
        return "A's lines need to lie the other way";
    if (runs_across(vn__row(&g->b), vn__col(&g->b)) != across_b)
        return "B's lines need to lie the other way";
    return NULL;
}

/* As of gemm_wgmma.c: A's lines run across K when it is transposed, B's when it is not. */
const char *vn__fits_mma_nn(const void *problem, const struct vn_facts *f) { return fits(problem, f, 0, 1); }
const char *vn__fits_mma_nt(const void *problem, const struct vn_facts *f) { return fits(problem, f, 0, 0); }
const char *vn__fits_mma_tn(const void *problem, const struct vn_facts *f) { return fits(problem, f, 1, 1); }
const char *vn__fits_mma_tt(const void *problem, const struct vn_facts *f) { return fits(problem, f, 1, 0); }

/* Graphics cards have the instruction for f64, but no engine that would make it worth while. */
const char *vn__pays_mma(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;
    const int arch = arch_of(f);

    return g->head.type == VN_F64 && arch != 80 && arch != 90 && arch != 100
         ? "the device multiplies f64 no faster on its matrix engine" : NULL;
}

vn_status vn__run_mma(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct gemm *g = problem;
    const int *p = it->p;
    struct vn_launch l = { .groups = { 1, 1, 1 },
                           .items = 32 * (p[BLK_M] / p[WARP_M]) * (p[BLK_N] / p[WARP_N]) };
    const int64_t tiles = VN_CEIL_DIV(g->m, p[BLK_M]) * VN_CEIL_DIV(g->n, p[BLK_N]);

    if (!vn__mul(&l.groups[0], tiles, g->batches) || l.groups[0] > INT_MAX)
        return vn__fail(VN_UNSUPPORTED, "C has %lld tiles of %d x %d; a launch holds %d", (long long)tiles,
                        p[BLK_M], p[BLK_N], INT_MAX);
    vn__arg_int(&l, g->m);
    vn__arg_int(&l, g->n);
    vn__arg_int(&l, g->k);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__gemm_inputs(&l, g);
    vn__gemm_output(&l, g);
    return vn__launch(q, it, 0, &l);
}
