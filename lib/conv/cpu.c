/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu.c - convolution on CPUs, through vectors written out.
 */
#include "conv.h"

enum { CPU_THR_M, CPU_THR_V, CPU_VEC, CPU_BLK_M, CPU_BLK_K };
enum { GROUPS_PER_UNIT = 4, PANELS_PER_GROUP = 4 };     /* work-groups wanted; tiles that repay a gathering */

/* Of `tiles`, how many one work-group takes: as many as its local memory allows, but not so
 * many that cores go idle, nor so few that gathering outweighs them.  Parts of one panel are
 * alike, and each gathers it anew: of those, half as many do.                             */
static int64_t share_of(const vn_queue *q, int64_t tiles, int64_t others, const int *p)
{
    const int64_t wanted = GROUPS_PER_UNIT / (others == 1 ? 2 : 1) * (int64_t)q->device->facts.units;
    const int64_t most = p[CPU_BLK_M] / p[CPU_THR_M], parts = VN_CEIL_DIV(wanted, others);
    const int64_t share = max_of(VN_CEIL_DIV(tiles, parts), min_of(tiles, PANELS_PER_GROUP));

    return VN_CEIL_DIV(tiles, VN_CEIL_DIV(tiles, min_of(share, most)));
}

vn_status vn__run_conv_cpu(vn_queue *q, const struct vn_choice *it, const void *problem,
                           const struct vn_plan *plan)
{
    const struct conv *c = problem;
    const int *p = it->p;
    const int64_t panels = VN_CEIL_DIV(vn__conv_columns(c), p[CPU_THR_V] * p[CPU_VEC]);
    const int64_t tiles = VN_CEIL_DIV(vn__conv_rows(c), p[CPU_THR_M]);
    const int64_t share = share_of(q, tiles, panels * vn__conv_phases(c) * c->groups, p);
    struct vn_launch l = { .nargs = 0 };

    (void)plan;
    l.groups[0] = panels * vn__conv_phases(c);
    l.groups[1] = VN_CEIL_DIV(tiles, share);
    l.groups[2] = c->groups;
    l.items = 1;
    vn__conv_arg_problem(&l, c);
    vn__arg_int(&l, panels);
    vn__arg_int(&l, share * p[CPU_THR_M]);
    return vn__launch(q, it, 0, &l);
}

/* One channel to each group: the groups become the rows of a single one. */
vn_status vn__run_conv_depthwise(vn_queue *q, const struct vn_choice *it, const void *problem,
                                const struct vn_plan *plan)
{
    struct conv c = *(const struct conv *)problem;

    c.groups = 1;
    if (c.direction == BACKWARD_DATA) {
        const int64_t extent = c.w.extent[0], stride = c.w.stride[0];

        c.w.extent[0] = c.w.extent[1];
        c.w.stride[0] = c.w.stride[1];
        c.w.extent[1] = extent;
        c.w.stride[1] = stride;
    }
    return vn__run_conv_cpu(q, it, &c, plan);
}

/* The gradient of a small filter has few tiles but long sums: these are cut in parts.  How
 * many is a matter of the problem alone, so that a result does not depend on the device.  */
static int64_t splits_of(const struct conv *c, const int *p)
{
    const int64_t tiles = vn__conv_taps(c) * VN_CEIL_DIV(c->w.extent[1], p[CPU_THR_M]) *
                          VN_CEIL_DIV(vn__conv_columns(c), p[CPU_THR_V] * p[CPU_VEC]) * c->groups;
    const int64_t blocks = c->is_empty ? 0 : VN_CEIL_DIV(vn__conv_pixels(&c->y), p[CPU_BLK_K]);

    return max_of(1, min_of(blocks / 4, VN_CEIL_DIV(64, tiles)));
}

static size_t sum_bytes(const void *problem, const int *p)
{
    const struct conv *c = problem;
    const int64_t splits = splits_of(c, p);
    int64_t bytes = c->p.type == VN_F64 ? 8 : 4;

    if (splits == 1)
        return 0;
    return vn__mul(&bytes, bytes, vn__elements(&c->w)) && vn__mul(&bytes, bytes, splits)
         ? (size_t)bytes : SIZE_MAX;
}

const char *vn__plan_conv_cpu_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                     const struct vn_site *site)
{
    (void)site;
    out->workspace = sum_bytes(problem, row->p);
    return NULL;
}

static vn_status run_sum(vn_queue *q, const struct vn_choice *it, const struct conv *c, int64_t splits,
                         vn_buffer *sums)
{
    struct vn_launch l = { .nargs = 0 };

    l.groups[0] = vn__conv_rows(c);
    l.groups[1] = 1;
    l.groups[2] = c->groups;
    l.items = 1;
    vn__conv_arg_output(&l, c);
    vn__conv_arg_taps(&l, c);
    vn__conv_arg_alpha(&l, c);
    vn__arg_int(&l, splits);
    vn__arg_int(&l, vn__conv_columns(c));
    vn__arg_buffer(&l, sums);
    return vn__launch(q, it, 1, &l);
}

vn_status vn__run_conv_cpu_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                  const struct vn_plan *plan)
{
    const struct conv *c = problem;
    const int *p = it->p;
    const int64_t panels = VN_CEIL_DIV(vn__conv_columns(c), p[CPU_THR_V] * p[CPU_VEC]);
    const int64_t tiles = vn__conv_taps(c) * VN_CEIL_DIV(c->w.extent[1], p[CPU_THR_M]);
    const int64_t splits = splits_of(c, p), share = share_of(q, tiles, panels * splits * c->groups, p);
    const size_t bytes = plan->workspace;
    vn_buffer *sums = c->w.buffer;
    struct vn_launch l = { .nargs = 0 };
    vn_status s;

    if (bytes && (s = vn__workspace(&sums, q, bytes)))
        return s;
    l.groups[0] = VN_CEIL_DIV(tiles, share);
    l.groups[1] = panels * splits;
    l.groups[2] = c->groups;
    l.items = 1;
    vn__conv_arg_problem(&l, c);
    vn__arg_int(&l, splits);
    vn__arg_int(&l, share);
    vn__arg_buffer(&l, sums);
    if ((s = vn__launch(q, it, 0, &l)) || splits == 1)
        return s;
    return run_sum(q, it, c, splits, sums);
}
