/* SPDX-License-Identifier: Apache-2.0
 *
 * team.c - rows that several work-groups share in one launch (cl/tile/team.h): how many, and the launch.
 */
#include "core.h"

/* A row's work-groups wait for each other.  Those of a row are this many times fewer than the device has
 * units, so that there is room for them beside what other queues run. */
enum { ROOM = 4 };

/* Of a row of parameters; and the most elements of a row that is left to one work-group. */
enum { VALUES = VN_TEAM_ITEMS + 1 };
enum { ALONE };

const char *vn__plan_team(struct vn_plan *out, int64_t rows, int64_t places, vn_type type,
                          const struct vn_row *row, const struct vn_facts *f)
{
    const int64_t run = 16 / (int64_t)vn_type_bytes(type);
    const int64_t parts = VN_CEIL_DIV(places, (int64_t)row->p[VN_TEAM_ITEMS] * row->p[VALUES]);
    int64_t slots, groups;

    out->v[VN_TEAM_PARTS] = parts;
    out->v[VN_TEAM_SPAN] = VN_CEIL_DIV(VN_CEIL_DIV(places, parts), run) * run;
    if (places <= row->cost[ALONE])
        return "one work-group holds a row";
    if (parts * ROOM > f->units)
        return "its rows have more parts than a quarter of the device's units";
    if (!vn__mul(&slots, rows, 2 * parts + 1) || slots > VN_SLOTS ||
        !vn__mul(&groups, rows, parts) || groups > INT32_MAX)
        return "it has more rows than there are slots for";
    return NULL;
}

vn_status vn__launch_team(vn_queue *q, const struct vn_choice *it, struct vn_launch *l, int64_t rows,
                          const struct vn_plan *plan)
{
    vn_buffer *slots, *tickets;
    vn_status s;

    if ((s = vn__slots(&slots, q)) || (s = vn__counters(&tickets, q)))
        return s;
    l->groups[0] = rows * plan->v[VN_TEAM_PARTS];
    l->groups[1] = l->groups[2] = 1;
    l->items = it->p[VN_TEAM_ITEMS];
    vn__arg_buffer(l, slots);
    vn__arg_buffer(l, tickets);
    vn__arg_int(l, plan->v[VN_TEAM_PARTS]);
    return vn__launch(q, it, 0, l);
}
