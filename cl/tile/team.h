/* cl/tile/team.h - several work-groups share a row and exchange what they found, in one launch
 *
 * A work-group that starts takes a ticket: the next part of the next row.  So whoever waits, waits for
 * work-groups that have started, or will as soon as there is room: at most one row of a launch lacks parts,
 * and the host gives a row no more of them than fit at once.  A part is announced before it waits.
 *
 *     ticket = team_ticket(counter, total);    by one work-item
 *     team_put(slots + part, low, high);       likewise
 *     team_get(slots + i, &low, &high);        of every part i
 *     team_leave(slots, parts, lane);          by one warp, when it has all that it needs
 *
 * A row has TEAM_SLOTS(parts) slots, of which the last counts, and a launch one counter.  They are 0 before,
 * and again when all have left.  `low` and `high` are not both 0.
 *
 * Takes: put_word() get_word() (atoms/nvidia/memory.h); from_lane() (warp.h); LANE_XOR
 * Gives: TEAM_SLOTS; team_ticket() team_put() team_get() team_leave(); team_max() team_sum(), over the
 *        lanes of a warp
 */
#define TEAM_SLOTS(parts) (2 * (parts) + 1)     /* lib/team.c has it, too */

DEVICE int team_ticket(GLOBAL int *counter, int total)
{
    const int ticket = ATOMIC_ADD(counter, 1);

    if (ticket == total - 1)
        *counter = 0;
    return ticket;
}

DEVICE void team_put(GLOBAL UINT64 *slot, UINT32 low, UINT32 high)
{
    put_word(slot, (UINT64)high << 32 | low);
}

DEVICE void team_get(GLOBAL const UINT64 *slot, UINT32 *low, UINT32 *high)
{
    UINT64 word;

    do
        word = get_word(slot);
    while (word == 0);
    *low = (UINT32)word;
    *high = (UINT32)(word >> 32);
}

/* The last of a row's work-groups to leave empties its slots. */
DEVICE void team_leave(GLOBAL UINT64 *slots, int parts, int lane)
{
    const int count = TEAM_SLOTS(parts) - 1;
    UINT32 left = 0;

    if (lane == 0)
        left = (UINT32)ATOMIC_ADD((GLOBAL int *)(slots + count), 1);
    if (from_lane(left, 0) == (UINT32)parts - 1)
        for (int i = lane; i <= count; i += LANES)
            slots[i] = 0;
}

#define TEAM_FUNCTION(name, OP)                                    \
DEVICE R name(R x)                                                 \
{                                                                  \
    UNROLL for (int apart = LANES / 2; apart > 0; apart /= 2)      \
        x = OP(x, LANE_XOR(0, x, apart));                          \
    return x;                                                      \
}

TEAM_FUNCTION(team_max, MAX)
TEAM_FUNCTION(team_sum, PLUS)
