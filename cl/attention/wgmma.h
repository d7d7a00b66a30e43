/* cl/attention/wgmma.h - tiles of queries, and blocks of keys and values, as TMA brings them to wgmma
 *
 * A tile has 64 queries of one head for each warpgroup.  A block has BLK_N keys, or values, of the head that
 * it shares.  All have rows of HEAD elements, in blocks of 64 (cl/tile/operand.h): queries and keys are
 * K-major, values N-major.
 *
 *     scores = queries keys^T           the first operand from registers, or local memory
 *     sums  += weights values           the first operand from registers: the scores' accumulators
 *
 * Tiles are numbered by sections of heads, of which L2 holds the keys and values; those of a section from the
 * last queries, which see the most keys, to the first.
 *
 * Takes: boxes.h; FORM HEAD BLK_N STAGES WARPGROUPS Q_BUFFERS Q_REGISTERS.
 * Gives: MORE GENERAL BYTES_* SCORES SUMS, attention_*(), struct job.
 */
#define MORE      (FORM > 0)                    /* lengths, sinks */
#define GENERAL   (FORM > 1)                    /* and a mask, a softcap */
#define BYTES_Q   (BLK_M * BOXES * 128)
#define BYTES_K   (BLK_N * BOXES * 128)         /* and of values */
#define SCORES    (BLK_N / 2)                   /* of a work-item */
#define SUMS      (HEAD / 2)

/* ---- blocks --------------------------------------------------------------------------- */

/* By a warpgroup, of which this is work-item `me`: rows from `first` on of a block become 0.  What products
 * read of it afterwards needs wgmma_release() and a barrier. */
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
        WGMMA_RS(BLK_N, KIND, WGMMA_MAJOR_B(0), s, fragments + 4 * k, operand_product(keys, 0, BLK_N, k),
                 k > 0);
#else
        WGMMA(BLK_N, KIND, WGMMA_MAJOR(0, 0), s, operand_product(queries, 0, BLK_M, k),
              operand_product(keys, 0, BLK_N, k), k > 0);
#endif
    wgmma_commit();
}

/* ... of its weights and a block of values. */
DEVICE void attention_sums(float *sums, const UINT32 *weights, UINT32 values)
{
    wgmma_begin();
    UNROLL for (int k = 0; k < BLK_N / 16; k++)
        WGMMA_RS(HEAD, KIND, WGMMA_MAJOR_B(1), sums, weights + 4 * k, operand_product(values, 1, BLK_N, k),
                 1);
    wgmma_commit();
}

DEVICE void attention_weights(UINT32 *weights, const float *s)
{
    UNROLL for (int k = 0; k < BLK_N / 16; k++)
        acc_to_fragment(weights + 4 * k, s, k);
}

/* Stores `left` elements of row m of the sums: their share, 0 where no key is seen, since a value may have
 * been NaN.  Two calls take what a loop over both rows would not keep in registers. */
DEVICE void attention_store(GLOBAL T *o, INDEX step, float *sums, const int below, int lane, int m, int left,
                            float share)
{
    UNROLL for (int i = 2 * below; i < SUMS; i += 4) {
        sums[i] = share == 0.0f ? 0.0f : sums[i] * share;
        sums[i + 1] = share == 0.0f ? 0.0f : sums[i + 1] * share;
    }
    store_row_vectors(o + (left ? m : 0) * step, sums, SUMS, below, lane, left);
}

/* ---- tiles ---------------------------------------------------------------------------- */

/* The first query, its head and batch, and the blocks that its tile needs, at least one. */
struct job { int m0, head, batch, block, blocks; };

DEVICE struct job attention_place(int at, int queries, int heads, int all_heads, int section)
{
    const int tiles = (queries + BLK_M - 1) / BLK_M, before = quotient(at, section * tiles) * section;
    const int in = at - before * tiles, here = all_heads - before < section ? all_heads - before : section;
    const int m = quotient(in, here), head = before + in - m * here, batch = quotient(head, heads);
    const struct job job = { (tiles - 1 - m) * BLK_M, head - batch * heads, batch, 0, 1 };

    return job;
}

/* queries: that the batch has. */
DEVICE void attention_blocks(struct job *job, const struct sight *sight, int queries)
{
    const int last = job->m0 + BLK_M < queries ? job->m0 + BLK_M - 1 : queries - 1;
    const int from = sight_begin(sight, job->m0) / BLK_N, to = (sight_end(sight, last) + BLK_N - 1) / BLK_N;

    if (job->m0 < queries && to > from) {
        job->block = from;
        job->blocks = to - from;
    }
}

/* A tile as kernels see it: also sight, keys_here and queries_here. */
#define ATTENTION_JOB(t, at)                                                                     \
    struct job t = attention_place(at, queries, heads, all_heads, section);                      \
    const int keys_here = MORE ? KEYS_OF(t.batch) : keys;                                        \
    const int queries_here = MORE ? QUERIES_OF(t.batch) : queries;                               \
    const int shift = MORE ? OFFSET_OF(keys_here, queries_here) : offset;                        \
    const struct sight sight = { keys_here, CAUSAL, shift, window };                             \
                                                                                                 \
    attention_blocks(&t, &sight, queries_here)
