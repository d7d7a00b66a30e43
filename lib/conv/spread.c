/* SPDX-License-Identifier: Apache-2.0
 *
 * spread.c - the variant conv_spread: CPUs, backward data of filters of 1x1 that go in steps.
 *
 * The filter meets few pixels of dx.  Their gradients are those of a convolution without steps, a product of
 * matrices, which is made in the workspace, in the order of dx.  A second kernel stores them and the zeros
 * between them, in rows (cl/conv/spread.cl).  The products are of f32, in f64 of f64.
 */
#include "conv.h"
#include "gemm/gemm.h"

enum { FEW_PIXELS, FEW_PACKED };                /* its costs */
enum { WORKSPACE_ALIGN = 256, BEHIND = 256 };   /* BEHIND: bytes of a vector, past the product */

/* ---- what gather_filter.c shares: the pixels that a filter of 1x1 with steps meets ---- */

int vn__met_by_channel(const struct conv *c)
{
    return c->x.stride[1] == 1 && c->x.stride[RANK - 1] != 1;
}

void vn__met_in_order(vn_tensor *t, const struct conv *c)
{
    static const int orders[2][RANK] = { { 4, 3, 2, 1, 0 }, { 1, 4, 3, 2, 0 } };
    const int *const order = orders[vn__met_by_channel(c)];
    int64_t step = 1;

    for (int i = 0; i < RANK; i++) {
        t->stride[order[i]] = step;
        step *= t->extent[order[i]];
    }
}

int64_t vn__met_elements(const struct conv *c)
{
    int64_t elements;

    return vn__mul(&elements, vn__conv_pixels(&c->y), c->x.extent[1]) ? elements : INT64_MAX;
}

const char *vn__fits_met(const struct conv *c)
{
    int64_t steps = 1;

    if (c->math == VN_MATH_BITWISE)
        return "bitwise mathematics needs the order of sums of conv";
    if (c->is_empty)
        return "there is nothing to multiply";
    for (int d = 0; d < DIMS; d++) {
        if (c->w.extent[2 + d] != 1)
            return "its filter has several taps";
        steps = max_of(steps, c->stride[d]);
    }
    if (steps == 1)
        return "its filter meets each pixel";
    return vn__met_elements(c) > VN_CONV_MOST || vn__conv_pixels(&c->x) > VN_CONV_MOST
         ? "the pixels and channels must stay below 2^31" : NULL;
}

/* ---- conv_spread ---- */

/* The product: its output is at `start` of `to`. */
static struct conv product_of(const struct conv *c, vn_buffer *to, int64_t start)
{
    struct conv p = { .p = { .op = c->p.op, .type = c->p.type }, .direction = BACKWARD_DATA, .math = c->math,
                      .alpha = 1, .groups = 1, .stride = { 1, 1, 1 }, .dilation = { 1, 1, 1 },
                      .x = c->y, .w = c->w, .y = c->y };

    p.x.buffer = to;
    p.x.start = start;
    p.x.type = c->p.type == VN_F64 ? VN_F64 : VN_F32;
    p.x.extent[1] = c->x.extent[1];
    vn__met_in_order(&p.x, c);
    p.residual = p.x;
    vn__conv_settle(&p);
    return p;
}

static size_t bytes_of(const struct conv *c)
{
    return (size_t)vn__met_elements(c) * (c->p.type == VN_F64 ? sizeof(double) : sizeof(float)) + BEHIND;
}

const char *vn__fits_conv_spread(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;
    const char *why = vn__fits_vectors(problem, f);

    if (why)
        return why;
    if (c->direction != BACKWARD_DATA)
        return "it is for gradients of images";
    if (c->groups != 1)
        return "it has one group";
    if ((why = vn__fits_met(c)))
        return why;
    return c->x.stride[1] != 1 && c->x.stride[RANK - 1] != 1
         ? "rows of pixels, or channels, must be contiguous" : NULL;
}

const char *vn__plan_conv_spread(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                 const struct vn_site *site)
{
    const struct conv *c = problem;
    const struct conv p = product_of(c, c->x.buffer, 0);
    const int64_t pixels = vn__conv_pixels(&c->y) / (vn__met_by_channel(c) ? 1 : c->y.extent[0]);
    size_t own = 0;

    vn__part_seconds(site, vn__conv_variants, &p, &own);
    out->workspace = VN_CEIL_DIV(own, WORKSPACE_ALIGN) * WORKSPACE_ALIGN + bytes_of(c);
    return pixels < row->cost[c->to_pack || c->pack ? FEW_PACKED : FEW_PIXELS]
         ? "a matrix has few pixels: tiles of conv_slab fill better" : NULL;
}

vn_status vn__run_conv_spread(vn_queue *q, const struct vn_choice *it, const void *problem,
                              const struct vn_plan *plan)
{
    const struct conv *c = problem;
    const int by_channel = vn__met_by_channel(c);
    struct vn_launch l = { .groups = { by_channel ? c->x.extent[2] * c->x.extent[3] : c->x.extent[1],
                                       c->x.extent[0], 1 }, .items = 1 };
    const struct vn_choice *choice;
    struct vn_plan part;
    struct conv p;
    vn_buffer *room;
    int64_t start, channel, pixel;
    vn_status s;

    if ((s = vn__workspace(&room, q, plan->workspace)))
        return s;
    start = (int64_t)(plan->workspace - bytes_of(c)) / (c->p.type == VN_F64 ? 8 : 4);
    p = product_of(c, room, start);
    if ((s = vn__choose_part(&choice, &part, q, vn__conv_variants, &p)) ||
        (s = choice->variant->run(q, choice, &p, &part)))
        return s;
    q->workspace_used = plan->workspace;
    channel = by_channel ? 1 : vn__conv_pixels(&c->y) / c->y.extent[0];
    pixel = by_channel ? c->x.extent[1] : 1;
    vn__conv_arg_output(&l, c);
    vn__conv_arg_steps(&l, c);
    vn__conv_arg_alpha(&l, c);
    vn__arg_buffer(&l, room);
    vn__arg_view(&l, (int64_t[8]){ start, 0, vn__met_elements(c) / c->y.extent[0], channel,
                                   c->y.extent[4] * c->y.extent[3] * pixel, c->y.extent[4] * pixel, pixel });
    vn__arg_int(&l, by_channel);
    return vn__launch(q, it, 0, &l);
}
