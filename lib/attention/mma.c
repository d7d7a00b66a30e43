/* SPDX-License-Identifier: Apache-2.0
 *
 * mma.c - the variant attention_mma: 16-bit types on the matrix engine of NVIDIA's sm_80 and up.
 */
#include <limits.h>

#include "attention.h"

enum { HEAD, BLK_M, BLK_N, WARP_M, STAGES };    /* parameters by their place in the table */
enum { EFF, TILE_NS, FIXED_NS };                /* and costs */
enum { TILES, SECTION };                        /* values of a plan */
enum { VECTOR_ROWS, ANY_ROWS, PAGED_ROWS };     /* of LAYOUT: cl/attention/mma.h */
enum { LARGEST_HEAD = 256, LANES = 32 };

/* ---- fits ------------------------------------------------------------------------- */

/* Scores are not only scaled, which is put off to their exponentials: they then need a positive scale, with
 * which no maximum overflows. */
static int is_general(const struct attention *a)
{
    return a->has_mask || a->softcap > 0 || !(a->scale >= 0x1p-100 && a->scale <= 0x1p100);
}

static int has_vectors(const struct attention *a)
{
    int has = 1;

    for (int i = Q; i <= OUT; i++)
        has &= vn__attention_has_vectors(&a->t[i]);
    return has;
}

const char *vn__fits_attention_mma(const void *problem, const struct vn_facts *f)
{
    const struct attention *a = problem;

    if (a->backward)
        return "it computes no gradients";
    if (vn__sm(f) < 80)
        return "it needs an NVIDIA GPU of sm_80 or above, for its matrix engine";
    if (a->head.type != VN_F16 && a->head.type != VN_BF16)
        return "it needs f16 or bf16";
    if (a->keys == 0)
        return "there are no keys";
    if (a->d > LARGEST_HEAD || a->dv > LARGEST_HEAD)
        return "heads must have at most 256 elements";
    for (int i = Q; i <= OUT; i++)
        if (a->t[i].extent[3] > 1 && a->t[i].stride[3] != 1)
            return "queries, keys, values and out must be contiguous along a row";
    if (a->page && !has_vectors(a))
        return "beside pages, rows of queries, keys, values and out must be whole vectors of 16 bytes that "
               "begin at multiples of 16 bytes";
    return NULL;
}

static int layout_of(const struct attention *a)
{
    return a->page ? PAGED_ROWS : has_vectors(a) ? VECTOR_ROWS : ANY_ROWS;
}

void vn__constants_attention_mma(int *c, const void *problem)
{
    const struct attention *a = problem;

    c[0] = a->causal;
    c[1] = is_general(a) ? 2 : a->key_lengths.buffer || a->query_lengths.buffer || a->has_sinks;
    c[2] = layout_of(a);
}

/* ---- plans -------------------------------------------------------------------------- */

/* Of a row in local memory: cl/attention/mma.h. */
static int row_bytes(const int *p)
{
    return p[HEAD] <= 64 ? 128 : p[HEAD] <= 128 ? 256 : 512;
}

/* Of a work-group: a tile of queries, and stages of keys or values. */
static double local_kib(const int *p)
{
    enum { OTHER = 1 };

    return row_bytes(p) / 1024.0 * (p[BLK_M] + p[STAGES] * p[BLK_N]) + OTHER;
}

/* Beside more accumulators than these a work-item has no registers for a mask, or for what the copies of
 * other rows keep. */
static int has_registers(const int *p, const struct attention *a)
{
    enum { MOST = 160 };

    return p[WARP_M] * (p[HEAD] + p[BLK_N]) / LANES <= MOST ||
           (layout_of(a) == VECTOR_ROWS && !is_general(a));
}

/* Nanoseconds of a block of keys: its products, at EFF thousandths of what the engine does in a unit. */
static double block_ns(const struct vn_row *row, const struct vn_rates *r)
{
    const int *const p = row->p;

    return 4.0 * p[BLK_M] * p[BLK_N] * p[HEAD] / (r->mma16 * row->cost[EFF] / 1000);
}

const char *vn__plan_attention_mma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                   const struct vn_site *site)
{
    const struct attention *a = problem;
    const struct vn_rates *const r = site->rates;
    const int *const p = row->p;
    const int units = site->facts->units < 1 ? 1 : site->facts->units;

    out->seconds = -1;
    if (p[HEAD] < a->d || p[HEAD] < a->dv)
        return "this row is for smaller heads";
    if (local_kib(p) > r->local_kib)
        return "this row takes more local memory than there is";
    if (!has_registers(p, a))
        return "this row is for rows of whole vectors of 16 bytes, in no pages, without a mask or a softcap";
    if (!vn__mul(&out->v[TILES], a->batches * a->heads, VN_CEIL_DIV(a->queries, p[BLK_M])) ||
        out->v[TILES] > INT_MAX / 2)
        return "the queries have more than 2^30 tiles";
    out->v[SECTION] = vn__attention_section(a, r, 2);
    out->seconds = vn__attention_tile_seconds(a, vn__attention_blocks(a, p[BLK_M], p[BLK_N]),
                                              block_ns(row, r), row->cost[TILE_NS], (double)out->v[TILES],
                                              units);
    if (out->seconds < vn__attention_read_seconds(a, r))
        out->seconds = vn__attention_read_seconds(a, r);
    out->seconds += row->cost[FIXED_NS] * 1e-9;
    return NULL;
}

/* ---- the launch --------------------------------------------------------------------- */

vn_status vn__run_attention_mma(vn_queue *q, const struct vn_choice *it, const void *problem,
                                const struct vn_plan *plan)
{
    const struct attention *const a = problem;
    struct vn_launch l = { .groups = { plan->v[TILES], 1, 1 },
                           .items = LANES * it->p[BLK_M] / it->p[WARP_M] };

    vn__attention_begin(&l, a);
    vn__attention_more(&l, a);
    vn__arg_int(&l, a->batches);
    vn__arg_int(&l, a->heads);
    vn__arg_int(&l, plan->v[SECTION]);
    return vn__launch(q, it, 0, &l);
}
