/* SPDX-License-Identifier: Apache-2.0
 *
 * operands.h - what an operation makes the views of its operands with, and those of parts of them.
 */
#ifndef VERNIER_OPERANDS_H
#define VERNIER_OPERANDS_H

#include "op.h"

/* A view whose dimensions lie in memory in the order of `order` (NULL: as they are), the last with stride 1;
 * p->gap elements are left out after each row of that, p->start before the first.  Returns the elements of
 * its buffer, or -1 if they overflow.                                                                  */
int64_t lay_out(vn_tensor *t, const struct problem *p, int rank, const int64_t *extent, const int *order);
/* Of the extents of `like`, those in `keep` (bits, from the last dimension) and 1 for the others: a bias or
 * mask that repeats.                                                                                   */
int64_t lay_out_part(vn_tensor *t, const struct problem *p, const vn_tensor *like, unsigned keep);
/* Moves operands that were laid out into one buffer, as p->beside says; -1 if they overflow. */
int put_beside(struct operands *o, const struct problem *p);
/* p->variant, as options want it. */
const char *variant_of(const struct problem *p);

/* A range of one dimension: of what spot.c checks. */
struct range { int64_t from, count; };
struct range end_of(int64_t extent, int64_t most, int last);
/* Dimension d to a range of it.  One that repeats, or is not there, stays as it is. */
void    narrow(vn_tensor *t, int d, struct range r);

/* Sizes that tune checks rows on.  Rows are for other sizes than those tuned for too: what is small already
 * is odd in some shape.                                                                                */
enum { SHAPES = 4 };
int64_t shrunk(int64_t size, int64_t most, int shape, int even);
int64_t at_most(int64_t size, int64_t most);
/* v where products with it are exact, or else `usual` */
double  tame(double v, double usual);
#endif
