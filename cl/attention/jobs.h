/* cl/attention/jobs.h - tiles of queries, and the blocks of keys that they see
 *
 * Tiles are numbered by sections of heads, of which L2 holds the keys and values; those of a section from the
 * last queries, which see the most keys, to the first.  The last section has the rest as well: the last tiles
 * of all are short ones.
 *
 * Takes: FORM BLK_M BLK_N CAUSAL; struct sight, MORE_PARAMS and *_OF() of attention.h; quotient().
 * Gives: MORE, struct job, attention_place(), attention_blocks(), ATTENTION_JOB(); struct posted_job,
 *        ATTENTION_POSTED().
 */
#define MORE (FORM > 0)                         /* lengths, sinks */

/* The first query, its head and batch, and the blocks that its tile needs, at least one. */
struct job { int m0, head, batch, block, blocks; };

DEVICE struct job attention_place(int at, int queries, int heads, int all_heads, int section)
{
    const int tiles = (queries + BLK_M - 1) / BLK_M, most = quotient(at, section * tiles) * section;
    const int last = all_heads > section ? (quotient(all_heads, section) - 1) * section : 0;
    const int before = most < last ? most : last, here = before == last ? all_heads - last : section;
    const int in = at - before * tiles;
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

/* What a tile sees: keys_here, queries_here, sight. */
#define ATTENTION_SIGHT(n_keys, n_queries)                                                       \
    const int keys_here = MORE ? (n_keys) : keys, queries_here = MORE ? (n_queries) : queries;   \
    const int shift = MORE ? OFFSET_OF(keys_here, queries_here) : offset;                        \
    const struct sight sight = { keys_here, CAUSAL, shift, window }

/* A tile as kernels see it: also what it sees. */
#define ATTENTION_JOB(t, at)                                                                     \
    struct job t = attention_place(at, queries, heads, all_heads, section);                      \
    ATTENTION_SIGHT(KEYS_OF(t.batch), QUERIES_OF(t.batch));                                      \
                                                                                                 \
    attention_blocks(&t, &sight, queries_here)

/* ... as a producer posts it for the others, whom the divisions would hold up; without blocks: no more. */
struct posted_job { struct job job; int keys, queries; };

#define ATTENTION_POSTED(t, posted)                                                              \
    const struct job t = (posted)->job;                                                          \
    ATTENTION_SIGHT((posted)->keys, (posted)->queries)
