/* SPDX-License-Identifier: Apache-2.0
 *
 * team.c - rows that several work-groups share in one launch (cl/tile/team.h): how many, and the launch.
 */
#include "core.h"

/* Of a row of parameters; the most elements of a row of a tensor that is left to one work-group; and the most
 * parts that such a row may have. */
enum { VALUES = VN_TEAM_ITEMS + 1 };
enum { ALONE, PARTS };

const char *vn__plan_team(struct vn_plan *out, int64_t rows, int64_t places, vn_type type,
                          const struct vn_row *row)
{
    const int64_t run = 16 / (int64_t)vn_type_bytes(type);
    const int64_t parts = VN_CEIL_DIV(places, (int64_t)row->p[VN_TEAM_ITEMS] * row->p[VALUES]);
    int64_t slots, groups;

    out->v[VN_TEAM_PARTS] = parts;
    out->v[VN_TEAM_SPAN] = VN_CEIL_DIV(VN_CEIL_DIV(places, parts), run) * run;
    if (places <= row->cost[ALONE])
        return "one work-group holds a row";
    if (parts > row->cost[PARTS] || parts > row->p[VN_TEAM_ITEMS])
        return "a row has more parts than these parameters are for";
    if (!vn__mul(&slots, rows, 2 * parts + 1) || slots > VN_SLOTS ||
        !vn__mul(&groups, rows, parts) || groups > INT32_MAX)
        return "it has more rows than there are slots for";
    return NULL;
}

int vn__rows_fill(int64_t rows, const struct vn_site *site)
{
    enum { EACH = 4 };                          /* for a compute unit: the last wave is a small part */

    return rows >= EACH * (int64_t)site->facts->units;
}

vn_status vn__launch_team(vn_queue *q, const struct vn_choice *it, struct vn_launch *l, int64_t rows,
                          const struct vn_plan *plan)
{
    vn_buffer *slots;
    vn_status s;

    if ((s = vn__slots(&slots, q)))
        return s;
    l->groups[0] = rows * plan->v[VN_TEAM_PARTS];
    l->groups[1] = l->groups[2] = 1;
    l->items = it->p[VN_TEAM_ITEMS];
    vn__arg_buffer(l, slots);
    vn__arg_int(l, plan->v[VN_TEAM_PARTS]);
    return vn__launch(q, it, 0, l);
}
