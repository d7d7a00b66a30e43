/* SPDX-License-Identifier: Apache-2.0
 *
 * backward_wgmma.c - the variant attention_backward_wgmma: 16-bit types on NVIDIA's sm_90.
 */
#include <limits.h>
#include <math.h>

#include "backward.h"

/* Parameters by their place in the table, costs, and values of a plan. */
enum { HEAD, KEYS_N, KEYS_STAGES, QUERIES_N, QUERIES_STAGES, WARPGROUPS };
enum { KEYS_NS, QUERIES_NS, TILE_NS };
enum { KEYS_TILES, QUERIES_TILES, KEYS_SECTION, QUERIES_SECTION };
enum { STATISTICS, BY_KEYS, BY_QUERIES };       /* kernels */
enum { WARPGROUP_M = 64, PRODUCER = 128 };

static int64_t blk_m(const int *p)
{
    return WARPGROUP_M * p[WARPGROUPS];
}

/* Rows of queries are padded to whole tiles and to whole blocks. */
static int64_t padded_to(const int *p)
{
    int64_t rows = blk_m(p);

    while (rows % p[KEYS_N])
        rows += blk_m(p);
    return rows;
}

/* ---- fits ------------------------------------------------------------------------- */

const char *vn__fits_attention_backward_wgmma(const void *problem, const struct vn_facts *f)
{
    enum { LARGEST_HEAD = 128 };
    const struct attention *a = problem;
    int vectors = 1;

    if (!a->backward)
        return "it computes gradients";
    if (vn__sm(f) != 90)
        return "it needs an NVIDIA GPU of sm_90, for wgmma";
    if (a->head.type != VN_F16 && a->head.type != VN_BF16)
        return "it needs f16 or bf16";
    if (a->has_mask || a->softcap > 0)
        return "it has neither a mask nor a softcap";
    if (a->keys == 0 || a->queries == 0 || a->heads == 0)
        return "there are no keys, or no queries";
    if (a->d > LARGEST_HEAD || a->dv > LARGEST_HEAD)
        return "heads must have at most 128 elements";
    if (!(a->scale >= 0x1p-100 && a->scale <= 0x1p100))
        return "the scale must lie between 2^-100 and 2^100";
    for (int i = Q; i <= OUT; i++)
        vectors &= vn__attention_fits_tma(&a->t[i]);
    for (int i = D_OUT; i < GRADIENTS; i++)
        vectors &= vn__attention_fits_tma(&a->gradient[i]);
    return vectors ? NULL
         : "queries, keys, values, out and gradients must be contiguous along a row, and rows must be whole "
           "vectors of 16 bytes that begin at multiples of 16 bytes";
}

/* ---- plans -------------------------------------------------------------------------- */

/* Of a work-group: two tiles, two blocks and their statistics in each stage, and what else a kernel keeps. */
static double local_kib(const int *p, int block, int stages)
{
    enum { OTHER = 2 };

    return (4.0 * p[HEAD] * (double)(blk_m(p) + stages * p[block]) + 8.0 * stages * p[block]) / 1024 + OTHER;
}

/* The time of one kernel, whose work is `pairs` of queries and keys. */
static double seconds_of(const struct vn_row *row, double pairs, double tiles, double units, int block,
                         int cost)
{
    const double blocks = pairs / ((double)blk_m(row->p) * row->p[block]), rounds = tiles / units;
    const double share = blocks / tiles * row->cost[cost] + row->cost[TILE_NS];

    return share * 1e-9 * (rounds > 1 ? rounds + 0.5 : 1);
}

/* Causal, heads that share rounds: of which L2 holds what the tiles of one read, `rows` rows of two operands
 * for each head. */
static int64_t section_of(const struct attention *a, const struct vn_rates *r, double rows, int64_t heads)
{
    const double fit = 0.8e6 * r->l2_mb / (2.0 * rows * (double)(a->d + a->dv));

    return !a->causal || fit < 1 ? 1 : fit >= (double)heads ? heads : (int64_t)fit;
}

static const char *refuse(struct vn_plan *out, const char *why)
{
    out->seconds = -1;
    return why;
}

const char *vn__plan_attention_backward_wgmma(struct vn_plan *out, const void *problem,
                                              const struct vn_row *row, const struct vn_site *site)
{
    const struct attention *a = problem;
    const int *const p = row->p;
    const int64_t shared = a->heads / a->group;
    const double units = site->facts->units, heads = (double)(a->batches * a->heads);
    const double pairs = heads * vn__attention_pairs(a->queries, a->keys, a->causal, a->offset, a->window);
    struct statistics s;
    const char *why = vn__attention_statistics(&s, a, 0, padded_to(p));

    if (why)
        return refuse(out, why);
    if (p[HEAD] < a->d || p[HEAD] < a->dv)
        return refuse(out, "this row is for smaller heads");
    if (local_kib(p, KEYS_N, p[KEYS_STAGES]) > site->rates->local_kib ||
        local_kib(p, QUERIES_N, p[QUERIES_STAGES]) > site->rates->local_kib)
        return refuse(out, "this row takes more local memory than there is");
    if (!vn__mul(&out->v[KEYS_TILES], a->batches * shared, VN_CEIL_DIV(a->keys, blk_m(p))) ||
        !vn__mul(&out->v[QUERIES_TILES], a->batches * a->heads, VN_CEIL_DIV(a->queries, blk_m(p))) ||
        out->v[KEYS_TILES] > INT_MAX / 2 || out->v[QUERIES_TILES] > INT_MAX / 2)
        return refuse(out, "the queries or the keys have more than 2^30 tiles");
    out->v[KEYS_SECTION] = section_of(a, site->rates, (double)(a->queries * a->group), a->batches * shared);
    out->v[QUERIES_SECTION] = section_of(a, site->rates, (double)a->keys / (double)a->group,
                                         a->batches * a->heads);
    out->workspace = vn__attention_statistics_bytes(&s, a);
    out->seconds = seconds_of(row, pairs, (double)out->v[KEYS_TILES], units, KEYS_N, KEYS_NS)
                 + seconds_of(row, pairs, (double)out->v[QUERIES_TILES], units, QUERIES_N, QUERIES_NS);
    return p[HEAD] / 2 >= a->d && p[HEAD] / 2 >= a->dv ? "this row is for larger heads" : NULL;
}

/* ---- launches ----------------------------------------------------------------------- */

/* A stride of 0 where there is but one: TMA takes no other that is no multiple of 16 bytes. */
static vn_tensor without_strides_of_one(vn_tensor t)
{
    for (int d = 0; d < 3; d++)
        if (t.extent[d] == 1)
            t.stride[d] = 0;
    return t;
}

/* Both kernels take the operands of the tile, then those of the blocks, in the order that they are loaded. */
static vn_status launch(vn_queue *q, const struct vn_choice *it, const struct attention *a, int kernel,
                        const struct vn_plan *plan, const struct statistics *s, vn_buffer *scratch)
{
    const vn_tensor *const pairs[2][2] = { { &a->t[Q], &a->gradient[D_OUT] }, { &a->t[K], &a->t[V] } };
    const int by_keys = kernel == BY_KEYS;
    const int64_t tiles = plan->v[by_keys ? KEYS_TILES : QUERIES_TILES];
    const int64_t groups = tiles < a->units ? tiles : a->units;
    struct vn_launch l = { .groups = { groups, 1, 1 }, .items = (int)(2 * blk_m(it->p)) + PRODUCER };
    vn_buffer *counters;
    vn_status status = vn__counters(&counters, q);

    if (status)
        return status;
    vn__attention_backward_begin(&l, a, s, scratch);
    for (int i = 0; i < 4; i++) {
        const vn_tensor t = without_strides_of_one(*pairs[i / 2 ^ by_keys][i % 2]);

        vn__arg_tensor(&l, &t);
    }
    for (int i = by_keys ? D_K : D_Q; i <= (by_keys ? D_V : D_Q); i++)
        vn__arg_tensor(&l, &a->gradient[i]);
    if (by_keys)
        vn__arg_int(&l, a->wanted >> D_K);
    vn__arg_int(&l, a->batches);
    vn__arg_int(&l, plan->v[by_keys ? KEYS_SECTION : QUERIES_SECTION]);
    vn__arg_int(&l, groups);
    vn__arg_int(&l, tiles);
    if ((status = vn__arg_maps(&l, q)))
        return status;
    vn__arg_buffer(&l, counters);
    return vn__launch(q, it, kernel, &l);
}

vn_status vn__run_attention_backward_wgmma(vn_queue *q, const struct vn_choice *it, const void *problem,
                                           const struct vn_plan *plan)
{
    const struct attention *a = problem;
    struct statistics s;
    vn_buffer *scratch;
    vn_status status;

    vn__attention_statistics(&s, a, 0, padded_to(it->p));
    if ((status = vn__workspace(&scratch, q, plan->workspace)) ||
        (status = vn__run_attention_statistics(q, it, a, &s, 1, scratch)))
        return status;
    if (a->wanted & (1 << D_K | 1 << D_V) && (status = launch(q, it, a, BY_KEYS, plan, &s, scratch)))
        return status;
    return a->wanted >> D_Q & 1 ? launch(q, it, a, BY_QUERIES, plan, &s, scratch) : VN_OK;
}
