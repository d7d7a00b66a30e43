/* cl/attention/merge.cl - the splits of the keys are merged
 *
 * A work-group that has a split of the keys leaves for each of its ROWS rows the weighted values, the maximum
 * and the sum of the weights.  The last of a device that orders writes between work-groups, or the kernel
 * attention_merge, adds them up, in order.  Rows are the queries of the heads that share a head of keys, head
 * by head of each query.
 *
 * Takes  HEAD ROWS ITEMS, MERGED where it is not 2; LANES power() (lanes.h); attention.h; where LANES > 1,
 *        count_acquire()
 * Gives  DECODE_PARAMS SPLIT_HERE SPLIT_OF RESULT merge_splits() is_last_split(), the kernel attention_merge
 */
#define AHEAD 16                                /* splits of which a work-item loads at once */
#ifndef MERGED
#define MERGED 2                                /* elements of a row that it has, a factor of DV */
#endif

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

/* A work-group merges the splits of ROWS rows, in order.  A work-item has MERGED elements of a row, of AHEAD
 * splits at once, and finds the maximum and the sum of the row by itself: that is less than to wait for
 * others. */
DEVICE void merge_splits(GLOBAL const R *parts, int splits, const struct result *to)
{
    const int DV = to->DV, left = to->rows - to->row0, count = left < ROWS ? left : ROWS;

    NO_UNROLL for (int at = LOCAL_ID() * MERGED; at < count * HEAD; at += ITEMS * MERGED) {
        const int r = at / HEAD, c = at % HEAD, row = to->row0 + r, i = row / to->group;
        const int h = to->shared * to->group + row - i * to->group;
        R max = LOWEST, sum = ZERO, factor = (R)1, x[MERGED];

        if (c >= DV)
            continue;
        UNROLL for (int e = 0; e < MERGED; e++)
            x[e] = ZERO;
        NO_UNROLL for (int k0 = 0; k0 < splits; k0 += AHEAD) {
            R maxima[AHEAD], sums[AHEAD], part[AHEAD][MERGED];
            const R before = max;

            UNROLL for (int k = 0; k < AHEAD; k++) {
                GLOBAL const R *const from = parts + (INDEX)(k0 + k) * SPLIT_ELEMENTS;

                maxima[k] = ZERO - INFINITE;
                sums[k] = ZERO;
                UNROLL for (int e = 0; e < MERGED; e++)
                    part[k][e] = ZERO;
                if (k0 + k < splits) {
                    maxima[k] = from[ROWS * DV + r];
                    sums[k] = from[ROWS * DV + ROWS + r];
                    UNROLL for (int e = 0; e < MERGED; e++)
                        part[k][e] = from[r * DV + c + e];
                }
            }
            UNROLL for (int k = 0; k < AHEAD; k++)
                max = MAX(max, maxima[k]);

            const R rescale = power(before - max);

            sum = sum * rescale;
            UNROLL for (int e = 0; e < MERGED; e++)
                x[e] = x[e] * rescale;
            UNROLL for (int k = 0; k < AHEAD; k++) {
                const R weight = power(maxima[k] - max);

                sum = FMA(weight, sums[k], sum);
                UNROLL for (int e = 0; e < MERGED; e++)
                    x[e] = FMA(weight, part[k][e], x[e]);
            }
        }
        if (row >= to->seen)                    /* no query */
            sum = ZERO;
        else if (to->has_sinks)
            factor = join_sink(&max, &sum, to->sinks[h * to->sink_step]);
        factor = factor * inverse_of(sum);
        if (to->has_lse && c == 0)
            to->lse[h * (INDEX)to->vLse.s5 + i * (INDEX)to->vLse.s6] = logarithm_of(max, sum);
        UNROLL for (int e = 0; e < MERGED; e++)
            STORE(to->o, h * (INDEX)to->vO.s4 + i * (INDEX)to->vO.s5 + (c + e) * (INDEX)to->vO.s6,
                  factor == ZERO ? ZERO : x[e] * factor);
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
    const int block = GROUP_ID(0), shared = GROUP_ID(1), batch = GROUP_ID(2);

    RESULT(result);
    merge_splits(SPLIT_OF(0), splits, &result);
}
