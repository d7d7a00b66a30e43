/* SPDX-License-Identifier: Apache-2.0
 *
 * suite_attention.c - which attentions the suite runs, and on what.
 */
#include <math.h>
#include <string.h>

#include "data.h"
#include "oracle.h"
#include "problem/attention.h"

/* ---- the data ---- */

static double sign(struct random *r) { return random_chance(r, 0.5) ? 1 : -1; }

static void set(struct data *d, int slot, const int64_t place[VN_RANK], int64_t element, double v)
{
    const int64_t at[VN_RANK] = { place[0], place[1], place[2], element };

    data_set(d, slot, oracle_offset(&d->o->t[slot], at), v);
}

/* Of 16-bit types, kernels multiply scores by scale / log 2 and subtract the maximum m in one operation: the
 * largest weight is then within m u of 1, where u is the rounding of f32.  So that this does not show, scores
 * are small where they can be: a key has the bits of its number as elements 1 and -1, a query those of one
 * key that it sees.                                                                                       */
enum { CODE = 8 };

static int is_coded(const struct data *d)
{
    const struct attention_problem *const a = attention_of(d->p);

    return vn_type_bytes(d->p->type) == 2 && a->d >= CODE && !a->mask && a->softcap == 0;
}

static double bit_of(int64_t key, int64_t element) { return key >> element % CODE & 1 ? 1 : -1; }

/* The bits of a key, each in one of the places where keys have it. */
static void fill_code(struct data *d, const int64_t place[VN_RANK], double steep)
{
    const struct attention_problem *const a = attention_of(d->p);
    const struct seen s = attention_seen(a, place[2], attention_batch_keys(a, place[0]),
                                         attention_batch_queries(a, place[0]));
    const int64_t key = s.from + (s.end > s.from ? random_below(&d->random, s.end - s.from) : 0);

    for (int64_t e = 0; e < a->d; e++)
        set(d, ATTENTION_Q, place, e, 0);
    for (int64_t b = 0; b < CODE; b++)
        set(d, ATTENTION_Q, place, b + CODE * random_below(&d->random, (a->d - b + CODE - 1) / CODE),
            steep * bit_of(key, b) * (a->scale < 0 ? -1 : 1));
}

/* Element e of key j of a head, or of its value. */
static void set_stored(struct data *d, int slot, const int64_t head[2], int64_t j, int64_t e, double v)
{
    const struct attention_problem *const a = attention_of(d->p);
    const int64_t page = a->page ? attention_page_at(a, head[0], j / a->page) : head[0];
    const int64_t place[VN_RANK] = { page, head[1], a->page ? j % a->page : j };

    set(d, slot, place, e, v);
}

/* One head of a batch: keys are ranked at random.  A key's first element is its rank, and one of the others 1
 * or -1. */
static void fill_keys(struct data *d, const int64_t head[2])
{
    const struct attention_problem *const a = attention_of(d->p);
    const int64_t n = attention_keys(a);
    short rank[ATTENTION_EXACT_KEYS];

    if (is_coded(d)) {
        for (int64_t j = 0; j < n; j++)
            for (int64_t e = 0; e < a->d; e++)
                set_stored(d, ATTENTION_K, head, j, e, bit_of(j, e));
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        const int64_t other = random_below(&d->random, j + 1);

        rank[j] = rank[other];
        rank[other] = (short)j;
    }
    for (int64_t j = 0; j < n; j++) {
        for (int64_t e = 0; e < a->d; e++)
            set_stored(d, ATTENTION_K, head, j, e, e ? 0 : rank[j]);
        if (a->d > 1)
            set_stored(d, ATTENTION_K, head, j, 1 + random_below(&d->random, a->d - 1), sign(&d->random));
    }
}

/* Each head of each batch. */
static void each_head(struct data *d, void (*fill)(struct data *d, const int64_t head[2]))
{
    const struct attention_problem *const a = attention_of(d->p);
    int64_t head[2];

    for (head[0] = 0; head[0] < a->batch; head[0]++)
        for (head[1] = 0; head[1] < attention_shared(a); head[1]++)
            fill(d, head);
}

/* What lies behind the length of a batch has no influence. */
static void fill_behind(struct data *d, const int64_t head[2])
{
    const struct attention_problem *const a = attention_of(d->p);

    for (int64_t j = attention_batch_keys(a, head[0]); j < attention_keys(a); j++) {
        for (int64_t e = 0; e < a->d; e++)
            set_stored(d, ATTENTION_K, head, j, e, NAN);
        for (int64_t e = 0; e < attention_dv(a); e++)
            set_stored(d, ATTENTION_V, head, j, e, NAN);
    }
}

static void fill_query_behind(void *context, int64_t offset, const int64_t place[VN_RANK])
{
    struct data *const d = context;

    (void)offset;
    if (place[2] >= attention_batch_queries(attention_of(d->p), place[0]))
        for (int64_t e = 0; e < attention_of(d->p)->d; e++)
            set(d, ATTENTION_Q, place, e, NAN);
}

static void fill_integers(struct data *d)
{
    const struct attention_problem *const a = attention_of(d->p);
    const vn_tensor *const t = d->o->t;
    int64_t at[VN_RANK];

    for (at[0] = 0; at[0] < a->batch; at[0]++) {
        at[1] = 0;
        if (t[ATTENTION_KEY_LENGTHS].rank)
            data_set(d, ATTENTION_KEY_LENGTHS, oracle_offset(&t[ATTENTION_KEY_LENGTHS], at),
                     data_number((int32_t)attention_batch_keys(a, at[0])));
        if (t[ATTENTION_QUERY_LENGTHS].rank)
            data_set(d, ATTENTION_QUERY_LENGTHS, oracle_offset(&t[ATTENTION_QUERY_LENGTHS], at),
                     data_number((int32_t)attention_batch_queries(a, at[0])));
        for (; a->page && at[1] < attention_batch_pages(a); at[1]++)
            data_set(d, ATTENTION_PAGES, oracle_offset(&t[ATTENTION_PAGES], at),
                     data_number((int32_t)attention_page_at(a, at[0], at[1])));
    }
}

/* Scores of two keys differ by more than 2 `steep` times the scale: all weights but one are exactly 0, also
 * after a mask of 4 or less.                                                                             */
static void fill_query(void *context, int64_t offset, const int64_t place[VN_RANK])
{
    struct data *const d = context;
    const struct attention_problem *const a = attention_of(d->p);
    const double scale = a->scale == 0 ? 1 / sqrt((double)a->d) : fabs(a->scale);
    const double steep = exp2(ceil(log2((d->p->type == VN_F64 ? 400 : 60) / scale)));
    const double first = sign(&d->random);

    (void)offset;
    if (is_coded(d)) {
        fill_code(d, place, exp2(ceil(log2((d->p->direction == BACKWARD ? 60 : 16) / scale))));
        return;
    }
    for (int64_t e = 0; e < a->d; e++)
        set(d, ATTENTION_Q, place, e,
            e ? steep * (double)(random_below(&d->random, 3) - 1) : 4 * steep * first);
}

static void fill_mask(void *context, int64_t offset, const int64_t place[VN_RANK])
{
    struct data *const d = context;

    (void)place;
    data_set(d, ATTENTION_MASK, offset, random_chance(&d->random, 0.1) ? -INFINITY
                                      : (double)(random_below(&d->random, 9) - 4));
}

/* The first of each run of elements along the last dimensions. */
static vn_tensor firsts(const vn_tensor *t, int dimensions)
{
    vn_tensor first = *t;

    for (int i = t->rank - dimensions; i < t->rank; i++)
        first.extent[i] = first.extent[i] > 1 ? 1 : first.extent[i];
    return first;
}

static int is_even(const struct data *d)
{
    const struct attention_problem *const a = attention_of(d->p);
    const int64_t n = attention_keys(a);

    return d->p->direction == FORWARD && !a->mask && !a->causal && !a->lse && a->key_length == NO_LENGTH &&
           n > 0 && n <= 16 &&
           (n & (n - 1)) == 0;
}

/* Either one key has all the weight; or of a power of two of keys each has the same. */
static void fill_exact(struct data *d)
{
    const struct attention_problem *const a = attention_of(d->p);
    const vn_tensor rows = firsts(&d->o->t[ATTENTION_Q], 1);

    each_head(d, fill_keys);
    if (is_even(d))
        data_value(d, ATTENTION_Q, 0);
    else
        oracle_each(&rows, fill_query, d);
    data_integers(d, ATTENTION_V, d->p->direction == BACKWARD ? 1 : is_even(d) ? 3 : 100);
    if (a->sinks)
        data_value(d, ATTENTION_SINKS, -INFINITY);      /* which adds nothing */
}

static void fill_real(struct data *d)
{
    const double reach = random_chance(&d->random, 0.3) ? 4 : 1;

    data_reals(d, ATTENTION_Q, -reach, reach);
    data_reals(d, ATTENTION_K, -1, 1);
    data_reals(d, ATTENTION_V, -1, 1);
    if (attention_of(d->p)->sinks)
        data_reals(d, ATTENTION_SINKS, -2, 2 * reach);
}

/* ---- what forward leaves, of backward ---- */

static double value_at(const struct data *d, int slot, int64_t b, int64_t h, int64_t s, int64_t e)
{
    const int64_t place[VN_RANK] = { b, h, s, e };

    return d->values[slot][oracle_offset(&d->o->t[slot], place)];
}

static double score_of(const struct data *d, const int64_t at[VN_RANK], int64_t j)
{
    const struct attention_problem *const a = attention_of(d->p);
    const int64_t head = at[1] * attention_shared(a) / a->heads;
    double s = 0;

    for (int64_t e = 0; e < a->d; e++)
        s += value_at(d, ATTENTION_Q, at[0], at[1], at[2], e) * value_at(d, ATTENTION_K, at[0], head, j, e);
    s *= a->scale == 0 ? 1 / sqrt((double)a->d) : a->scale;
    s = a->softcap > 0 ? a->softcap * tanh(s / a->softcap) : s;
    return d->o->t[ATTENTION_MASK].rank ? s + value_at(d, ATTENTION_MASK, at[0], at[1], at[2], j) : s;
}

static struct seen seen_by(const struct data *d, int64_t i)
{
    const struct attention_problem *const a = attention_of(d->p);

    return attention_seen(a, i, attention_keys(a), a->queries);
}

/* Of exact data one key has all the weight, so that lse is its score. */
static void fill_largest(void *context, int64_t offset, const int64_t place[VN_RANK])
{
    struct data *const d = context;
    const struct seen seen = seen_by(d, place[2]);
    double max = -INFINITY;

    for (int64_t j = seen.from; j < seen.end; j++)
        max = fmax(max, score_of(d, place, j));
    data_set(d, ATTENTION_LSE, offset, max);
}

/* One row of out and of lse; scores are small. */
enum { LARGEST_HEAD = 256 };

static void fill_result(void *context, int64_t offset, const int64_t place[VN_RANK])
{
    struct data *const d = context;
    const struct attention_problem *const a = attention_of(d->p);
    const struct seen seen = seen_by(d, place[2]);
    const int64_t head = place[1] * attention_shared(a) / a->heads;
    double sum = 0, out[LARGEST_HEAD] = { 0 };

    for (int64_t j = seen.from; j < seen.end; j++) {
        const double w = exp(score_of(d, place, j));

        sum += w;
        for (int64_t e = 0; e < attention_dv(a); e++)
            out[e] += w * value_at(d, ATTENTION_V, place[0], head, j, e);
    }
    for (int64_t e = 0; e < attention_dv(a); e++)
        set(d, ATTENTION_OUT, place, e, sum > 0 ? out[e] / sum : 0);
    data_set(d, ATTENTION_LSE, offset, sum > 0 ? log(sum) : -INFINITY);
}

void data_fill_attention(struct data *d, enum kind kind)
{
    const vn_tensor rows = firsts(&d->o->t[ATTENTION_Q], 1);

    (kind == EXACT ? fill_exact : fill_real)(d);
    if (d->o->t[ATTENTION_MASK].rank)
        oracle_each(&d->o->t[ATTENTION_MASK], fill_mask, d);
    each_head(d, fill_behind);
    oracle_each(&rows, fill_query_behind, d);
    fill_integers(d);
    if (d->p->direction == FORWARD)
        return;
    if (kind == EXACT) {                        /* any: that makes gradients other than 0 */
        data_integers(d, ATTENTION_D_OUT, 1);
        data_integers(d, ATTENTION_OUT, 1);
    } else {
        data_reals(d, ATTENTION_D_OUT, -1, 1);
    }
    oracle_each(&d->o->t[ATTENTION_LSE], kind == EXACT ? fill_largest : fill_result, d);
}

static int forward(const struct problem *p) { return p->direction == FORWARD; }

/* A weight of 0 times NaN is NaN: of values, and of all where gradients are computed, only where each query
 * sees each key.                                                                                        */
static int sees_all(const struct problem *p)
{
    return !attention_of(p)->causal;
}

static int keeps_apart(const struct problem *p)
{
    return forward(p) || sees_all(p);
}

const struct pattern attention_patterns[] = {
    { "a NaN in the queries",       ATTENTION_Q,    not_a_number, 0, keeps_apart },
    { "an infinity in the queries", ATTENTION_Q,    infinity,     0, forward },
    { "a denormal in the queries",  ATTENTION_Q,    denormal,     0, NULL },
    { "a NaN in the keys",          ATTENTION_K,    not_a_number, 0, keeps_apart },
    { "a NaN in the values",        ATTENTION_V,    not_a_number, 0, sees_all },
    { "a denormal in the values",   ATTENTION_V,    denormal,     0, NULL },
    { "a NaN in the mask",          ATTENTION_MASK, not_a_number, 0, keeps_apart },
    { "a NaN in the sinks",         ATTENTION_SINKS, not_a_number, 0, NULL },
    { "an infinity in the sinks",   ATTENTION_SINKS, infinity,    0, NULL },
    { "all of the mask -infinity",  ATTENTION_MASK, minus_inf,    1, NULL },
    { "a NaN in d_out",             ATTENTION_D_OUT, not_a_number, 0, sees_all },
    { NULL, 0, NULL, 0, NULL }
};

/* ---- the cases ---- */

static const int64_t few[]     = { 1, 2, 3, 5, 8, 16, 17, 24 };
static const int64_t rows[]    = { 1, 2, 3, 7, 16, 31, 32, 33, 63, 64, 65, 97, 127, 128, 129, 200 };
static const int64_t sizes[]   = { 1, 2, 3, 8, 16, 20, 32, 33, 40, 63, 64 };
static const int64_t middle[]  = { 65, 72, 80, 96, 127, 128 };
static const int64_t high[]    = { 130, 160, 192, 200, 256 };
static const int64_t groups[]  = { 1, 1, 2, 3, 4 };
static const int64_t heads[]   = { 1, 1, 2, 3 };
static const int64_t gaps[]    = { 0, 0, 1, 3, 8, 16 };
static const int64_t starts[]  = { 0, 0, 1, 8 };
static const int64_t windows[] = { 0, 0, 1, 5, 64 };
static const double  scales[]  = { 0, 0, 0.3, 1, -0.5 };
static const enum beside besides[] = { APART, APART, APART, APART, BESIDE_ROWS, BESIDE_BLOCKS };
static const enum attention_mask masks[] = { MASK_OF_KEYS, MASK_OF_QUERIES, MASK_OF_SCORES };

/* Multiply-adds of forward, at most: the oracle's time. */
enum { WORK = 1 << 19, WORK_BACKWARD = 1 << 17 };

/* What a kernel is built for: the head size above or up to 64; a mask; a softcap. */
enum form { PLAIN_64, MASKED_64, PLAIN_LARGER, CAPPED_64, FORMS };

static int64_t draw_size(struct random *r, enum form form, int which)
{
    return form != PLAIN_LARGER ? RANDOM_OF(r, sizes) : which ? RANDOM_OF(r, middle) : RANDOM_OF(r, high);
}

/* Few queries and whole vectors: what is decoded from a cache.  Below --full the rows of a head of keys are
 * 2 to 4, for which the kernels are the same.                                                            */
static void draw_decode(struct problem *p, struct random *r, const struct suite *s, enum form form, int which)
{
    static const int64_t whole[] = { 8, 16, 40, 64 }, larger[] = { 72, 96, 128 }, largest[] = { 136, 256 };
    static const int64_t stored[] = { 1, 2, 7, 33, 64, 65, 200, 255 }, steps[] = { 0, 0, 8, 16 };
    struct attention_problem *const a = attention_of(p);
    const int64_t count = s->extent == SUITE_FULL ? 1 + random_below(r, 20) : 2 + random_below(r, 3);

    a->heads   = a->shared * (random_chance(r, 0.3) ? count : 1);
    a->queries = a->heads > a->shared ? 1 : count;
    a->keys    = s->extent == SUITE_SMALL ? RANDOM_OF(r, few) : RANDOM_OF(r, stored);
    a->d = a->dv = form != PLAIN_LARGER ? RANDOM_OF(r, whole) : which ? RANDOM_OF(r, larger)
                 : RANDOM_OF(r, largest);
    p->gap     = RANDOM_OF(r, steps);
    p->start   = RANDOM_OF(r, steps);
}

/* Lengths, pages, sinks.  Below --full only one type has pages where kernels are built for them. */
static void draw_more(struct problem *p, struct random *r, const struct suite *s)
{
    static const int64_t pages[] = { 1, 3, 8, 16 };
    struct attention_problem *const a = attention_of(p);
    const int is_tiled = !strcmp(p->variant, "attention");

    a->sinks = random_chance(r, 0.2);
    if (random_chance(r, 0.25))
        a->key_length = random_below(r, a->keys + 1);
    if (random_chance(r, 0.15))
        a->query_length = random_below(r, a->queries + 1);
    if ((is_tiled || (*p->variant && (s->extent == SUITE_FULL || p->type == VN_BF16))) &&
        random_chance(r, 0.25)) {
        a->page = RANDOM_OF(r, pages);
        a->keys = (a->keys + a->page - 1) / a->page * a->page;
        a->keys = a->keys > ATTENTION_EXACT_KEYS ? a->keys - a->page : a->keys;
    }
}

static int has_more(const struct attention_problem *a)
{
    return a->sinks || a->page || a->key_length != NO_LENGTH || a->query_length != NO_LENGTH;
}

static int is_decode(const char *variant) { return !strncmp(variant, "attention_decode", 16); }

static void draw(struct problem *p, struct random *r, const struct suite *s, enum form form, int which)
{
    struct attention_problem *const a = attention_of(p);
    const int small = s->extent == SUITE_SMALL;
    const int64_t work = p->direction == BACKWARD ? WORK_BACKWARD : WORK;

    do {
        a->batch   = small ? 1 : 1 + random_below(r, 2);
        a->shared  = small ? 1 : RANDOM_OF(r, heads);
        a->heads   = a->shared * (small ? 1 + random_below(r, 2) : RANDOM_OF(r, groups));
        a->queries = small ? RANDOM_OF(r, few) : RANDOM_OF(r, rows);
        a->keys    = small ? RANDOM_OF(r, few) : random_chance(r, 0.3) ? a->queries : RANDOM_OF(r, rows);
        a->d       = draw_size(r, form, which);
        a->dv      = random_chance(r, 0.2) ? draw_size(r, form, which) : a->d;
    } while (a->batch * a->heads * a->queries * a->keys * (a->d + a->dv) > work);
    a->causal  = random_chance(r, 0.5) ? VN_CAUSAL_NONE
               : random_chance(r, 0.6) ? VN_CAUSAL_LAST : VN_CAUSAL_FIRST;
    a->window  = a->causal ? RANDOM_OF(r, windows) : 0;
    a->mask    = form == MASKED_64 ? RANDOM_OF(r, masks) : NO_SCORE_MASK;
    a->softcap = form == CAPPED_64 ? 2 : 0;
    a->lse     = random_chance(r, 0.4) && p->direction == FORWARD;
    a->scale   = RANDOM_OF(r, scales);
    a->rows_outside = random_chance(r, 0.5);
    p->gap     = RANDOM_OF(r, gaps);
    p->start   = RANDOM_OF(r, starts);
    if (is_decode(p->variant))
        draw_decode(p, r, s, form, which);
    if (s->extent != SUITE_SMALL && p->direction == FORWARD)
        draw_more(p, r, s);
    p->beside  = has_more(a) || ((a->lse || p->direction == BACKWARD) && vn_type_bytes(p->type) == 2) ? APART
               : RANDOM_OF(r, besides);
}

/* Below --full each type has some of the forms of decoding: kernels take long to build. */
static enum form form_of(const struct suite *s, vn_type type, const char *variant, enum form form)
{
    static const unsigned some[VN_TYPE_COUNT] = {
        [VN_F32] = 1 << MASKED_64 | 1 << CAPPED_64, [VN_F16] = 1 << PLAIN_LARGER };

    return is_decode(variant) && s->extent != SUITE_FULL && !(some[type] >> form & 1) ? PLAIN_64 : form;
}

/* Whether there are cases of it: some variants compute the one only. */
static int computes(const char *variant, enum direction direction)
{
    const int of_backward = strstr(variant, "backward") != NULL;

    return direction == FORWARD ? !of_backward
         : of_backward || !*variant || strcmp(variant, "attention") == 0;
}

/* Below --full the gradients without an engine have heads up to 64 of f16, and larger ones of f32. */
static int builds(const struct suite *s, enum direction direction, vn_type type, const char *variant,
                  enum form form)
{
    return direction == FORWARD || s->extent == SUITE_FULL || strstr(variant, "backward") ||
           type == (form == PLAIN_LARGER ? VN_F32 : VN_F16);
}

static void draws(struct suite *s, enum direction direction, vn_type type, const char *variant,
                  enum kind kind, int times)
{
    struct random r = { s->seed + kind };
    const int which = s->extent == SUITE_FULL ? -1 : (int)(suite_seed(s, variant, (int)type) & 1);

    if (!suite_begin(s, "attention %s %s %s %s", direction_names[direction], suite_kinds[kind],
                     vn_type_name(type), *variant ? variant : "(chosen)"))
        return;
    for (int i = 0; i < suite_times(s, times); i++) {
        const int forms = s->extent == SUITE_SMALL ? 1 : kind == EXACT ? CAPPED_64 : FORMS;
        const enum form form = form_of(s, type, variant, (enum form)(i % forms));
        struct problem p;

        if (!builds(s, direction, type, variant, form))
            continue;
        problem_usual(&p, &op_attention);
        p.type = type;
        p.direction = direction;
        strcpy(p.variant, variant);
        draw(&p, &r, s, form, which < 0 ? i / FORMS % 2 : which);
        if (kind == EXACT)
            attention_of(&p)->scale = 1;
        suite_case(s, &p, kind);
    }
    suite_end(s);
}

static void specials(struct suite *s, enum direction direction, vn_type type, const char *variant)
{
    static const char *const usual[] = {
        "b1h1s5d7:@",              "b2h4s9d16:@:hk=2:causal:lse",  "b1h2s9d16:@:sk=4:causal:lse",
        "b1h2s9d16:@:sk=4:causal-first", "b1h1s4d8:@:sk=9:mask=full:lse", "b1h2s3d8:@:sk=0:lse",
        "b1h2s0d8:@:sk=5",         "b0h2s3d8:@",                   "b1h0s3d8:@:hk=1",
        "b1h1s1d1:@",              "b1h1s20d12:@:causal:window=4", "b1h3s6d5:@:bshd:gap=3:start=1",
        "b3h2s5d8:@:sk=24:len=0:qlen=2:causal:lse", "b2h2s3d8:@:sk=24:page=8:len=5:sinks:lse:hk=1",
        NULL };
    static const char *const decode_table[] = {
        "b2h4s2d16:@:hk=2:sk=50:causal:lse", "b1h2s4d16:@:sk=2:causal:lse", "b1h2s3d64:@:sk=0:lse",
        "b2h3s2d8:@:sk=33:bshd:gap=8:start=8:causal:window=9", "b1h4s1d24:@:hk=1:sk=1:lse",
        "b3h2s2d16:@:hk=1:sk=48:len=0:qlen=0:causal:sinks:lse", NULL };
    static const char *const backward[] = {
        "b1h1s5d7:@:backward",           "b2h4s9d16:@:backward:hk=2:causal",
        "b1h2s9d16:@:backward:sk=4:causal", "b1h1s4d8:@:backward:sk=9:mask=full",
        "b1h2s0d8:@:backward:sk=5",      "b0h2s3d8:@:backward",
        "b1h0s3d8:@:backward:hk=1",     "b1h1s1d1:@:backward",
        "b1h1s20d12:@:backward:causal:window=4", "b1h3s6d5:@:backward:bshd:gap=3:start=1",
        NULL };
    const char *const *const table = direction == BACKWARD ? backward
                                   : is_decode(variant) ? decode_table : usual;

    if (!suite_begin(s, "attention %s special %s %s", direction_names[direction], vn_type_name(type),
                     *variant ? variant : "(chosen)"))
        return;
    for (int i = 0; table[i]; i++) {
        const char *const at = strchr(table[i], '@');
        char text[PROBLEM_TEXT], why[PROBLEM_TEXT];
        struct problem p;

        snprintf(text, sizeof text, "attention:%.*s%s%s%s%s", (int)(at - table[i]), table[i],
                 vn_type_name(type), at + 1, *variant ? ":variant=" : "", variant);
        if (problem_parse(&p, text, why, sizeof why))
            suite_fault(s, "%s", why);
        else
            suite_case(s, &p, SPECIAL);
    }
    suite_end(s);
}

void suite_attention(struct suite *s)
{
    for (const char *v = suite_next_variant(s, &op_attention, NULL); v;
         v = suite_next_variant(s, &op_attention, v))
        for (int backward = 0; backward < 2; backward++)
            for (int type = 0; type < VN_TYPE_COUNT; type++) {
                const enum direction direction = backward ? BACKWARD : FORWARD;

                if (!computes(v, direction))
                    continue;
                draws(s, direction, (vn_type)type, v, EXACT, backward ? 60 : 120);
                draws(s, direction, (vn_type)type, v, REAL, backward ? 30 : 60);
                if (builds(s, direction, (vn_type)type, v, PLAIN_64))
                    specials(s, direction, (vn_type)type, v);
            }
}
