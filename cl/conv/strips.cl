/* cl/conv/strips.cl - depthwise convolution and its gradient to the source, by strips of pixels, for GPUs
 *
 * Each channel has a filter of its own, TAPS x TAPS, which a work-item keeps in registers.  It goes down a
 * strip of THR_H rows of the output (cl/conv/strip.h), a row of the source at a time, whose elements it adds
 * to all rows of the strip that they contribute to.
 *
 * With CHANNELS_LAST an item has VEC adjacent channels of COLS columns, 16-byte aligned, and adjacent items
 * have adjacent channels, whose filters, adjacent in memory, they share through local memory; else it has one
 * channel, and adjacent items have adjacent columns.
 *
 *     vIn eIn        the source; eIn s3 the channels
 *     eOut           the output; s0 strips down, s1 columns of strips
 *     vW             the filter: s0 the start, s1 the elements of its buffer, s2 from there to tap 0, s3 from
 *                    channel to channel
 *     vPad           s5, s6; with CHANNELS_LAST s0 vectors of channels of a group, s1 groups for all channels
 *
 * Parameters, from conv.tune: THR_H, COLS, VEC, EXACT, ITEMS.
 */
#if CHANNELS_LAST
#define LANES 32                                /* vectors of channels of a work-group, at most */
#endif

KERNEL(ITEMS) void
conv_strips(GLOBAL const T *RESTRICT gIn, VIEW vIn, VIEW eIn, GLOBAL const T *RESTRICT gW, VIEW vW, VIEW eOut,
            VIEW vPad, R alpha, CONV_PARAMS)
{
    const INDEX channels = (INDEX)eOut.s3, strips = (INDEX)eOut.s0, cols = (INDEX)eOut.s1;
    const struct output output = CONV_OUTPUT;
#if CHANNELS_LAST
    LOCAL_ARRAY(UINT32, sW, (LANES * VEC * TAPS * TAPS * T_BYTES / VECTOR_BYTES + 2) * (VECTOR_BYTES / 4));

    const int lanes = (int)vPad.s0, ways = ITEMS / lanes, way = LOCAL_ID() / lanes;
    INDEX image = GROUP_ID(0);
    const INDEX c0 = divmod(&image, (INDEX)vPad.s1) * (lanes * VEC);
    const INDEX filter = (INDEX)vW.s0 + c0 * (TAPS * TAPS);
    const int lane_c = (LOCAL_ID() - way * lanes) * VEC;
    const INDEX c = c0 + lane_c;

    load_adjacent((LOCAL V4 *)sW, gW, filter, (int)imin(lanes * VEC, channels - c0) * (TAPS * TAPS),
                  (INT64)vW.s1);
    BARRIER();
    image = image * ways + way;
    if (way >= ways || c >= channels || image >= (INDEX)eOut.s2 * strips * cols)
        return;

    const INDEX col = divmod(&image, cols), strip = divmod(&image, strips);
    LOCAL const T *const taps = (LOCAL const T *)sW + (int)(filter - filter / PER_IN * PER_IN) +
                                lane_c * (TAPS * TAPS) + (int)vW.s2;
#else
    INDEX image = GROUP_ID(0) * (INDEX)ITEMS + LOCAL_ID();

    if (image >= (INDEX)eOut.s2 * channels * strips * cols)
        return;

    const INDEX col = divmod(&image, cols), strip = divmod(&image, strips), c = divmod(&image, channels);
    GLOBAL const T *const taps = gW + (INDEX)vW.s0 + (INDEX)vW.s2 + c * (INDEX)vW.s3;
#endif
    /* Of the strip: its first row and column, in the output and in the source. */
    const INDEX h0 = STRIP_TO(strip * THR_H, (INDEX)vPad.s5), w0 = STRIP_TO(col * STRIP_COLS, (INDEX)vPad.s6);
    const INDEX y0 = STRIP_FROM(strip * THR_H, (INDEX)vPad.s5);
    const INDEX x0 = STRIP_FROM(col * STRIP_COLS, (INDEX)vPad.s6) + STRIP_LOW;
    const INDEX in = (INDEX)vIn.s0 + image * (INDEX)vIn.s2 + c * (INDEX)vIn.s3;
    BYTE_OFFSET col_at[STRIP_WIDTH];
    int col_there[STRIP_WIDTH];
    STRIP_V sum[THR_H][STRIP_COLS], w[TAPS][TAPS];

    UNROLL for (int r = 0; r < TAPS; r++)
        UNROLL for (int s = 0; s < TAPS; s++) {
            const INDEX at = r * (INDEX)vW.s5 + s * (INDEX)vW.s6;
#if CHANNELS_LAST
            R element[VEC];

            UNROLL for (int i = 0; i < VEC; i++)
                element[i] = LOAD(taps + at, i * (TAPS * TAPS));
            w[r][s] = VLOAD(VEC, element);
#else
            w[r][s] = LOAD(taps, at);
#endif
        }
    UNROLL for (int i = 0; i < THR_H; i++)
        UNROLL for (int j = 0; j < STRIP_COLS; j++)
            sum[i][j] = (STRIP_V)(ZERO);
    strip_columns(col_at, col_there, in, x0, (INDEX)vIn.s6, (INDEX)eIn.s6);
    UNROLL for (int y = STRIP_LOW; y <= STRIP_HIGH; y++) {
        STRIP_V v[STRIP_WIDTH];

        strip_row(v, gIn, col_at, col_there, y, y0, (INDEX)vIn.s5, (INDEX)eIn.s5);
        STRIP_ADD(sum, w, v, y, STRIP_COLS)
        strip_store(&output, gC, sum, y, alpha, vC, vR, vBias, eOut, image, c, h0, w0);
    }
}
