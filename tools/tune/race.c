/* SPDX-License-Identifier: Apache-2.0
 *
 * race.c - measures the rows of one variant, type and bucket, on one or more problems.
 *
 * The shipped row comes first; what it makes of each problem is checked by the oracle.  Then, of
 * each row that is tried:
 *
 *   1. its kernels are built, and run on each problem once: what does not build, or not fit the
 *      device, is illegal;
 *   2. its result must agree with the shipped row's, everywhere, to rounding; and small
 *      problems in integers must come out exactly: else it is wrong;
 *   3. only then is it timed: once, and unless it is far behind, in turns with the shipped row.
 *
 * A row's score is the geometric mean, over the problems, of its time over the shipped row's.
 */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "commands.h"
#include "measure/dictated.h"
#include "measure/sampling.h"
#include "check/spot.h"
#include "tune.h"

static const double FAR_BEHIND = 1.25;    /* of the best: a row this slow need not be timed well */
static const double LEAST_GAIN = 1.01;    /* less is not worth a row of its own */
static const double CONTEST = 0.2;        /* of the time, for the last contest */
static const double LOOK = 0.005;         /* seconds */
enum { LOOKS = 2, MOST_IN_CONTEST = 2 + TUNE_TOP, KINDS = 16, SENTENCE = 200 };

/* ---- a row that is tried ---- */

/* Its kernels, of each direction or layout and for wide offsets or not; built when first needed. */
struct kernels {
    struct vn_choice it[KINDS];
    void            *program[KINDS];
    int              wide[KINDS], failed[KINDS], count;
};

/* Compilers within a driver print to stderr, though that a row is illegal is nothing to report. */
static int hush(void)
{
    const int kept = vn__logs(VN_LOG_BUILD) ? -1 : dup(STDERR_FILENO);
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (kept >= 0 && nowhere >= 0)
        dup2(nowhere, STDERR_FILENO);
    if (nowhere >= 0)
        close(nowhere);
    return kept;
}

static void speak(int kept)
{
    if (kept < 0)
        return;
    dup2(kept, STDERR_FILENO);
    close(kept);
}

static int is_built(const struct vn_choice *it, const struct build *b)
{
    return it->variant == b->variant && !memcmp(it->c, b->c, sizeof b->c) &&
           !memcmp(&it->epilogue, &b->epilogue, sizeof b->epilogue);
}

/* NULL after vn_last_error(). */
static const struct vn_choice *kernels_for(struct kernels *k, const struct race *r, const struct build *b,
                                           const int *p)
{
    const int n = k->count;
    struct vn_choice *it;
    int kept;

    for (int i = 0; i < n; i++)
        if (k->wide[i] == b->wide && is_built(&k->it[i], b))
            return k->failed[i] ? NULL : &k->it[i];
    if (n == KINDS)
        return NULL;
    k->count++;
    k->wide[n] = b->wide;
    it  = &k->it[n];
    *it = (struct vn_choice){ .variant = b->variant, .epilogue = b->epilogue, .source = "tried" };
    memcpy(it->p, p, sizeof it->p);
    memcpy(it->c, b->c, sizeof it->c);
    vn__enter("a row");
    kept = hush();
    k->failed[n] = vn__choice_open(it, &k->program[n], NULL, r->suite->device, r->type, b->wide) != VN_OK;
    speak(kept);
    return k->failed[n] ? NULL : it;
}

static void kernels_close(struct kernels *k, const struct race *r)
{
    choice_dictate(NULL, NULL);
    for (int i = 0; i < k->count; i++)
        vn__choice_close(&k->it[i], k->program[i], r->suite->device);
}

static uint64_t key_of(const struct race *r, const struct build *b, const int *p)
{
    const vn_device *const d = r->suite->device;
    char *const text = vn__assemble(d->backend->name, b->variant, p, b->c, r->type, b->wide, &b->epilogue);
    const uint64_t whole = text ? XXH3_64bits(text, strlen(text)) : 0;
    const uint64_t key = XXH3_64bits_withSeed(d->facts.toolchain, strlen(d->facts.toolchain), whole);

    free(text);
    return XXH3_64bits_withSeed(vn_version(), strlen(vn_version()), key);
}

/* "gemm_cpu 12 2 16 960 64 1024" */
static const char *row_text(char out[TUNE_WHY], const struct race *r, const int *p)
{
    size_t n = (size_t)snprintf(out, TUNE_WHY, "%s", r->variant->name);

    for (int i = 0; i < r->space.params && n < TUNE_WHY; i++)
        n += (size_t)snprintf(out + n, TUNE_WHY - n, " %d", p[i]);
    return out;
}

/* ---- running ---- */

struct turn { const struct race *race; struct entrant *entrant; const struct vn_choice *it; };

/* A pack is laid out for one row. */
static vn_status pack_for(const struct turn *t)
{
    struct operands *const o = &t->entrant->values.o;

    choice_dictate(t->race->suite->device, t->it);
    vn_pack_close(o->pack);
    o->pack = NULL;
    return problem_pack(t->race->suite->queue, &t->entrant->problem, o);
}

static vn_status run(const struct turn *t, int times)
{
    vn_status s = VN_OK;

    choice_dictate(t->race->suite->device, t->it);
    for (int i = 0; i < times && !s; i++)
        s = problem_run(t->race->suite->queue, &t->entrant->problem, &t->entrant->values.o);
    return s;
}

static int take_turn(void *state, int repeats, double *seconds)
{
    const struct turn *const t = state;
    struct stopwatch watch;

    return pack_for(t)
        || run(t, repeats > 1)              /* not measured: it wakes the threads */
        || stopwatch_start(&watch, t->race->suite->queue, !t->race->suite->info.is_cpu)
        || run(t, repeats) || stopwatch_stop(seconds, &watch) ? -1 : 0;
}

/* Runs it on what the outputs were at first; -1 after vn_last_error(). */
static int result_of(struct results *out, const struct turn *t)
{
    struct entrant *const e = t->entrant;
    vn_queue *const q = t->race->suite->queue;

    if (results_open(out, &e->values.o, NULL))
        return -1;
    if (!pack_for(t) && !values_restore(&e->values, &e->values, q) && !run(t, 1) && !vn_queue_finish(q)
        && !results_read(out, &e->values.o, q))
        return 0;
    results_close(out);
    return -1;
}

/* ---- a row on one problem ---- */

struct small { const struct turn *turn; struct kernels others; };

/* For a small problem: constants that follow from its sizes, and its activation, may be others. */
static const struct vn_choice *kernels_of_small(void *state, const void *problem)
{
    struct small *const s = state;
    const struct vn_choice *const it = s->turn->it;
    struct build b = s->turn->entrant->build;

    b.epilogue = vn__epilogue_of(b.variant, problem);
    if (b.variant->constants_of)
        b.variant->constants_of(b.c, problem);
    return is_built(it, &b) ? it : kernels_for(&s->others, s->turn->race, &b, it->p);
}

static int is_exact(struct race *r, const struct turn *t)
{
    struct small s = { .turn = t };
    int wrong;

    choice_dictate_row(r->suite->device, t->it, kernels_of_small, &s);
    wrong = check_exactly(r->suite, &t->entrant->problem, r->why, sizeof r->why);
    kernels_close(&s.others, r);
    return !wrong;
}

static int is_right(struct race *r, const struct turn *t, const struct results *result)
{
    const struct entrant *const e = t->entrant;
    char why[SENTENCE];

    if (!results_equal(result, &e->reference, &e->values.o) &&
        !results_agree(&e->problem, &e->values.o, result, &e->reference, NULL, why, sizeof why,
                       "the shipped row's result")) {
        snprintf(r->why, sizeof r->why, "it %s", why);
        return 0;
    }
    return is_exact(r, t);
}

/* Seconds that both together may be sampled: two samples of each, but many rows to a budget. */
static double sampling_seconds(const struct race *r, const struct entrant *e)
{
    return fmin(fmax(0.1, 4 * e->shipped), r->seconds / 30);
}

/* Seconds of one run. */
static int look(double *seconds, const struct turn *t)
{
    const int repeats = (int)fmin(fmax(LOOK / t->entrant->shipped, 1), 100);

    if (take_turn((void *)t, repeats, seconds))
        return -1;
    *seconds /= repeats;
    return 0;
}

/* How far behind is it?  What disturbs the machine just now disturbs the shipped row alike, so
 * that is looked at again before a row is given up.                                          */
static int look_at_both(double *ratio, double *seconds, struct race *r, struct entrant *e,
                        const struct turn turn[2])
{
    *ratio = INFINITY;
    for (int i = 0; i < LOOKS && *ratio > FAR_BEHIND * r->best.score; i++) {
        if (look(seconds, &turn[0]) || (i && look(&e->shipped, &turn[1])))
            return -1;
        *ratio = fmin(*ratio, *seconds / e->shipped);
    }
    return 0;
}

static int time_it(double *ratio, double *seconds, struct race *r, struct entrant *e,
                   const struct vn_choice *it, const struct vn_choice *shipped)
{
    struct turn turn[2] = { { r, e, it }, { r, e, shipped } };
    struct runner runner[2] = { { .run = take_turn, .state = &turn[0] },
                                { .run = take_turn, .state = &turn[1] } };

    if (look_at_both(ratio, seconds, r, e, turn))
        return -1;
    if (*ratio > FAR_BEHIND * r->best.score)
        return 0;
    *ratio = 0;
    for (int i = 0; i < LOOKS && *ratio < r->best.score; i++) {     /* a record by luck would stay one */
        sample_in_turns(runner, 2, sampling_seconds(r, e));
        if (runner[0].failed || runner[1].failed)
            return -1;
        *seconds = runner[0].median;
        *ratio   = fmax(*ratio, runner[0].median / runner[1].median);
    }
    return 0;
}

/* The device may have been lost with a row that it could not run. */
static int is_alive(struct race *r, struct entrant *e, const struct vn_choice *shipped)
{
    const struct turn t = { r, e, shipped };

    return !run(&t, 1) && !vn_queue_finish(r->suite->queue);
}

/* What came of it goes into m; not 0: the device was lost. */
static int try_row(struct measurement *m, struct race *r, struct entrant *e, struct kernels *k, const int *p,
                   const struct vn_choice *shipped)
{
    const struct turn t = { r, e, kernels_for(k, r, &e->build, p) };
    struct results result = { { NULL } };

    *r->why = '\0';
    m->ratio = INFINITY;
    if (!t.it || result_of(&result, &t))
        r->illegal++;
    else if (!is_right(r, &t, &result)) {
        char row[TUNE_WHY];

        r->wrong++;
        complain("%s is passed over, for its results are wrong: %s", row_text(row, r, p), r->why);
    } else if (time_it(&m->ratio, &m->seconds, r, e, t.it, shipped)) {
        m->ratio = INFINITY;
        r->illegal++;
    } else
        r->measured++;
    results_close(&result);
    if (!isinf(m->ratio))
        return 0;
    if (!*r->why)
        snprintf(r->why, sizeof r->why, "%s", *vn_last_error() ? vn_last_error() : "host memory ran out");
    return is_alive(r, e, shipped) ? 0 : -1;
}

static int journal_failed(struct race *r)
{
    snprintf(r->why, sizeof r->why, "%.400s cannot be written: host memory or disk space ran out",
             r->journal->path);
    return -1;
}

/* From the journal, or measured and written there.  0, or -1 with why. */
static int ratio_on(double *out, struct race *r, struct entrant *e, struct kernels *k, const int *p,
                    const struct vn_choice *shipped)
{
    struct measurement m = { .key = key_of(r, &e->build, p) };
    const struct measurement *const known = journal_find(r->journal, m.key, e->text);
    char row[TUNE_WHY], note[2 * TUNE_WHY + 4];
    int lost;

    if (known) {
        r->known++;
        *out = known->ratio;
        return 0;
    }
    snprintf(m.problem, sizeof m.problem, "%s", e->text);
    row_text(row, r, p);
    if (journal_begin(r->journal, m.key, e->text))
        return journal_failed(r);
    lost = try_row(&m, r, e, k, p, shipped);
    snprintf(note, sizeof note, "%s%s%s", row, *r->why ? ": " : "", r->why);
    if (journal_end(r->journal, &m, note))
        return journal_failed(r);
    if (lost)
        snprintf(r->why, sizeof r->why, "the device was lost with the row %.200s, which is now passed over: "
                 "run the same command again", row);
    *out = m.ratio;
    return lost;
}

/* ---- the search ---- */

struct field { struct race *race; struct kernels shipped; };

static int time_is_up(const struct race *r)
{
    return *r->interrupted || vn__seconds() - r->began > (1 - CONTEST) * r->seconds;
}

/* Among the first few, if it belongs there. */
static void rank(struct race *r, const int *p, double score)
{
    int at = TUNE_TOP;

    while (at > 0 && score < r->top[at - 1].score)
        at--;
    if (at == TUNE_TOP)
        return;
    memmove(&r->top[at + 1], &r->top[at], (size_t)(TUNE_TOP - 1 - at) * sizeof *r->top);
    r->top[at].score = score;
    memcpy(r->top[at].p, p, sizeof r->top[at].p);
    r->best = r->top[0];
}

/* row_score of the search */
static int score_row(double *out, void *state, const int *p)
{
    struct field *const f = state;
    struct race *const r = f->race;
    struct kernels k = { .count = 0 };
    double sum = 0, ratio = 1;
    int n = 0, failed = 0;

    if (time_is_up(r))
        return -1;
    *r->why = '\0';
    for (int i = 0; i < r->count && !failed && !isinf(ratio); i++) {
        struct entrant *const e = &r->it[i];

        if (!e->takes_part)
            continue;
        failed = ratio_on(&ratio, r, e, &k, p, kernels_for(&f->shipped, r, &e->build, r->shipped));
        sum += log(ratio);
        n++;
        if (exp(sum / n) > FAR_BEHIND * r->best.score)
            break;
    }
    kernels_close(&k, r);
    if (failed)
        return -1;
    *r->why = '\0';
    *out = exp(sum / n);
    rank(r, p, *out);
    r->progress(r);
    return 0;
}

static int time_shipped(struct race *r, struct entrant *e, struct turn *t)
{
    struct runner runner = { .run = take_turn, .state = t };

    sample_in_turns(&runner, 1, fmin(0.5, r->seconds / 20));
    e->shipped = runner.median;
    if (runner.failed)
        snprintf(r->why, sizeof r->why, "%.200s: %.200s", e->text, vn_last_error());
    return runner.failed;
}

/* The result of the shipped row is what the others' are compared with.  0 also where there is no
 * room for the problem.                                                                        */
static int enter(struct race *r, struct entrant *e, struct kernels *shipped)
{
    struct turn t = { r, e, NULL };
    char why[SENTENCE];

    if (values_fit(r->suite->device, &e->problem, r->suite->info.is_cpu ? 4 : 3, why, sizeof why)) {
        complain("%s is left out: %s", e->text, why);
        return 0;
    }
    if (values_open(&e->values, r->suite->queue, r->suite->device, &e->problem)
        || !(t.it = kernels_for(shipped, r, &e->build, r->shipped))
        || !(e->takes_part = !result_of(&e->reference, &t))) {
        snprintf(r->why, sizeof r->why, "%s: %s", e->text,
                 *vn_last_error() ? vn_last_error() : "host memory ran out");
        return -1;
    }
    if (spot_check(&e->problem, &e->values, &e->reference, why, sizeof why)) {
        snprintf(r->why, sizeof r->why, "%.200s: the shipped row's result is %s", e->text, why);
        return -1;
    }
    return is_exact(r, &t) && !time_shipped(r, e, &t) ? 0 : -1;
}

static int enter_all(struct race *r, struct kernels *shipped)
{
    int entered = 0;

    for (int i = 0; i < r->count; i++) {
        if (enter(r, &r->it[i], shipped))
            return -1;
        entered += r->it[i].takes_part;
    }
    if (!entered)
        snprintf(r->why, sizeof r->why, "none of its problems fits into memory");
    return entered ? 0 : -1;
}

static int is_row(const int *a, const int *b)
{
    return !memcmp(a, b, VN_PARAMS * sizeof *a);
}

static int search(struct race *r, struct field *f)
{
    struct scored best;

    for (int i = 0; i < TUNE_TOP; i++)
        r->top[i].score = INFINITY;
    rank(r, r->shipped, 1);
    r->progress(r);
    if (!is_row(r->current, r->shipped)) {
        double score;

        if (score_row(&score, f, r->current))
            return *r->why ? -1 : 0;
    }
    best = r->best;
    if (search_space(&best, &r->space, score_row, f))
        snprintf(r->why, sizeof r->why, "host memory ran out");
    return *r->why ? -1 : 0;
}

int race_run(struct race *r)
{
    struct field f = { .race = r };
    int failed;

    r->began = vn__seconds();
    failed = enter_all(r, &f.shipped) || search(r, &f);
    kernels_close(&f.shipped, r);
    return failed ? -1 : 0;
}

/* ---- the last contest ---- */

struct contest {
    struct race   *race;
    const int     *p[MOST_IN_CONTEST];    /* the current row first */
    struct kernels k[MOST_IN_CONTEST];
    int            count;
    double         log_ratio[MOST_IN_CONTEST];    /* to the current row's time, summed over problems */
    double         log_sure[MOST_IN_CONTEST];     /* of its median to the current row's lower quartile */
};

static void compete(struct contest *c, const int *p)
{
    for (int i = 0; i < c->count; i++)
        if (is_row(c->p[i], p))
            return;
    c->p[c->count++] = p;
}

static int hold_on(struct contest *c, struct entrant *e, double seconds, double medians[MOST_IN_CONTEST])
{
    struct turn turn[MOST_IN_CONTEST];
    struct runner runner[MOST_IN_CONTEST];

    for (int i = 0; i < c->count; i++) {
        turn[i]   = (struct turn){ c->race, e, kernels_for(&c->k[i], c->race, &e->build, c->p[i]) };
        runner[i] = (struct runner){ .run = take_turn, .state = &turn[i] };
        if (!turn[i].it || run(&turn[i], 1))
            return -1;
    }
    sample_in_turns(runner, c->count, seconds);
    for (int i = 0; i < c->count; i++) {
        if (runner[i].failed)
            return -1;
        medians[i] = runner[i].median;
        c->log_ratio[i] += log(runner[i].median / runner[0].median);
        c->log_sure[i]  += log(runner[i].median / runner[0].sample[runner[0].count / 4]);
    }
    return 0;
}

/* The medians of the current row and the fastest; of several problems, the fastest by their mean. */
static int hold_all(struct contest *c)
{
    struct race *const r = c->race;
    const double left = r->seconds - (vn__seconds() - r->began);
    const double seconds = fmin(fmax(left, CONTEST / 2 * r->seconds), CONTEST * r->seconds) / r->count;
    double (*const medians)[MOST_IN_CONTEST] = calloc((size_t)r->count, sizeof *medians);
    int failed = !medians, fastest = 0;

    for (int i = 0; i < r->count && !failed; i++)
        if (r->it[i].takes_part)
            failed = hold_on(c, &r->it[i], seconds, medians[i]);
    for (int i = 1; i < c->count; i++)
        if (c->log_ratio[i] < c->log_ratio[fastest])
            fastest = i;
    for (int i = 0; i < r->count && !failed; i++) {
        r->it[i].current = medians[i][0];
        r->it[i].winner  = medians[i][fastest];
    }
    free(medians);
    return failed ? -1 : fastest;
}

int race_decide(struct race *r)
{
    struct contest c = { .race = r };
    int fastest, entered = 0;

    for (int i = 0; i < r->count; i++)
        entered += r->it[i].takes_part;
    compete(&c, r->current);
    compete(&c, r->shipped);
    for (int i = 0; i < TUNE_TOP; i++)
        if (!isinf(r->top[i].score))
            compete(&c, r->top[i].p);
    fastest = hold_all(&c);
    for (int i = 0; i < c.count; i++)
        kernels_close(&c.k[i], r);
    if (fastest < 0) {
        snprintf(r->why, sizeof r->why, "%s", *vn_last_error() ? vn_last_error() : "host memory ran out");
        return -1;
    }
    memcpy(r->best.p, c.p[fastest], sizeof r->best.p);
    r->gain = exp(-c.log_ratio[fastest] / entered);
    return fastest && r->gain >= LEAST_GAIN && c.log_sure[fastest] < 0;
}

void race_close(struct race *r)
{
    for (int i = 0; i < r->count; i++) {
        values_close(&r->it[i].values);
        results_close(&r->it[i].reference);
    }
    free(r->it);
}
