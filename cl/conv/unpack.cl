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
#define UNPACK_PIXELS (REPACK_TILE / REPACK_WIDE)

KERNEL(256) void
unpack(GLOBAL const T *RESTRICT gFrom, VIEW eFrom, GLOBAL T *RESTRICT gTo, VIEW vTo, VIEW eTo)
{
    LOCAL_ARRAY(REPACK_BITS, s, REPACK_TILE + REPACK_WIDE);
    GLOBAL const uint4 *const from = (GLOBAL const uint4 *)gFrom + eFrom.s0 / REPACK_VECTOR;
    GLOBAL REPACK_BITS *const to = (GLOBAL REPACK_BITS *)gTo;
    const int pitch = UNPACK_PIXELS + 1, pixel = (int)eFrom.s3, all = (int)(eFrom.s4 * eFrom.s5 * eFrom.s6);
    const int tiles_c = ((int)eTo.s3 + REPACK_WIDE - 1) / REPACK_WIDE;
    const int tiles_p = (all + UNPACK_PIXELS - 1) / UNPACK_PIXELS, tile = GROUP_ID(0) / tiles_c;
    const int c0 = (GROUP_ID(0) - tile * tiles_c) * REPACK_WIDE, image = tile / tiles_p;
    const int p0 = (tile - image * tiles_p) * UNPACK_PIXELS, along_c = vTo.s3 < vTo.s6;

    UNROLL for (int i = 0; i < REPACK_TILE / REPACK_VECTOR / 256; i++) {
        const int at = i * 256 + LOCAL_ID(), vectors = REPACK_WIDE / REPACK_VECTOR;
        const int c = at % vectors * REPACK_VECTOR, p = at / vectors;
        LOCAL REPACK_BITS *const v = s + c * pitch + p;

        if (p0 + p < all && c0 + c < pixel) {
            const uint4 u = from[(((INT64)image * all + p0 + p) * pixel + c0 + c) / REPACK_VECTOR];

#if T_BYTES == 2
            v[0] = (UINT16)u.x, v[pitch] = (UINT16)(u.x >> 16);
            v[2 * pitch] = (UINT16)u.y, v[3 * pitch] = (UINT16)(u.y >> 16);
            v[4 * pitch] = (UINT16)u.z, v[5 * pitch] = (UINT16)(u.z >> 16);
            v[6 * pitch] = (UINT16)u.w, v[7 * pitch] = (UINT16)(u.w >> 16);
#else
            v[0] = u.x, v[pitch] = u.y, v[2 * pitch] = u.z, v[3 * pitch] = u.w;
#endif
        }
    }
    BARRIER();
    UNROLL for (int i = 0; i < REPACK_TILE / 256; i++) {
        const int at = i * 256 + LOCAL_ID(), c = along_c ? at % REPACK_WIDE : at / UNPACK_PIXELS;
        const int p = along_c ? at / REPACK_WIDE : at % UNPACK_PIXELS;
        const int row = (p0 + p) / (int)eFrom.s6, d = quotient(row, (int)eFrom.s5);

        if (p0 + p < all && c0 + c < (int)eTo.s3)
            to[(INDEX)vTo.s0 + image * (INDEX)vTo.s2 + (c0 + c) * (INDEX)vTo.s3 + d * (INDEX)vTo.s4 +
               (row - d * (int)eFrom.s5) * (INDEX)vTo.s5 +
               (p0 + p - row * (int)eFrom.s6) * (INDEX)vTo.s6] = s[c * pitch + p];
    }
}
