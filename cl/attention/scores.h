/* cl/attention/scores.h - 16-bit attention in accumulators: scores before the softmax, and rows of the output
 *
 * A lane has scores and sums of a row of queries and of the row 8 below (cl/tile/accumulator.h).
 *
 * Takes: FORM HEAD BLK_N; GIVEN_*, capped(), join_sink() and more of attention.h; online_correction();
 *        acc_*(); store_row_*().  The macros take the kernel's own names, those of ATTENTION_JOB(t, at) too.
 * Gives: GENERAL SCORES SUMS LOG2_E, ATTENTION_GENERAL() ATTENTION_SHARES() attention_share_row().
 */
#define GENERAL (FORM > 1)                      /* a mask, a softcap */
#define SCORES  (BLK_N / 2)                     /* of a work-item */
#define SUMS    (HEAD / 2)
#define LOG2_E  1.44269504f

/* Scores of which the first is that of query m and key n are scaled and capped, and the mask is added. */
#if GENERAL
#define ATTENTION_GENERAL(s, m0, n0)                                                                    \
    UNROLL for (int i = 0; i < SCORES; i++) {                                                           \
        const int query = (m0) + ACC_ROW(i), key = (n0) + ACC_COL(i);                                   \
                                                                                                        \
        s[i] = scale * s[i];                                                                            \
        s[i] = softcap > 0.0f ? capped(s[i], softcap) : s[i];                                           \
        if (given & GIVEN_MASK && query < queries && key < keys)                                        \
            s[i] = s[i] + LOAD(gMask, (INDEX)vMask.s0 + t.batch * (INDEX)vMask.s3                       \
                                      + t.head * (INDEX)vMask.s4 + query * (INDEX)vMask.s5              \
                                      + key * (INDEX)vMask.s6);                                         \
    }
#else
#define ATTENTION_GENERAL(s, m0, n0)
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
