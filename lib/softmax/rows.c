/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.c - softmax by rows, each one or more of a work-group's.
 */
#include "softmax.h"

/* Parameters by their place, as the table names them; and the cost of softmax and softmax_warps. */
enum { ITEMS, ROW_ITEMS, VALUES };
enum { SPLIT_ITEMS, SPLIT_VALUES };
enum { LONGER };

/* ---- whole rows of a work-group ---------------------------------------------------- */

int64_t vn__softmax_places(const struct softmax *s)
{
    return s->n + (s->whole ? 0 : 16 / (int64_t)vn_type_bytes(s->head.type) - 1);
}

/* LONGER: whether this row of parameters is also for rows that registers do not hold. */
const char *vn__plan_softmax_rows(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                  const struct vn_site *site)
{
    (void)out;
    return row->p[ITEMS] > site->facts->items ? "its work-groups are larger than the device's"
         : vn__softmax_places(problem) > (int64_t)row->p[ROW_ITEMS] * row->p[VALUES] && !row->cost[LONGER]
         ? "its work-items do not hold a row" : NULL;
}

vn_status vn__run_softmax(vn_queue *q, const struct vn_choice *it, const void *problem,
                          const struct vn_plan *plan)
{
    const struct softmax *s = problem;
    const int rows = it->p[ITEMS] / it->p[ROW_ITEMS];
    struct vn_launch l = { .groups = { VN_CEIL_DIV(s->rows, rows), 1, 1 }, .items = it->p[ITEMS] };

    (void)plan;
    if (l.groups[0] > INT32_MAX)
        return vn__fail(VN_UNSUPPORTED, "x has %lld rows; %s takes at most %lld", (long long)s->rows,
                        it->variant->name, (long long)INT32_MAX * rows);
    vn__softmax_begin(&l, s, rows);
    return vn__launch(q, it, 0, &l);
}

/* ---- rows that several work-groups share -------------------------------------------- */

enum { LONG_ROW = 16384 };       /* elements from which splitting a row pays for a second pass */

static struct parts parts_of(const struct softmax *s, const int *p)
{
    return vn__softmax_parts(s, vn__softmax_places(s), (int64_t)p[SPLIT_ITEMS] * p[SPLIT_VALUES]);
}

const char *vn__plan_softmax_split(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                   const struct vn_site *site)
{
    const struct softmax *s = problem;

    out->workspace = vn__softmax_pairs_bytes(s, parts_of(s, row->p).count);
    return s->n < LONG_ROW ? "its rows are too short to be split"
         : vn__rows_fill(s->rows, site) ? "its rows are enough to fill the device" : NULL;
}

vn_status vn__run_softmax_split(vn_queue *q, const struct vn_choice *it, const void *problem,
                                const struct vn_plan *plan)
{
    (void)plan;
    return vn__run_softmax_parts(q, it, problem, parts_of(problem, it->p), it->p[SPLIT_ITEMS]);
}

/* ---- ... in one launch ------------------------------------------------------------------ */

const char *vn__plan_softmax_team(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                  const struct vn_site *site)
{
    const struct softmax *s = problem;

    (void)site;
    return vn__plan_team(out, s->rows, vn__softmax_places(s), s->head.type, row);
}

vn_status vn__run_softmax_team(vn_queue *q, const struct vn_choice *it, const void *problem,
                               const struct vn_plan *plan)
{
    const struct softmax *s = problem;
    struct vn_launch l = { .nargs = 0 };

    vn__softmax_begin(&l, s, plan->v[VN_TEAM_SPAN]);
    return vn__launch_team(q, it, &l, s->rows, plan);
}
