/* SPDX-License-Identifier: Apache-2.0
 *
 * cross_entropy.c - cross-entropy and its gradient as their definitions say.
 */
#include <math.h>

#include "check/oracle.h"
#include "problem/cross_entropy.h"

/* A row: where it is, and its target; known: it is a class.  e: by what share the sum of exponentials may be
 * off: each of them by 2 u for its argument's rounding and 5 u of its own, and a running sum rescales up to
 * n times, 6 u each.                                                                                      */
struct row {
    const struct oracle                *c;
    const struct cross_entropy_problem *p;
    int64_t     at, target;
    int         known, ignored;
    long double max, sum, all, size, lse, u, e, weight;
};

static long double logit(const struct row *r, int64_t j)
{
    const int64_t place[2] = { r->at, j };

    return r->c->in[ENTROPY_X][oracle_offset(&r->c->o->t[ENTROPY_X], place)];
}

static void read_target(struct row *r)
{
    const vn_tensor *const t = &r->c->o->t[ENTROPY_TARGETS];
    const double *const in = r->c->in[ENTROPY_TARGETS] + t->start + r->at * t->stride[0];
    const int64_t low = data_integer(in[0]);

    r->target = t->extent[1] == 1 ? low
              : (int64_t)((uint64_t)(uint32_t)data_integer(in[1]) << 32 | (uint32_t)low);
    r->ignored = r->target == (r->p->ignore ? r->p->ignore : ENTROPY_IGNORED);
    r->known = !r->ignored && r->target >= 0 && r->target < r->p->classes;
}

static void reduce(struct row *r)
{
    int poisoned = 0;

    r->max = -INFINITY;
    r->sum = r->all = r->size = 0;
    for (int64_t j = 0; j < r->p->classes; j++) {
        const long double x = logit(r, j);

        poisoned |= isnan(x) || x == INFINITY;
        r->max = x > r->max ? x : r->max;
        r->all += x;
        r->size += fabsl(x);
    }
    for (int64_t j = 0; j < r->p->classes; j++)
        r->sum += logit(r, j) == -INFINITY ? 0 : expl(logit(r, j) - r->max);
    r->lse = poisoned ? NAN : r->max + logl(r->sum);
}

/* Values and bounds of a number of a row. */
static void output(const struct row *r, int slot, long double value, long double bound)
{
    const vn_tensor *const t = &r->c->o->t[slot];
    const int64_t at = t->start + r->at * t->stride[0];

    r->c->value[slot][at] = value;
    r->c->bound[slot][at] = isfinite(value) ? oracle_stored(t->type, value, bound) : 0;
}

static long double lse_bound(const struct row *r)
{
    return r->e + r->u * (8 * fabsl(logl(r->sum)) + 4 * fabsl(r->lse) + 4 * fabsl(r->max))
         + oracle_tiny(r->c->p->type);
}

/* Neither the target nor the logits give it one. */
static int has_no_loss(const struct row *r)
{
    return !r->known || isnan(r->lse) || r->lse == -INFINITY;
}

static void write_loss(const struct row *r)
{
    const long double n = (long double)r->p->classes, s = r->p->smoothing, z = r->p->z_loss;
    const long double x = r->known ? logit(r, r->target) : 0;
    const long double value = r->lse - (s == 1 ? 0 : (1 - s) * x) + (s != 0 ? -s / n * r->all : 0)
                            + z * r->lse * r->lse;
    const long double size = fabsl(r->lse) + fabsl(x) + fabsl(z) * r->lse * r->lse;
    const long double bound = lse_bound(r) * (1 + 2 * fabsl(z * r->lse)) + 12 * r->u * size
                            + (s != 0 ? s / n * r->size * (oracle_gamma(r->c->p->type, n) + 8 * r->u) : 0);

    output(r, ENTROPY_LOSS, r->ignored ? 0 : has_no_loss(r) ? NAN : r->weight * value,
           r->ignored ? 0 : fabsl(r->weight) * bound + oracle_tiny(r->c->p->type));
}

static void write_gradient(const struct row *r, int slot)
{
    const long double n = (long double)r->p->classes, s = r->p->smoothing, z = r->p->z_loss;
    const long double rise = 1 + 2 * z * r->lse;
    const vn_tensor *const t = &r->c->o->t[slot];

    for (int64_t j = 0; j < r->p->classes; j++) {
        const int64_t place[2] = { r->at, j }, at = oracle_offset(t, place);
        const long double x = logit(r, j), depth = fabsl(x - r->max);
        const long double e = x == -INFINITY ? 0 : expl(x - r->max) / r->sum;
        const long double others = s / n + (j == r->target ? 1 - s : 0);
        const long double value = r->ignored ? 0 : has_no_loss(r) ? NAN : r->weight * (rise * e - others);
        const long double risen = 2 * fabsl(z) * (lse_bound(r) + 4 * r->u * fabsl(r->lse));
        const long double bound = e > 0 ? e * (fabsl(rise) * (r->e + r->u * (3 * depth + 16)) + risen) : 0;

        r->c->value[slot][at] = value;
        r->c->bound[slot][at] = !isfinite(value) || r->ignored ? 0
            : oracle_stored(t->type, value,
                            fabsl(r->weight) * (bound + 8 * r->u * (others + fabsl(rise) * e))
                            + 4 * (1 + fabsl(r->weight * rise)) * oracle_tiny(r->c->p->type));
    }
}

void oracle_cross_entropy(const struct oracle *c)
{
    const struct cross_entropy_problem *const p = cross_entropy_of(c->p);
    const vn_tensor *const w = &c->o->t[ENTROPY_WEIGHTS];
    struct row r = { .c = c, .p = p, .u = oracle_unit(c->p->type) };

    r.e = r.u * (6 * (long double)p->classes + 20);
    for (r.at = 0; r.at < p->rows; r.at++) {
        r.weight = w->rank ? c->in[ENTROPY_WEIGHTS][w->start + r.at * w->stride[0]] : 1;
        read_target(&r);
        reduce(&r);
        write_loss(&r);
        if (p->lse)
            output(&r, ENTROPY_LSE, r.lse, lse_bound(&r));
        if (!p->only_loss)
            write_gradient(&r, p->in_place ? ENTROPY_X : ENTROPY_DX);
    }
}
