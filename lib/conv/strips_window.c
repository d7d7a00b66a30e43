/* SPDX-License-Identifier: Apache-2.0
 *
 * strips_window.c - the variant conv_strips_window: depthwise convolution, forward and backward data, of NHWC
 * tensors on NVIDIA's sm_90, where TMA loads what a tile of strips reads.
 */
#include "gemm/gemm.h"
#include "im2col.h"
#include "repack.h"
#include "strips.h"

enum { THR_H, COLS, STRIPS_H, STRIPS_W, LANES, STAGES, TENANTS };      /* its parameters */
enum { FIXED_NS, SHARE, TILE_NS, STRIDED_NS, SPREAD_NS };              /* its costs */
enum { TILES, GROUPS, DOWN, ACROSS, BLOCKS };                          /* the plan's numbers */
enum { WORD = 4, WARP = 32, VECTOR = 16, MOST_BOX = 256 };        /* WORD, VECTOR: bytes */

const char *vn__fits_conv_strips_window(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;
    vn_tensor seen;
    const char *why;

    if (vn__sm(f) != 90)
        return "it needs an NVIDIA GPU of sm_90, for TMA";
    if (c->p.type == VN_F64)
        return "it is for types of at most 32 bits";
    if ((why = vn__fits_strips(c)) || (why = vn__im2col_strides(&seen, vn__strips_of(c).in)))
        return why;
    if (!vn__strips_are_dense(&c->w) || c->w.start * (int64_t)vn_type_bytes(c->w.type) % VECTOR)
        return "filters of channels must follow each other in memory, from a multiple of 16 bytes on";
    return vn__strips_channels_last(vn__strips_of(c).out)
         ? NULL : "channels of the output must be contiguous vectors of 16 bytes: NHWC";
}

void vn__constants_conv_strips_window(int *constants, const void *problem)
{
    const struct conv *c = problem;

    constants[0] = vn__strips_of(c).spread;
    constants[1] = (int)c->w.extent[4];
    constants[2] = (int)c->stride[1];
}

static int64_t channels_of(const struct conv *c, const int *p)
{
    return p[LANES] * WORD / (int64_t)vn_type_bytes(c->p.type);
}

const char *vn__plan_conv_strips_window(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                        const struct vn_site *site)
{
    enum { OTHER = 2048, OTHER_WORK = 10 };     /* bytes; as of so many taps: loads and stores */
    const struct conv *c = problem;
    const int *const p = row->p;
    const int64_t taps = c->w.extent[3] * c->w.extent[4];
    const struct strips s = vn__strips_of(c);
    const int64_t rows = p[THR_H] * p[STRIPS_H], cols = p[COLS] * p[STRIPS_W];
    const int64_t in_h = vn__strips_source(c, &s, rows), in_w = vn__strips_source(c, &s, cols);
    const int64_t room = (p[STAGES] * in_h * in_w + taps) * p[LANES] * WORD + OTHER;
    const int64_t held = min_of(p[TENANTS], (int64_t)(site->rates->local_kib * 1024) / room);
    const int64_t resident = (int64_t)site->facts->units * held;
    const int which = c->stride[1] == 1 ? TILE_NS : s.spread ? SPREAD_NS : STRIDED_NS;
    int64_t turns, each;

    out->seconds = -1;
    if (p[STRIPS_H] * p[STRIPS_W] * p[LANES] % WARP)
        return "its strips do not fill whole warps";
    if (s.spread && (p[THR_H] | p[COLS]) & 1)
        return "its strips do not begin at a multiple of the stride";
    if (in_h > MOST_BOX || in_w > MOST_BOX || !held)
        return "its windows do not fit local memory";
    out->v[DOWN] = VN_CEIL_DIV(s.out->extent[3] + (s.spread ? c->pad[1] : 0), rows);
    out->v[ACROSS] = VN_CEIL_DIV(s.out->extent[4] + (s.spread ? c->pad[2] : 0), cols);
    out->v[BLOCKS] = VN_CEIL_DIV(s.out->extent[1], channels_of(c, p));
    if (!vn__mul(&out->v[TILES], out->v[DOWN], out->v[ACROSS]) ||
        !vn__mul(&out->v[TILES], out->v[TILES], s.out->extent[0]) || out->v[TILES] > VN_CONV_MOST / 2)
        return "the output has more than 2^30 tiles";
    each = min_of(out->v[TILES], max_of(1, resident / out->v[BLOCKS]));
    out->v[GROUPS] = each * out->v[BLOCKS];
    turns = VN_CEIL_DIV(out->v[TILES], each) * VN_CEIL_DIV(out->v[GROUPS], resident);
    out->seconds = row->cost[FIXED_NS] * 1e-9 + vn__move_seconds(c->p.bytes, row->cost[SHARE], site) +
                   (double)(turns * (taps + OTHER_WORK)) / (9 + OTHER_WORK) * row->cost[which] * 1e-9;
    return NULL;
}

vn_status vn__run_conv_strips_window(vn_queue *q, const struct vn_choice *it, const void *problem,
                                     const struct vn_plan *plan)
{
    const struct conv *c = problem;
    const struct strips s = vn__strips_of(c);
    const int64_t *const v = plan->v;
    const int warps = it->p[STRIPS_H] * it->p[STRIPS_W] * it->p[LANES] / WARP;
    struct vn_launch l = { .groups = { v[GROUPS], 1, 1 }, .items = (warps + 1) * WARP };
    vn_tensor seen;
    const char *const why = vn__im2col_strides(&seen, s.in);
    vn_status status;

    if (why)
        return vn__fail(VN_UNSUPPORTED, "%s", why);
    vn__arg_int(&l, v[GROUPS]);
    vn__arg_int(&l, v[TILES]);
    if ((status = vn__arg_maps(&l, q)))
        return status;
    vn__arg_buffer(&l, seen.buffer);
    vn__arg_im2col_strides(&l, &seen);
    vn__arg_im2col_extents(&l, &seen);
    vn__strips_arg_filter(&l, c, &s);
    vn__conv_arg_sizes(&l, v[DOWN], v[ACROSS], s.out->extent[0], s.out->extent[1], s.out->extent + 2);
    vn__arg_view(&l, (int64_t[8]){ v[BLOCKS], vn__divisor(v[DOWN]), vn__divisor(v[ACROSS]), 0, s.pad[0],
                                   s.pad[1], s.pad[2] });
    vn__conv_arg_alpha(&l, c);
    vn__conv_arg_output(&l, c);
    return vn__launch(q, it, 0, &l);
}
