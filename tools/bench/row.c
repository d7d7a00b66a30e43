/* SPDX-License-Identifier: Apache-2.0
 *
 * row.c - measures one problem: ours and the peers, in turns.
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

/* What a first run may take: it also builds. */
static double patience(const struct bench *b)
{
    return 30 + 10 * b->budget;
}

/* ---- what can be measured at all ---- */

/* Our copy on the host, that of a device in host memory, and two of each peer there. */
static int can_hold(struct row *r, const struct bench *b, const struct problem *p)
{
    char why[SENTENCE - 16];

    if (!(b->device->facts.types >> p->type & 1)) {
        snprintf(r->note, SENTENCE, "skipped: the device has no %s", vn_type_name(p->type));
        return 0;
    }
    if (!values_fit(b->device, p, b->info.is_cpu ? 2 + 2 * b->peers : 1, why, sizeof why))
        return 1;
    snprintf(r->note, SENTENCE, "skipped: %s", why);
    return 0;
}

static double least_seconds(const struct bench *b, const struct problem *p)
{
    return roofline_seconds(&b->roofline, p->type, p->math, problem_flops(p), problem_bytes(p));
}

int row_is_bound_by_memory(const struct bench *b, const struct problem *p)
{
    return problem_bytes(p) / b->roofline.bandwidth
         > problem_flops(p) / roofline_peak(&b->roofline, p->type, p->math);
}

static int is_quick_enough(struct row *r, const struct bench *b, const struct problem *p)
{
    const double seconds = least_seconds(b, p);

    if (seconds <= b->budget)
        return 1;
    snprintf(r->note, SENTENCE, "skipped: %.3g s a run at the best, above --budget %g", seconds, b->budget);
    return 0;
}

/* ---- those who take turns ---- */

struct ours {
    struct bench         *bench;
    const struct problem *problem;
    struct values         values;
    struct copier        *copier;        /* of as many bytes; NULL if that says nothing */
    struct series         series, copies;
    struct results        result;        /* of the first run */
};

/* Not measured: they wake the threads.  Long runs do not notice. */
static int waking_runs(int repeats)
{
    return repeats > 1 ? 2 : 0;
}

static vn_status run_once(void *state)
{
    const struct ours *const us = state;

    return problem_run(us->bench->queue, us->problem, &us->values.o);
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

int theirs_run(void *state, int repeats, double *seconds)
{
    struct theirs *const them = state;

    peer_turn(them->peer);
    for (int i = 0; i < waking_runs(repeats); i++)
        if (them->peer->run(them->state))
            return -1;
    if (them->by_device)
        return (*seconds = them->peer->timed(them->state, repeats)) >= 0 ? 0 : -1;

    const double start = vn__seconds();

    for (int i = 0; i < repeats; i++)
        if (them->peer->run(them->state))
            return -1;
    *seconds = vn__seconds() - start;
    return 0;
}

int theirs_by_device(const struct theirs *them, int by_events)
{
    return by_events && them->peer->timed && them->peer->timed(them->state, 1) >= 0;
}

/* ---- first runs, and whether they agree ---- */

static int first_run(struct row *r, struct ours *us)
{
    const struct operands *const o = &us->values.o;
    const double start = vn__seconds();
    vn_status s = problem_run(us->bench->queue, us->problem, o);

    if (!s) {
        explained(r->variant, us->bench->queue, "variant");
        explained(r->engine, us->bench->queue, "engine");
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
    if (results_open(&us->result, o, NULL) || results_read(&us->result, o, us->bench->queue)) {
        r->failed = 1;
        snprintf(r->note, SENTENCE, "failed: the result cannot be read");
        return -1;
    }
    r->failed = spot_check(us->problem, &us->values, &us->result, r->note, SENTENCE);
    return r->failed ? -1 : 0;
}

/* Runs the peer once; whatever ours left between rows is left so in its result too. */
static int peer_agrees(struct row *r, const struct ours *us, const struct theirs *them, char *note)
{
    const struct operands *const o = &us->values.o;
    struct results result;
    int right = 0;

    if (results_open(&result, o, &us->result))
        snprintf(note, SENTENCE, "host memory ran out");
    else if (them->peer->run(them->state) || peer_results(them->peer, them->state, &result, o))
        snprintf(note, SENTENCE, "%s failed", them->peer->name);
    else
        right = results_agree(us->problem, o, &us->result, &result, r->note, SENTENCE, them->peer->name);
    results_close(&result);
    if (*r->note)
        r->failed = 1;
    return right;
}

static int peer_ready(struct row *r, const struct ours *us, struct theirs *them, int index)
{
    char *const note = r->peer[index].note;

    them->peer = us->bench->peer[index];
    if (them->peer->prepare(&them->state, us->problem, &us->values, note, SENTENCE))
        return 0;

    const double start = vn__seconds();

    if (!peer_agrees(r, us, them, note))
        return 0;
    them->by_device = theirs_by_device(them, !us->bench->info.is_cpu);
    if (vn__seconds() - start <= patience(us->bench))
        return 1;
    snprintf(note, SENTENCE, "%.3g s for its first run is too long", vn__seconds() - start);
    return 0;
}

/* ---- a row ---- */

static void note_ours(struct row *r, struct bench *b, const struct problem *p, const struct runner *us)
{
    r->ours = timing_of(us->sample, us->count, us->repeats);
    if (us->failed) {
        r->failed = 1;
        snprintf(r->note, SENTENCE, "failed: %s", vn_last_error());
        return;
    }
    r->seconds = us->median;
    roofline_raise(&b->roofline, b->queue, p->type, p->math, r->flops, r->bytes, r->seconds);
    r->roofline = least_seconds(b, p) / us->median;
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

static void take_turns(struct row *r, struct ours *us, struct theirs *them)
{
    struct bench *const b = us->bench;
    const struct runner any = { .most = b->info.is_cpu ? 0 : HELD, .least = SAMPLES_SURE };
    struct runner runner[2 + BENCH_PEERS];
    int peer_of[2 + BENCH_PEERS], runners = 1;

    for (int i = 0; i < 2 + BENCH_PEERS; i++)
        runner[i] = any;
    runner[0].run   = run_ours;
    runner[0].state = us;
    for (int i = 0; i < b->peers; i++)
        if (peer_ready(r, us, &them[i], i)) {
            peer_of[runners] = i;
            runner[runners].run     = theirs_run;
            runner[runners++].state = &them[i];
        }
    if (r->failed)
        return;
    if (us->copier) {
        runner[runners].run   = run_copy;
        runner[runners].state = us;
    }
    sample_watched(&r->watched, runner, runners + (us->copier != NULL), b->budget, b->info.is_cpu);
    if (b->peers)
        peer_turn(NULL);
    note_ours(r, b, us->problem, &runner[0]);
    if (us->copier)
        r->copy = runner[runners].median;
    for (int i = 1; i < runners; i++)
        note_peer(r, peer_of[i], &runner[i]);
}

void row_measure(struct row *r, struct bench *b, const struct problem *p)
{
    const struct series none = { .queue = b->queue, .by_events = !b->info.is_cpu, .hold = b->hold };
    struct ours us = { .bench = b, .problem = p, .series = none, .copies = none };
    struct theirs them[BENCH_PEERS] = { { NULL, NULL, 0 } };

    *r = (struct row){ .flops = problem_flops(p), .bytes = problem_bytes(p) };
    if (!can_hold(r, b, p) || !is_quick_enough(r, b, p))
        return;
    if (values_open(&us.values, b->queue, b->device, p)) {
        r->failed = 1;
        snprintf(r->note, SENTENCE, "failed: %s", *vn_last_error() ? vn_last_error() : "host memory ran out");
    } else if (!first_run(r, &us)) {
        if (row_is_bound_by_memory(b, p) && copier_open(&us.copier, b->queue, r->bytes))
            us.copier = NULL;            /* no room for it: the row goes without */
        take_turns(r, &us, them);
    }
    for (int i = 0; i < b->peers; i++)
        if (them[i].peer)
            them[i].peer->finish(them[i].state);
    copier_close(us.copier);
    values_close(&us.values);
    results_close(&us.result);
}

double row_ratio(const struct row *r, int peer)
{
    return r->seconds > 0 ? r->peer[peer].ratio.s.median : 0;
}

void row_close(struct row *r)
{
    json_decref(r->watched.machine);
    r->watched.machine = NULL;
}

void explained(char out[32], vn_queue *q, const char *member)
{
    json_t *const root = json_loads(vn_queue_explain(q), 0, NULL);
    const char *const text = json_string_value(json_object_get(root, member));

    snprintf(out, 32, "%s", text ? text : "");
    json_decref(root);
}
