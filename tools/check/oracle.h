/* SPDX-License-Identifier: Apache-2.0
 *
 * oracle.h - the right answers, by plain loops in long double, and how far a rounded
 * answer may lie from them.
 */
#ifndef VERNIER_ORACLE_H
#define VERNIER_ORACLE_H

#include "problem/problem.h"

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

/* The operands as numbers, indexed as the elements of their buffers are. */
struct oracle_inputs { const double *t[3], *bias, *mask; };

/* For each element of the output: its exact value, and the most by which what is stored
 * may differ from it.  Both arrays are indexed as the output's buffer is; what is not of
 * the view stays as it was.                                                            */
void   oracle_run(long double *value, long double *bound, const struct problem *p,
                  const struct operands *o, const struct oracle_inputs *in);
#endif
