/* SPDX-License-Identifier: Apache-2.0
 *
 * gather_filter.c - the variant conv_gather_filter: CPUs, backward filter of filters of 1x1 that go in steps.
 *
 * The filter meets few pixels of x.  They are copied to the workspace, in the order of x, and the gradient is
 * that of a filter without steps over the copy, which is made by a variant for that: a product of matrices.
 */
#include "conv.h"

enum { FILTERS, MANY_PIXELS };                  /* its costs */
enum { WORKSPACE_ALIGN = 256 };

/* The gradient over the copy, which is at `start` of `from`. */
static struct conv part_of(const struct conv *c, vn_buffer *from, int64_t start)
{
    struct conv p = *c;

    p.x.buffer = from;
    p.x.start = start;
    for (int d = 0; d < DIMS; d++) {
        p.x.extent[2 + d] = c->y.extent[2 + d];
        p.stride[d] = p.dilation[d] = 1;
    }
    vn__met_in_order(&p.x, c);
    vn__conv_settle(&p);
    return p;
}

static size_t bytes_of(const struct conv *c)
{
    return (size_t)vn__met_elements(c) * vn_type_bytes(c->x.type);
}

const char *vn__fits_conv_gather_filter(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;
    const char *const why = vn__fits_vectors(problem, f);

    if (why)
        return why;
    if (c->direction != BACKWARD_FILTER)
        return "it is for gradients of filters";
    for (int d = 0; d < DIMS; d++)              /* y may be longer than x gives pixels: padding of the end */
        if (c->pad[d] || (c->y.extent[2 + d] - 1) * c->stride[d] >= c->x.extent[2 + d])
            return "images must not be padded";
    return vn__fits_met(c);
}

const char *vn__plan_conv_gather_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                        const struct vn_site *site)
{
    const struct conv *c = problem;
    const struct conv p = part_of(c, c->x.buffer, 0);
    size_t own = 0;

    vn__part_seconds(site, vn__conv_variants, &p, &own);
    out->workspace = VN_CEIL_DIV(own, WORKSPACE_ALIGN) * WORKSPACE_ALIGN + bytes_of(c);
    if (c->w.extent[0] / c->groups < row->cost[FILTERS])
        return "few filters do not repay a copy of the pixels";
    return vn__met_by_channel(c) && vn__conv_pixels(&c->y) >= row->cost[MANY_PIXELS]
         ? "conv_slab_filter copies contiguous channels of many pixels as fast" : NULL;
}

vn_status vn__run_conv_gather_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                     const struct vn_plan *plan)
{
    const struct conv *c = problem;
    const int by_channel = vn__met_by_channel(c);
    struct vn_launch l = { .groups = { by_channel ? c->y.extent[2] * c->y.extent[3] : c->x.extent[1],
                                       c->y.extent[0], 1 }, .items = 1 };
    struct conv all = *c;                       /* channels of all groups */
    const struct vn_choice *choice;
    struct vn_plan part;
    struct conv p;
    vn_buffer *room;
    int64_t start;
    vn_status s;

    if ((s = vn__workspace(&room, q, plan->workspace)))
        return s;
    start = (int64_t)((plan->workspace - bytes_of(c)) / vn_type_bytes(c->x.type));
    p = part_of(c, room, start);
    all.groups = 1;
    all.w.extent[1] = c->x.extent[1];
    vn__conv_arg_filter(&l, &all);
    vn__arg_buffer(&l, room);
    vn__arg_view(&l, (int64_t[8]){ start, 0, p.x.stride[0], p.x.stride[1], c->y.extent[3] * c->y.extent[4] *
                                   (by_channel ? c->x.extent[1] : 1),
                                   c->y.extent[4] * (by_channel ? c->x.extent[1] : 1),
                                   by_channel ? c->x.extent[1] : 1 });
    vn__arg_int(&l, by_channel);
    if ((s = vn__launch(q, it, 0, &l)) || (s = vn__choose_part(&choice, &part, q, vn__conv_variants, &p)) ||
        (s = choice->variant->run(q, choice, &p, &part)))
        return s;
    q->workspace_used = plan->workspace;
    return VN_OK;
}
