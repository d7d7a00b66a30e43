/* cl/tile/slots.h - work-items of several work-groups add pairs of partial sums, in one launch
 *
 * A slot is a word of device memory, 0 while it is empty and when a kernel ends.  The first of two work-items
 * leaves its pair in the slot and is done; the second finds it, adds its own, and empties the slot.  No
 * work-group waits for another, so they need not be resident together, and no fence is needed, since the
 * exchange carries all the data.  A pair of zeros is stored as all ones, a NaN that no sum has.
 *
 * Takes: exchange_word() FLOAT_BITS() BITS_FLOAT() of atoms/nvidia
 * Gives: pair_word() meet_pair(); meet_in_slots()
 */

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

DEVICE int meet_in_slot(GLOBAL UINT64 *slot, float *x, float *y)
{
    return meet_pair(slot, exchange_word(slot, pair_word(*x, *y)), x, y);
}

/* `parts` work-items, of which this is number `part`, meet pairwise, in a tree, so that the order is always
 * the same.  There are parts - 1 slots, `apart` from each other.  One work-item gets 1, with the sums of
 * all. */
DEVICE int meet_in_slots(GLOBAL UINT64 *slots, int apart, int part, int parts, float *x, float *y)
{
    for (; parts > 1; part /= 2, parts = (parts + 1) / 2) {
        if ((part ^ 1) < parts && !meet_in_slot(slots + part / 2 * apart, x, y))
            return 0;
        slots += parts / 2 * apart;
    }
    return 1;
}
