/* cl/conv/strip.h - a strip of THR_H rows of an output of depthwise convolution, and its source
 *
 * Rows and columns of the source count from where tap 0 of the strip's first output is (DIRECTION 0); with
 * DIRECTION 1, backward data, from the one that contributes to the strip's first output in tap 0.  Rows
 * of the source are those from STRIP_LOW to STRIP_HIGH; columns likewise.
 *
 *     DIRECTION 0, STRIDE 1:          DIRECTION 1, STRIDE 2: THR_H and columns are even, and begin where tap
 *      x x x    -> row 0              0 of some element contributes: no tap depends on a remainder
 *      x x x    -> rows 0, 1
 *      x x x    -> rows 0, 1, 2
 *      x x x    -> rows 1, 2, 3 ...
 *
 * EXACT: strips cover the output and nothing else, and the source, with a padding of TAPS / 2 around it; then
 * only elements that a strip shares with its neighbours can be outside of the source.  Not with DIRECTION 1.
 *
 * Takes  DIRECTION TAPS STRIDE THR_H EXACT
 */
#define STRIP_LOW        (DIRECTION == 1 ? -((TAPS - 1) / STRIDE) : 0)
#define STRIP_END(n)     (DIRECTION == 1 ? ((n) - 1) / STRIDE + 1 : ((n) - 1) * STRIDE + TAPS)
#define STRIP_HIGH       (STRIP_END(THR_H) - 1)
#define STRIP_WIDE(cols) (STRIP_END(cols) - STRIP_LOW)
/* The last row of the source that row i needs. */
#define STRIP_LAST(i)    (DIRECTION == 1 ? (i) / STRIDE : STRIDE * (i) + TAPS - 1)
/* Where the source of the outputs from `at` on begins, and the outputs themselves, along one dimension. */
#define STRIP_FROM(at, pad) (DIRECTION == 1 ? (at) / STRIDE : (at) * STRIDE - (pad))
#define STRIP_TO(at, pad)   (DIRECTION == 1 ? (at) - (pad) : (at))
/* From the source of one strip to that of the next, n outputs further. */
#define STRIP_STEP(n)       (DIRECTION == 1 ? (n) / STRIDE : (n) * STRIDE)

/* Which rows or columns of n from `at` on are below `extent`. */
DEVICE void strip_there(int *there, int n, INDEX at, INDEX extent)
{
    UNROLL for (int i = 0; i < n; i++)
        there[i] = EXACT || at + i < extent;
}

/* Whether index y of the source is in it, which it is if `test`; of a strip of n rows or columns. */
#define STRIP_IN(y, n, test) ((EXACT && (y) >= TAPS / 2 && (y) < TAPS / 2 + (n) * STRIDE) || (test))

/* Row y of the source contributes in tap r to row STRIP_ROW(y, r) of the strip, if STRIP_HAS_ROW, and column
 * STRIP_COL(j, s) of the source in tap s to column j of the strip, if STRIP_HAS_COL. */
#define STRIP_ROW(y, r)     (DIRECTION == 1 ? STRIDE * (y) + (r) : ((y) - (r)) / STRIDE)
#define STRIP_COL(j, s)     (DIRECTION == 1 ? ((j) - (s)) / STRIDE - STRIP_LOW \
                                            : STRIDE * (j) + (s))
#define STRIP_HAS_ROW(y, r) ((DIRECTION == 1 || ((y) - (r)) % STRIDE == 0) && \
                             STRIP_ROW(y, r) >= 0 && STRIP_ROW(y, r) < THR_H)
#define STRIP_HAS_COL(j, s) (DIRECTION != 1 || ((j) - (s)) % STRIDE == 0)

/* Adds row y of the source, v[], to all rows sum[][] of the strip that it contributes to. */
#define STRIP_ADD(sum, w, v, y, cols)                                                               \
    UNROLL for (int r_ = 0; r_ < TAPS; r_++) {                                                      \
        const int i_ = STRIP_HAS_ROW(y, r_) ? STRIP_ROW(y, r_) : 0;                                 \
                                                                                                    \
        if (STRIP_HAS_ROW(y, r_))                                                                   \
            UNROLL for (int j_ = 0; j_ < (cols); j_++)                                              \
                UNROLL for (int s_ = 0; s_ < TAPS; s_++)                                            \
                    if (STRIP_HAS_COL(j_, s_))                                                      \
                        (sum)[i_][j_] = FMA((w)[r_][s_], (v)[STRIP_COL(j_, s_)], (sum)[i_][j_]);    \
    }

/* The rows of the strip that row y of the source is the last to contribute to: `count`, from `first` on. */
#define STRIP_DONE_COUNT      (DIRECTION == 1 ? STRIDE : 1)
#define STRIP_DONE_FIRST(y)   (DIRECTION == 1 ? STRIDE * (y) : ((y) - TAPS + 1) / STRIDE)
#define STRIP_IS_DONE(i, y)   ((i) >= 0 && (i) < THR_H && (y) == STRIP_LAST(i))

/* Adds the products of row y of the source and of the rows d[][] of a gradient to those of all taps: of those
 * that are there, by rows[] and columns[], since a factor may be infinite. */
#define STRIP_ADD_TAPS(sum, d, rows, columns, v, y, cols)                                           \
    UNROLL for (int k_ = 0; k_ < (TAPS + STRIDE - 1) / STRIDE; k_++) {                              \
        const int tap_ = (y) % STRIDE + STRIDE * k_, r_ = tap_ < TAPS ? tap_ : 0;                   \
        const int i_ = STRIP_HAS_ROW(y, tap_) ? STRIP_ROW(y, tap_) : 0;                             \
                                                                                                    \
        if (tap_ < TAPS && STRIP_HAS_ROW(y, tap_))                                                  \
            UNROLL for (int j_ = 0; j_ < (cols); j_++)                                              \
                UNROLL for (int s_ = 0; s_ < TAPS; s_++)                                            \
                    if (EXACT || ((rows)[i_] & (columns)[j_]))                                      \
                        (sum)[r_][s_] = FMA((d)[i_][j_], (v)[STRIP_COL(j_, s_)], (sum)[r_][s_]);    \
    }
