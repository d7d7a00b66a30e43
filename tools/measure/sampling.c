/* SPDX-License-Identifier: Apache-2.0
 *
 * sampling.c - timing in turns.
 */
#include <stdlib.h>
#include "core.h"
#include "sampling.h"

enum { MOST_REPEATS = 1 << 14, LOOKS = 3 };

static const double SAMPLE_SECONDS = 0.01;   /* unless said; well above the clock's grain */
static const double OVERTIME       = 10;     /* shares of the time, for the least number of samples */
static const double WATCH_SECONDS  = 0.05;

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

static int run_once(struct runner *r, double *seconds)
{
    r->failed = r->run(r->state, r->repeats, seconds) != 0;
    return r->failed;
}

/* Where the clock depends on what ran last, the same runs go before those that are recorded. */
static int run_sample(struct runner *r, double *seconds)
{
    double before = 0;

    if (r->led)
        do {
            if (run_once(r, seconds))
                return -1;
            before += *seconds;
        } while (r->steady && before < r->lead);
    if (r->steady)
        r->spent += before;
    return run_once(r, seconds) ? -1 : 0;
}

static double (*clock_now)(void);

void sampling_clock(double (*mhz)(void))
{
    clock_now = mhz;
}

static void take_sample(struct runner *r)
{
    double seconds;

    if (run_sample(r, &seconds))
        return;
    r->mhz[r->count] = r->led && clock_now ? clock_now() : 0;
    r->sample[r->count++] = seconds / r->repeats;
    r->spent += seconds;
}

/* Is a sample of so many repeats long enough?  The fastest of several must be: another process may have had
 * the processor during one.  One that takes all the time there is needs no second.                        */
static int is_long_enough(struct runner *r, double length, double share)
{
    const double patience = share > 0 ? share : 10 * length;
    double seconds = 0;

    for (int i = 0; i < LOOKS && (i == 0 || seconds < patience); i++) {
        if (r->run(r->state, r->repeats, &seconds)) {
            r->failed = 1;
            return 1;
        }
        r->once = seconds / r->repeats;
        if (seconds < length)
            return 0;
    }
    return 1;
}

static void calibrate(struct runner *r, double share)
{
    const int most = r->most ? r->most : MOST_REPEATS;

    r->count = r->failed = r->led = 0;
    r->spent = 0;
    r->repeats = 1;
    while (r->repeats < most && !is_long_enough(r, r->length > 0 ? r->length : SAMPLE_SECONDS, share))
        r->repeats = r->repeats < most / 2 ? 2 * r->repeats : most;
    if (r->steady) {
        r->led = r->lead > 0;
    } else if (r->repeats == 1 && r->lead > 0 && !r->failed) {
        r->led = 1;
        while (r->repeats < most && r->repeats * r->once < r->lead)
            r->repeats++;
    }
}

static int is_done(const struct runner *r, double share)
{
    const int least = r->least > 1 ? r->least : 1;

    return r->failed || r->count == SAMPLES || (r->count >= least && r->spent >= share)
        || (r->count > 0 && share > 0 && r->spent >= OVERTIME * share);
}

/* The one whose turn it is: forth in even rounds, back in odd ones. */
static struct runner *in_turn(struct runner *r, int count, int round, int i)
{
    return &r[(round / 2 + (round % 2 ? count - 1 - i : i)) % count];
}

/* A round that is not recorded: a GPU that was idle lowers its clocks while it heats up. */
static void settle(struct runner *r, int count)
{
    double seconds;

    for (int i = 0; i < count; i++)
        if (r[i].led && !r[i].failed)
            run_sample(&r[i], &seconds);
}

static int (*watch)(void);

void sampling_watch(int (*look)(void))
{
    watch = look;
}

void sample_in_turns(struct runner *r, int count, double seconds)
{
    const double share = seconds / count;
    double watched = 0;
    int busy = 1;

    for (int i = 0; i < count; i++)
        calibrate(&r[i], share);
    settle(r, count);
    for (int round = 0; busy; round++) {
        busy = 0;
        for (int i = 0; i < count; i++) {
            struct runner *const next = in_turn(r, count, round, i);

            if (is_done(next, share))
                continue;
            take_sample(next);
            busy = 1;
        }
        if (watch && vn__seconds() - watched >= WATCH_SECONDS) {
            busy   &= !watch();
            watched = vn__seconds();
        }
    }
    for (int i = 0; i < count; i++)
        r[i].median = summary_of(r[i].sample, r[i].count).median;
}
