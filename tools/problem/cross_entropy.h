/* SPDX-License-Identifier: Apache-2.0
 *
 * cross_entropy.h - what a problem of cross-entropy says beside the common part: rows of `classes` logits.
 */
#ifndef VERNIER_PROBLEM_CROSS_ENTROPY_H
#define VERNIER_PROBLEM_CROSS_ENTROPY_H

#include "check/data.h"

/* Of the operands, targets are integers: seen as f32 of the same bits, two of them for one of 64 bits. */
enum { ENTROPY_X, ENTROPY_TARGETS, ENTROPY_LOSS, ENTROPY_WEIGHTS, ENTROPY_LSE, ENTROPY_DX };
enum { ENTROPY_IGNORED = -100 };             /* the target that is, unless another is said */

struct cross_entropy_problem {
    int64_t rows, classes, ignore;
    double  smoothing, z_loss;
    int     only_loss, in_place, wide_targets, weights, lse;
} OWN_STRUCT;
OWN_FITS(struct cross_entropy_problem);

static inline struct cross_entropy_problem *cross_entropy_of(const struct problem *p)
{
    return (struct cross_entropy_problem *)p->own;
}

/* check/suite_cross_entropy.c */
void data_fill_cross_entropy(struct data *d, enum kind kind);
extern const struct pattern cross_entropy_patterns[];
#endif
