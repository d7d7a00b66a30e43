/* SPDX-License-Identifier: Apache-2.0
 *
 * model.h - what `vernier tune` measures for the library's model of time: rates, costs, and pins.
 */
#ifndef VERNIER_MODEL_H
#define VERNIER_MODEL_H

#include "choice.h"
#include "tune.h"

struct model {
    struct bench            bench;
    const struct workloads *work;
    const char             *path;         /* the user's file */
    FILE                   *to;
    json_t                 *rows;         /* of the report */
};

/* 0, or the exit status after a sentence on stderr. */
int  model_open (struct model *m, const char *device);
void model_close(struct model *m);

/* Each measures, prints, and writes into the user's file; an exit status. */
typedef int model_measure(struct model *m);
model_measure model_rates, model_costs, model_pins;

/* Times all plans of each problem, so many samples of each, and gives them to `take`, while the queue's last
 * problem is that one, though its operands are closed.  An exit status: that of the first `take` that is not
 * 0, or EXIT_FAILURE if a measurement failed or it was interrupted.                                        */
typedef int model_take(struct model *m, void *state, const struct workload *w, const struct candidates *c);
int  model_each(struct model *m, int samples, model_take *take, void *state);

/* ---- gauges.c: single rates of a device; 0: it could not be told ---- */

vn_status gauge_launch(double *seconds, struct bench *b);
/* Bytes a second of copies that stay in a cache, and how many bytes those may touch; memory: the rate of
 * those that do not stay.                                                                               */
vn_status gauge_cache(double *rate, double *bytes, vn_queue *q, double memory);
/* What a matrix engine does: the rate at which the model of a plan tells the time that it takes.  text: of a
 * problem behind its sizes, as "f16:nt"; rates: the others of the device; engine: which of them is sought. */
vn_status gauge_engine(double *rate, struct bench *b, const char *text, const struct vn_rates *rates,
                       size_t engine);
#endif
