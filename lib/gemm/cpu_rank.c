/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_rank.c - the variant gemm_cpu_rank: CPUs, few rows, an N-major B.
 */
#include <stdint.h>
#include <string.h>

#include "gemm.h"

enum { SPLIT_FROM = 1 << 21, LEAST_B = 1 << 17, LEAST_ROWS = 4 };
enum { THR_K, THR_V, VEC, BLK_M, BLK_C, BLK_K };
enum { SUM_N = 1024 };                          /* columns of a work-group that adds splits */

const char *vn__fits_cpu_rank(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    if (vn__col(&g->b) != 1 || g->n < 32)
        return "B must be N-major, with at least 32 columns";
    return vn__fits_cpu(problem, f);
}

/* How the problem is divided: columns of a work-group; splits of K; and how many columns ahead B is
 * prefetched, 0 where it is not. */
struct cut { int64_t cols, splits, ahead; };

/* The most splits of K that pay: none for a small B, else each must have at least BLK_K. */
static int64_t most_splits(const struct gemm *g, const int *p)
{
    const int is_split = g->n * g->k >= SPLIT_FROM && g->math != VN_MATH_BITWISE;

    return is_split && g->k / p[BLK_K] > 1 ? g->k / p[BLK_K] : 1;
}

/* Prefetching gains for long rows of a B that is not in the caches; elsewhere, or where arithmetic takes
 * longer anyway, it costs. */
static int64_t ahead_for(const struct gemm *g, int tile)
{
    enum { CACHED = 1 << 22, LONG = 1024, PANELS = 8 };

    return g->m <= 8 && g->n >= LONG && g->n * g->k > CACHED ? PANELS * tile : 0;
}

/* A large B is read in long rows, and split along K among all cores. A small one is divided into columns,
 * which needs no second launch, among as many cores as are worth waking. */
static struct cut cut_for(const struct gemm *g, const int *p, int units)
{
    const int tile = p[THR_V] * p[VEC];
    const int64_t rows = g->m < p[BLK_M] ? g->m : p[BLK_M];
    const int64_t most = p[BLK_C] / rows / tile * tile, all = VN_CEIL_DIV(g->n, tile) * tile;
    const int64_t wanted = VN_CEIL_DIV(4 * (int64_t)units, g->batches * VN_CEIL_DIV(g->m, p[BLK_M]));
    const int64_t splits = most_splits(g, p), even = VN_CEIL_DIV(VN_CEIL_DIV(g->n, tile), wanted) * tile;
    struct cut c = { VN_CEIL_DIV(all / tile, VN_CEIL_DIV(all, most)) * tile, 1, ahead_for(g, tile) };

    if (splits > 1) {
        c.splits = VN_CEIL_DIV(wanted, VN_CEIL_DIV(g->n, c.cols));
        c.splits = c.splits < splits ? c.splits : splits;
    } else {
        const int64_t weight = rows > LEAST_ROWS ? rows / LEAST_ROWS : 1;      /* of an element of B */
        const int64_t least = VN_CEIL_DIV(LEAST_B / weight / (g->k ? g->k : 1), tile) * tile;
        const int64_t cols = even > least ? even : least;

        c.cols = cols > 0 && cols < c.cols ? cols : c.cols;
    }
    return c;
}

static size_t sum_bytes(const struct gemm *g, int64_t splits)
{
    int64_t bytes = splits * (g->head.type == VN_F64 ? 8 : 4);

    return vn__mul(&bytes, bytes, g->m * g->batches) && vn__mul(&bytes, bytes, g->n)
         ? (size_t)bytes : SIZE_MAX;
}

const char *vn__plan_cpu_rank(struct vn_plan *out, const void *problem, const struct vn_row *row,
                              const struct vn_site *site)
{
    const struct gemm *g = problem;
    const struct cut cut = cut_for(g, row->p, site->facts->units);

    struct vn_cpu_work w = vn__cpu_tiles(g, 1, row->p[THR_V] * row->p[VEC], site);

    memcpy(out->v, (int64_t[]){ cut.cols, cut.splits, cut.ahead }, 3 * sizeof *out->v);
    out->workspace = cut.splits > 1 ? sum_bytes(g, cut.splits) : 0;
    w.launches = cut.splits > 1 ? 2 : 1;
    w.b *= (double)VN_CEIL_DIV(g->m, row->p[BLK_M]);
    w.c *= cut.splits > 1 ? 2 * (double)cut.splits : 1;
    out->seconds = vn__cpu_seconds(g, &w, row, site);
    return NULL;
}

static vn_status add_splits(vn_queue *q, const struct vn_choice *it, const struct gemm *g, int64_t splits,
                            vn_buffer *sums)
{
    struct vn_launch l = { .nargs = 0 };

    l.groups[0] = VN_CEIL_DIV(g->n, SUM_N);
    l.groups[1] = g->m;
    l.groups[2] = g->batches;
    l.items = 1;
    vn__arg_int(&l, g->m);
    vn__arg_int(&l, g->n);
    vn__arg_int(&l, splits);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__arg_buffer(&l, sums);
    vn__gemm_output(&l, g);
    return vn__launch(q, it, 1, &l);
}

vn_status vn__run_cpu_rank(vn_queue *q, const struct vn_choice *it, const void *problem,
                           const struct vn_plan *plan)
{
    const struct gemm *g = problem;
    const struct cut cut = { plan->v[0], plan->v[1], plan->v[2] };
    vn_buffer *sums = g->c.buffer;
    struct vn_launch l = { .nargs = 0 };
    vn_status s;

    if (cut.splits > 1 && (s = vn__workspace(&sums, q, plan->workspace)))
        return s;
    l.groups[0] = VN_CEIL_DIV(g->n, cut.cols);
    l.groups[1] = VN_CEIL_DIV(g->m, it->p[BLK_M]) * cut.splits;
    l.groups[2] = g->batches;
    l.items = 1;
    vn__gemm_sizes(&l, g);
    vn__arg_int(&l, cut.cols);
    vn__arg_int(&l, cut.splits);
    vn__arg_int(&l, cut.ahead);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__gemm_inputs(&l, g);
    vn__arg_buffer(&l, sums);
    vn__gemm_output(&l, g);
    if ((s = vn__launch(q, it, 0, &l)) || cut.splits == 1)
        return s;
    return add_splits(q, it, g, cut.splits, sums);
}

