/* SPDX-License-Identifier: Apache-2.0
 *
 * problem.h - one problem, as the little language of vernier(1) names it.
 *
 *   gemm:MxNxK:TYPE:nn|nt|tn|tt        batch=B share=a|b|ab alpha= beta= bias=row|col|full act=relu|...
 *                                      residual=row|col|full (beta multiplies it, not C) scale=row|col|full
 *                                      (TYPE bf16>f32: with C of f32; sides=f32: bias and residual)
 *                                      math=default|tf32|bitwise variant=NAME gap=G start=S packed
 *                                      (a third letter transposes C: nnt; packed: B, beforehand)
 *   conv:nN cC hH wW kK rR sS:TYPE     (without the spaces; 1-D has w and s alone, 3-D adds dD and tT)
 *                                      nchw|nhwc forward|backward-data|backward-filter
 *                                      stride= dil= pad= (one number, or one a dimension: 1x2; pad also
 *                                      before-after: 0-1x2-3) groups= alpha= beta= bias act= packed ...
 *   softmax:ROWSxN:TYPE                forward|backward log causal mask=full|row scale= inner=I batch=B
 *                                      variant= gap= start=
 *   cross-entropy:ROWSxCLASSES:TYPE    loss (no gradient) inplace weights lse targets=i32|i64 ignore=CLASS
 *                                      smoothing= zloss= variant= gap= start=
 *   all but that                       beside=rows|blocks (all operands in one buffer, in turns)
 *
 * Parts after the type come in any order; what is the usual is left out when
 * written, save nn, nchw and forward of gemm and conv.
 * The tests, check, bench and explain all build their tensors from this struct, so that
 * the line a failure prints reruns exactly that case.
 *
 * What an operation adds to this is a struct op (op.h), in the file of its name in this folder.
 */
#ifndef VERNIER_PROBLEM_H
#define VERNIER_PROBLEM_H

#include <stdint.h>
#include <stdio.h>
#include "vernier.h"

struct op;

/* "%d row%s", n, PLURAL(n) */
#define PLURAL(n) ((n) == 1 ? "" : "s")

enum direction { FORWARD, BACKWARD_DATA, BACKWARD_FILTER, BACKWARD, DIRECTIONS };
extern const char *const direction_names[DIRECTIONS];
/* gemm: one per column | per row | each; conv: any = per channel */
enum bias { NO_BIAS, BIAS_ROW, BIAS_COL, BIAS_FULL };
/* Each operand in a buffer of its own; or all in one, where their rows alternate, as the columns of one
 * matrix do, or their blocks along the outermost dimension, as the halves of a batch.                  */
enum beside { APART, BESIDE_ROWS, BESIDE_BLOCKS };

enum { PROBLEM_TEXT = 256, PROBLEM_OWN = 32, OPERANDS = 16 };

struct problem {
    const struct op *op;
    vn_type        type;
    enum direction direction;
    char           variant[32];              /* "" : let the library choose */
    int64_t        gap, start;               /* elements left out between rows, and before the first */
    enum beside    beside;

    /* the epilogue of operations that have one: act(alpha product + beta C + bias) */
    double         alpha, beta;              /* 1 and 0 where not said */
    enum bias      bias;
    vn_activation  act;
    vn_math        math;

    int64_t        own[PROBLEM_OWN];         /* sizes and options of the operation: gemm_of() in gemm.h */
};

/* A problem of this operation in which nothing is said yet. */
void   problem_usual(struct problem *out, const struct op *op);

/* 0, or -1 with a sentence in why[] that names the part, what was read and what would be right. */
int    problem_parse(struct problem *out, const char *text, char *why, size_t why_size);
void   problem_format(char text[PROBLEM_TEXT], const struct problem *p);
/* A problem's text for people: without what is usual. */
const char *problem_shown(char out[PROBLEM_TEXT], const char *text);
double problem_flops(const struct problem *p);           /* multiply and add count as two */
double problem_bytes(const struct problem *p);           /* each operand once */

struct amount { double flops, read, written; };            /* the latter two in bytes */
struct amount problem_amount(const struct problem *p);

/* The operands of a problem in the order that its operation names them; one of rank 0 is not there.
 * elements: of the buffer, gaps and start included.  Buffers are NULL: the caller opens them, or one for
 * all, that of operand 0.                                                                         */
struct operands {
    int       count;                         /* no operand is behind these */
    int       in_one;                        /* buffer */
    unsigned  outputs;                       /* bits */
    int       output;                        /* the first of them */
    int       residual;                      /* what beta multiplies in place of the output; 0: none */
    vn_tensor t[OPERANDS];
    int64_t   elements[OPERANDS];
    vn_pack  *pack;                          /* NULL: none, or not yet made */
};
/* -1 if some size overflows. */
int       problem_operands(struct operands *out, const struct problem *p);
static inline int is_output(const struct operands *o, int i) { return o->outputs >> i & 1; }
static inline int home_of(const struct operands *o, int i) { return o->in_one ? 0 : i; }    /* whose buffer */
static inline size_t operand_bytes(const struct operands *o, int i)          /* of its buffer */
{
    return (size_t)o->elements[i] * vn_type_bytes(o->t[i].type);
}

/* Makes the pack that the problem asks for, if it does, of operands filled in; vn_pack_close() it. */
vn_status problem_pack(vn_queue *q, const struct problem *p, struct operands *o);
/* Calls the library with these operands (their buffers filled in). */
vn_status problem_run(vn_queue *q, const struct problem *p, const struct operands *o);
#endif
