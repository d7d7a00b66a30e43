/* cl/attention/wgmma.h - tiles of queries, and blocks of keys and values, as TMA brings them to wgmma
 *
 * A tile has 64 queries of one head for each warpgroup.  A block has BLK_N keys, or values, of the head that
 * it shares.  All have rows of HEAD elements, in blocks of 64 (cl/tile/operand.h): queries and keys are
 * K-major, values N-major.
 *
 *     scores = queries keys^T           the first operand from registers, or local memory
 *     sums  += weights values           the first operand from registers: the scores' accumulators
 *
 * Takes: boxes.h, scores.h, jobs.h; pipeline.h, atoms/nvidia/wgmma.h; HEAD BLK_N STAGES WARPGROUPS Q_BUFFERS
 *        Q_REGISTERS JOINED.  The macros take the kernel's own names.
 * Gives: BYTES_*, QUERIES_AHEAD, ARE_JOINED, attention_*(), ATTENTION_*().
 */
#define BYTES_Q   (BLK_M * BOXES * 128)
#define BYTES_K   (BLK_N * BOXES * 128)         /* and of values */

/* Whether there is room for the next tile's queries before the last products with this one's. */
#define QUERIES_AHEAD (Q_REGISTERS || Q_BUFFERS > 1)
#define ARE_JOINED    (JOINED && QUERIES_AHEAD)

/* ---- blocks --------------------------------------------------------------------------- */

/* By a warpgroup, of which this is work-item `me`: rows from `first` on of a block become 0.  What products
 * read of it afterwards needs fence_async_proxy() and a barrier. */
DEVICE void attention_clear(UINT32 block, int first, int me)
{
    const UINT32 zero = 0;

    for (int i = me; i < (BLK_N - first) * BOXES * 8; i += 128) {
        const int row = first + i / (BOXES * 8), vector = i % (BOXES * 8);

        STORE_B32X4(block + vector / 8 * (BLK_N * 128) + row * 128 + vector % 8 * 16, zero, zero, zero, zero);
    }
}

/* ---- products ------------------------------------------------------------------------- */

/* A warpgroup: hands the products of its queries and a block of keys to the tensor cores. */
DEVICE void attention_scores(float *s, const UINT32 *fragments, UINT32 queries, UINT32 keys)
{
    wgmma_begin();
    UNROLL for (int k = 0; k < HEAD / 16; k++)
#if Q_REGISTERS
        WGMMA_RS(BLK_N, OPERAND_KIND, WGMMA_MAJOR_B(0), s, fragments + 4 * k,
                 operand_product(keys, 0, BLK_N, k), k > 0);
#else
        WGMMA(BLK_N, OPERAND_KIND, WGMMA_MAJOR(0, 0), s, operand_product(queries, 0, BLK_M, k),
              operand_product(keys, 0, BLK_N, k), k > 0);
#endif
    wgmma_commit();
}

/* ... of its weights and a block of values. */
DEVICE void attention_sums(float *sums, const UINT32 *weights, UINT32 values)
{
    wgmma_begin();
    UNROLL for (int k = 0; k < BLK_N / 16; k++)
        WGMMA_RS(HEAD, OPERAND_KIND, WGMMA_MAJOR_B(1), sums, weights + 4 * k,
                 operand_product(values, 1, BLK_N, k), 1);
    wgmma_commit();
}

DEVICE void attention_weights(UINT32 *weights, const float *s)
{
    UNROLL for (int k = 0; k < BLK_N / 16; k++)
        acc_to_fragment(weights + 4 * k, s, k);
}

/* Stores `left` elements of row m of the sums, times their share.  Two calls take what a loop over both rows
 * would not keep in registers. */
DEVICE void attention_store(GLOBAL T *o, INDEX step, float *sums, const int below, int lane, int m, int left,
                            float share)
{
    attention_share_row(sums, below, share);
    store_row_vectors(o + (left ? m : 0) * step, sums, SUMS, below, lane, left);
}

/* ---- steps of a warpgroup --------------------------------------------------------------- */

/* The scores of a block, and the values of the block before, which are still being added. */
#define ATTENTION_PRODUCTS()                                                                      \
    do {                                                                                          \
        consumer_wait(k);                                                                         \
        if (WARPGROUPS > 1)                                                                       \
            bar_sync(turn, TURN_ITEMS);                                                           \
        attention_scores(s, fragments, queries_at + q.stage * (BYTES_Q / 16),                     \
                         keys_at + k.stage * (BYTES_K / 16));                                     \
        consumer_wait(v);                                                                         \
        attention_sums(sums, weights, values_at + v.stage * (BYTES_K / 16));                      \
        if (WARPGROUPS > 1)                                                                       \
            bar_arrive(next_turn, TURN_ITEMS);                                                    \
        WGMMA_WAIT(BLK_N, s, "1");                                                                \
        if (releases)                                                                             \
            consumer_release(k);                                                                  \
        k = pipe_next(k, STAGES);                                                                 \
    } while (0)

#define ATTENTION_SUMMED()                                                                        \
    do {                                                                                          \
        WGMMA_WAIT(HEAD, sums, "0");                                                              \
        if (releases)                                                                             \
            consumer_release(v);                                                                  \
        v = pipe_next(v, STAGES);                                                                 \
    } while (0)

/* The first block of the posted tile. */
#define ATTENTION_FIRST_BLOCK()                                                                   \
    ATTENTION_POSTED(t, &posted);                                                                 \
    const int row0 = t.m0 + team * 64, row = t.m0 + acc_first_row(warp, lane);                    \
    const int n0 = (t.block + t.blocks - 1) * BLK_N

#if Q_REGISTERS
#define ATTENTION_FRAGMENTS()                                                                     \
    do {                                                                                          \
        attention_fragments(fragments, tile_q + q.stage * BYTES_Q, warp, lane);                   \
        fence_async_proxy();                                                                      \
        warp_meet();                                                                              \
        if (lane == 0)                                                                            \
            consumer_release(q);                                                                  \
    } while (0)
#else
#define ATTENTION_FRAGMENTS() ((void)0)
#endif

#define ATTENTION_FIRST_WEIGHTS()                                                                 \
    ATTENTION_GENERAL(s, row, n0 + n);                                                            \
    if (online_hides(&sight, row0, n0, BLK_N))                                                    \
        online_hide(s, SCORES, &sight, row, n0 + n);                                              \
    online_update(s, SCORES, max, sum, rescale, factor, 1)

/* Values behind the last are cleared, since 0 times NaN is NaN. */
#define ATTENTION_CLEAR()                                                                         \
    do {                                                                                          \
        if (MORE && given & GIVEN_KEY_LENGTHS && n0 + BLK_N > keys_here) {                        \
            consumer_wait(v);                                                                     \
            attention_clear(stage_v + v.stage * BYTES_K, keys_here - n0, me % 128);               \
            fence_async_proxy();                                                                  \
            bar_sync(1 + WARPGROUPS + team, 128);                                                 \
        }                                                                                         \
    } while (0)

/* The weights of the posted tile's first block, whose scores are handed over alone. */
#define ATTENTION_BEGIN()                                                                         \
    do {                                                                                          \
        ATTENTION_FIRST_BLOCK();                                                                  \
                                                                                                  \
        ATTENTION_FRAGMENTS();                                                                    \
        consumer_wait(k);                                                                         \
        attention_scores(s, fragments, queries_at + q.stage * (BYTES_Q / 16),                     \
                         keys_at + k.stage * (BYTES_K / 16));                                     \
        WGMMA_WAIT(BLK_N, s, "0");                                                                \
        if (releases)                                                                             \
            consumer_release(k);                                                                  \
        k = pipe_next(k, STAGES);                                                                 \
        ATTENTION_FIRST_WEIGHTS();                                                                \
        attention_weights(weights, s);                                                            \
        ATTENTION_CLEAR();                                                                        \
    } while (0)
