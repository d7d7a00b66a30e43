/* cl/tile/slots.h - work-items of several work-groups add pairs of partial sums, in one launch
 *
 * A slot is a word of device memory, of f64 two words; it is 0 while it is empty and when a kernel ends.  The
 * first of two work-items leaves its pair in the slot and is done; the second finds it, adds its own, and
 * empties the slot.  No work-group waits for another, so they need not be resident together, and no fence is
 * needed, since the exchange carries all the data.  A pair of zeros is stored as all ones, NaNs that no sum
 * has.
 *
 * Takes: exchange_word() exchange_two_words() FLOAT_BITS() BITS_FLOAT() of atoms/nvidia
 * Gives: SLOT EXCHANGE_SLOT() NO_PAIR pair_word() meet_pair(); meet_in_slots()
 */
#if TYPE == TYPE_F64
#define SLOT                struct two_words
#define EXCHANGE_SLOT(p, x) exchange_two_words(p, x)

DEVICE struct two_words two_words(UINT64 low, UINT64 high)
{
    const struct two_words x = { low, high };

    return x;
}
#define NO_PAIR two_words(0, 0)

DEVICE struct two_words pair_word(double x, double y)
{
    const UINT64 low = DOUBLE_BITS(x), high = DOUBLE_BITS(y), zeros = ~(UINT64)0;

    return low | high ? two_words(low, high) : two_words(zeros, zeros);
}

/* other: what an exchange of the own pair found.  Returns whether it was a pair, which it adds. */
DEVICE int meet_pair(GLOBAL struct two_words *slot, struct two_words other, double *x, double *y)
{
    const int zeros = (other.low & other.high) == ~(UINT64)0;

    if ((other.low | other.high) == 0)
        return 0;
    *slot = NO_PAIR;
    *x += zeros ? 0.0 : BITS_DOUBLE(other.low);
    *y += zeros ? 0.0 : BITS_DOUBLE(other.high);
    return 1;
}
#else
#define SLOT                UINT64
#define EXCHANGE_SLOT(p, x) exchange_word(p, x)
#define NO_PAIR             ((UINT64)0)

DEVICE UINT64 pair_word(float x, float y)
{
    const UINT64 both = (UINT64)FLOAT_BITS(y) << 32 | FLOAT_BITS(x), zeros = ~(UINT64)0;

    return both ? both : zeros;
}

/* other: what an exchange of the own pair found.  Returns whether it was a pair, which it adds. */
DEVICE int meet_pair(GLOBAL UINT64 *slot, UINT64 other, float *x, float *y)
{
    const UINT64 zeros = ~(UINT64)0;

    if (other == 0)
        return 0;
    *slot = 0;
    *x += other == zeros ? 0.0f : BITS_FLOAT((UINT32)other);
    *y += other == zeros ? 0.0f : BITS_FLOAT((UINT32)(other >> 32));
    return 1;
}
#endif

DEVICE int meet_in_slot(GLOBAL SLOT *slot, R *x, R *y)
{
    return meet_pair(slot, EXCHANGE_SLOT(slot, pair_word(*x, *y)), x, y);
}

/* `parts` work-items, of which this is number `part`, meet pairwise, in a tree, so that the order is always
 * the same.  There are parts - 1 slots, `apart` from each other.  One work-item gets 1, with the sums of
 * all. */
DEVICE int meet_in_slots(GLOBAL SLOT *slots, int apart, int part, int parts, R *x, R *y)
{
    for (; parts > 1; part /= 2, parts = (parts + 1) / 2) {
        if ((part ^ 1) < parts && !meet_in_slot(slots + part / 2 * apart, x, y))
            return 0;
        slots += parts / 2 * apart;
    }
    return 1;
}
