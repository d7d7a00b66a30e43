/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu.c - the variants gemm_cpu, gemm_cpu_packed, gemm_cpu_unpacked, gemm_cpu_direct and gemm_cpu_narrow:
 * CPUs, one kernel that packs A, A and B, or neither, beforehand.
 */
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "gemm.h"

/* What a work-group packs: one panel of a K-major operand; of another, a few rows of k of many panels, so
 * that it reads whole pages. */
enum { PACK_K = 1024, PACK_ROWS = 16, PACK_PANELS = 4096 };

/* Work units per core, at least; tiles in a unit; the largest B, in bytes, that is not worth packing, and the
 * most rows of tiles that each convert one of f16; rows of tiles for which a block of B is packed, at
 * least. */
enum { UNITS_EACH = 8, UNIT_TILES = 4, IN_PLACE_B = 1 << 18, CONVERTED = 3, MIN_TILES = 20 };

/* ---- fits -------------------------------------------------------------------- */

const char *vn__fits_cpu(const void *problem, const struct vn_facts *f)
{
    if (strcmp(f->family, "cpu"))
        return "the device is not a CPU";
    if (f->vector < 2)
        return "the device needs no explicit vectors";
    return vn__fits_sizes(problem);
}

/* Partial sums may stay in C between blocks of K, if C is f32, row-major and beta is 0: then rows of A are
 * packed once, in the cache, for all columns. This gains where there are many rows, so that the small work
 * units at the end are few, and not too many columns; with f64 it loses.                            */
static int sums_in_c(const struct gemm *g)
{
    enum { MANY_ROWS = 1280, FEW_COLUMNS = 3072 };

    return g->head.type == VN_F32 && g->m >= MANY_ROWS && g->n <= FEW_COLUMNS && g->beta == 0
        && vn__col(&g->a) == 1 && vn__col(&g->b) == 1 && vn__col(&g->c) == 1;
}

const char *vn__fits_cpu_panels(const void *problem, const struct vn_facts *f)
{
    return vn__fits_cpu(problem, f);
}

const char *vn__fits_cpu_unpacked(const void *problem, const struct vn_facts *f)
{
    return vn__fits_cpu(problem, f);
}

const char *vn__fits_cpu_narrow(const void *problem, const struct vn_facts *f)
{
    return vn__fits_cpu_direct(problem, f);
}

const char *vn__fits_cpu_direct(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    if (vn__col(&g->a) != 1 && g->k > 1)
        return "A must be K-major";
    return vn__fits_cpu(g, f);
}

/* ---- panels -------------------------------------------------------------------- */

enum { CPU_THR_M, CPU_THR_V, CPU_VEC, CPU_BLK_M, CPU_BLK_N, CPU_BLK_K };
enum { PACK, PRODUCT, PACK_B };                 /* kernels */

/* K-major rows, of A or of the transpose of B, `per` to a panel. Batches that broadcast share their
 * panels. s5 of the view is the step from panel to panel. */
struct place { vn_buffer *buffer; int64_t view[8]; };
struct panels {
    vn_tensor    rows;
    int          per;
    int64_t      elements;                      /* -1 if they are too many */
    struct place at;
};

static struct panels panels_of(const struct gemm *g, vn_tensor rows, int per)
{
    struct panels s = { .rows = rows, .per = per, .elements = -1, .at.buffer = g->c.buffer };
    int64_t step = VN_CEIL_DIV(rows.extent[rows.rank - 2], per);

    s.at.view[5] = per * g->k;
    if (!vn__mul(&step, step, s.at.view[5]))
        return s;
    for (int i = rows.rank - 3; i >= 0; i--) {
        if (!rows.stride[i])
            s.rows.extent[i] = 1;               /* packed once */
        if (s.rows.extent[i] > 1)
            s.at.view[7 - rows.rank + i] = step;
        if (!vn__mul(&step, step, s.rows.extent[i]))
            return s;
    }
    if (step < INT64_MAX / 8)
        s.elements = step;
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
    return s->elements < 0 ? SIZE_MAX : (size_t)s->elements * real_bytes(g);
}

static vn_status pack(vn_queue *q, const struct vn_choice *it, int kernel, const struct gemm *g,
                      const struct panels *s)
{
    const int64_t rows = s->rows.extent[s->rows.rank - 2];
    const int in_rows = vn__row(&s->rows) == 1, k_block = in_rows ? PACK_ROWS : PACK_K;
    const int panels = in_rows ? VN_CEIL_DIV(PACK_PANELS, s->per) : 1;
    struct vn_launch l = { .nargs = 0 };

    l.groups[0] = VN_CEIL_DIV(g->k, k_block);
    l.groups[1] = VN_CEIL_DIV(rows, (int64_t)s->per * panels);
    l.groups[2] = 1;
    for (int i = 0; i < s->rows.rank - 2; i++)
        l.groups[2] *= s->rows.extent[i];
    l.items = 1;
    vn__arg_int(&l, rows);
    vn__arg_int(&l, g->k);
    vn__arg_int(&l, k_block);
    vn__arg_int(&l, panels);
    vn__arg_extents(&l, &s->rows);
    vn__arg_tensor(&l, &s->rows);
    vn__arg_buffer(&l, s->at.buffer);
    vn__arg_view(&l, s->at.view);
    return vn__launch(q, it, kernel, &l);
}

/* How the kernel divides C: blocks of `tall` rows of tiles and `cols` columns; tasks of at most `rows` rows
 * of a block; at the end, work units of `unit` columns of a row of tiles. A small B is read in place, so that
 * small tasks cost no more, but where that would convert its elements many times. */
struct blocks { int64_t rows, cols, tall, unit; int in_place, in_c; };

/* One block holds all columns, for which A is packed once, unless there are partial sums in local memory,
 * or too few rows for all cores. The room of BLK_M x BLK_K holds more rows where K is small. With few
 * rows and columns, blocks are half as wide, so that the partial sums leave the second-level cache to A.
 * Panels of an A that the caches do not hold are read from memory once, for all columns of so many rows as
 * they hold, and B once for each such block of rows. */
static struct blocks blocks_for(const vn_queue *q, const struct gemm *g, const struct vn_choice *it)
{
    const int *p = it->p;
    const int packed = it->variant->run == vn__run_cpu_panels || it->variant->run == vn__run_cpu_packed;
    const int direct = it->variant->run == vn__run_cpu_direct || it->variant->run == vn__run_cpu_narrow;
    const int64_t tile = p[CPU_THR_V] * p[CPU_VEC], all = VN_CEIL_DIV(g->n, tile) * tile;
    const int in_c = !packed && sums_in_c(g), has_partial = packed || (g->k > p[CPU_BLK_K] && !in_c);
    const int64_t down = VN_CEIL_DIV(g->m, p[CPU_THR_M]), wanted = UNITS_EACH * q->device->facts.units;
    const double row_bytes = (double)g->k * (double)real_bytes(g);      /* of panels of A */
    struct blocks c = { .rows = p[CPU_BLK_M], .cols = has_partial && all > p[CPU_BLK_N] ? p[CPU_BLK_N] : all,
                        .in_c = in_c };

    if (has_partial && !packed && down <= 2 * p[CPU_BLK_M] / p[CPU_THR_M] && all > c.cols &&
        all <= 4 * c.cols)
        c.cols = VN_CEIL_DIV(c.cols / 2, tile) * tile;
    if (!has_partial && g->k && g->k < p[CPU_BLK_K])
        c.rows = c.rows * p[CPU_BLK_K] / g->k;
    if (c.rows > down * p[CPU_THR_M])
        c.rows = down * p[CPU_THR_M];
    while (c.cols > tile && down * g->batches * VN_CEIL_DIV(g->n, c.cols) < wanted)
        c.cols = VN_CEIL_DIV(c.cols / 2, tile) * tile;
    c.tall = down;
    if (packed && (double)g->m * row_bytes > vn__cache_bytes(q)) {
        const int64_t fit = (int64_t)(vn__cache_bytes(q) / row_bytes), fewest = MIN_TILES * p[CPU_THR_M];
        const int64_t rows = fit < fewest ? fewest : fit;

        c.rows = rows < c.rows ? rows - rows % p[CPU_THR_M] : c.rows;
        c.tall = VN_CEIL_DIV(down, VN_CEIL_DIV(g->m, c.rows));
    }
    c.in_place = direct && vn__col(&g->b) == 1 && g->n * g->k * vn_type_bytes(g->head.type) <= IN_PLACE_B &&
                 (g->head.type != VN_F16 || down <= CONVERTED);
    c.unit = c.in_place ? tile : c.cols < UNIT_TILES * tile ? c.cols : UNIT_TILES * tile;
    return c;
}

/* The schedule of the tasks: `quota` units for each work-group at first; then what is left, divided by
 * `divisor`. A C that may be computed in one wave is scheduled statically but for a rest, since each task
 * reads B once; with B in place small tasks cost nothing. Of a K-major B the rest is smaller: a task packs
 * all of B, which takes as long as a row of tiles. */
struct schedule { int64_t groups, quota, divisor; };

static struct schedule schedule_for(const struct blocks *cut, int64_t all, int64_t row_units, int64_t rows,
                                    int64_t groups, int is_k_major)
{
    enum { REST = 32, SMALL = 4 };
    const int is_wave = groups > 1 && !cut->in_place && all <= groups * rows * row_units;
    const int64_t even = (all - all / REST) / row_units;
    const int64_t quota = is_wave ? (is_k_major ? VN_CEIL_DIV(even, groups) : even / groups) * row_units : 0;

    return (struct schedule){ groups, quota, cut->in_place && groups > 1 ? SMALL * groups : groups };
}

/* Rows of tiles that prefetch the next block of packed B, where the cache holds two of them beside the
 * partial sums. In one or two rows the prefetches would wait for each other.                             */
static int64_t rows_ahead(const vn_queue *q, const struct gemm *g, const int *p)
{
    enum { ROWS = 4 };
    const size_t elements = ((size_t)2 * p[CPU_BLK_K] + p[CPU_BLK_M]) * p[CPU_BLK_N];

    return elements * real_bytes(g) <= q->device->facts.local_bytes ? ROWS : 0;
}

static vn_status run_cpu(vn_queue *q, const struct vn_choice *it, const struct gemm *g, int kernel,
                         const struct place *a, const struct place *b)
{
    const struct blocks cut = blocks_for(q, g, it);
    const int64_t row_units = VN_CEIL_DIV(cut.cols, cut.unit), units = q->device->facts.units;
    int64_t all = VN_CEIL_DIV(VN_CEIL_DIV(g->m, it->p[CPU_THR_M]), cut.tall) * cut.tall *
                  VN_CEIL_DIV(g->n, cut.cols);
    struct schedule schedule;
    vn_buffer *taken;
    struct vn_launch l = { .nargs = 0 };
    vn_status s;

    if (!vn__mul(&all, all, row_units * g->batches) || all > INT_MAX)
        return vn__fail(VN_UNSUPPORTED, "C has more than %d work units", INT_MAX);
    if ((s = vn__counters(&taken, q)))
        return s;
    schedule = schedule_for(&cut, all, row_units, cut.rows / it->p[CPU_THR_M], all < units ? all : units,
                            vn__col(&g->b) != 1);
    l.groups[0] = schedule.groups;
    l.groups[1] = l.groups[2] = 1;
    l.items = 1;
    vn__gemm_sizes(&l, g);
    vn__arg_int(&l, cut.rows);
    vn__arg_int(&l, cut.cols);
    vn__arg_int(&l, cut.tall);
    vn__arg_int(&l, cut.unit);
    vn__arg_int(&l, cut.in_place);
    vn__arg_int(&l, cut.in_c);
    vn__arg_int(&l, !cut.in_c && g->beta == 0 && vn__is_past_caches(q, &g->c));
    vn__arg_int(&l, all);
    vn__arg_int(&l, rows_ahead(q, g, it->p));
    vn__arg_int(&l, schedule.groups);
    vn__arg_int(&l, schedule.quota);
    vn__arg_int(&l, schedule.divisor);
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

vn_status vn__run_cpu_unpacked(vn_queue *q, const struct vn_choice *it, const void *problem,
                               const struct vn_plan *plan)
{
    const struct gemm *g = problem;
    const struct place none = { .buffer = g->c.buffer };

    (void)plan;
    return run_cpu(q, it, g, 0, &none, &none);
}

vn_status vn__run_cpu_direct(vn_queue *q, const struct vn_choice *it, const void *problem,
                             const struct vn_plan *plan)
{
    return vn__run_cpu_unpacked(q, it, problem, plan);
}

vn_status vn__run_cpu_narrow(vn_queue *q, const struct vn_choice *it, const void *problem,
                             const struct vn_plan *plan)
{
    return vn__run_cpu_unpacked(q, it, problem, plan);
}

vn_status vn__run_cpu_panels(vn_queue *q, const struct vn_choice *it, const void *problem,
                             const struct vn_plan *plan)
{
    const struct gemm *g = problem;
    const struct place none = { .buffer = g->c.buffer };
    struct panels a = panels_a(g, it->p);
    vn_status s;

    if (g->k && ((s = vn__workspace(&a.at.buffer, q, plan->workspace)) || (s = pack(q, it, PACK, g, &a))))
        return s;
    return run_cpu(q, it, g, PRODUCT, &a.at, &none);
}

/* ---- panels of B, too ------------------------------------------------------------------ */

static vn_status pack_b(vn_queue *q, const struct vn_choice *it, const void *problem, vn_buffer *to,
                        size_t at)
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

/* Offsets in the panels of both operands have 31 bits where those of the operands have. */
const char *vn__fits_cpu_packed(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    if (!g->head.wide && ((double)g->m + (double)g->n + 4096) * (double)g->k * (double)g->batches > INT_MAX)
        return "panels of B need offsets of 64 bits where B does not";
    return vn__fits_cpu(problem, f);
}

vn_status vn__run_cpu_packed(vn_queue *q, const struct vn_choice *it, const void *problem,
                             const struct vn_plan *plan)
{
    const struct gemm *g = problem;
    struct panels a = panels_a(g, it->p), b = panels_b(g, it->p);
    size_t at = 0;
    vn_status s;

    (void)plan;
    if (g->k && ((s = vn__lay_out_b(&b.at.buffer, &at, &a.at.buffer, q, it, g, bytes_of(g, &a))) ||
                 (s = pack(q, it, PACK, g, &a))))
        return s;
    b.at.view[0] = (int64_t)(at / real_bytes(g));
    return run_cpu(q, it, g, PRODUCT, &a.at, &b.at);
}

/* ---- plans ------------------------------------------------------------------------------ */

/* Of work-groups that pack rows of A as they come to them, and read B once for each block of rows. */
static struct vn_cpu_work work_of(const struct gemm *g, const int *p, const struct vn_site *site)
{
    struct vn_cpu_work w = vn__cpu_tiles(g, p[CPU_THR_M], p[CPU_THR_V] * p[CPU_VEC], site);

    w.b *= (double)VN_CEIL_DIV(g->m, p[CPU_BLK_M]);
    return w;
}

const char *vn__plan_cpu_unpacked(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                  const struct vn_site *site)
{
    const struct vn_cpu_work w = work_of(problem, row->p, site);

    out->seconds = vn__cpu_seconds(problem, &w, row, site);
    return NULL;
}

/* Rows of A that are long lie in the same set of the first-level cache, where a tile's do not fit, and each
 * column of tiles reads them again: a few do so in the time that packing would take. */
const char *vn__plan_cpu_direct(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                const struct vn_site *site)
{
    enum { SHORT = 3072, FEW = 2 };             /* bytes from row to row, and of a row; columns of tiles */
    const struct gemm *g = problem;
    const int64_t bytes = (int64_t)vn_type_bytes(g->head.type);
    const int reads_again = g->m > 1 && g->n > FEW * row->p[CPU_THR_V] * row->p[CPU_VEC];

    vn__plan_cpu_unpacked(out, problem, row, site);
    return reads_again && (g->k * bytes > SHORT || vn__row(&g->a) * bytes > SHORT)
         ? "rows of A are longer than 3072 bytes: tiles of them do not fit into the first-level cache" : NULL;
}

const char *vn__plan_cpu_narrow(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                const struct vn_site *site)
{
    return vn__plan_cpu_direct(out, problem, row, site);
}

/* A launch packs A. */
const char *vn__plan_cpu_panels(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                const struct vn_site *site)
{
    const struct panels a = panels_a(problem, row->p);
    struct vn_cpu_work w = work_of(problem, row->p, site);

    w.launches = 2;
    out->workspace = bytes_of(problem, &a);
    out->seconds = vn__cpu_seconds(problem, &w, row, site);
    return NULL;
}

/* A launch packs each that is not packed yet; panels of B are read, then, in all passes. */
const char *vn__plan_cpu_packed(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                const struct vn_site *site)
{
    const struct gemm *g = problem;
    const struct vn_layout l = vn__layout_cpu_packed(problem, row->p);
    const struct panels a = panels_a(g, row->p);
    struct vn_cpu_work w = work_of(problem, row->p, site);

    w.launches = vn__is_packed_as(g, &l) ? 2 : 3;
    w.b = vn__is_packed_as(g, &l) ? 0 : (double)g->n * (double)g->k * (double)g->batches *
                                        (double)vn_type_bytes(g->head.type);
    out->workspace = vn__workspace_and_b(g, bytes_of(g, &a), &l);
    out->seconds = vn__cpu_seconds(problem, &w, row, site);
    return NULL;
}
