/* SPDX-License-Identifier: Apache-2.0
 *
 * mma_splitk.c - the variant gemm_mma_splitk: products with few tiles, or with rows that begin at any
 * element, by the matrix engine of NVIDIA's sm_90, out of registers; f32 as three bf16 parts.
 */
#include <limits.h>

#include "bf16x3.h"
#include "gemm.h"

enum { BLK_M, BLK_N, BLK_K, STAGES = BLK_K + 3, PARTS_K = STAGES + 3 };         /* parameters */
enum { ODD_C = VN_SPLITS_COSTS };               /* its cost column after those of splits */
enum { TILES, SPAN, SPLITS };                   /* values of a plan */
enum { RASTER = 8 };                            /* as in the kernel's text */

static int is_contiguous(const vn_tensor *t) { return vn__row(t) == 1 || vn__col(t) == 1; }

const char *vn__fits_mma_splitk(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;
    const char *why;

    if (vn__sm(f) < 90)
        return "it needs an NVIDIA GPU of sm_90 or above, for its local memory";
    if (g->k == 0)
        return "there is nothing to multiply";
    if (!is_contiguous(&g->a) || !is_contiguous(&g->b))
        return "A and B must be contiguous along a dimension";
    return (why = vn__fits_order(g)) ? why : vn__fits_half_sizes(g);
}

/* Bytes of a padded slice in local memory, K-major or MN-major, as in cl/tile/word_operand.h. */
static int64_t slice_bytes(const struct gemm *g, int64_t width, int64_t blk_k, int mn_major)
{
    const int64_t bytes = (int64_t)vn_type_bytes(g->head.type);
    const int64_t pad = bytes == 2 || (bytes == 4 && !mn_major) ? 8 : 4;

    return (mn_major ? blk_k * (width + pad) : width * (blk_k + pad)) * bytes;
}

const char *vn__plan_mma_splitk(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                const struct vn_site *site)
{
    const struct gemm *g = problem;
    const int *const p = row->p;
    const int64_t tiles = VN_CEIL_DIV(g->m, p[BLK_M]) * VN_CEIL_DIV(g->n, p[BLK_N]);
    const int64_t bytes = (int64_t)vn_type_bytes(g->head.type);
    struct vn_splits s = {
        .slices = VN_CEIL_DIV(g->k, p[BLK_K]), .flops = 2.0 * p[BLK_M] * p[BLK_N] * p[BLK_K],
        .loads = (double)(p[BLK_M] + p[BLK_N]) * (double)(p[BLK_K] * bytes),
        .peak = g->head.type == VN_F32 ? vn__bf16x3_peak(site) : vn__mma_peak(g, site),
        .start = vn__batch_seconds(g, site), .memory = g->head.bytes,
        .bytes = g->head.bytes + vn__odd_c_bytes(g, row->cost[ODD_C]),
        .local = p[STAGES] * (slice_bytes(g, p[BLK_M], p[BLK_K], vn__is_mn_major_a(g)) +
                              slice_bytes(g, p[BLK_N], p[BLK_K], vn__is_mn_major_b(g))),
        .items = vn__mma_items(p) * p[PARTS_K],
        .slots = (int64_t)p[BLK_M] * p[BLK_N] / (bytes > 4 ? 1 : 2) };

    if (!vn__mul(&out->v[TILES], tiles, g->batches) || out->v[TILES] > INT_MAX / 2) {
        out->seconds = -1;
        return "C has more than 2^30 tiles";
    }
    s.tiles = (double)out->v[TILES];
    out->seconds = vn__plan_splits(&out->v[SPAN], &out->v[SPLITS], &s, row, site);
    return NULL;
}

vn_status vn__run_mma_splitk(vn_queue *q, const struct vn_choice *it, const void *problem,
                             const struct vn_plan *plan)
{
    const struct gemm *g = problem;
    struct vn_launch l = { .groups = { plan->v[TILES], plan->v[SPLITS], 1 },
                           .items = vn__mma_items(it->p) * it->p[PARTS_K] };
    vn_buffer *slots = g->c.buffer;             /* with one split: any buffer */
    vn_status s;

    if (plan->v[SPLITS] > 1 && (s = vn__slots(&slots, q)))
        return s;
    vn__gemm_sizes(&l, g);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__arg_tiles(&l, VN_CEIL_DIV(g->m, it->p[BLK_M]), VN_CEIL_DIV(g->n, it->p[BLK_N]), RASTER, g->batches);
    vn__gemm_inputs(&l, g);
    vn__arg_int(&l, plan->v[SPAN]);
    vn__arg_int(&l, plan->v[SPLITS]);
    vn__arg_buffer(&l, slots);
    vn__gemm_output(&l, g);
    return vn__launch(q, it, 0, &l);
}
