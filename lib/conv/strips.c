/* SPDX-License-Identifier: Apache-2.0
 *
 * strips.c - the variant conv_strips: depthwise convolution on GPUs, forward and backward data.
 */
#include <string.h>

#include "gemm/gemm.h"
#include "repack.h"
#include "strips.h"

enum { THR_H, COLS, VEC, EXACT, ITEMS };              /* its parameters */
enum { PLANAR = VN_STRIPS_COSTS };      /* its costs: first of the shares where channels are apart */
enum { MOST_VEC = 8, LANES = 32 };      /* channels of a vector; vectors of a group, as of strips.cl */
enum { MOST_REGISTERS = 192 };

/* ---- strips in general ----------------------------------------------------------------------- */

static const char *fits_depthwise(const struct conv *c)
{
    const int64_t taps = c->w.extent[4];

    if (c->w.extent[0] != c->groups || c->w.extent[1] != 1 || c->groups == 1)
        return "each channel needs a filter of its own";
    if (c->x.extent[2] != 1 || c->y.extent[2] != 1 || c->w.extent[2] != 1 || c->w.extent[3] != taps ||
        (taps != 3 && taps != 5))
        return "it is for filters of 3x3 and 5x5";
    if (c->stride[1] != c->stride[2] || c->stride[1] > 2 || c->dilation[1] != 1 || c->dilation[2] != 1)
        return "it is for strides of 1 or 2, and no dilation";
    return vn__fits_elements(c);
}

const char *vn__fits_strips(const struct conv *c)
{
    return c->direction == BACKWARD_FILTER ? "it is for outputs that are images" : fits_depthwise(c);
}

const char *vn__fits_depthwise_filter(const struct conv *c)
{
    return c->direction == BACKWARD_FILTER ? fits_depthwise(c) : "it is for the gradient of the filter";
}

struct strips vn__strips_of(const struct conv *c)
{
    const int back = c->direction == BACKWARD_DATA, turned = back && c->stride[1] == 1;
    const int64_t last = c->w.extent[4] - 1;
    struct strips s = { .in = back ? &c->y : &c->x, .out = back ? &c->x : &c->y,
                        .row = c->w.stride[3], .col = c->w.stride[4], .spread = back && !turned };

    for (int d = 0; d < DIMS; d++)
        s.pad[d] = turned && d ? last - c->pad[d] : c->pad[d];
    if (turned) {
        s.first = last * (s.row + s.col);
        s.row = -s.row;
        s.col = -s.col;
    }
    return s;
}

int64_t vn__strips_source(const struct conv *c, const struct strips *s, int64_t n)
{
    const int64_t taps = c->w.extent[4], step = c->stride[1];

    return s->spread ? (n - 1) / step + 1 + (taps - 1) / step : (n - 1) * step + taps;
}

int vn__strips_are_exact(const struct conv *c, int64_t rows, int64_t cols)
{
    const struct strips s = vn__strips_of(c);
    const int64_t around = c->w.extent[4] / 2, step = c->stride[1];

    return !s.spread && s.pad[1] == around && s.pad[2] == around && s.out->extent[3] % rows == 0 &&
           s.out->extent[4] % cols == 0 && s.in->extent[3] == s.out->extent[3] * step &&
           s.in->extent[4] == s.out->extent[4] * step;
}

int vn__strips_channels_last(const vn_tensor *t)
{
    for (int i = 0; i < RANK; i++)
        if (i != 1 && t->extent[i] > 1 && t->stride[i] % MOST_VEC)
            return 0;
    return t->stride[1] == 1 && t->extent[1] % MOST_VEC == 0 && t->start % MOST_VEC == 0;
}

int vn__strips_are_dense(const vn_tensor *w)
{
    return w->stride[4] == 1 && w->stride[3] == w->extent[4] && w->stride[0] == w->extent[3] * w->extent[4];
}

double vn__strips_seconds(const struct conv *c, double bytes, const struct vn_row *row, int first,
                          const struct vn_site *site)
{
    const int which = c->stride[1] == 1 ? 0 : vn__strips_of(c).spread ? 2 : 1;
    const int share = row->cost[first + which];

    return share > 0 ? row->cost[VN_STRIPS_FIXED_NS] * 1e-9 + vn__move_seconds(bytes, share, site) : 0;
}

void vn__strips_arg_filter(struct vn_launch *l, const struct conv *c, const struct strips *s)
{
    const int64_t elements = (int64_t)(c->w.buffer->bytes / vn_type_bytes(c->w.type));

    vn__arg_buffer(l, c->w.buffer);
    vn__arg_view(l, (int64_t[8]){ c->w.start, elements, s->first, c->w.stride[0], 0, s->row, s->col });
}

/* ---- conv_strips ------------------------------------------------------------------------------- */

const char *vn__fits_conv_strips(const void *problem, const struct vn_facts *f)
{
    (void)f;
    return vn__fits_strips(problem);
}

void vn__constants_conv_strips(int *constants, const void *problem)
{
    const struct conv *c = problem;
    const struct strips s = vn__strips_of(c);

    constants[0] = s.spread;
    constants[1] = vn__strips_channels_last(s.in) && vn__strips_channels_last(s.out) &&
                   vn__strips_are_dense(&c->w);
    constants[2] = (int)c->w.extent[4];
    constants[3] = (int)c->stride[1];
}

/* Of taps, sums and a row of the source. */
static int registers_of(const struct conv *c, const struct vn_row *row)
{
    const int taps = (int)c->w.extent[4], cols = row->p[COLS], wide = cols * (int)c->stride[1] + taps;

    return row->p[VEC] * (taps * taps + taps * cols + wide) * (c->p.type == VN_F64 ? 2 : 1);
}

const char *vn__plan_conv_strips(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                 const struct vn_site *site)
{
    const struct conv *c = problem;
    int k[VN_CONSTANTS];

    vn__constants_conv_strips(k, c);
    out->seconds = -1;
    if (k[0] && (row->p[THR_H] & 1 || (k[1] && row->p[COLS] & 1)))
        return "its strips do not begin at a multiple of the stride";
    if (row->p[EXACT] && !vn__strips_are_exact(c, row->p[THR_H], k[1] ? row->p[COLS] : 1))
        return "its strips are not whole";
    if (k[1] && registers_of(c, row) > MOST_REGISTERS)
        return "its strips do not fit the registers";
    out->seconds = vn__strips_seconds(c, c->p.bytes, row, k[1] ? VN_STRIPS_SHARE : PLANAR, site);
    return strcmp(site->facts->family, "cpu") ? NULL : "it is for GPUs, unless it is named";
}

vn_status vn__run_conv_strips(vn_queue *q, const struct vn_choice *it, const void *problem,
                              const struct vn_plan *plan)
{
    const struct conv *c = problem;
    const struct strips s = vn__strips_of(c);
    const vn_tensor *const in = s.in, *const out = s.out;
    const int last = it->c[1];
    const int64_t strips = VN_CEIL_DIV(out->extent[3] + (s.spread ? c->pad[1] : 0), it->p[THR_H]);
    const int64_t cols = VN_CEIL_DIV(out->extent[4] + (s.spread ? c->pad[2] : 0),
                                     last ? it->p[COLS] : s.spread ? c->stride[2] : 1);
    const int64_t vectors = last ? out->extent[1] / it->p[VEC] : 1, blocks = VN_CEIL_DIV(vectors, LANES);
    const int64_t lanes = VN_CEIL_DIV(vectors, blocks);
    const int64_t all = out->extent[0] * strips * cols * (last ? 1 : out->extent[1]);
    struct vn_launch l = { .groups = { VN_CEIL_DIV(all, it->p[ITEMS] / lanes) * blocks, 1, 1 },
                           .items = it->p[ITEMS] };

    (void)plan;
    vn__conv_arg_image(&l, in, in->buffer, in->start);
    vn__conv_arg_sizes(&l, 0, 0, in->extent[0], in->extent[1], in->extent + 2);
    vn__strips_arg_filter(&l, c, &s);
    vn__conv_arg_sizes(&l, strips, cols, out->extent[0], out->extent[1], out->extent + 2);
    vn__conv_arg_sizes(&l, lanes, blocks, 0, 0, s.pad);
    vn__conv_arg_alpha(&l, c);
    vn__conv_arg_output(&l, c);
    return vn__launch(q, it, 0, &l);
}
