/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu.c - products on CPUs: gemm_cpu.cl (panels), gemm_rank.cl and gemm_dot.cl (few rows).
 */
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "gemm.h"

/* What a work-group packs: a panel, along its lines; or, where neighbours in memory are of different lines, a
 * few of K of many panels, so that it reads whole pages: 64 MB in 8 ms on one core of Zen 4 instead of 17. */
enum { PACK_K = 1024, PACK_ROWS = 16, PACK_LINES = 4096 };

enum { SPLIT_FROM = 1 << 21, LEAST_B = 1 << 17, LEAST_ROWS = 4 };

/* Pieces that a core wants to find, and tiles in the least of them; bytes of B that are not worth a copy. */
enum { PIECES_EACH = 8, UNIT_TILES = 4, IN_PLACE_B = 1 << 18 };

/* ---- fits -------------------------------------------------------------------- */

const char *vn__fits_cpu(const void *problem, const struct vn_facts *f)
{
    if (strcmp(f->family, "cpu"))
        return "the device is no CPU";
    if (f->vector < 2)
        return "the device does not ask for explicit vectors";
    return vn__fits_gemm(problem, f);
}

const char *vn__fits_dot(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    if (g->math == VN_MATH_BITWISE)
        return "it sums in another order than VN_MATH_BITWISE promises";
    if ((vn__col(&g->a) != 1 || vn__row(&g->b) != 1) && g->k > 1)
        return "it needs rows of A and columns of B that run along memory";
    return vn__fits_cpu(problem, f);
}

const char *vn__pays_dot(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    (void)f;
    return g->k < 64 || (g->m > 48 && g->n > 48) ? "M and N are above 48, or K below 64: panels pay better" : NULL;
}

const char *vn__fits_rank(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    if (vn__col(&g->b) != 1 || g->n < 32)
        return "it needs rows of B that run along memory, and at least 32 of N";
    return vn__fits_cpu(problem, f);
}

const char *vn__pays_rank(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    (void)f;
    return g->m > 32 ? "M is above 32: panels pay better" : NULL;
}

/* C has room for sums that wait for more of K, where it holds them as they are and is asked for nothing else:
 * then rows of A are packed once, and in the cache, for all columns.  Measured, that gains where there are many
 * rows, so that the small pieces at the end are few, and not too many columns; with f64 it loses.       */
static int sums_in_c(const struct gemm *g)
{
    enum { MANY_ROWS = 1280, FEW_COLUMNS = 3072 };

    return g->head.type == VN_F32 && g->m >= MANY_ROWS && g->n <= FEW_COLUMNS && g->beta == 0
        && vn__col(&g->a) == 1 && vn__col(&g->b) == 1 && vn__col(&g->c) == 1;
}

/* Else a work-group packs rows of A for itself, and keeps them in the cache for all of N.  A few rows
 * it packs several times, but its tiles ask for the next of B, which is most of the work then.  */
const char *vn__pays_packed(const void *problem, const struct vn_facts *f)
{
    enum { ONE_BLOCK = 512, ONE_STRETCH = 1024, FEW_ROWS = 144 };
    const struct gemm *g = problem;

    (void)f;
    if (g->m <= (vn__col(&g->b) == 1 ? 2 * FEW_ROWS : FEW_ROWS))
        return "M is at most 144, or 288 where rows of B run along memory: they are packed as they come";
    if (sums_in_c(g))
        return "sums that wait for more of K can do so in C: rows of A are packed as they come";
    return g->n <= ONE_BLOCK || g->k <= ONE_STRETCH
         ? "N is at most 512, or K at most 1024: packing A for all costs more than it saves" : NULL;
}

const char *vn__fits_direct(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    if (vn__col(&g->a) != 1 && g->k > 1)
        return "it needs rows of A that run along memory";
    return vn__fits_cpu(g, f);
}

/* Rows of A that are long lie in the same set of the first-level cache, where a tile's do not fit. */
const char *vn__pays_direct(const void *problem, const struct vn_facts *f)
{
    enum { SHORT = 3072 };                      /* bytes from row to row, and of a row */
    const struct gemm *g = problem;
    const int64_t bytes = vn_type_bytes(g->head.type);

    (void)f;
    if (bytes == 2)
        return "numbers of 16 bits are quicker to read many at a time";
    return g->k * bytes > SHORT || vn__row(&g->a) * bytes > SHORT || g->n > 1024
         ? "rows of A are longer than 3072 bytes, or N is above 1024: packing A pays" : NULL;
}

/* Columns that fill two vectors and need a third: a tile of three wastes less than two tiles of two. */
const char *vn__pays_narrow(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;
    const int64_t vector = g->head.type == VN_F64 ? f->vector / 2 : f->vector;

    if (g->head.type == VN_F16 || g->head.type == VN_BF16)
        return "numbers of 16 bits are quicker to read many at a time";
    return g->n <= 2 * vector || g->n > 3 * vector ? "N is no more than two vectors, or more than three" : NULL;
}

/* ---- panels -------------------------------------------------------------------- */

enum { CPU_THR_M, CPU_THR_V, CPU_VEC, CPU_BLK_M, CPU_BLK_N, CPU_BLK_K };
enum { PACK, PRODUCT, PACK_B };                 /* kernels */

/* Lines along K, rows of A or columns of B, `per` to a panel.  Batches that repeat them share their
 * panels.  s5 of the view is the step from panel to panel.                                       */
struct place { vn_buffer *buffer; int64_t view[8]; };
struct panels {
    vn_tensor    lines;
    int          per;
    int64_t      numbers;                       /* -1 if they are too many */
    struct place at;
};

static struct panels panels_of(const struct gemm *g, vn_tensor lines, int per)
{
    struct panels s = { .lines = lines, .per = per, .numbers = -1, .at.buffer = g->c.buffer };
    int64_t step = VN_CEIL_DIV(lines.extent[lines.rank - 2], per);

    s.at.view[5] = per * g->k;
    if (!vn__mul(&step, step, s.at.view[5]))
        return s;
    for (int i = lines.rank - 3; i >= 0; i--) {
        if (!lines.stride[i])
            s.lines.extent[i] = 1;              /* what there is to pack */
        if (s.lines.extent[i] > 1)
            s.at.view[7 - lines.rank + i] = step;
        if (!vn__mul(&step, step, s.lines.extent[i]))
            return s;
    }
    if (step < INT64_MAX / 8)
        s.numbers = step;
    return s;
}

static struct panels panels_a(const struct gemm *g, const int *p) { return panels_of(g, g->a, p[CPU_THR_M]); }
static struct panels panels_b(const struct gemm *g, const int *p)
{
    return panels_of(g, vn_transpose(g->b), p[CPU_THR_V] * p[CPU_VEC]);
}

static size_t real_bytes(const struct gemm *g) { return g->head.type == VN_F64 ? 8 : 4; }

static size_t bytes_of(const struct gemm *g, const struct panels *s)
{
    return s->numbers < 0 ? SIZE_MAX : (size_t)s->numbers * real_bytes(g);
}

static vn_status pack(vn_queue *q, const struct vn_choice *it, int kernel, const struct gemm *g, const struct panels *s)
{
    const int64_t lines = s->lines.extent[s->lines.rank - 2];
    const int in_rows = vn__row(&s->lines) == 1, deep = in_rows ? PACK_ROWS : PACK_K;
    const int panels = in_rows ? VN_CEIL_DIV(PACK_LINES, s->per) : 1;
    struct vn_launch l;

    l.nargs = 0;
    l.groups[0] = VN_CEIL_DIV(g->k, deep);
    l.groups[1] = VN_CEIL_DIV(lines, (int64_t)s->per * panels);
    l.groups[2] = 1;
    for (int i = 0; i < s->lines.rank - 2; i++)
        l.groups[2] *= s->lines.extent[i];
    l.items = 1;
    vn__arg_int(&l, lines);
    vn__arg_int(&l, g->k);
    vn__arg_int(&l, deep);
    vn__arg_int(&l, panels);
    vn__arg_extents(&l, &s->lines);
    vn__arg_tensor(&l, &s->lines);
    vn__arg_buffer(&l, s->at.buffer);
    vn__arg_view(&l, s->at.view);
    return vn__launch(q, it, kernel, &l);
}

/* How the kernel cuts C: blocks of columns; pieces of at most so many rows, as work-groups ask for them; at
 * the end, units of a row of tiles.  A small B is read where it lies, so that small pieces cost nothing more. */
struct blocks { int64_t rows, cols, unit; int in_place, in_c; };

/* All columns in one block, for which A is packed once, unless sums have to wait for more of K or there are
 * too few rows for all.  In the room of BLK_M x BLK_K there are more rows where K is small.  Of few rows and
 * columns, blocks half as wide: sums that wait leave the second-level cache to A (64 and 128 x 1760 x 1760, 128 x
 * 1024 x 8192: 5 to 10 % quicker on Zen 4; up to 5 % slower where there are more columns).            */
static struct blocks blocks_for(const vn_queue *q, const struct gemm *g, const struct vn_choice *it)
{
    const int *p = it->p;
    const int packed = it->variant->workspace != NULL, direct = it->variant->fits == vn__fits_direct;
    const int64_t tile = p[CPU_THR_V] * p[CPU_VEC], all = VN_CEIL_DIV(g->n, tile) * tile;
    const int in_c = !packed && sums_in_c(g), waits = packed || (g->k > p[CPU_BLK_K] && !in_c);
    const int64_t down = VN_CEIL_DIV(g->m, p[CPU_THR_M]), wanted = PIECES_EACH * q->device->facts.units;
    struct blocks c = { p[CPU_BLK_M], waits && all > p[CPU_BLK_N] ? p[CPU_BLK_N] : all, 0, 0, in_c };

    if (waits && !packed && down <= 2 * p[CPU_BLK_M] / p[CPU_THR_M] && all > c.cols && all <= 4 * c.cols)
        c.cols = VN_CEIL_DIV(c.cols / 2, tile) * tile;
    if (!waits && g->k && g->k < p[CPU_BLK_K])
        c.rows = c.rows * p[CPU_BLK_K] / g->k;
    if (c.rows > down * p[CPU_THR_M])
        c.rows = down * p[CPU_THR_M];
    while (c.cols > tile && down * g->batches * VN_CEIL_DIV(g->n, c.cols) < wanted)
        c.cols = VN_CEIL_DIV(c.cols / 2, tile) * tile;
    c.in_place = direct && vn__col(&g->b) == 1 && g->n * g->k * vn_type_bytes(g->head.type) <= IN_PLACE_B;
    c.unit = c.in_place ? tile : c.cols < UNIT_TILES * tile ? c.cols : UNIT_TILES * tile;
    return c;
}

/* How units are dealt to work-groups.  All of C that is one block and may be one round of pieces: all but a rest
 * is dealt evenly, for each piece reads B once.  Of a B in place small pieces cost nothing.     */
struct deal { int64_t groups, even, shares; };

static struct deal deal_for(const struct blocks *cut, int64_t all, int64_t across, int64_t rows, int64_t groups)
{
    enum { REST = 32, SMALL = 4 };
    const int is_round = groups > 1 && !cut->in_place && all <= groups * rows * across;
    const int64_t even = is_round ? (all - all / REST) / groups / across * across : 0;

    return (struct deal){ groups, even, cut->in_place && groups > 1 ? SMALL * groups : groups };
}

static vn_status run_cpu(vn_queue *q, const struct vn_choice *it, const struct gemm *g, int kernel,
                         const struct place *a, const struct place *b)
{
    const struct blocks cut = blocks_for(q, g, it);
    const int64_t across = VN_CEIL_DIV(cut.cols, cut.unit), units = q->device->facts.units;
    int64_t all = VN_CEIL_DIV(g->m, it->p[CPU_THR_M]) * VN_CEIL_DIV(g->n, cut.cols);
    struct deal deal;
    vn_buffer *taken;
    struct vn_launch l;
    vn_status s;

    if (!vn__mul(&all, all, across * g->batches) || all > INT_MAX)
        return vn__fail(VN_UNSUPPORTED, "C has more than %d tiles in columns", INT_MAX);
    if ((s = vn__counters(&taken, q)))
        return s;
    deal = deal_for(&cut, all, across, cut.rows / it->p[CPU_THR_M], all < units ? all : units);
    l.nargs = 0;
    l.groups[0] = deal.groups;
    l.groups[1] = l.groups[2] = 1;
    l.items = 1;
    vn__gemm_sizes(&l, g);
    vn__arg_int(&l, cut.rows);
    vn__arg_int(&l, cut.cols);
    vn__arg_int(&l, cut.unit);
    vn__arg_int(&l, cut.in_place);
    vn__arg_int(&l, cut.in_c);
    vn__arg_int(&l, all);
    vn__arg_int(&l, deal.groups);
    vn__arg_int(&l, deal.even);
    vn__arg_int(&l, deal.shares);
    vn__arg_buffer(&l, taken);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__gemm_input(&l, g, &g->a);
    vn__arg_buffer(&l, a->buffer);
    vn__arg_view(&l, a->view);
    vn__gemm_input(&l, g, &g->b);
    vn__arg_buffer(&l, b->buffer);
    vn__arg_view(&l, b->view);
    vn__gemm_output(&l, g);
    return vn__launch(q, it, kernel, &l);
}

vn_status vn__run_unpacked(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct gemm *g = problem;
    const struct place none = { .buffer = g->c.buffer };

    return run_cpu(q, it, g, 0, &none, &none);
}

size_t vn__workspace_packed(const void *problem, const int *p)
{
    const struct panels a = panels_a(problem, p);

    return bytes_of(problem, &a);
}

vn_status vn__run_packed(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct gemm *g = problem;
    const struct place none = { .buffer = g->c.buffer };
    struct panels a = panels_a(g, it->p);
    vn_status s;

    if (g->k && ((s = vn__workspace(&a.at.buffer, q, bytes_of(g, &a))) || (s = pack(q, it, PACK, g, &a))))
        return s;
    return run_cpu(q, it, g, PRODUCT, &a.at, &none);
}

/* ---- panels of B, too ------------------------------------------------------------------ */

static vn_status pack_b(vn_queue *q, const struct vn_choice *it, const void *problem, vn_buffer *to, size_t at)
{
    const struct gemm *g = problem;
    struct panels b = panels_b(g, it->p);

    b.at.buffer = to;
    b.at.view[0] = (int64_t)(at / real_bytes(g));
    return pack(q, it, PACK_B, g, &b);
}

struct vn_layout vn__layout_cpu_packed(const void *problem, const int *p)
{
    const struct panels b = panels_b(problem, p);

    return (struct vn_layout){ pack_b, b.per, bytes_of(problem, &b) };
}

size_t vn__workspace_cpu_packed(const void *problem, const int *p)
{
    const struct vn_layout l = vn__layout_cpu_packed(problem, p);

    return vn__workspace_and_b(problem, vn__workspace_packed(problem, p), &l);
}

/* The panels of both operands are counted in 31 bits where the operands are. */
const char *vn__fits_cpu_packed(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    if (!g->head.wide && ((double)g->m + (double)g->n + 4096) * (double)g->k * (double)g->batches > INT_MAX)
        return "panels of B need offsets of 64 bits where B does not";
    return vn__fits_cpu(problem, f);
}

/* Long rows of B lie in a page each: 128 bytes of each at a time, once for every block of rows of A, are waited
 * for.  Where there are many rows, a copy in panels costs less.                                   */
static int pays_once(const struct gemm *g)
{
    enum { MANY_ROWS = 2048, MANY_COLUMNS = 3072, DEEP = 1024 };

    return g->head.type == VN_F32 && vn__col(&g->b) == 1 && g->m >= MANY_ROWS && g->n > MANY_COLUMNS && g->k > DEEP;
}

/* Panels hold f32 for 16 bits, and what fills less than a panel is mostly zeros. */
const char *vn__pays_cpu_packed(const void *problem, const struct vn_facts *f)
{
    static const int least[VN_TYPE_COUNT] = { [VN_F32] = 4, [VN_F64] = 8, [VN_F16] = 32, [VN_BF16] = 32 };
    const struct gemm *g = problem;

    (void)f;
    if (!vn__is_packed_by(g, pack_b))
        return pays_once(g) ? NULL : "B is not packed, and to do so for one product costs more than it saves";
    return g->m < least[g->head.type] || g->n < 32
         ? "M is below 4 (f64: 8, 16 bits: 32) or N below 32: B is read as quickly where it lies" : NULL;
}

vn_status vn__run_cpu_packed(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct gemm *g = problem;
    struct panels a = panels_a(g, it->p), b = panels_b(g, it->p);
    size_t at = 0;
    vn_status s;

    if (g->k && ((s = vn__lay_out_b(&b.at.buffer, &at, &a.at.buffer, q, it, g, bytes_of(g, &a))) ||
                 (s = pack(q, it, PACK, g, &a))))
        return s;
    b.at.view[0] = (int64_t)(at / real_bytes(g));
    return run_cpu(q, it, g, PRODUCT, &a.at, &b.at);
}

/* ---- few rows ----------------------------------------------------------------------- */

enum { RANK_THR_K, RANK_THR_V, RANK_VEC, RANK_BLK_M, RANK_BLK_C, RANK_BLK_K, RANK_SUM_N = 1024 };

/* How gemm_rank cuts a problem: columns for a work-group, as many for each; parts of K; and how many columns
 * ahead B is asked for, 0 for not at all.                                                     */
struct cut { int64_t cols, parts, ahead; };

/* Parts of K that pay: none of a small B, else such that each has a stretch of BLK_K at least. */
static int64_t most_parts(const struct gemm *g, const int *p)
{
    const int splits = g->n * g->k >= SPLIT_FROM && g->math != VN_MATH_BITWISE;

    return splits && g->k / p[RANK_BLK_K] > 1 ? g->k / p[RANK_BLK_K] : 1;
}

/* Long rows of a B that is no longer in the caches come 10 to 30 % sooner if they are asked for; others, or
 * where arithmetic takes longer anyway, up to 20 % later.                                       */
static int64_t ahead_for(const struct gemm *g, int tile)
{
    enum { CACHED = 1 << 22, LONG = 1024, PANELS = 8 };

    return g->m <= 8 && g->n >= LONG && g->n * g->k > CACHED ? PANELS * tile : 0;
}

/* Of a large B long rows are read, and K is split for all cores to share; of a small one columns
 * are, which needs no second launch, unless waking another core would take longer.          */
static struct cut cut_for(const struct gemm *g, const int *p, int units)
{
    const int tile = p[RANK_THR_V] * p[RANK_VEC];
    const int64_t rows = g->m < p[RANK_BLK_M] ? g->m : p[RANK_BLK_M];
    const int64_t most = p[RANK_BLK_C] / rows / tile * tile, all = VN_CEIL_DIV(g->n, tile) * tile;
    const int64_t wanted = VN_CEIL_DIV(4 * (int64_t)units, g->batches * VN_CEIL_DIV(g->m, p[RANK_BLK_M]));
    const int64_t parts = most_parts(g, p), even = VN_CEIL_DIV(VN_CEIL_DIV(g->n, tile), wanted) * tile;
    struct cut c = { VN_CEIL_DIV(all / tile, VN_CEIL_DIV(all, most)) * tile, 1, ahead_for(g, tile) };

    if (parts > 1) {
        c.parts = VN_CEIL_DIV(wanted, VN_CEIL_DIV(g->n, c.cols));
        c.parts = c.parts < parts ? c.parts : parts;
    } else {
        const int64_t weight = rows > LEAST_ROWS ? rows / LEAST_ROWS : 1;      /* of a number of B */
        const int64_t least = VN_CEIL_DIV(LEAST_B / weight / (g->k ? g->k : 1), tile) * tile;
        const int64_t cols = even > least ? even : least;

        c.cols = cols > 0 && cols < c.cols ? cols : c.cols;
    }
    return c;
}

static size_t part_bytes(const struct gemm *g, int64_t parts)
{
    int64_t bytes = parts * (g->head.type == VN_F64 ? 8 : 4);

    return vn__mul(&bytes, bytes, g->m * g->batches) && vn__mul(&bytes, bytes, g->n) ? (size_t)bytes : SIZE_MAX;
}

size_t vn__workspace_rank(const void *problem, const int *p)
{
    const int64_t parts = most_parts(problem, p);

    return parts > 1 ? part_bytes(problem, parts) : 0;
}

static vn_status add_parts(vn_queue *q, const struct vn_choice *it, const struct gemm *g, int64_t parts, vn_buffer *sums)
{
    struct vn_launch l;

    l.nargs = 0;
    l.groups[0] = VN_CEIL_DIV(g->n, RANK_SUM_N);
    l.groups[1] = g->m;
    l.groups[2] = g->batches;
    l.items = 1;
    vn__arg_int(&l, g->m);
    vn__arg_int(&l, g->n);
    vn__arg_int(&l, parts);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__arg_buffer(&l, sums);
    vn__gemm_output(&l, g);
    return vn__launch(q, it, 1, &l);
}

vn_status vn__run_rank(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct gemm *g = problem;
    const struct cut cut = cut_for(g, it->p, q->device->facts.units);
    vn_buffer *sums = g->c.buffer;
    struct vn_launch l;
    vn_status s;

    if (cut.parts > 1 && (s = vn__workspace(&sums, q, part_bytes(g, cut.parts))))
        return s;
    l.nargs = 0;
    l.groups[0] = VN_CEIL_DIV(g->n, cut.cols);
    l.groups[1] = VN_CEIL_DIV(g->m, it->p[RANK_BLK_M]) * cut.parts;
    l.groups[2] = g->batches;
    l.items = 1;
    vn__gemm_sizes(&l, g);
    vn__arg_int(&l, cut.cols);
    vn__arg_int(&l, cut.parts);
    vn__arg_int(&l, cut.ahead);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__gemm_inputs(&l, g);
    vn__arg_buffer(&l, sums);
    vn__gemm_output(&l, g);
    if ((s = vn__launch(q, it, 0, &l)) || cut.parts == 1)
        return s;
    return add_parts(q, it, g, cut.parts, sums);
}

vn_status vn__run_dot(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    enum { THR_M, THR_N, VEC, BLK_M, BLK_N };
    const struct gemm g = vn__gemm_few_rows(problem);
    const int *p = it->p;
    const int64_t parts = 8 * (int64_t)q->device->facts.units;
    const int64_t even = VN_CEIL_DIV(VN_CEIL_DIV(g.n, p[THR_N]), parts) * p[THR_N];
    const int64_t cols = even < p[BLK_N] ? even : p[BLK_N];
    struct vn_launch l;

    l.nargs = 0;
    l.groups[0] = VN_CEIL_DIV(g.n, cols);
    l.groups[1] = VN_CEIL_DIV(g.m, p[BLK_M]);
    l.groups[2] = g.batches;
    l.items = 1;
    vn__gemm_sizes(&l, &g);
    vn__arg_int(&l, cols);
    vn__arg_extents(&l, &g.c);
    vn__arg_real(&l, g.head.type, g.alpha);
    vn__gemm_inputs(&l, &g);
    vn__gemm_output(&l, &g);
    return vn__launch(q, it, 0, &l);
}
