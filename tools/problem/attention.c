/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.c - the operation attention, and its gradients.
 */
#include <math.h>

#include "attention.h"
#include "attention/attention.h"
#include "core.h"
#include "language.h"
#include "operands.h"

/* ---- the language ---- */

static const struct name mask_names[] = {
    { "none", NO_SCORE_MASK }, { "keys", MASK_OF_KEYS }, { "queries", MASK_OF_QUERIES },
    { "full", MASK_OF_SCORES }, { NULL, 0 } };

#define AT(member) OWN(struct attention_problem, member)

static const struct word words[] = {
    { "causal",       AT(causal),       VN_CAUSAL_LAST,  0 },
    { "causal-first", AT(causal),       VN_CAUSAL_FIRST, 0 },
    { "bhsd",         AT(rows_outside), 0,               1 },
    { "bshd",         AT(rows_outside), 1,               0 },
    { "lse",          AT(lse),          1,               0 },
    { "sinks",        AT(sinks),        1,               0 },
    { "forward",      offsetof(struct problem, direction), FORWARD,  1 },
    { "backward",     offsetof(struct problem, direction), BACKWARD, 0 },
    { NULL, 0, 0, 0 }
};

static const struct key keys[] = {
    KEY_INTEGER("hk", AT(shared), 0, 1, INT64_MAX),
    KEY_INTEGER("sk", AT(keys), 0, 0, INT64_MAX),
    KEY_INTEGER("dv", AT(dv), 0, 1, INT64_MAX),
    KEY_INTEGER("window", AT(window), 0, 0, INT64_MAX),
    KEY_REAL("scale", AT(scale), 0),
    KEY_REAL("softcap", AT(softcap), 0),
    KEY_NAME("mask", AT(mask), mask_names),
    KEY_INTEGER("len", AT(key_length), NO_LENGTH, 0, INT32_MAX),
    KEY_INTEGER("qlen", AT(query_length), NO_LENGTH, 0, INT32_MAX),
    KEY_INTEGER("page", AT(page), 0, 1, INT32_MAX),
    { .name = NULL }
};

static const struct attention_problem usual = { .batch = 1, .heads = 1, .queries = 1, .d = 1,
                                                .key_length = NO_LENGTH, .query_length = NO_LENGTH };

static int sizes(const struct reader *r, const char *text)
{
    struct attention_problem *const a = attention_of(r->p);
    const struct letter letters[] = {
        { 'b', &a->batch, 1 }, { 'h', &a->heads, 1 }, { 's', &a->queries, 1 }, { 'd', &a->d, 1 },
        { 0, NULL, 0 } };

    return read_letters(r, text, letters, "b2h16s8192d128") < 0 ? -1 : 0;
}

static int has_lse(const struct problem *p)
{
    return attention_of(p)->lse || p->direction == BACKWARD;
}

static int complete(const struct reader *r)
{
    const struct attention_problem *const a = attention_of(r->p);

    if (attention_shared(a) == 0 ? a->heads != 0 : a->heads % attention_shared(a) != 0)
        return wrong(r, "attention: hk=%lld does not divide %lld head%s", (long long)a->shared,
                     (long long)a->heads, PLURAL(a->heads));
    if (a->window && !a->causal)
        return wrong(r, "attention: window=%lld needs causal", (long long)a->window);
    if (a->key_length > attention_keys(a))
        return wrong(r, "attention: len=%lld is more than the %lld keys", (long long)a->key_length,
                     (long long)attention_keys(a));
    if (a->query_length > a->queries)
        return wrong(r, "attention: qlen=%lld is more than the %lld queries", (long long)a->query_length,
                     (long long)a->queries);
    if (a->page && (a->batch < 1 || attention_keys(a) % a->page))
        return wrong(r, "attention: page=%lld needs a batch or more, and a multiple of it as keys, not %lld",
                     (long long)a->page, (long long)attention_keys(a));
    if (r->p->beside && (a->sinks || a->page || a->key_length != NO_LENGTH || a->query_length != NO_LENGTH))
        return wrong(r, "attention: operands in one buffer have one type; sinks, pages, lengths have others");
    if (r->p->direction == BACKWARD &&
        (a->page || a->key_length != NO_LENGTH || a->query_length != NO_LENGTH))
        return wrong(r, "attention: backward takes neither lengths nor pages");
    if (a->lse && r->p->direction == BACKWARD)
        return wrong(r, "attention: lse is always an input of backward; it needs no word");
    if (r->p->beside && has_lse(r->p) && vn_type_bytes(r->p->type) == 2)
        return wrong(r, "attention: operands in one buffer have one type; lse is f32 beside %s",
                     vn_type_name(r->p->type));
    return 0;
}

static void write(struct writer *w, const struct problem *p)
{
    static const char *const causal[] = { [VN_CAUSAL_LAST] = ":causal", [VN_CAUSAL_FIRST] = ":causal-first" };
    const struct attention_problem *const a = attention_of(p);

    write_text(w, "b%lldh%llds%lldd%lld:%s", (long long)a->batch, (long long)a->heads, (long long)a->queries,
               (long long)a->d, vn_type_name(p->type));
    write_text(w, "%s%s%s%s%s", p->direction == BACKWARD ? ":backward" : "",
               a->causal ? causal[a->causal] : "", a->rows_outside ? ":bshd" : "", a->lse ? ":lse" : "",
               a->sinks ? ":sinks" : "");
    write_keys(w, keys, p);
}

/* ---- operands ---- */

static const char *const names[OPERANDS] = {
    "queries", "keys", "values", "out", "the mask", "lse", "the sinks", "the keys' lengths",
    "the queries' lengths", "the pages", "d_out", "d_queries", "d_keys", "d_values" };

static const int gradient_of[ATTENTION_OPERANDS] = {
    [ATTENTION_D_OUT] = ATTENTION_OUT, [ATTENTION_D_Q] = ATTENTION_Q, [ATTENTION_D_K] = ATTENTION_K,
    [ATTENTION_D_V] = ATTENTION_V };

enum { OUTPUTS_BACKWARD = 1 << ATTENTION_D_Q | 1 << ATTENTION_D_K | 1 << ATTENTION_D_V };      /* bits */

/* Of 4 bytes. */
static void integers(struct operands *o, const struct problem *p, int i, int rank, const int64_t *extent)
{
    o->elements[i] = lay_out(&o->t[i], p, rank, extent, NULL);
    o->t[i].type = VN_F32;
}

static void operands(struct operands *o, const struct problem *p)
{
    static const int outside[] = { 0, 2, 1, 3 };
    const struct attention_problem *const a = attention_of(p);
    const int64_t table[] = { a->batch, attention_batch_pages(a) };
    const int64_t stored = a->page ? table[0] * table[1] : a->batch;
    const int64_t extent[][4] = {
        [ATTENTION_Q]   = { a->batch, a->heads, a->queries, a->d },
        [ATTENTION_K]   = { stored, attention_shared(a), a->page ? a->page : attention_keys(a), a->d },
        [ATTENTION_V]   = { stored, attention_shared(a), a->page ? a->page : attention_keys(a),
                            attention_dv(a) },
        [ATTENTION_OUT] = { a->batch, a->heads, a->queries, attention_dv(a) } };
    const int64_t scores[] = { a->batch, a->mask == MASK_OF_KEYS ? 1 : a->heads,
                               a->mask == MASK_OF_KEYS ? 1 : a->queries,
                               a->mask == MASK_OF_QUERIES ? 1 : attention_keys(a) };

    o->outputs = p->direction == BACKWARD ? OUTPUTS_BACKWARD
               : 1u << ATTENTION_OUT | (a->lse ? 1u << ATTENTION_LSE : 0);
    for (int i = ATTENTION_Q; i <= ATTENTION_OUT; i++)
        o->elements[i] = lay_out(&o->t[i], p, 4, extent[i], a->rows_outside ? outside : NULL);
    if (a->mask)
        o->elements[ATTENTION_MASK] = lay_out(&o->t[ATTENTION_MASK], p, 4, scores, NULL);
    for (int i = ATTENTION_D_OUT; i <= ATTENTION_D_V && p->direction == BACKWARD; i++)
        o->elements[i] = lay_out(&o->t[i], p, 4, extent[gradient_of[i]], a->rows_outside ? outside : NULL);
    if (has_lse(p)) {
        o->elements[ATTENTION_LSE] = lay_out(&o->t[ATTENTION_LSE], p, 3, extent[ATTENTION_Q], NULL);
        o->t[ATTENTION_LSE].type = p->type == VN_F64 ? VN_F64 : VN_F32;
    }
    if (a->sinks) {
        o->elements[ATTENTION_SINKS] = lay_out(&o->t[ATTENTION_SINKS], p, 1, &a->heads, NULL);
        o->t[ATTENTION_SINKS].type = p->type == VN_F64 ? VN_F64 : VN_F32;
    }
    if (a->key_length != NO_LENGTH)
        integers(o, p, ATTENTION_KEY_LENGTHS, 1, &a->batch);
    if (a->query_length != NO_LENGTH)
        integers(o, p, ATTENTION_QUERY_LENGTHS, 1, &a->batch);
    if (a->page) {
        struct problem packed = *p;

        packed.gap = 0;
        integers(o, &packed, ATTENTION_PAGES, 2, table);
    }
}

static vn_ints ints_of(const vn_tensor *t)
{
    const int64_t count = t->rank == 2 ? t->extent[0] * t->extent[1] : t->extent[0];

    return (vn_ints){ t->buffer, t->start, count, t->rank == 2 ? 1 : t->stride[0], 4, 0 };
}

static vn_status run(vn_queue *q, const struct problem *p, const struct operands *o)
{
    const struct attention_problem *const a = attention_of(p);
    const vn_attention_options options = {
        .size = sizeof options, .scale = a->scale, .causal = (vn_causal)a->causal, .window = a->window,
        .softcap = a->softcap, .mask = o->t[ATTENTION_MASK], .lse = o->t[ATTENTION_LSE], .math = p->math,
        .sinks = o->t[ATTENTION_SINKS], .key_lengths = ints_of(&o->t[ATTENTION_KEY_LENGTHS]),
        .query_lengths = ints_of(&o->t[ATTENTION_QUERY_LENGTHS]), .pages = ints_of(&o->t[ATTENTION_PAGES]),
        .variant = variant_of(p) };

    if (p->direction == BACKWARD)
        return vn_attention_backward(q, o->t[ATTENTION_Q], o->t[ATTENTION_K], o->t[ATTENTION_V],
                                     o->t[ATTENTION_OUT], o->t[ATTENTION_D_OUT], o->t[ATTENTION_D_Q],
                                     o->t[ATTENTION_D_K], o->t[ATTENTION_D_V], &options);
    return vn_attention(q, o->t[ATTENTION_Q], o->t[ATTENTION_K], o->t[ATTENTION_V], o->t[ATTENTION_OUT],
                        &options);
}

struct seen attention_seen(const struct attention_problem *a, int64_t i, int64_t n, int64_t queries)
{
    const int64_t at = i + (a->causal == VN_CAUSAL_LAST ? n - queries : 0);
    struct seen s = { 0, i < queries ? n : 0 };

    if (!a->causal || i >= queries)
        return s;
    s.end = at + 1 < 0 ? 0 : at + 1 < n ? at + 1 : n;
    s.from = a->window && at + 1 > a->window ? at + 1 - a->window : 0;
    s.from = s.from < s.end ? s.from : s.end;
    return s;
}

/* What is hidden is not counted, and backward counts 2.5 times forward, as in the literature. */
static double flops(const struct problem *p)
{
    const struct attention_problem *const a = attention_of(p);
    double pairs = 0;

    for (int64_t b = 0; b < a->batch; b++) {
        const int64_t n = attention_batch_keys(a, b), queries = attention_batch_queries(a, b);

        pairs += vn__attention_pairs(queries, n, a->causal != VN_CAUSAL_NONE,
                                     a->causal == VN_CAUSAL_LAST ? n - queries : 0, a->window);
    }
    return (p->direction == BACKWARD ? 5 : 2) * (double)a->heads * pairs * (double)(a->d + attention_dv(a));
}

/* Lengths, and which page comes where; as lse the logarithm of a sum of exponentials of as many scores, of
 * random queries and keys. */
static double element(const struct problem *p, int operand, int64_t at, double random)
{
    const struct attention_problem *const a = attention_of(p);
    const int64_t in = at - p->start, each = attention_batch_pages(a);

    switch (operand) {
    case ATTENTION_KEY_LENGTHS:
        return data_number((int32_t)attention_batch_keys(a, in));
    case ATTENTION_QUERY_LENGTHS:
        return data_number((int32_t)attention_batch_queries(a, in));
    case ATTENTION_PAGES:
        return data_number((int32_t)attention_page_at(a, in / each, in % each));
    case ATTENTION_LSE:
        return log((double)attention_keys(a) + 1);
    default:
        return random;
    }
}

/* ---- checks ---- */

static double summands(const struct problem *p)
{
    const struct attention_problem *const a = attention_of(p);

    return (double)(attention_keys(a) + a->d) +
           (p->direction == BACKWARD ? (double)a->heads * (double)a->queries : 0);
}

/* Of the output, weights of values; of the gradients, of rows of queries, keys and d_out. */
static int64_t weighted(const struct problem *p, int i)
{
    const struct attention_problem *const a = attention_of(p);

    if (p->type != VN_F16 && p->type != VN_BF16)
        return 0;
    return i == ATTENTION_OUT || i == ATTENTION_D_V ? attention_dv(a)
         : i == ATTENTION_D_Q || i == ATTENTION_D_K ? a->d : 0;
}

/* Some queries of the heads of one head of keys, of one batch: what is causal keeps those whose index says
 * what they see, the first, or the last that the batch has.  Of backward, which takes no lengths, that is the
 * first part; the last has the gradients of some keys, and all queries.                                  */
static void narrow_attention(struct problem *p, struct operands *o, int last)
{
    enum { ROWS = 4, OF_KEYS = 1 << ATTENTION_K | 1 << ATTENTION_V | 1 << ATTENTION_D_K |
                               1 << ATTENTION_D_V };
    struct attention_problem *const a = attention_of(p);
    const int64_t group = attention_shared(a) ? a->heads / attention_shared(a) : 1;
    const int at_end = a->causal ? a->causal == VN_CAUSAL_LAST : last;
    const struct range b = end_of(a->batch, 1, last), h = end_of(a->heads, group, last),
                       k = end_of(attention_shared(a), 1, last);
    const int by_keys = p->direction == BACKWARD && last;
    const int64_t queries = attention_batch_queries(a, b.from);
    const struct range i = end_of(queries, by_keys ? queries : ROWS, at_end),
                       j = end_of(attention_keys(a), by_keys ? ROWS : attention_keys(a), at_end);

    a->dv = attention_dv(a);
    if (a->key_length != NO_LENGTH)
        a->key_length = attention_batch_keys(a, b.from);
    if (a->query_length != NO_LENGTH)
        a->query_length = i.count;
    for (int at = 0; at < ATTENTION_OPERANDS; at++) {
        const int of_keys = OF_KEYS >> at & 1;

        if (at >= ATTENTION_SINKS && at <= ATTENTION_PAGES)
            continue;
        if (!of_keys || !a->page)
            narrow(&o->t[at], 0, b);
        narrow(&o->t[at], 1, of_keys ? k : h);
        if (!of_keys)
            narrow(&o->t[at], 2, i);
        if (by_keys && (of_keys || at == ATTENTION_MASK))
            narrow(&o->t[at], at == ATTENTION_MASK ? 3 : 2, j);
    }
    narrow(&o->t[ATTENTION_SINKS], 0, h);
    for (int at = ATTENTION_KEY_LENGTHS; at <= ATTENTION_PAGES; at++)
        narrow(&o->t[at], 0, b);
    if (p->direction == BACKWARD)
        o->outputs &= by_keys ? ~(1u << ATTENTION_D_Q) : 1u << ATTENTION_D_Q;
    a->batch   = b.count;
    a->heads   = h.count;
    a->shared  = k.count;
    a->queries = i.count;
    a->keys    = j.count;
}

/* More keys than data can tell apart; a softcap; or a log-sum-exp of scores that the scale
 * rounds.                                                                                               */
static int inexact(const struct problem *p)
{
    const struct attention_problem *const a = attention_of(p);
    const double scale = a->scale == 0 ? 1 / sqrt((double)a->d) : fabs(a->scale);
    int e;

    return attention_keys(a) > ATTENTION_EXACT_KEYS || a->softcap > 0 ||
           (has_lse(p) && frexp(scale, &e) != 0.5);
}

static void shrink(struct problem *p, int shape, int even)
{
    static const int64_t most[SHAPES][2] = { { 131, 131 }, { 37, 251 }, { 3, 255 }, { 259, 67 } };
    struct attention_problem *const a = attention_of(p);
    const int64_t group = attention_shared(a) ? a->heads / attention_shared(a) : 1;

    a->keys    = shrunk(attention_keys(a), most[shape][1], shape, even);
    a->queries = shrunk(a->queries, most[shape][0], shape, even);
    a->shared  = at_most(attention_shared(a), 2);
    a->heads   = group * a->shared;
    a->batch   = at_most(a->batch, 2);
    a->softcap = 0;
    if (a->page) {
        a->page = at_most(a->page, 16);
        a->keys = (a->keys + a->page - 1) / a->page * a->page;
    }
    a->key_length = at_most(a->key_length, a->keys);
    a->query_length = at_most(a->query_length, a->queries);
}

const struct op op_attention = {
    .name = "attention", .operation = &vn__attention,
    .words = words, .keys = keys, .usual = &usual, .own_size = sizeof usual,
    .directions = 1u << FORWARD | 1u << BACKWARD, .batch = AT(batch),
    .read_sizes = sizes, .complete = complete, .write = write,
    .operands = names, .lay_out = operands, .run = run, .element = element,
    .flops = flops,
    .oracle = oracle_attention, .summands = summands, .weighted = weighted,
    .narrow = narrow_attention, .shrink = shrink,
    .cases = suite_attention, .fill = data_fill_attention, .patterns = attention_patterns, .has_zeros = 1,
    .inexact = inexact,
};
