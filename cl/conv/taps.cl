/* cl/conv/taps.cl - backward data with few channels: the sum over taps, of products that are there
 *
 * For each tap of each channel there is an image of dy's size: the products of all pixels of dy with the
 * filter's elements of that tap and channel, summed over filters (lib/conv/taps.c).  A pixel of dx is the sum
 * of those that contribute to it: every image is shifted by its tap.  A work-item has one pixel, of all
 * channels; adjacent ones read adjacent elements.
 *
 * DIRECTION is 1.  vSums: s0 where the images begin, s2 from image to image of dy, s3 from channel to
 * channel, s4 to s6 from tap to tap; eSums the extents of dy.  The rest is as in cl/conv/conv.h.
 *
 * Parameters, from conv.tune: ITEMS.
 */
#define CHANNELS 4                              /* that are added at once, */
#define COLUMNS  4                              /* of so many taps of a row */

KERNEL(ITEMS) void
add_taps(CONV_PARAMS, VIEW eTaps, VIEW eOut, VIEW vStep, VIEW vPad, VIEW vMeet, R alpha,
         GLOBAL const R *RESTRICT gSums, VIEW vSums, VIEW eSums)
{
    const INDEX pixels = (INDEX)eOut.s2 * (INDEX)eOut.s4 * (INDEX)eOut.s5 * (INDEX)eOut.s6;
    const struct output output = CONV_OUTPUT;
    INDEX image = GROUP_ID(0) * (INDEX)ITEMS + LOCAL_ID();

    if (image >= pixels)
        return;

    const INDEX at_w = divmod(&image, (INDEX)eOut.s6), at_h = divmod(&image, (INDEX)eOut.s5);
    const INDEX at_d = divmod(&image, (INDEX)eOut.s4);
    INDEX d = at_d, h = at_h, w = at_w;
    const INDEX phase_d = divmod(&d, (INDEX)vStep.s4), phase_h = divmod(&h, (INDEX)vStep.s5);
    const INDEX phase_w = divmod(&w, (INDEX)vStep.s6), row = (INDEX)eSums.s6, plane = row * (INDEX)eSums.s5;
    struct taps t, r, s;

    FIND_TAPS(&t, &r, &s, phase_d, phase_h, phase_w);
    for (INDEX c0 = 0; c0 < (INDEX)eOut.s3; c0 += CHANNELS) {
        GLOBAL const R *const from = gSums + (INDEX)vSums.s0 + image * (INDEX)vSums.s2;
        R sum[CHANNELS];

        UNROLL for (int e = 0; e < CHANNELS; e++)
            sum[e] = ZERO;
        for (INDEX i = 0; i < t.count; i++)
        for (INDEX j = 0; j < r.count; j++) {
            const INDEX z = d + t.shift + i * t.delta, y = h + r.shift + j * r.delta;
            const INDEX at = (t.first + i * t.step) * (INDEX)vSums.s4 +
                             (r.first + j * r.step) * (INDEX)vSums.s5 + z * plane + y * row;
            const int there = z >= 0 && z < (INDEX)eSums.s4 && y >= 0 && y < (INDEX)eSums.s5;

            for (INDEX k = 0; k < s.count; k += COLUMNS) {
                R u[COLUMNS][CHANNELS];

                UNROLL for (int q = 0; q < COLUMNS; q++) {              /* all loads, before any is added */
                    const INDEX x = w + s.shift + (k + q) * s.delta;
                    const int is = there && k + q < s.count && x >= 0 && x < row;
                    const INDEX from_at = is ? at + (s.first + (k + q) * s.step) * (INDEX)vSums.s6 + x : 0;

                    UNROLL for (int e = 0; e < CHANNELS; e++) {
                        const int has = is && c0 + e < (INDEX)eOut.s3;
                        const R v = from[has ? from_at + (c0 + e) * (INDEX)vSums.s3 : 0];

                        u[q][e] = has ? v : ZERO;
                    }
                }
                UNROLL for (int q = 0; q < COLUMNS; q++)
                    UNROLL for (int e = 0; e < CHANNELS; e++)
                        sum[e] = sum[e] + u[q][e];
            }
        }
        UNROLL for (int e = 0; e < CHANNELS; e++) {
            const INDEX c = c0 + e;

            if (c < (INDEX)eOut.s3)
                STORE_C(gC, OFFSET(vC, 0, image, c, at_d, at_h, at_w),
                        epilogue_at(&output, OFFSET(vR, 0, image, c, at_d, at_h, at_w),
                                    OFFSET(vBias, 0, image, c, at_d, at_h, at_w), alpha * sum[e]));
        }
    }
}
