/* cl/attention/jobs.h - tiles of queries, and the blocks of keys that they see
 *
 * Tiles are numbered by sections of heads, of which L2 holds the keys and values; those of a section from the
 * last queries, which see the most keys, to the first.
 *
 * Takes: FORM BLK_M BLK_N CAUSAL; struct sight, MORE_PARAMS and *_OF() of attention.h; quotient().
 * Gives: MORE, struct job, attention_place(), attention_blocks(), ATTENTION_JOB().
 */
#define MORE (FORM > 0)                         /* lengths, sinks */

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
