/* cl/conv/strip_store.h - finished rows of a strip, from registers to the output
 *
 * Takes  EXACT; STRIP_COLS STRIP_VEC STRIP_V, adjacent channels of a pixel, 16-byte aligned where there are
 *        more than one, and STRIP_STORE() for these; cl/conv/strip.h, conv.h
 * Gives  strip_store()
 */
/* One element, or adjacent ones.  at, at_r, at_bias: where in the output, the residual and the bias. */
DEVICE void strip_store_at(const struct output *output, GLOBAL TC *gC, STRIP_V sum, R alpha, INDEX at,
                           INDEX at_r, INDEX step_r, INDEX at_bias, INDEX step_bias)
{
    GLOBAL TC *const to = (GLOBAL TC *)((GLOBAL char *)gC + (BYTE_OFFSET)at * C_BYTES);
#if STRIP_VEC > 1
    R all[STRIP_VEC];

    VSTORE(STRIP_VEC, all, sum);
    UNROLL for (int k = 0; k < STRIP_VEC; k++)
        all[k] = epilogue_at(output, at_r + k * step_r, at_bias + k * step_bias, alpha * all[k]);
    STRIP_STORE(to, all);
#else
    STORE_C(to, 0, epilogue_at(output, at_r, at_bias, alpha * sum));
#endif
}

/* The rows that row y of the source is the last to contribute to; h0, w0: the strip's first pixel.  Of most
 * strips all columns are there and alpha is 1, which is then not asked for each. */
DEVICE void strip_store(const struct output *output, GLOBAL TC *gC, STRIP_V (*sum)[STRIP_COLS], const int y,
                        R alpha, VIEW v, VIEW residual, VIEW bias, VIEW e, INDEX image, INDEX c, INDEX h0,
                        INDEX w0)
{
    const int plain = !EXACT & (alpha == 1) & (DIRECTION == 0 | w0 >= 0) & (w0 + STRIP_COLS <= (INDEX)e.s6);

    UNROLL for (int q = 0; q < STRIP_DONE_COUNT; q++) {
        const int done = STRIP_DONE_FIRST(y) + q, i = STRIP_IS_DONE(done, y) ? done : 0;
        const INDEX h = h0 + i;

        if (!STRIP_IS_DONE(done, y) | (!EXACT & ((DIRECTION == 1 & h < 0) | (h >= (INDEX)e.s5))))
            continue;
        if (plain)
            UNROLL for (int j = 0; j < STRIP_COLS; j++)
                strip_store_at(output, gC, sum[i][j], 1, OFFSET(v, 0, image, c, 0, h, w0 + j),
                               OFFSET(residual, 0, image, c, 0, h, w0 + j), (INDEX)residual.s3,
                               OFFSET(bias, 0, image, c, 0, h, w0 + j), (INDEX)bias.s3);
        else
            UNROLL for (int j = 0; j < STRIP_COLS; j++)
                if (EXACT | ((DIRECTION == 0 | w0 + j >= 0) & (w0 + j < (INDEX)e.s6)))
                    strip_store_at(output, gC, sum[i][j], alpha, OFFSET(v, 0, image, c, 0, h, w0 + j),
                                   OFFSET(residual, 0, image, c, 0, h, w0 + j), (INDEX)residual.s3,
                                   OFFSET(bias, 0, image, c, 0, h, w0 + j), (INDEX)bias.s3);
    }
}
