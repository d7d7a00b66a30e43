/* SPDX-License-Identifier: Apache-2.0
 *
 * phases.c - the variant conv_window_phases: backward data with few channels, in 16-bit types on NVIDIA's
 * sm_90.
 *
 * Where there are few channels, a tile is mostly empty.  The phases of dx, as channels of the output, make
 * them more, and one launch of all phases; dy is then read once for all of them (cl/conv/phases.h).  A first
 * launch copies the filter, each tap of which belongs to one phase.
 */
#include <limits.h>

#include "gemm/gemm.h"
#include "wgmma.h"

enum { BLK_N };                                 /* of its parameters, those of conv_window */
enum { TILES, GROUPS };                         /* of its plan, likewise */
enum { WARPGROUPS = 2 };
enum { COPY, MULTIPLY };                        /* its kernels */
enum { H = DIMS - 2, W = DIMS - 1 };
enum { VECTOR = 8 };

/* Along one dimension, tap i of the convolution reads pixel i + first, counted from that of the output. */
static int64_t first_of(const struct conv *c, int d)
{
    const int64_t least = c->pad[d] - (c->w.extent[2 + d] - 1), stride = c->stride[d];

    return least < 0 ? -(-least / stride) : VN_CEIL_DIV(least, stride);
}

static int64_t taps_of(const struct conv *c, int d)
{
    return (c->stride[d] - 1 + c->pad[d]) / c->stride[d] - first_of(c, d) + 1;
}

/* The problem whose channels are phases; its filter begins at element `start`. */
static struct conv by_phases(const struct conv *c, int64_t start, int64_t *elements)
{
    const int64_t filters = VN_CEIL_DIV(c->w.extent[0], VECTOR) * VECTOR;
    struct conv d = *c;

    d.direction = FORWARD;
    d.x = c->y;
    d.y = c->x;
    d.w.start = start;
    d.w.extent[0] = d.y.extent[1] = c->stride[H] * c->stride[W] * c->w.extent[1];
    d.w.extent[1] = c->w.extent[0];
    for (int i = H; i < DIMS; i++) {
        d.w.extent[2 + i] = taps_of(c, i);
        d.y.extent[2 + i] = VN_CEIL_DIV(c->x.extent[2 + i], c->stride[i]);
        d.pad[i] = -first_of(c, i);
        d.stride[i] = 1;
    }
    d.w.stride[1] = 1;
    d.w.stride[4] = filters;
    d.w.stride[3] = filters * d.w.extent[4];
    d.w.stride[0] = d.w.stride[2] = d.w.stride[3] * d.w.extent[3];
    *elements = d.w.stride[0] * d.w.extent[0];
    return d;
}

const char *vn__fits_conv_window_phases(const void *problem, const struct vn_facts *f)
{
    enum { MOST_COLUMNS = 32, MOST_TAPS = 16, BLK_K = 64, MOST_BOX = 256 };
    const struct conv *c = problem;
    const char *why;
    struct im2col seen;
    int64_t elements;

    if (vn__sm(f) != 90)
        return "it needs an NVIDIA GPU of sm_90, for wgmma";
    if (c->p.type != VN_F16 && c->p.type != VN_BF16)
        return "it needs f16 or bf16";
    if (c->direction != BACKWARD_DATA || vn__im2col_rank(c) != 4 || c->groups != 1)
        return "it is for gradients of images of two dimensions, without groups";
    if (c->is_empty)
        return "there is nothing to multiply";
    if (c->math == VN_MATH_BITWISE)
        return "it sums in another order than VN_MATH_BITWISE promises";
    if (c->dilation[H] != 1 || c->dilation[W] != 1 || c->stride[H] > MOST_COLUMNS ||
        c->stride[W] > MOST_COLUMNS || c->w.extent[1] > MOST_COLUMNS ||
        c->stride[H] * c->stride[W] * c->w.extent[1] > MOST_COLUMNS || c->w.extent[0] > BLK_K)
        return "it is for at most 32 phases and channels, 64 filters, and no dilation";
    if (first_of(c, H) > 0 || first_of(c, W) > 0 || taps_of(c, H) > MOST_TAPS || taps_of(c, W) > MOST_TAPS)
        return "the padding is more than the filter reaches, or a phase has more than 16 taps";

    const struct conv d = by_phases(c, 0, &elements);

    if ((why = vn__im2col_of(&seen, &d)))
        return why;
    if (seen.source.extent[2 + W] + vn__im2col_zeros(&seen, W) > MOST_BOX)
        return "rows of the source with their padding must have at most 256 pixels";
    return vn__conv_pixels(&c->x) > VN_CONV_MOST / 4 ||
           seen.images * (seen.source.extent[2 + H] + vn__im2col_zeros(&seen, H)) > VN_CONV_MOST / 1024
         ? "images with their padding must stay below 2^29 pixels" : NULL;
}

const char *vn__plan_conv_window_phases(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                        const struct vn_site *site)
{
    const struct conv *c = problem;
    int64_t elements;
    const struct conv d = by_phases(c, 0, &elements);
    const char *const why = vn__plan_conv_window(out, &d, row, site);

    if (why)
        return why;
    if (d.w.extent[0] > row->p[BLK_N]) {
        out->seconds = -1;
        return "there are more phases and channels than a tile has columns";
    }
    if (out->seconds > 0)
        out->seconds += vn__launch_seconds(site);
    out->workspace = (size_t)elements * 2;
    return NULL;
}

static vn_status copy_filter(vn_queue *q, const struct vn_choice *it, const struct conv *c,
                             const struct conv *d, vn_buffer *room, int64_t elements)
{
    enum { ITEMS = 256 };
    struct vn_launch l = { .groups = { VN_CEIL_DIV(elements, ITEMS), 1, 1 }, .items = ITEMS };
    const vn_tensor *const w = &c->w;

    vn__arg_buffer(&l, w->buffer);
    vn__arg_view(&l, (int64_t[8]){ w->start, 0, w->stride[0], w->stride[1], 0, w->stride[3], w->stride[4] });
    vn__arg_extents(&l, w);
    vn__arg_buffer(&l, room);
    vn__arg_int(&l, d->w.start);
    vn__arg_view(&l, (int64_t[8]){ 0, 0, d->w.extent[0], d->w.stride[4], 1, d->w.extent[3], d->w.extent[4] });
    vn__arg_view(&l, (int64_t[8]){ 0, 0, c->pad[H], c->pad[W], 1, c->stride[H], c->stride[W] });
    vn__arg_view(&l, (int64_t[8]){ 0, 0, 0, 0, 0, -d->pad[H], -d->pad[W] });
    return vn__launch(q, it, COPY, &l);
}

vn_status vn__run_conv_window_phases(vn_queue *q, const struct vn_choice *it, const void *problem,
                                     const struct vn_plan *plan)
{
    const struct conv *c = problem;
    int64_t elements;
    struct conv d = by_phases(c, 0, &elements);
    struct vn_launch l = { .groups = { plan->v[GROUPS], 1, 1 }, .items = 128 * it->p[WARPGROUPS] + 32 };
    const int64_t *const out = d.y.extent;
    struct im2col seen;
    vn_buffer *room;
    vn_status s = vn__workspace(&room, q, plan->workspace);

    if (s)
        return s;
    d.w.buffer = room;
    vn__im2col_of(&seen, &d);
    if ((s = copy_filter(q, it, c, &d, room, elements)))
        return s;
    if ((s = vn__conv_begin_tiles(&l, q, &d, &seen, plan->v[GROUPS], plan->v[TILES])))
        return s;
    vn__arg_int(&l, 0);
    vn__arg_int(&l, 0);
    vn__conv_arg_alpha(&l, c);
    vn__arg_im2col_window(&l, &seen, (int64_t[DIMS]){ 0 }, 1);
    vn__arg_tiles(&l, 1, 1, 1, 1);              /* it has no schedule */
    vn__arg_im2col_extents(&l, &seen.filter);
    vn__arg_view(&l, (int64_t[8]){ 0, 0, out[0], out[1], 1, out[3], out[4] });
    vn__arg_view(&l, (int64_t[8]){ 0, 1, 1, 1, 1, c->stride[H], c->stride[W] });
    vn__arg_view(&l, (int64_t[8]){ 0, 0, c->w.extent[3], c->w.extent[4], d.pad[0], d.pad[H], d.pad[W] });
    vn__arg_view(&l, (int64_t[8]){ c->w.extent[1], 0, c->pad[H], c->pad[W], 1, c->x.extent[3],
                                   c->x.extent[4] });
    vn__arg_im2col_extents(&l, &seen.source);
    vn__arg_im2col_strides(&l, &seen.source);
    vn__arg_im2col_strides(&l, &seen.filter);
    vn__arg_buffer(&l, room);
    vn__conv_arg_output(&l, c);
    return vn__launch(q, it, MULTIPLY, &l);
}
