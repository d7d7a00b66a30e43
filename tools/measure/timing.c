/* SPDX-License-Identifier: Apache-2.0
 *
 * timing.c - samples and ratios as JSON.
 */
#include <stdio.h>
#include <string.h>
#include "clocks.h"
#include "machine.h"
#include "report/report.h"
#include "timing.h"

enum { TRIES = 2 };

struct timing timing_of(const double *sample, int count, int repeats)
{
    struct timing t = { .s = summary_of(sample, count), .repeats = repeats };

    memcpy(t.sample, sample, (size_t)count * sizeof *sample);
    return t;
}

static json_t *numbers(const double *v, int count)
{
    json_t *const out = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(out, json_real(v[i]));
    return out;
}

json_t *timing_json(const struct timing *t)
{
    json_t *const out = json_pack("{s:o, s:i, s:i, s:i, s:f, s:[f, f], s:f}",
        "samples_s", numbers(t->sample, t->s.count), "samples", t->s.count, "repeats", t->repeats,
        "iterations", t->repeats, "median_s", t->s.median, "interval_s", t->s.low, t->s.high,
        "coverage", t->s.coverage);

    if (t->s.count < SAMPLES_FEW)
        json_object_set_new(out, "few", json_true());
    return out;
}

struct ratio timing_ratio(const struct timing *over, const struct timing *under)
{
    const int count = over->s.count < under->s.count ? over->s.count : under->s.count;
    struct ratio r = { .it = { 0 } };

    r.s = ratio_of(r.it, over->sample, under->sample, count);
    return r;
}

json_t *ratio_json(const struct ratio *r)
{
    return json_pack("{s:f, s:[f, f], s:f, s:o}", "ratio", r->s.median, "ratio_interval", r->s.low, r->s.high,
                     "ratio_coverage", r->s.coverage, "ratios", numbers(r->it, r->s.count));
}

/* Once; 1 if it was disturbed. */
static int watch_once(struct watched *out, struct runner *r, int count, double seconds, int on_cpu)
{
    json_t *const before = clocks_read();
    struct machine_look from, to;
    struct machine m;
    int disturbs;

    clocks_forget();
    machine_look(&from);
    sample_in_turns(r, count, seconds);
    clocks_watch();
    machine_look(&to);
    machine_between(&m, &from, &to);
    json_decref(out->machine);
    out->machine = machine_json(&m);

    const char *const throttled = clocks_throttled(&disturbs);

    if (before) {
        json_object_set_new(out->machine, "clocks",
                            json_pack("{s:o, s:o}", "before", before, "after", clocks_read()));
        json_object_set_new(out->machine, "throttled", json_string(throttled));
    }
    if (machine_is_disturbed(out->why, sizeof out->why, &m, on_cpu))
        return 1;
    if (disturbs)
        snprintf(out->why, sizeof out->why, "the GPU was throttled: %.50s", throttled);
    return disturbs;
}

static int look(void)
{
    clocks_watch();
    return interrupted;
}

void sample_watched(struct watched *out, struct runner *r, int count, double seconds, int on_cpu)
{
    int tries = 0;

    *out = (struct watched){ .machine = NULL };
    sampling_watch(look);
    sampling_clock(clocks_sm);
    while (watch_once(out, r, count, seconds, on_cpu) && ++tries < TRIES && !interrupted)
        ;
    sampling_watch(NULL);
    sampling_clock(NULL);
    json_object_set_new(out->machine, "tries", json_integer(tries < TRIES ? tries + 1 : TRIES));
}
