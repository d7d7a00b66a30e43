/* cl/softmax/softmax.h - what rows.cl and cpu.cl share: the formulas, and where rows lie.
 *
 * forward    z = scale x + w, where w is the mask
 *            y := exp(z - max z) / sum exp(z - max z)      log: y := z - max z - log sum exp(z - max z)
 * backward   x is the result of forward, w its gradient
 *            y := scale x (w - sum w x)                    log: y := scale (w - exp(x) sum w)
 *
 * A row is reduced to a pair (max, sum), piecewise, and pairs are merged: Milakov and
 * Gimelshein, "Online normalizer calculation for softmax", 2018. A maximum starts from the
 * lowest finite value, not from -infinity, and drops NaN: the sum carries NaN, and becomes NaN
 * where the maximum is +infinity. So a sum of 0 means a fully masked row. Backward has no
 * maximum: its pairs hold 0 there.
 *
 * Takes  LOWEST INFINITE exp_of() (tile/activation.h); power() (lanes.h)
 */
#define FORM_FORWARD  0
#define FORM_MASKED   1                         /* forward with w */
#define FORM_BACKWARD 2
#define BACKWARD      (FORM == FORM_BACKWARD)

#if BACKWARD
#define FIRST_MAX ZERO
#else
#define FIRST_MAX LOWEST
#endif

/* The offset at which a row begins in a view. `shape` holds the number of rows in s0, the extents of
 * the row dimensions in s1 to s5, innermost last, the elements of a row in s6, and in s7 how much a
 * work-group takes. Usually the first ROW_DIMENSION returns: the host merges contiguous dimensions. */
#define ROW_DIMENSION(d)                              \
    if (row < (INDEX)shape.d)                         \
        return at + row * (INDEX)v.d;                 \
    next = row / (INDEX)shape.d;                      \
    at += (row - next * (INDEX)shape.d) * (INDEX)v.d; \
    row = next;

DEVICE INDEX row_at(VIEW v, VIEW shape, INDEX row)
{
    INDEX at = (INDEX)v.s0, next;

    ROW_DIMENSION(s5)
    ROW_DIMENSION(s4)
    ROW_DIMENSION(s3)
    ROW_DIMENSION(s2)
    return at + row * (INDEX)v.s1;
}

/* The number of elements of the row that the causal mask leaves visible. */
DEVICE INDEX row_visible(VIEW shape, INDEX row, int causal)
{
    const INDEX n = (INDEX)shape.s6, i = causal ? row % (INDEX)shape.s5 + 1 : n;

    return i < n ? i : n;
}

/* Merges the other pair into (max, sum). */
DEVICE void merge(R *max, R *sum, R other_max, R other_sum)
{
#if BACKWARD
    *sum = *sum + other_sum;
#else
    const R top = MAX(*max, other_max);

    *sum = *sum * power(*max - top) + other_sum * power(other_max - top);
    *max = top;
#endif
}

/* The factor of exp(z - max); and for log, what is subtracted from z - max. */
DEVICE R inverse_of(R sum)   { return sum == ZERO ? ZERO : (R)1 / sum; }
DEVICE R logarithm_of(R sum) { return sum == ZERO ? INFINITE : LOG(sum); }

/* What is needed of the sum.  Where the maximum is +infinity, exponentials are 0 or NaN, and this is NaN. */
DEVICE R factor_of(R max, R sum, int is_log)
{
    return BACKWARD ? sum : (is_log ? logarithm_of(sum) : inverse_of(sum)) + (max - max);
}
