/* SPDX-License-Identifier: Apache-2.0
 *
 * wgmma.c - the variants gemm_wgmma and gemm_wgmma_splitk: 16-bit types on NVIDIA's sm_90.
 *
 * A C that has fewer tiles than the device has compute units leaves the others idle.  Rows with smaller tiles
 * make more of them, which read A and B more often; where C is too small for those, too, split-K makes more.
 */
#include <limits.h>
#include <string.h>

#include "gemm.h"

enum { BLK_N, STAGES, WARPGROUPS, RASTER, TEAMS };      /* their parameters; TEAMS: of gemm_wgmma */
enum { TILES, GROUPS, SPLITS, SPAN };           /* values of a plan; SPAN: slices of K in each split,
                                                   but the last */
enum { ACT_NS = VN_TMA_COST_COUNT, HALF_C };    /* the last costs of gemm_wgmma */
enum { BLK_K = 64, WARPGROUP_M = 64, MOST_GROUPS = 1024, MOST_SPLITS = 64 };

const char *vn__fits_wgmma(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;
    const char *why;

    if (vn__sm(f) != 90)
        return "it needs an NVIDIA GPU of sm_90, for wgmma";
    if (g->head.type != VN_F16 && g->head.type != VN_BF16)
        return "it needs f16 or bf16";
    if (g->k == 0)
        return "there is nothing to multiply";
    if ((why = vn__fits_order(g)) || (why = vn__fits_half_sizes(g)))
        return why;
    if (!vn__fits_tma(&g->a, vn__col(&g->a), vn__row(&g->a)) &&
        !vn__fits_tma(&g->a, vn__row(&g->a), vn__col(&g->a)))
        return "A must be contiguous along K or M, with 16-byte aligned rows and at most one batch dimension";
    if (!vn__fits_tma(&g->b, vn__row(&g->b), vn__col(&g->b)) &&
        !vn__fits_tma(&g->b, vn__col(&g->b), vn__row(&g->b)))
        return "B must be contiguous along K or N, with 16-byte aligned rows and at most one batch dimension";
    return NULL;
}

static int is_in_vectors(const struct gemm *g, const vn_tensor *t)
{
    const int64_t step = t->rank > 2 ? t->stride[t->rank - 3] : 0;

    return g->c.rank <= 3 && vn__in_vectors(t, t->rank - 2, t->rank - 1, step, g->n);
}

static int adds_matrix(const struct gemm *g)
{
    return g->head.epilogue.residual > VN_SAME_COLUMNS;
}

/* Whether the residual goes through the stages of the operands (cl/tile/staged_residual.h). */
static int is_staged(const struct gemm *g)
{
    return adds_matrix(g) && vn_type_bytes(g->residual.type) == 2 && is_in_vectors(g, &g->residual);
}

int vn__gemm_in_vectors(const struct gemm *g)
{
    return is_in_vectors(g, &g->c) && (!adds_matrix(g) || is_in_vectors(g, &g->residual));
}

/* An operand that TMA can read either way is read as K-major. */
void vn__constants_wgmma(int *c, const void *problem)
{
    const struct gemm *g = problem;

    c[0] = !vn__fits_tma(&g->a, vn__col(&g->a), vn__row(&g->a));
    c[1] = !vn__fits_tma(&g->b, vn__row(&g->b), vn__col(&g->b));
}

void vn__constants_wgmma_tiles(int *c, const void *problem)
{
    vn__constants_wgmma(c, problem);
    c[2] = vn__gemm_in_vectors(problem);
}

/* ---- plans ---------------------------------------------------------------------------- */

static int64_t slices_of(const struct gemm *g)
{
    return VN_CEIL_DIV(g->k, BLK_K);
}

static int64_t blk_m(const int *p)
{
    return WARPGROUP_M * p[WARPGROUPS];
}

static int64_t tiles_of(const struct gemm *g, const int *p)
{
    return VN_CEIL_DIV(g->m, blk_m(p)) * VN_CEIL_DIV(g->n, p[BLK_N]);
}

/* Work-groups that run at the same time: what their local memory leaves room for. */
static int64_t groups_of(const int *p, int64_t tiles, const struct vn_site *site)
{
    enum { OTHER = 1024 };
    const int bytes = p[STAGES] * 2 * BLK_K * (WARPGROUP_M * p[WARPGROUPS] + p[BLK_N]) + OTHER;
    const int64_t each = (int64_t)(site->rates->local_kib * 1024) / bytes;
    const int64_t most = site->facts->units * (each > 1 ? each : 1);
    const int64_t fewer = most < MOST_GROUPS ? most : MOST_GROUPS;

    return tiles < fewer ? tiles : fewer;
}

/* Lines, in the mean of tiles, that rows of K ask for of an operand that is short the other way. */
static double short_lines_of(const struct gemm *g, int64_t splits, int64_t span, const int *p,
                             const struct vn_site *site)
{
    const int64_t k = span * BLK_K < g->k ? span * BLK_K : g->k;
    const double matrices = (double)(g->batches * splits);
    const int64_t tiles = tiles_of(g, p), units = site->facts->units;
    const double some = units > tiles ? (double)(units / tiles) : 1;    /* of these, at the same time */
    const double at_a_time = some < matrices ? some : matrices;

    return (vn__short_lines_of(&g->a, vn__row(&g->a), k) + vn__short_lines_of(&g->b, vn__col(&g->b), k)) /
           at_a_time;
}

static double seconds_of(const struct gemm *g, int64_t splits, int64_t span, int after_ns, int half_c,
                         const struct vn_row *row, const struct vn_site *site)
{
    const int64_t rows = blk_m(row->p), columns = row->p[BLK_N];
    struct vn_tiles t = vn__tma_tiles(g, rows, columns, span * BLK_K, (double)(g->batches * splits),
                                      site->rates->mma16 * vn__off_lines_of(&g->a, row) *
                                      vn__off_lines_of(&g->b, row), row, site);

    t.after += after_ns * 1e-9;
    t.bytes += vn__half_c_bytes(g, half_c);
    t.lines = (double)span * (vn__lines_of(&g->a, g->m, rows) + vn__lines_of(&g->b, g->n, columns)) +
              short_lines_of(g, splits, span, row->p, site);
    return vn__tiles_seconds(&t, row, site);
}

static const char *share_tiles(struct vn_plan *out, const struct gemm *g, int64_t splits, int64_t span,
                               const struct vn_row *row, const struct vn_site *site)
{
    out->v[SPLITS] = splits;
    out->v[SPAN] = span;
    if (!vn__mul(&out->v[TILES], tiles_of(g, row->p), g->batches * splits) || out->v[TILES] > INT_MAX / 2) {
        out->seconds = -1;
        return "C has more than 2^30 tiles";
    }
    out->v[GROUPS] = groups_of(row->p, out->v[TILES], site);
    return NULL;
}

const char *vn__plan_wgmma_tiles(struct vn_plan *out, const struct gemm *g, int after_ns, int half_c,
                                 const struct vn_row *row, const struct vn_site *site)
{
    if (row->p[BLK_N] % BLK_K && !vn__fits_tma(&g->b, vn__row(&g->b), vn__col(&g->b))) {
        out->seconds = -1;
        return "a tile of an N-major B must be made of whole boxes";
    }
    out->seconds = seconds_of(g, 1, slices_of(g), after_ns, half_c, row, site);
    return share_tiles(out, g, 1, slices_of(g), row, site);
}

const char *vn__plan_wgmma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                           const struct vn_site *site)
{
    const int is_long = ((const struct gemm *)problem)->activation > VN_RELU;

    return vn__plan_wgmma_tiles(out, problem, is_long ? row->cost[ACT_NS] : 0, row->cost[HALF_C], row, site);
}

/* ---- launches ----------------------------------------------------------------------- */

static int teams(const int *p)
{
    return p[TEAMS] > 1 ? p[TEAMS] : 1;
}

/* Whether the producer gives registers to the consumers: as the kernel's text says. */
static int moves_registers(const struct gemm *g, const int *p)
{
    return p[BLK_N] * p[WARPGROUPS] * teams(p) == 512 && vn__takes_registers(&g->head.epilogue);
}

vn_status vn__gemm_by_maps(struct vn_launch *l, vn_queue *q, const struct gemm *g, const int64_t tile[2],
                           int64_t raster, int64_t groups, int64_t tiles, int staged)
{
    vn_status s;

    vn__gemm_sizes(l, g);
    vn__arg_int(l, groups);
    vn__arg_int(l, tiles);
    vn__arg_real(l, g->head.type, g->alpha);
    if ((s = vn__arg_maps(l, q)))
        return s;
    vn__arg_buffer(l, g->a.buffer);
    vn__arg_buffer(l, g->b.buffer);
    vn__arg_int(l, g->batches);
    vn__arg_int(l, staged);
    vn__arg_tiles(l, VN_CEIL_DIV(g->m, tile[0]), VN_CEIL_DIV(g->n, tile[1]), raster, g->batches);
    vn__arg_strides(l, &g->a);
    vn__arg_strides(l, &g->b);
    vn__arg_extents(l, &g->c);
    return VN_OK;
}

/* All but what follows the product. */
static vn_status launch_of(struct vn_launch *l, vn_queue *q, const struct vn_choice *it, const struct gemm *g,
                           const struct vn_plan *plan, int moves, int staged)
{
    enum { WARP = 32, WARPGROUP = 128 };
    const int64_t tile[2] = { blk_m(it->p), it->p[BLK_N] };

    *l = (struct vn_launch){ .groups = { plan->v[GROUPS], 1, 1 },
                             .items = WARPGROUP * it->p[WARPGROUPS] * teams(it->p) +
                                      (moves ? WARPGROUP : WARP) };
    return vn__gemm_by_maps(l, q, g, tile, it->p[RASTER], plan->v[GROUPS], plan->v[TILES], staged);
}

/* The rows and columns of C that the first tiles of all work-groups have:
 * as the scheduler of the kernel deals them.                           */
static void first_tiles(int64_t *m, int64_t *n, const struct gemm *g, const int *p, int64_t groups)
{
    const int64_t rows = VN_CEIL_DIV(g->m, blk_m(p)), columns = VN_CEIL_DIV(g->n, p[BLK_N]);
    const int64_t raster = p[RASTER];
    const int64_t whole = groups / (raster * columns), in_group = rows < raster ? rows : raster;

    *m = (whole + 1) * raster * blk_m(p);
    *n = whole > 0 ? g->n : VN_CEIL_DIV(groups, in_group) * p[BLK_N];
}

/* The kernel's text says what these are. */
static vn_status arg_repack(struct vn_launch *l, vn_queue *q, const struct gemm *g, const int *p,
                            int64_t groups, const struct vn_repack *repack)
{
    enum { STRIP = 512, CHUNKS = 32, WARPS = 3 };
    int64_t m, n, first_a, first_b;
    vn_buffer *counters;
    vn_status s;

    if ((s = vn__counters(&counters, q)))
        return s;
    first_tiles(&m, &n, g, p, groups);
    first_a = VN_CEIL_DIV(m, STRIP);
    first_b = VN_CEIL_DIV(n, STRIP);
    l->items += 32 * WARPS;
    vn__arg_tensor(l, &repack->a);
    vn__arg_tensor(l, &repack->b);
    vn__arg_int(l, repack->strips_a);
    vn__arg_int(l, repack->strips_b);
    vn__arg_int(l, first_a < repack->strips_a ? first_a : repack->strips_a);
    vn__arg_int(l, first_b < repack->strips_b ? first_b : repack->strips_b);
    vn__arg_int(l, STRIP * VN_CEIL_DIV(g->k, STRIP * CHUNKS));
    vn__arg_buffer(l, counters);
    return VN_OK;
}

vn_status vn__launch_wgmma(vn_queue *q, const struct vn_choice *it, const struct gemm *g,
                           const struct vn_plan *plan, const struct vn_repack *repack)
{
    struct vn_launch l = { .nargs = 0 };
    vn_status s;

    if ((s = launch_of(&l, q, it, g, plan, !repack && moves_registers(g, it->p), !repack && is_staged(g))) ||
        (repack && (s = arg_repack(&l, q, g, it->p, plan->v[GROUPS], repack))))
        return s;
    vn__gemm_output(&l, g);
    return vn__launch(q, it, 0, &l);
}

vn_status vn__run_wgmma(vn_queue *q, const struct vn_choice *it, const void *problem,
                        const struct vn_plan *plan)
{
    return vn__launch_wgmma(q, it, problem, plan, NULL);
}

/* ---- split-K -------------------------------------------------------------------------- */

const char *vn__fits_wgmma_splitk(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;
    const char *why = vn__fits_wgmma(problem, f);

    return why ? why : slices_of(g) < 2 ? "K is too short to be split" : NULL;
}

/* The number of splits that takes the least time; their partial sums take no more room than A and B. */
const char *vn__plan_wgmma_splitk(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                  const struct vn_site *site)
{
    const struct gemm *g = problem;
    const int64_t slices = slices_of(g), room = (g->m * g->k + g->k * g->n) / (2 * g->m * g->n);
    const double c_bytes = (double)g->m * (double)g->n * (double)g->batches * sizeof(float);
    int64_t best = 0, best_span = slices, sums;

    for (int64_t wanted = 2; wanted <= slices && wanted <= MOST_SPLITS; wanted++) {
        const int64_t span = VN_CEIL_DIV(slices, wanted), splits = VN_CEIL_DIV(slices, span);
        const double added = vn__launch_seconds(site) +
                             2 * c_bytes * (double)splits / (site->rates->l2_gbps * 1e9);
        const double seconds = seconds_of(g, splits, span, 0, 0, row, site) + added;

        if (best && (splits > room || seconds >= out->seconds))
            continue;
        best = splits;
        best_span = span;
        out->seconds = seconds;
    }
    if (!vn__mul(&sums, best * g->batches, g->m * g->n) || sums > INT_MAX / 4) {
        out->seconds = -1;
        return "the partial sums of all splits must stay below 2^29 elements";
    }
    if (share_tiles(out, g, best, best_span, row, site))
        return "C has more than 2^30 tiles in all splits";
    out->workspace = (size_t)sums * sizeof(float);
    return best > room ? "C has more elements than A and B: K is too short to be split" : NULL;
}

vn_status vn__run_wgmma_splitk(vn_queue *q, const struct vn_choice *it, const void *problem,
                               const struct vn_plan *plan)
{
    const struct gemm *g = problem;
    struct vn_launch l = { .nargs = 0 };
    vn_buffer *room;
    vn_status s = vn__workspace(&room, q, plan->workspace);

    if (s || (s = launch_of(&l, q, it, g, plan, 0, 0)))
        return s;
    vn__arg_int(&l, plan->v[SPAN]);
    vn__arg_buffer(&l, room);
    if ((s = vn__launch(q, it, 0, &l)))
        return s;
    return vn__add_splits(q, it, 1, l.items, g, room, 0, plan->v[SPLITS]);
}
