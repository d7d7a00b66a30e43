/* SPDX-License-Identifier: Apache-2.0
 *
 * values.h - the data that is measured on: random numbers, uniform in [-1, 1).
 *
 * Never zeros: a processor that multiplies zeros draws less power, and clocks higher.
 */
#ifndef VERNIER_VALUES_H
#define VERNIER_VALUES_H

#include "problem.h"

/* The contents of a problem's buffers on the host, and those buffers on the device. */
struct values {
    struct operands o;                    /* buffers filled in, the pack made */
    void           *operand[OPERANDS];    /* NULL where there is none */
};

/* -1 after vn_last_error() or, where that is empty, for lack of host memory. */
int    values_open (struct values *out, vn_queue *q, vn_device *d, const struct problem *p);
/* The same numbers on another device; without copies on the host. */
int    values_share(struct values *out, const struct values *from, vn_queue *q, vn_device *d,
                    const struct problem *p);
/* The outputs' buffers as they were at first; 0, or -1. */
int    values_restore(const struct values *v, const struct values *from, vn_queue *q);
void   values_close(struct values *v);

/* What the buffers of the outputs hold after a run, on the host. */
struct results { void *of[OPERANDS]; };
/* A copy of `like`, or not yet filled where that is NULL; -1: host memory ran out. */
int    results_open (struct results *out, const struct operands *o, const struct results *like);
/* -1 after vn_last_error() */
int    results_read (const struct results *to, const struct operands *o, vn_queue *q);
int    results_equal(const struct results *a, const struct results *b, const struct operands *o);
void   results_close(struct results *r);

/* Is there room on the device, and for so many copies of everything on the host?  0, or -1
 * with a sentence in why[].                                                              */
int    values_fit(const vn_device *d, const struct problem *p, int copies, char *why, size_t why_size);
/* Of the problems at all[0], all[1] ..., all at once. */
int    values_fit_all(const vn_device *d, const struct problem *const *all, int count, int copies, char *why,
                      size_t why_size);
#endif
