/* cl/conv/repack.cl - copies a tensor of images to rows of contiguous channels, as TMA reads them
 *
 * The strides of the source may be any; of the copy, channels are contiguous, then w, h, d, images.  What the
 * source does not have, channels or pixels, becomes zeros.  A work-group copies CHANNELS x PIXELS elements by
 * way of local memory, with CHANNELS of 32 or, where there are few, of a 16-byte vector.
 *
 *     vFrom eFrom   the source, as in cl/conv/conv.h
 *     eTo           s2 images, s3 channels, a multiple of 16 bytes, s4 to s6 pixels; s0 where it begins, s1
 *                   the w of the source that its first column is
 */
#define REPACK_VECTOR (16 / T_BYTES)
#define REPACK_TILE   2048                      /* elements */
#define REPACK_WIDE   32                        /* channels */
#define REPACK_ITEMS  256
#define REPACK_EACH   (REPACK_TILE / REPACK_ITEMS)              /* elements of a work-item */

/* Where element i of a work-item is in a tile: adjacent ones have adjacent channels, or adjacent pixels; and
 * if the latter are as many as work-items at most, all elements of an item are of one pixel. */
#define REPACK_C(i, wide, along_c) \
    ((along_c) ? ((i) * REPACK_ITEMS + LOCAL_ID()) % (wide) \
               : ((i) * REPACK_ITEMS + LOCAL_ID()) / (REPACK_TILE / (wide)))
#define REPACK_P(i, wide, along_c) \
    ((along_c) ? ((i) * REPACK_ITEMS + LOCAL_ID()) / (wide) \
               : ((i) * REPACK_ITEMS + LOCAL_ID()) % (REPACK_TILE / (wide)))

/* The offset of a pixel of the copy in the source, but for its channel; -1 where the source has none. */
DEVICE INT64 repack_pixel(int number, int all, VIEW vFrom, VIEW eFrom, VIEW eTo)
{
    const int row = quotient(number, (int)eTo.s6), d = quotient(row, (int)eTo.s5), h = row - d * (int)eTo.s5;
    const int w = number - row * (int)eTo.s6 + (int)eTo.s1;

    return number < all && w >= 0 && w < (int)eFrom.s6
         ? (INT64)(d * (INDEX)vFrom.s4 + h * (INDEX)vFrom.s5 + w * (INDEX)vFrom.s6) : -1;
}

/* A tile of the source to local memory; wide and along_c are constant. */
DEVICE void repack_load(LOCAL T_BITS *s, GLOBAL const T_BITS *from, int c0, int p0, int all,
                        VIEW vFrom, VIEW eFrom, VIEW eTo, const int wide, const int along_c)
{
    const int pitch = REPACK_TILE / wide + 1, one_pixel = !along_c && REPACK_TILE / wide <= REPACK_ITEMS;
    INT64 at = repack_pixel(p0 + REPACK_P(0, wide, along_c), all, vFrom, eFrom, eTo);
    T_BITS x[REPACK_EACH];

    UNROLL for (int i = 0; i < REPACK_EACH; i++) {
        const int c = c0 + REPACK_C(i, wide, along_c);

        if (i > 0 && !one_pixel)
            at = repack_pixel(p0 + REPACK_P(i, wide, along_c), all, vFrom, eFrom, eTo);

        const int is = at >= 0 && c < (int)eFrom.s3;
        const T_BITS u = from[is ? at + c * (INT64)vFrom.s3 : 0];  /* no branch: loads overlap */

        x[i] = is ? u : 0;
    }
    UNROLL for (int i = 0; i < REPACK_EACH; i++)
        s[REPACK_C(i, wide, along_c) * pitch + REPACK_P(i, wide, along_c)] = x[i];
}

/* ... and from there to the copy. */
DEVICE void repack_store(GLOBAL uint4 *to, LOCAL const T_BITS *s, int c0, int p0, int channels, int all,
                         const int wide)
{
    const int pitch = REPACK_TILE / wide + 1, vectors = wide / REPACK_VECTOR;

    UNROLL for (int i = 0; i < REPACK_EACH / REPACK_VECTOR; i++) {
        const int at = i * REPACK_ITEMS + LOCAL_ID(), c = at % vectors * REPACK_VECTOR, p = at / vectors;
        LOCAL const T_BITS *const v = s + c * pitch + p;
        uint4 u;

#if T_BYTES == 2
        u.x = v[0] | (UINT32)v[pitch] << 16;
        u.y = v[2 * pitch] | (UINT32)v[3 * pitch] << 16;
        u.z = v[4 * pitch] | (UINT32)v[5 * pitch] << 16;
        u.w = v[6 * pitch] | (UINT32)v[7 * pitch] << 16;
#else
        u.x = v[0], u.y = v[pitch], u.z = v[2 * pitch], u.w = v[3 * pitch];
#endif
        if (p0 + p < all && c0 + c < channels)
            to[((INT64)(p0 + p) * channels + c0 + c) / REPACK_VECTOR] = u;
    }
}

#if T_BYTES == 2
/* Where contiguous pixels can be loaded `vector` at a time, 8 or 4, a tile's rows of 64 pixels lie in local
 * memory without gaps, their 16-byte vectors exchanged so that channels 8 apart are in other banks. */
#define REPACK_PIXELS    (REPACK_TILE / REPACK_WIDE)
#define REPACK_AT(c, p)  ((c) * REPACK_PIXELS + (((p) / 8 ^ (c) / 8 % 4) * 8 + (p) % 8))

DEVICE int repack_pixels_vector(VIEW vFrom, VIEW eFrom, VIEW eTo, GLOBAL const T_BITS *from)
{
    const INDEX all = (INDEX)(eFrom.s4 * eFrom.s5 * eFrom.s6);
    const int follow = vFrom.s6 == 1 && (vFrom.s5 == eFrom.s6 || eFrom.s5 == 1) &&
                       (vFrom.s4 == eFrom.s6 * eFrom.s5 || eFrom.s4 == 1) && eTo.s1 == 0 &&
                       eTo.s6 == eFrom.s6;
    const UINT64 bits = (UINT64)from | (UINT64)(vFrom.s2 | vFrom.s3 | all) * 2;

    return !follow ? 1 : bits % 16 == 0 ? 8 : bits % 8 == 0 ? 4 : 1;
}

DEVICE void repack_load_vectors(LOCAL T_BITS *s, GLOBAL const T_BITS *from, int c0, int p0, int all,
                                INDEX step, int channels, const int vector)
{
    UNROLL for (int i = 0; i < REPACK_VECTOR / vector; i++) {
        const int at = i * REPACK_ITEMS + LOCAL_ID(), each = REPACK_PIXELS / vector;
        const int c = at / each, p = at % each * vector, is = p0 + p < all && c0 + c < channels;
        GLOBAL const T_BITS *const v = from + (is ? (c0 + c) * (INT64)step + p0 + p : 0);

        if (vector == 8) {
            uint4 u;

            u.x = u.y = u.z = u.w = 0;
            if (is)
                u = *(GLOBAL const uint4 *)v;
            *(LOCAL uint4 *)(s + REPACK_AT(c, p)) = u;
        } else {
            *(LOCAL UINT64 *)(s + REPACK_AT(c, p)) = is ? *(GLOBAL const UINT64 *)v : 0;
        }
    }
}

DEVICE void repack_store_vectors(GLOBAL uint4 *to, LOCAL const T_BITS *s, int c0, int p0, int channels,
                                 int all)
{
    const int vectors = REPACK_WIDE / REPACK_VECTOR, at = LOCAL_ID();
    const int c = at % vectors * REPACK_VECTOR, p = at / vectors;
    LOCAL const T_BITS *const v = s + REPACK_AT(c, p);
    uint4 u;

    u.x = v[0] | (UINT32)v[REPACK_PIXELS] << 16;
    u.y = v[2 * REPACK_PIXELS] | (UINT32)v[3 * REPACK_PIXELS] << 16;
    u.z = v[4 * REPACK_PIXELS] | (UINT32)v[5 * REPACK_PIXELS] << 16;
    u.w = v[6 * REPACK_PIXELS] | (UINT32)v[7 * REPACK_PIXELS] << 16;
    if (p0 + p < all && c0 + c < channels)
        to[((INT64)(p0 + p) * channels + c0 + c) / REPACK_VECTOR] = u;
}
#else
#define repack_pixels_vector(vFrom, eFrom, eTo, from)                   1
#define repack_load_vectors(s, from, c0, p0, all, step, channels, vector)
#define repack_store_vectors(to, s, c0, p0, channels, all)
#endif

KERNEL(REPACK_ITEMS) void
repack(GLOBAL const T *RESTRICT gFrom, VIEW vFrom, VIEW eFrom, GLOBAL T *RESTRICT gTo, VIEW eTo)
{
    LOCAL_ARRAY(uint4, room, (REPACK_TILE + REPACK_WIDE) * T_BYTES / 16);
    LOCAL T_BITS *const s = (LOCAL T_BITS *)room;
    const int channels = (int)eTo.s3, wide = channels > REPACK_VECTOR ? REPACK_WIDE : REPACK_VECTOR;
    const int pixels = REPACK_TILE / wide, all = (int)(eTo.s4 * eTo.s5 * eTo.s6);
    const int tiles_c = (channels + wide - 1) / wide, tiles_p = (all + pixels - 1) / pixels;
    const int tile = GROUP_ID(0) / tiles_c, c0 = (GROUP_ID(0) - tile * tiles_c) * wide;
    const int image = tile / tiles_p, p0 = (tile - image * tiles_p) * pixels;
    GLOBAL const T_BITS *const from =
        (GLOBAL const T_BITS *)gFrom + (INDEX)vFrom.s0 + image * (INDEX)vFrom.s2;
    GLOBAL uint4 *const to = (GLOBAL uint4 *)gTo + (eTo.s0 + (INT64)image * all * channels) / REPACK_VECTOR;

    const int vector = wide == REPACK_WIDE ? repack_pixels_vector(vFrom, eFrom, eTo, from) : 1;

    if (vector == 8) {
        repack_load_vectors(s, from, c0, p0, all, (INDEX)vFrom.s3, (int)eFrom.s3, 8);
    } else if (vector == 4) {
        repack_load_vectors(s, from, c0, p0, all, (INDEX)vFrom.s3, (int)eFrom.s3, 4);
    } else if (wide != REPACK_WIDE)
        repack_load(s, from, c0, p0, all, vFrom, eFrom, eTo, REPACK_VECTOR, 0);
    else if (vFrom.s3 < vFrom.s6)
        repack_load(s, from, c0, p0, all, vFrom, eFrom, eTo, REPACK_WIDE, 1);
    else
        repack_load(s, from, c0, p0, all, vFrom, eFrom, eTo, REPACK_WIDE, 0);
    BARRIER();
    if (vector > 1) {
        repack_store_vectors(to, s, c0, p0, channels, all);
    } else if (wide != REPACK_WIDE)
        repack_store(to, s, c0, p0, channels, all, REPACK_VECTOR);
    else
        repack_store(to, s, c0, p0, channels, all, REPACK_WIDE);
}
