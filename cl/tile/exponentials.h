/* cl/tile/exponentials.h - the largest of the values of a work-item, and the sum of their exponentials
 *
 * The maximum starts from the lowest finite value and drops NaN; the sum carries NaN, and is 0 where all
 * values are -infinity.
 *
 * Takes  EACH_VALUE (row.h); LOWEST (activation.h); power() (lanes.h or atoms/nvidia/lanes.h)
 * Gives  values_max() values_sum()
 */
/* Of factor a. */
DEVICE R values_max(const R *a, R factor)
{
    R top = LOWEST;

    EACH_VALUE
        top = MAX(top, factor * a[i]);
    return top;
}

/* The sum of exp(factor a - top).  keep: leaves the exponentials in a. */
DEVICE R values_sum(R *a, R factor, R top, int keep)
{
    R s = ZERO;

    if (keep)
        EACH_VALUE {
            a[i] = power(FMA(factor, a[i], -top));
            s = s + a[i];
        }
    else
        EACH_VALUE
            s = s + power(FMA(factor, a[i], -top));
    return s;
}
