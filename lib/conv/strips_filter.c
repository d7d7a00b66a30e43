/* SPDX-License-Identifier: Apache-2.0
 *
 * strips_filter.c - the variants conv_strips_filter and conv_planes_filter: gradients of depthwise filters.
 *
 * Work-groups sum parts of the pixels, and a second kernel adds the sums of all parts.
 */
#include <limits.h>
#include <string.h>

#include "gemm/gemm.h"
#include "repack.h"
#include "strips.h"

enum { FILTER, SUM };                           /* kernels */
enum { ROUNDS = VN_STRIPS_COSTS };              /* a cost: work-groups for each compute unit */
enum { PLANES, ROWS, STRIPS, DOWN, ACROSS, DY, PARTS, BLOCKS };     /* the plan's numbers */

static int64_t taps_of(const struct conv *c)
{
    return c->w.extent[3] * c->w.extent[4];
}

void vn__constants_depthwise_filter(int *constants, const void *problem)
{
    const struct conv *c = problem;

    constants[0] = (int)c->w.extent[4];
    constants[1] = (int)c->stride[1];
}

/* Divides `work` among so many groups for each compute unit; v[BLOCKS] are for different channels. */
static void cut_parts(struct vn_plan *out, const struct conv *c, int64_t work, int rounds,
                      const struct vn_site *site)
{
    const size_t each = c->p.type == VN_F64 ? sizeof(double) : sizeof(float);
    int64_t *const v = out->v;

    v[PARTS] = min_of(max_of(1, rounds * site->facts->units / v[BLOCKS]), work);
    out->workspace = (size_t)(v[PARTS] * c->w.extent[0] * taps_of(c)) * each;
}

static void estimate(struct vn_plan *out, const struct conv *c, const struct vn_row *row,
                     const struct vn_site *site)
{
    out->seconds = vn__strips_seconds(c, c->p.bytes + 2 * (double)out->workspace, row, VN_STRIPS_SHARE, site);
}

static vn_status run(vn_queue *q, const struct vn_choice *it, const struct conv *c, const int64_t cut[8],
                     int64_t items, int views, const struct vn_plan *plan)
{
    enum { ELEMENTS = 16, ITEMS = 256 };        /* of parts_sum.cl */
    const vn_tensor *const from[] = { &c->x, &c->y };
    struct vn_launch l = { .groups = { plan->v[BLOCKS] * plan->v[PARTS], 1, 1 }, .items = items };
    struct vn_launch sum = { .groups = { VN_CEIL_DIV(c->w.extent[0] * taps_of(c), ELEMENTS), 1, 1 },
                             .items = ITEMS };
    vn_buffer *room;
    vn_status s;

    if ((s = vn__workspace(&room, q, plan->workspace)))
        return s;
    for (int i = 0; i < 2; i++) {
        if (views) {
            vn__conv_arg_image(&l, from[i], from[i]->buffer, from[i]->start);
        } else {
            const int64_t elements = (int64_t)(from[i]->buffer->bytes / vn_type_bytes(from[i]->type));

            vn__arg_buffer(&l, from[i]->buffer);
            vn__arg_view(&l, (int64_t[8]){ from[i]->start, elements });
        }
        vn__conv_arg_sizes(&l, 0, 0, from[i]->extent[0], from[i]->extent[1], from[i]->extent + 2);
    }
    vn__conv_arg_sizes(&l, 0, 0, 0, 0, c->pad);
    vn__arg_view(&l, cut);
    vn__arg_buffer(&l, room);
    if ((s = vn__launch(q, it, FILTER, &l)))
        return s;
    vn__arg_buffer(&sum, room);
    vn__arg_view(&sum, (int64_t[8]){ 0, plan->v[PARTS], c->w.extent[0] });
    vn__conv_arg_alpha(&sum, c);
    vn__conv_arg_output(&sum, c);
    return vn__launch(q, it, SUM, &sum);
}

/* ---- conv_strips_filter: contiguous channels ------------------------------------------------------ */

enum { THR_H, COLS, VEC, LANES, EXACT, ITEMS };

const char *vn__fits_conv_strips_filter(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;
    const char *const why = vn__fits_depthwise_filter(c);

    (void)f;
    if (why)
        return why;
    if (c->w.extent[4] != 3)
        return "it is for filters of 3x3";
    return vn__strips_channels_last(&c->x) && vn__strips_channels_last(&c->y)
         ? NULL : "it is for contiguous channels";
}

const char *vn__plan_conv_strips_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                        const struct vn_site *site)
{
    const struct conv *c = problem;
    int64_t *const v = out->v;

    if (row->p[EXACT] && !vn__strips_are_exact(c, row->p[THR_H], row->p[COLS])) {
        out->seconds = -1;
        return "its strips are not whole";
    }
    v[DOWN] = VN_CEIL_DIV(c->y.extent[3], row->p[THR_H]);
    v[ACROSS] = VN_CEIL_DIV(c->y.extent[4], row->p[COLS]);
    v[BLOCKS] = VN_CEIL_DIV(c->w.extent[0], row->p[VEC] * row->p[LANES]);
    cut_parts(out, c, VN_CEIL_DIV(c->y.extent[0] * v[DOWN] * v[ACROSS], row->p[ITEMS] / row->p[LANES]),
              row->cost[ROUNDS], site);
    estimate(out, c, row, site);
    return strcmp(site->facts->family, "cpu") ? NULL : "it is for GPUs, unless it is named";
}

vn_status vn__run_conv_strips_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                     const struct vn_plan *plan)
{
    const int64_t *const v = plan->v;

    return run(q, it, problem, (int64_t[8]){ 0, v[PARTS], v[DOWN], v[ACROSS], v[BLOCKS] }, it->p[ITEMS], 1,
               plan);
}

/* ---- conv_planes_filter: contiguous pixels -------------------------------------------------------- */

enum { P_THR_H, P_COLS, P_EXACT, P_ITEMS, P_ROOM };

const char *vn__fits_conv_planes_filter(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;
    const char *const why = vn__fits_depthwise_filter(c);

    return why ? why : vn__fits_planes(c, f);
}

const char *vn__plan_conv_planes_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                        const struct vn_site *site)
{
    const struct conv *c = problem;
    const struct strips s = vn__strips_of(c);
    const int64_t items = row->p[P_ITEMS];
    int64_t *const v = out->v;
    struct planes p;

    out->seconds = -1;
    if (row->p[P_EXACT] && !vn__strips_are_exact(c, row->p[P_THR_H], row->p[P_COLS]))
        return "its strips are not whole";
    if (!vn__planes_cut(&p, &s, c, row->p[P_THR_H], row->p[P_COLS], items, row->p[P_ROOM],
                        c->w.extent[0]) || p.down * p.across * p.planes > items)
        return "its rows do not fit local memory";
    memcpy(v, &p, sizeof p);
    v[BLOCKS] = VN_CEIL_DIV(c->w.extent[0], v[PLANES]);
    cut_parts(out, c, c->y.extent[0] * v[STRIPS], row->cost[ROUNDS], site);
    estimate(out, c, row, site);
    return strcmp(site->facts->family, "cpu") ? NULL : "it is for GPUs, unless it is named";
}

vn_status vn__run_conv_planes_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                     const struct vn_plan *plan)
{
    const int64_t *const v = plan->v;

    return run(q, it, problem, (int64_t[8]){ v[PLANES], v[ROWS], v[STRIPS], v[DOWN], v[ACROSS], v[DY],
                                             v[PARTS], 0 }, it->p[P_ITEMS], 0, plan);
}
