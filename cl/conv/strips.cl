/* cl/conv/strips.cl - depthwise convolution and its gradient to the source, by strips of pixels, for GPUs
 *
 * Each channel has a filter of its own, TAPS x TAPS, which a work-item keeps in registers.  It goes down a
 * strip of THR_H rows of the output, a row of the source at a time, whose elements it adds to all rows of the
 * strip that they contribute to:
 *
 *     forward, STRIDE 1:              backward data, STRIDE 2: a strip has two columns, and begins where tap
 *      x x x    -> row 0              0 of some pixel of dy contributes: no tap depends on a remainder
 *      x x x    -> rows 0, 1
 *      x x x    -> rows 0, 1, 2
 *      x x x    -> rows 1, 2, 3 ...
 *
 * With CHANNELS_LAST an item has VEC adjacent channels, 16-byte aligned, and adjacent items have adjacent
 * channels; else it has one channel, and adjacent items have adjacent columns.
 *
 *     vIn eIn        the source; eIn s3 the channels
 *     eOut           the output; s0 strips down, s1 columns of strips
 *     vW             the filter: s3 from channel to channel
 *     vPad           s5, s6
 *
 * Parameters, from conv.tune: THR_H, VEC, ITEMS.
 */
#define STRIP_COLS (DIRECTION ? STRIDE : 1)
#define STRIP_LOW  (DIRECTION ? -((TAPS - 1) / STRIDE) : 0)     /* the first row of the source */
#define STRIP_HIGH (DIRECTION ? (THR_H - 1) / STRIDE : (THR_H - 1) * STRIDE + TAPS - 1)
#define STRIP_WIDE (DIRECTION ? 1 - STRIP_LOW : TAPS)           /* columns of it */
#if CHANNELS_LAST
#define STRIP_VEC     VEC
#define STRIP_V       VECTOR(R, VEC)
#define STRIP_LOAD(p) LOAD_ALIGNED(VEC, p)
#else
#define STRIP_VEC     1
#define STRIP_V       R
#define STRIP_LOAD(p) LOAD(p, 0)
#endif

KERNEL(ITEMS) void
conv_strips(GLOBAL const T *RESTRICT gIn, VIEW vIn, VIEW eIn, GLOBAL const T *RESTRICT gW, VIEW vW, VIEW eOut,
            VIEW vPad, R alpha, CONV_PARAMS)
{
    const INDEX channels = (INDEX)eOut.s3 / STRIP_VEC, strips = (INDEX)eOut.s0, cols = (INDEX)eOut.s1;
    const struct output output = CONV_OUTPUT;
    INDEX image = GROUP_ID(0) * (INDEX)ITEMS + LOCAL_ID();

    if (image >= (INDEX)eOut.s2 * channels * strips * cols)
        return;

    const INDEX first = divmod(&image, CHANNELS_LAST ? channels : cols);
    const INDEX second = divmod(&image, CHANNELS_LAST ? cols : strips);
    const INDEX third = divmod(&image, CHANNELS_LAST ? strips : channels);
    const INDEX c = (CHANNELS_LAST ? first : third) * STRIP_VEC, col = CHANNELS_LAST ? second : first;
    const INDEX strip = CHANNELS_LAST ? third : second;
    /* Of the strip: its first row and column, in the output and in the source. */
    const INDEX h0 = strip * THR_H - (DIRECTION ? (INDEX)vPad.s5 : 0);
    const INDEX w0 = col * STRIP_COLS - (DIRECTION ? (INDEX)vPad.s6 : 0);
    const INDEX y0 = DIRECTION ? strip * (THR_H / STRIDE) : strip * (THR_H * STRIDE) - (INDEX)vPad.s5;
    const INDEX x0 = DIRECTION ? col + STRIP_LOW : col * STRIDE - (INDEX)vPad.s6;
    GLOBAL const T *const in = gIn + (INDEX)vIn.s0 + image * (INDEX)vIn.s2 + c * (INDEX)vIn.s3;
    STRIP_V sum[THR_H][STRIP_COLS], w[TAPS][TAPS];

    UNROLL for (int r = 0; r < TAPS; r++)
        UNROLL for (int s = 0; s < TAPS; s++) {
            GLOBAL const T *const from =
                gW + (INDEX)vW.s0 + c * (INDEX)vW.s3 + r * (INDEX)vW.s5 + s * (INDEX)vW.s6;
#if CHANNELS_LAST
            R element[VEC];

            UNROLL for (int i = 0; i < VEC; i++)
                element[i] = LOAD(from, i * (INDEX)vW.s3);
            w[r][s] = VLOAD(VEC, element);
#else
            w[r][s] = LOAD(from, 0);
#endif
        }
    UNROLL for (int i = 0; i < THR_H; i++)
        UNROLL for (int j = 0; j < STRIP_COLS; j++)
            sum[i][j] = (STRIP_V)(ZERO);
    UNROLL for (int y = STRIP_LOW; y <= STRIP_HIGH; y++) {
        const INDEX at_y = y0 + y;
        const int row_there = at_y >= 0 && at_y < (INDEX)eIn.s5;
        STRIP_V v[STRIP_WIDE];

        UNROLL for (int x = 0; x < STRIP_WIDE; x++) {
            const INDEX at_x = x0 + x;
            const int there = row_there && at_x >= 0 && at_x < (INDEX)eIn.s6;
            const STRIP_V loaded = STRIP_LOAD(in + (there ? at_y * (INDEX)vIn.s5 + at_x * (INDEX)vIn.s6 : 0));

            v[x] = there ? loaded : (STRIP_V)(ZERO);
        }
        UNROLL for (int i = 0; i < THR_H; i++)
            UNROLL for (int j = 0; j < STRIP_COLS; j++)
                UNROLL for (int x = 0; x < STRIP_WIDE; x++) {
                    const int r = DIRECTION ? i - STRIDE * y : y - STRIDE * i;
                    const int s = DIRECTION ? j - STRIDE * (x + STRIP_LOW) : x;

                    if (r >= 0 && r < TAPS && s >= 0 && s < TAPS)
                        sum[i][j] = FMA(w[r < 0 || r >= TAPS ? 0 : r][s < 0 || s >= TAPS ? 0 : s], v[x],
                                        sum[i][j]);
                }
    }
    UNROLL for (int i = 0; i < THR_H; i++)
        UNROLL for (int j = 0; j < STRIP_COLS; j++) {
            const INDEX h = h0 + i, x = w0 + j;
            const INDEX at = OFFSET(vC, 0, image, c, 0, h, x), at_r = OFFSET(vR, 0, image, c, 0, h, x);
            const INDEX at_bias = OFFSET(vBias, 0, image, c, 0, h, x);

            if (h < 0 || h >= (INDEX)eOut.s5 || x < 0 || x >= (INDEX)eOut.s6)
                continue;
#if CHANNELS_LAST
            R all[VEC];

            VSTORE(VEC, all, sum[i][j]);
            UNROLL for (int k = 0; k < VEC; k++)
                all[k] = epilogue_at(&output, at_r + k * (INDEX)vR.s3, at_bias + k * (INDEX)vBias.s3,
                                     alpha * all[k]);
            OF(STORE_ALIGNED, TYPE_C)(VEC, gC + at, VLOAD(VEC, all));
#else
            STORE_C(gC, at, epilogue_at(&output, at_r, at_bias, alpha * sum[i][j]));
#endif
        }
}
