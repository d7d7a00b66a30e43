/* SPDX-License-Identifier: Apache-2.0
 *
 * l2norm.h - what a problem of l2norm says beside the common part.
 */
#ifndef VERNIER_PROBLEM_L2NORM_H
#define VERNIER_PROBLEM_L2NORM_H

#include "check/data.h"

enum { L2NORM_X, L2NORM_Y };

struct l2norm_problem { int64_t rows, n; } OWN_STRUCT;
OWN_FITS(struct l2norm_problem);

static inline struct l2norm_problem *l2norm_of(const struct problem *p)
{
    return (struct l2norm_problem *)p->own;
}

/* check/suite_l2norm.c */
void data_fill_l2norm(struct data *d, enum kind kind);
extern const struct pattern l2norm_patterns[];
#endif
