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

/* The rows of one pair of launches: so many that the second finds in the second-level cache what the first
 * has read, where that saves more than further launches cost.                                     */
static int64_t batch_of(const struct softmax *s, const struct vn_rates *r)
{
    const double row = (double)s->n * (double)vn_type_bytes(s->head.type) * (s->has_w ? 2 : 1);
    const double cache = r->l2_mb * 1e6 / 2, saved_ns = cache / r->gbps;

    return cache > 0 && row <= cache && (double)s->rows * row > cache && saved_ns > 2 * r->launch_ns
         ? (int64_t)(cache / row) : s->rows;
}

static struct parts parts_of(const struct softmax *s, const int *p, int64_t batch)
{
    return vn__softmax_parts(s, batch, vn__softmax_places(s), (int64_t)p[SPLIT_ITEMS] * p[SPLIT_VALUES]);
}

const char *vn__plan_softmax_split(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                   const struct vn_site *site)
{
    const struct softmax *s = problem;
    const int64_t batch = batch_of(s, site->rates);

    out->v[0] = batch;
    out->workspace = vn__softmax_pairs_bytes(s, batch, parts_of(s, row->p, batch).count);
    return s->n < LONG_ROW ? "its rows are too short to be split"
         : s->rows >= 4 * (int64_t)site->facts->units ? "its rows are enough to fill the device" : NULL;
}

/* Rows [first, first + count). */
static vn_status run_batch(vn_queue *q, const struct vn_choice *it, const struct softmax *s, vn_buffer *pairs,
                           int64_t first, int64_t count, struct parts parts)
{
    const struct vn_launch begin = { .groups = { count * parts.count, 1, 1 }, .items = it->p[SPLIT_ITEMS] };
    vn_status status = VN_OK;

    for (int finish = 0; finish < 2 && !status; finish++) {
        struct vn_launch l = begin;

        vn__softmax_begin(&l, s, parts.span);
        vn__arg_buffer(&l, pairs);
        vn__arg_int(&l, parts.count);
        vn__arg_int(&l, first);
        if (finish)
            vn__arg_int(&l, l.groups[0]);
        status = vn__launch(q, it, finish, &l);
    }
    return status;
}

vn_status vn__run_softmax_split(vn_queue *q, const struct vn_choice *it, const void *problem,
                                const struct vn_plan *plan)
{
    const struct softmax *s = problem;
    const int64_t batch = plan->v[0];
    const struct parts parts = parts_of(s, it->p, batch);
    vn_buffer *pairs;
    int64_t groups;
    vn_status status;

    if (!vn__mul(&groups, s->rows, parts.count) || groups > INT32_MAX)
        return vn__fail(VN_UNSUPPORTED, "x has %lld rows in %lld parts; %s takes at most %d parts of rows",
                        (long long)s->rows, (long long)parts.count, it->variant->name, INT32_MAX);
    status = vn__workspace(&pairs, q, plan->workspace);
    for (int64_t at = 0; at < s->rows && !status; at += batch)
        status = run_batch(q, it, s, pairs, at, batch < s->rows - at ? batch : s->rows - at, parts);
    return status;
}
