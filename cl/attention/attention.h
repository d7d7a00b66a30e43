/* cl/attention/attention.h - what the kernels of attention share: which keys a query sees, and scores
 *
 * out := softmax(s) V along the keys, where s = scale Q K^T; with a softcap, softcap tanh(s / softcap); then
 * plus the mask.  The keys are taken in blocks, with a running maximum and sum of each row: Milakov and
 * Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022.
 *
 * A maximum starts from LOWEST, not from -infinity, and drops NaN: the sum carries NaN, and becomes NaN where
 * the maximum is +infinity.  So a sum of 0 means that a query sees nothing.
 *
 * Takes  R ZERO (cl/types.h); INFINITE tanh_of() (cl/tile/activation.h); HAS_SOFTCAP
 * Gives  GIVEN_* MORE_PARAMS struct sight sight_begin() sight_end() sight_first() sight_behind() capped()
 *        inverse_of() logarithm_of() join_sink()
 */

/* ---- what a call may give beside tensors --------------------------------------------------- */

/* given: bits.  Entry b of gKeyLengths, at vMore.s0 + b vMore.s1, is the number of keys of batch b; of
 * gQueryLengths, at vMore.s2 + b vMore.s3, its queries.  Page n of batch b has the number that gPages has at
 * vMore.s4 + (b keys / page + n) vMore.s5; it is one of `pages` pages of `page` keys.  The sink of head h is
 * at vMore.s6 + h vMore.s7.                                                                            */
#define GIVEN_MASK          1
#define GIVEN_KEY_LENGTHS   2
#define GIVEN_QUERY_LENGTHS 4
#define GIVEN_SINKS         8
#define GIVEN_LAST         16                   /* causal, with the last query at the last key */

#define MORE_PARAMS                                                                              \
    int given, int page, int pages, GLOBAL const int *RESTRICT gKeyLengths,                      \
    GLOBAL const int *RESTRICT gQueryLengths, GLOBAL const int *RESTRICT gPages,                 \
    GLOBAL const R *RESTRICT gSinks, VIEW vMore

/* Entry `at` of lengths, limited to 0 and `most`. */
DEVICE int length_at(GLOBAL const int *lengths, INDEX at, int most)
{
    const int n = lengths[at];

    return n < 0 ? 0 : n > most ? most : n;
}

/* The offset of a batch of so many keys and queries. */
#define OFFSET_OF(keys, queries) (given & GIVEN_LAST ? (keys) - (queries) : offset)

#define KEYS_OF(batch)                                                                           \
    (given & GIVEN_KEY_LENGTHS                                                                   \
     ? length_at(gKeyLengths, (INDEX)vMore.s0 + (batch) * (INDEX)vMore.s1, keys) : keys)
#define QUERIES_OF(batch)                                                                        \
    (given & GIVEN_QUERY_LENGTHS                                                                 \
     ? length_at(gQueryLengths, (INDEX)vMore.s2 + (batch) * (INDEX)vMore.s3, queries) : queries)

/* The page at that place of the table.  A number that is no page's is taken for the nearest. */
DEVICE int page_at(GLOBAL const int *table, INDEX at, int pages)
{
    const int n = table[at];

    return n < 0 ? 0 : n < pages ? n : pages - 1;
}

/* Key n of a batch: its page, and which of that page's keys it is. */
struct place { int page, key; };

#define PLACE_OF(batch, n)                                                                       \
    place_of(n, page, gPages,                                                                    \
             (INDEX)vMore.s4 + ((INDEX)(batch) * (keys / page) + (n) / page) * (INDEX)vMore.s5, pages)

DEVICE struct place place_of(int n, int page, GLOBAL const int *table, INDEX at, int pages)
{
    const struct place place = { page_at(table, at, pages), n % page };

    return place;
}

/* ---- what a query sees ----------------------------------------------------------------------- */

/* Query i stands at the place of key i + offset; causal, it sees that key and those before, of which a window
 * above 0 leaves so many.                                                                              */
struct sight { int keys, causal, offset, window; };

/* The first key that query i sees, and the one behind the last; the same if it sees none. */
DEVICE int sight_begin(const struct sight *s, int i)
{
    const int from = i + s->offset + 1 - s->window;

    return s->causal && s->window && from > 0 ? from : 0;
}

DEVICE int sight_end(const struct sight *s, int i)
{
    const int end = i + s->offset + 1;

    return !s->causal || end > s->keys ? s->keys : end < 0 ? 0 : end;
}

/* The first query that sees key n, and the one behind the last of so many. */
DEVICE int sight_first(const struct sight *s, int n)
{
    return s->causal && n > s->offset ? n - s->offset : 0;
}

DEVICE int sight_behind(const struct sight *s, int n, int queries)
{
    const int behind = n - s->offset + s->window;

    return !s->causal || !s->window || behind > queries ? queries : behind < 0 ? 0 : behind;
}

DEVICE R capped(R s, R softcap)
{
#if HAS_SOFTCAP
    return softcap * tanh_of(s / softcap);
#else
    (void)softcap;
    return s;
#endif
}

/* The factor of a row of sums; and the logarithm of the sum of exponentials. */
DEVICE R inverse_of(R sum)          { return sum == ZERO ? ZERO : (R)1 / sum; }
DEVICE R logarithm_of(R max, R sum) { return sum == ZERO ? ZERO - INFINITE : max + LOG(sum); }

/* The sink of a head joins the sum of a row, whose maximum it may be.  Gives the factor of what was summed
 * with the old one.                                                                                    */
DEVICE R join_sink(R *max, R *sum, R sink)
{
    const R top = MAX(*max, sink), factor = exp_of(*max - top);

    *sum = *sum * factor + exp_of(sink - top);
    *max = top;
    return factor;
}
