/* cl/softmax/softmax.h - what softmax.cl and softmax_cpu.cl share: rows, and the formulas.
 *
 * forward    z = scale x + w, w the mask
 *            y := exp(z - max z) / sum exp(z - max z)      log: y := z - max z - log sum exp(z - max z)
 * backward   x is what forward gave, w the gradient of it
 *            y := scale x (w - sum w x)                    log: y := scale (w - exp(x) sum w)
 *
 * A row is folded into a pair (max, sum), a part at a time, and pairs are merged: Milakov
 * and Gimelshein, "Online normalizer calculation for softmax", 2018.  A maximum starts from
 * the lowest number, not from -infinity, and drops NaN: the sum is what carries NaN, and what
 * turns to NaN where the maximum is +infinity.  So a sum of 0 is a row masked whole.
 * Backward has no maximum: its pairs keep 0 there.
 */
#define INFINITE ((R)BITS_FLOAT(0x7f800000u))

#if TYPE == 3
#define LOWEST (-1.7976931348623157e308)
#else
#define LOWEST (-3.402823466e38f)
#endif

#if BACKWARD
#define FIRST_MAX ZERO
#else
#define FIRST_MAX LOWEST
#endif

/* Where the row begins in a view: shape has the extents of its dimensions in s1 to s5, the
 * innermost last, the number of rows and of their elements in s0 and s6, and in s7 how much a
 * group takes.  Most often the
 * first line returns: the host merges dimensions that lie as one.                          */
#define ROW_DIMENSION(d)                             \
    if (row < (INDEX)shape.d)                        \
        return at + row * (INDEX)v.d;                \
    next = row / (INDEX)shape.d;                     \
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

/* How many elements of the row the causal mask leaves. */
DEVICE INDEX row_seen(VIEW shape, INDEX row, int causal)
{
    const INDEX n = (INDEX)shape.s6, i = causal ? row % (INDEX)shape.s5 + 1 : n;

    return i < n ? i : n;
}

DEVICE void merge(R *max, R *sum, R other_max, R other_sum)
{
#if BACKWARD
    *sum = *sum + other_sum;
#else
    const R top = MAX(*max, other_max);

    *sum = *sum * exp_of(*max - top) + other_sum * exp_of(other_max - top);
    *max = top;
#endif
}

/* What exp(z - max) is multiplied by, and what is taken from z - max. */
DEVICE R inverse_of(R sum)   { return sum == ZERO ? ZERO : (R)1 / sum; }
DEVICE R logarithm_of(R sum) { return sum == ZERO ? INFINITE : LOG(sum); }
