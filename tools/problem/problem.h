/* SPDX-License-Identifier: Apache-2.0
 *
 * problem.h - one problem, as the little language of vernier(1) names it.
 *
 *   gemm:MxNxK:TYPE:nn|nt|tn|tt        batch=B share=a|b|ab alpha= beta= bias=row|col|full act=relu|...
 *                                      math=default|tf32|bitwise variant=NAME gap=G start=S packed
 *                                      (a third letter transposes C: nnt; packed: B, beforehand)
 *   conv:nN cC hH wW kK rR sS:TYPE     (without the spaces; 1-D has w and s alone, 3-D adds dD and tT)
 *                                      nchw|nhwc forward|backward-data|backward-filter
 *                                      stride= dil= pad= (one number, or one a dimension: 1x2; pad also
 *                                      before-after: 0-1x2-3) groups= alpha= beta= bias act= ...
 *   softmax:ROWSxN:TYPE                forward|backward log causal mask=full|row scale= inner=I batch=B
 *                                      variant= gap= start=
 *
 * Parts after the type come in any order; what is the usual is left out when
 * written, save nn, nchw and forward of gemm and conv.
 * The tests, check, bench and explain all build their tensors from this struct, so that
 * the line a failure prints reruns exactly that case.
 */
#ifndef VERNIER_PROBLEM_H
#define VERNIER_PROBLEM_H

#include <stdint.h>
#include <stdio.h>
#include "vernier.h"

enum op { GEMM, CONV, SOFTMAX };
enum direction { FORWARD, BACKWARD_DATA, BACKWARD_FILTER, BACKWARD };   /* BACKWARD: of softmax */
enum bias { NO_BIAS, BIAS_ROW, BIAS_COL, BIAS_FULL };   /* gemm: one per column | per row | each; conv: any = per channel */
enum mask { NO_MASK, MASK_ROW, MASK_FULL };

struct problem {
    enum op        op;
    vn_type        type;
    enum direction direction;
    double         alpha, beta;              /* 1 and 0 where not said */
    enum bias      bias;
    vn_activation  act;
    vn_math        math;
    char           variant[32];              /* "" : let the library choose */
    int64_t        gap, start;               /* elements left out between rows, and before the first */

    /* gemm: op(A) is m x k, op(B) k x n */
    int64_t        m, n, k, batch;
    int            trans_a, trans_b, trans_c;
    int            share_a, share_b;         /* one A, one B for all batches */
    int            packed;                   /* B, beforehand */

    /* conv: x is images x c x size, w is filters x c/groups x filter */
    int            spatial;                  /* 1, 2 or 3; the arrays below are filled from the end: [2] is w */
    int64_t        images, c, filters;
    int64_t        size[3], filter[3], out[3];
    int            stride[3], dilation[3], pad_before[3], pad_after[3];
    int            groups;
    int            channels_last;

    /* softmax: rows of n elements, n and batch above; batch x outer x n x inner in memory,
     * rows = outer x inner */
    int64_t        rows, inner;              /* inner > 1: the axis is not the last */
    int            log, causal;
    enum mask      mask;
    double         scale;
};

enum { PROBLEM_TEXT = 256 };

/* 0, or -1 with a sentence in why[] that names the part, what was read and what would be right. */
int    problem_parse(struct problem *out, const char *text, char *why, size_t why_size);
void   problem_format(char text[PROBLEM_TEXT], const struct problem *p);
/* A problem's text for people: without what is usual. */
const char *problem_shown(char out[PROBLEM_TEXT], const char *text);
double problem_flops(const struct problem *p);           /* multiply and add count as two */
double problem_bytes(const struct problem *p);           /* each operand once */

/* The operands of a problem, in the order of the call: gemm A B C; conv forward x w y,
 * backward data dy w dx, backward filter x dy dw; softmax x y or y dy dx.  The third (of
 * softmax forward, the second) is the output.  elements: of the buffer, gaps and start
 * included.  Buffers are NULL: the caller opens them.                                  */
struct operands {
    int       count, output;
    vn_tensor t[3];
    vn_tensor bias;                          /* rank 0: none */
    vn_tensor mask;                          /* rank 0: none */
    int64_t   elements[3], bias_elements, mask_elements;
    vn_pack  *pack;                          /* NULL: none, or not yet made */
};
/* -1 if some size overflows. */
int       problem_operands(struct operands *out, const struct problem *p);

/* Makes the pack that the problem asks for, if it does, of operands filled in; vn_pack_close() it. */
vn_status problem_pack(vn_queue *q, const struct problem *p, struct operands *o);
/* Calls the library with these operands (their buffers filled in). */
vn_status problem_run(vn_queue *q, const struct problem *p, const struct operands *o);
#endif
