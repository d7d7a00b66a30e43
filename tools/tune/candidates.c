/* SPDX-License-Identifier: Apache-2.0
 *
 * candidates.c - times every plan for a problem, a variant with one of its rows, in turns.
 *
 * Each first runs twice.  The first run builds its kernels; the second is timed, and what is far behind
 * the best there is not sampled.  A vendor's library is a candidate only where it is the library's choice.
 */
#include <stdlib.h>
#include <string.h>
#include "choice.h"
#include "core.h"
#include "measure/dictated.h"

static const double FAR_BEHIND = 5;       /* times the best: a candidate this slow is not sampled */
static const double NOTICED = 1e-3;       /* seconds: shorter runs are always sampled */
static const double BY_EVENTS = 1e-3, BY_THE_WALL = 1e-2;     /* seconds of a sample */

/* ---- what it is ---- */

const char *candidate_variant(const struct candidate *c)
{
    const char *const name = json_string_value(json_object_get(c->how, "variant"));

    return name ? name : c->problem.variant;
}

double candidate_estimate(const struct candidate *c)
{
    return json_number_value(json_object_get(c->how, "estimate"));
}

double candidates_ratio(const struct candidates *c)
{
    return *c->note ? 0 : c->it[0].seconds / c->it[c->best].seconds;
}

/* ---- running ---- */

static vn_status run_once(void *state)
{
    const struct candidate *const c = state;
    vn_status s;

    choice_repeat(c->choice ? c->series.queue->device : NULL, c->choice);
    s = problem_run(c->series.queue, &c->problem, &c->o);
    choice_dictate(NULL, NULL);
    return s;
}

static int take_turn(void *state, int repeats, double *seconds)
{
    struct candidate *const c = state;

    /* Not measured: it wakes the threads; and on a device, those that are measured only launch. */
    if ((repeats > 1 || c->series.by_events) && run_once(c))
        return -1;
    return series_time(seconds, &c->series, run_once, c, repeats) ? -1 : 0;
}

/* Runs it twice, and times the second run. */
static vn_status try_out(struct candidate *c)
{
    vn_status s = run_once(c);

    if (s)
        return s;
    if (!c->choice)
        c->how = json_loads(vn_queue_explain(c->series.queue), 0, NULL);
    if ((s = vn_queue_finish(c->series.queue)))
        return s;
    return series_time(&c->seconds, &c->series, run_once, c, 1);
}

/* ---- who takes part ---- */

static void leave(struct candidate *c)
{
    vn_pack_close(c->o.pack);
    json_decref(c->how);
    c->o.pack = NULL;
    c->how    = NULL;
}

/* By this choice, or the library's own.  What does not run is no candidate, but for that. */
static vn_status enter(struct candidates *all, const struct bench *b, const struct problem *p,
                       const struct values *v, const struct vn_choice *choice, json_t *how)
{
    struct candidate *const c = &all->it[all->count];
    vn_status s;

    *c = (struct candidate){ .problem = *p, .o = v->o, .choice = choice, .how = how,
                             .series = { .queue = b->queue, .by_events = !b->info.is_cpu, .hold = b->hold } };
    c->o.pack = NULL;
    choice_dictate(choice ? b->queue->device : NULL, choice);
    s = problem_pack(b->queue, &c->problem, &c->o);
    choice_dictate(NULL, NULL);
    if (!s)
        s = try_out(c);
    if (s) {
        c->seconds = 0;
        snprintf(c->note, sizeof c->note, "%s", vn_last_error());
    }
    if (s == VN_UNSUPPORTED)
        leave(c);
    else
        all->count++;
    return s;
}

static json_t *described(const struct vn_candidate *it)
{
    json_t *const out = json_object(), *const parameters = json_object();
    char name[64];

    for (int i = 0; vn__word_at(name, it->variant->params, i); i++)
        json_object_set_new(parameters, name, json_integer(it->row.p[i]));
    json_object_set_new(out, "variant", json_string(it->variant->name));
    json_object_set_new(out, "parameters", parameters);
    if (it->plan.seconds > 0)
        json_object_set_new(out, "estimate", json_real(it->plan.seconds));
    if (it->why)
        json_object_set_new(out, "why", json_string(it->why));
    return out;
}

/* All plans but the library's own; of a problem that names a variant, those of that one.  within: 0, or those
 * that are estimated at no more than so many times the library's own.                                      */
static void enter_plans(struct candidates *all, const struct bench *b, const struct problem *p,
                        const struct values *v, double within)
{
    const struct vn_choice *const own = b->queue->last->choice, *choice;
    const size_t bytes = b->queue->last->problem_size;
    const double most = within * b->queue->last->plan.seconds;
    void *const problem = malloc(bytes);
    struct vn_candidate *list;
    int count = 0;

    if (!problem || vn__candidates(&list, &count, b->queue, b->queue->last->table,
                                   memcpy(problem, b->queue->last->problem, bytes), NULL, 0))
        list = NULL;
    for (int i = 0; i < count && all->count < CANDIDATES && !interrupted; i++) {
        struct vn_candidate *const it = &list[i];

        if (it->unfit || !it->variant->texts || (most > 0 && it->plan.seconds > most) ||
            (*p->variant && strcmp(it->variant->name, p->variant)) ||
            (it->variant == own->variant && !memcmp(it->row.p, own->p, sizeof own->p)))
            continue;
        if (!vn__candidate_ready(&choice, b->queue, it, problem))
            enter(all, b, p, v, choice, described(it));
    }
    free(list);
    free(problem);
}

static double best_second_run(const struct candidates *all)
{
    double best = all->it[0].seconds;

    for (int i = 1; i < all->count; i++)
        if (all->it[i].seconds > 0 && all->it[i].seconds < best)
            best = all->it[i].seconds;
    return best;
}

static void enter_all(struct candidates *all, const struct bench *b, const struct problem *p,
                      const struct values *v, double within)
{
    const vn_status s = enter(all, b, p, v, NULL, NULL);

    if (s) {
        all->failed = s != VN_UNSUPPORTED;
        snprintf(all->note, SENTENCE, "%s: %.180s", all->failed ? "failed" : "skipped", all->it[0].note);
        return;
    }
    all->it[0].choice = b->queue->last->choice;    /* from here on it is told what to do, as the others are */
    enter_plans(all, b, p, v, within);
    if (interrupted)
        snprintf(all->note, SENTENCE, "skipped: interrupted");

    const double best = best_second_run(all);

    for (int i = 1; i < all->count; i++) {
        struct candidate *const c = &all->it[i];

        c->slow = c->seconds > NOTICED && c->seconds > FAR_BEHIND * best;
        all->slow += c->slow;
    }
}

/* ---- sampling ---- */

static void sample_all(struct candidates *all, const struct bench *b, int samples)
{
    struct runner runner[CANDIDATES];
    int whose[CANDIDATES], runners = 0;

    for (int i = 0; i < all->count; i++) {
        if (all->it[i].slow || *all->it[i].note)
            continue;
        whose[runners] = i;
        runner[runners++] = (struct runner){ .run = take_turn, .state = &all->it[i], .least = samples,
                                             .most = b->info.is_cpu ? 0 : HELD,
                                             .length = b->info.is_cpu ? BY_THE_WALL : BY_EVENTS };
    }
    sample_in_turns(runner, runners, 0);
    for (int i = 0; i < runners; i++) {
        struct candidate *const c = &all->it[whose[i]];

        if (runner[i].failed)
            snprintf(c->note, sizeof c->note, "%s", vn_last_error());
        c->seconds = runner[i].failed ? 0 : runner[i].median;
        c->samples = runner[i].count;
        c->repeats = runner[i].repeats;
        memcpy(c->sample, runner[i].sample, sizeof c->sample);
        median_of(c->sample, c->samples);               /* sorts them */
    }
    for (int i = 1; i < all->count; i++)
        if (all->it[i].seconds > 0 && all->it[i].seconds < all->it[all->best].seconds)
            all->best = i;
    if (*all->it[0].note) {
        snprintf(all->note, SENTENCE, "failed: %.180s", all->it[0].note);
        all->failed = 1;
    }
}

static int can_hold(struct candidates *all, const struct bench *b, const struct problem *p)
{
    char why[SENTENCE - 16];

    if (!(problem_flops(p) > 0))
        snprintf(all->note, SENTENCE, "skipped: there is nothing to compute");
    else if (!(b->device->facts.types >> p->type & 1))
        snprintf(all->note, SENTENCE, "skipped: the device has no %s", vn_type_name(p->type));
    else if (values_fit(b->device, p, 1 + b->info.is_cpu, why, sizeof why))
        snprintf(all->note, SENTENCE, "skipped: %s", why);
    return !*all->note;
}

void candidates_measure(struct candidates *all, struct bench *b, const struct problem *p, int samples,
                        double within)
{
    struct values v;

    memset(all, 0, sizeof *all);
    if (!can_hold(all, b, p))
        return;
    if (values_open(&v, b->queue, b->device, p)) {
        all->failed = 1;
        snprintf(all->note, SENTENCE, "failed: %.180s",
                 *vn_last_error() ? vn_last_error() : "host memory ran out");
    } else {
        vn_pack_close(v.o.pack);                /* each candidate has its own */
        v.o.pack = NULL;
        enter_all(all, b, p, &v, within);
    }
    if (!*all->note)
        sample_all(all, b, samples);
    for (int i = 0; i < all->count; i++) {
        vn_pack_close(all->it[i].o.pack);
        all->it[i].o.pack = NULL;
    }
    values_close(&v);
}

void candidates_close(struct candidates *all)
{
    for (int i = 0; i < all->count; i++)
        leave(&all->it[i]);
    all->count = 0;
}
