/* SPDX-License-Identifier: Apache-2.0
 *
 * wgmma.c - the variant attention_wgmma: 16-bit types on NVIDIA's sm_90.
 */
#include <limits.h>
#include <math.h>

#include "attention.h"

/* parameters by their place in the table */
enum { HEAD, BLK_N, STAGES, WARPGROUPS, Q_BUFFERS, Q_REGISTERS, LAZY, JOINED, TENANTS };
enum { BLOCK_NS, TILE_NS, MASK_NS };            /* and costs */
enum { TILES, GROUPS, SECTION };                /* values of a plan */
enum { LARGEST_HEAD = 256, WARPGROUP_M = 64, PRODUCER = 128, MOST_GROUPS = 1024 };

/* ---- fits ------------------------------------------------------------------------- */

/* Contiguous rows that begin at multiples of 16 bytes, and no row that stands for several. */
int vn__attention_fits_tma(const vn_tensor *t)
{
    enum { VECTOR = 8 };                        /* elements */
    int fits = t->stride[3] == 1 && t->extent[3] % VECTOR == 0 && t->start % VECTOR == 0 &&
               (t->extent[2] == 1 || t->stride[2] > 0);

    for (int d = 0; d < 3; d++)
        fits &= t->extent[d] == 1 || t->stride[d] % VECTOR == 0;
    return fits;
}

/* Scores are not only scaled, which is put off to their exponentials. */
static int is_general(const struct attention *a)
{
    return a->has_mask || a->softcap > 0;
}

const char *vn__attention_fits_rows(const struct attention *a)
{
    if (a->head.type != VN_F16 && a->head.type != VN_BF16)
        return "it needs f16 or bf16";
    if (a->page)
        return "keys and values are in pages";
    if (a->keys == 0)
        return "there are no keys";
    if (a->d > LARGEST_HEAD || a->dv > LARGEST_HEAD)
        return "heads must have at most 256 elements";
    for (int i = Q; i <= OUT; i++)
        if (!vn__attention_fits_tma(&a->t[i]))
            return "queries, keys, values and out must be contiguous along a row, and rows must be whole "
                   "vectors of 16 bytes that begin at multiples of 16 bytes";
    return NULL;
}

const char *vn__fits_attention_wgmma(const void *problem, const struct vn_facts *f)
{
    const struct attention *a = problem;
    const char *why;

    if (a->backward)
        return "it computes no gradients";
    if (vn__sm(f) != 90)
        return "it needs an NVIDIA GPU of sm_90, for wgmma";
    if ((why = vn__attention_fits_rows(a)))
        return why;
    if (!is_general(a) && !(a->scale >= 0x1p-100 && a->scale <= 0x1p100))
        return "the scale must lie between 2^-100 and 2^100: maxima are taken before it is applied";
    return NULL;
}

void vn__constants_attention_wgmma(int *c, const void *problem)
{
    const struct attention *a = problem;

    c[0] = a->causal;
    c[1] = is_general(a) ? 2 : a->key_lengths.buffer || a->query_lengths.buffer || a->has_sinks;
}

/* ---- plans -------------------------------------------------------------------------- */

static int64_t blk_m(const int *p)
{
    return WARPGROUP_M * p[WARPGROUPS];
}

/* Of a work-group: tiles of queries, stages of keys and of values, and what else the kernel keeps there. */
static double local_kib(const int *p)
{
    enum { OTHER = 2, BOX = 64 };               /* elements of a row of a box */

    const double rows = (double)(blk_m(p) * p[Q_BUFFERS] + 2 * p[STAGES] * p[BLK_N]);

    return 2.0 / 1024 * VN_CEIL_DIV(p[HEAD], BOX) * BOX * rows + OTHER;
}

double vn__attention_blocks(const struct attention *a, int64_t blk_m, int64_t blk_n)
{
    double blocks = 0;

    if (!a->causal)
        return (double)(VN_CEIL_DIV(a->queries, blk_m) * VN_CEIL_DIV(a->keys, blk_n));
    for (int64_t m = 0; m < a->queries; m += blk_m) {
        const int64_t last = (m + blk_m < a->queries ? m + blk_m : a->queries) - 1;
        const int64_t seen = last + a->offset + 1, begin = m + a->offset + 1 - a->window;
        const int64_t end = seen < a->keys ? seen : a->keys, from = a->window && begin > 0 ? begin : 0;

        blocks += end > from ? (double)(VN_CEIL_DIV(end, blk_n) - from / blk_n) : 1;
    }
    return blocks;
}

/* Work-groups take tiles as they come: of equal tiles the last round may be a partial one, of unequal ones
 * the longest come first, and the work is shared evenly.                                              */
double vn__attention_tile_seconds(const struct attention *a, double blocks, double block, double tile,
                                  double tiles, double units)
{
    const double heads = (double)(a->batches * a->heads), rounds = tiles / units;

    return (blocks * heads / tiles * block + tile) * 1e-9 *
           (a->causal && rounds > 1 ? rounds : ceil(rounds));
}

double vn__attention_read_seconds(const struct attention *a, const struct vn_rates *r)
{
    const double heads = (double)a->batches * (double)(a->heads / a->group);

    return 2.0 * heads * (double)a->keys * (double)(a->d + a->dv) / (r->gbps * 1e9) + r->launch_ns * 1e-9;
}

int64_t vn__attention_section(const struct attention *a, const struct vn_rates *r, double bytes)
{
    const double fit = 0.8e6 * r->l2_mb * (double)a->group /
                       (bytes * (double)a->keys * (double)(a->d + a->dv));
    const double heads = (double)(a->batches * a->heads);
    const int64_t group = a->group;

    if (!a->causal)
        return 1;
    return fit >= heads ? a->batches * a->heads : fit > (double)group ? (int64_t)fit / group * group : group;
}

/* A section's longest tiles come first and read all its keys and values; the others read little.  With as
 * many heads as L2 holds, memory and multipliers would wait for each other by turns; so a section has at most
 * a quarter as many heads as there are units, and two tiles for each unit. */
static int64_t section_of(const struct attention *a, int64_t tiles_of_head, int64_t units,
                          const struct vn_rates *r)
{
    const int64_t fit = vn__attention_section(a, r, 2), group = a->group;
    const int64_t quarter = VN_CEIL_DIV(units, 4), two = VN_CEIL_DIV(2 * units, tiles_of_head);
    const int64_t most = VN_CEIL_DIV(quarter < two ? quarter : two, group) * group;

    return a->causal && most < fit ? most : fit;
}

const char *vn__plan_attention_wgmma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                     const struct vn_site *site)
{
    const struct attention *a = problem;
    const int64_t units = site->facts->units, slots = units * row->p[TENANTS];
    const int64_t most = slots < MOST_GROUPS ? slots : MOST_GROUPS;
    const int64_t tiles_of_head = VN_CEIL_DIV(a->queries, blk_m(row->p));

    if (row->p[HEAD] < a->d || row->p[HEAD] < a->dv) {
        out->seconds = -1;
        return "this row is for smaller heads";
    }
    if (row->p[TENANTS] * local_kib(row->p) > site->rates->local_kib) {
        out->seconds = -1;
        return "this row takes more local memory than there is";
    }
    if (!vn__mul(&out->v[TILES], a->batches * a->heads, tiles_of_head) || out->v[TILES] > INT_MAX / 2) {
        out->seconds = -1;
        return "the queries have more than 2^30 tiles";
    }
    out->v[GROUPS] = out->v[TILES] < most ? out->v[TILES] : most;
    out->v[SECTION] = section_of(a, tiles_of_head, units, site->rates);
    out->seconds = vn__attention_tile_seconds(a, vn__attention_blocks(a, blk_m(row->p), row->p[BLK_N]),
                                              row->cost[BLOCK_NS] + (is_general(a) ? row->cost[MASK_NS] : 0),
                                              row->cost[TILE_NS],
                                              (double)out->v[TILES], (double)most);
    if (out->seconds < vn__attention_read_seconds(a, site->rates))
        out->seconds = vn__attention_read_seconds(a, site->rates);
    return row->p[HEAD] / 2 >= a->d && row->p[HEAD] / 2 >= a->dv ? "this row is for larger heads" : NULL;
}

/* ---- the launch --------------------------------------------------------------------- */

/* A stride of 0 where there is but one: TMA takes no other that is no multiple of 16 bytes. */
static struct attention without_strides_of_one(const struct attention *a)
{
    struct attention it = *a;

    for (int i = Q; i <= V; i++)
        for (int d = 0; d < 3; d++)
            if (it.t[i].extent[d] == 1)
                it.t[i].stride[d] = 0;
    return it;
}

vn_status vn__run_attention_wgmma(vn_queue *q, const struct vn_choice *it, const void *problem,
                                  const struct vn_plan *plan)
{
    const struct attention a = without_strides_of_one(problem);
    struct vn_launch l = { .groups = { plan->v[GROUPS], 1, 1 },
                           .items = (int)(2 * blk_m(it->p)) + PRODUCER };
    vn_buffer *counters;
    vn_status s;

    if ((s = vn__counters(&counters, q)) || (s = vn__arg_maps(&l, q)))
        return s;
    vn__arg_buffer(&l, counters);
    vn__arg_int(&l, a.batches);
    vn__arg_int(&l, a.heads);
    vn__arg_int(&l, plan->v[SECTION]);
    vn__arg_int(&l, plan->v[GROUPS]);
    vn__arg_int(&l, plan->v[TILES]);
    vn__attention_begin(&l, &a);
    vn__attention_more(&l, &a);
    return vn__launch(q, it, 0, &l);
}
