/* SPDX-License-Identifier: Apache-2.0
 *
 * im2col.c - what TMA can read of a convolution in im2col mode, and the arguments that say so.
 */
#include "im2col.h"

enum { VECTOR = 16, MOST_STEP = 8 };            /* bytes that strides are multiples of; an element stride */

const char *vn__im2col_strides(vn_tensor *out, const vn_tensor *t)
{
    static const int inner_first[] = { 4, 3, 2, 0 };
    const int64_t vector = VECTOR / (int64_t)vn_type_bytes(t->type);
    int64_t next = VN_CEIL_DIV(t->extent[1], vector) * vector;

    *out = *t;
    if ((t->extent[1] > 1 && t->stride[1] != 1) || t->start % vector)
        return "channels must be contiguous, and begin at a multiple of 16 bytes: NHWC";
    out->stride[1] = 1;
    for (int i = 0; i < 4; i++) {
        const int d = inner_first[i];

        if (t->extent[d] == 1)
            out->stride[d] = next;
        if (out->stride[d] <= 0 || out->stride[d] % vector || out->stride[d] >> 34)
            return "pixels must begin at multiples of 16 bytes: NHWC, with channels that fill whole vectors";
        next = out->stride[d] * t->extent[d];
    }
    for (int d = 0; d < RANK; d++)
        if (t->extent[d] > VN_CONV_MOST)
            return "an extent is 2^31 or more";
    return NULL;
}

int vn__im2col_rank(const struct conv *c)
{
    return c->x.extent[2] == 1 && c->y.extent[2] == 1 && c->w.extent[2] == 1 && c->pad[0] == 0 ? 4 : 5;
}

/* ---- taps and phases -------------------------------------------------------------------- */

int64_t vn__conv_phases_along(const struct conv *c, int d)
{
    const int64_t extent = c->x.extent[2 + d];

    return c->direction != BACKWARD_DATA ? 1 : c->stride[d] < extent ? c->stride[d] : extent;
}

/* As find_taps() of cl/conv/conv.h: how many, and their least and largest source for the first pixel. */
static int64_t taps_of(const struct conv *c, int d, int64_t phase, int64_t *least, int64_t *largest)
{
    const int64_t taps = c->w.extent[2 + d], dilation = c->dilation[d], stride = c->stride[d];
    const int64_t g = vn__common_divisor(dilation, stride), step = stride / g, at = phase + c->pad[d];
    int64_t first, count;

    if (c->direction != BACKWARD_DATA) {
        *least = -c->pad[d];
        *largest = *least + (taps - 1) * dilation;
        return taps;
    }
    first = at / g % step * vn__inverse(dilation / g, step) % step;
    if (at % g || first >= taps)
        return 0;
    count = (taps - 1 - first) / step + 1;
    *largest = (at - first * dilation) / stride;
    *least = *largest - (count - 1) * (dilation / g);
    return count;
}

int64_t vn__conv_taps_along(const struct conv *c, int d, int64_t phase)
{
    int64_t least, largest;

    return taps_of(c, d, phase, &least, &largest);
}

/* Whether TMA takes the corners and the offsets of one dimension. */
static int take_window(struct im2col *out, const struct conv *c, int d)
{
    const int64_t bits = out->rank == 5 ? 5 : 8, half = (int64_t)1 << (bits - 1);
    const int64_t phases = vn__conv_phases_along(c, d), extent = out->source.extent[2 + d];
    const vn_tensor *const pixels = c->direction == BACKWARD_DATA ? &c->x : &c->y;
    int64_t first = 0, last = 0, upper;
    int any = 0;

    for (int64_t phase = 0; phase < phases; phase++) {
        int64_t least, largest;

        if (!taps_of(c, d, phase, &least, &largest))
            continue;
        first = any && first < least ? first : least;
        last = any && last > largest ? last : largest;
        any = 1;
    }
    out->first[d] = first;
    out->reach[d] = last - first;
    out->step[d] = c->direction == BACKWARD_DATA ? 1 : c->stride[d];
    out->count[d] = VN_CEIL_DIV(pixels->extent[2 + d], phases);
    upper = (out->count[d] - 1) * out->step[d] + 1 + first - extent;
    return out->step[d] <= MOST_STEP && first >= -half && first < half && upper >= -half && upper < half &&
           last - first < 2 * half;
}

/* In backward data wgmma reads filters N-major, which it cannot in f32. */
int vn__im2col_turns_filter(const struct conv *c)
{
    return c->direction == BACKWARD_DATA && c->w.type == VN_F32;
}

double vn__conv_met(const struct conv *c)
{
    double elements = (double)vn__elements(&c->x);

    for (int d = 0; d < DIMS; d++) {
        const int64_t met = c->y.extent[2 + d] * c->w.extent[2 + d], all = c->x.extent[2 + d];

        elements *= met < all ? (double)met / (double)all : 1;
    }
    return elements;
}

vn_tensor vn__conv_turned(const vn_tensor *w)
{
    vn_tensor t = *w;

    t.extent[0] = w->extent[1];
    t.stride[0] = w->stride[1];
    t.extent[1] = w->extent[0];
    t.stride[1] = w->stride[0];
    return t;
}

const char *vn__im2col_of(struct im2col *out, const struct conv *c)
{
    enum { MOST_PHASES = 64 };
    const vn_tensor w = vn__im2col_turns_filter(c) ? vn__conv_turned(&c->w) : c->w;
    const char *why;

    out->rank = vn__im2col_rank(c);
    out->images = c->y.extent[0];
    out->filter = w;
    if ((why = vn__im2col_strides(&out->source, c->direction == BACKWARD_DATA ? &c->y : &c->x)) ||
        (c->direction != BACKWARD_FILTER && (why = vn__im2col_strides(&out->filter, &w))))
        return why;
    for (int d = 0; d < DIMS; d++) {
        out->count[d] = out->step[d] = 1;
        out->first[d] = out->reach[d] = 0;
        if (d == 0 && out->rank == 4)
            continue;
        if (c->pad[d] > VN_CONV_MOST || c->dilation[d] > VN_CONV_MOST || c->stride[d] > VN_CONV_MOST ||
            vn__conv_phases_along(c, d) > MOST_PHASES || !take_window(out, c, d))
            return "the padding, the reach of the filter, or the stride is more than TMA takes";
    }
    return NULL;
}

/* ---- arguments ---------------------------------------------------------------------------- */

void vn__arg_im2col_strides(struct vn_launch *l, const vn_tensor *t)
{
    int64_t v[8] = { t->start, 0 };

    for (int i = 0; i < RANK; i++)
        v[2 + i] = t->stride[i];
    vn__arg_view(l, v);
}

void vn__arg_im2col_extents(struct vn_launch *l, const vn_tensor *t)
{
    int64_t e[8] = { 0 };

    for (int i = 0; i < RANK; i++)
        e[2 + i] = t->extent[i];
    vn__arg_view(l, e);
}

void vn__arg_im2col_source(struct vn_launch *l, const struct im2col *i)
{
    vn__arg_buffer(l, i->source.buffer);
    vn__arg_im2col_strides(l, &i->source);
    vn__arg_im2col_extents(l, &i->source);
}

int64_t vn__im2col_zeros(const struct im2col *i, int d)
{
    const int64_t more = i->count[d] - i->source.extent[2 + d], before = -i->first[d];

    return max_of(more, max_of(before, more + i->reach[d] - before));
}

void vn__arg_im2col_window(struct vn_launch *l, const struct im2col *i, const int64_t phase[DIMS],
                           int64_t phases)
{
    vn__arg_view(l, (int64_t[8]){ phase[2], phases, i->images, 0, i->count[0], i->count[1],
                                  i->count[2] });
    vn__arg_view(l, (int64_t[8]){ phase[0], phase[1], vn__im2col_zeros(i, 1), vn__im2col_zeros(i, 2),
                                  i->first[0], i->first[1], i->first[2] });
    vn__arg_view(l, (int64_t[8]){ vn__divisor(i->count[0]), vn__divisor(i->count[1]),
                                  vn__divisor(i->count[2]), 0, i->step[0], i->step[1], i->step[2] });
}
