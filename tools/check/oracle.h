/* SPDX-License-Identifier: Apache-2.0
 *
 * oracle.h - the right answers, by plain loops in long double, and how far a rounded
 * answer may lie from them.
 */
#ifndef VERNIER_ORACLE_H
#define VERNIER_ORACLE_H

#include "problem/op.h"

/* Elements of host memory as numbers.  Storing rounds once, to nearest even. */
double oracle_load (vn_type t, const void *base, int64_t at);
void   oracle_store(vn_type t, void *base, int64_t at, double v);
double oracle_round(vn_type t, double v);
double oracle_largest(vn_type t);                 /* finite */

/* A quiet NaN whose payload tells its index, for guards and gaps. */
void   oracle_store_canary(vn_type t, void *base, int64_t at);

/* Where an element of a view lies: calls visit() for each, with its offset in elements
 * and its place along each dimension.                                                  */
typedef void oracle_visit(void *context, int64_t offset, const int64_t place[VN_RANK]);
void   oracle_each(const vn_tensor *t, oracle_visit *visit, void *context);

int64_t oracle_offset(const vn_tensor *t, const int64_t *place);     /* an extent of 1 repeats */

/* What is asked of the oracle.  in: the operands as numbers.  value, bound: for each element of an output its
 * exact value, and the most by which what is stored may differ from it; what is not of the view stays as it
 * was.  All arrays are indexed as the buffers of the operands are.                                       */
struct oracle {
    const struct problem  *p;
    const struct operands *o;
    const double          *in[OPERANDS];
    long double           *value[OPERANDS], *bound[OPERANDS];      /* of outputs */
};
void   oracle_run(const struct oracle *c);

/* ---- rounding, for the operations ---- */

long double oracle_unit(vn_type t);               /* u of the type that sums: f64, or f32 for the others */
long double oracle_tiny(vn_type t);               /* its smallest normal number */
long double oracle_gamma(vn_type t, long double n);
/* The bound on what is stored, from that on what is computed. */
long double oracle_stored(vn_type t, long double value, long double computed);
#endif
