/* SPDX-License-Identifier: Apache-2.0
 *
 * l2norm.c - the Euclidean norm as its definition says.
 */
#include <math.h>

#include "check/oracle.h"
#include "problem/l2norm.h"

/* The sum s is off by e = gamma(n) s, and n squares may be lost as denormals; the root of what is between
 * s - e and s + e is off by the more at s - e.  The root itself is within 3 ulp.                         */
static void norm(const struct oracle *c, int64_t row)
{
    const vn_tensor *const x = &c->o->t[L2NORM_X], *const y = &c->o->t[L2NORM_Y];
    const int64_t n = l2norm_of(c->p)->n, to = y->start + row * y->stride[0];
    const vn_type type = c->p->type;
    long double s = 0;

    for (int64_t j = 0; j < n; j++) {
        const long double v = c->in[L2NORM_X][x->start + row * x->stride[0] + j * x->stride[1]];

        s += v * v;
    }

    const long double e = oracle_gamma(type, n + 2) * s + (n + 1) * oracle_tiny(type), value = sqrtl(s);
    const long double off = value - sqrtl(s > e ? s - e : 0) + 6 * oracle_unit(type) * value;

    c->value[L2NORM_Y][to] = value;
    c->bound[L2NORM_Y][to] = isfinite(value) ? oracle_stored(type, value, fmaxl(off, sqrtl(e))) : 0;
}

void oracle_l2norm(const struct oracle *c)
{
    for (int64_t row = 0; row < l2norm_of(c->p)->rows; row++)
        norm(c, row);
}
