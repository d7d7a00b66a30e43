/* SPDX-License-Identifier: Apache-2.0
 *
 * sampling.h - timing: a stopwatch for a queue, and rounds in which several runners take turns.
 *
 * What disturbs a machine (other work, clocks, heat) then disturbs all runners alike, and
 * the median of the samples forgets the worst of it.
 */
#ifndef VERNIER_SAMPLING_H
#define VERNIER_SAMPLING_H

#include "statistics.h"
#include "vernier.h"

/* On a CPU the wall clock, with the queue finished; else the time between two events. */
struct stopwatch { vn_queue *queue; int by_events; vn_event *from; double start; };

vn_status stopwatch_start(struct stopwatch *s, vn_queue *q, int by_events);
vn_status stopwatch_stop (double *seconds, struct stopwatch *s);

/* One that takes turns. */
struct runner {
    /* Runs `repeats` times and says how many seconds all took; 0, or -1 if it failed. */
    int   (*run)(void *state, int repeats, double *seconds);
    void   *state;

    int     most;                     /* repeats; 0: any number */
    int     least;                    /* samples; 0: one */
    double  length;                   /* seconds that a sample takes at least; 0: 10 ms */
    double  lead;                     /* seconds of its runs before a sample, where one run is long enough */
    int     steady;                   /* 1: before each sample, however short its runs are */
    int     repeats;                  /* in a sample: short runs are repeated, and led ones */
    int     count, failed, led;
    double  once;                     /* seconds of a run, when repeats were found */
    double  sample[SAMPLES];          /* seconds of one run; sample i of all runners is of one round */
    double  mhz[SAMPLES];             /* the clock behind each led sample; 0: not known */
    double  spent, median;
};

/* Samples each of the runners in turn until each has spent its share of the seconds and has its least
 * number of samples, or has spent many times its share.  Rounds go forth and back, and each second one begins
 * with another runner, so that each follows each of the others, and itself, as often.
 *
 * A GPU at its power cap sets its clock by what ran in the last tenth of a second.  Where one run is a
 * sample, that would be another runner: `lead` has each sample follow as many of its own runs, and makes both
 * that long.  One such round goes before those that are recorded.  `steady` ones have samples of the usual
 * length, and count what leads them as spent.                                                            */
void   sample_in_turns(struct runner *r, int count, double seconds);

/* Called after rounds from now on, every 50 ms or less often; NULL: nothing is.  Where it says 1, sampling
 * ends with what there is.                                                                              */
void   sampling_watch(int (*look)(void));
/* Called behind each led sample from now on; says the clock of the device, or 0.  NULL: nobody does. */
void   sampling_clock(double (*mhz)(void));
#endif
