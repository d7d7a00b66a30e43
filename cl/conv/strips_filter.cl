/* cl/conv/strips_filter.cl - the gradient of a depthwise filter, by strips of pixels with contiguous channels
 *
 * A work-group has LANES vectors of VEC channels, and a part of all strips of THR_H rows and COLS columns of
 * dy (cl/conv/strip.h), which its ITEMS / LANES rows of work-items divide among themselves.  Their sums of
 * all taps are added in order, and stored; conv_parts_sum adds those of all parts.
 *
 *     vIn eIn vDy eDy    x and dy; s2 images, s3 channels
 *     vPad               s5, s6
 *     vCut               s0 where the sums begin; s1 parts; s2 s3 strips of an image, down and across; s4
 *                        work-groups for all channels
 *
 * Parameters, from conv.tune: THR_H, COLS, VEC, LANES, EXACT, ITEMS.
 */
#define WAYS  (ITEMS / LANES)
#define ROW   (TAPS * VEC)                      /* sums of a work-item that are added at a time */

KERNEL(ITEMS) void
conv_strips_filter(GLOBAL const T *RESTRICT gIn, VIEW vIn, VIEW eIn, GLOBAL const T *RESTRICT gDy, VIEW vDy,
                   VIEW eDy, VIEW vPad, VIEW vCut, GLOBAL R *RESTRICT gSums)
{
    LOCAL_ARRAY(R, sSums, ROW * ITEMS);

    const INDEX channels = (INDEX)eDy.s3, down = (INDEX)vCut.s2, across = (INDEX)vCut.s3;
    const INDEX strips = (INDEX)eDy.s2 * down * across, parts = (INDEX)vCut.s1, blocks = (INDEX)vCut.s4;
    const int me = LOCAL_ID(), lane = me % LANES, way = me / LANES;
    INDEX part = GROUP_ID(0);
    const INDEX block = divmod(&part, blocks), c = (block * LANES + lane) * VEC;
    STRIP_V sum[TAPS][TAPS];

    UNROLL for (int r = 0; r < TAPS; r++)
        UNROLL for (int s = 0; s < TAPS; s++)
            sum[r][s] = (STRIP_V)(ZERO);
    for (INDEX unit = part * WAYS + way; unit < strips && c < channels; unit += parts * WAYS) {
        INDEX image = unit;
        const INDEX w0 = divmod(&image, across) * COLS, h0 = divmod(&image, down) * THR_H;
        const INDEX y0 = h0 * STRIDE - (INDEX)vPad.s5, x0 = w0 * STRIDE - (INDEX)vPad.s6;
        const INDEX dy_at = (INDEX)vDy.s0 + image * (INDEX)vDy.s2 + c * (INDEX)vDy.s3;
        BYTE_OFFSET col_at[STRIP_WIDTH];
        int col_there[STRIP_WIDTH];
        int rows[THR_H], columns[COLS];
        STRIP_V d[THR_H][COLS];

        strip_there(rows, THR_H, h0, (INDEX)eDy.s5);
        strip_there(columns, COLS, w0, (INDEX)eDy.s6);
        strip_columns(col_at, col_there, (INDEX)vIn.s0 + image * (INDEX)vIn.s2 + c * (INDEX)vIn.s3, x0,
                      (INDEX)vIn.s6, (INDEX)eIn.s6);
        UNROLL for (int y = 0; y <= STRIP_HIGH; y++) {
            STRIP_V v[STRIP_WIDTH];

            strip_row(v, gIn, col_at, col_there, y, y0, (INDEX)vIn.s5, (INDEX)eIn.s5);
            UNROLL for (int j = 0; j < COLS; j++)
                if (y % STRIDE == 0 && y / STRIDE < THR_H) {
                    const int i = y / STRIDE < THR_H ? y / STRIDE : 0;
                    const INDEX h = rows[i] ? h0 + i : h0, w = columns[j] ? w0 + j : w0;
                    const BYTE_OFFSET at = (BYTE_OFFSET)(dy_at + h * (INDEX)vDy.s5 + w * (INDEX)vDy.s6);

                    d[i][j] = STRIP_LOAD((GLOBAL const T *)((GLOBAL const char *)gDy + at * T_BYTES));
                }
            STRIP_ADD_TAPS(sum, d, rows, columns, v, y, COLS)
        }
    }
    UNROLL for (int r = 0; r < TAPS; r++) {
        BARRIER();
        UNROLL for (int s = 0; s < TAPS; s++) {
            R all[VEC];

            VSTORE(VEC, all, sum[r][s]);
            UNROLL for (int i = 0; i < VEC; i++)
                sSums[(s * VEC + i) * ITEMS + me] = all[i];
        }
        BARRIER();
        for (int e = me; e < ROW * LANES; e += ITEMS) {
            const int at = e / LANES, from = e % LANES;
            const INDEX k = (block * LANES + from) * VEC + at % VEC;
            R all = sSums[at * ITEMS + from];

            for (int i = 1; i < WAYS; i++)
                all = all + sSums[at * ITEMS + i * LANES + from];
            if (k < channels)
                gSums[(INDEX)vCut.s0 + ((part * channels + k) * TAPS + r) * TAPS + at / VEC] = all;
        }
    }
}
