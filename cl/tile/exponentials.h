/* cl/tile/exponentials.h - the largest of values of a work-item, and the sum of their exponentials
 *
 * The maximum starts from the lowest finite value and drops NaN; the sum carries NaN, and is 0 where all
 * values are -infinity.
 *
 * Takes  LOWEST (activation.h); power() (lanes.h or atoms/nvidia/lanes.h)
 * Gives  values_max() values_sum()
 */
/* Of factor a; count: a constant. */
DEVICE R values_max(const R *a, const int count, R factor)
{
    R top = LOWEST;

    UNROLL for (int i = 0; i < count; i++)
        top = MAX(top, factor * a[i]);
    return top;
}

/* The sum of exp(factor a - top).  keep: leaves the exponentials in a. */
DEVICE R values_sum(R *a, const int count, R factor, R top, int keep)
{
    R s = ZERO;

    if (keep)
        UNROLL for (int i = 0; i < count; i++) {
            a[i] = power(FMA(factor, a[i], -top));
            s = s + a[i];
        }
    else
        UNROLL for (int i = 0; i < count; i++)
            s = s + power(FMA(factor, a[i], -top));
    return s;
}
