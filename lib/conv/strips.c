/* SPDX-License-Identifier: Apache-2.0
 *
 * strips.c - the variant conv_strips: depthwise convolution on GPUs, forward and backward data.
 */
#include <string.h>

#include "gemm/gemm.h"
#include "repack.h"

enum { THR_H, VEC, ITEMS };                     /* its parameters */
enum { SHARE, FIXED_NS };                       /* its costs */
enum { MOST_VEC = 8 };                          /* channels that its kernels may read together */

static const vn_tensor *source_of(const struct conv *c)
{
    return c->direction == FORWARD ? &c->x : &c->y;
}

/* Channels in vectors of 16 bytes. */
static int is_channels_last(const vn_tensor *t)
{
    for (int i = 0; i < RANK; i++)
        if (i != 1 && t->extent[i] > 1 && t->stride[i] % MOST_VEC)
            return 0;
    return t->stride[1] == 1 && t->extent[1] % MOST_VEC == 0 && t->start % MOST_VEC == 0;
}

const char *vn__fits_conv_strips(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;
    const int taps = (int)c->w.extent[4];

    (void)f;
    if (c->direction == BACKWARD_FILTER)
        return "it is for outputs that are images";
    if (c->w.extent[0] != c->groups || c->w.extent[1] != 1 || c->groups == 1)
        return "each channel needs a filter of its own";
    if (c->x.extent[2] != 1 || c->y.extent[2] != 1 || c->w.extent[2] != 1 || c->w.extent[3] != taps ||
        (taps != 3 && taps != 5))
        return "it is for filters of 3x3 and 5x5";
    if (c->stride[1] != c->stride[2] || c->stride[1] > 2 || c->dilation[1] != 1 || c->dilation[2] != 1)
        return "it is for strides of 1 or 2, and no dilation";
    if (c->is_empty)
        return "there is nothing to multiply";
    if (c->math == VN_MATH_BITWISE)
        return "bitwise mathematics needs the order of sums of conv";
    return vn__elements(vn__conv_output(c)) > VN_CONV_MOST || vn__elements(source_of(c)) > VN_CONV_MOST ||
           c->pad[1] > VN_CONV_MOST / 16 || c->pad[2] > VN_CONV_MOST / 16
         ? "its elements must stay below 2^31" : NULL;
}

void vn__constants_conv_strips(int *constants, const void *problem)
{
    const struct conv *c = problem;

    constants[0] = c->direction == BACKWARD_DATA;
    constants[1] = is_channels_last(source_of(c)) && is_channels_last(vn__conv_output(c));
    constants[2] = (int)c->w.extent[4];
    constants[3] = (int)c->stride[1];
}

const char *vn__plan_conv_strips(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                 const struct vn_site *site)
{
    const struct conv *c = problem;

    if (row->cost[SHARE] > 0)
        out->seconds = row->cost[FIXED_NS] * 1e-9 + vn__move_seconds(c->p.bytes, row->cost[SHARE], site);
    return strcmp(site->facts->family, "cpu") ? NULL : "it is for GPUs, unless it is named";
}

vn_status vn__run_conv_strips(vn_queue *q, const struct vn_choice *it, const void *problem,
                              const struct vn_plan *plan)
{
    const struct conv *c = problem;
    const vn_tensor *const in = source_of(c), *const out = vn__conv_output(c);
    const int back = c->direction == BACKWARD_DATA;
    const int64_t channels = out->extent[1] / (it->c[1] ? it->p[VEC] : 1);
    const int64_t strips = VN_CEIL_DIV(out->extent[3] + (back ? c->pad[1] : 0), it->p[THR_H]);
    const int64_t cols = VN_CEIL_DIV(out->extent[4] + (back ? c->pad[2] : 0), back ? c->stride[2] : 1);
    const int64_t all = out->extent[0] * channels * strips * cols;
    struct vn_launch l = { .groups = { VN_CEIL_DIV(all, it->p[ITEMS]), 1, 1 }, .items = it->p[ITEMS] };

    (void)plan;
    vn__conv_arg_image(&l, in, in->buffer, in->start);
    vn__conv_arg_sizes(&l, 0, 0, in->extent[0], in->extent[1], in->extent + 2);
    vn__arg_buffer(&l, c->w.buffer);
    vn__arg_view(&l, (int64_t[8]){ c->w.start, 0, 0, c->w.stride[0], 0, c->w.stride[3], c->w.stride[4] });
    vn__conv_arg_sizes(&l, strips, cols, out->extent[0], out->extent[1], out->extent + 2);
    vn__conv_arg_sizes(&l, 0, 0, 0, 0, c->pad);
    vn__conv_arg_alpha(&l, c);
    vn__conv_arg_output(&l, c);
    return vn__launch(q, it, 0, &l);
}
