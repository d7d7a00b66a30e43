/* SPDX-License-Identifier: Apache-2.0
 *
 * taps.c - the variant conv_taps: backward data with few channels, as products of all taps and their sum.
 *
 * A tile of pixels and channels is mostly empty where there are few channels.  The taps of all channels are
 * many: a filter of 1x1, with an output for each tap of each channel, makes all products of dy, in the
 * workspace; a second kernel adds those that contribute to a pixel of dx (cl/conv/taps.cl).  The products are
 * of f32, in f64 of f64.
 */
#include <limits.h>

#include "conv.h"
#include "gemm/gemm.h"

enum { ITEMS };                                 /* its parameter */
enum { MOVE };                                  /* its cost */
enum { WORKSPACE_ALIGN = 256, MOST_CHANNELS = 8 };

/* The filter's channels and taps as one dimension of rows.  step: from one to the next, in rows. */
struct rows { int64_t count, stride, step[RANK]; };

/* 0 if channels and taps do not follow each other, in whichever order. */
static int rows_of(struct rows *r, const struct conv *c)
{
    int taken[RANK] = { 1 };

    *r = (struct rows){ .count = 1 };
    for (int i = 1; i < RANK; i++) {            /* the dimension of the least stride comes next */
        int next = 0;

        for (int d = 1; d < RANK; d++)
            if (!taken[d] && (!next || c->w.extent[next] == 1 ||
                              (c->w.extent[d] > 1 && c->w.stride[d] < c->w.stride[next])))
                next = d;
        taken[next] = 1;
        if (c->w.extent[next] == 1)
            continue;
        if (r->count == 1)
            r->stride = c->w.stride[next];
        if (r->stride <= 0 || c->w.stride[next] != r->stride * r->count)
            return 0;
        r->step[next] = r->count;
        r->count *= c->w.extent[next];
    }
    return 1;
}

/* The products, as a convolution: to `start` of `to`. */
static struct conv products_of(const struct conv *c, const struct rows *r, vn_buffer *to, int64_t start)
{
    struct conv p = { .p = { .op = "conv_forward", .type = c->p.type }, .direction = FORWARD, .math = c->math,
                      .alpha = 1, .groups = 1, .stride = { 1, 1, 1 }, .dilation = { 1, 1, 1 },
                      .x = c->y, .w = c->w, .y = c->y };
    int64_t step = 1;

    p.w.extent[1] = c->w.extent[0];
    p.w.stride[1] = c->w.stride[0];
    p.w.extent[0] = r->count;
    p.w.stride[0] = r->stride;
    p.y.buffer = to;
    p.y.start = start;
    p.y.type = c->p.type == VN_F64 ? VN_F64 : VN_F32;
    p.y.extent[1] = r->count;
    for (int d = 0; d < DIMS; d++) {
        p.w.extent[2 + d] = 1;
        p.w.stride[2 + d] = 0;
    }
    for (int i = RANK - 1; i >= 0; i--) {
        p.y.stride[i] = step;
        step *= p.y.extent[i];
    }
    p.residual = p.y;
    vn__conv_settle(&p);
    return p;
}

static int64_t elements_of(const struct conv *c, const struct rows *r)
{
    int64_t elements;

    return vn__mul(&elements, vn__conv_pixels(&c->y), r->count) ? elements : INT64_MAX;
}

static size_t bytes_of(const struct conv *c, const struct rows *r)
{
    return (size_t)elements_of(c, r) * (c->p.type == VN_F64 ? sizeof(double) : sizeof(float));
}

const char *vn__fits_conv_taps(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;
    struct rows r;

    (void)f;
    if (c->direction != BACKWARD_DATA)
        return "it is for gradients of images";
    if (c->groups != 1)
        return "it has one group";
    if (c->math == VN_MATH_BITWISE)
        return "bitwise mathematics needs the order of sums of conv";
    if (c->is_empty || vn__conv_taps(c) == 1)
        return "there are no taps to add";
    if (c->x.extent[1] > MOST_CHANNELS)
        return "it is for at most 8 channels";
    if (!rows_of(&r, c))
        return "channels and taps of the filter must follow each other in memory";
    return elements_of(c, &r) > VN_CONV_MOST || vn__conv_pixels(&c->x) > VN_CONV_MOST
         ? "taps and pixels must stay below 2^31" : NULL;
}

const char *vn__plan_conv_taps(struct vn_plan *out, const void *problem, const struct vn_row *row,
                               const struct vn_site *site)
{
    const struct conv *c = problem;
    struct conv products;
    struct rows r;
    size_t own = 0;
    double seconds;

    rows_of(&r, c);
    products = products_of(c, &r, c->x.buffer, 0);
    seconds = vn__part_seconds(site, vn__conv_variants, &products, &own);
    out->workspace = VN_CEIL_DIV(own, WORKSPACE_ALIGN) * WORKSPACE_ALIGN + bytes_of(c, &r);
    if (seconds <= 0 || row->cost[MOVE] <= 0)
        return "there is no time model for the products; it runs when named alone";
    out->seconds = seconds + vn__launch_seconds(site) +
                   vn__move_seconds((double)bytes_of(c, &r) +
                                    (double)vn__elements(&c->x) * (double)vn_type_bytes(c->x.type),
                                    row->cost[MOVE], site);
    return NULL;
}

vn_status vn__run_conv_taps(vn_queue *q, const struct vn_choice *it, const void *problem,
                            const struct vn_plan *plan)
{
    const struct conv *c = problem;
    struct vn_launch l = { .groups = { VN_CEIL_DIV(vn__conv_pixels(&c->x), it->p[ITEMS]), 1, 1 },
                           .items = it->p[ITEMS] };
    const struct vn_choice *choice;
    struct vn_plan part;
    struct conv products;
    struct rows r;
    vn_buffer *room;
    int64_t start, pixels;
    vn_status s;

    if ((s = vn__workspace(&room, q, plan->workspace)))
        return s;
    rows_of(&r, c);
    start = (int64_t)(plan->workspace - bytes_of(c, &r)) / (c->p.type == VN_F64 ? 8 : 4);
    products = products_of(c, &r, room, start);
    if ((s = vn__choose_part(&choice, &part, q, vn__conv_variants, &products)) ||
        (s = choice->variant->run(q, choice, &products, &part)))
        return s;
    q->workspace_used = plan->workspace;
    pixels = vn__conv_pixels(&c->y) / c->y.extent[0];
    vn__conv_arg_output(&l, c);
    vn__conv_arg_taps(&l, c);
    vn__conv_arg_steps(&l, c);
    vn__conv_arg_alpha(&l, c);
    vn__arg_buffer(&l, room);
    vn__arg_view(&l, (int64_t[8]){ start, 0, r.count * pixels, r.step[1] * pixels, r.step[2] * pixels,
                                   r.step[3] * pixels, r.step[4] * pixels });
    vn__arg_view(&l, (int64_t[8]){ 0, 0, c->y.extent[0], r.count, c->y.extent[2], c->y.extent[3],
                                   c->y.extent[4] });
    return vn__launch(q, it, 0, &l);
}
