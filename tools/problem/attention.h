/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.h - what a problem of attention says beside the common part.
 */
#ifndef VERNIER_PROBLEM_ATTENTION_H
#define VERNIER_PROBLEM_ATTENTION_H

#include "check/data.h"

enum { ATTENTION_Q, ATTENTION_K, ATTENTION_V, ATTENTION_OUT, ATTENTION_MASK, ATTENTION_LSE,
       ATTENTION_OPERANDS };
enum attention_mask { NO_SCORE_MASK, MASK_OF_KEYS, MASK_OF_QUERIES, MASK_OF_SCORES };

struct attention_problem {
    int64_t   batch, heads, queries, d;
    int64_t   shared, keys, dv;              /* heads and rows of K and V, elements of a value; 0: as of Q */
    int64_t   window;
    int       causal;                        /* vn_causal */
    int       rows_outside;                  /* B x S x H x D in memory */
    int       lse;
    enum attention_mask mask;
    double    scale, softcap;                /* 0: as the library has it; none */
} OWN_STRUCT;
OWN_FITS(struct attention_problem);

static inline struct attention_problem *attention_of(const struct problem *p)
{
    return (struct attention_problem *)p->own;
}

/* The heads of keys and values, the keys, the elements of a value. */
static inline int64_t attention_shared(const struct attention_problem *a)
{
    return a->shared ? a->shared : a->heads;
}

static inline int64_t attention_keys(const struct attention_problem *a)
{
    return a->keys ? a->keys : a->queries;
}

static inline int64_t attention_dv(const struct attention_problem *a)
{
    return a->dv ? a->dv : a->d;
}

/* At most so many keys where weights are to be exact: their ranks are exact in bf16, too. */
enum { ATTENTION_EXACT_KEYS = 256 };

/* The keys that query i sees: from, and behind the last. */
struct seen { int64_t from, end; };
struct seen attention_seen(const struct attention_problem *a, int64_t i);

/* check/suite_attention.c */
void data_fill_attention(struct data *d, enum kind kind);
extern const struct pattern attention_patterns[];
#endif
