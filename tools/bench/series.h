/* SPDX-License-Identifier: Apache-2.0
 *
 * series.h - times runs in a row on a queue.
 */
#ifndef VERNIER_SERIES_H
#define VERNIER_SERIES_H

#include "roofline.h"

/* Runs of one kind after the other on a queue.  Where a device takes less time for a run than the host takes
 * to queue it, the device first gets something else to do (a hold), so that all runs are queued when the
 * first begins: what is timed is the device alone.                                                     */
struct series {
    vn_queue          *queue;
    int                by_events;
    const struct hold *hold;          /* NULL: none; then short runs take as long as queueing them */
    /* least seconds that a run took so far, to queue and to run; 0 at first */
    double             host, device;
    int                held;          /* the last ones began behind a hold */
};

/* The seconds of all. */
vn_status series_time(double *seconds, struct series *s, vn_status (*run)(void *state), void *state,
                      int repeats);

enum { HELD = 256 };                  /* so many runs to a hold; a driver may not queue many more */
#endif
