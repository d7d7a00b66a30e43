/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.h - what a problem of attention says beside the common part.
 */
#ifndef VERNIER_PROBLEM_ATTENTION_H
#define VERNIER_PROBLEM_ATTENTION_H

#include "check/data.h"

/* Lengths and pages are integers: seen as f32 of the same bits (check/data.h).  The last four are of
 * backward, where out and lse are inputs. */
enum { ATTENTION_Q, ATTENTION_K, ATTENTION_V, ATTENTION_OUT, ATTENTION_MASK, ATTENTION_LSE,
       ATTENTION_SINKS, ATTENTION_KEY_LENGTHS, ATTENTION_QUERY_LENGTHS, ATTENTION_PAGES,
       ATTENTION_D_OUT, ATTENTION_D_Q, ATTENTION_D_K, ATTENTION_D_V, ATTENTION_OPERANDS };
enum attention_mask { NO_SCORE_MASK, MASK_OF_KEYS, MASK_OF_QUERIES, MASK_OF_SCORES };

enum { NO_LENGTH = -1 };

struct attention_problem {
    int64_t   batch, heads, queries, d;
    int64_t   shared, keys, dv;              /* heads and rows of K and V, elements of a value; 0: as of Q */
    int64_t   window;
    int       causal;                        /* vn_causal */
    int       rows_outside;                  /* B x S x H x D in memory */
    int       lse;
    int       sinks;
    enum attention_mask mask;
    double    scale, softcap;                /* 0: as the library has it; none */
    int64_t   page;                          /* keys of one; 0: keys and values are in no pages */
    int64_t   key_length, query_length;      /* of the first batch; those of the others are spread evenly up
                                                to all of them, which the last has; NO_LENGTH: all have all */
} OWN_STRUCT;
OWN_FITS(struct attention_problem);

static inline struct attention_problem *attention_of(const struct problem *p)
{
    return (struct attention_problem *)p->own;
}

/* Of `all`, those of a batch. */
static inline int64_t attention_length(const struct attention_problem *a, int64_t first, int64_t all,
                                       int64_t b)
{
    return first == NO_LENGTH ? all : a->batch > 1 ? first + (all - first) * b / (a->batch - 1) : first;
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

static inline int64_t attention_batch_keys(const struct attention_problem *a, int64_t b)
{
    return attention_length(a, a->key_length, attention_keys(a), b);
}

static inline int64_t attention_batch_queries(const struct attention_problem *a, int64_t b)
{
    return attention_length(a, a->query_length, a->queries, b);
}

/* Of a batch, and of all; the page that has number n of batch b: they are dealt out to the batches. */
static inline int64_t attention_batch_pages(const struct attention_problem *a)
{
    return a->page ? (attention_keys(a) + a->page - 1) / a->page : 0;
}

static inline int64_t attention_page_at(const struct attention_problem *a, int64_t b, int64_t n)
{
    return (attention_batch_pages(a) - 1 - n) * a->batch + b;
}

static inline int64_t attention_dv(const struct attention_problem *a)
{
    return a->dv ? a->dv : a->d;
}

/* At most so many keys where weights are to be exact: their ranks are exact in bf16, too. */
enum { ATTENTION_EXACT_KEYS = 256 };

/* The keys that query i sees: from, and behind the last; keys, queries: those of its batch. */
struct seen { int64_t from, end; };
struct seen attention_seen(const struct attention_problem *a, int64_t i, int64_t keys, int64_t queries);

/* check/suite_attention.c */
void data_fill_attention(struct data *d, enum kind kind);
extern const struct pattern attention_patterns[];
#endif
