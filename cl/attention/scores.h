/* cl/attention/scores.h - 16-bit attention in accumulators: scores before the softmax, and rows of the output
 *
 * A lane has scores and sums of a row of queries and of the row 8 below (cl/tile/accumulator.h).
 *
 * Takes: FORM HEAD BLK_N; GIVEN_*, capped(), join_sink() and more of attention.h; online_correction();
 *        acc_*(); LOWER_1 ... (atoms/nvidia/memory.h); store_row_*().  The macros take the kernel's own
 *        names, those of ATTENTION_JOB(t, at) too.
 * Gives: GENERAL SCORES SUMS LOG2_E, attention_add_mask() attention_share_row(); ATTENTION_GENERAL()
 *        ATTENTION_SHARES().
 */
#define GENERAL (FORM > 1)                      /* a mask, a softcap */
#define SCORES  (BLK_N / 2)                     /* of a work-item */
#define SUMS    (HEAD / 2)
#define LOG2_E  1.44269504f

#if GENERAL
/* Adds a mask to scores.  mask: of the lane's first query and key; below: elements from there to the query 8
 * below, 0 where there is none; step: to the next key; last: the last key, counted from the lane's first.
 * Two keys are read at once where all are there and aligned. */
DEVICE void attention_add_mask(float *s, GLOBAL const T *mask, INDEX below, INDEX step, int last)
{
    if (step == 1 && ACC_COL(SCORES - 1) <= last && (UINT64)mask % 4 == 0 && below % 2 == 0)
        UNROLL for (int i = 0; i < SCORES; i += 2) {
            const UINT32 pair = *(GLOBAL const UINT32 *)(mask + ACC_COL(i) + ACC_BELOW(i) * below);

            s[i] = s[i] + OF(LOWER, TYPE)(pair);
            s[i + 1] = s[i + 1] + OF(UPPER, TYPE)(pair);
        }
    else
        UNROLL for (int i = 0; i < SCORES; i++)
            s[i] = s[i] + LOAD(mask, ACC_BELOW(i) * below + (ACC_COL(i) < last ? ACC_COL(i) : last) * step);
}

/* Scores of which the first is that of query m and key n are scaled and capped, and the mask is added. */
#define ATTENTION_GENERAL(s, m, n)                                                                      \
    do {                                                                                                \
        UNROLL for (int i = 0; i < SCORES; i++)                                                         \
            (s)[i] = scale * (s)[i];                                                                    \
        if (softcap > 0.0f)                                                                             \
            UNROLL for (int i = 0; i < SCORES; i++)                                                     \
                (s)[i] = capped((s)[i], softcap);                                                       \
        if (given & GIVEN_MASK)                                                                         \
            attention_add_mask(s, gMask + ((INDEX)vMask.s0 + t.batch * (INDEX)vMask.s3                  \
                                           + t.head * (INDEX)vMask.s4                                   \
                                           + ((m) < queries ? (m) : queries - 1) * (INDEX)vMask.s5      \
                                           + (n) * (INDEX)vMask.s6),                                    \
                               ((m) + 8 < queries ? 8 : 0) * (INDEX)vMask.s5, vMask.s6, keys - 1 - (n)); \
    } while (0)
#else
#define ATTENTION_GENERAL(s, m, n)
#endif

/* Of the query `row` and the one 8 below: what their sums are to be multiplied by; stores the logarithms.
 * unit: what a maximum is to be multiplied by; factor: that, in powers of 2. */
#define ATTENTION_SHARES(share, max, sum, row)                                                          \
    UNROLL for (int below = 0; below < 2; below++) {                                                    \
        const int m = (row) + 8 * below, seen = m < queries_here;                                       \
        const float own = acc_quad_sum((sum)[below]);                                                   \
        const float correction = online_correction((max)[below], factor);                               \
        float all = seen ? own * correction : 0.0f;                                                     \
        float top = (max)[below] == -INFINITE ? LOWEST : (max)[below] * unit;                           \
                                                                                                        \
        share[below] = seen ? inverse_of(own) : 0.0f;                                                   \
        if (MORE && given & GIVEN_SINKS && seen) {                                                      \
            const float joined = join_sink(&top, &all, gSinks[(INDEX)vMore.s6                           \
                                                              + t.head * (INDEX)vMore.s7]);             \
                                                                                                        \
            share[below] = joined * correction * inverse_of(all);                                       \
        }                                                                                               \
        if (has_lse && m < queries && lane % 4 == 0)                                                    \
            gLse[lse + m * (INDEX)vLse.s6] = logarithm_of(top, all);                                    \
    }

/* A row of sums is multiplied by its share: 0 where no key is seen, since a value may have been NaN. */
DEVICE void attention_share_row(float *sums, const int below, float share)
{
    UNROLL for (int i = 2 * below; i < SUMS; i += 4) {
        sums[i] = share == 0.0f ? 0.0f : sums[i] * share;
        sums[i + 1] = share == 0.0f ? 0.0f : sums[i + 1] * share;
    }
}
