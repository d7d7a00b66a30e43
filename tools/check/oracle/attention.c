/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.c - attention and its gradients as their definitions say, row by row.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/oracle.h"
#include "problem/attention.h"

/* One row of the output, and what it takes to walk the others. */
struct row {
    const struct oracle            *c;
    const struct attention_problem *a;
    vn_type                         type;
    double                          scale;
    long double                    *score, *off;      /* of each key: its score, and by how much it may be
                                                         off; then its weight, and the same relatively */
    long double                    *slope, *slope_off;  /* of backward: the derivative of the softcap */
};

static long double input(const struct row *r, int i, int64_t b, int64_t h, int64_t s, int64_t d)
{
    const int64_t place[VN_RANK] = { b, h, s, d };

    return r->c->in[i][oracle_offset(&r->c->o->t[i], place)];
}

/* Of lengths, or of the page numbers. */
static int64_t integer(const struct row *r, int i, int64_t b, int64_t n)
{
    return data_integer((double)input(r, i, b, n, 0, 0));
}

static int64_t length(const struct row *r, int i, int64_t b, int64_t all)
{
    const int64_t n = r->c->o->t[i].rank ? integer(r, i, b, 0) : all;

    return n < 0 ? 0 : n < all ? n : all;
}

/* Of key j: of the keys, or of the values. */
static long double stored(const struct row *r, int i, int64_t b, int64_t h, int64_t j, int64_t d)
{
    const int64_t page = r->a->page;

    return page ? input(r, i, integer(r, ATTENTION_PAGES, b, j / page), h, j % page, d)
                : input(r, i, b, h, j, d);
}

/* s = scale Q K^T is a sum of D products, times the scale; a softcap divides, takes a hyperbolic tangent (2 u
 * of it) and multiplies; the mask adds.                                                                    */
static void score(const struct row *r, const int64_t at[VN_RANK], int64_t j)
{
    const struct attention_problem *const a = r->a;
    const int64_t head = at[1] * attention_shared(a) / a->heads;
    const long double u = oracle_unit(r->type);
    long double sum = 0, size = 0, s, off;

    for (int64_t d = 0; d < a->d; d++) {
        const long double v = input(r, ATTENTION_Q, at[0], at[1], at[2], d)
                            * stored(r, ATTENTION_K, at[0], head, j, d);

        sum += v;
        size += fabsl(v);
    }
    s = r->scale * sum;
    off = fabs(r->scale) * (oracle_gamma(r->type, (long double)a->d + 3) * size + oracle_tiny(r->type));
    if (r->slope) {
        const long double t = a->softcap > 0 ? tanhl(s / a->softcap) : 0;

        r->slope[j] = 1 - t * t;
        r->slope_off[j] = a->softcap > 0 ? off / a->softcap + 8 * u : 0;
    }
    if (a->softcap > 0) {
        s = a->softcap * tanhl(s / a->softcap);
        off += 6 * u * fabsl(s) + oracle_tiny(r->type);
    }
    if (r->c->o->t[ATTENTION_MASK].rank) {
        const long double m = input(r, ATTENTION_MASK, at[0], at[1], at[2], j);

        off += u * (fabsl(s) + fabsl(m));
        s += m;
    }
    r->score[j] = s;
    r->off[j] = off;
}

struct stats { long double max, sum, off; int poisoned, has_query; struct seen seen; };

static int has_sink(const struct row *r, const struct stats *s)
{
    return r->c->o->t[ATTENTION_SINKS].rank && s->has_query;
}

static long double sink(const struct row *r, const int64_t at[VN_RANK])
{
    return input(r, ATTENTION_SINKS, at[1], 0, 0, 0);
}

/* off: by how much, relatively, the sum may be off.  A weight is off by what its score is off, by rounding
 * of score - maximum, and 8 u for its exponential in either base; the running sum is rescaled at most once
 * for each key, each time with an exponential of its own. */
static struct stats stats_of(const struct row *r, const int64_t at[VN_RANK])
{
    const int64_t keys = length(r, ATTENTION_KEY_LENGTHS, at[0], attention_keys(r->a));
    const int64_t queries = length(r, ATTENTION_QUERY_LENGTHS, at[0], r->a->queries);
    struct stats s = { -INFINITY, 0, 0, 0, at[2] < queries, attention_seen(r->a, at[2], keys, queries) };

    for (int64_t j = s.seen.from; j < s.seen.end; j++) {
        score(r, at, j);
        s.poisoned |= isnan(r->score[j]) || r->score[j] == INFINITY;
        s.max = r->score[j] > s.max ? r->score[j] : s.max;
    }
    if (has_sink(r, &s)) {
        s.poisoned |= isnan(sink(r, at)) || sink(r, at) == INFINITY;
        s.max = sink(r, at) > s.max ? sink(r, at) : s.max;
    }
    return s;
}

static long double weight(const struct row *r, const struct stats *s, int64_t j, long double *off)
{
    const long double u = oracle_unit(r->type), depth = s->max - r->score[j];
    const long double n = (long double)(s->seen.end - s->seen.from);

    *off = r->score[j] == -INFINITY ? 0
         : expm1l(fminl(r->off[j] + u * (2 * depth + 2 * fabsl(s->max) + 10 * n + 16), 50));
    return r->score[j] == -INFINITY ? 0 : expl(-depth);
}

/* Of 16-bit types a weight may be rounded to the type before it is multiplied by values: relatively by this,
 * and, where it is below the type's normal numbers, by half the least of the others.                      */
static long double rounding_of_weights(vn_type t)
{
    return t == VN_F16 ? 0x1p-11L : t == VN_BF16 ? 0x1p-8L : 0;
}

static long double least_of_weights(vn_type t)
{
    return t == VN_F16 ? 0x1p-25L : 0;
}

static void put(const struct row *r, int i, const int64_t *place, long double value, long double bound)
{
    const int64_t at = oracle_offset(&r->c->o->t[i], place);

    r->c->value[i][at] = value;
    r->c->bound[i][at] = bound;
}

static void lse(const struct row *r, const int64_t at[VN_RANK], const struct stats *s)
{
    const vn_type type = r->c->o->t[ATTENTION_LSE].type;
    const long double v = s->poisoned ? NAN : s->sum > 0 ? s->max + logl(s->sum) : -INFINITY;

    put(r, ATTENTION_LSE, at, v, isfinite(v) ? oracle_stored(type, v, s->off + 4 * oracle_unit(type) *
                                                             (fabsl(v) + fabsl(s->max) + 1)) : 0);
}

static void element(const struct row *r, int64_t at[VN_RANK], int64_t d, const struct stats *s)
{
    const struct attention_problem *const a = r->a;
    const int64_t head = at[1] * attention_shared(a) / a->heads;
    const long double own = rounding_of_weights(r->type), n = (long double)(s->seen.end - s->seen.from);
    const long double gamma = oracle_gamma(r->type, n + 8);
    long double sum = 0, error = 0, size = 0, value;

    for (int64_t j = s->seen.from; j < s->seen.end; j++) {
        const long double w = r->score[j], v = stored(r, ATTENTION_V, at[0], head, j, d);

        sum += w * v;
        size += w * fabsl(v);
        error += w * fabsl(v) * (r->off[j] + own + gamma) + fabsl(v) * least_of_weights(r->type);
    }
    value = s->poisoned ? NAN : s->sum > 0 ? sum / s->sum : 0;
    at[3] = d;
    put(r, ATTENTION_OUT, at, value, !isfinite(value) || s->sum == 0 ? 0
        : oracle_stored(r->type, value, error / s->sum + fabsl(value) * (s->off + own)
                                        + size / s->sum * 4 * oracle_unit(r->type) + oracle_tiny(r->type)));
}

static void row(void *context, int64_t offset, const int64_t where[VN_RANK])
{
    struct row *const r = context;
    int64_t at[VN_RANK];
    struct stats s;
    long double error = 0, off;

    (void)offset;
    memcpy(at, where, sizeof at);
    s = stats_of(r, at);
    for (int64_t j = s.seen.from; j < s.seen.end; j++) {
        const long double w = weight(r, &s, j, &off);

        s.sum += w;
        error += w * (off + oracle_gamma(r->type, (long double)(s.seen.end - s.seen.from) + 8));
        r->score[j] = w;
        r->off[j] = off;
    }
    if (has_sink(r, &s) && sink(r, at) > -INFINITY) {
        const long double w = expl(sink(r, at) - s.max), u = oracle_unit(r->type);

        s.sum += w;                             /* and all before is rescaled once more */
        error += w * u * (2 * (s.max - sink(r, at)) + 2 * fabsl(s.max) + 16) + s.sum * 16 * u;
    }
    s.off = s.sum > 0 ? error / s.sum : 0;
    if (r->a->lse)
        lse(r, at, &s);
    for (int64_t d = 0; d < attention_dv(r->a); d++)
        element(r, at, d, &s);
}

static void forward(struct row *r)
{
    vn_tensor first = r->c->o->t[ATTENTION_OUT];                /* the first element of each row */

    first.extent[3] = first.extent[3] > 1 ? 1 : first.extent[3];
    oracle_each(&first, row, r);
}

/* ---- gradients ---- */

/* Sums of products of weights and rows, of which each weight may be off. */
struct sums { long double *value, *error, *size; };

/* One row of queries: P and dS of each key, and by how much they may be off. */
struct weights { long double *p, *p_off, *ds, *ds_off; };

static int sums_open(struct sums *s, int64_t elements)
{
    s->value = calloc((size_t)(3 * elements + 1), sizeof *s->value);
    s->error = s->value + elements;
    s->size = s->error + elements;
    return s->value ? 0 : -1;
}

static void sums_add(const struct sums *s, int64_t at, long double w, long double off, long double v)
{
    s->value[at] += w * v;
    s->error[at] += off * fabsl(v);
    s->size[at] += fabsl(w * v);
}

/* Element `place` of gradient i: factor times a sum of n products. */
static void put_sum(const struct row *r, int i, const int64_t place[VN_RANK], const struct sums *s,
                    int64_t at, long double factor, long double n)
{
    const long double value = factor * s->value[at];
    const long double error = s->error[at] + oracle_gamma(r->type, n + 8) * s->size[at];

    put(r, i, place, value, !isfinite(value) ? 0
        : oracle_stored(r->type, value, fabsl(factor) * error + (n + 4) * oracle_tiny(r->type)));
}

/* sum dO x, of a row of d_out and one of values or out, and by how much it may be off. */
static long double dot(const struct row *r, const int64_t at[VN_RANK], int i, int64_t head, int64_t row,
                       long double *off)
{
    long double sum = 0, size = 0;

    for (int64_t d = 0; d < attention_dv(r->a); d++) {
        const long double v = input(r, ATTENTION_D_OUT, at[0], at[1], at[2], d)
                            * input(r, i, at[0], head, row, d);

        sum += v;
        size += fabsl(v);
    }
    *off = oracle_gamma(r->type, (long double)attention_dv(r->a) + 3) * size + oracle_tiny(r->type);
    return sum;
}

/* Query `at`.  P is off by what score and lse are off, each in either base, and 16 u for its exponential. */
static struct seen weigh(const struct row *r, const int64_t at[VN_RANK], const struct weights *w)
{
    const struct seen seen = attention_seen(r->a, at[2], attention_keys(r->a), r->a->queries);
    const int64_t head = at[1] * attention_shared(r->a) / r->a->heads;
    const long double u = oracle_unit(r->type), own = rounding_of_weights(r->type);
    const long double least = least_of_weights(r->type) + oracle_tiny(r->type);
    const long double lse = r->c->in[ATTENTION_LSE][oracle_offset(&r->c->o->t[ATTENTION_LSE], at)];
    long double delta_off, dp_off;
    const long double delta = dot(r, at, ATTENTION_OUT, at[1], at[2], &delta_off);

    for (int64_t j = seen.from; j < seen.end; j++) {
        score(r, at, j);

        const long double s = r->score[j], dp = dot(r, at, ATTENTION_V, head, j, &dp_off);
        const long double p = lse == -INFINITY ? 0 : expl(s - lse);
        const long double off = p == 0 ? 0
                              : expm1l(fminl(r->off[j] + u * (4 * fabsl(s) + 4 * fabsl(lse) + 24), 50));
        const long double d = dp - delta;

        w->p[j] = p;
        w->p_off[j] = p * (off + own) + least;
        w->ds[j] = p * d * r->slope[j];
        w->ds_off[j] = p * ((off + own + 6 * u) * fabsl(d) + (1 + off) * (dp_off + delta_off)) * r->slope[j]
                     + p * (1 + off) * fabsl(d) * r->slope_off[j] + least * (1 + fabsl(d));
    }
    return seen;
}

static int is_wanted(const struct row *r, int i) { return is_output(r->c->o, i); }

static void put_query(const struct row *r, const int64_t at[VN_RANK], const struct weights *w,
                      struct seen seen, const struct sums *dq)
{
    const int64_t head = at[1] * attention_shared(r->a) / r->a->heads;
    int64_t place[VN_RANK] = { at[0], at[1], at[2] };

    for (place[3] = 0; place[3] < r->a->d; place[3]++) {
        dq->value[0] = dq->error[0] = dq->size[0] = 0;
        for (int64_t j = seen.from; j < seen.end; j++)
            sums_add(dq, 0, w->ds[j], w->ds_off[j], input(r, ATTENTION_K, at[0], head, j, place[3]));
        put_sum(r, ATTENTION_D_Q, place, dq, 0, r->scale, (long double)(seen.end - seen.from));
    }
}

static void add_keys(const struct row *r, const int64_t at[VN_RANK], const struct weights *w,
                     struct seen seen, const struct sums *dk, const struct sums *dv)
{
    for (int64_t j = seen.from; j < seen.end; j++) {
        for (int64_t d = 0; d < r->a->d; d++)
            sums_add(dk, j * r->a->d + d, w->ds[j], w->ds_off[j],
                     input(r, ATTENTION_Q, at[0], at[1], at[2], d));
        for (int64_t d = 0; d < attention_dv(r->a); d++)
            sums_add(dv, j * attention_dv(r->a) + d, w->p[j], w->p_off[j],
                     input(r, ATTENTION_D_OUT, at[0], at[1], at[2], d));
    }
}

static void put_keys(const struct row *r, int i, int64_t batch, int64_t head, const struct sums *s,
                     int64_t length, long double factor, long double n)
{
    int64_t place[VN_RANK] = { batch, head };

    for (place[2] = 0; place[2] < attention_keys(r->a) && is_wanted(r, i); place[2]++)
        for (place[3] = 0; place[3] < length; place[3]++)
            put_sum(r, i, place, s, place[2] * length + place[3], factor, n);
}

/* The heads of queries that read one head of keys. */
static int backward_head(const struct row *r, int64_t batch, int64_t head, const struct weights *w)
{
    const struct attention_problem *const a = r->a;
    const int64_t group = a->heads / attention_shared(a), keys = attention_keys(a);
    const long double n = (long double)(group * a->queries);
    struct sums dk = { NULL, NULL, NULL }, dv = dk, dq = dk;
    const int failed = sums_open(&dk, keys * a->d) || sums_open(&dv, keys * attention_dv(a)) ||
                       sums_open(&dq, 1);

    for (int64_t h = head * group; h < (head + 1) * group && !failed; h++)
        for (int64_t i = 0; i < a->queries; i++) {
            const int64_t at[VN_RANK] = { batch, h, i };
            const struct seen seen = weigh(r, at, w);

            if (is_wanted(r, ATTENTION_D_Q))
                put_query(r, at, w, seen, &dq);
            if (is_wanted(r, ATTENTION_D_K))
                add_keys(r, at, w, seen, &dk, &dv);
        }
    if (!failed) {
        put_keys(r, ATTENTION_D_K, batch, head, &dk, a->d, r->scale, n);
        put_keys(r, ATTENTION_D_V, batch, head, &dv, attention_dv(a), 1, n);
    }
    free(dk.value);
    free(dv.value);
    free(dq.value);
    return failed;
}

static void backward(struct row *r, size_t keys)
{
    long double *const room = calloc(6 * keys, sizeof *room);
    const struct weights w = { room, room + keys, room + 2 * keys, room + 3 * keys };
    int failed = !room;

    r->slope = room + 4 * keys;
    r->slope_off = room + 5 * keys;
    for (int64_t b = 0; b < r->a->batch && !failed; b++)
        for (int64_t h = 0; h < attention_shared(r->a) && !failed; h++)
            failed = backward_head(r, b, h, &w);
    free(room);
}

void oracle_attention(const struct oracle *c)
{
    const struct attention_problem *const a = attention_of(c->p);
    const size_t keys = (size_t)attention_keys(a) + 1;
    struct row r = { c, a, c->p->type, a->scale == 0 ? 1 / sqrt((double)a->d) : a->scale,
                     malloc(keys * sizeof *r.score), malloc(keys * sizeof *r.off), NULL, NULL };

    if (r.score && r.off && c->p->direction == BACKWARD)
        backward(&r, keys);
    else if (r.score && r.off)
        forward(&r);
    free(r.score);
    free(r.off);
}
