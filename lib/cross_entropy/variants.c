/* SPDX-License-Identifier: Apache-2.0
 *
 * variants.c - the variants of cross-entropy, a row each, and their launches.
 */
#include "cross_entropy.h"

/* Parameters by their place, as the table names them; and the cost of the kernels by rows. */
enum { ITEMS, ROW_ITEMS, VALUES };
enum { LONGER };

/* ---- fits, plans ------------------------------------------------------------------ */

static void whole_of(int *c, const void *problem)
{
    c[0] = ((const struct cross_entropy *)problem)->whole;
}

/* Elements of a row, and of one that may begin off a multiple of 16 bytes, those before. */
static int64_t places_of(const struct cross_entropy *e)
{
    return e->n + (e->whole ? 0 : 16 / (int64_t)vn_type_bytes(e->head.type) - 1);
}

/* LONGER: whether this row of parameters is also for rows that registers do not hold. */
static const char *plan_rows(struct vn_plan *out, const void *problem, const struct vn_row *row,
                             const struct vn_site *site)
{
    const struct cross_entropy *e = problem;

    (void)out;
    return row->p[ITEMS] > site->facts->items ? "its work-groups are larger than the device's"
         : places_of(e) > (int64_t)row->p[ROW_ITEMS] * row->p[VALUES] && !row->cost[LONGER]
         ? "its work-items do not hold a row" : NULL;
}

/* ---- launches --------------------------------------------------------------------- */

/* The arguments that all kernels begin with; `each` is how much a group takes. */
static void begin(struct vn_launch *l, const struct cross_entropy *e, int64_t each)
{
    const vn_ints *t = &e->targets;
    const int64_t shape[8] = { e->rows, e->n, t->start, t->stride, t->bytes / 4, e->ignore, each, 0 };

    vn__arg_view(l, shape);
    vn__arg_tensor(l, &e->t[X]);
    vn__arg_buffer(l, e->targets.buffer);
    vn__arg_tensor(l, &e->t[LOSS]);
    vn__arg_tensor(l, &e->t[DX]);
    vn__arg_int(l, e->has_dx);
    vn__arg_tensor(l, &e->t[WEIGHTS]);
    vn__arg_int(l, e->has_weights);
    vn__arg_tensor(l, &e->t[LSE]);
    vn__arg_int(l, e->has_lse);
    vn__arg_real(l, e->head.type, e->smoothing);
    vn__arg_real(l, e->head.type, e->z_loss);
}

static vn_status launch(vn_queue *q, const struct vn_choice *it, const struct cross_entropy *e, int64_t each,
                        int items)
{
    struct vn_launch l = { .groups = { VN_CEIL_DIV(e->rows, each), 1, 1 }, .items = items };

    if (l.groups[0] > INT32_MAX)
        return vn__fail(VN_UNSUPPORTED, "x has %lld rows; %s takes at most %lld", (long long)e->rows,
                        it->variant->name, (long long)INT32_MAX * each);
    begin(&l, e, each);
    return vn__launch(q, it, 0, &l);
}

static vn_status run_rows(vn_queue *q, const struct vn_choice *it, const void *problem,
                          const struct vn_plan *plan)
{
    (void)plan;
    return launch(q, it, problem, it->p[ITEMS] / it->p[ROW_ITEMS], it->p[ITEMS]);
}

static const char *plan_team(struct vn_plan *out, const void *problem, const struct vn_row *row,
                             const struct vn_site *site)
{
    const struct cross_entropy *e = problem;
    const char *const why = vn__plan_team(out, e->rows, places_of(e), e->head.type, row);

    return why ? why : !e->has_dx && vn__rows_fill(e->rows, site)
         ? "for a loss alone one work-group reads a row once as well, and rows fill the device" : NULL;
}

static vn_status run_team(vn_queue *q, const struct vn_choice *it, const void *problem,
                          const struct vn_plan *plan)
{
    const struct cross_entropy *e = problem;
    struct vn_launch l = { .nargs = 0 };

    begin(&l, e, plan->v[VN_TEAM_SPAN]);
    return vn__launch_team(q, it, &l, e->rows, plan);
}

/* A work-group of a CPU costs about a microsecond to start: it takes rows of some 64 Ki logits, unless that
 * would leave cores idle.                                                                             */
static vn_status run_cpu(vn_queue *q, const struct vn_choice *it, const void *problem,
                         const struct vn_plan *plan)
{
    const struct cross_entropy *e = problem;
    const int64_t share = VN_CEIL_DIV(e->rows, 4 * (int64_t)e->units), fill = VN_CEIL_DIV(65536, e->n);
    const int64_t least = VN_CEIL_DIV(e->rows, INT32_MAX);

    (void)plan;
    return launch(q, it, e, fill < share ? (fill > least ? fill : least) : share, 1);
}

/* ---- the table -------------------------------------------------------------------- */

#define ROW_TEXTS "cl/tile/row.h cl/tile/exponentials.h cl/cross_entropy/cross_entropy.h " \
                  "cl/cross_entropy/rows.h "
#define PTX_TEXTS "cl/atoms/nvidia/warp.h cl/atoms/nvidia/memory.h cl/tile/activation.h " \
                  "cl/atoms/nvidia/lanes.h " ROW_TEXTS
#define WHOLE     .constants = "WHOLE 0 1", .constants_of = whole_of
#define BY_ROWS   .plan = plan_rows, .run = run_rows, .entries = "cross_entropy", \
                  .params = "ITEMS ROW_ITEMS VALUES", .costs = "LONGER", \
                  WHOLE, .defines = "#define ACROSS 0\n"

const struct vn_variant vn__cross_entropy_variants[] = {
    { .name = "cross_entropy_cpu", .fits = vn__fits_vectors, .run = run_cpu,
      .texts = "cl/tile/activation.h cl/tile/row_cpu.h cl/cross_entropy/cross_entropy.h "
               "cl/cross_entropy/cpu.cl",
      .entries = "cross_entropy", .params = "VEC BLOCK" },
    { .name = "cross_entropy_team", .fits = vn__fits_warps, .plan = plan_team, .run = run_team,
      .texts = PTX_TEXTS "cl/tile/held.h cl/tile/powers.h cl/tile/team.h cl/cross_entropy/team.cl",
      .entries = "cross_entropy", VN_TEAM, WHOLE,
      .defines = "#define ACROSS 0\n#define ROW_ITEMS ITEMS\n" },
    { .name = "cross_entropy_warps", .fits = vn__fits_warps, BY_ROWS,
      .texts = PTX_TEXTS "cl/cross_entropy/rows.cl" },
    { .name = "cross_entropy", .fits = vn__fits_any, BY_ROWS,
      .texts = "cl/tile/activation.h cl/tile/lanes.h " ROW_TEXTS "cl/cross_entropy/rows.cl" },
    { .name = NULL }
};
