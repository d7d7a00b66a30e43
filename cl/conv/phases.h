/* cl/conv/phases.h - backward data whose phases are columns: pixels and columns to elements of dx
 *
 * A filter of so many taps has, for each phase of the pixels of dx and each channel, one row: what of the
 * filter contributes to that phase, and zeros (cl/conv/phases.cl).  So a strided gradient is a convolution of
 * dy with steps of 1, whose output has all phases of a pixel as channels:
 *
 *     column (phase h, phase w, channel) of pixel n, p, q   is   dx[n, channel, p stride + h, q stride + w]
 *
 * vStep, vPad, vMeet, beside what cl/conv/conv.h has of a convolution with steps of 1:
 *
 *     vStep   s5 s6 the strides of the gradient
 *     vPad    s2 s3 the taps of the filter
 *     vMeet   s0 channels; s2 s3 the padding of the gradient; s5 s6 the extents of dx
 *
 * Takes: conv.h, im2col.h, tile/accumulator.h, epilogue.h.
 * Gives: struct phase_column, phase_columns(), store_phases().
 */
struct phase_column { int h, w, c; };

/* Of an item's columns, from n on; those that are none lie outside of dx. */
DEVICE void phase_columns(struct phase_column *p, const int count, int n, int N, VIEW vStep, VIEW vMeet)
{
    UNROLL for (int i = 0; i < count; i++)
        if (!ACC_BELOW(i)) {
            const int column = n + ACC_COL(i), phase = column / (int)vMeet.s0, h = phase / (int)vStep.s6;
            struct phase_column *const it = p + i / 4 * 2 + i % 2;

            it->h = column < N ? h : 1 << 29;
            it->w = phase - h * (int)vStep.s6;
            it->c = column - phase * (int)vMeet.s0;
        }
}

/* A sum by multiply-adds, of the taps that there are: zeros of others times infinity would be no number. */
DEVICE R phase_sum(int n, int p, int q, struct phase_column to, VIEW vStep, VIEW vPad, VIEW vMeet,
                   struct window win, VIEW eTaps, GLOBAL const T *gX, VIEW vX, VIEW eX, GLOBAL const T *gW,
                   VIEW vW)
{
    const int column = (to.h * (int)vStep.s6 + to.w) * (int)vMeet.s0 + to.c;
    R sum = ZERO;

    NO_UNROLL for (int i = 0; i < (int)eTaps.s5; i++)
    NO_UNROLL for (int j = 0; j < (int)eTaps.s6; j++) {
        const int r = to.h + (int)vMeet.s2 - (int)vStep.s5 * (i + win.first[1]), h = p + i + win.first[1];
        const int s = to.w + (int)vMeet.s3 - (int)vStep.s6 * (j + win.first[0]), w = q + j + win.first[0];

        if (r >= 0 && r < (int)vPad.s2 && s >= 0 && s < (int)vPad.s3 && h >= 0 && h < (int)eX.s5 && w >= 0 &&
            w < (int)eX.s6)
            NO_UNROLL for (int k = 0; k < (int)eX.s3; k++)
                sum = FMA(LOAD(gX, OFFSET(vX, 0, n, k, 0, h, w)), LOAD(gW, OFFSET(vW, 0, column, k, 0, i, j)),
                          sum);
    }
    return sum;
}

/* An item's accumulators of one pixel of eGrid, finished, to dx.  below: 0 or 1, as in
 * cl/tile/store_row.h.  EXACT(n, p, q, to) gives the sum of a column anew. */
#define STORE_PHASES(o, d, columns, count, below, pixel, EXACT)                                             \
    do {                                                                                                    \
        const int row_ = (pixel) / (int)eGrid.s6, n_ = quotient(row_, (int)eGrid.s5);                       \
        const int p_ = row_ - n_ * (int)eGrid.s5, q_ = (pixel) - row_ * (int)eGrid.s6;                      \
                                                                                                            \
        UNROLL for (int i_ = 2 * (below); i_ < (count); i_ += 4)                                            \
        UNROLL for (int j_ = 0; j_ < 2; j_++) {                                                             \
            const struct phase_column to_ = (columns)[i_ / 4 * 2 + j_];                                     \
            const int h_ = p_ * (int)vStep.s5 + to_.h, w_ = q_ * (int)vStep.s6 + to_.w;                     \
            R sum_ = (d)[i_ + j_];                                                                          \
                                                                                                            \
            if (h_ < (int)vMeet.s5 && w_ < (int)vMeet.s6) {                                                 \
                if (!(ABS(sum_) <= 3.0e38f))                                                                \
                    sum_ = EXACT(n_, p_, q_, to_);                                                          \
                STORE_C((o).c, OFFSET(vC, 0, n_, to_.c, 0, h_, w_),                                          \
                        epilogue_at(&(o), OFFSET(vR, 0, n_, to_.c, 0, h_, w_),                        \
                                    OFFSET(vBias, 0, n_, to_.c, 0, h_, w_), (o).alpha * sum_));              \
            }                                                                                               \
        }                                                                                                   \
    } while (0)
