/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16x3_rows.c - the variants gemm_split_rows and gemm_split_rows_64: f32 by the bf16 matrix engines of
 * NVIDIA's sm_90, where one operand has few rows and the other is split on the way to the engine.
 *
 * How K is cut follows from the problem and the units alone, so results are the same each time.
 */
#include <limits.h>
#include <string.h>

#include "gemm.h"
#include "bf16x3.h"

enum { BLK_M, STAGES };                         /* its parameters */
enum { BLK_N = 128, PAIR = 64,    /* two slices of K: they are multiplied in turns */
       SPLIT_K = 16,              /* of a work-group that splits A */
       LINE = 4,                  /* 4 numbers are 16 bytes: the step of the copy engine */
       MAP_BYTES = 128, SUMS_START = MAP_BYTES / 4, ALIGNED = 256, MOST = 2048 };

/* ---- fits ------------------------------------------------------------------------- */

/* The copy engine takes lines of consecutive numbers whose steps are multiples of 16 bytes. */
static int can_copy(const vn_tensor *t, int64_t along, int64_t across)
{
    return along == 1 && across % LINE == 0 && across > 0 && t->start % LINE == 0 &&
           (t->rank == 2 || (t->rank == 3 && t->stride[0] % LINE == 0));
}

static const char *fits(const struct gemm *problem, const struct vn_facts *f, int across_b)
{
    const char *why = vn__fits_split(problem, f);
    const struct gemm g = vn__gemm_few_rows(problem);
    const int64_t row = vn__row(&g.b), col = vn__col(&g.b);

    if (why)
        return why;
    if (!can_copy(&g.b, across_b ? col : row, across_b ? row : col))
        return "the large operand's lines need to lie the other way, or to begin at multiples of 16 bytes, "
               "in at most one batch dimension";
    return NULL;
}

const char *vn__fits_split_rows_along (const void *p, const struct vn_facts *f) { return fits(p, f, 0); }
const char *vn__fits_split_rows_across(const void *p, const struct vn_facts *f) { return fits(p, f, 1); }

/* ---- which tile, and how tiles are shared out ----------------------------------------- */

/* Microseconds on an H100: of two slices of each tile where all units are at work, and of what else it takes;
 * of a launch; and what is moved in one, of memory, and of sums that the cache still has.  So many of the
 * units can read all that the memory gives.                                                          */
enum tile { TILE_64, TILE_128, TILE_COUNT };
static const struct { int m; double pair, rest; } tiles[TILE_COUNT] = {
    [TILE_64] = { 64, 1.2, 1 }, [TILE_128] = { 128, 2.02, 2 } };
static const double LAUNCH = 4, MEMORY = 2.5e6, SUMS = 2e6, READERS = 0.85;

/* Tiles across N of all batches, each of so many pairs of slices; and how all these pairs are shared out, to
 * work-groups for each panel of A, so that a tile is in up to so many shares.                        */
struct cut { int64_t panels, tiles, pairs, shares, most; };

static int is_cut(const struct cut *c)
{
    return c->tiles % c->shares != 0;
}

static struct cut cut_in(const struct gemm *g, enum tile tile, int64_t shares)
{
    struct cut c = { .panels = VN_CEIL_DIV(g->m, tiles[tile].m), .pairs = VN_CEIL_DIV(g->k, PAIR),
                     .tiles = VN_CEIL_DIV(g->n, BLK_N) * g->batches };
    const int64_t all = c.tiles * c.pairs;

    c.shares = shares < 1 ? 1 : shares < all ? shares : all;
    c.most   = is_cut(&c) ? VN_CEIL_DIV(c.pairs - 1, all / c.shares) + 1 : 0;
    return c;
}

#define MAX(a, b) ((a) > (b) ? (a) : (b))

static double time_of(const struct gemm *g, enum tile tile, const struct cut *c)
{
    const int64_t groups = c->shares * c->panels;
    const double rounds = (double)VN_CEIL_DIV(groups, g->units), readers = READERS * (double)g->units;
    const double pairs = (double)VN_CEIL_DIV(c->tiles * c->pairs, c->shares);
    const double work = rounds * (pairs * tiles[tile].pair + tiles[tile].rest);
    const double least = g->head.bytes / MEMORY * MAX(1, readers / (double)groups);
    const int64_t across = c->shares % c->tiles ? (c->tiles < c->shares ? c->tiles : c->shares) : 0;
    const double pieces = (double)(c->shares + across);     /* across: shares of more than one tile */
    const double sums = is_cut(c) ? LAUNCH + pieces * BLK_N * (double)g->m * 8 / SUMS : 0;

    return 2 * LAUNCH + MAX(work, least) + sums;
}

static void take_better(struct cut *best, const struct gemm *g, enum tile tile, int64_t shares)
{
    const int64_t room = (g->m * g->k + g->k * g->n) / (g->m * g->n);
    const struct cut c = cut_in(g, tile, shares);

    if (c.most <= room && time_of(g, tile, &c) < time_of(g, tile, best))
        *best = c;
}

/* A share for each tile; or some for each, as many as there are units for; or one for each unit, across
 * tiles: what takes the least time.  All sums take no more room than A and B.                       */
static struct cut cut_of(const struct gemm *g, enum tile tile)
{
    const int64_t tiles_n = VN_CEIL_DIV(g->n, BLK_N) * g->batches;
    struct cut best = cut_in(g, tile, tiles_n);
    const int64_t units = g->units / best.panels;

    for (int64_t some = units / tiles_n; some > 1; some--)
        take_better(&best, g, tile, some * tiles_n);
    take_better(&best, g, tile, units);
    return best;
}

static double time_in(const struct gemm *g, enum tile tile)
{
    const struct cut c = cut_of(g, tile);

    return time_of(g, tile, &c);
}

/* That of gemm_skinny_mma, as measured: it takes up to 64 rows. */
static double time_skinny(const struct gemm *g)
{
    return 6 + (double)g->k * (double)g->n * (double)g->batches * (1 + 0.031 * (double)g->m) * 1e-6;
}

static const char *pays(const struct gemm *problem, enum tile tile)
{
    const struct gemm g = vn__gemm_few_rows(problem);
    const double time = time_in(&g, tile);

    if (g.m <= 24 || g.n < 512 || g.k < 512)
        return "M or N is up to 24, or K or N below 512: there is little to multiply";
    for (int t = 0; t < TILE_COUNT; t++)
        if (time_in(&g, (enum tile)t) < time)
            return "tiles of another size are done sooner";
    if (g.m <= 64 && time_skinny(&g) <= time)
        return "gemm_skinny_mma reads B in that time";
    if (g.m > MOST)
        return "M and N are above 2048: tiles of gemm_split are larger";
    if (vn__time_split(problem) <= time)
        return "splitting B first, or a pack of it, costs less than splitting it for each tile";
    if (vn__time_fma(problem) <= time)
        return "multiply-adds are done sooner";
    return NULL;
}

const char *vn__pays_split_rows_64(const void *problem, const struct vn_facts *f)
{
    (void)f;
    return pays(problem, TILE_64);
}

const char *vn__pays_split_rows_128(const void *problem, const struct vn_facts *f)
{
    (void)f;
    return pays(problem, TILE_128);
}

/* ---- launches ----------------------------------------------------------------------- */

/* The workspace has the map of B, then the sums of shares of tiles, then A's parts. */
struct plan {
    struct gemm    g;
    struct vn_side a;
    struct cut     cut;
    size_t         bytes;
};

/* 0 if a size overflows. */
static int plan_of(struct plan *plan, const struct gemm *problem, const int *p)
{
    struct gemm *const g = &plan->g;
    int64_t sums;

    *g = vn__gemm_few_rows(problem);
    plan->cut = cut_of(g, p[BLK_M] == tiles[TILE_64].m ? TILE_64 : TILE_128);
    if (!vn__mul(&sums, plan->cut.most * (int64_t)sizeof(float), g->batches * g->m * g->n) ||
        !vn__split_lay_out(&plan->a, &g->a, p[BLK_M], PAIR) || vn__split_bytes(&plan->a) > SIZE_MAX / 4)
        return 0;
    plan->bytes = VN_CEIL_DIV(MAP_BYTES + (size_t)sums, ALIGNED) * ALIGNED;
    plan->a.view[7] = (int64_t)(plan->bytes / VN_SPLIT_UNIT);
    plan->bytes += vn__split_bytes(&plan->a);
    return 1;
}

size_t vn__workspace_split_rows(const void *problem, const int *p)
{
    struct plan plan;

    return plan_of(&plan, problem, p) ? plan.bytes : SIZE_MAX;
}

/* A's parts, and the map of B. */
static vn_status prepare(vn_queue *q, const struct vn_choice *it, const struct plan *plan, vn_buffer *room)
{
    const struct gemm *g = &plan->g;
    struct vn_launch l;
    const vn_status s = vn__split_launch(&l, &plan->a, room, SPLIT_K);

    if (s)
        return s;
    vn__arg_int(&l, l.groups[0]);
    l.groups[0]++;                              /* the one that makes the map */
    vn__arg_int(&l, g->n);
    vn__arg_int(&l, g->batches);
    vn__arg_tensor(&l, &g->b);
    vn__arg_buffer(&l, room);
    return vn__launch(q, it, 0, &l);
}

/* How it is shared out, where the sums are, and what ends each kernel. */
static void finish_args(struct vn_launch *l, const struct plan *plan, vn_buffer *room)
{
    vn__arg_int(l, plan->g.batches);
    vn__arg_int(l, plan->cut.tiles * plan->cut.pairs / plan->cut.shares);
    vn__arg_int(l, plan->cut.tiles * plan->cut.pairs % plan->cut.shares);
    vn__arg_buffer(l, room);
    vn__arg_int(l, SUMS_START);
    vn__gemm_output(l, &plan->g);
}

static vn_status multiply(vn_queue *q, const struct vn_choice *it, const struct plan *plan, vn_buffer *room)
{
    const struct gemm *g = &plan->g;
    struct vn_launch l = { .groups = { plan->cut.shares * plan->cut.panels, 1, 1 }, .items = 3 * 128 };

    vn__gemm_sizes(&l, g);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, VN_F32, g->alpha);
    vn__arg_tensor(&l, &g->a);
    vn__arg_tensor(&l, &g->b);
    vn__arg_buffer(&l, room);
    vn__arg_view(&l, plan->a.view);
    vn__arg_buffer(&l, room);
    vn__arg_int(&l, g->b.rank == 3 && g->b.stride[0]);
    finish_args(&l, plan, room);
    return vn__launch(q, it, 1, &l);
}

static vn_status add_shares(vn_queue *q, const struct vn_choice *it, const struct plan *plan, vn_buffer *room)
{
    const struct gemm *g = &plan->g;
    struct vn_launch l = { .groups = { plan->cut.tiles * VN_CEIL_DIV(g->m, 8), 1, 1 }, .items = 2 * BLK_N };

    vn__gemm_sizes(&l, g);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, VN_F32, g->alpha);
    finish_args(&l, plan, room);
    return vn__launch(q, it, 2, &l);
}

vn_status vn__run_split_rows(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    struct plan plan;
    vn_buffer *room;
    int64_t most;
    vn_status s;

    if (!plan_of(&plan, problem, it->p) || !vn__mul(&most, plan.cut.tiles, MAX(plan.cut.pairs, plan.g.m)) ||
        most > INT_MAX || plan.cut.shares * plan.cut.panels > INT_MAX)
        return vn__fail(VN_UNSUPPORTED, "C has %lld tiles of %d x %d in %lld slices; %s counts to %d",
                        (long long)(plan.cut.tiles * plan.cut.panels), it->p[BLK_M], BLK_N,
                        (long long)(2 * plan.cut.pairs), it->variant->name, INT_MAX);
    if ((s = vn__workspace(&room, q, plan.bytes)) || (s = prepare(q, it, &plan, room)) ||
        (s = multiply(q, it, &plan, room)) || !is_cut(&plan.cut))
        return s;
    return add_shares(q, it, &plan, room);
}
