/* SPDX-License-Identifier: Apache-2.0
 *
 * row.c - measures one problem on both devices of a pair, everybody in turns.
 *
 * The first device chooses a variant and its row; the second runs the same text with the same
 * row, and what it would choose itself, where that is something else; then come the vendors'
 * libraries.  All compute on the same random numbers, and each result is compared with the
 * first device's, which the oracle has checked, before anything is timed.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "core.h"
#include "measure/dictated.h"
#include "disassembly.h"
#include "gap.h"
#include "launched.h"
#include "bench/series.h"
#include "check/spot.h"
#include "problem/op.h"

enum { CONTENDERS = 5 + LIBRARIES };
enum { IS_SAME = 1, IS_BEST = 2 };      /* one of the pair of equal kernels; the best of ours on its device */

/* Seconds.  Where the interval is that of several processes, longer samples of each would not narrow it. */
static const double SHORT_SAMPLE = 0.003;
/* Within a tenth of a second a GPU has come to the clock at which a kernel meets its power cap. */
static const double LEAD = 0.1;

struct contest;

struct contender {
    struct contest *contest;
    char            name[32];             /* of a library; "": ours */
    unsigned        roles;
    int             side;
    struct problem  problem;              /* with the variant that was forced */
    struct theirs   theirs;               /* a peer; else theirs.peer is NULL */
    void           *prepared;             /* of the peer */
    json_t         *how;                  /* vn_queue_explain() */
    struct vn_choice choice;
    vn_type         type;
    int             wide, ready, failed;
    char            note[SENTENCE];
    double          wall[SAMPLES];        /* of its samples, beside them: `walls` of them */
    int             walls;
    struct timing   kernel, by_wall;      /* what was measured of it; by_wall: ours alone */
    double          mhz;                  /* the device's clock behind samples of long runs; 0: not known */
    struct runner  *runner;
    struct series   series;
};

/* What ours need to run: not there yet, there, or not to be had. */
enum stage { ASKED, READY, REFUSED };

struct contest {
    struct gap            *gap;
    const struct workload *w;
    enum stage             stage;
    const char            *of;            /* "", or the problem whose FMA row this is */
    struct values          values[SIDES];
    int                    has_values[SIDES];
    struct results         result;        /* of the first device, if has_result */
    int                    has_result;
    struct contender       it[CONTENDERS];
    int                    count;
    struct watched         watched;
    char                   note[SENTENCE];
    int                    failed;
};

static int is_ours(const struct vn_variant *v)
{
    return v->texts != NULL;
}

/* ---- running ---- */

static vn_status run_once(void *state)
{
    const struct contender *const c = state;

    return problem_run(c->contest->gap->side[c->side].queue, &c->problem, &c->contest->values[c->side].o);
}

/* By the clock on the wall, with nothing else on the queue. */
static int time_wall(double *seconds, struct contender *c, int repeats)
{
    vn_queue *const q = c->contest->gap->side[c->side].queue;
    const double start = vn__seconds();

    for (int i = 0; i < repeats; i++)
        if (run_once(c))
            return -1;
    if (vn_queue_finish(q))
        return -1;
    *seconds = vn__seconds() - start;
    return 0;
}

static int run_ours(void *state, int repeats, double *seconds)
{
    struct contender *const c = state;
    const struct side *const s = &c->contest->gap->side[c->side];
    const int at = c->runner->count;                    /* where sampling.c will put this sample */
    double wall;

    if (c->contest->gap->peers)
        peer_turn(NULL);
    for (int i = 0; i < 2 && repeats > 1; i++)          /* not measured: they wake what sleeps */
        if (run_once(c))
            return -1;
    if (vn_queue_finish(s->queue))
        return -1;
    wall = vn__seconds();
    if (s->by_events && (series_time(seconds, &c->series, run_once, c, repeats) || vn_queue_finish(s->queue)))
        return -1;
    wall = vn__seconds() - wall;
    if (s->by_events && c->series.held && at >= SAMPLES_SURE)
        return 0;                                       /* no more runs of their own than make an interval */
    if ((!s->by_events || c->series.held) && time_wall(&wall, c, repeats))
        return -1;
    c->wall[at] = wall / repeats;
    c->walls    = at + 1;
    if (!s->by_events)
        *seconds = wall;
    return 0;
}

/* ---- first runs ---- */

static int refuse(struct contender *c, vn_status s)
{
    c->failed = s != VN_UNSUPPORTED;
    snprintf(c->note, SENTENCE, "%s", vn_last_error());
    return -1;
}

/* The outputs of a run that ended; -1 after a note. */
static int take_result(struct results *out, struct contender *c)
{
    const struct contest *const t = c->contest;
    const struct operands *const o = &t->values[c->side].o;
    const int no_memory = results_open(out, o, NULL);

    if (!no_memory && !results_read(out, o, t->gap->side[c->side].queue))
        return 0;
    results_close(out);
    c->failed = 1;
    snprintf(c->note, SENTENCE, "its result cannot be read: %s",
             no_memory ? "host memory ran out" : vn_last_error());
    return -1;
}

static int agrees_with_first(struct contender *c, const struct results *result)
{
    const struct contest *const t = c->contest;

    if (results_agree(&c->problem, &t->values[FIRST].o, &t->result, result, NULL, c->note, SENTENCE,
                      *c->name ? c->name : "the second device"))
        return 1;
    c->failed = 1;
    return 0;
}

/* Takes over the result of the first device's first run. */
static int judge(struct contender *c)
{
    struct contest *const t = c->contest;
    struct results result;

    if (take_result(&result, c))
        return -1;
    if (t->has_result) {
        const int right = agrees_with_first(c, &result);

        results_close(&result);
        return right ? 0 : -1;
    }
    t->result     = result;
    t->has_result = 1;
    if (!spot_check(&c->problem, &t->values[FIRST], &t->result, c->note, SENTENCE))
        return 0;
    c->failed = 1;
    return -1;
}

static int first_run(struct contender *c)
{
    struct contest *const t = c->contest;
    vn_queue *const q = t->gap->side[c->side].queue;
    vn_status s = VN_OK;

    if (values_restore(&t->values[c->side], &t->values[FIRST], q)
        || (s = problem_run(q, &c->problem, &t->values[c->side].o)))
        return refuse(c, s ? s : VN_FAILED);
    if (q->last) {
        const struct vn_problem *const head = (const struct vn_problem *)q->last->problem;

        c->how    = json_loads(vn_queue_explain(q), 0, NULL);
        c->choice = *q->last->choice;
        c->type   = head->type;
        c->wide   = head->wide;
    }
    if ((s = vn_queue_finish(q)))
        return refuse(c, s);
    return judge(c);
}

static int peer_first_run(struct contender *c, const struct peer *peer)
{
    struct contest *const t = c->contest;
    const struct operands *const o = &t->values[FIRST].o;
    struct results result;
    int right;

    c->theirs.peer = peer;
    c->theirs.state = &c->prepared;
    c->theirs.count = 1;
    if (peer->prepare(&c->prepared, &c->problem, &t->values[FIRST], c->note, SENTENCE))
        return -1;
    if (results_open(&result, o, &t->result) || peer->run(c->prepared)
        || peer_results(peer, c->prepared, &result, o)) {
        results_close(&result);
        c->failed = 1;
        snprintf(c->note, SENTENCE, "it failed");
        return -1;
    }
    right = agrees_with_first(c, &result);
    results_close(&result);
    c->theirs.by_device = theirs_by_device(&c->theirs, t->gap->side[FIRST].by_events);
    return right ? 0 : -1;
}

/* ---- who takes part ---- */

static struct contender *enter(struct contest *t, int side, unsigned roles, const char *variant)
{
    struct contender *const c = &t->it[t->count++];

    *c = (struct contender){ .contest = t, .side = side, .roles = roles, .problem = t->w->problem };
    if (variant)
        snprintf(c->problem.variant, sizeof c->problem.variant, "%s", variant);
    return c;
}

static int give_values(struct contest *t, int side)
{
    struct side *const s = &t->gap->side[side];

    if (t->has_values[side])
        return 0;
    t->has_values[side] = 1;
    return side == FIRST ? values_open(&t->values[side], s->queue, s->device, &t->w->problem)
                         : values_share(&t->values[side], &t->values[FIRST], s->queue, s->device,
                                        &t->w->problem);
}

/* The first of our own variants that can; the default choice was a vendor's library. */
static void enter_own_kernel(struct contest *t, int side)
{
    for (const struct vn_variant *v = t->w->problem.op->operation->variants; v->name; v++) {
        struct contender *c;

        if (!is_ours(v) || (v > t->w->problem.op->operation->variants && !strcmp(v->name, v[-1].name)))
            continue;
        c = enter(t, side, IS_BEST | (side == FIRST ? IS_SAME : 0), v->name);
        if ((c->ready = !first_run(c)) || c->failed)
            return;
        json_decref(c->how);
        t->count--;
    }
}

/* The best of ours on a device: what it chooses when nobody asks. */
static struct contender *enter_best(struct contest *t, int side)
{
    struct contender *c = enter(t, side, IS_BEST | (side == FIRST ? IS_SAME : 0), NULL);

    c->ready = !first_run(c);
    if (!c->ready || is_ours(c->choice.variant))
        return c;
    json_decref(c->how);
    t->count--;
    enter_own_kernel(t, side);
    return &t->it[t->count - 1];
}

static int is_same_kernel(const struct contender *a, const struct contender *b)
{
    return a->choice.variant == b->choice.variant && json_equal(json_object_get(a->how, "parameters"),
                                                                json_object_get(b->how, "parameters"));
}

/* The variant and row of one device, on the other one opened once more. */
static struct contender *enter_twin(struct contest *t, int side, const struct contender *like)
{
    struct contender *const c = enter(t, side, IS_SAME, like->choice.variant->name);

    if (twin_open(t->gap, side) || give_values(t, side)) {
        snprintf(c->note, SENTENCE, "%s", *vn_last_error() ? vn_last_error() : "memory ran out");
        return c;
    }
    row_dictate(t->gap->side[side].device, &like->choice);
    c->ready = !first_run(c);
    row_dictate(NULL, NULL);
    return c;
}

/* One kernel for both: what device 1 chose, on device 2; if that cannot be, the other way round. */
static void pair_up(struct contest *t, struct contender *first, struct contender *second)
{
    struct contender *back;

    if (second->ready && is_same_kernel(first, second)) {
        second->roles |= IS_SAME;
        return;
    }
    if (enter_twin(t, SECOND_TWIN, first)->ready || !second->ready)
        return;
    back = enter_twin(t, FIRST_TWIN, second);
    if (back->ready) {
        first->roles  &= ~(unsigned)IS_SAME;
        second->roles |= IS_SAME;
        t->it[t->count - 2] = *back;              /* in the place of the twin that failed */
    }
    t->count--;
}

static int has_variant(const struct op *op, const char *name)
{
    for (const struct vn_variant *v = op->operation->variants; v->name; v++)
        if (!is_ours(v) && !strcmp(v->name, name))
            return 1;
    return 0;
}

/* Once more, now that it has made its plans, to hear what it launches. */
static void listen_to(struct contender *c)
{
    struct contest *const t = c->contest;
    vn_queue *const q = t->gap->side[c->side].queue;
    json_t *names;

    launched_listen();
    problem_run(q, &c->problem, &t->values[c->side].o);
    vn_queue_finish(q);
    if (!(names = launched_names()))
        return;

    const char *const class = launched_class(names, c->problem.type == VN_F64);

    json_object_set_new(c->how, "kernels", names);
    if (class)
        json_object_set_new(c->how, "instructions", json_string(class));
}

/* As a variant of the first device, else of the second, else as a peer. */
static void enter_library(struct contest *t, const struct library *l)
{
    static const int order[] = { FIRST, SECOND };
    struct contender *c = NULL;

    for (int i = 0; i < 2 && has_variant(t->w->problem.op, l->name); i++) {
        if (c) {
            json_decref(c->how);
            t->count--;
        }
        c = enter(t, order[i], 0, l->name);
        snprintf(c->name, sizeof c->name, "%s", l->name);
        if ((c->ready = !first_run(c)))
            listen_to(c);
        if (c->ready || c->failed)
            return;
    }
    if (!l->peer)
        return;
    if (c)
        t->count--;
    c = enter(t, FIRST, 0, NULL);
    snprintf(c->name, sizeof c->name, "%s", l->name);
    c->ready = !peer_first_run(c, l->peer);
}

static int can_hold(struct contest *t)
{
    char why[SENTENCE - 64];

    for (int i = 0; i < 2; i++) {
        const struct side *const s = &t->gap->side[i];

        if (!(s->device->facts.types >> t->w->problem.type & 1))
            snprintf(t->note, SENTENCE, "skipped: %s has no %s", s->info.spec,
                     vn_type_name(t->w->problem.type));
        else if (values_fit(s->device, &t->w->problem, s->info.is_cpu ? 5 + t->gap->peers : 3, why,
                            sizeof why))
            snprintf(t->note, SENTENCE, "skipped: %s: %s", s->info.spec, why);
    }
    return !*t->note;
}

static int fail(struct contest *t, const char *sentence)
{
    t->failed = 1;
    snprintf(t->note, SENTENCE, "failed: %s", sentence);
    return -1;
}

static int gather(struct contest *t)
{
    struct contender *first, *second;

    if (!can_hold(t))
        return -1;
    if (give_values(t, FIRST) || give_values(t, SECOND))
        return fail(t, *vn_last_error() ? vn_last_error() : "host memory ran out");
    first = enter_best(t, FIRST);
    if (!first->ready) {
        t->failed = first->failed;
        snprintf(t->note, SENTENCE, "%s: %.180s", first->failed ? "failed" : "skipped", first->note);
        return -1;
    }
    second = enter_best(t, SECOND);
    pair_up(t, first, second);
    return 0;
}

/* Once, whoever asks first. */
static int is_ready(struct contest *t)
{
    if (t->stage == ASKED)
        t->stage = gather(t) ? REFUSED : READY;
    return t->stage == READY;
}

/* The values of all processes at once; both devices, and their twins, may be one GPU. */
static int fits_beside(const struct gap *g, const struct problem *p)
{
    const struct problem *each[SIDES * SAMPLES];
    char why[SENTENCE];

    for (int i = 0; i < SIDES * g->processes; i++)
        each[i] = p;
    for (int i = 0; i < 2; i++)
        if (values_fit_all(g->side[i].device, each, SIDES * g->processes, 1, why, sizeof why))
            return 0;
    return 1;
}

/* ---- timing ---- */

static void note_times(struct contender *c, const struct runner *r)
{
    if (r->failed) {
        c->ready = 0;
        c->failed = 1;
        snprintf(c->note, SENTENCE, "%s", c->theirs.peer ? "it failed" : vn_last_error());
        return;
    }
    c->kernel = timing_of(r->sample, r->count, r->repeats);
    c->mhz = summary_of(r->mhz, r->count).median;
    if (!c->theirs.peer)
        c->by_wall = timing_of(c->wall, c->walls, r->repeats);
}

static void take_turns(struct contest *t)
{
    struct runner runner[CONTENDERS];
    struct contender *who[CONTENDERS];
    int count = 0;

    for (int i = 0; i < t->count; i++)
        if (t->it[i].ready) {
            struct contender *const c = who[count] = &t->it[i];
            const struct side *const s = &t->gap->side[c->side];

            c->series = (struct series){ .queue = s->queue, .by_events = 1, .hold = s->hold };
            runner[count] = c->theirs.peer ? (struct runner){ .run = theirs_run, .state = &c->theirs }
                                           : (struct runner){ .run = run_ours, .state = c };
            runner[count].most   = s->hold ? HELD : 0;
            runner[count].least  = SAMPLES_SURE;
            runner[count].length = t->gap->processes > 1 ? SHORT_SAMPLE : 0;
            runner[count].lead   = s->hold ? LEAD : 0;
            c->runner = &runner[count++];
        }
    sample_watched(&t->watched, runner, count, t->gap->budget, t->gap->side[FIRST].info.is_cpu);
    if (t->gap->peers)
        peer_turn(NULL);
    for (int i = 0; i < count; i++)
        note_times(who[i], &runner[i]);
}

/* ---- what the compilers made of it ---- */

enum { KEY = 256 };

/* Members that are 0 in a bare problem. */
static const struct { const char *name; size_t at; } epilogue[] = {
    { "act",      offsetof(struct vn_epilogue, act)      },
    { "scale",    offsetof(struct vn_epilogue, scale)    },
    { "residual", offsetof(struct vn_epilogue, residual) },
    { "bias",     offsetof(struct vn_epilogue, bias)     },
};

static void add_word(char text[KEY], const char *name, int value)
{
    const size_t n = strlen(text);

    snprintf(text + n, KEY - n, " %s%s%d", name, *name ? "=" : "", value);
}

/* What a text is made of: the row's parameters, the constants of the problem, and its epilogue, if any. */
static json_t *kernel_key(const struct contender *c)
{
    const struct vn_variant *const v = c->choice.variant;
    const struct vn_epilogue *const e = &c->choice.epilogue;
    char text[KEY], word[64];
    const char *name;
    json_t *value;

    snprintf(text, sizeof text, "%s %s%s", v->name, vn_type_name(c->type), c->wide ? " wide" : "");
    json_object_foreach(json_object_get(c->how, "parameters"), name, value)
        add_word(text, "", (int)json_number_value(value));
    for (int i = 0; vn__constant_at(word, v, i); i++)
        add_word(text, word, c->choice.c[i]);
    for (size_t i = 0; i < sizeof epilogue / sizeof *epilogue; i++)
        if (*(const int *)((const char *)e + epilogue[i].at))
            add_word(text, epilogue[i].name, *(const int *)((const char *)e + epilogue[i].at));
    return json_string(text);
}

static void look_at_kernels(struct contest *t, json_t *row, const struct contender *first,
                            const struct contender *second)
{
    json_t *const key = kernel_key(first);
    const char *const name = json_string_value(key);

    json_object_set_new(row, "kernel", key);
    if (t->gap->repeats || json_object_get(t->gap->kernels, name))
        return;

    json_t *const entry = json_pack("{s:O}", "parameters", json_object_get(first->how, "parameters"));
    json_t *const one = disassembly(t->gap->side[FIRST].device, &first->choice, first->type, first->wide);
    json_t *const two = second && second->ready
                      ? disassembly(t->gap->side[second->side].device, &second->choice, second->type,
                                    second->wide)
                      : NULL;

    if (one)
        json_object_set_new(entry, "first", one);
    if (two)
        json_object_set_new(entry, "second", two);
    json_object_set_new(t->gap->kernels, name, entry);
}

/* ---- the row ---- */

/* Ours as explained; a library's by the kernels that it launched, "" where nobody heard them. */
static const char *engine_of(const struct contender *c)
{
    return json_text(c->how, *c->name ? "instructions" : "engine");
}

static const struct contender *with_role(const struct contest *t, unsigned role, int second)
{
    for (int i = 0; i < t->count; i++)
        if (!*t->it[i].name && t->it[i].roles & role && (t->it[i].side & 1) == second)
            return &t->it[i];
    return NULL;
}

static double kernel_time(const struct contender *c)
{
    return c && c->ready ? c->kernel.s.median : 0;
}

static json_t *run_json(const struct contender *c)
{
    json_t *const out = json_pack("{s:s}", "device", c->contest->gap->side[c->side].info.spec);

    if (*c->name)
        json_object_set_new(out, "library", json_string(c->name));
    else {
        json_object_set_new(out, "same", json_boolean(c->roles & IS_SAME));
        json_object_set_new(out, "best", json_boolean(c->roles & IS_BEST));
    }
    if (!c->ready) {
        json_object_set_new(out, c->failed ? "error_message" : "skip_message", json_string(c->note));
        return out;
    }
    for (const char *const *name = (const char *const []){ "variant", "row", "parameters", "workspace",
                                                           "kernels", "instructions", NULL };
         *name; name++)
        if (json_object_get(c->how, *name))
            json_object_set(out, *name, json_object_get(c->how, *name));
    json_object_set_new(out, "engine", json_string(engine_of(c)));
    json_object_set_new(out, "kernel_time", json_real(c->kernel.s.median));
    json_object_update_new(out, timing_json(&c->kernel));
    if (c->by_wall.s.count) {
        json_t *const wall = timing_json(&c->by_wall);

        json_object_set_new(out, "wall_time", json_real(c->by_wall.s.median));
        json_object_set(out, "wall_samples_s", json_object_get(wall, "samples_s"));
        json_object_set(out, "wall_interval_s", json_object_get(wall, "interval_s"));
        json_decref(wall);
    }
    return out;
}

/* The gap between two, with the times and the engines that it is of; NULL where one of them is missing. */
static json_t *gap_json(const struct contender *over, const struct contender *under, int by_wall)
{
    const struct timing *const a = over ? by_wall ? &over->by_wall : &over->kernel : NULL;
    const struct timing *const b = under ? by_wall && under->by_wall.s.count ? &under->by_wall
                                                                             : &under->kernel : NULL;
    json_t *out;

    if (!(kernel_time(over) > 0) || !(kernel_time(under) > 0) || !a->s.count || !b->s.count)
        return NULL;

    const struct ratio r = timing_ratio(a, b);

    out = ratio_json(&r);
    json_object_update_new(out, json_pack("{s:f, s:f, s:[s, s], s:[s, s], s:b, s:s}",
        "first_s", a->s.median, "second_s", b->s.median,
        "variants", json_text(over->how, "variant"), json_text(under->how, "variant"),
        "engines", engine_of(over), engine_of(under),
        "like", engines_are_like(engine_of(over), engine_of(under)),
        "clock", by_wall || !over->contest->gap->side[FIRST].by_events ? "wall" : "device"));
    if (!by_wall && over->mhz > 0 && under->mhz > 0)
        json_object_update_new(out, json_pack("{s:f, s:f}", "first_mhz", over->mhz,
                                              "second_mhz", under->mhz));
    return out;
}

/* ... also as a number of its own, where it is one. */
static void set_gap(json_t *gaps, json_t *row, const char *name, const char *scalar, json_t *gap)
{
    if (!gap)
        return;
    json_object_set_new(gaps, name, gap);
    if (row)
        json_object_set(row, scalar, json_object_get(gap, "ratio"));
}

/* A peer whose device time is not known is measured by the wall, and so are we beside it. */
static void set_library_gaps(json_t *gaps, json_t *row, const struct contest *t)
{
    json_t *const libraries = json_object(), *const ratios = json_object();

    for (int i = 0; i < t->count; i++) {
        const struct contender *const c = &t->it[i];

        if (*c->name)
            set_gap(libraries, ratios, c->name, c->name,
                    gap_json(with_role(t, IS_BEST, 0), c, c->theirs.peer && !c->theirs.by_device));
    }
    json_object_set_new(gaps, "library", libraries);
    json_object_set_new(row, "library_gap", ratios);
}

static void set_gaps(json_t *row, const struct contest *t)
{
    const struct contender *const first = with_role(t, IS_SAME, 0), *const second = with_role(t, IS_SAME, 1);
    json_t *const gaps = json_object();

    set_gap(gaps, row, "toolchain", "toolchain_gap", gap_json(first, second, 0));
    set_gap(gaps, row, "toolchain_wall", "toolchain_gap_wall", gap_json(first, second, 1));
    set_gap(gaps, row, "best", "best_gap", gap_json(with_role(t, IS_BEST, 0), with_role(t, IS_BEST, 1), 0));
    if (json_object_get(gaps, "toolchain")) {
        json_object_set_new(row, "parity", json_string(parity_words(json_number(row, "toolchain_gap"))));
        json_object_set_new(row, "same_time", json_pack("[f, f]", kernel_time(first), kernel_time(second)));
    } else if (second)
        json_object_set_new(row, "toolchain_note", json_string(second->note));
    set_library_gaps(gaps, row, t);
    json_object_set_new(row, "gaps", gaps);
}

/* by_fma: the roof is that of multiply-adds, as of VN_MATH_BITWISE. */
static void set_roof(json_t *row, const char *share, const char *name, struct side *s,
                     const struct problem *p, int by_fma, double seconds)
{
    const struct amount w = problem_amount(p);
    struct problem under = *p;
    json_t *roof;

    under.math = by_fma ? VN_MATH_BITWISE : p->math;
    roofline_raise(&s->roofline, s->queue, p->type, under.math, &w, seconds);
    roof = json_roof(&s->roofline, &under, seconds);
    json_object_set_new(row, share, json_real(json_number(roof, "seconds") / seconds));
    json_object_set_new(row, name, roof);
}

static void set_figures(json_t *row, const struct contest *t)
{
    const struct problem *const p = &t->w->problem;
    const struct contender *const first = with_role(t, IS_BEST, 0), *const second = with_role(t, IS_BEST, 1);
    const double seconds = kernel_time(first), flops = problem_flops(p), bytes = problem_bytes(p);
    struct side *const s = t->gap->side;

    json_object_update_new(row, json_pack("{s:f, s:s, s:f, s:f, s:f, s:f}",
        "real_time", seconds, "time_unit", "s",
        "flops", flops, "bytes", bytes, "gflops", flops / seconds * 1e-9,
        "gbytes_per_second", bytes / seconds * 1e-9));
    json_object_update_new(row, timing_json(&first->kernel));
    if (!t->gap->repeats)
        set_roof(row, "roofline", "roof", &s[FIRST], p, *t->of, seconds);
    if (!t->gap->repeats && kernel_time(second) > 0)
        set_roof(row, "roofline_second", "roof_second", &s[SECOND], p, *t->of, kernel_time(second));
}

/* Nobody answers any more: a write of a few bytes is refused. */
static int is_lost(struct side *s)
{
    vn_buffer *b = NULL;
    const char zeros[16] = { 0 };
    const int lost = vn_buffer_open(&b, s->device, sizeof zeros)
                   || vn_write(s->queue, b, 0, zeros, sizeof zeros)
                   || vn_queue_finish(s->queue);

    vn_buffer_close(b);
    return lost;
}

static json_t *row_json(struct contest *t)
{
    const struct problem *const p = &t->w->problem;
    const struct contender *const first = with_role(t, IS_BEST, 0);
    json_t *const row = json_pack("{s:s, s:s, s:i, s:i, s:i, s:s, s:s, s:s, s:s, s:s, s:s}",
        "name", t->w->text, "run_name", t->w->text, "repetitions", 1,
        "repetition_index", 0, "threads", 1, "op", p->op->name, "type", vn_type_name(p->type),
        "device", t->gap->side[FIRST].info.spec, "as", *t->of ? "FMA" : "chosen",
        "variant", first && first->how ? json_text(first->how, "variant") : "",
        "engine", first && first->how ? engine_of(first) : "");
    json_t *const runs = json_array();

    if (*t->w->suite)
        json_object_set_new(row, "suite", json_string(t->w->suite));
    if (*t->of)
        json_object_set_new(row, "of", json_string(t->of));
    if (*t->w->label)
        json_object_set_new(row, "label", json_string(t->w->label));
    for (int i = 0; i < t->count; i++)
        json_array_append_new(runs, run_json(&t->it[i]));
    json_object_set_new(row, "runs", runs);
    if (kernel_time(first) > 0) {
        set_figures(row, t);
        set_gaps(row, t);
        look_at_kernels(t, row, with_role(t, IS_SAME, 0), with_role(t, IS_SAME, 1));
    } else {
        json_object_set_new(row, t->failed ? "error_occurred" : "skipped", json_true());
        json_object_set_new(row, t->failed ? "error_message" : "skip_message", json_string(t->note));
    }
    if (t->watched.machine) {
        json_object_set_new(row, "disturbed", json_string(t->watched.why));
        json_object_set(row, "machine", t->watched.machine);
        if (json_object_get(t->watched.machine, "clocks"))
            json_object_set(row, "clocks", json_object_get(t->watched.machine, "clocks"));
    }
    return row;
}

static void note_failures(struct contest *t)
{
    const struct contender *const first = with_role(t, IS_SAME, 0);

    if (first && !first->ready && !*t->note) {
        t->failed = first->failed;
        snprintf(t->note, SENTENCE, "failed: %.180s", first->note);
    }
    for (int i = 0; i < t->count; i++)
        t->failed |= t->it[i].failed;
    for (int i = 0; i < 2 && t->failed; i++)
        t->gap->lost |= is_lost(&t->gap->side[i]);
}

/* The cheapest plan of multiply-adds alone, where an f32 problem is solved otherwise: its variant, or "". */
static void find_fma(char out[32], const struct contest *t)
{
    const struct contender *const first = with_role(t, IS_BEST, 0);
    vn_queue *const q = t->gap->side[FIRST].queue;
    struct vn_candidate *list;
    double least = INFINITY;
    int count;

    *out = '\0';
    if (!first || !first->ready || t->w->problem.type != VN_F32 || *t->w->problem.variant
        || engine_is_fma(engine_of(first)) || problem_run(q, &first->problem, &t->values[FIRST].o)
        || vn__candidates(&list, &count, q, q->last->table, q->last->problem, NULL, 0))
        return;
    for (int i = 0; i < count; i++)
        if (!list[i].why && is_ours(list[i].variant) && !list[i].variant->engine
            && list[i].plan.seconds > 0 && list[i].plan.seconds < least) {
            snprintf(out, 32, "%s", list[i].variant->name);
            least = list[i].plan.seconds;
        }
    free(list);
}

struct contest *gap_row_open(struct gap *g, const struct workload *w, const char *of)
{
    struct contest *const t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->gap = g;
    t->w   = w;
    t->of  = of;
    return t;
}

void gap_row_prepare(struct contest *t)
{
    if (fits_beside(t->gap, &t->w->problem))
        is_ready(t);
}

json_t *gap_row_measure(struct contest *t, char fma[32], int *failed)
{
    json_t *row;

    if (is_ready(t)) {
        for (int i = 0; i < t->gap->libraries; i++)
            enter_library(t, &t->gap->library[i]);
        take_turns(t);
    }
    note_failures(t);
    row     = row_json(t);
    *failed = t->failed;
    find_fma(fma, t);
    return row;
}

/* What the queues keep for the next call, other processes need for this row. */
static void drop_workspaces(const struct gap *g)
{
    for (int i = 0; i < SIDES; i++)
        if (g->side[i].queue && !vn_queue_limit_workspace(g->side[i].queue, 0))
            vn_queue_limit_workspace(g->side[i].queue, SIZE_MAX);
}

void gap_row_close(struct contest *t)
{
    if (!t)
        return;
    if (!fits_beside(t->gap, &t->w->problem))
        drop_workspaces(t->gap);
    for (int i = 0; i < t->count; i++) {
        if (t->it[i].theirs.peer)
            t->it[i].theirs.peer->finish(t->it[i].prepared);
        json_decref(t->it[i].how);
    }
    for (int i = 0; i < SIDES; i++)
        if (t->has_values[i])
            values_close(&t->values[i]);
    results_close(&t->result);
    json_decref(t->watched.machine);
    free(t);
}
