/* cl/conv/parts.h - the sum of partial sums, deterministic
 *
 * A work-group has SUM_ITEMS / ways vectors of four; `ways` work-items share the parts of one: each adds
 * every ways-th of them, in order, and their sums are then added in order.
 *
 * Takes: R, ZERO.
 * Gives: SUM_ITEMS, R4, sum_of_parts().
 */
#define SUM_ITEMS 256
#define SUM_LOADS 8                             /* in flight at a time */
#define R4        VECTOR(R, 4)

/* By all of a work-group: the first SUM_ITEMS / ways get the sums.  p: the work-item's vector in the first
 * part; step: elements from part to part; room: of SUM_ITEMS vectors; ways: a power of two. */
DEVICE R4 sum_of_parts(LOCAL R *room, GLOBAL const R *p, INDEX step, int parts, int ways)
{
    const int each = SUM_ITEMS / ways, me = LOCAL_ID();
    R4 all = (R4)(ZERO);

    for (int i = me / each; i < parts; i += SUM_LOADS * ways) {
        R4 r[SUM_LOADS];

        UNROLL for (int j = 0; j < SUM_LOADS; j++)
            r[j] = VLOAD_ALIGNED(R4, p + (i + j * ways < parts ? i + j * ways : i) * step);
        UNROLL for (int j = 0; j < SUM_LOADS; j++)
            all = i + j * ways < parts ? all + r[j] : all;
    }
    VSTORE(4, room + me * 4, all);
    BARRIER();
    for (int i = 1; i < ways && me < each; i++)
        all = all + VLOAD(4, room + (i * each + me) * 4);
    return all;
}
