/* SPDX-License-Identifier: Apache-2.0
 *
 * sampling.c - timing in turns.
 */
#include <stdlib.h>
#include "core.h"
#include "sampling.h"

static const double SAMPLE_SECONDS = 0.01;   /* unless said; well above the clock's grain */

vn_status stopwatch_start(struct stopwatch *s, vn_queue *q, int by_events)
{
    *s = (struct stopwatch){ .queue = q, .by_events = by_events };
    if (by_events)
        return vn_event_record(&s->from, q);

    const vn_status status = vn_queue_finish(q);

    s->start = vn__seconds();
    return status;
}

vn_status stopwatch_stop(double *seconds, struct stopwatch *s)
{
    vn_event *to = NULL;
    vn_status status;

    if (!s->by_events) {
        status   = vn_queue_finish(s->queue);
        *seconds = vn__seconds() - s->start;
        return status;
    }
    if (!(status = vn_event_record(&to, s->queue)))
        status = vn_event_seconds(seconds, s->from, to);
    vn_event_close(to);
    vn_event_close(s->from);
    return status;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double median_of(double *v, int count)
{
    if (count == 0)
        return 0;
    qsort(v, count, sizeof *v, ascending);
    return count % 2 ? v[count / 2] : (v[count / 2 - 1] + v[count / 2]) / 2;
}

static void take_sample(struct runner *r)
{
    double seconds;

    if (r->run(r->state, r->repeats, &seconds)) {
        r->failed = 1;
        return;
    }
    r->sample[r->count++] = seconds / r->repeats;
    r->spent += seconds;
}

/* The first sample is a single run; from it follows how many make a sample long enough. */
static void calibrate(struct runner *r)
{
    const double length = r->length > 0 ? r->length : SAMPLE_SECONDS;

    r->count = r->failed = 0;
    r->spent = 0;
    r->repeats = 1;
    take_sample(r);
    if (r->failed || r->sample[0] >= length)
        return;

    const double wanted = length / (r->sample[0] > 1e-7 ? r->sample[0] : 1e-7);

    r->repeats = wanted < 1 ? 1 : wanted > 10000 ? 10000 : (int)wanted;
    if (r->most && r->repeats > r->most)
        r->repeats = r->most;
    r->count   = 0;
}

static int is_done(const struct runner *r, double share)
{
    const int least = r->least > 1 ? r->least : 1;

    return r->failed || r->count == SAMPLES || (r->count >= least && r->spent >= share);
}

void sample_in_turns(struct runner *r, int count, double seconds)
{
    const double share = seconds / count;
    int busy = 1;

    for (int i = 0; i < count; i++)
        calibrate(&r[i]);
    for (int round = 0; busy; round++) {
        busy = 0;
        for (int i = 0; i < count; i++) {
            struct runner *const next = &r[(round + i) % count];

            if (is_done(next, share))
                continue;
            take_sample(next);
            busy = 1;
        }
    }
    for (int i = 0; i < count; i++)
        r[i].median = median_of(r[i].sample, r[i].count);
}
