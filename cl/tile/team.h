/* cl/tile/team.h - several work-groups share a row and exchange what they found, in one launch
 *
 * Work-group p + parts r has part p of row r.  It announces what it found, and waits for the others.  What
 * it has waited for too long it finds itself, and announces it in their place: it is the same to the bit.  So
 * whether work-groups run at the same time, and in which order they start, has no influence on the result,
 * and none depends on another that may not run.
 *
 *     ...                                              finds what its part has
 *     for (int found = part;;) {
 *         if (k == 0) {
 *             team_put(slots + found, low, high, found == part);
 *             sNext[0] = -1;
 *         }
 *         warp_meet();
 *         if (k < LANES)
 *             for (i = k; i < parts; i += LANES)
 *                 if (!team_get(slots + i, &low, &high))
 *                     sNext[0] = i;
 *         BARRIER();
 *         if ((found = sNext[0]) < 0)
 *             break;
 *         ...                                          finds what part `found` has
 *     }
 *     left = k == 0 ? team_leave(slots, parts) : 0;
 *     ...                                              writes
 *     if (k == 0)
 *         team_clear(slots, parts, left);
 *
 * A result may take the place of its operand: a work-group writes when it has read its own word back, so
 * whoever reads what it wrote finds the word afterwards, and announces nothing in its place.
 *
 * A row has TEAM_SLOTS(parts) slots, of which the last counts.  They are 0 before, and again when all have
 * left.  `low` and `high` are not both 0.
 *
 * Takes: put_word() put_word_if_none() get_word() (atoms/nvidia/memory.h); LANE_XOR
 * Gives: TEAM_SLOTS; team_put() team_get() team_leave() team_clear(); team_max() team_sum(), over the lanes
 *        of a warp; base is what LANE_XOR may use
 */
#define TEAM_SLOTS(parts) (2 * (parts) + 1)     /* lib/team.c has it, too */

#ifndef TEAM_PATIENCE
#define TEAM_PATIENCE 512                       /* times that a word is looked at */
#endif

/* is_own: part of this work-group. */
DEVICE void team_put(GLOBAL UINT64 *slot, UINT32 low, UINT32 high, int is_own)
{
    const UINT64 word = (UINT64)high << 32 | low;

    if (is_own)
        put_word(slot, word);
    else
        put_word_if_none(slot, word);
}

DEVICE int team_get(GLOBAL const UINT64 *slot, UINT32 *low, UINT32 *high)
{
    UINT64 word;
    int left = TEAM_PATIENCE;

    do
        word = get_word(slot);
    while (word == 0 && --left > 0);
    *low = (UINT32)word;
    *high = (UINT32)(word >> 32);
    return word != 0;
}

/* By the work-item that team_clear() is called by, when the work-group has all that it needs.  The result is
 * not looked at before team_clear(), so that its way is hidden. */
DEVICE int team_leave(GLOBAL UINT64 *slots, int parts)
{
    return ATOMIC_ADD((GLOBAL int *)(slots + TEAM_SLOTS(parts) - 1), 1);
}

/* The last of a row's work-groups to leave empties its slots. */
DEVICE void team_clear(GLOBAL UINT64 *slots, int parts, int left)
{
    if (left == parts - 1)
        for (int i = 0; i < TEAM_SLOTS(parts); i++)
            slots[i] = 0;
}

#define TEAM_FUNCTION(name, OP)                                    \
DEVICE R name(LOCAL R *base, R x)                                  \
{                                                                  \
    UNROLL for (int apart = LANES / 2; apart > 0; apart /= 2)      \
        x = OP(x, LANE_XOR(base, x, apart));                       \
    return x;                                                      \
}

TEAM_FUNCTION(team_max, MAX)
TEAM_FUNCTION(team_sum, PLUS)
