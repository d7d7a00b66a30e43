/* SPDX-License-Identifier: Apache-2.0
 *
 * softmax.h - what a problem of softmax says beside the common part: batch x outer x n x inner elements in
 * memory, in rows of n; rows = outer x inner.
 */
#ifndef VERNIER_PROBLEM_SOFTMAX_H
#define VERNIER_PROBLEM_SOFTMAX_H

#include "check/data.h"

enum mask { NO_MASK, MASK_ROW, MASK_FULL };
enum { SOFTMAX_MASK = 3 };

struct softmax_problem {
    int64_t   rows, n, batch;
    int64_t   inner;                         /* > 1: the axis is not the last */
    int       log, causal;
    enum mask mask;
    double    scale;
} OWN_STRUCT;
OWN_FITS(struct softmax_problem);

/* check/suite_softmax.c */
void data_fill_softmax(struct data *d, enum kind kind);
extern const struct pattern softmax_patterns[];

static inline struct softmax_problem *softmax_of(const struct problem *p)
{
    return (struct softmax_problem *)p->own;
}
#endif
