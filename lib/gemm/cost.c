/* SPDX-License-Identifier: Apache-2.0
 *
 * cost.c - the time of a product on a GPU, from the rates of the device and the cost columns of a row.
 *
 * A kernel makes C in tiles, one or several at a time on a compute unit.  It takes FIXED_NS once, and for a
 * tile its flops at EFF thousandths of what the engine does in a compute unit.  Where compute units make
 * several tiles, they take TILE_NS more for each, and get EFF_FULL thousandths together; EFF_DRAM, where the
 * operands do not stay in the second-level cache.  Tiles are made in waves, the last of which leaves some
 * units idle; and no wave is done before its share of the bytes is read.  A C whose rows are not 16-byte
 * aligned is stored in smaller pieces, which takes as long as ODD_C thousandths of its bytes more.
 */
#include <math.h>

#include "gemm.h"

int vn__resident(int items)
{
    enum { ITEMS = 1024, MOST = 16 };

    return items >= ITEMS ? 1 : ITEMS / items < MOST ? ITEMS / items : MOST;
}

int vn__stays_in_l2(double bytes, const struct vn_site *site)
{
    return bytes <= site->rates->l2_mb * 1e6;
}

double vn__launch_seconds(const struct vn_site *site)
{
    return site->rates->launch_ns * 1e-9;
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

static double larger(double a, double b) { return a > b ? a : b; }

double vn__odd_c_bytes(const struct gemm *g, int thousandths)
{
    return vn__fits_tma(&g->c, vn__col(&g->c), vn__row(&g->c)) ? 0
         : (double)g->m * (double)g->n * (double)g->batches * (double)vn_type_bytes(g->head.type) *
           thousandths / 1000;
}

/* Each wave of one tile for each unit takes `tile`, and no less than its share of the bytes. */
static double in_waves(const struct vn_tiles *t, double tile, double bytes, const struct vn_site *site)
{
    const double units = site->facts->units, each = bytes / t->tiles;
    const double full = floor(t->tiles / units), left = t->tiles - full * units;
    const double waves = full * larger(tile, units * each) + (left > 0 ? larger(tile, left * each) : 0);
    const double even = larger(t->tiles / units * tile, bytes);

    return site->rates->waves * waves + (1 - site->rates->waves) * even;
}

double vn__tiles_seconds(const struct vn_tiles *t, const struct vn_row *row, const struct vn_site *site)
{
    const struct vn_rates *r = site->rates;
    const int in_l2 = vn__stays_in_l2(t->bytes, site), *const cost = row->cost;
    const double units = site->facts->units, fixed = cost[VN_FIXED_NS] * 1e-9, tile = cost[VN_TILE_NS] * 1e-9;
    const double bytes = t->bytes / ((in_l2 ? r->l2_gbps : r->gbps) * 1e9);
    const double alone = t->flops / (t->peak * 1e6 * cost[VN_EFF]);
    const double full = t->flops / (t->peak * 1e6 * cost[in_l2 ? VN_EFF_FULL : VN_EFF_DRAM]);

    if (cost[VN_EFF] <= 0 || cost[VN_EFF_FULL] <= 0 || cost[VN_EFF_DRAM] <= 0 || t->peak <= 0)
        return 0;
    if (t->tiles <= units)
        return fixed + larger(in_l2 ? alone : larger(alone, full), bytes);
    if (t->resident <= 1)
        return fixed + in_waves(t, full + tile, bytes, site);
    return fixed + larger(larger(ceil(t->tiles / (units * t->resident)) * (alone + tile),
                                 ceil(t->tiles / units) * full),
                          bytes);
}

double vn__gemm_seconds(const struct gemm *g, int64_t blk_m, int64_t blk_n, int64_t k, double matrices,
                        double peak, int resident, const struct vn_row *row, const struct vn_site *site)
{
    const struct vn_tiles t = {
        .tiles = (double)VN_CEIL_DIV(g->m, blk_m) * (double)VN_CEIL_DIV(g->n, blk_n) * matrices,
        .flops = 2.0 * (double)blk_m * (double)blk_n * (double)k,
        .bytes = g->head.bytes + vn__odd_c_bytes(g, row->cost[VN_ODD_C]), .peak = peak,
        .resident = resident };

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
