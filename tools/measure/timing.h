/* SPDX-License-Identifier: Apache-2.0
 *
 * timing.h - what sampling found out about one contender, and about two of them; as JSON.
 */
#ifndef VERNIER_TIMING_H
#define VERNIER_TIMING_H

#include <jansson.h>
#include "sampling.h"

struct timing { struct summary s; int repeats; double sample[SAMPLES]; };

/* Of samples in the order that they were taken. */
struct timing timing_of(const double *sample, int count, int repeats);
/* {"samples_s", "samples", "repeats", "iterations", "median_s", "interval_s", "coverage"}, and "few" where
 * there are fewer than SAMPLES_FEW.                                                                      */
json_t *timing_json(const struct timing *t);

/* Sample by sample, as far as both have some. */
struct ratio { struct summary s; double it[SAMPLES]; };

struct ratio timing_ratio(const struct timing *over, const struct timing *under);
/* {"ratio", "ratio_interval", "ratio_coverage", "ratios"} */
json_t *ratio_json(const struct ratio *r);

/* sample_in_turns(), watched: where something else disturbed it, once more, and then `why` says what did.
 * machine: the JSON of machine.h, with the clocks of clocks.h.                                          */
struct watched { char why[80]; json_t *machine; };

void sample_watched(struct watched *out, struct runner *r, int count, double seconds, int on_cpu);
#endif

