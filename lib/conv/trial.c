/* SPDX-License-Identifier: Apache-2.0
 *
 * trial.c - a variant that rests on more than the language promises proves itself once.
 *
 * A small convolution in integers, with a stride, padding, and ragged sizes, must come out exactly.
 */
#include <stdlib.h>
#include <string.h>

#include "conv.h"

enum { IMAGES = 3, SHAPES = 80, LAYOUTS = 96 };  /* layouts of each shape */
enum { MOST = IMAGES * 40 * 2 * 9 * 40 };       /* elements of the largest tensor */

/* vector: what pixels begin at multiples of, if channels are contiguous.  FEW: few channels, whose taps are 1
 * to 8 steps of 16, or 2 to 8 vectors of a row of taps; a row of the output has more than 8 pixels. */
#define FEW(channels, taps) { channels, 56, 1, taps, (taps) / 2, 9, 11, 1 }, \
                            { channels, 56, 2, taps, (taps) / 2, 9, 25, 1 }
/* Rows that are whole words, of which 1 to 4 are a step of a row of taps. */
#define PAIR(words, taps) { 2 * (words), 56, 1, taps, (taps) / 2, 9, 12, 1 },                                \
                          { words, 56, 2, taps, (taps) / 2, 9, 26, 1 }
#define WORDS(taps)       PAIR(1, taps), PAIR(2, taps), PAIR(3, taps), PAIR(4, taps)
static const struct { int channels, filters, stride, taps, pad, height, width, vector; } shapes[SHAPES] = {
    { 72, 88, 2, 3, 1, 9, 11, 1 }, { 3, 88, 2, 3, 1, 9, 25, 1 }, { 40, 48, 1, 3, 1, 9, 11, 1 },
    { 3, 56, 2, 3, 1, 9, 25, 1 },               /* few channels, and filters that fit one slice */
    { 72, 88, 1, 1, 0, 1, 104, 1 },             /* one tap, and a row of pixels, as they are joined */
    { 40, 48, 2, 1, 0, 9, 40, 1 },              /* pixels that the filter does not meet */
    { 42, 53, 2, 3, 1, 9, 11, 8 },              /* channels that do not fill their last vector */
    FEW(1, 3), FEW(2, 3), FEW(1, 6), FEW(1, 7), FEW(2, 6), FEW(1, 9), FEW(1, 10), FEW(1, 11),
    FEW(1, 2), FEW(1, 13), WORDS(2), WORDS(3), WORDS(5), WORDS(7), WORDS(9), WORDS(13),
    { 72, 88, 1, 3, 1, 9, 11, 1 },              /* more channels than a slice has */
    { 72, 0, 1, 3, 1, 9, 11, 1 }, { 72, 0, 2, 3, 1, 9, 25, 1 },     /* 0: a filter for each channel */
    { 72, 0, 1, 5, 2, 9, 11, 1 }, { 72, 0, 2, 5, 2, 9, 25, 1 },
};

static int entry(int64_t i, int64_t j) { return (int)((7 * i + 3 * j + i * j % 5) % 5) - 2; }

/* Sums of many products need more bits than bf16 has: images are thinned out.  Indices of `at` are as those
 * of the extents: image (filter), channel, d, h, w.                                                      */
static int image_at(const int64_t at[RANK])
{
    return (at[1] + 3 * at[3] + at[4] + at[0]) % 8 ? 0 : entry(at[1] + at[2] + at[4], at[0] + at[3]);
}

static int filter_at(const int64_t at[RANK]) { return entry(at[0] + at[3], at[1] + 2 * at[4]); }

/* An element of a residual or a bias, which may be the same along a dimension. */
static int side_at(const int64_t at[RANK], const vn_tensor *t)
{
    int64_t there[RANK];

    for (int d = 0; d < RANK; d++)
        there[d] = t->stride[d] ? at[d] : 0;
    return entry(there[0] + there[1] + there[3], there[4]);
}

/* The next index of a tensor, innermost first; 0 past the last. */
static int advance(int64_t at[RANK], const vn_tensor *t)
{
    for (int d = RANK - 1; d >= 0; d--) {
        if (++at[d] < t->extent[d])
            return 1;
        at[d] = 0;
    }
    return 0;
}

static size_t offset_of(const int64_t at[RANK], const vn_tensor *t)
{
    int64_t offset = 0;

    for (int d = 0; d < RANK; d++)
        offset += at[d] * t->stride[d];
    return (size_t)offset;
}

static vn_status fill(vn_queue *q, const struct conv *c, const vn_tensor *t)
{
    const size_t bytes = MOST * vn_type_bytes(t->type);
    const int has_gaps = t->stride[1] == 1 && t->stride[4] > t->extent[1];
    void *const room = calloc(1, bytes);
    int64_t at[RANK] = { 0 };
    vn_status s;

    if (!room)
        return vn__fail(VN_NO_MEMORY, "host memory ran out for a trial");
    if (has_gaps)                               /* NaN, in each type */
        memset(room, 0xff, bytes);
    do
        vn__trial_encode(room, t->type, offset_of(at, t),
                         t == &c->w ? filter_at(at) : t == &c->x || t == &c->y ? image_at(at)
                                                                               : side_at(at, t));
    while (advance(at, t));
    s = q->device->backend->write(q, t->buffer, 0, room, bytes, 1);
    free(room);
    return s;
}

/* ---- what comes out -------------------------------------------------------------------- */

/* Adds the products of one pixel of y and one tap, which meet at a pixel of x: most elements are 0. */
static void add_tap(double *sums, const struct conv *c, int64_t y[RANK], int64_t w[RANK], int64_t x[RANK])
{
    const int by_filter = c->direction == BACKWARD_DATA;
    const int64_t outer = c->w.extent[!by_filter && c->groups == 1];
    const int64_t inner = c->groups > 1 ? 1 : c->w.extent[by_filter];

    for (int64_t i = 0; i < outer; i++) {       /* channels of the image that is summed */
        double v;

        x[1] = w[1] = y[1] = w[0] = i;
        if (!(v = image_at(by_filter ? y : x)))
            continue;
        for (int64_t j = 0; j < inner; j++) {
            if (c->groups > 1)
                w[1] = 0;
            else if (by_filter)
                x[1] = w[1] = j;
            else
                y[1] = w[0] = j;
            if (c->direction == FORWARD)
                sums[offset_of(y, &c->y)] += v * filter_at(w);
            else if (by_filter)
                sums[offset_of(x, &c->x)] += v * filter_at(w);
            else
                sums[offset_of(w, &c->w)] += v * image_at(y);
        }
    }
}

/* Adds all products to the elements of the output, which is given by offset. */
static void add_products(double *sums, const struct conv *c)
{
    vn_tensor pixels = c->y, taps = c->w;
    int64_t p[RANK] = { 0 }, f[RANK] = { 0 };

    pixels.extent[1] = taps.extent[0] = taps.extent[1] = 1;
    do {
        do {
            int64_t y[RANK], w[RANK], x[RANK] = { p[0] };
            int inside = 1;

            memcpy(y, p, sizeof y);
            memcpy(w, f, sizeof w);
            for (int d = 2; d < RANK; d++) {
                x[d] = p[d] * c->stride[d - 2] - c->pad[d - 2] + f[d] * c->dilation[d - 2];
                inside &= x[d] >= 0 && x[d] < c->x.extent[d];
            }
            if (inside)
                add_tap(sums, c, y, w, x);
        } while (advance(f, &taps));
    } while (advance(p, &pixels));
}

static vn_status compare(vn_queue *q, const struct conv *c)
{
    const vn_tensor *const out = vn__conv_output(c);
    double *const room = malloc(MOST * sizeof *room), *const sums = calloc(MOST, sizeof *sums);
    int64_t at[RANK] = { 0 };
    vn_status s;

    if (!room || !sums) {
        free(room);
        free(sums);
        return vn__fail(VN_NO_MEMORY, "host memory ran out for a trial");
    }
    add_products(sums, c);
    s = q->device->backend->read(q, room, out->buffer, 0, MOST * vn_type_bytes(out->type), 1);
    do {
        const double x = vn__trial_decode(room, out->type, offset_of(at, out));
        double wanted = sums[offset_of(at, out)];

        if (s)
            break;
        for (int side = 0; side < 2; side++) {
            const int there = side ? c->has_bias : c->beta != 0;

            wanted += there ? side_at(at, side ? &c->bias : &c->residual) : 0;
        }
        if (!vn__trial_is_right(c->p.epilogue.act, x, wanted))
            s = vn__fail(VN_UNSUPPORTED, "a trial convolution came out wrong at %lld, %lld, %lld, %lld, "
                         "%lld: %g of a sum of %g", (long long)at[0], (long long)at[1], (long long)at[2],
                         (long long)at[3], (long long)at[4], x, wanted);
    } while (!s && advance(at, out));
    free(room);
    free(sums);
    return s;
}

/* ---- the problem ------------------------------------------------------------------------- */

/* NHWC, or NCHW. */
static void lay_out_tensor(vn_tensor *t, vn_type type, int nchw, int vector, const int64_t extent[RANK])
{
    static const int orders[2][RANK] = { { 1, 4, 3, 2, 0 }, { 4, 3, 2, 1, 0 } };
    int64_t step = 1;

    t->type = type;
    t->rank = RANK;
    t->start = 0;
    for (int i = 0; i < RANK; i++) {
        const int d = orders[nchw][i];

        t->extent[d] = extent[d];
        t->stride[d] = step;
        step *= extent[d];
        if (!nchw && i == 0)
            step = VN_CEIL_DIV(step, vector) * vector;
    }
}

/* In one of the shapes that kernels ask for: `which` counts them. */
static void lay_out(struct conv *c, const struct vn_choice *it, int which)
{
    const int is_3d = which & 1, nchw = which >> 1 & 1, channels = which >> 2 & 1;
    const int of_out = nchw ^ (which % LAYOUTS >= LAYOUTS / 2);         /* the output's may be another */
    const int64_t inputs = shapes[which / LAYOUTS].channels;
    const int64_t filters = shapes[which / LAYOUTS].filters ? shapes[which / LAYOUTS].filters : inputs;
    const int stride = shapes[which / LAYOUTS].stride, taps = shapes[which / LAYOUTS].taps;
    const int pad = shapes[which / LAYOUTS].pad, height = shapes[which / LAYOUTS].height;
    const int width = shapes[which / LAYOUTS].width, vector = shapes[which / LAYOUTS].vector;
    const int64_t depth = is_3d ? 2 : 1;
    const vn_tensor *out;
    int64_t extent[RANK];

    c->direction = (enum direction)(which % (LAYOUTS / 2) / 16);
    c->groups = shapes[which / LAYOUTS].filters ? 1 : inputs;
    c->math = which >> 3 & 1 ? VN_MATH_TF32 : VN_MATH_DEFAULT;
    for (int d = 0; d < DIMS; d++) {
        c->stride[d] = d ? stride : 1;
        c->pad[d] = d ? pad : 0;
        c->dilation[d] = 1;
    }
    lay_out_tensor(&c->x, c->p.type, nchw, vector, (int64_t[]){ IMAGES, inputs, depth, height, width });
    lay_out_tensor(&c->w, c->p.type, nchw, vector, (int64_t[]){ filters, inputs / c->groups, 1, taps, taps });
    lay_out_tensor(&c->y, c->p.type, nchw, vector,
                   (int64_t[]){ IMAGES, filters, depth, (height + 2 * pad - taps) / stride + 1,
                                (width + 2 * pad - taps) / stride + 1 });
    out = vn__conv_output(c);
    memcpy(extent, out->extent, sizeof extent);
    lay_out_tensor((vn_tensor *)out, (vn_type)it->epilogue.type_c, of_out, vector, extent);
    lay_out_tensor(&c->residual, (vn_type)it->epilogue.type_residual, of_out, vector, extent);
    lay_out_tensor(&c->bias, (vn_type)it->epilogue.type_bias, of_out, vector, extent);
    for (int d = 0; d < RANK; d++)
        if (channels && d != (c->direction == BACKWARD_FILTER ? 0 : 1))
            c->bias.stride[d] = 0;
}

/* Whether buffers of MOST elements hold all of them. */
static int has_room(const struct conv *c)
{
    const vn_tensor *const all[] = { &c->x, &c->w, &c->y, &c->residual, &c->bias };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int64_t last[RANK];

        for (int d = 0; d < RANK; d++)
            last[d] = all[i]->extent[d] - 1;
        if (offset_of(last, all[i]) >= MOST)
            return 0;
    }
    return 1;
}

static vn_status run(vn_queue *q, const struct vn_choice *it, struct conv *c)
{
    struct vn_plan plan;
    int constants[VN_CONSTANTS], found = 0;
    vn_status s;

    for (int which = 0; which < SHAPES * LAYOUTS && !found; which++) {
        lay_out(c, it, which);
        memset(constants, 0, sizeof constants);
        if (it->variant->constants_of)
            it->variant->constants_of(constants, c);
        found = has_room(c) && vn__constants_suit(it->variant, it->c, constants) &&
                !it->variant->fits(c, &q->device->facts) && vn__plan(&plan, q, it, c) == VN_OK;
    }
    if (!found)
        return vn__fail(VN_UNSUPPORTED, "no layout of the trial convolution fits the variant");
    if ((s = c->direction == BACKWARD_FILTER ? VN_OK : fill(q, c, &c->w)) ||
        (s = c->direction == BACKWARD_DATA ? VN_OK : fill(q, c, &c->x)) ||
        (s = c->direction == FORWARD ? VN_OK : fill(q, c, &c->y)) ||
        (s = fill(q, c, &c->residual)) || (s = fill(q, c, &c->bias)) ||
        (s = it->variant->run(q, it, c, &plan)) || (s = q->device->backend->finish(q)))
        return s;
    return compare(q, c);
}

vn_status vn__trial_conv(vn_queue *q, const struct vn_choice *it, vn_type type)
{
    const struct vn_epilogue *const e = &it->epilogue;
    struct conv c = { .p = { .op = "conv", .type = type, .bucket = VN_SMALL, .epilogue = *e },
                      .alpha = 1, .beta = e->residual != 0, .has_bias = e->bias != 0, .groups = 1,
                      .joined = 1, .activation = (vn_activation)e->act };
    vn_tensor *const all[] = { &c.x, &c.w, &c.y, &c.residual, &c.bias };
    vn_status s = VN_OK;

    for (int i = 0; i < 5 && s == VN_OK; i++)
        s = vn__buffer_open(&all[i]->buffer, q->device, MOST * sizeof(double), NULL);
    if (s == VN_OK)
        s = run(q, it, &c);
    for (int i = 0; i < 5; i++)
        vn__buffer_close(all[i]->buffer);
    return s;
}
