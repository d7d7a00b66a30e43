/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm.h - what a problem of gemm says beside the common part: op(A) is m x k, op(B) k x n.
 */
#ifndef VERNIER_PROBLEM_GEMM_H
#define VERNIER_PROBLEM_GEMM_H

#include "op.h"

enum { TRANS_A = 1, TRANS_B = 2, TRANS_C = 4 };
enum share { SHARE_NONE, SHARE_A, SHARE_B, SHARE_AB };        /* one A, one B for all batches */
enum { GEMM_A, GEMM_B, GEMM_C, GEMM_BIAS, GEMM_RESIDUAL, GEMM_SCALE, GEMM_OPERANDS };

struct gemm_problem {
    int64_t m, n, k, batch;
    int     trans;                           /* bits */
    int     share;                           /* likewise */
    int     packed;                          /* B, beforehand */
    int     to_f32, sides_f32;               /* C, of 16-bit A and B; bias and residual: else of C's type */
    int     residual, scale;                 /* enum bias: what beta multiplies in place of C, and what A B is
                                                multiplied by */
} OWN_STRUCT;
OWN_FITS(struct gemm_problem);

static inline struct gemm_problem *gemm_of(const struct problem *p) { return (struct gemm_problem *)p->own; }

/* Whether all of its operands have the problem's type. */
static inline int gemm_has_one_type(const struct problem *p)
{
    const struct gemm_problem *const g = gemm_of(p);

    return vn_type_bytes(p->type) != 2 ||
           !(g->to_f32 || g->scale || (g->sides_f32 && (p->bias || g->residual)));
}
#endif
