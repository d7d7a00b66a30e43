/* cl/conv/im2col.h - pixels and filters of a convolution, as TMA copies them to local memory
 *
 * A convolution is a product with the pixels of an output, or of a phase of it, along one side.  Those of all
 * images are numbered: w first, then h, d, image.  For a tap, pixel i of a dimension takes the source element
 * first + i step + offset; outside of the image are zeros.  One copy brings `pixels` consecutive ones for one
 * tap, each a row of 128 bytes of channels, swizzled:
 *
 *     a K-major operand of a product whose sum runs over channels, or
 *     an MN-major one, of 128 bytes of channels, where the sum runs over pixels (cl/tile/operand.h).
 *
 * How to use it, with any type, and whoever consumes:
 *
 *     const struct window win = window_of(eGrid, vFirst, vStep);
 *
 *     im2col_map(map, room, lane, MAP_TYPE_F16, 2, gX + vX.s0, vX, eX, win, pixels);       one warp
 *     filter_map(map2, room2, lane, MAP_TYPE_F16, 2, gW + vW.s0, vW, eW, filters);         one warp
 *     map_acquire(map);                                                                    the producer
 *     im2col_load(to, map, channel, pixel_of(win, number), s, r, t, pipe_full(p));        pixels * 128 bytes
 *     filter_load(to, map2, channel, s, r, t, filter, pipe_full(p));                      filters * 128 bytes
 *
 * All work-groups may share the maps, which are kept where an earlier launch left them (map_keep()).
 *
 * Views and extents are as in cl/conv/conv.h: s2 images (filters), s3 channels, s4 d, s5 h, s6 w (taps t, r,
 * s); s0 to s2 of vStep are the numbers of pixels along d, h and w as prepared divisors.  Channels are
 * contiguous; all other strides, in elements, are multiples of 16 bytes, and not 0.  Offsets of taps are not
 * below 0: `first` is the least source of all taps.  lib/conv/im2col.c checks the limits of TMA, and makes
 * these arguments.
 *
 * Takes: IMAGE_RANK, 5 where images have a dimension d, else 4; atoms/nvidia/tma.h, warp.h; tensor_map.h.
 * Gives: struct window, window_of(), struct pixel, pixel_of(), image_map(), im2col_map(), box_map(),
 *        filter_map(), im2col_load(), filter_load().
 */

/* Of w, h, d: how many pixels there are, the source of the first, the step from pixel to pixel, and how
 * many as prepared divisors. */
struct window { int count[3], first[3], step[3], images; INT64 by[3]; };

DEVICE struct window window_of(VIEW count, VIEW first, VIEW step)
{
    const struct window win = { { (int)count.s6, (int)count.s5, (int)count.s4 },
                                { (int)first.s6, (int)first.s5, (int)first.s4 },
                                { (int)step.s6, (int)step.s5, (int)step.s4 }, (int)count.s2,
                                { (INT64)step.s2, (INT64)step.s1, (INT64)step.s0 } };

    return win;
}

/* The source of a pixel, for offsets of 0. */
struct pixel { int w, h, d, n; };

DEVICE struct pixel pixel_of(struct window win, int number)
{
    const int row = divided(number, win.by[0]), plane = divided(row, win.by[1]);
    const int n = IMAGE_RANK == 5 ? divided(plane, win.by[2]) : plane;
    const struct pixel at = { win.first[0] + (number - row * win.count[0]) * win.step[0],
                              win.first[1] + (row - plane * win.count[1]) * win.step[1],
                              IMAGE_RANK == 5 ? win.first[2] + (plane - n * win.count[2]) * win.step[2] : 0,
                              n };

    return at;
}

/* Describes a tensor whose dimension 0 is contiguous, in the boxes and steps of m; room: 128 bytes, at a
 * multiple of 128; bytes: of an element. */
DEVICE void image_map(GLOBAL unsigned INT64 *map, LOCAL UINT32 *room, int lane, struct tensor_map m,
                      int bytes, VIEW v, VIEW e)
{
    m.rank = IMAGE_RANK;
    m.extent[0] = (int)e.s3;
    m.extent[1] = (int)e.s6;
    m.extent[2] = (int)e.s5;
    m.extent[3] = IMAGE_RANK == 5 ? (int)e.s4 : (int)e.s2;
    m.extent[4] = (int)e.s2;
    m.stride[0] = (UINT64)v.s6 * bytes;
    m.stride[1] = (UINT64)v.s5 * bytes;
    m.stride[2] = (UINT64)(IMAGE_RANK == 5 ? v.s4 : v.s2) * bytes;
    m.stride[3] = (UINT64)v.s2 * bytes;
    map_keep(map, room, lane, m);
}

/* The map of a source, for copies of so many pixels. */
DEVICE void im2col_map(GLOBAL unsigned INT64 *map, LOCAL UINT32 *room, int lane, int type, int bytes,
                       GLOBAL const void *x, VIEW v, VIEW e, struct window win, int pixels)
{
    const int extent[3] = { (int)e.s6, (int)e.s5, (int)e.s4 };
    struct tensor_map m;

    m.address = (UINT64)x;
    m.type = type;
    m.pixels = pixels;
    m.box[0] = 128 / bytes;
    m.step[0] = m.step[IMAGE_RANK - 1] = 1;
    UNROLL for (int i = 0; i < IMAGE_RANK - 2; i++) {
        m.step[1 + i] = win.step[i];
        m.lower[i] = win.first[i];
        m.upper[i] = (win.count[i] - 1) * win.step[i] + 1 + win.first[i] - extent[i];
    }
    image_map(map, room, lane, m, bytes, v, e);
}

/* The map of a source or a filter, for boxes of so many elements along a dimension: 0 is that of channels, 1
 * is w (s), and so on. */
DEVICE void box_map(GLOBAL unsigned INT64 *map, LOCAL UINT32 *room, int lane, int type, int bytes,
                    GLOBAL const void *x, VIEW v, VIEW e, const int dimension, int box)
{
    struct tensor_map m;

    m.address = (UINT64)x;
    m.type = type;
    m.pixels = 0;
    UNROLL for (int i = 0; i < IMAGE_RANK; i++) {
        m.box[i] = i == dimension ? box : i == 0 ? 128 / bytes : 1;
        m.step[i] = 1;
    }
    image_map(map, room, lane, m, bytes, v, e);
}

/* The map of a filter, K x T x R x S x C with C contiguous, for copies of so many filters. */
DEVICE void filter_map(GLOBAL unsigned INT64 *map, LOCAL UINT32 *room, int lane, int type, int bytes,
                       GLOBAL const void *w, VIEW v, VIEW e, int filters)
{
    box_map(map, room, lane, type, bytes, w, v, e, IMAGE_RANK - 1, filters);
}

/* Loads pixels, from `at` on, for the tap at these offsets: 128 bytes of channels, from c on. */
DEVICE void im2col_load(UINT32 to, GLOBAL const unsigned INT64 *map, int c, struct pixel at, int s, int r,
                        int t, UINT32 full)
{
    if (IMAGE_RANK == 5)
        copy_im2col_5d(to, map, c, at.w, at.h, at.d, at.n, s, r, t, full);
    else
        copy_im2col_4d(to, map, c, at.w, at.h, at.n, s, r, full);
}

/* Loads filters, from k on, of one tap: 128 bytes of channels, from c on. */
DEVICE void filter_load(UINT32 to, GLOBAL const unsigned INT64 *map, int c, int s, int r, int t, int k,
                        UINT32 full)
{
    if (IMAGE_RANK == 5)
        copy_box_5d(to, map, c, s, r, t, k, full);
    else
        copy_box_4d(to, map, c, s, r, k, full);
}
