/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.c - attention as its definition says, row by row.
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

void oracle_attention(const struct oracle *c)
{
    const struct attention_problem *const a = attention_of(c->p);
    const size_t keys = (size_t)attention_keys(a) + 1;
    struct row r = { c, a, c->p->type, a->scale == 0 ? 1 / sqrt((double)a->d) : a->scale,
                     malloc(keys * sizeof *r.score), malloc(keys * sizeof *r.off) };
    vn_tensor first = c->o->t[ATTENTION_OUT];                   /* the first element of each row */

    first.extent[3] = first.extent[3] > 1 ? 1 : first.extent[3];
    if (r.score && r.off)
        oracle_each(&first, row, &r);
    free(r.score);
    free(r.off);
}
