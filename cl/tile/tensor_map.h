/* cl/tile/tensor_map.h - describes tensors of rank 2 to 5 to TMA
 *
 * Dimension 0 is contiguous.  A tiled map brings boxes: in each dimension, `box` elements are looked at and
 * every `step`-th is brought.  An im2col map brings pixels of an NHWC image, as convolution needs them.
 * Elements outside the tensor are zeros.  Rows of a box have up to 128 bytes and are swizzled, but with
 * MAP_FLAT.
 *
 * All work-groups share a map, since all of them write the same bytes to it.  Where an earlier launch left
 * the same, map_keep() keeps it: to release a map takes as long as to load the first slice.  A launch that
 * the host tells so does not even look (vn__arg_maps() of lib/core.h).
 *
 * Takes: atoms/nvidia/tma.h, atoms/nvidia/warp.h.
 * Gives: MAP_WORDS, MAP_TYPE_*, MAP_FLAT, struct tensor_map, map_keep().
 */
#define MAP_WORDS     (MAP_BYTES / 8)           /* of 64 bits */
#define MAP_TYPE_F16  6
#define MAP_TYPE_F32  7
#define MAP_TYPE_BF16 10
#define MAP_TYPE_TF32 (MAP_TYPE_F32 | 1 << 9)   /* in a map's words, f32 with a bit that says round */
#define MAP_FLAT      (3 << 6)                  /* added to a type: rows are not swizzled */

/* stride[i], in bytes, is that of dimension i + 1.  im2col: box[0] is the channels of a pixel, and pixels
 * > 0 how many a copy brings; lower, upper: the corners, in pixels from the first (last) one, of W, H and D,
 * of which rank 3 has W alone, and rank 4 the first two.  A corner has 16, 8 or 5 bits, with its sign. */
struct tensor_map {
    UINT64 address, stride[4];
    int type, rank, extent[5], box[5], step[5], pixels, lower[3], upper[3];
};

/* Word i, 0 to 15, of the 32 of a map: those after it are 0.  Fields that the rank does not have are not
 * read. */
DEVICE UINT32 map_word(struct tensor_map m, int i)
{
    const int im2col = m.pixels > 0;
    UINT32 w = 0;

    if (i == 0)
        w = (UINT32)m.address;
    if (i == 1)
        w = (UINT32)(m.address >> 32);
    if (i == 2)                                 /* version 1, swizzled in 128 bytes; MAP_FLAT undoes that */
        w = (UINT32)(im2col | 1 << 1 | (m.rank - 1) << 4 | m.type << 7) ^ 3 << 13;
    UNROLL for (int j = 0; j < 4; j++) {
        if (j + 1 < m.rank && i == 3 + j)
            w = (UINT32)(m.stride[j] >> 4);
        if (j + 1 < m.rank && i == 7)
            w |= (UINT32)(m.stride[j] >> 36 & 15) << 4 * j;
    }
    UNROLL for (int j = 0; j < 5; j++) {
        if (j < m.rank && i == 8 + j)
            w = (UINT32)(m.extent[j] - 1);
        if (j < m.rank && i == 13)
            w |= (UINT32)(m.step[j] - 1) << 3 * j;
        if (j > 0 && j < m.rank && i == 14 && !im2col)
            w |= (UINT32)(m.box[j] - 1) << 8 * (j - 1);
    }
    if (i == 13)
        w |= (UINT32)(m.box[0] - 1) << 24;
    if (i == 14 && im2col) {
        const int bits = m.rank == 3 ? 16 : m.rank == 4 ? 8 : 5;

        UNROLL for (int j = 0; j < 3; j++)
            if (j < m.rank - 2)
                w |= (UINT32)(m.lower[j] & ((1 << bits) - 1)) << bits * j |
                     (UINT32)(m.upper[j] & ((1 << bits) - 1)) << (16 + bits * j);
    }
    if (i == 15 && im2col)
        w = (UINT32)(m.pixels - 1);
    return w;
}

/* By a warp: makes m at `map`, in device memory, unless it is there; room: 128 bytes, at a multiple of 128.
 * Who copies by it acquires it by map_acquire(). */
DEVICE void map_keep(GLOBAL unsigned INT64 *map, LOCAL UINT32 *room, int lane, struct tensor_map m)
{
    const UINT32 kept = ((GLOBAL const UINT32 *)map)[lane], now = lane < 16 ? map_word(m, lane) : 0;

    if (lane == 0)
        map_cache(map);
    if (any_in_warp(now != kept)) {
        room[lane] = now;
        warp_meet();
        map_release(map, LOCAL_ADDRESS(room));
    }
}
