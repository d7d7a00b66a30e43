/* cl/conv/unpack.cl - copies rows of contiguous channels to a tensor of any strides
 *
 * The way back of cl/conv/repack.cl.
 *
 *     eFrom      the rows: s2 images, s3 channels of a pixel, a multiple of 16 bytes, s4 to s6 pixels; s0
 *                where they begin
 *     vTo eTo    the tensor, as in cl/conv/conv.h
 *
 * Takes: cl/conv/repack.cl.
 */
/* A tile in local memory to the tensor. */
DEVICE void unpack_store(GLOBAL T_BITS *to, LOCAL const T_BITS *s, int c0, int p0, int all,
                         VIEW vTo, VIEW eTo, VIEW eFrom, const int along_c)
{
    const int pitch = REPACK_TILE / REPACK_WIDE + 1;
    INT64 at = repack_pixel(p0 + REPACK_P(0, REPACK_WIDE, along_c), all, vTo, eTo, eFrom);

    UNROLL for (int i = 0; i < REPACK_EACH; i++) {
        const int c = REPACK_C(i, REPACK_WIDE, along_c), p = REPACK_P(i, REPACK_WIDE, along_c);

        if (i > 0 && along_c)
            at = repack_pixel(p0 + p, all, vTo, eTo, eFrom);
        if (at >= 0 && c0 + c < (int)eTo.s3)
            to[at + (c0 + c) * (INT64)vTo.s3] = s[c * pitch + p];
    }
}

KERNEL(REPACK_ITEMS) void
unpack(GLOBAL const T *RESTRICT gFrom, VIEW eFrom, GLOBAL T *RESTRICT gTo, VIEW vTo, VIEW eTo)
{
    LOCAL_ARRAY(T_BITS, s, REPACK_TILE + REPACK_WIDE);
    const int pixels = REPACK_TILE / REPACK_WIDE, pitch = pixels + 1, vectors = REPACK_WIDE / REPACK_VECTOR;
    const int channels = (int)eFrom.s3, all = (int)(eFrom.s4 * eFrom.s5 * eFrom.s6);
    const int tiles_c = ((int)eTo.s3 + REPACK_WIDE - 1) / REPACK_WIDE, tiles_p = (all + pixels - 1) / pixels;
    const int tile = GROUP_ID(0) / tiles_c, c0 = (GROUP_ID(0) - tile * tiles_c) * REPACK_WIDE;
    const int image = tile / tiles_p, p0 = (tile - image * tiles_p) * pixels;
    GLOBAL const uint4 *const from =
        (GLOBAL const uint4 *)gFrom + (eFrom.s0 + (INT64)image * all * channels) / REPACK_VECTOR;
    GLOBAL T_BITS *const to = (GLOBAL T_BITS *)gTo + (INDEX)vTo.s0 + image * (INDEX)vTo.s2;

    UNROLL for (int i = 0; i < REPACK_EACH / REPACK_VECTOR; i++) {
        const int at = i * REPACK_ITEMS + LOCAL_ID(), c = at % vectors * REPACK_VECTOR, p = at / vectors;
        LOCAL T_BITS *const v = s + c * pitch + p;

        if (p0 + p < all && c0 + c < channels) {
            const uint4 u = from[((INT64)(p0 + p) * channels + c0 + c) / REPACK_VECTOR];

            /* What is behind the channels was never written. */
#if T_BYTES == 2
            const UINT16 e[8] = { (UINT16)u.x, (UINT16)(u.x >> 16), (UINT16)u.y, (UINT16)(u.y >> 16),
                                  (UINT16)u.z, (UINT16)(u.z >> 16), (UINT16)u.w, (UINT16)(u.w >> 16) };
#else
            const UINT32 e[4] = { u.x, u.y, u.z, u.w };
#endif
            UNROLL for (int j = 0; j < REPACK_VECTOR; j++)
                if (c0 + c + j < (int)eTo.s3)
                    v[j * pitch] = e[j];
        }
    }
    BARRIER();
    if (vTo.s3 < vTo.s6)
        unpack_store(to, s, c0, p0, all, vTo, eTo, eFrom, 1);
    else
        unpack_store(to, s, c0, p0, all, vTo, eTo, eFrom, 0);
}
