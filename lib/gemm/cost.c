/* SPDX-License-Identifier: Apache-2.0
 *
 * cost.c - the time of a product on a GPU, from the rates of the device and the cost columns of a row.
 *
 * A kernel makes C in tiles, one or several at a time on a compute unit.  It takes FIXED_NS once, and for a
 * tile its flops at EFF thousandths of what the engine does in a compute unit.  Where compute units make
 * several tiles, they take TILE_NS more for each, and get EFF_FULL thousandths together; EFF_DRAM, where the
 * operands do not stay in the second-level cache.  An activation other than ReLU takes ACT_NS of each tile,
 * where its row says so.  Tiles are made in waves, the last of which leaves some units idle; and no wave is
 * done before its share of the bytes is read.  A C whose rows are not 16-byte aligned is stored in smaller
 * pieces, which takes as long as ODD_C thousandths of its bytes more; in gemm_pipelined, and where TMA
 * copies the operands, of the tile's bytes, and by its compute unit, which does nothing else meanwhile.
 * Rows that begin within a sector of memory share it with other tiles, for HALF_C thousandths of C's bytes.
 * The memory is read once, but the second-level cache by each tile: where rows begin within its lines, the
 * time of those that it sends counts instead, if it is longer.
 *
 * Computing and reading overlap, but not wholly: together they take the root of the sum of their squares, by
 * the first terms of its series, for the library does without libm.
 */
#include <math.h>

#include "gemm.h"

int vn__resident(int items)
{
    enum { ITEMS = 1024, MOST = 16 };

    return items >= ITEMS ? 1 : ITEMS / items < MOST ? ITEMS / items : MOST;
}

/* All of the bytes, or none, or where they are about as many as the cache keeps, a share of them. */
double vn__share_in_l2(double bytes, const struct vn_site *site)
{
    const double most = 1.3, all = 0.7, share = (most - bytes / (site->rates->l2_mb * 1e6)) / (most - all);

    return share > 1 ? 1 : share > 0 ? share : 0;
}

/* Of a byte, where so many are in use. */
double vn__byte_seconds(double bytes, const struct vn_site *site)
{
    const double share = vn__share_in_l2(bytes, site);

    return share / (site->rates->l2_gbps * 1e9) + (1 - share) / (site->rates->gbps * 1e9);
}

double vn__launch_seconds(const struct vn_site *site)
{
    return site->rates->launch_ns * 1e-9;
}

double vn__batch_seconds(const struct gemm *g, const struct vn_site *site)
{
    return g->batches > 1 ? site->rates->batch_ns * 1e-9 : 0;
}

double vn__move_seconds(double bytes, int thousandths, const struct vn_site *site)
{
    return bytes / (site->rates->gbps * 1e6 * thousandths);
}

double vn__fma_peak(const struct gemm *g, const struct vn_site *site)
{
    return g->head.type == VN_F64 ? site->rates->fma64 : site->rates->fma32;
}

double vn__mma_peak(const struct gemm *g, const struct vn_site *site)
{
    return g->head.type == VN_F64 ? site->rates->mma64 : g->head.type == VN_F32 ? site->rates->mma32
                                                                               : site->rates->mma16;
}

/* A variant may have transposed the product. */
static int is_aligned_c(const vn_tensor *c)
{
    return vn__fits_tma(c, vn__col(c), vn__row(c)) || vn__fits_tma(c, vn__row(c), vn__col(c));
}

double vn__odd_c_bytes(const struct gemm *g, int thousandths)
{
    return is_aligned_c(&g->c) ? 0 : (double)g->m * (double)g->n * (double)g->batches *
                                     (double)vn_type_bytes(g->head.type) * thousandths / 1000;
}

enum { LINE = 128 };

static int is_off_lines(int64_t bytes)
{
    return bytes > LINE && bytes % LINE;
}

/* From row to row. */
static int64_t step_bytes(const vn_tensor *t)
{
    return (vn__col(t) == 1 ? vn__row(t) : vn__col(t)) * (int64_t)vn_type_bytes(t->type);
}

double vn__off_lines(int64_t bytes, const struct vn_row *row)
{
    return is_off_lines(bytes) ? row->cost[VN_OFF_LINES] / 1000.0 : 1;
}

double vn__off_lines_of(const vn_tensor *t, const struct vn_row *row)
{
    return vn__off_lines(step_bytes(t), row);
}

/* Of rows whose distance is a multiple of 64 bytes every other one lies in two lines, of 32 three of four. */
double vn__lines_of(const vn_tensor *t, int64_t rows, int64_t block)
{
    const int64_t bytes = step_bytes(t), power = bytes & -bytes;
    const double each = 2 - (double)power / LINE;

    return is_off_lines(bytes) ? each * (double)rows / (double)VN_CEIL_DIV(rows, block) : 0;
}

double vn__half_c_bytes(const struct gemm *g, int thousandths)
{
    enum { SECTOR = 32 };
    const int is_half = step_bytes(&g->c) % SECTOR != 0;

    return is_half ? (double)g->m * (double)g->n * (double)g->batches *
                     (double)vn_type_bytes(g->head.type) * thousandths / 1000 : 0;
}

double vn__short_lines_of(const vn_tensor *t, int64_t along, int64_t k)
{
    const int64_t bytes = step_bytes(t);

    return along == 1 && bytes > 0 && bytes < LINE ? (double)(k * LINE) / (double)bytes : 0;
}

double vn__tiles_bytes(const struct gemm *g, const struct vn_row *row)
{
    return g->head.bytes + vn__odd_c_bytes(g, row->cost[VN_ODD_C]);
}

double vn__together(double a, double b)
{
    const double longer = a > b ? a : b, r = longer > 0 ? (a > b ? b : a) / longer : 0;

    return longer * (1 + r * r * (0.5 - 0.0858 * r * r));
}

/* Each wave of one tile for each unit takes `tile`, and the time of its share of the bytes. */
static double in_waves(const struct vn_tiles *t, double tile, double bytes, const struct vn_site *site)
{
    const double units = site->facts->units, each = bytes / t->tiles;
    const double full = floor(t->tiles / units), left = t->tiles - full * units;
    const double last = left > 0 ? vn__together(tile, left * each) : 0;
    const double waves = full * vn__together(tile, units * each) + last;
    const double even = vn__together(t->tiles / units * tile, bytes);

    return site->rates->waves * waves + (1 - site->rates->waves) * even;
}

double vn__tiles_seconds(const struct vn_tiles *t, const struct vn_row *row, const struct vn_site *site)
{
    const int *const cost = row->cost;
    const double units = site->facts->units, tile = cost[VN_TILE_NS] * 1e-9 + t->after;
    const double fixed = cost[VN_FIXED_NS] * 1e-9 + t->start;
    const double share = vn__share_in_l2(t->bytes, site);
    const double once = t->bytes * vn__byte_seconds(t->bytes, site);
    const double lines = t->tiles * t->lines / (site->rates->lines * 1e9);
    const double bytes = lines > once ? lines : once;
    const double longest = t->longest > 0 ? t->longest : t->flops;
    const double flops = t->tiles <= units ? longest : t->flops, peak = t->peak * 1e6;

    if (cost[VN_EFF] <= 0 || cost[VN_EFF_FULL] <= 0 || cost[VN_EFF_DRAM] <= 0 || t->peak <= 0)
        return 0;

    const double alone = flops / (peak * cost[VN_EFF]);
    const double full = flops / peak * (share / cost[VN_EFF_FULL] + (1 - share) / cost[VN_EFF_DRAM]);

    if (t->tiles <= units)
        return fixed + t->after + vn__together(share < 1 && full > alone ? full : alone, bytes);
    if (t->resident <= 1)
        return fixed + in_waves(t, full + tile, bytes, site);

    const double rounds = ceil(t->tiles / (units * t->resident)) * alone;
    const double each = ceil(t->tiles / units) * (full + tile);

    return fixed + vn__together(rounds > each ? rounds : each, bytes);
}

struct vn_tiles vn__gemm_tiles(const struct gemm *g, int64_t blk_m, int64_t blk_n, int64_t k, double matrices,
                               double peak, int resident, const struct vn_row *row,
                               const struct vn_site *site)
{
    return (struct vn_tiles){
        .tiles = (double)VN_CEIL_DIV(g->m, blk_m) * (double)VN_CEIL_DIV(g->n, blk_n) * matrices,
        .flops = 2.0 * (double)blk_m * (double)blk_n * (double)k,
        .bytes = vn__tiles_bytes(g, row), .peak = peak, .start = vn__batch_seconds(g, site),
        .resident = resident };
}

/* Of a tile, by a compute unit that has its share of the second-level cache.  Elements of 16 bits go through
 * other work-items on their way, and those beyond C as well; larger ones are stored if they are inside.    */
double vn__odd_tile_seconds(const struct gemm *g, int64_t blk_m, int64_t blk_n, int thousandths,
                            const struct vn_site *site)
{
    const int whole = vn_type_bytes(g->head.type) == 2;
    const double rows = (double)(whole || g->m > blk_m ? blk_m : g->m);
    const double columns = (double)(whole || g->n > blk_n ? blk_n : g->n);
    const double bytes = rows * columns * (double)vn_type_bytes(g->head.type) * thousandths / 1000;

    return is_aligned_c(&g->c) ? 0 : bytes * site->facts->units / (site->rates->l2_gbps * 1e9);
}

struct vn_tiles vn__tma_tiles(const struct gemm *g, int64_t blk_m, int64_t blk_n, int64_t k, double matrices,
                              double peak, const struct vn_row *row, const struct vn_site *site)
{
    struct vn_tiles t = vn__gemm_tiles(g, blk_m, blk_n, k, matrices, peak, 1, row, site);

    t.bytes = g->head.bytes;
    t.start = 0;
    t.after = vn__odd_tile_seconds(g, blk_m, blk_n, row->cost[VN_ODD_C], site);
    return t;
}

double vn__gemm_seconds(const struct gemm *g, int64_t blk_m, int64_t blk_n, int64_t k, double matrices,
                        double peak, int resident, const struct vn_row *row, const struct vn_site *site)
{
    const struct vn_tiles t = vn__gemm_tiles(g, blk_m, blk_n, k, matrices, peak, resident, row, site);

    return vn__tiles_seconds(&t, row, site);
}

/* ---- CPUs ------------------------------------------------------------------------------ */

/* A core takes its flops at EFF thousandths of its rate of multiply-adds, and so many picoseconds for
 * each byte of A, B and C, ODD thousandths of that for one that is not read along contiguous rows; a
 * launch takes FIXED_NS.                                                                           */
double vn__cpu_seconds(const struct gemm *g, const struct vn_cpu_work *w, const struct vn_row *row,
                       const struct vn_site *site)
{
    enum { EFF, FIXED_NS, A_PS, ODD_A, B_PS, ODD_B, C_PS };
    const int *const cost = row->cost;
    const double a = w->a * cost[A_PS] * (w->odd_a ? cost[ODD_A] / 1000.0 : 1);
    const double b = w->b * cost[B_PS] * (w->odd_b ? cost[ODD_B] / 1000.0 : 1), c = w->c * cost[C_PS];

    if (cost[EFF] <= 0)
        return 0;
    return w->launches * cost[FIXED_NS] * 1e-9 +
           (w->flops / (vn__fma_peak(g, site) * 1e6 * cost[EFF]) + (a + b + c) * 1e-12) / w->cores;
}

struct vn_cpu_work vn__cpu_tiles(const struct gemm *g, int64_t thr_m, int64_t thr_n,
                                 const struct vn_site *site)
{
    const double down = (double)VN_CEIL_DIV(g->m, thr_m), across = (double)VN_CEIL_DIV(g->n, thr_n);
    const double tiles = down * across * (double)g->batches, bytes = (double)vn_type_bytes(g->head.type);
    const double units = site->facts->units;

    return (struct vn_cpu_work){
        .launches = 1, .flops = 2 * tiles * (double)(thr_m * thr_n) * (double)g->k,
        .cores = tiles < units ? tiles : units,
        .a = (double)g->m * (double)g->k * (double)g->batches * bytes,
        .b = (double)g->n * (double)g->k * (double)g->batches * bytes,
        .c = (double)g->m * (double)g->n * (double)g->batches * bytes,
        .odd_a = vn__col(&g->a) != 1 && g->k > 1, .odd_b = vn__col(&g->b) != 1 && g->n > 1 };
}
