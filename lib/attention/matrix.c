/* SPDX-License-Identifier: Apache-2.0
 *
 * matrix.c - the variants attention_mfma, attention_wmma, attention_dpas: matrix engines of AMD and Intel.
 *
 * As with products, whether the device has the engine that a row names is found by trying.
 */
#include <limits.h>

#include "attention.h"

/* Parameters by their place in the table, costs, and values of a plan. */
enum { HEAD, BLK_N, BLK_K, WAVES, COLUMNS, ENGINE, LANES, SPLIT_V, Q_REGISTERS };
enum { EFF, TILE_NS };
enum { TILES, SECTION };

/* ---- fits ------------------------------------------------------------------------- */

static const char *fits(const struct attention *a)
{
    return a->backward ? "it computes no gradients" : vn__attention_fits_rows(a);
}

#define FITS(engine, name)                                                                                   \
    const char *vn__fits_attention_##engine(const void *problem, const struct vn_facts *f)                   \
    {                                                                                                        \
        const char *const why = vn__lacks_engine(f, name, ((const struct attention *)problem)->head.type);   \
                                                                                                             \
        return why ? why : fits(problem);                                                                    \
    }
FITS(mfma, "MFMA")
FITS(wmma, "WMMA")
FITS(dpas, "DPAS")

/* Scores are not only scaled by what can be put off to their exponentials. */
static int is_general(const struct attention *a)
{
    return a->has_mask || a->softcap > 0 || !(a->scale >= 0x1p-100 && a->scale <= 0x1p100);
}

void vn__constants_attention_matrix(int *c, const void *problem)
{
    c[0] = is_general(problem) ? 2 : 1;
}

/* ---- plans -------------------------------------------------------------------------- */

/* Of an instruction's block of C: columns are queries. */
static int columns_of(int engine)
{
    return engine == 908 || engine == 90 ? 32 : engine == 8 ? 8 : 16;
}

static int64_t blk_m(const int *p)
{
    return (int64_t)p[WAVES] / p[SPLIT_V] * p[COLUMNS] * columns_of(p[ENGINE]);
}

static int items_of(const int *p)
{
    return p[WAVES] * p[LANES];
}

/* Queries, unless they are in registers by the time that keys and values come. */
static size_t local_bytes(const int *p)
{
    const size_t queries = 2 * (size_t)(blk_m(p) * p[HEAD]), both = 4 * (size_t)(p[BLK_N] * p[HEAD]);

    return p[Q_REGISTERS] ? (queries > both ? queries : both) : queries + both;
}

/* Of a block of keys, in nanoseconds: both products, with scores once for each wave that has the queries. */
static double block_ns(const struct vn_row *row, const struct vn_site *site)
{
    const int *p = row->p;
    const double flops = 2.0 * (double)blk_m(p) * p[BLK_N] * p[HEAD] * (p[SPLIT_V] + 1);

    return flops / (site->rates->mma16 * row->cost[EFF] / 1000.0);
}

static const char *cannot(struct vn_plan *out, const char *why)
{
    out->seconds = -1;
    return why;
}

const char *vn__plan_attention_matrix(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                      const struct vn_site *site)
{
    const struct attention *a = problem;
    const int *p = row->p;
    const double units = site->facts->units < 1 ? 1 : site->facts->units;
    double read;

    if (p[HEAD] < a->d || p[HEAD] < a->dv)
        return cannot(out, "this row is for smaller heads");
    if (local_bytes(p) > site->facts->local_bytes)
        return cannot(out, "this row takes more local memory than there is");
    if (items_of(p) > site->facts->items)
        return cannot(out, "its work-groups are larger than the device's");
    if (!vn__mul(&out->v[TILES], a->batches * a->heads, VN_CEIL_DIV(a->queries, blk_m(p))) ||
        out->v[TILES] > INT_MAX / 2)
        return cannot(out, "the queries have more than 2^30 tiles");
    out->v[SECTION] = vn__attention_section(a, site->rates, 2);
    out->seconds = vn__attention_tile_seconds(a, vn__attention_blocks(a, blk_m(p), p[BLK_N]),
                                              block_ns(row, site), row->cost[TILE_NS],
                                              (double)out->v[TILES], units);
    read = vn__attention_read_seconds(a, site->rates);
    if (out->seconds < read)
        out->seconds = read;
    return p[HEAD] / 2 >= a->d && p[HEAD] / 2 >= a->dv ? "this row is for larger heads" : NULL;
}

/* ---- the launch --------------------------------------------------------------------- */

vn_status vn__run_attention_matrix(vn_queue *q, const struct vn_choice *it, const void *problem,
                                   const struct vn_plan *plan)
{
    const struct attention *a = problem;
    struct vn_launch l = { .groups = { plan->v[TILES], 1, 1 }, .items = items_of(it->p) };

    vn__attention_begin(&l, a);
    vn__attention_more(&l, a);
    vn__arg_int(&l, a->batches);
    vn__arg_int(&l, a->heads);
    vn__arg_int(&l, plan->v[SECTION]);
    return vn__launch(q, it, 0, &l);
}
