/* SPDX-License-Identifier: Apache-2.0
 *
 * skinny.c - the variants gemm_skinny, gemm_skinny_mma and gemm_skinny_lines: M or N small, on GPUs (see
 * cl/gemm/skinny.cl).
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "gemm.h"

enum { ITEMS_K, ITEMS_N, THR_N, DEPTH_K, DEPTH_N, FILL, LANES, SPLIT };     /* parameters of gemm_skinny */
enum { LINES_ITEMS, LINES_GROUPS, LINES_ROOM, LINES_FILL, LINES_SPLIT };      /* of gemm_skinny_lines, _16 */
enum { MMA_ITEMS, MMA_TILES_16, MMA_TILES_64, MMA_ROOM, MMA_DEPTH_K, MMA_DEPTH_N, MMA_FILL, MMA_SPLIT };
enum { MOST = INT_MAX - 4096, PAYS_K = 64, SPAN = 64, LONG = 4096 };

/* ---- the problem, seen so that A is the small one ------------------------------- */

/* Numbers in 16 bytes. */
static int piece(const struct gemm *g)
{
    return 16 / (int)vn_type_bytes(g->head.type);
}

/* The steps of a matrix from number to number and from line to line, and of its batches, keep
 * pieces whole: each begins at a multiple of 16 bytes.                                       */
static int is_whole(const vn_tensor *t, int64_t step, int64_t line, int pieces)
{
    int whole = step == 1 && line % pieces == 0 && t->start % pieces == 0;

    for (int i = 0; i < t->rank - 2; i++)
        whole &= t->stride[i] % pieces == 0;
    return whole;
}

static int is_along_k(const struct gemm *g)
{
    return g->n == 1 || (g->k > 1 && vn__row(&g->b) <= vn__col(&g->b));
}

/* Rows of A hold whole pieces of so many numbers. */
static int is_aligned_a(const struct gemm *g, int pieces)
{
    return is_whole(&g->a, vn__col(&g->a), g->m > 1 ? vn__row(&g->a) : 0, pieces);
}

static int is_aligned_b(const struct gemm *g)
{
    if (is_along_k(g))
        return is_whole(&g->b, vn__row(&g->b), g->n > 1 ? vn__col(&g->b) : 0, piece(g));
    return g->n % piece(g) == 0 && is_whole(&g->b, vn__col(&g->b), g->k > 1 ? vn__row(&g->b) : 0, piece(g));
}

/* Rows of A for a work-group, a power of two: all of them, or as many as registers hold sums of. */
static int rows_of(const struct gemm *g, int least, int most)
{
    int rows = least;

    while (rows < g->m && rows < most)
        rows *= 2;
    return rows;
}

/* ---- the two engines ---------------------------------------------------------------- */

/* What the kernels differ in for the host.  A strand is an item, or a warp that multiplies together. */
struct engine {
    int rows;                     /* of A, for a work-group */
    int items, strands;           /* in a work-group */
    int columns;                  /* of B, for a strand */
    int depth;                    /* of K, that a strand reads before it waits for the first of it */
    int across, apart;            /* at least so many strands share a column, and lie side by side */
    int fill;                     /* work-groups wanted for each unit */
    int split;                    /* KiB of B that a work-group reads before parts of it gain more than they cost */
    int slots;                    /* items of a tile's parts meet in slots; else a second launch adds parts */
    int enough;                   /* items for each unit whose reads keep the memory busy */
    int shaped;                   /* the kernel knows the size of its tile */
};

static struct engine fma_engine(const struct gemm *g, const int *p)
{
    const int along_k = is_along_k(g), columns = along_k ? 4 : piece(g);
    const int most = 64 / columns / (g->head.type == VN_F64 ? 2 : 1);

    return (struct engine){
        .rows    = rows_of(g, 1, most < 16 ? most : 16),
        .items   = p[along_k ? ITEMS_K : ITEMS_N],
        .strands = p[along_k ? ITEMS_K : ITEMS_N],
        .columns = along_k ? p[THR_N] : piece(g),
        .depth   = along_k ? p[DEPTH_K] * piece(g) : p[DEPTH_N] * p[THR_N],
        .across  = along_k ? 8 : 1,
        .apart   = along_k ? 1 : p[LANES],
        .fill    = p[FILL],
        .split   = p[SPLIT],
        .enough  = 256,
    };
}

/* Registers hold sums of 64 rows, in tiles of 8; above 48 and below there are no others. */
static int mma_rows_of(const struct gemm *g)
{
    return g->m > 48 ? 64 : (int)VN_CEIL_DIV(g->m, 8) * 8;
}

static struct engine mma_engine(const struct gemm *g, const int *p)
{
    const int along_k = is_along_k(g);

    return (struct engine){
        .rows    = mma_rows_of(g),
        .items   = p[MMA_ITEMS],
        .strands = p[MMA_ITEMS] / 32,
        .columns = along_k ? 16 * p[g->m > 16 ? MMA_TILES_64 : MMA_TILES_16] : 8 * piece(g),
        .depth   = along_k ? p[MMA_DEPTH_K] * 4 * piece(g) : p[MMA_DEPTH_N] * 16,
        .across  = 1,
        .apart   = 1,
        .fill    = p[MMA_FILL],
        .split   = p[MMA_SPLIT],
        .slots   = 1,
        .enough  = 192,
    };
}

/* Does the second-level cache hold B, from one product to the next? */
static int is_near(const struct gemm *g)
{
    return (double)g->n * (double)g->k * (double)g->batches * (double)vn_type_bytes(g->head.type) <= VN_CACHE;
}

/* Rows in whole fragments. */
static int lines_rows_of(const struct gemm *g)
{
    return g->m > 16 ? 32 : g->m > 8 ? 16 : 8;
}

static struct engine lines_engine(const struct gemm *g, const int *p)
{
    return (struct engine){
        .rows    = lines_rows_of(g),
        .items   = p[LINES_ITEMS],
        .strands = p[LINES_ITEMS] / 32,
        .columns = 8 * p[LINES_GROUPS],
        .depth   = SPAN,
        .across  = p[LINES_ITEMS] / 32,
        .apart   = 1,
        .fill    = p[LINES_FILL],
        .split   = p[LINES_SPLIT],
        .slots   = 1,
        .enough  = 192,
        .shaped  = 1,
    };
}

/* ---- fits -------------------------------------------------------------------------- */

static const char *fits(const struct gemm *g, int along_k, int rows, int rows_wanted)
{
    if (g->math == VN_MATH_BITWISE)
        return "it sums in another order than VN_MATH_BITWISE promises";
    if (g->m > MOST || g->n > MOST || g->k > MOST || g->batches > MOST)
        return "M, N, K and the batches must stay below 2^31";
    if (is_along_k(g) != along_k)
        return along_k ? "it needs a large operand that runs along K"
                       : "it needs a large operand that runs across K";
    if (rows != rows_wanted)
        return "it has another number of rows in registers than the small operand";
    return NULL;
}

static const char *fits_fma(const struct gemm *problem, int along_k, int rows)
{
    static const int p[VN_PARAMS] = { 64, 64, 4, 1, 1, 1, 1 };     /* rows are the same with any */
    const struct gemm g = vn__gemm_few_rows(problem);

    return fits(&g, along_k, rows, fma_engine(&g, p).rows);
}

static const char *fits_mma(const struct gemm *problem, const struct vn_facts *f, int along_k, int rows)
{
    const struct gemm g = vn__gemm_few_rows(problem);

    if (strcmp(f->family, "nvidia") || strncmp(f->arch, "sm_", 3) || atoi(f->arch + 3) < 80)
        return "it needs an NVIDIA GPU of sm_80 or above, for mma.sync";
    if (g.head.type == VN_F64)
        return "it needs f32, f16 or bf16";
    if (!is_aligned_b(&g) || (along_k && g.k % piece(&g)))
        return "lines of the large operand need to begin and end at multiples of 16 bytes";
    return fits(&g, along_k, rows, mma_rows_of(&g));
}

static const char *fits_lines(const struct gemm *problem, const struct vn_facts *f, int rows)
{
    const struct gemm g = vn__gemm_few_rows(problem);

    if (strcmp(f->family, "nvidia") || strncmp(f->arch, "sm_", 3) || atoi(f->arch + 3) < 80)
        return "it needs an NVIDIA GPU of sm_80 or above, for mma.sync";
    if (g.head.type != VN_F16 && g.head.type != VN_BF16)
        return "it needs f16 or bf16";
    if (!is_aligned_a(&g, piece(&g)) || !is_aligned_b(&g) || g.k % piece(&g))
        return "lines along K need to begin and end at multiples of 16 bytes";
    return fits(&g, 1, rows, lines_rows_of(&g));
}

#define FITS(along, along_k, rows)                                                          \
    const char *vn__fits_skinny_##along##rows(const void *problem, const struct vn_facts *f) \
    {                                                                                       \
        (void)f;                                                                            \
        return fits_fma(problem, along_k, rows);                                            \
    }
#define FITS_MMA(along, along_k, rows)                                                      \
    const char *vn__fits_skinny_mma_##along##rows(const void *problem, const struct vn_facts *f) \
    {                                                                                       \
        return fits_mma(problem, f, along_k, rows);                                         \
    }
#define FITS_LINES(rows)                                                                    \
    const char *vn__fits_skinny_lines_##rows(const void *problem, const struct vn_facts *f) \
    {                                                                                       \
        return fits_lines(problem, f, rows);                                                \
    }
FITS_LINES(8) FITS_LINES(16) FITS_LINES(32)
FITS(k, 1, 1) FITS(k, 1, 2) FITS(k, 1, 4) FITS(k, 1, 8) FITS(k, 1, 16)
FITS(n, 0, 1) FITS(n, 0, 2) FITS(n, 0, 4) FITS(n, 0, 8) FITS(n, 0, 16)
FITS_MMA(k, 1, 8) FITS_MMA(k, 1, 16) FITS_MMA(k, 1, 24) FITS_MMA(k, 1, 32) FITS_MMA(k, 1, 40) FITS_MMA(k, 1, 48)
FITS_MMA(k, 1, 64)
FITS_MMA(n, 0, 8) FITS_MMA(n, 0, 16) FITS_MMA(n, 0, 24) FITS_MMA(n, 0, 32) FITS_MMA(n, 0, 40) FITS_MMA(n, 0, 48)
FITS_MMA(n, 0, 64)

static const char *pays(const struct gemm *g, int least, int most)
{
    if (g->m < least)
        return "there are too few rows to need a matrix engine";
    if (g->m > most)
        return "M and N are too large: tiles in local memory pay better";
    if (g->k < PAYS_K)
        return "K is below 64: there is little to read";
    return NULL;
}

/* Where f16, bf16 and f64 have a matrix engine, more rows are for that. */
const char *vn__pays_skinny(const void *problem, const struct vn_facts *f)
{
    static const char *const gpus[] = { "nvidia", "amd", "intel" };
    const struct gemm g = vn__gemm_few_rows(problem);
    const int most = strcmp(f->family, "nvidia") || g.head.type == VN_F32 ? 32 : g.head.type == VN_F64 ? 4 : 16;
    int is_gpu = 0;

    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
        is_gpu |= !strcmp(f->family, gpus[i]);
    return is_gpu ? pays(&g, 1, most) : "the device is no GPU that it is known to pay on";
}

/* Below the least, multiply-adds keep up with the memory; above the most, larger tiles do. */
const char *vn__pays_skinny_mma(const void *problem, const struct vn_facts *f)
{
    const struct gemm g = vn__gemm_few_rows(problem);
    const int is_f32 = g.head.type == VN_F32, along_k = is_along_k(&g);
    const int most = is_f32 ? 64 : along_k && is_near(&g) ? 32 : 16;

    if (!vn__fits_split(problem, f) && vn__gains_split_packed(problem))
        return "B is packed for gemm_split, whose tiles keep the device busy";
    return pays(&g, is_f32 ? (along_k ? 4 : 2) : (along_k ? 2 : 1), most);
}

/* With more than 16 rows of a B that comes from memory, larger tiles do as well. */
const char *vn__pays_skinny_lines(const void *problem, const struct vn_facts *f)
{
    const struct gemm g = vn__gemm_few_rows(problem);

    (void)f;
    return pays(&g, 1, is_near(&g) ? 32 : 16);
}

/* Tiles of 16 columns: more of them read from memory at any time; and if a round has room for all, K is in half as
 * many parts.  Else they would read A twice as often for nothing.                                          */
const char *vn__pays_skinny_lines_16(const void *problem, const struct vn_facts *f)
{
    const struct gemm g = vn__gemm_few_rows(problem);

    if (is_near(&g) && VN_CEIL_DIV(g.n, 16) * g.batches > f->units)
        return "tiles of 32 columns read A half as often";
    return vn__pays_skinny_lines(problem, f);
}

/* ---- how the work is shared out ---------------------------------------------------- */

struct plan {
    int64_t across, wide;         /* strands that share a column; columns of a work-group */
    int64_t tiles_m, tiles_n;
    int64_t parts, span;          /* of K */
};

/* Of the device, what is busy until the last round of work-groups ends. */
static double busy(const struct gemm *g, int64_t groups)
{
    return (double)groups / (double)(VN_CEIL_DIV(groups, g->units) * g->units);
}

/* More strands to a column make more work-groups: until there are about FILL for each unit, and their
 * last round is not almost empty, or a strand would have nothing to read ahead.  Where none does, the
 * one that leaves the least idle.                                                               */
static int64_t across_of(const struct gemm *g, const struct engine *e, int64_t tiles_m, int64_t wanted)
{
    int64_t best = e->across;
    double most = 0;

    for (int64_t across = best; e->strands / across >= e->apart; across *= 2) {
        const int64_t wide = e->strands / across * e->columns;
        const int64_t groups = tiles_m * VN_CEIL_DIV(g->n, wide) * g->batches;

        if (2 * g->n <= wide || busy(g, groups) >= most) {
            most = busy(g, groups);
            best = across;
        }
        if (2 * g->n > wide && ((10 * groups >= 9 * wanted && most >= 0.8) || g->k < 2 * across * e->depth))
            break;
    }
    return best;
}

/* A work-group reads so much that parts of it gain more than it costs to add them; where most of the
 * device would idle, half of that will do.                                                    */
static int is_worth_parts(const struct gemm *g, const struct engine *e, int64_t groups, int64_t share)
{
    return share * (4 * groups < g->units ? 2 : 1) >= (int64_t)e->split << 10;
}

/* Parts make up for work-groups that are missing; one less, if the unit with the most work-groups then ends
 * sooner.  Where K is very long, and what parts cost no matter, four work-groups to a unit.            */
static int64_t parts_of(const struct gemm *g, int64_t groups, int64_t wanted, int64_t most)
{
    const int64_t more = VN_CEIL_DIV(4 * (int64_t)g->units, groups), deep = more < g->k / LONG ? more : g->k / LONG;
    int64_t parts = VN_CEIL_DIV(wanted, groups);

    parts = parts < most ? parts : most;
    if (parts > 1 && VN_CEIL_DIV(groups * (parts - 1), g->units) * parts <=
                     VN_CEIL_DIV(groups * parts, g->units) * (parts - 1))
        parts--;
    return parts > deep ? parts : deep;
}

static struct plan plan_of(const struct gemm *g, const struct engine *e)
{
    const int64_t wanted = (int64_t)e->fill * g->units;
    struct plan plan = { .tiles_m = VN_CEIL_DIV(g->m, e->rows), .parts = 1, .span = g->k };
    int64_t groups, most, share;

    plan.across  = across_of(g, e, plan.tiles_m, wanted);
    plan.wide    = e->strands / plan.across * e->columns;
    plan.tiles_n = VN_CEIL_DIV(g->n, plan.wide);
    groups = plan.tiles_m * plan.tiles_n * g->batches;
    most   = g->k / (plan.across * e->depth);
    share  = g->n * g->k / plan.tiles_n * (int64_t)vn_type_bytes(g->head.type);
    if (groups * e->items < (int64_t)g->units * e->enough && most > 1 && is_worth_parts(g, e, groups, share)) {
        const int64_t room = 1 + 2 * VN_SLOTS / (groups * e->rows * plan.wide);
        const int64_t parts = parts_of(g, groups, wanted, most);

        plan.span  = VN_CEIL_DIV(VN_CEIL_DIV(g->k, e->slots && parts > room ? room : parts), SPAN) * SPAN;
        plan.parts = VN_CEIL_DIV(g->k, plan.span);
    }
    return plan;
}

/* K is split only where there are few work-groups: this cannot overflow. */
static size_t workspace(const struct gemm *g, const struct plan *plan)
{
    const int64_t bytes = g->head.type == VN_F64 ? 8 : 4;

    return plan->parts > 1 ? (size_t)(g->batches * plan->parts * g->m * g->n * bytes) : 0;
}

size_t vn__workspace_skinny(const void *problem, const int *p)
{
    const struct gemm g = vn__gemm_few_rows(problem);
    const struct engine e = fma_engine(&g, p);
    const struct plan plan = plan_of(&g, &e);

    return workspace(&g, &plan);
}

/* ---- launches ---------------------------------------------------------------------- */

static vn_status too_many(const struct vn_choice *it)
{
    return vn__fail(VN_UNSUPPORTED, "%s takes at most %d work-groups", it->variant->name, INT_MAX);
}

/* aligned: what the engine can read in pieces */
static vn_status run(vn_queue *q, const struct vn_choice *it, const struct gemm *g, const struct engine *e,
                     int aligned)
{
    const struct plan plan = plan_of(g, e);
    struct vn_launch l = { .groups = { 1, plan.parts, 1 }, .items = e->items };
    const size_t bytes = e->slots ? 0 : workspace(g, &plan);
    vn_buffer *sums = g->c.buffer;                          /* where there are no parts: any buffer */
    vn_status s;

    if (!vn__mul(&l.groups[0], plan.tiles_m * plan.tiles_n, g->batches) || l.groups[0] > INT_MAX)
        return too_many(it);
    if (bytes && (s = vn__workspace(&sums, q, bytes)))
        return s;
    if (e->slots && plan.parts > 1 && (s = vn__slots(&sums, q)))
        return s;
    vn__gemm_sizes(&l, g);
    if (!e->shaped) {
        vn__arg_int(&l, plan.across);
        vn__arg_int(&l, plan.wide);
        vn__arg_int(&l, aligned);
    }
    vn__arg_int(&l, plan.span);
    vn__arg_int(&l, plan.parts);
    vn__arg_int(&l, g->batches);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__gemm_inputs(&l, g);
    vn__arg_buffer(&l, sums);
    vn__gemm_output(&l, g);
    if ((s = vn__launch(q, it, 0, &l)) || plan.parts == 1 || e->slots)
        return s;
    return vn__add_parts(q, it, 1, e->items, g, sums, 0, plan.parts);
}

vn_status vn__run_skinny(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct gemm g = vn__gemm_few_rows(problem);
    const struct engine e = fma_engine(&g, it->p);

    return run(q, it, &g, &e, is_aligned_b(&g) && (!is_along_k(&g) || is_aligned_a(&g, piece(&g))));
}

vn_status vn__run_skinny_mma(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct gemm g = vn__gemm_few_rows(problem);
    const struct engine e = mma_engine(&g, it->p);

    return run(q, it, &g, &e, is_aligned_a(&g, is_along_k(&g) ? piece(&g) : 4));
}

vn_status vn__run_skinny_lines(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct gemm g = vn__gemm_few_rows(problem);
    const struct engine e = lines_engine(&g, it->p);

    return run(q, it, &g, &e, 1);
}
