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
#if T_BYTES == 2
#define REPACK_BITS   UINT16
#else
#define REPACK_BITS   UINT32
#endif

KERNEL(256) void
repack(GLOBAL const T *RESTRICT gFrom, VIEW vFrom, VIEW eFrom, GLOBAL T *RESTRICT gTo, VIEW eTo)
{
    LOCAL_ARRAY(REPACK_BITS, s, REPACK_TILE + REPACK_WIDE);
    GLOBAL const REPACK_BITS *const from = (GLOBAL const REPACK_BITS *)gFrom;
    GLOBAL uint4 *const to = (GLOBAL uint4 *)gTo + eTo.s0 / REPACK_VECTOR;
    const int channels = (int)eTo.s3, wide = channels > REPACK_VECTOR ? REPACK_WIDE : REPACK_VECTOR;
    const int pixels = REPACK_TILE / wide, pitch = pixels + 1, all = (int)(eTo.s4 * eTo.s5 * eTo.s6);
    const int tiles_c = (channels + wide - 1) / wide, tiles_p = (all + pixels - 1) / pixels;
    const int tile = GROUP_ID(0) / tiles_c, c0 = (GROUP_ID(0) - tile * tiles_c) * wide;
    const int image = tile / tiles_p, p0 = (tile - image * tiles_p) * pixels;
    const int along_c = vFrom.s3 < vFrom.s6;    /* adjacent work-items read adjacent elements */
    const int vectors = wide / REPACK_VECTOR;
    REPACK_BITS x[REPACK_TILE / 256];

    UNROLL for (int i = 0; i < REPACK_TILE / 256; i++) {
        const int at = i * 256 + LOCAL_ID(), c = along_c ? at % wide : at / pixels;
        const int p = along_c ? at / wide : at % pixels, number = p0 + p < all ? p0 + p : all - 1;
        const int row = number / (int)eTo.s6, d = quotient(row, (int)eTo.s5), h = row - d * (int)eTo.s5;
        const int w = number - row * (int)eTo.s6 + (int)eTo.s1, channel = c0 + c;
        const int is = channel < (int)eFrom.s3 && w >= 0 && w < (int)eFrom.s6;
        const INDEX from_at = (INDEX)vFrom.s0 + image * (INDEX)vFrom.s2 + d * (INDEX)vFrom.s4 +
                              h * (INDEX)vFrom.s5 + (is ? channel : 0) * (INDEX)vFrom.s3 +
                              (is ? w : 0) * (INDEX)vFrom.s6;
        const REPACK_BITS u = from[from_at];    /* no branch: all loads are in flight together */

        x[i] = is ? u : 0;
    }
    UNROLL for (int i = 0; i < REPACK_TILE / 256; i++) {
        const int at = i * 256 + LOCAL_ID(), c = along_c ? at % wide : at / pixels;

        s[c * pitch + (along_c ? at / wide : at % pixels)] = x[i];
    }
    BARRIER();
    for (int at = LOCAL_ID(); at < REPACK_TILE / REPACK_VECTOR; at += 256) {
        const int c = at % vectors * REPACK_VECTOR, p = at / vectors;
        LOCAL const REPACK_BITS *const v = s + c * pitch + p;
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
            to[(((INT64)image * all + p0 + p) * channels + c0 + c) / REPACK_VECTOR] = u;
    }
}
