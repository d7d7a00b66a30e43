/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_wgmma.c - the variant gemm_wgmma: 16-bit types on NVIDIA's sm_90.
 */
#include <limits.h>
#include <string.h>

#include "gemm.h"

enum { BLK_N, STAGES, WARPGROUPS, CLUSTER };    /* its parameters */
enum { LINE = 8,                                /* 8 numbers are 16 bytes: the step of the copy engine */
       MAPS_BYTES = 256, MOST_CLUSTERS = 1024 };

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

/* Clusters that run at the same time: what their local memory leaves room for. */
static int64_t clusters_of(const int *p, int units)
{
    enum { LOCAL = 227 * 1024, OTHER = 1024 };
    const int bytes = p[STAGES] * 128 * (64 * p[WARPGROUPS] + p[BLK_N]) + OTHER;

    return (int64_t)(units / p[CLUSTER]) * (LOCAL / bytes > 1 ? LOCAL / bytes : 1);
}

static int64_t tiles_of(const struct gemm *g, const int *p)
{
    return VN_CEIL_DIV(g->m, 64 * p[WARPGROUPS] * p[CLUSTER]) * VN_CEIL_DIV(g->n, p[BLK_N]);
}

/* Two maps for each work-group. */
static size_t maps_bytes(const int *p, int64_t clusters)
{
    return (size_t)(clusters * p[CLUSTER]) * MAPS_BYTES;
}

size_t vn__workspace_wgmma(const void *problem, const int *p)
{
    const struct gemm *g = problem;
    const int64_t tiles = tiles_of(g, p);

    return maps_bytes(p, tiles < MOST_CLUSTERS / g->batches ? tiles * g->batches : MOST_CLUSTERS);
}

vn_status vn__run_wgmma(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct gemm *g = problem;
    const int *p = it->p;
    struct vn_launch l = { .groups = { 1, 1, 1 }, .items = 128 * p[WARPGROUPS] + 32 };
    int64_t tiles, clusters = clusters_of(p, q->device->facts.units);
    vn_buffer *maps;
    vn_status s;

    if (!vn__mul(&tiles, tiles_of(g, p), g->batches) || tiles > INT_MAX / 2)
        return vn__fail(VN_UNSUPPORTED, "C has %lld tiles in each of %lld batches; %s counts to %d", (long long)tiles_of(g, p),
                        (long long)g->batches, it->variant->name, INT_MAX / 2);
    clusters = tiles < clusters ? tiles : clusters;
    clusters = clusters < MOST_CLUSTERS ? clusters : MOST_CLUSTERS;
    l.groups[0] = clusters * p[CLUSTER];
    if ((s = vn__workspace(&maps, q, maps_bytes(p, clusters))))
        return s;
    vn__arg_int(&l, g->m);
    vn__arg_int(&l, g->n);
    vn__arg_int(&l, g->k);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__arg_int(&l, clusters);
    vn__arg_int(&l, tiles);
    vn__arg_tensor(&l, &g->a);
    vn__arg_tensor(&l, &g->b);
    vn__arg_buffer(&l, maps);
    vn__gemm_output(&l, g);
    return vn__launch(q, it, 0, &l);
}
