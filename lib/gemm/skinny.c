/* SPDX-License-Identifier: Apache-2.0
 *
 * skinny.c - the variants gemm_skinny, gemm_skinny_mma and gemm_skinny_rows: M or N small, on GPUs (see
 * cl/gemm/skinny.cl).
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "gemm.h"

enum { ITEMS_K, ITEMS_N, THR_N, DEPTH_K, DEPTH_N, FILL, LANES, SPLIT };     /* parameters of gemm_skinny */
enum { ROWS_ITEMS, ROWS_GROUPS, ROWS_ROOM, ROWS_FILL, ROWS_SPLIT };         /* of gemm_skinny_rows */
enum { MMA_ITEMS, MMA_TILES_16, MMA_TILES_64, MMA_ROOM, MMA_DEPTH_K, MMA_DEPTH_N, MMA_FILL, MMA_SPLIT };
enum { EFF, MEMORY, FIXED_NS, GROUP_NS, ODD_C, C, STEP_NS, LEVEL_NS, ODD_A, EFF_N, MEMORY_N, ODD_A_N,
       SLICE_NS };                                                              /* their costs */
enum { TURNED_NS = ODD_A };                     /* ... of gemm_skinny_rows, behind LEVEL_NS */
enum { SPAN = 64, LONG = 4096 };

/* ---- the problem, seen so that A is the small one ------------------------------- */

/* Elements in a 16-byte vector. */
static int vector_of(const struct gemm *g)
{
    return 16 / (int)vn_type_bytes(g->head.type);
}

/* The strides of a matrix from element to element and from row to row, and of its batches, keep vectors
 * whole: each begins at a multiple of 16 bytes.                                                      */
static int is_whole(const vn_tensor *t, int64_t step, int64_t row, int vector)
{
    int whole = step == 1 && row % vector == 0 && t->start % vector == 0;

    for (int i = 0; i < t->rank - 2; i++)
        whole &= t->stride[i] % vector == 0;
    return whole;
}

static int is_k_major(const struct gemm *g)
{
    return g->n == 1 || (g->k > 1 && vn__row(&g->b) <= vn__col(&g->b));
}

/* Rows of A hold whole vectors of so many elements. */
static int is_aligned_a(const struct gemm *g, int vector)
{
    return is_whole(&g->a, vn__col(&g->a), g->m > 1 ? vn__row(&g->a) : 0, vector);
}

static int is_aligned_b(const struct gemm *g)
{
    if (is_k_major(g))
        return is_whole(&g->b, vn__row(&g->b), g->n > 1 ? vn__col(&g->b) : 0, vector_of(g));
    return g->n % vector_of(g) == 0 &&
           is_whole(&g->b, vn__col(&g->b), g->k > 1 ? vn__row(&g->b) : 0, vector_of(g));
}

/* Rows of A for a work-group, a power of two: all of them, or as many as registers hold sums of. */
static int rows_of(const struct gemm *g, int most)
{
    int rows = 1;

    while (rows < g->m && rows < most)
        rows *= 2;
    return rows;
}

static int fma_rows_of(const struct gemm *g)
{
    const int most = 64 / (is_k_major(g) ? 4 : vector_of(g)) / (g->head.type == VN_F64 ? 2 : 1);

    return rows_of(g, most < 16 ? most : 16);
}

/* Registers hold sums of 64 rows, in tiles of 8; above 48 and below there are no others. */
static int mma_rows_of(const struct gemm *g)
{
    return g->m > 48 ? 64 : (int)VN_CEIL_DIV(g->m, 8) * 8;
}

/* Rows in whole fragments. */
static int fragment_rows_of(const struct gemm *g)
{
    return g->m > 16 ? 32 : g->m > 8 ? 16 : 8;
}

/* ---- the engines --------------------------------------------------------------------- */

/* Per-kernel launch parameters.  A lane group is one work-item (multiply-adds) or one warp (mma). */
struct engine {
    int rows;                     /* of A, for a work-group */
    int items, lanes;             /* in a work-group: work-items, lane groups */
    int columns;                  /* of B, for a lane group */
    int depth;                    /* of K, that a lane group has in flight */
    int across, apart;            /* at least so many lane groups share a column, and lie side by side */
    int fill;                     /* work-groups wanted for each unit */
    int split;                    /* KiB of B that a work-group reads before splits of it gain more
                                     than they cost */
    int slots;                    /* splits of a tile meet in exchange slots; else a second
                                     launch adds them */
    int enough;                   /* items for each unit whose reads keep the memory busy */
    int shaped;                   /* the kernel knows the size of its tile */
    int passes;                   /* in which sums of sliced-K go through local memory, where a work-item
                                     adds them one after the other; else 0 */
};

static struct engine fma_engine(const struct gemm *g, const int *p)
{
    enum { AT_A_TIME = 64 };                    /* bytes of sums of a work-item, as in the kernel's text */
    const int k_major = is_k_major(g), columns = k_major ? p[THR_N] : vector_of(g);
    const int rows = fma_rows_of(g), sums = rows * columns * (g->head.type == VN_F64 ? 8 : 4);

    return (struct engine){
        .rows    = rows,
        .passes  = (int)VN_CEIL_DIV(sums, AT_A_TIME),
        .items   = p[k_major ? ITEMS_K : ITEMS_N],
        .lanes   = p[k_major ? ITEMS_K : ITEMS_N],
        .columns = columns,
        .depth   = k_major ? p[DEPTH_K] * vector_of(g) : p[DEPTH_N] * p[THR_N],
        .across  = k_major ? 8 : 1,
        .apart   = k_major ? 1 : p[LANES],
        .fill    = p[FILL],
        .split   = p[SPLIT],
        .enough  = 256,
    };
}

static struct engine mma_engine(const struct gemm *g, const int *p)
{
    const int k_major = is_k_major(g);

    return (struct engine){
        .rows    = mma_rows_of(g),
        .items   = p[MMA_ITEMS],
        .lanes   = p[MMA_ITEMS] / 32,
        .columns = k_major ? 16 * p[g->m > 16 ? MMA_TILES_64 : MMA_TILES_16] : 8 * vector_of(g),
        .depth   = k_major ? p[MMA_DEPTH_K] * 4 * vector_of(g) : p[MMA_DEPTH_N] * 16,
        .across  = 1,
        .apart   = 1,
        .fill    = p[MMA_FILL],
        .split   = p[MMA_SPLIT],
        .slots   = 1,
        .enough  = 192,
    };
}

static struct engine rows_engine(const struct gemm *g, const int *p)
{
    return (struct engine){
        .rows    = fragment_rows_of(g),
        .items   = p[ROWS_ITEMS],
        .lanes   = p[ROWS_ITEMS] / 32,
        .columns = 8 * p[ROWS_GROUPS],
        .depth   = SPAN,
        .across  = p[ROWS_ITEMS] / 32,
        .apart   = 1,
        .fill    = p[ROWS_FILL],
        .split   = p[ROWS_SPLIT],
        .slots   = 1,
        .enough  = 192,
        .shaped  = 1,
    };
}

/* ---- fits -------------------------------------------------------------------------- */

static const char *fits_all(const struct gemm *g)
{
    const char *why = vn__fits_order(g);

    return why ? why : vn__fits_sizes(g);
}

const char *vn__fits_skinny(const void *problem, const struct vn_facts *f)
{
    static const char *const gpus[] = { "nvidia", "amd", "intel" };
    int is_gpu = 0;

    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
        is_gpu |= !strcmp(f->family, gpus[i]);
    return is_gpu ? fits_all(problem) : "the device is no GPU that it is known to pay on";
}

const char *vn__fits_skinny_mma(const void *problem, const struct vn_facts *f)
{
    const struct gemm g = vn__gemm_few_rows(problem);

    if (vn__sm(f) < 80)
        return "it needs an NVIDIA GPU of sm_80 or above, for mma.sync";
    if (g.head.type == VN_F64)
        return "it needs f32, f16 or bf16";
    if (!is_aligned_b(&g) || (is_k_major(&g) && g.k % vector_of(&g)))
        return "rows of the large operand must begin and end at multiples of 16 bytes";
    return fits_all(&g);
}

const char *vn__fits_skinny_rows(const void *problem, const struct vn_facts *f)
{
    const struct gemm g = vn__gemm_few_rows(problem);

    if (vn__sm(f) < 80)
        return "it needs an NVIDIA GPU of sm_80 or above, for mma.sync";
    if (g.head.type != VN_F16 && g.head.type != VN_BF16)
        return "it needs f16 or bf16";
    if (!is_k_major(&g))
        return "the large operand must be K-major";
    if (!is_aligned_a(&g, vector_of(&g)) || !is_aligned_b(&g) || g.k % vector_of(&g))
        return "rows along K must begin and end at multiples of 16 bytes";
    return fits_all(&g);
}

void vn__constants_skinny(int *c, const void *problem)
{
    const struct gemm g = vn__gemm_few_rows(problem);

    c[0] = is_k_major(&g);
    c[1] = fma_rows_of(&g);
}

void vn__constants_skinny_mma(int *c, const void *problem)
{
    const struct gemm g = vn__gemm_few_rows(problem);

    c[0] = is_k_major(&g);
    c[1] = mma_rows_of(&g);
}

void vn__constants_skinny_rows(int *c, const void *problem)
{
    const struct gemm g = vn__gemm_few_rows(problem);

    c[0] = fragment_rows_of(&g);
}

/* ---- plans -------------------------------------------------------------------------- */

struct shape {
    int64_t across, wide;         /* lane groups that share a column; columns of a work-group */
    int64_t tiles_m, tiles_n;
    int64_t splits, span;         /* of K */
};

/* Of the device, what is busy until the last wave of work-groups ends. */
static double busy(int units, int64_t groups)
{
    return (double)groups / (double)(VN_CEIL_DIV(groups, units) * units);
}

/* More lane groups to a column make more work-groups: until there are about FILL for each unit, and their
 * last wave is not almost empty, or a lane group would have nothing to read ahead.  Where none does, the one
 * that leaves the least idle.                                                                             */
static int64_t across_of(const struct gemm *g, const struct engine *e, int64_t tiles_m, int64_t wanted,
                         int units)
{
    int64_t best = e->across;
    double most = 0;

    for (int64_t across = best; e->lanes / across >= e->apart; across *= 2) {
        const int64_t wide = e->lanes / across * e->columns;
        const int64_t groups = tiles_m * VN_CEIL_DIV(g->n, wide) * g->batches;

        if (2 * g->n <= wide || busy(units, groups) >= most) {
            most = busy(units, groups);
            best = across;
        }
        if (2 * g->n > wide && ((10 * groups >= 9 * wanted && most >= 0.8) || g->k < 2 * across * e->depth))
            break;
    }
    return best;
}

/* A work-group reads so much that splits of it gain more than it costs to add them; where most of the
 * device would idle, half of that will do.                                                      */
static int is_worth_splits(const struct engine *e, int64_t groups, int64_t share, int units)
{
    return share * (4 * groups < units ? 2 : 1) >= (int64_t)e->split << 10;
}

/* Splits make up for work-groups that are missing; one less, if the unit with the most work-groups then ends
 * sooner.  Where K is very long, and what splits cost no matter, four work-groups to a unit.            */
static int64_t splits_of(const struct gemm *g, int64_t groups, int64_t wanted, int64_t most, int units)
{
    const int64_t more = VN_CEIL_DIV(4 * (int64_t)units, groups);
    const int64_t deep = more < g->k / LONG ? more : g->k / LONG;
    int64_t splits = VN_CEIL_DIV(wanted, groups);

    splits = splits < most ? splits : most;
    if (splits > 1 && VN_CEIL_DIV(groups * (splits - 1), units) * splits <=
                     VN_CEIL_DIV(groups * splits, units) * (splits - 1))
        splits--;
    return splits > deep ? splits : deep;
}

static struct shape shape_of(const struct gemm *g, const struct engine *e, int units)
{
    const int64_t wanted = (int64_t)e->fill * units;
    struct shape s = { .tiles_m = VN_CEIL_DIV(g->m, e->rows), .splits = 1, .span = g->k };
    int64_t groups, most, share;

    s.across  = across_of(g, e, s.tiles_m, wanted, units);
    s.wide    = e->lanes / s.across * e->columns;
    s.tiles_n = VN_CEIL_DIV(g->n, s.wide);
    groups = s.tiles_m * s.tiles_n * g->batches;
    most   = g->k / (s.across * e->depth);
    share  = g->n * g->k / s.tiles_n * (int64_t)vn_type_bytes(g->head.type);
    if (groups * e->items < (int64_t)units * e->enough && most > 1 &&
        is_worth_splits(e, groups, share, units)) {
        const int64_t room = 1 + 2 * VN_SLOTS / (groups * e->rows * s.wide);
        const int64_t splits = splits_of(g, groups, wanted, most, units);

        s.span   = VN_CEIL_DIV(VN_CEIL_DIV(g->k, e->slots && splits > room ? room : splits), SPAN) * SPAN;
        s.splits = VN_CEIL_DIV(g->k, s.span);
    }
    return s;
}

/* K is split only where there are few work-groups: this cannot overflow. */
static size_t sum_bytes(const struct gemm *g, const struct engine *e, const struct shape *s)
{
    const int64_t bytes = g->head.type == VN_F64 ? 8 : 4;

    return s->splits > 1 && !e->slots ? (size_t)(g->batches * s->splits * g->m * g->n * bytes) : 0;
}

/* Steps along K of a work-group, each of which waits for what it reads: STEP_NS for one, more for more rows,
 * four times as much more where gemm_skinny reads vectors of two K-major operands, for those of A wait for
 * each other; and more for vectors that are read element by element.                                       */
static double chain_of(const struct gemm *g, const struct engine *e, const struct shape *s, double odd,
                       const struct vn_row *row, const struct vn_site *site)
{
    const double groups = (double)(s->tiles_m * s->tiles_n * g->batches * s->splits);
    const double waves = ceil(groups / (site->facts->units * vn__resident(e->items)));
    const double steps = (double)s->span / (double)(s->across * e->depth);
    const int waits = !e->slots && is_k_major(g) && is_aligned_a(g, vector_of(g)) && is_aligned_b(g);

    return waves * steps * row->cost[STEP_NS] * 1e-9 * (1 + e->rows * (waits ? 4 : 1) / 8.0) / odd;
}

/* Splits that meet in exchange slots are added in pairs, level by level, with as many rows as there are. */
static double levels_of(int64_t splits, int rows)
{
    int levels = 0;

    while ((int64_t)1 << levels < splits)
        levels++;
    return levels * rows / 8.0;
}

/* Each tile of rows reads B; work-groups that are too few to keep the memory busy read so much slower.  An A
 * that is not read in vectors takes the engine's time, not the memory's.  A batch's divisions count twice:
 * these kernels divide for the tile, too, before they read.  Of operands that are read once, in order, the
 * second-level cache keeps more than of those that tiles read again.                                      */
static double seconds_of(const struct gemm *g, const struct engine *e, const struct shape *s, double peak,
                         const struct vn_row *row, const struct vn_site *site)
{
    const double kept = 0.75;
    const int *const cost = row->cost, by_n = !e->shaped && !is_k_major(g);
    const double l2 = site->rates->l2_gbps * 1e9, units = site->facts->units;
    const double groups = (double)(s->tiles_m * s->tiles_n * g->batches * s->splits);
    const double filled = groups * e->items / (units * e->enough), share = filled < 1 ? filled : 1;
    const double bytes = (double)vn_type_bytes(g->head.type) * (double)g->batches;
    const double b = (double)g->n * (double)g->k * bytes, c = (double)g->m * (double)g->n * bytes;
    const double memory = cost[by_n ? MEMORY_N : MEMORY] * share / 1000;
    const double odd = e->shaped || is_aligned_a(g, vector_of(g)) ? 1
                     : cost[by_n ? ODD_A_N : ODD_A] / 1000.0;
    const double waves = (double)VN_CEIL_DIV((int64_t)groups, site->facts->units);
    const int64_t step = e->shaped ? s->across * e->depth : 1;     /* of K: its warps take no less */
    const double span = (double)(VN_CEIL_DIV(s->span, step) * step);
    const double flops = 2.0 * e->rows * (double)s->wide * span * waves /
                         (peak * 1e6 * cost[by_n ? EFF_N : EFF] * odd);
    const double all = g->head.bytes + c * cost[C] / 1000 + vn__odd_c_bytes(g, cost[ODD_C]);
    const double read = all * vn__byte_seconds(kept * g->head.bytes, site) / memory +
                        (double)(s->tiles_m - 1) * b / (l2 * memory);
    const double added = (double)sum_bytes(g, e, s);
    const double aligned = e->shaped || (is_aligned_b(g) && is_aligned_a(g, vector_of(g)));

    if (cost[by_n ? EFF_N : EFF] <= 0 || memory <= 0 || odd <= 0 || peak <= 0)
        return 0;
    const double chain = chain_of(g, e, s, aligned ? 1 : cost[by_n ? ODD_A_N : ODD_A] / 1000.0, row, site);
    const double levels = e->slots ? levels_of(s->splits, e->rows) : s->splits > 1 ? (double)s->splits : 0;
    const double turned = e->shaped && vn__col(&g->c) != 1 ? cost[TURNED_NS] : 0;   /* C by columns */
    const double group  = cost[GROUP_NS] + turned;
    const double slices = s->across > 1 ? (double)(s->across * e->passes) : 0;

    return 2 * vn__batch_seconds(g, site) +
           (cost[FIXED_NS] + group * waves * e->rows / 8 + cost[LEVEL_NS] * levels +
            cost[SLICE_NS] * slices) * 1e-9 +
           vn__together(vn__together(read, flops), chain) +
           (added > 0 ? vn__launch_seconds(site) + 2 * added / l2 : 0);
}

static const char *plan(struct vn_plan *out, const struct gemm *g, const struct engine *e, double peak,
                        const struct vn_row *row, const struct vn_site *site)
{
    const struct shape s = shape_of(g, e, site->facts->units);

    out->seconds = seconds_of(g, e, &s, peak, row, site);
    out->workspace = sum_bytes(g, e, &s);
    memcpy(out->v, &s, sizeof s);
    return NULL;
}

const char *vn__plan_skinny(struct vn_plan *out, const void *problem, const struct vn_row *row,
                            const struct vn_site *site)
{
    const struct gemm g = vn__gemm_few_rows(problem);
    const struct engine e = fma_engine(&g, row->p);

    return plan(out, &g, &e, vn__fma_peak(&g, site), row, site);
}

/* f32 goes through the engine in three bf16 parts. */
const char *vn__plan_skinny_mma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                const struct vn_site *site)
{
    const struct gemm g = vn__gemm_few_rows(problem);
    const struct engine e = mma_engine(&g, row->p);

    return plan(out, &g, &e, site->rates->mma16 / (g.head.type == VN_F32 ? 6 : 1), row, site);
}

const char *vn__plan_skinny_rows(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                 const struct vn_site *site)
{
    const struct gemm g = vn__gemm_few_rows(problem);
    const struct engine e = rows_engine(&g, row->p);

    return plan(out, &g, &e, site->rates->mma16, row, site);
}

/* ---- launches ---------------------------------------------------------------------- */

/* aligned: what the engine can read in vectors */
static vn_status run(vn_queue *q, const struct vn_choice *it, const struct gemm *g, const struct engine *e,
                     const struct vn_plan *plan, int aligned)
{
    struct vn_launch l = { .groups = { 1, 1, 1 }, .items = e->items };
    vn_buffer *sums = g->c.buffer;                          /* where there are no splits: any buffer */
    struct shape s;
    vn_status status;

    memcpy(&s, plan->v, sizeof s);
    l.groups[1] = s.splits;
    if (!vn__mul(&l.groups[0], s.tiles_m * s.tiles_n, g->batches) || l.groups[0] > INT_MAX)
        return vn__gemm_too_many(it, s.tiles_m * s.tiles_n, e->rows, s.wide, INT_MAX);
    if (plan->workspace && (status = vn__workspace(&sums, q, plan->workspace)))
        return status;
    if (e->slots && s.splits > 1 && (status = vn__slots(&sums, q)))
        return status;
    vn__gemm_sizes(&l, g);
    if (!e->shaped) {
        vn__arg_int(&l, s.across);
        vn__arg_int(&l, s.wide);
        vn__arg_int(&l, aligned);
    }
    vn__arg_int(&l, s.span);
    vn__arg_int(&l, s.splits);
    vn__arg_int(&l, g->batches);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__gemm_inputs(&l, g);
    vn__arg_buffer(&l, sums);
    vn__gemm_output(&l, g);
    if ((status = vn__launch(q, it, 0, &l)) || !plan->workspace)
        return status;
    return vn__add_splits(q, it, 1, e->items, g, sums, 0, s.splits);
}

vn_status vn__run_skinny(vn_queue *q, const struct vn_choice *it, const void *problem,
                         const struct vn_plan *plan)
{
    const struct gemm g = vn__gemm_few_rows(problem);
    const struct engine e = fma_engine(&g, it->p);

    return run(q, it, &g, &e, plan, is_aligned_b(&g) && (!is_k_major(&g) || is_aligned_a(&g, vector_of(&g))));
}

vn_status vn__run_skinny_mma(vn_queue *q, const struct vn_choice *it, const void *problem,
                             const struct vn_plan *plan)
{
    const struct gemm g = vn__gemm_few_rows(problem);
    const struct engine e = mma_engine(&g, it->p);

    return run(q, it, &g, &e, plan, is_aligned_a(&g, is_k_major(&g) ? vector_of(&g) : 4));
}

vn_status vn__run_skinny_rows(vn_queue *q, const struct vn_choice *it, const void *problem,
                              const struct vn_plan *plan)
{
    const struct gemm g = vn__gemm_few_rows(problem);
    const struct engine e = rows_engine(&g, it->p);

    return run(q, it, &g, &e, plan, 1);
}
