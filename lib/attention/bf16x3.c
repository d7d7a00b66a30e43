/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16x3.c - the variant attention_bf16x3: f32 by the bf16 matrix engine of NVIDIA's sm_90.
 *
 * A pass splits keys and values into three bf16 parts, in blocks; the kernel adds six products of parts.
 */
#include <limits.h>

#include "attention.h"

enum { HEAD, BLK_N, STAGES, WARPGROUPS };       /* parameters by their place in the table */
enum { BLOCK_NS, TILE_NS };                     /* and costs */
enum { TILES, GROUPS, SECTION, BLOCKS, SPLITS };        /* values of a plan */
enum { LARGEST_HEAD = 128, WARPGROUP_M = 64, PRODUCER = 128, SPLIT_ITEMS = 256, MOST_GROUPS = 1024,
       PARTS_BYTES = 6 };                       /* of an element */

const char *vn__fits_attention_bf16x3(const void *problem, const struct vn_facts *f)
{
    const struct attention *a = problem;

    if (a->backward)
        return "it computes no gradients";
    if (vn__sm(f) != 90)
        return "it needs an NVIDIA GPU of sm_90, for wgmma";
    if (a->head.type != VN_F32)
        return "it needs f32";
    if (a->has_mask || a->softcap > 0)
        return "it takes no mask and no softcap";
    if (a->page)
        return "keys and values are in pages";
    if (a->keys == 0)
        return "there are no keys";
    if (a->d > LARGEST_HEAD || a->dv > LARGEST_HEAD)
        return "heads must have at most 128 elements";
    if (!(a->scale >= 0x1p-60 && a->scale <= 0x1p60))
        return "the scale must lie between 2^-60 and 2^60: maxima are taken before it is applied";
    return NULL;
}

void vn__constants_attention_bf16x3(int *c, const void *problem)
{
    const struct attention *a = problem;

    c[0] = a->causal;
    c[1] = a->key_lengths.buffer || a->query_lengths.buffer || a->has_sinks;
}

/* ---- plans -------------------------------------------------------------------------- */

static int64_t blk_m(const int *p)
{
    return WARPGROUP_M * p[WARPGROUPS];
}

/* Of a work-group: the parts of a tile of queries, of stages of keys and values, and what else it keeps. */
static double local_kib(const int *p)
{
    enum { OTHER = 1 };

    return PARTS_BYTES / 1024.0 * p[HEAD] * (double)(blk_m(p) + 2 * p[STAGES] * p[BLK_N]) + OTHER;
}

/* An element is read in 4 bytes and written in 6. */
static double split_seconds(const struct attention *a, const struct vn_row *row, const struct vn_rates *r)
{
    const double heads = (double)a->batches * (double)(a->heads / a->group);

    return heads * (double)a->keys * (4.0 * (double)(a->d + a->dv) + 2.0 * PARTS_BYTES * row->p[HEAD]) /
           (r->gbps * 1e9) + r->launch_ns * 1e-9;
}

const char *vn__plan_attention_bf16x3(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                      const struct vn_site *site)
{
    const struct attention *a = problem;
    const int *const p = row->p;
    const int64_t units = site->facts->units < MOST_GROUPS ? site->facts->units : MOST_GROUPS;
    const int64_t shared = a->batches * (a->heads / a->group);
    int64_t bytes;

    if (p[HEAD] < a->d || p[HEAD] < a->dv) {
        out->seconds = -1;
        return "this row is for smaller heads";
    }
    if (local_kib(p) > site->rates->local_kib) {
        out->seconds = -1;
        return "this row takes more local memory than there is";
    }
    out->v[BLOCKS] = VN_CEIL_DIV(a->keys, p[BLK_N]);
    if (!vn__mul(&out->v[TILES], a->batches * a->heads, VN_CEIL_DIV(a->queries, blk_m(p))) ||
        !vn__mul(&out->v[SPLITS], 2 * shared, out->v[BLOCKS]) || out->v[TILES] > INT_MAX / 2 ||
        out->v[SPLITS] > INT_MAX / 2 ||
        !vn__mul(&bytes, out->v[SPLITS], PARTS_BYTES * (int64_t)p[BLK_N] * p[HEAD])) {
        out->seconds = -1;
        return "there are more than 2^30 tiles of queries, or blocks of keys";
    }
    out->v[GROUPS] = out->v[TILES] < units ? out->v[TILES] : units;
    out->v[SECTION] = vn__attention_section(a, site->rates, PARTS_BYTES);
    out->workspace = (size_t)bytes;
    out->seconds = split_seconds(a, row, site->rates) +
                   vn__attention_tile_seconds(a, vn__attention_blocks(a, blk_m(p), p[BLK_N]),
                                              row->cost[BLOCK_NS], row->cost[TILE_NS],
                                              (double)out->v[TILES], (double)units);
    return p[HEAD] / 2 >= a->d && p[HEAD] / 2 >= a->dv ? "this row is for larger heads" : NULL;
}

/* ---- launches ----------------------------------------------------------------------- */

static vn_status split(vn_queue *q, const struct vn_choice *it, const struct attention *a,
                       const struct vn_plan *plan, vn_buffer *parts)
{
    struct vn_launch l = { .groups = { plan->v[SPLITS], 1, 1 }, .items = SPLIT_ITEMS };

    vn__arg_int(&l, a->keys);
    vn__arg_int(&l, a->d);
    vn__arg_int(&l, a->dv);
    vn__arg_int(&l, a->batches);
    vn__arg_int(&l, a->heads / a->group);
    vn__arg_int(&l, plan->v[BLOCKS]);
    vn__arg_tensor(&l, &a->t[K]);
    vn__arg_tensor(&l, &a->t[V]);
    vn__attention_more(&l, a);
    vn__arg_buffer(&l, parts);
    return vn__launch(q, it, 0, &l);
}

vn_status vn__run_attention_bf16x3(vn_queue *q, const struct vn_choice *it, const void *problem,
                                   const struct vn_plan *plan)
{
    const struct attention *const a = problem;
    struct vn_launch l = { .groups = { plan->v[GROUPS], 1, 1 },
                           .items = (int)(2 * blk_m(it->p)) + PRODUCER };
    vn_buffer *parts, *counters;
    vn_status s;

    if ((s = vn__workspace(&parts, q, plan->workspace)) || (s = vn__counters(&counters, q)) ||
        (s = split(q, it, a, plan, parts)))
        return s;
    vn__attention_begin(&l, a);
    vn__attention_more(&l, a);
    vn__arg_int(&l, a->batches);
    vn__arg_int(&l, a->heads);
    vn__arg_int(&l, plan->v[SECTION]);
    vn__arg_int(&l, plan->v[GROUPS]);
    vn__arg_int(&l, plan->v[TILES]);
    vn__arg_int(&l, plan->v[BLOCKS]);
    vn__arg_buffer(&l, parts);
    vn__arg_buffer(&l, counters);
    return vn__launch(q, it, 1, &l);
}
