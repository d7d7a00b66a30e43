/* SPDX-License-Identifier: Apache-2.0
 *
 * row.c - measures one problem, or a sequence of them as one: ours and the peers, in turns.
 *
 * Before anything is timed each one runs once, ours is checked by the oracle in a few places
 * and compared with the peers: what is wrong is reported and not timed.  On a CPU the wall
 * clock counts, from the first call to the finish after the last; on other devices, the time
 * between two events of the device.
 */
#include <stdlib.h>
#include <string.h>
#include "bench.h"
#include "core.h"
#include "check/oracle.h"
#include "measure/sampling.h"
#include "series.h"
#include "check/spot.h"

/* Of a row that is measured without rests, in seconds: what goes before a sample, and a sample. */
static const double LEAD = 0.4, LONG_SAMPLE = 0.1;

/* What a first run may take: it also builds. */
static double patience(const struct bench *b)
{
    return 30 + 10 * b->budget;
}

/* ---- what can be measured at all ---- */

/* Our copy on the host, that of a device in host memory, and two of each peer there. */
static int can_hold(struct row *r, const struct bench *b, const struct workload *it, int count)
{
    const struct problem **const all = malloc((size_t)count * sizeof *all);
    char why[SENTENCE - 16] = "host memory ran out";
    int fits = 0;

    for (int i = 0; i < count; i++) {
        if (all)
            all[i] = &it[i].problem;
        if (b->device->facts.types >> it[i].problem.type & 1)
            continue;
        snprintf(r->note, SENTENCE, "skipped: the device has no %s", vn_type_name(it[i].problem.type));
        free(all);
        return 0;
    }
    if (all)
        fits = !values_fit_all(b->device, all, count, b->info.is_cpu ? 2 + 2 * b->peers : 1, why, sizeof why);
    if (!fits)
        snprintf(r->note, SENTENCE, "skipped: %s", why);
    free(all);
    return fits;
}

static double least_seconds(const struct bench *b, const struct workload *it, int count)
{
    double sum = 0;

    for (int i = 0; i < count; i++) {
        const struct amount w = problem_amount(&it[i].problem);

        sum += roofline_seconds(&b->roofline, it[i].problem.type, it[i].problem.math, &w);
    }
    return sum;
}

int row_is_bound_by_memory(const struct bench *b, const struct workload *w)
{
    const struct problem *const p = &w->problem;
    const struct amount work = problem_amount(p);

    return !w->layers && roofline_moving(&b->roofline, &work)
                       > work.flops / roofline_peak(&b->roofline, p->type, p->math);
}

static int is_quick_enough(struct row *r, const struct bench *b, const struct workload *it, int count)
{
    const double seconds = least_seconds(b, it, count);

    if (seconds <= b->budget)
        return 1;
    snprintf(r->note, SENTENCE, "skipped: %.3g s a run at the best, above --budget %g", seconds, b->budget);
    return 0;
}

/* ---- those who take turns ---- */

struct ours {
    struct bench          *bench;
    const struct workload *it;
    int                    count;
    struct values         *values;       /* of each problem */
    struct copier         *copier;       /* of as many bytes; NULL if that says nothing */
    struct series          series, copies;
};

/* Not measured: they wake the threads.  Long runs do not notice. */
static int waking_runs(int repeats)
{
    return repeats > 1 ? 2 : 0;
}

static vn_status run_once(void *state)
{
    const struct ours *const us = state;
    vn_status s = VN_OK;

    for (int i = 0; i < us->count && !s; i++)
        s = problem_run(us->bench->queue, &us->it[i].problem, &us->values[i].o);
    return s;
}

static vn_status copy_once(void *state)
{
    return copier_run(state);
}

/* Ours, or the copy: on the same queue, by the same clock. */
static int time_on_queue(const struct bench *b, struct series *s, vn_status (*once)(void *), void *state,
                         int repeats, double *seconds)
{
    if (b->peers)
        peer_turn(NULL);
    for (int i = 0; i < waking_runs(repeats); i++)
        if (once(state))
            return -1;
    return series_time(seconds, s, once, state, repeats) ? -1 : 0;
}

static int run_ours(void *state, int repeats, double *seconds)
{
    struct ours *const us = state;

    return time_on_queue(us->bench, &us->series, run_once, us, repeats, seconds);
}

static int run_copy(void *state, int repeats, double *seconds)
{
    struct ours *const us = state;

    return time_on_queue(us->bench, &us->copies, copy_once, us->copier, repeats, seconds);
}

static int run_theirs(const struct theirs *them)
{
    int failed = 0;

    for (int i = 0; i < them->count && !failed; i++)
        failed = them->peer->run(them->state[i]);
    return failed;
}

int theirs_run(void *state, int repeats, double *seconds)
{
    struct theirs *const them = state;

    peer_turn(them->peer);
    for (int i = 0; i < waking_runs(repeats); i++)
        if (run_theirs(them))
            return -1;
    if (them->by_device)
        return (*seconds = them->peer->timed(them->state, them->count, repeats)) >= 0 ? 0 : -1;

    const double start = vn__seconds();

    for (int i = 0; i < repeats; i++)
        if (run_theirs(them))
            return -1;
    *seconds = vn__seconds() - start;
    return 0;
}

int theirs_by_device(const struct theirs *them, int by_events)
{
    return by_events && them->peer->timed && them->peer->timed(them->state, them->count, 1) >= 0;
}

/* ---- first runs, and whether they agree ---- */

/* A peer, and what it prepared of each problem: NULL from the first on that it has not. */
struct guest {
    const struct peer *peer;
    void             **state;
    struct theirs      theirs;
};

static int first_run(struct row *r, const struct ours *us, int at, struct layer *how, struct results *result)
{
    const struct problem *const p = &us->it[at].problem;
    const struct operands *const o = &us->values[at].o;
    const double start = vn__seconds();
    vn_status s = problem_run(us->bench->queue, p, o);

    if (!s) {
        explained(how->variant, us->bench->queue, "variant");
        explained(how->engine, us->bench->queue, "engine");
        s = vn_queue_finish(us->bench->queue);
    }
    if (s) {
        r->failed = s != VN_UNSUPPORTED;
        snprintf(r->note, SENTENCE, "%s: %s", r->failed ? "failed" : "skipped", vn_last_error());
        return -1;
    }
    if (vn__seconds() - start > patience(us->bench)) {
        snprintf(r->note, SENTENCE, "skipped: %.3g s for the first run is too long", vn__seconds() - start);
        return -1;
    }
    if (results_open(result, o, NULL) || results_read(result, o, us->bench->queue)) {
        r->failed = 1;
        snprintf(r->note, SENTENCE, "failed: the result cannot be read");
        return -1;
    }
    r->failed = spot_check(p, &us->values[at], result, r->note, SENTENCE);
    return r->failed ? -1 : 0;
}

/* Runs the peer once; whatever ours left between rows is left so in its result too. */
static int peer_agrees(struct row *r, const struct ours *us, int at, const struct guest *them,
                       const struct results *ours, char *note)
{
    const struct operands *const o = &us->values[at].o;
    struct results result;
    int right = 0;

    if (results_open(&result, o, ours))
        snprintf(note, SENTENCE, "host memory ran out");
    else if (them->peer->run(them->state[at]) || peer_results(them->peer, them->state[at], &result, o))
        snprintf(note, SENTENCE, "%s failed", them->peer->name);
    else
        right = results_agree(&us->it[at].problem, o, ours, &result,
                              them->peer->rounds && them->peer->rounds()
                              ? us->values[at].operand : NULL, r->note, SENTENCE, them->peer->name);
    results_close(&result);
    if (*r->note)
        r->failed = 1;
    return right;
}

/* 1: it may go on to the next problem, or to the clock. */
static int peer_ready(struct row *r, const struct ours *us, int at, struct guest *them,
                      const struct results *ours, char *note)
{
    if (them->peer->prepare(&them->state[at], &us->it[at].problem, &us->values[at], note, SENTENCE))
        return 0;

    const double start = vn__seconds();

    if (!peer_agrees(r, us, at, them, ours, note))
        return 0;
    if (vn__seconds() - start <= patience(us->bench))
        return 1;
    snprintf(note, SENTENCE, "%.3g s for its first run is too long", vn__seconds() - start);
    return 0;
}

static void note_failure(struct row *r)
{
    r->failed = 1;
    snprintf(r->note, SENTENCE, "failed: %s", *vn_last_error() ? vn_last_error() : "host memory ran out");
}

/* A layer like an earlier one gets buffers of its own with the same data, and is not checked again. */
static int make_again(struct row *r, struct ours *us, int at, int like, struct guest *guests)
{
    struct bench *const b = us->bench;
    const struct problem *const p = &us->it[at].problem;

    r->layer[at] = r->layer[like];
    if (values_share(&us->values[at], &us->values[like], b->queue, b->device, p)) {
        note_failure(r);
        return -1;
    }
    for (int i = 0; i < b->peers; i++)
        if (guests[i].theirs.count == at)
            guests[i].theirs.count += !guests[i].peer->prepare(&guests[i].state[at], p, &us->values[like],
                                                               r->peer[i].note, SENTENCE);
    return 0;
}

/* One problem of all: its data, the first run, and what each peer that is still in makes of it. */
static int make_ready(struct row *r, struct ours *us, int at, struct guest *guests, struct layer *how)
{
    struct bench *const b = us->bench;
    struct results result = { { NULL } };
    int failed = 1, like = 0;

    while (strcmp(us->it[like].text, us->it[at].text))
        like++;
    if (like < at)
        return make_again(r, us, at, like, guests);
    if (values_open(&us->values[at], b->queue, b->device, &us->it[at].problem)) {
        note_failure(r);
    } else if (!first_run(r, us, at, how, &result)) {
        for (int i = 0; i < b->peers && !r->failed; i++)
            if (guests[i].theirs.count == at)
                guests[i].theirs.count += peer_ready(r, us, at, &guests[i], &result, r->peer[i].note);
        failed = r->failed;
    }
    results_close(&result);
    return failed;
}

/* ---- a row ---- */

static void note_ours(struct row *r, const struct ours *us, const struct runner *runner)
{
    struct bench *const b = us->bench;
    const struct problem *const p = &us->it[0].problem;

    r->ours = timing_of(runner->sample, runner->count, runner->repeats);
    if (runner->failed) {
        r->failed = 1;
        snprintf(r->note, SENTENCE, "failed: %s", vn_last_error());
        return;
    }
    r->seconds = runner->median;
    if (us->count == 1) {
        const struct amount w = problem_amount(p);

        roofline_raise(&b->roofline, b->queue, p->type, p->math, &w, r->seconds);
    }
    r->least    = least_seconds(b, us->it, us->count);
    r->roofline = r->least / runner->median;
}

static void note_peer(struct row *r, int peer, const struct runner *them)
{
    if (them->failed) {
        snprintf(r->peer[peer].note, SENTENCE, "it failed");
        return;
    }
    r->peer[peer].t     = timing_of(them->sample, them->count, them->repeats);
    r->peer[peer].ratio = timing_ratio(&r->peer[peer].t, &r->ours);
}

static void take_turns(struct row *r, struct ours *us, struct guest *guests)
{
    struct bench *const b = us->bench;
    const int most = HELD / us->count;
    const struct runner any = { .most = b->info.is_cpu ? 0 : most > 2 ? most : 2, .least = SAMPLES_SURE,
                                .lead = b->sustained ? LEAD : 0, .steady = b->sustained,
                                .length = b->sustained ? LONG_SAMPLE : 0 };
    struct runner runner[2 + BENCH_PEERS];
    int peer_of[2 + BENCH_PEERS], runners = 1;

    for (int i = 0; i < 2 + BENCH_PEERS; i++)
        runner[i] = any;
    runner[0].run   = run_ours;
    runner[0].state = us;
    for (int i = 0; i < b->peers; i++) {
        struct theirs *const them = &guests[i].theirs;

        if (them->count < us->count)
            continue;
        them->by_device = theirs_by_device(them, !b->info.is_cpu);
        peer_of[runners] = i;
        runner[runners].run     = theirs_run;
        runner[runners++].state = them;
    }
    if (us->copier) {
        runner[runners].run   = run_copy;
        runner[runners].state = us;
    }
    sample_watched(&r->watched, runner, runners + (us->copier != NULL), b->budget, b->info.is_cpu);
    if (b->peers)
        peer_turn(NULL);
    note_ours(r, us, &runner[0]);
    if (us->copier)
        r->copy = runner[runners].median;
    for (int i = 1; i < runners; i++)
        note_peer(r, peer_of[i], &runner[i]);
}

/* What so many layers, from r->layer[first] on, have in common, or that they differ. */
static void summarize(struct row *r, int first, int count)
{
    const struct layer *const layer = r->layer + first;
    int variants = 0, engines = 0;

    for (int i = 0; i < count; i++) {
        int v = 0, e = 0;

        while (strcmp(layer[v].variant, layer[i].variant))
            v++;
        while (strcmp(layer[e].engine, layer[i].engine))
            e++;
        variants += v == i;
        engines  += e == i;
    }
    *r->variant = *r->engine = '\0';
    if (variants == 1)
        snprintf(r->variant, sizeof r->variant, "%s", layer->variant);
    else
        snprintf(r->variant, sizeof r->variant, "%d variants", variants);
    if (engines == 1)
        snprintf(r->engine, sizeof r->engine, "%s", layer->engine);
    else
        snprintf(r->engine, sizeof r->engine, "%d engines", engines);
}

/* Says of which layer a note is. */
static void name_layer(char note[SENTENCE], const struct workload *it)
{
    char was[SENTENCE];

    memcpy(was, note, sizeof was);
    snprintf(note, SENTENCE, "%.130s (%.60s)", was, *it->label ? it->label : it->text);
}

static void measure(struct row *r, struct ours *us, struct guest *guests)
{
    struct bench *const b = us->bench;

    for (int i = 0; i < us->count; i++) {
        const int failed = interrupted || make_ready(r, us, i, guests, &r->layer[i]);

        if (interrupted)
            snprintf(r->note, SENTENCE, "skipped: interrupted");
        else if (failed && us->count > 1)
            name_layer(r->note, &us->it[i]);
        if (failed) {
            summarize(r, i, 1);
            return;
        }
        for (int j = 0; j < b->peers && us->count > 1; j++)
            if (guests[j].theirs.count == i && *r->peer[j].note)
                name_layer(r->peer[j].note, &us->it[i]);
    }
    summarize(r, 0, us->count);
    if (us->count == 1 && row_is_bound_by_memory(b, us->it) && copier_open(&us->copier, b->queue, r->bytes))
        us->copier = NULL;               /* no room for it: the row goes without */
    take_turns(r, us, guests);
}

static void finish(struct ours *us, struct guest *guests)
{
    for (int i = 0; i < us->bench->peers; i++) {
        for (int j = 0; j < us->count && guests[i].state; j++)
            if (guests[i].state[j])
                guests[i].peer->finish(guests[i].state[j]);
        free(guests[i].state);
    }
    copier_close(us->copier);
    for (int i = 0; i < us->count && us->values; i++)
        values_close(&us->values[i]);
    free(us->values);
}

void row_measure(struct row *r, struct bench *b, const struct workload *it, int count)
{
    const struct series none = { .queue = b->queue, .by_events = !b->info.is_cpu, .hold = b->hold };
    struct ours us = { .bench = b, .it = it, .count = count, .series = none, .copies = none };
    struct guest guests[BENCH_PEERS] = { { NULL, NULL, { NULL, NULL, 0, 0 } } };
    int all = 1;

    *r = (struct row){ .layers = count };
    for (int i = 0; i < count; i++) {
        r->flops += problem_flops(&it[i].problem);
        r->bytes += problem_bytes(&it[i].problem);
    }
    if (!can_hold(r, b, it, count) || !is_quick_enough(r, b, it, count))
        return;
    us.values = calloc((size_t)count, sizeof *us.values);
    r->layer  = calloc((size_t)count, sizeof *r->layer);
    for (int i = 0; i < b->peers; i++) {
        guests[i] = (struct guest){ .peer = b->peer[i], .state = calloc((size_t)count, sizeof(void *)) };
        guests[i].theirs = (struct theirs){ .peer = b->peer[i], .state = guests[i].state };
        all &= guests[i].state != NULL;
    }
    if (us.values && r->layer && all)
        measure(r, &us, guests);
    else
        snprintf(r->note, SENTENCE, "skipped: host memory ran out");
    finish(&us, guests);
}

double row_ratio(const struct row *r, int peer)
{
    return r->seconds > 0 ? r->peer[peer].ratio.s.median : 0;
}

void row_close(struct row *r)
{
    json_decref(r->watched.machine);
    r->watched.machine = NULL;
    free(r->layer);
    r->layer = NULL;
}

void explained(char out[32], vn_queue *q, const char *member)
{
    json_t *const root = json_loads(vn_queue_explain(q), 0, NULL);
    const char *const text = json_string_value(json_object_get(root, member));

    snprintf(out, 32, "%s", text ? text : "");
    json_decref(root);
}
