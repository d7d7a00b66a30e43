/* cl/attention/merge.cl - the splits of the keys are merged
 *
 * A work-group that has a split of the keys leaves for each of its ROWS rows the weighted values, the maximum
 * and the sum of the weights.  The last of a device that orders writes between work-groups, or the kernel
 * attention_merge, adds them up, in order.  Rows are the queries of the heads that share a head of keys, head
 * by head of each query.
 *
 * Takes  ROWS ITEMS; LANES power() (lanes.h); attention.h; where LANES > 1, count_acquire()
 * Gives  DECODE_PARAMS SPLIT_HERE SPLITS_MOST SPLITS_ROOM SPLIT_OF RESULT merge_splits() is_last_split(), the
 *        kernel attention_merge
 */
#define SPLITS_MOST 128
#define SPLITS_ROOM (2 * ROWS * SPLITS_MOST + ROWS)     /* elements of local memory that merging takes */
#define MERGED      4                                   /* elements of a work-item, and splits, in flight */

#define DECODE_PARAMS                                                                                   \
    int queries, int keys, int D, int DV, int group, int causal, int offset, int window, R scale,      \
    R softcap, GLOBAL const T *RESTRICT gQ, VIEW vQ, GLOBAL const T *RESTRICT gK, VIEW vK,              \
    GLOBAL const T *RESTRICT gV, VIEW vV, GLOBAL T *RESTRICT gO, VIEW vO,                               \
    GLOBAL const T *RESTRICT gMask, VIEW vMask, GLOBAL R *RESTRICT gLse, VIEW vLse, int has_lse,        \
    MORE_PARAMS, int shareds, int blocks, int splits, GLOBAL R *gSplits, int merges, GLOBAL int *counters

/* Which split of the keys the work-group has, keys [from, to), and for which ROWS rows: `first` and `last`
 * are the queries of these, all of which see keys [all_begin, all_end). */
#define SPLIT_HERE                                                                                        \
    const int block = GROUP_ID(0) % blocks, split = GROUP_ID(0) / blocks, shared = GROUP_ID(1);           \
    const int batch = GROUP_ID(2), row0 = block * ROWS, keys_here = KEYS_OF(batch);                       \
    const int queries_here = QUERIES_OF(batch), rows = queries_here * group;                              \
    const struct sight sight = { keys_here, causal, OFFSET_OF(keys_here, queries_here), window };         \
    const int first = row0 / group, last = (row0 + ROWS < rows ? row0 + ROWS - 1 : rows - 1) / group;     \
    const int begin = sight_begin(&sight, first), end = row0 < rows ? sight_end(&sight, last) : 0;        \
    const int all_begin = sight_begin(&sight, last), all_end = sight_end(&sight, first);                  \
    const int chunk = end > begin ? (end - begin + splits - 1) / splits : 0;                              \
    const int from = begin + split * chunk, to = from + chunk < end ? from + chunk : end

/* In the workspace a split of ROWS rows has their weighted values, then their maxima, then their sums. */
#define SPLIT_ELEMENTS (ROWS * (DV + 2))
#define SPLIT_OF(split) \
    (gSplits + (((INDEX)batch * shareds + shared) * blocks + block) * splits * SPLIT_ELEMENTS \
             + (INDEX)(split) * SPLIT_ELEMENTS)

/* Where the result of ROWS rows goes; rows: that there are; seen: of these, with a query. */
struct result {
    GLOBAL T *o; GLOBAL R *lse; GLOBAL const R *sinks;
    VIEW vO, vLse; INDEX sink_step;
    int row0, rows, seen, shared, group, DV, has_lse, has_sinks;
};

#define RESULT(to)                                                                             \
    struct result to;                                                                          \
    to.o = gO + (INDEX)vO.s0 + batch * (INDEX)vO.s3;                                           \
    to.lse = gLse + (INDEX)vLse.s0 + batch * (INDEX)vLse.s4;                                   \
    to.sinks = gSinks + (INDEX)vMore.s6;                                                       \
    to.vO = vO;                                                                                \
    to.vLse = vLse;                                                                            \
    to.sink_step = (INDEX)vMore.s7;                                                            \
    to.row0 = block * ROWS;                                                                    \
    to.rows = queries * group;                                                                 \
    to.seen = QUERIES_OF(batch) * group;                                                       \
    to.shared = shared;                                                                        \
    to.group = group;                                                                          \
    to.DV = DV;                                                                                \
    to.has_lse = has_lse;                                                                      \
    to.has_sinks = given & GIVEN_SINKS

/* A work-group merges the splits of ROWS rows, in order. */
DEVICE void merge_splits(LOCAL R *scratch, GLOBAL const R *parts, int splits, const struct result *to)
{
    LOCAL R *const factors = scratch, *const all = scratch + 2 * ROWS * splits;
    const int me = LOCAL_ID(), DV = to->DV, left = to->rows - to->row0, count = left < ROWS ? left : ROWS;
    GLOBAL const R *const pairs = parts + ROWS * DV;

    for (int at = me; at < 2 * ROWS * splits; at += ITEMS)
        factors[at] = pairs[(INDEX)(at / (2 * ROWS)) * SPLIT_ELEMENTS + at % (2 * ROWS)];
    BARRIER();
    for (int r = me; r < count; r += ITEMS) {
        const int row = to->row0 + r, i = row / to->group, h = to->shared * to->group + row - i * to->group;
        R max = LOWEST, sum = ZERO, factor = (R)1;

        for (int k = 0; k < splits; k++)
            max = MAX(max, factors[2 * k * ROWS + r]);
        for (int k = 0; k < splits; k++) {
            LOCAL R *const pair = factors + 2 * k * ROWS + r;

            pair[0] = power(pair[0] - max);
            sum = FMA(pair[0], pair[ROWS], sum);
        }
        if (row >= to->seen)                    /* no query */
            sum = ZERO;
        else if (to->has_sinks)
            factor = join_sink(&max, &sum, to->sinks[h * to->sink_step]);
        all[r] = factor * inverse_of(sum);
        if (to->has_lse)
            to->lse[h * (INDEX)to->vLse.s5 + i * (INDEX)to->vLse.s6] = logarithm_of(max, sum);
    }
    BARRIER();
    for (int first = me; first < count * DV; first += MERGED * ITEMS) {
        R x[MERGED];
        int at[MERGED];                         /* past the end, the last element */

        UNROLL for (int e = 0; e < MERGED; e++) {
            x[e] = ZERO;
            at[e] = first + e * ITEMS < count * DV ? first + e * ITEMS : count * DV - 1;
        }
        for (int k0 = 0; k0 < splits; k0 += MERGED)
            UNROLL for (int k = k0; k < k0 + MERGED; k++)
                if (k < splits)
                    UNROLL for (int e = 0; e < MERGED; e++)
                        x[e] = FMA(factors[2 * k * ROWS + at[e] / DV],
                                   parts[(INDEX)k * SPLIT_ELEMENTS + at[e]], x[e]);
        UNROLL for (int e = 0; e < MERGED; e++) {
            const int j = at[e] / DV, c = at[e] - j * DV, q = (to->row0 + j) / to->group;
            const int head = to->shared * to->group + to->row0 + j - q * to->group;

            if (first + e * ITEMS < count * DV)
                STORE(to->o, head * (INDEX)to->vO.s4 + q * (INDEX)to->vO.s5 + c * (INDEX)to->vO.s6,
                      all[j] == ZERO ? ZERO : x[e] * all[j]);
        }
    }
}

#if LANES > 1
/* Whether the work-group is the last of those that have the splits of some rows: then it sees what all have
 * left. */
DEVICE int is_last_split(LOCAL int *before, GLOBAL int *count, int splits)
{
    BARRIER();
    if (LOCAL_ID() == 0)
        before[0] = count_acquire(count, 1);
    BARRIER();
    if (before[0] != splits - 1)
        return 0;
    if (LOCAL_ID() == 0)
        *count = 0;
    return 1;
}
#endif

KERNEL(ITEMS) void
attention_merge(DECODE_PARAMS)
{
    LOCAL_ARRAY(R, scratch, SPLITS_ROOM);
    const int block = GROUP_ID(0), shared = GROUP_ID(1), batch = GROUP_ID(2);

    RESULT(result);
    merge_splits(scratch, SPLIT_OF(0), splits, &result);
}
