/* SPDX-License-Identifier: Apache-2.0
 *
 * op.h - what the command and the tests must know of an operation, and what its file is written with.
 *
 * Who asks for something that differs between operations calls a member of struct op; that way a new
 * operation cannot be taken for an old one.
 */
#ifndef VERNIER_OP_H
#define VERNIER_OP_H

#include <stddef.h>
#include "problem.h"

/* Where a member of the operation's own struct is in struct problem. */
#define OWN(type, member) (offsetof(struct problem, own) + offsetof(type, member))
/* An operation's own struct is seen through problem.own. */
#define OWN_STRUCT __attribute__((may_alias))
#define OWN_FITS(type) \
    _Static_assert(sizeof(type) <= sizeof ((struct problem *)0)->own, "PROBLEM_OWN is too small")

struct vn_operation;
struct word;                                 /* language.h */
struct key;
struct reader;
struct writer;
struct data;                                 /* check/data.h */
struct pattern;
struct oracle;                               /* check/oracle.h */
struct suite;                                /* check/suite.h */
enum kind { EXACT, REAL, SPECIAL, KIND_COUNT };          /* of a case: see suite.h */

/* Where NULL may stand for a function, that is said. */
struct op {
    const char                *name;         /* "gemm" */
    const struct vn_operation *operation;    /* of lib/ */

    /* how a problem is said */
    const struct word *words;
    const struct key  *keys;                 /* its own; those of the epilogue and of all operations follow */
    int                has_epilogue;
    const void        *usual;                /* its own part where nothing is said */
    size_t             own_size;
    unsigned           directions;           /* bits: 1 << FORWARD, ... */
    size_t             batch;                /* where in struct problem bench --batch goes; 0: nowhere */
    int  (*read_sizes)(const struct reader *r, const char *text);
    int  (*complete)  (const struct reader *r);  /* checks the whole, sets what follows from it; or NULL */
    void (*write)     (struct writer *w, const struct problem *p);     /* sizes, type, words, own keys */

    /* how it is run */
    const char *const *operands;             /* their names, for sentences */
    void      (*lay_out)(struct operands *o, const struct problem *p);
    vn_status (*pack)   (vn_queue *q, const struct problem *p, struct operands *o);        /* or NULL */
    /* What element `at` of an operand's buffer is, for a random number in [-1, 1), where speed is measured;
     * NULL: the number itself.                                                                         */
    double    (*element)(const struct problem *p, int operand, int64_t at, double random);
    vn_status (*run)    (vn_queue *q, const struct problem *p, const struct operands *o);

    /* how its speed is told */
    double    (*flops)(const struct problem *p);
    int         by_bytes;                    /* in bytes a second; else in flops */

    /* how it is checked */
    void      (*oracle)  (const struct oracle *c);
    double    (*summands)(const struct problem *p);  /* the most terms summed for one element of an output */
    /* What two right results may differ by, in units of rounding; NULL: as sums of products do. */
    double    (*spread)  (const struct problem *p, double value);
    /* And by how much more at element `at` of an output, where a library rounds a part of the formula to the
     * type before it goes on; in: the operands on the host.  NULL: by nothing.                         */
    double    (*rounded) (const struct problem *p, void *const *in, int64_t at);
    /* The elements of a row of output i that are sums of values with weights, which an engine takes rounded
     * to the type; 0: they are not.  NULL: none are.                                                     */
    int64_t   (*weighted)(const struct problem *p, int i);
    /* to a small part of the outputs */
    void      (*narrow)  (struct problem *p, struct operands *o, int last);
    void      (*shrink)  (struct problem *p, int shape, int even);  /* to one that integers solve exactly */

    /* its cases in the suite */
    void      (*cases)(struct suite *s);
    void      (*fill) (struct data *d, enum kind kind);
    const struct pattern *patterns;          /* unusual numbers */
    int       (*suits)(const struct problem *p, const struct pattern *t);  /* beside pattern.suits; or NULL */
    int         has_zeros;                   /* many zeros in its output are no fault of a case */
    int       (*inexact)(const struct problem *p); /* no operands make its result exact; NULL: some do */
    /* The same problem in other words: extents of 1 for strides of 0, say.  way counts from 1; returns 1
     * where that can be, 0 where not, -1 past the last.  Or NULL.                                      */
    int       (*restate)(struct operands *o, const struct problem *p, int way);
};

/* ops.h lists them: each is a file of this folder, one in check/oracle/, and its cases,
 * check/suite_NAME.c.                                                                  */
#define OP(name)                                \
    extern const struct op op_##name;           \
    void oracle_##name(const struct oracle *c); \
    void suite_##name(struct suite *s);
#include "ops.h"
#undef OP
extern const struct op *const ops[];         /* ends with NULL */
const struct op *op_named(const char *name); /* NULL: there is none */
/* Its place in a list that ends with NULL, or -1: for tables of what some of them have. */
int              op_place(const struct op *const list[], const struct op *op);
/* "gemm, conv, softmax" */
const char      *op_list(char out[128]);
#endif
