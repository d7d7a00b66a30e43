/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.c - softmax by rows, each one or more of a work-group's.
 */
#include "softmax.h"

/* Parameters by their place, as the table names them. */
enum { ITEMS, ROW_ITEMS, VALUES };
enum { SPLIT_ITEMS, SPLIT_VALUES };

static struct parts group_parts(const struct softmax *s, const int *p)
{
    return vn__softmax_parts(s, (int64_t)p[SPLIT_ITEMS] * p[SPLIT_VALUES]);
}

enum { LONG_ROW = 16384 };       /* elements from which splitting a row pays for a second pass */

const char *vn__plan_softmax_split(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                      const struct vn_site *site)
{
    const struct softmax *s = problem;

    out->workspace = vn__softmax_pairs_bytes(problem, group_parts(problem, row->p).count);
    return s->n < LONG_ROW ? "its rows are too short to be split"
         : s->rows >= 4 * (int64_t)site->facts->units ? "its rows are enough to fill the device" : NULL;
}

vn_status vn__run_softmax_split(vn_queue *q, const struct vn_choice *it, const void *problem,
                                const struct vn_plan *plan)
{
    (void)plan;
    return vn__run_softmax_parts(q, it, problem, group_parts(problem, it->p), it->p[SPLIT_ITEMS]);
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
