/* SPDX-License-Identifier: Apache-2.0
 *
 * series.c - runs in a row, with the device held until all are queued.
 */
#include "core.h"
#include "measure/sampling.h"
#include "series.h"

/* Long enough for a host that is a little slower this time. */
static vn_status hold_for(struct series *s, int repeats)
{
    s->held = s->hold && repeats > 1 && s->device <= 2 * s->host;
    return s->held ? hold_run(s->hold, 1.5 * s->host * repeats) : VN_OK;
}

vn_status series_time(double *seconds, struct series *s, vn_status (*run)(void *state), void *state,
                      int repeats)
{
    struct stopwatch watch;
    vn_status status = hold_for(s, repeats);
    double start;

    if (!status)
        status = stopwatch_start(&watch, s->queue, s->by_events);
    start = vn__seconds();
    for (int i = 0; i < repeats && !status; i++)
        status = run(state);

    const double host = (vn__seconds() - start) / repeats;

    if (status || (status = stopwatch_stop(seconds, &watch)))
        return status;
    if (s->host == 0 || host < s->host)
        s->host = host;
    if (s->device == 0 || *seconds / repeats < s->device)
        s->device = *seconds / repeats;
    return VN_OK;
}
