/* SPDX-License-Identifier: Apache-2.0
 *
 * trial.h - a problem with random data on one device, for tests that run it many times
 * or in many places and compare what comes out.
 */
#ifndef VERNIER_TRIAL_H
#define VERNIER_TRIAL_H

#include "problem/problem.h"

struct trial {
    struct problem  p;
    struct operands o;
    vn_buffer      *buffers[OPERANDS];
    size_t          bytes;        /* of the (first) output */
};

/* The same text, the same data, whatever the device.  -1 after a sentence on stdout. */
int       trial_open (struct trial *out, vn_device *d, vn_queue *q, const char *text);
void      trial_close(struct trial *t);

/* Runs it into `output` (NULL: its own) and reads that back. */
vn_status trial_run  (void *result, const struct trial *t, vn_queue *q, vn_buffer *output);
#endif
