/* cl/tile/split.h - a tile whose sum is split among sets of warps and among work-groups, in one launch
 *
 * Work-group (tile, split) has `span` slices of K, of which each of its PARTS_K sets of warps multiplies a
 * part (fragment.h).  Sets add their partial sums in local memory, in order, and each keeps OWN_M blocks of a
 * warp's rows.  Work-groups add theirs in a tree whose order is fixed (slots.h), and whoever has the sum of
 * all stores it.  So the result is deterministic, and no work-group waits for another.
 *
 *     const int first = SPLIT_FIRST, slices = SPLIT_SLICES(all);      of this work-group
 *     ...                                                             the products, to d
 *     if (PARTS_K > 1)
 *         add_sets(room, d);
 *     kept = ADD_SPLITS(d);
 *     ...                                    stores OWN_M blocks of rows, from OWN_ROW on, of pairs in `kept`
 *
 * Without SPLITK a work-group has all slices, and takes no SPLIT_PARAMS.
 *
 * Takes: SPLITK; fragment.h; slots.h
 * Gives: OWN_M OWN_ROW SPLIT_PARAMS SPLIT_FIRST SPLIT_SLICES() add_sets() ADD_SPLITS() KEPT_ROW()
 */
#define OWN_M   (BLOCKS_M / PARTS_K)             /* blocks of rows that a set of warps stores */
#define OWN_ROW (PARTS_K > 1 ? (int)(ITEM / SET_ITEMS) * (8 * OWN_M) : 0)       /* and its first row */
#define PAIRS   (BLK_M * BLK_N / 2)              /* of accumulators, of a tile */

#if BLOCKS_M % PARTS_K || (SPLITK && OWN_M * BLOCKS_N > 32) || \
    (PARTS_K > 1 && PARTS_K * PAIRS * 2 * R_BYTES > STAGES * STAGE)
#error "sets of warps must share the rows of a warp evenly, and their sums fit the stages"
#endif

/* Adds the partial sums of all sets of warps, in order: d[0] to d[OWN_M - 1] become those of the rows that
 * this set keeps.  sums: in place of the stages. */
DEVICE void add_sets(LOCAL R *sums, R d[BLOCKS_M][BLOCKS_N][2])
{
    const int set = (int)(ITEM / SET_ITEMS), mine = (int)(ITEM % SET_ITEMS);

    BARRIER();
    UNROLL for (int i = 0; i < BLOCKS_M * BLOCKS_N * 2; i++)
        sums[(set * (BLOCKS_M * BLOCKS_N * 2) + i) * SET_ITEMS + mine] =
            d[i / (BLOCKS_N * 2)][i / 2 % BLOCKS_N][i % 2];
    BARRIER();
    UNROLL for (int i = 0; i < OWN_M * BLOCKS_N * 2; i++) {
        LOCAL const R *const from = sums + (set * (OWN_M * BLOCKS_N * 2) + i) * SET_ITEMS + mine;
        R sum = from[0];

        UNROLL for (int p = 1; p < PARTS_K; p++)
            sum = sum + from[p * (BLOCKS_M * BLOCKS_N * 2) * SET_ITEMS];
        d[i / (BLOCKS_N * 2)][i / 2 % BLOCKS_N][i % 2] = sum;
    }
}

#if SPLITK
#define SPLIT_PARAMS , int span, int splits, GLOBAL SLOT *gSlots
#define SPLIT_FIRST  (GROUP_ID(1) * span)
#define SPLIT_SLICES(all) ((all) - SPLIT_FIRST < span ? (all) - SPLIT_FIRST : span)
#define ADD_SPLITS(d) \
    add_splits(gSlots + (INDEX)GROUP_ID(0) * (splits - 1) * PAIRS, GROUP_ID(1), splits, d)
#define KEPT_ROW(kept, i) ((kept) >> (i) * BLOCKS_N)

/* Adds those of all work-groups of a tile.  Exchanges of a work-item are in flight together.  Returns for
 * which pairs, bit i, this work-item has the sums of all. */
DEVICE UINT32 add_splits(GLOBAL SLOT *slots, int split, int splits, R d[BLOCKS_M][BLOCKS_N][2])
{
    UINT32 kept = ~(UINT32)0;

    slots += ITEM;
    for (; splits > 1 && kept; split /= 2, splits = (splits + 1) / 2) {
        if ((split ^ 1) < splits) {
            GLOBAL SLOT *const slot = slots + split / 2 * PAIRS;
            SLOT other[OWN_M * BLOCKS_N];

            UNROLL for (int i = 0; i < OWN_M * BLOCKS_N; i++) {
                R *const pair = d[i / BLOCKS_N][i % BLOCKS_N];

                other[i] = NO_PAIR;
                if (kept >> i & 1)
                    other[i] = EXCHANGE_SLOT(slot + i * ITEMS, pair_word(pair[0], pair[1]));
            }
            UNROLL for (int i = 0; i < OWN_M * BLOCKS_N; i++) {
                R *const pair = d[i / BLOCKS_N][i % BLOCKS_N];

                kept &= ~((UINT32)!meet_pair(slot + i * ITEMS, other[i], pair, pair + 1) << i);
            }
            if (OWN_M * BLOCKS_N < 32)
                kept &= ((UINT32)1 << OWN_M * BLOCKS_N % 32) - 1;
        }
        slots += splits / 2 * PAIRS;
    }
    return kept;
}
#else
#define SPLIT_PARAMS
#define SPLIT_FIRST       0
#define SPLIT_SLICES(all) (all)
#define ADD_SPLITS(d)     (~(UINT32)0)
#define KEPT_ROW(kept, i) (~(UINT32)0)
#endif
