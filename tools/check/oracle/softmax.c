/* SPDX-License-Identifier: Apache-2.0
 *
 * softmax.c - softmax and its gradient as their definitions say.
 */
#include <math.h>
#include <string.h>

#include "check/oracle.h"
#include "problem/softmax.h"

/* One row of it, and what it takes to walk the others. */
struct row {
    const struct oracle          *c;
    const struct softmax_problem *p;
    vn_type                       type;
    int                           axis;           /* dimension */
};

static long double input(const struct row *r, int i, const int64_t *place)
{
    return r->c->in[i][oracle_offset(&r->c->o->t[i], place)];
}

static void output(const struct row *r, int i, const int64_t *place, long double value, long double bound)
{
    const int64_t at = oracle_offset(&r->c->o->t[i], place);

    r->c->value[i][at] = value;
    r->c->bound[i][at] = bound;
}

/* z = scale x + mask of an element; it is off by at most 2 u size: two roundings of
 * scale x (none if scale is a power of two), one of the addition (none without mask). */
static long double logit(const struct row *r, const int64_t *place, long double *size)
{
    const long double x = r->p->scale * input(r, 0, place);
    const long double m = r->c->o->t[SOFTMAX_MASK].rank ? input(r, SOFTMAX_MASK, place) : 0;
    int e;

    *size = (fabs(frexp(r->p->scale, &e)) == 0.5 ? 0 : fabsl(x))
          + (r->c->o->t[SOFTMAX_MASK].rank ? fabsl(x) + fabsl(m) : 0);
    return x + m;
}

static int64_t visible(const struct row *r, const int64_t *place)
{
    return r->p->causal && place[r->axis - 1] + 1 < r->p->n ? place[r->axis - 1] + 1 : r->p->n;
}

struct stats { long double max, sum, size; int poisoned; };

static struct stats row_stats(const struct row *r, int64_t *place, int64_t seen)
{
    struct stats s = { -INFINITY, 0, 0, 0 };
    long double  size, z;

    for (place[r->axis] = 0; place[r->axis] < seen; place[r->axis]++) {
        z = logit(r, place, &size);
        s.poisoned |= isnan(z) || z == INFINITY;
        s.max = z > s.max ? z : s.max;
        s.size = isfinite(size) && size > s.size ? size : s.size;
    }
    for (place[r->axis] = 0; place[r->axis] < seen; place[r->axis]++) {
        z = logit(r, place, &size);
        s.sum += z == -INFINITY ? 0 : expl(z - s.max);
    }
    return s;
}

/* Each z is off by 2 u size, so is the largest; an exponential adds 4 u and the rounding
 * of its argument; a running sum rescales up to n times, 6 u each (an exponential, a
 * product, an addition); the division adds 5 u.  A logarithm turns relative into absolute. */
static long double softmax_bound(const struct row *r, const struct stats *s, long double z, long double y)
{
    const vn_type     t = r->type;
    const long double n = (long double)r->p->n, depth = fabsl(z - s->max);

    if (!isfinite(y) || z == -INFINITY)
        return 0;
    if (r->p->log)
        return oracle_unit(t) * (10 * s->size + 2 * depth + 2 * fabsl(y) + 6 * n + 4 * logl(n) + 12)
             + oracle_tiny(t);
    return oracle_unit(t) * (10 * s->size + depth + 6 * n + 12) * y + 2 * oracle_tiny(t);
}

static void softmax_row(void *context, int64_t at, const int64_t where[VN_RANK])
{
    const struct row *r = context;
    int64_t       place[VN_RANK];
    long double   size;

    (void)at;
    memcpy(place, where, sizeof place);

    const int64_t      seen = visible(r, place);
    const struct stats s = row_stats(r, place, seen);

    for (place[r->axis] = 0; place[r->axis] < r->p->n; place[r->axis]++) {
        const long double z = place[r->axis] < seen ? logit(r, place, &size) : -INFINITY;
        const long double y = s.poisoned && place[r->axis] < seen ? NAN
                            : z == -INFINITY ? (r->p->log ? -INFINITY : 0)
                            : r->p->log ? z - s.max - logl(s.sum) : expl(z - s.max) / s.sum;

        output(r, 1, place, y, z == -INFINITY ? 0 : oracle_stored(r->type, y, softmax_bound(r, &s, z, y)));
    }
}

/* dx = scale y (dy - sum dy y), or scale (dy - exp(y) sum dy): the sum is off by gamma(n)
 * of its size; then a product or an exponential (4), a subtraction, two products.        */
static void backward_row(void *context, int64_t at, const int64_t where[VN_RANK])
{
    const struct row             *r = context;
    const struct softmax_problem *p = r->p;
    int64_t     place[VN_RANK];
    long double sum = 0, size = 0;

    (void)at;
    memcpy(place, where, sizeof place);

    const int64_t seen = visible(r, place);

    for (place[r->axis] = 0; place[r->axis] < seen; place[r->axis]++) {
        const long double y  = input(r, 0, place);
        const long double dy = input(r, 1, place);
        const long double v  = p->log ? dy : dy * y;

        sum  += v;
        size += fabsl(v);
    }
    for (place[r->axis] = 0; place[r->axis] < p->n; place[r->axis]++) {
        const long double y  = input(r, 0, place);
        const long double dy = input(r, 1, place);
        const long double w  = p->log ? expl(y) : 1, outer = p->log ? p->scale : p->scale * y;
        const long double e  = oracle_gamma(r->type, (long double)p->n + 16);
        const int         hidden = place[r->axis] >= seen;
        const long double v = hidden ? 0 : outer * (dy - w * sum);

        const long double bound = e * fabsl(outer) * (fabsl(dy) + w * size)
                                + ((long double)p->n + 4) * 4 * oracle_tiny(r->type);

        output(r, 2, place, v, hidden ? 0 : oracle_stored(r->type, v, bound));
    }
}

void oracle_softmax(const struct oracle *c)
{
    const struct softmax_problem *const p = softmax_of(c->p);
    struct row r = { c, p, c->p->type, c->o->t[0].rank - 1 - (p->inner > 1) };
    vn_tensor  first = c->o->t[0];                              /* the first of each row */

    if (first.extent[r.axis] > 1)
        first.extent[r.axis] = 1;
    oracle_each(&first, c->p->direction == BACKWARD ? backward_row : softmax_row, &r);
}
