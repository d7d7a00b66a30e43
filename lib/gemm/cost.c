/* SPDX-License-Identifier: Apache-2.0
 *
 * cost.c - the time of a product on a GPU, from the rates of the device and the cost columns of a row.
 *
 * A kernel makes C in tiles.  A tile takes its flops at EFF thousandths of what its engine does in a compute unit,
 * and TILE_NS for what is not arithmetic: the first loads, the store.  EFF holds where all tiles are made at the
 * same time of operands that the second-level cache keeps; else EFF_FULL.  Compute units make one tile after the
 * other, in waves, the last of which leaves some idle; and no wave is done before its share of the bytes is read.
 */
#include <math.h>

#include "gemm.h"

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

double vn__tiles_seconds(const struct vn_tiles *t, const struct vn_row *row, const struct vn_site *site)
{
    const struct vn_rates *r = site->rates;
    const int in_l2 = vn__stays_in_l2(t->bytes, site);
    const double units = site->facts->units, fixed = row->cost[VN_TILE_NS] * 1e-9;
    const int eff = row->cost[in_l2 && t->tiles <= units ? VN_EFF : VN_EFF_FULL];
    const double tile = t->flops / (t->peak * 1e6 * eff) + fixed;
    const double bytes = t->bytes / ((in_l2 ? r->l2_gbps : r->gbps) * 1e9), each = bytes / t->tiles;
    const double full = floor(t->tiles / units), left = t->tiles - full * units;
    double waves, even;

    if (eff <= 0 || t->peak <= 0)
        return 0;
    waves = full * larger(tile, units * each + fixed) + (left > 0 ? larger(tile, left * each + fixed) : 0);
    even = larger(larger(t->tiles / units, 1) * tile, bytes);
    return r->waves * waves + (1 - r->waves) * even;
}

double vn__gemm_seconds(const struct gemm *g, int64_t blk_m, int64_t blk_n, int64_t k, double matrices, double peak,
                        const struct vn_row *row, const struct vn_site *site)
{
    const struct vn_tiles t = {
        .tiles = (double)VN_CEIL_DIV(g->m, blk_m) * (double)VN_CEIL_DIV(g->n, blk_n) * matrices,
        .flops = 2.0 * (double)blk_m * (double)blk_n * (double)k, .bytes = g->head.bytes, .peak = peak };

    return vn__tiles_seconds(&t, row, site);
}
