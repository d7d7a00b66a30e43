/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_wgmma.c - the variant gemm_wgmma: 16-bit types on NVIDIA's sm_90.
 */
#include <limits.h>
#include <string.h>

#include "gemm.h"

enum { BLK_N, STAGES, WARPGROUPS };             /* its parameters */
enum { LINE = 8, MAPS_BYTES = 256 };            /* 8 numbers are 16 bytes: the step of the copy engine */

/* The copy engine takes lines of consecutive numbers whose steps are multiples of 16 bytes. */
static int can_copy(const vn_tensor *t, int64_t along, int64_t across)
{
    return along == 1 && across % LINE == 0 && across > 0 && t->start % LINE == 0 &&
           (t->rank == 2 || (t->rank == 3 && t->stride[0] % LINE == 0));
}

static const char *fits(const struct gemm *g, const struct vn_facts *f, int across_a, int across_b)
{
    const int64_t a_row = vn__row(&g->a), a_col = vn__col(&g->a), b_row = vn__row(&g->b), b_col = vn__col(&g->b);

    if (strcmp(f->family, "nvidia") || strcmp(f->arch, "sm_90"))
        return "it needs an NVIDIA GPU of sm_90, for wgmma";
    if (g->head.type != VN_F16 && g->head.type != VN_BF16)
        return "it needs f16 or bf16";
    if (g->math == VN_MATH_BITWISE)
        return "it sums in another order than VN_MATH_BITWISE promises";
    if (g->k == 0)
        return "there is nothing to multiply";
    if (g->m > INT_MAX / 2 || g->n > INT_MAX / 2 || g->k > INT_MAX / 2 || g->batches > INT_MAX / 2)
        return "M, N, K and the batches must stay below 2^30";
    if (!(across_a ? can_copy(&g->a, a_row, a_col) : can_copy(&g->a, a_col, a_row)))
        return "A's lines need to lie the other way, or to begin at multiples of 16 bytes, in at most one batch dimension";
    if (!(across_b ? can_copy(&g->b, b_col, b_row) : can_copy(&g->b, b_row, b_col)))
        return "B's lines need to lie the other way, or to begin at multiples of 16 bytes, in at most one batch dimension";
    return NULL;
}

/* A is M x K: its lines run across K when it is transposed; B is K x N: when it is not. */
const char *vn__fits_wgmma_nn(const void *problem, const struct vn_facts *f) { return fits(problem, f, 0, 1); }
const char *vn__fits_wgmma_nt(const void *problem, const struct vn_facts *f) { return fits(problem, f, 0, 0); }
const char *vn__fits_wgmma_tn(const void *problem, const struct vn_facts *f) { return fits(problem, f, 1, 1); }
const char *vn__fits_wgmma_tt(const void *problem, const struct vn_facts *f) { return fits(problem, f, 1, 0); }

const char *vn__pays_wgmma(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    (void)f;
    return g->m < 64 || g->n < 64 || g->k < 64 ? "M, N or K is below 64: most of its tile would be idle" : NULL;
}

size_t vn__workspace_wgmma(const void *problem, const int *p)
{
    (void)problem;
    (void)p;
    return MAPS_BYTES;
}

static vn_status describe(vn_queue *q, const struct vn_choice *it, const struct gemm *g, vn_buffer *maps)
{
    struct vn_launch l = { .groups = { 1, 1, 1 }, .items = 32 };

    vn__arg_int(&l, g->m);
    vn__arg_int(&l, g->n);
    vn__arg_int(&l, g->k);
    vn__arg_int(&l, g->batches);
    vn__arg_tensor(&l, &g->a);
    vn__arg_tensor(&l, &g->b);
    vn__arg_buffer(&l, maps);
    return vn__launch(q, it, 0, &l);
}

static int steps(const vn_tensor *t)
{
    return t->rank == 3 && t->stride[0] != 0;
}

vn_status vn__run_wgmma(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct gemm *g = problem;
    const int *p = it->p;
    struct vn_launch l = { .groups = { 1, 1, 1 }, .items = 128 * p[WARPGROUPS] + 32 };
    const int64_t tiles = VN_CEIL_DIV(g->m, 64 * p[WARPGROUPS]) * VN_CEIL_DIV(g->n, p[BLK_N]);
    vn_buffer *maps;
    vn_status s;

    if (!vn__mul(&l.groups[0], tiles, g->batches) || l.groups[0] > INT_MAX)
        return vn__fail(VN_UNSUPPORTED, "C has %lld tiles of %d x %d; a launch holds %d", (long long)tiles,
                        64 * p[WARPGROUPS], p[BLK_N], INT_MAX);
    if ((s = vn__workspace(&maps, q, MAPS_BYTES)) || (s = describe(q, it, g, maps)))
        return s;
    vn__arg_int(&l, g->m);
    vn__arg_int(&l, g->n);
    vn__arg_int(&l, g->k);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__arg_buffer(&l, maps);
    vn__arg_int(&l, steps(&g->a));
    vn__arg_int(&l, steps(&g->b));
    vn__gemm_output(&l, g);
    return vn__launch(q, it, 1, &l);
}
