/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16x3_rows.c - the variant gemm_bf16x3_rows: f32 by the bf16 matrix engine of NVIDIA's sm_90, where one
 * operand has few rows and the other is split into its parts on the way to the engine.
 *
 * A work-group takes a share of the slices of all tiles that lie side by side: whole tiles, or parts of tiles
 * whose sums another launch adds.
 */
#include <limits.h>
#include <string.h>

#include "bf16x3.h"
#include "gemm.h"

enum { BLK_M, STAGES };                         /* its parameters */
enum { EFF, TILE_NS, FIXED_NS, ODD_C, C };      /* its costs */
enum { BLK_N = 128, PAIR = 64,    /* two slices of K: they are multiplied by turns */
       SPLIT_SPAN = 16,           /* of K, for a work-group that splits A */
       ALIGNED = 256 };

/* ---- fits ------------------------------------------------------------------------- */

static int is_k_major(const struct gemm *g)  { return vn__fits_tma(&g->b, vn__row(&g->b), vn__col(&g->b)); }
static int is_mn_major(const struct gemm *g) { return vn__fits_tma(&g->b, vn__col(&g->b), vn__row(&g->b)); }

const char *vn__fits_bf16x3_rows(const void *problem, const struct vn_facts *f)
{
    const struct gemm g = vn__gemm_few_rows(problem);
    const char *why = vn__fits_bf16x3(problem, f);

    if (!why && !is_k_major(&g) && !is_mn_major(&g))
        why = "the large operand must be contiguous along a dimension, with 16-byte aligned rows and at most "
              "one batch dimension";
    return why;
}

void vn__constants_bf16x3_rows(int *c, const void *problem)
{
    const struct gemm g = vn__gemm_few_rows(problem);

    c[0] = !is_k_major(&g);
}

/* ---- the plan ----------------------------------------------------------------------- */

/* Tiles across N of all batches, each of so many pairs of slices; and how all these pairs are shared among
 * work-groups for each panel of A, so that a tile is in up to `most` shares.                          */
struct cut { int64_t panels, tiles, pairs, shares, most; };

static int is_cut(const struct cut *c)
{
    return c->tiles % c->shares != 0;
}

static struct cut cut_in(const struct gemm *g, const int *p, int64_t shares)
{
    struct cut c = { .panels = VN_CEIL_DIV(g->m, p[BLK_M]), .pairs = VN_CEIL_DIV(g->k, PAIR),
                     .tiles = VN_CEIL_DIV(g->n, BLK_N) * g->batches };
    const int64_t all = c.tiles * c.pairs;

    c.shares = shares < 1 ? 1 : shares < all ? shares : all;
    c.most   = is_cut(&c) ? VN_CEIL_DIV(c.pairs - 1, all / c.shares) + 1 : 0;
    return c;
}

static double larger(double a, double b) { return a > b ? a : b; }

/* Three launches with the one that adds sums; shares of more than one tile write the sums of each.  Parts of
 * A, 6 bytes of an element written and read, count where each batch has its own; of one A, what does not stay
 * in the second-level cache, where memory sets the time: where products do, EFF was fitted with it.        */
static double seconds_of(const struct gemm *g, const struct cut *c, const struct vn_row *row,
                         const struct vn_site *site)
{
    const double units = site->facts->units, groups = (double)c->shares * (double)c->panels;
    const double pair = 2.0 * row->p[BLK_M] * BLK_N * PAIR / (vn__bf16x3_peak(site) * 1e6 * row->cost[EFF]);
    const double waves = (double)VN_CEIL_DIV(c->shares * c->panels, site->facts->units);
    const double work = waves * ((double)VN_CEIL_DIV(c->tiles * c->pairs, c->shares) * pair +
                                 row->cost[TILE_NS] * 1e-9);
    const double c_bytes = (double)g->m * (double)g->n * (double)g->batches * sizeof(float);
    const double bytes = g->head.bytes + c_bytes * row->cost[C] / 1000 + vn__odd_c_bytes(g, row->cost[ODD_C]);
    const double read = vn__move_seconds(bytes, 1000, site) *
                        larger(1, site->rates->readers * units / groups);
    const double parts = 12.0 * (double)g->m * (double)g->k * (double)g->batches;
    const double beyond = g->batches > 1 ? 0 : larger(0, parts - site->rates->l2_mb * 1e6);
    const int64_t across = c->shares % c->tiles ? (c->tiles < c->shares ? c->tiles : c->shares) : 0;
    const double sums = (double)(c->shares + across) * BLK_N * (double)g->m * 2 * sizeof(float);

    return row->cost[FIXED_NS] * 1e-9 + vn__batch_seconds(g, site) +
           larger(work, read + vn__move_seconds(beyond, 1000, site)) +
           vn__move_seconds(g->batches > 1 ? parts : 0, 1000, site) +
           (is_cut(c) ? vn__launch_seconds(site) + vn__move_seconds(sums, 1000, site) : 0);
}

static void take_better(struct cut *best, const struct gemm *g, int64_t shares, const struct vn_row *row,
                        const struct vn_site *site)
{
    const int64_t room = (g->m * g->k + g->k * g->n) / (g->m * g->n);
    const struct cut c = cut_in(g, row->p, shares);

    if (c.most <= room && seconds_of(g, &c, row, site) < seconds_of(g, best, row, site))
        *best = c;
}

/* A share for each tile; or several for each, as many as there are units for; or one for each unit, across
 * tiles: what takes the least time.  All sums take no more room than A and B.                       */
static struct cut cut_of(const struct gemm *g, const struct vn_row *row, const struct vn_site *site)
{
    const int64_t tiles_n = VN_CEIL_DIV(g->n, BLK_N) * g->batches;
    struct cut best = cut_in(g, row->p, tiles_n);
    const int64_t units = site->facts->units / best.panels;

    for (int64_t some = units / tiles_n; some > 1; some--)
        take_better(&best, g, some * tiles_n, row, site);
    take_better(&best, g, units, row, site);
    return best;
}

/* The workspace has the sums of shares of tiles, then A's parts. */
struct product {
    struct gemm           g;
    struct vn_bf16x3_side a;
    struct cut            cut;
    size_t                bytes;
};

/* 0 if a size overflows. */
static int lay_out(struct product *p, const struct gemm *problem, const int *params, const struct cut *cut)
{
    struct gemm *const g = &p->g;
    int64_t sums;

    *g = vn__gemm_few_rows(problem);
    p->cut = *cut;
    if (!vn__mul(&sums, cut->most * (int64_t)sizeof(float), g->batches * g->m * g->n) ||
        !vn__bf16x3_panels(&p->a, &g->a, params[BLK_M], PAIR) || vn__bf16x3_bytes(&p->a) > SIZE_MAX / 4)
        return 0;
    p->bytes = VN_CEIL_DIV((size_t)sums, ALIGNED) * ALIGNED;
    p->a.view[7] = (int64_t)(p->bytes / VN_BF16X3_UNIT);
    p->bytes += vn__bf16x3_bytes(&p->a);
    return 1;
}

/* Numbers of a plan: the cut. */
enum { PANELS, TILES, PAIRS, SHARES, MOST };

const char *vn__plan_bf16x3_rows(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                 const struct vn_site *site)
{
    const struct gemm g = vn__gemm_few_rows(problem);
    const struct cut c = cut_of(&g, row, site);
    struct product p;
    int64_t most;

    if (!lay_out(&p, problem, row->p, &c) || !vn__mul(&most, c.tiles, c.pairs > g.m ? c.pairs : g.m) ||
        most > INT_MAX || c.shares * c.panels > INT_MAX) {
        out->seconds = -1;
        return "C has more than 2^31 slices of tiles";
    }
    out->workspace = p.bytes;
    out->seconds = row->cost[EFF] > 0 ? seconds_of(&g, &c, row, site) : 0;
    memcpy(out->v, (int64_t[]){ c.panels, c.tiles, c.pairs, c.shares, c.most }, 5 * sizeof *out->v);
    return NULL;
}

/* ---- launches ----------------------------------------------------------------------- */

/* A's parts. */
static vn_status prepare(vn_queue *q, const struct vn_choice *it, const struct product *p, vn_buffer *room)
{
    struct vn_launch l = { .nargs = 0 };
    const vn_status s = vn__bf16x3_launch_split(&l, &p->a, room, SPLIT_SPAN);

    return s ? s : vn__launch(q, it, 0, &l);
}

/* How tiles are shared, where the partial sums are, and what ends each kernel. */
static void finish_args(struct vn_launch *l, const struct product *p, vn_buffer *room)
{
    vn__arg_int(l, p->g.batches);
    vn__arg_int(l, p->cut.tiles * p->cut.pairs / p->cut.shares);
    vn__arg_int(l, p->cut.tiles * p->cut.pairs % p->cut.shares);
    vn__arg_buffer(l, room);
    vn__gemm_output(l, &p->g);
}

static vn_status multiply(vn_queue *q, const struct vn_choice *it, const struct product *p, vn_buffer *room)
{
    const struct gemm *g = &p->g;
    struct vn_launch l = { .groups = { p->cut.shares * p->cut.panels, 1, 1 }, .items = 3 * 128 };
    vn_status s;

    vn__gemm_sizes(&l, g);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, VN_F32, g->alpha);
    vn__arg_tensor(&l, &g->a);
    vn__arg_tensor(&l, &g->b);
    vn__arg_buffer(&l, room);
    vn__arg_view(&l, p->a.view);
    if ((s = vn__arg_maps(&l, q)))
        return s;
    finish_args(&l, p, room);
    return vn__launch(q, it, 1, &l);
}

static vn_status add_shares(vn_queue *q, const struct vn_choice *it, const struct product *p, vn_buffer *room)
{
    const struct gemm *g = &p->g;
    struct vn_launch l = { .groups = { p->cut.tiles * VN_CEIL_DIV(g->m, 8), 1, 1 }, .items = 2 * BLK_N };

    vn__gemm_sizes(&l, g);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, VN_F32, g->alpha);
    finish_args(&l, p, room);
    return vn__launch(q, it, 2, &l);
}

vn_status vn__run_bf16x3_rows(vn_queue *q, const struct vn_choice *it, const void *problem,
                              const struct vn_plan *plan)
{
    const int64_t *v = plan->v;
    const struct cut cut = { v[PANELS], v[TILES], v[PAIRS], v[SHARES], v[MOST] };
    struct product p;
    vn_buffer *room;
    vn_status s;

    lay_out(&p, problem, it->p, &cut);
    if ((s = vn__workspace(&room, q, p.bytes)) || (s = prepare(q, it, &p, room)) ||
        (s = multiply(q, it, &p, room)) || !is_cut(&cut))
        return s;
    return add_shares(q, it, &p, room);
}
