/* SPDX-License-Identifier: Apache-2.0
 *
 * conv.h - what a problem of conv says beside the common part: x is images x c x size, w is
 * filters x c/groups x filter, y is images x filters x out.
 */
#ifndef VERNIER_PROBLEM_CONV_H
#define VERNIER_PROBLEM_CONV_H

#include "op.h"

enum { CONV_BIAS = 3, CONV_RESIDUAL };

struct conv_problem {
    int     spatial;                         /* 1, 2 or 3; arrays are filled from the end: [2] is w */
    int     channels_last;
    int64_t images, c, filters, groups;
    int64_t size[3], filter[3], out[3];
    int     stride[3], dilation[3], pad_before[3], pad_after[3];
    int     residual;                        /* enum bias: what beta multiplies in place of the output */
    int     to_f32, sides_f32;               /* the output, of 16-bit inputs; bias and residual */
    int     packed;                          /* the filter, beforehand */
} OWN_STRUCT;
OWN_FITS(struct conv_problem);

static inline struct conv_problem *conv_of(const struct problem *p) { return (struct conv_problem *)p->own; }

/* Whether all of its operands have the problem's type. */
static inline int conv_has_one_type(const struct problem *p)
{
    const struct conv_problem *const c = conv_of(p);

    return vn_type_bytes(p->type) != 2 || !(c->to_f32 || (c->sides_f32 && (p->bias || c->residual)));
}

/* Which operands x, w and y are, by direction. */
extern const int conv_place[BACKWARD_FILTER + 1][3];
#endif
