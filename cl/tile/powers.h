/* cl/tile/powers.h - maxima and exponentials of elements that lie in registers as they were read
 *
 * exp(a - top) = base 2^(scale a - shift).  In 16-bit types scale is log2(e) and shift is top times it, so
 * that an element costs one FMA and one power of 2; base, which is near 1, is the inverse of that power of
 * top, since shift is rounded: nearly to the last bit, so that the share of a logit that has it all is 1.
 * Where top is as large as 2^30 it would be far from 1; there all that is below top is so far below that it
 * makes no difference whether the power is one of e or of 2.
 *
 * Takes  held.h; LOWEST (activation.h); power() LOG2_E power_of_2() (atoms/nvidia/lanes.h); pair_max()
 *        (memory.h)
 * Gives  words_max(); struct powers, powers_of() power_below() run_sum()
 */
struct powers { R scale, shift, base; };

#if TYPE == TYPE_F32
/* The largest of the elements in `count` words, at least LOWEST; count: a constant. */
DEVICE R words_max(const UINT32 *u, const int count)
{
    R top = LOWEST;

    UNROLL for (int j = 0; j < count; j++)
        top = MAX(top, BITS_FLOAT(u[j]));
    return top;
}

DEVICE R power_below(struct powers p, R a) { return power(a - p.shift); }

DEVICE struct powers powers_of(R top)
{
    const struct powers p = { (R)1, top, (R)1 };

    return p;
}
#else
#define LOWEST_PAIR_1 0xfbfffbffu
#define LOWEST_PAIR_2 0xff7fff7fu

DEVICE R words_max(const UINT32 *u, const int count)
{
    UINT32 top = OF(LOWEST_PAIR, TYPE);

    UNROLL for (int j = 0; j < count; j++)
        top = pair_max(top, u[j]);
    return MAX(OF(LOWER, TYPE)(top), OF(UPPER, TYPE)(top));
}

DEVICE R power_below(struct powers p, R a) { return power_of_2(FMA(p.scale, a, -p.shift)); }

DEVICE struct powers powers_of(R top)
{
    const R far = (R)(1 << 30);
    const int is_far = !(top < far && top > -far);
    struct powers p = { is_far ? (R)1 : LOG2_E, is_far ? top : top * LOG2_E, (R)1 };

    const R of_top = power_below(p, top), near = power_of_2(FMA(-p.scale, top, p.shift));

    p.base = FMA(near, FMA(-of_top, near, (R)1), near);
    return p;
}
#endif

/* The sum of 2^(scale a - shift) for the values of a run. */
DEVICE R run_sum(struct powers p, const R *a)
{
    R s = power_below(p, a[0]);

    UNROLL for (int o = 1; o < RUN; o++)
        s = s + power_below(p, a[o]);
    return s;
}
