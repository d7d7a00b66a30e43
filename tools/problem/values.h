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
    void           *operand[3], *bias, *mask;
};

/* -1 after vn_last_error() or, where that is empty, for lack of host memory. */
int    values_open (struct values *out, vn_queue *q, vn_device *d, const struct problem *p);
/* The same numbers on another device; without copies on the host. */
int    values_share(struct values *out, const struct values *from, vn_queue *q, vn_device *d, const struct problem *p);
/* The output's buffer as it was at first; 0, or -1. */
int    values_restore(const struct values *v, const struct values *from, vn_queue *q);
void   values_close(struct values *v);

/* Is there room on the device, and for so many copies of everything on the host?  0, or -1
 * with a sentence in why[].                                                              */
int    values_fit(const vn_device *d, const struct problem *p, int copies, char *why, size_t why_size);
#endif
