/* cl/conv/output.h - the output of a convolution as a matrix for cl/tile/store.h
 *
 * SOURCE_RANK is 3 where pixels of the source are contiguous (PIXELS_MAJOR), else IMAGE_RANK.
 *
 * Takes: ACROSS, 0 or 1; SOURCE_RANK; conv.h, tile/epilogue.h.
 * Gives: PIXELS_MAJOR, CONV_TILE_OUTPUT(), conv_rows().
 */
#if SOURCE_RANK == 3
#define PIXELS_MAJOR 1
#else
#define PIXELS_MAJOR 0
#endif

/* The output as a matrix of pixels and channels, for cl/tile/store.h.  ACROSS: pixels have no single stride,
 * as in NCHW, and a row is the offset of its pixel. */
#if RESIDUAL
#define CONV_TILE_RESIDUAL beta, gR + vR.s0, ACROSS ? 1 : (INDEX)vR.s6, (INDEX)vR.s3
#else
#define CONV_TILE_RESIDUAL ZERO, 0, 0, 0
#endif
#if BIAS
#define CONV_TILE_BIAS     gBias + vBias.s0, ACROSS ? 1 : (INDEX)vBias.s6, (INDEX)vBias.s3
#else
#define CONV_TILE_BIAS     0, 0, 0
#endif
#define CONV_TILE_OUTPUT(rows, channels)                                                            \
    { rows, channels, alpha, gC + vC.s0, ACROSS ? 1 : (INDEX)vC.s6, (INDEX)vC.s3, 0, 0, 0,          \
      CONV_TILE_RESIDUAL, CONV_TILE_BIAS }

/* The number of rows, or past the last offset. */
DEVICE int conv_rows(VIEW eOut, VIEW vC)
{
    const INDEX last = (eOut.s2 - 1) * (INDEX)vC.s2 + (eOut.s4 - 1) * (INDEX)vC.s4 +
                       (eOut.s5 - 1) * (INDEX)vC.s5 + (eOut.s6 - 1) * (INDEX)vC.s6;

    return ACROSS ? (int)last + 1 : (int)(eOut.s2 * eOut.s4 * eOut.s5 * eOut.s6);
}
