/* SPDX-License-Identifier: Apache-2.0
 *
 * tune.c - vernier tune: reads the command line, holds a race for each row, and says what came of it.
 */
#include <argp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "bench/bench.h"
#include "commands.h"
#include "measure/dictated.h"
#include "model.h"
#include "options.h"
#include "tune.h"

/* ---- the command line ---- */

struct request {
    struct common common;                 /* its device and json */
    double      budget;                   /* of all; 0: not said */
    struct work work;
    model_measure *measure;               /* instead of a search; NULL: none */
};

enum { BUDGET = 256, VARIANT, RATES, COSTS, PIN };

static const struct argp_option options[] = {
    { "budget",  BUDGET,  "TIME", 0, "To spend in all: 30, 60s, 10m, 2h; 60s for each row unless said", 0 },
    { "variant", VARIANT, "NAME", 0, "The rows of this variant of ours, or of all that can do the problem; "
                                     "else of the one that the library chooses", 0 },
    { NULL, 0, NULL, 0, "Instead of a search, for the model of time by which the library chooses:", 1 },
    { "rates",   RATES,   NULL,   0, "Measure what the device does in a second, and write it", 1 },
    { "costs",   COSTS,   NULL,   0,
      "Time all plans for each WHAT, and write rows whose costs fit those times", 1 },
    { "pin",     PIN,     NULL,   0,
      "Time all plans for each WHAT, and pin the fastest where the library's choice is slower", 1 },
    { NULL, 0, NULL, 0, NULL, 0 }
};

static const char doc[] =
    "Searches better parameters for the kernels that do WHAT: a problem, as gemm:3000x3000x3000:f32:nn, or a "
    "suite of bench.  Where it finds some, it writes them as rows into the user's tune file (see vernier(7))."
    "\v"
    "The shipped row is measured first.  A row's results are checked before its time counts, and it is "
    "written only if it is faster in turns with the one in use at the end.  What was measured is kept beside "
    "the file: after an interruption, even a kill, the same command goes on from there.  Builds and runs "
    "that have begun are waited for, so it may end a little late.\n"
    "\n"
    "Exit status: 0, 1 if something went wrong or it was interrupted, 2 if nothing could be tried.";

static const struct argp_child children[] = {
    OPTIONS_CHILD(device_argp), OPTIONS_CHILD(json_argp), OPTIONS_CHILD(work_argp),
    OPTIONS_END };

static void choose_measure(struct argp_state *state, struct request *r, model_measure *measure)
{
    if (r->measure)
        argp_error(state, "--rates, --costs and --pin are done one at a time");
    r->measure = measure;
}

/* Who searches nothing has no use for some words. */
static void check_request(struct argp_state *state, const struct request *r)
{
    if (r->measure == model_rates && r->work.whats)
        argp_error(state, "--rates are the device's, and take no problem or suite: \"%s\"", r->work.what[0]);
    if (r->measure != model_rates && !r->work.whats)
        argp_error(state, "tune for what? A problem, or a suite: %s", workloads_suites());
    if (r->measure && r->budget > 0)
        argp_error(state, "--budget is of a search");
    if (r->measure && r->work.options.variant)
        argp_error(state, "--variant is of a search: all plans are timed");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct request *const r = state->input;

    switch (key) {
    case VARIANT: r->work.options.variant = arg;                    return 0;
    case BUDGET:  r->budget = option_seconds(state, "budget", arg); return 0;
    case ARGP_KEY_INIT:
        options_begin(state, children, &r->common, &r->work);
        return 0;
    case RATES:   choose_measure(state, r, model_rates); return 0;
    case COSTS:   choose_measure(state, r, model_costs); return 0;
    case PIN:     choose_measure(state, r, model_pins);  return 0;
    case ARGP_KEY_END:
        check_request(state, r);
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* ---- the whole ---- */

struct tune {
    const struct request *request;
    struct suite         *suite;
    struct journal        journal;
    char                  path[TUNE_PATH];        /* the user's file */
    struct race          *race;
    int                   races;
    FILE                 *to;
    json_t               *rows;
};

static struct progress progress;

/* ---- which rows ---- */

/* The calls of the library need buffers, though nothing will run on them.  why: of a failure. */
static vn_status ask(struct asked *out, const struct tune *t, const struct problem *p, char why[TUNE_WHY])
{
    struct operands o;
    vn_status s = VN_OK;

    out->variant = NULL;
    if (problem_operands(&o, p)) {
        snprintf(why, TUNE_WHY, "its size overflows");
        return VN_INVALID;
    }
    for (int i = 0; i < o.count && !s; i++)
        if (o.t[i].rank)
            s = vn_buffer_open(&o.t[i].buffer, t->suite->device, operand_bytes(&o, i) + 1);
    choice_ask(out);
    if (!s && !(s = problem_pack(t->suite->queue, p, &o)))     /* which chooses, if there is one */
        s = problem_run(t->suite->queue, p, &o);
    choice_ask(NULL);
    snprintf(why, TUNE_WHY, "%s", s ? vn_last_error() : "there is nothing to compute");
    for (int i = 0; i < o.count; i++)
        vn_buffer_close(o.t[i].buffer);
    return s;
}

static struct race *race_of(struct tune *t, const struct asked *asked)
{
    const struct vn_problem *const p = &asked->problem;
    struct race *more;

    for (int i = 0; i < t->races; i++)
        if (!strcmp(t->race[i].variant->name, asked->variant->name) && t->race[i].type == p->type &&
            t->race[i].bucket == p->bucket)
            return &t->race[i];
    if (!(more = realloc(t->race, ((size_t)t->races + 1) * sizeof *more)))
        return NULL;
    t->race = more;
    t->race[t->races] = (struct race){ .suite = t->suite, .variant = asked->variant, .type = p->type,
                                       .bucket = p->bucket, .interrupted = &interrupted,
                                       .current_source = asked->source };
    memcpy(t->race[t->races].current, asked->p, sizeof asked->p);
    return &t->race[t->races++];
}

static int add_entrant(struct tune *t, const struct problem *p, const struct asked *asked)
{
    struct race *const r = race_of(t, asked);
    struct entrant *const more = r ? realloc(r->it, ((size_t)r->count + 1) * sizeof *more) : NULL;

    if (!more) {
        complain("host memory ran out");
        return EXIT_FAILURE;
    }
    r->it = more;
    r->it[r->count] = (struct entrant){ .problem = *p, .build = { .variant = asked->variant,
                                        .wide = asked->problem.wide, .epilogue = asked->epilogue } };
    memcpy(r->it[r->count].build.c, asked->c, sizeof asked->c);
    problem_format(r->it[r->count++].text, p);
    return 0;
}

/* Of the variant that p names, or else the library's choice.  What cannot be is said, unless many
 * were asked.                                                                                    */
static int add_problem(struct tune *t, const struct problem *p, int one_of_many)
{
    struct asked asked;
    char text[PROBLEM_TEXT], why[TUNE_WHY];
    const vn_status s = ask(&asked, t, p, why);

    if (asked.variant && asked.variant->texts)
        return add_entrant(t, p, &asked);
    problem_format(text, p);
    if (s == VN_INVALID) {
        complain("%s: %s", text, why);
        return EXIT_USAGE;
    }
    if (!one_of_many)
        complain("%s is left out: %s", text,
                 asked.variant ? "a vendor's library does it, which has no rows to search" : why);
    return 0;
}

static int add_all_variants(struct tune *t, const struct problem *p)
{
    struct problem each = *p;
    const char *v = "";
    int status = 0;

    while (!status && (v = suite_next_variant(t->suite, p->op, v))) {
        snprintf(each.variant, sizeof each.variant, "%s", v);
        status = add_problem(t, &each, 1);
    }
    return status;
}

static int make_races(struct tune *t, const struct workloads *w)
{
    struct vn_row rows[VN_ROWS];
    int status = 0, count;

    for (int i = 0; i < w->count && !status; i++)
        status = strcmp(w->it[i].problem.variant, "all") ? add_problem(t, &w->it[i].problem, 0)
                                                         : add_all_variants(t, &w->it[i].problem);
    for (int i = 0; i < t->races && !status; i++) {
        struct race *const r = &t->race[i];

        r->journal = &t->journal;
        space_open(&r->space, r->variant);
        if (vn__tune_shipped(rows, &count, t->suite->device, r->variant, r->type, r->bucket)) {
            complain("%s", vn_last_error());
            status = EXIT_FAILURE;
            continue;
        }
        memcpy(r->shipped, r->current_source && !strcmp(r->current_source, "user") ? rows->p : r->current,
               sizeof r->shipped);
        for (int n = 0; n < count; n++)
            space_admit(&r->space, rows[n].p);
        space_admit(&r->space, r->current);
    }
    return status || t->races ? status : EXIT_USAGE;
}

/* ---- as it goes ---- */

static void show(const struct race *r)
{
    const double left = fmax(0, r->seconds - (vn__seconds() - r->began));

    progress_say(&progress, "%.20s %s %s: %d row%s, %d illegal; best %.3f times as fast  %d:%02d left",
                 r->variant->name, vn_type_name(r->type), vn__bucket_names[r->bucket], r->measured + r->known,
                 PLURAL(r->measured + r->known), r->illegal, 1 / r->best.score, (int)left / 60,
                 (int)left % 60);
}

/* ---- what came of it ---- */

static void print_row(FILE *to, const struct race *r, const char *what, const int *p)
{
    fprintf(to, "  %-8s", what);
    for (int i = 0; i < r->space.params; i++)
        fprintf(to, "  %s=%d", r->space.name[i], p[i]);
    fputc('\n', to);
}

static json_t *json_parameters(const struct race *r, const int *p)
{
    json_t *const out = json_object();

    for (int i = 0; i < r->space.params; i++)
        json_object_set_new(out, r->space.name[i], json_integer(p[i]));
    return out;
}

static int tried(const struct race *r)
{
    return r->measured + r->known + r->illegal + r->wrong;
}

static json_t *json_race(const struct race *r, int written)
{
    json_t *const problems = json_array();

    for (int i = 0; i < r->count; i++)
        if (r->it[i].takes_part)
            json_array_append_new(problems, json_pack("{s:s, s:f, s:f}", "name", r->it[i].text,
                                                      "real_time_before", r->it[i].current,
                                                      "real_time", r->it[i].winner));
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:f, s:b, s:i, s:i, s:i, s:i, s:f, s:b, s:o}",
        "variant", r->variant->name, "type", vn_type_name(r->type), "bucket", vn__bucket_names[r->bucket],
        "row", r->current_source, "parameters_before", json_parameters(r, r->current),
        "parameters", json_parameters(r, r->best.p), "gain", r->gain, "written", written,
        "measured", r->measured, "known", r->known, "illegal", r->illegal, "wrong", r->wrong,
        "space", space_size(&r->space), "too_few", tried(r) < space_neighbours(&r->space),
        "problems", problems);
}

static void print_race(FILE *to, const struct race *r, int better)
{
    char before[CELL], after[CELL];
    const int found = memcmp(r->best.p, r->current, sizeof r->best.p) != 0;

    fprintf(to, "\n%s, %s, %s\n", r->variant->name, vn_type_name(r->type), vn__bucket_names[r->bucket]);
    print_row(to, r, r->current_source, r->current);
    if (found)
        print_row(to, r, "found", r->best.p);
    for (int i = 0; i < r->count; i++)
        if (r->it[i].takes_part && found)
            fprintf(to, "  %s: %s ms, %s before\n", r->it[i].text, figure(after, r->it[i].winner * 1e3),
                    figure(before, r->it[i].current * 1e3));
    fprintf(to, "  %d row%s measured, %d known from before, %d illegal, %d wrong; there are %.0f\n",
            r->measured, PLURAL(r->measured), r->known, r->illegal, r->wrong, space_size(&r->space));
    if (tried(r) < space_neighbours(&r->space))
        fprintf(to, "  too few to say that none is faster: a step along each parameter makes %d; "
                    "with a longer --budget the same command goes on from here\n",
                space_neighbours(&r->space));
    if (better)
        fprintf(to, "  %.3f times as fast: ", r->gain);
    else
        fprintf(to, "  kept: %s\n", found ? "the difference is too small to be sure of"
                                          : "nothing faster was found");
}

/* What is to be written: the row that was found, with the costs of the one in use; where that has
 * alternatives, they and it stay alternatives.  Returns how many.                               */
static int rows_with(struct vn_row out[VN_ROWS], const struct tune *t, const struct race *r)
{
    struct vn_row now[VN_ROWS];
    int count, rows = 1, current = 0;

    if (vn__tune_find(now, &count, t->suite->device, r->variant, r->type, r->bucket))
        count = 0;
    out[0] = (struct vn_row){ .source = NULL };
    memcpy(out[0].p, r->best.p, sizeof out[0].p);
    for (int i = 0; i < count; i++)
        if (!memcmp(now[i].p, r->current, sizeof now[i].p))
            current = i;
    if (count)
        memcpy(out[0].cost, now[current].cost, sizeof out[0].cost);
    for (int i = 0; i < count && count > 1 && rows < VN_ROWS; i++)
        if (memcmp(now[i].p, r->best.p, sizeof now[i].p))
            out[rows++] = now[i];
    return rows;
}

/* A race that was run to its end. */
static int conclude(struct tune *t, struct race *r)
{
    const int better = race_decide(r);
    char comment[96], why[TUNE_PATH];
    struct vn_row rows[VN_ROWS];
    const struct row_line lines = { r->variant, t->suite->device, r->type, (int)r->bucket, rows,
                                    rows_with(rows, t, r), comment };

    progress_clear(&progress);
    if (better < 0) {
        complain("%s", r->why);
        return EXIT_FAILURE;
    }
    print_race(t->to, r, better);
    snprintf(comment, sizeof comment, "%.3f times as fast as %s, at %.48s", r->gain,
             !strcmp(r->current_source, "user") ? "before" : "shipped", r->it[0].text);
    if (better && user_file_put(t->path, &lines, why, sizeof why)) {
        fputs("not written\n", t->to);
        complain("%s", why);
        return EXIT_FAILURE;
    }
    if (better)
        fprintf(t->to, "written to %s\n", t->path);
    json_array_append_new(t->rows, json_race(r, better));
    fflush(t->to);
    return 0;
}

static int hold_race(struct tune *t, struct race *r, double seconds)
{
    int status = 0;

    r->seconds  = seconds;
    r->progress = show;
    if (race_run(r)) {
        progress_clear(&progress);
        complain("%s", r->why);
        status = EXIT_FAILURE;
    } else if (!interrupted)
        status = conclude(t, r);
    progress_clear(&progress);
    return status;
}

/* ---- from beginning to end ---- */

static int hold_races(struct tune *t)
{
    const double budget = t->request->budget > 0 ? t->request->budget : 60 * t->races, start = vn__seconds();
    int status = 0;

    progress_open(&progress, t->races);
    for (int i = 0; i < t->races && !interrupted; i++) {
        const double left = fmax(1, budget - (vn__seconds() - start));

        status |= hold_race(t, &t->race[i], left / (t->races - i));
        race_close(&t->race[i]);
        t->race[i].count = 0;
        t->race[i].it    = NULL;
    }
    if (interrupted && !status) {
        complain("interrupted; the same command goes on from here");
        status = EXIT_FAILURE;
    }
    return status;
}

static void print_head(const struct tune *t, const vn_device_info *info)
{
    fprintf(t->to, "vernier %s on %s, %s (%s, %s)\n", vn_version(), info->spec, info->name, info->platform,
            info->driver);
    fflush(t->to);
}

static int write_json(const struct tune *t, const vn_device_info *info)
{
    if (!t->request->common.json)
        return 0;
    return report_json(json_pack("{s:s, s:{s:s, s:s, s:s, s:s}, s:s, s:O}", "version", vn_version(),
        "device", "spec", info->spec, "name", info->name, "platform", info->platform, "driver", info->driver,
        "file", t->path, "rows", t->rows), t->request->common.json) ? EXIT_FAILURE : 0;
}

static int tune(struct tune *t, const struct workloads *w)
{
    int status, unwritten;

    print_head(t, &t->suite->info);
    if (!(status = make_races(t, w)))
        status = hold_races(t);
    for (int i = 0; i < t->races; i++)
        race_close(&t->race[i]);
    free(t->race);
    unwritten = write_json(t, &t->suite->info);
    return status ? status : unwritten;
}

/* Rates, costs or pins. */
static int measure(const struct tune *t, const struct workloads *w)
{
    struct model m = { .work = w, .path = t->path, .to = t->to, .rows = t->rows };
    int status = model_open(&m, t->request->common.device), unwritten;

    if (status)
        return status;
    print_head(t, &m.bench.info);
    fputc('\n', t->to);
    status    = t->request->measure(&m);
    unwritten = write_json(t, &m.bench.info);
    model_close(&m);
    return status ? status : unwritten;
}

static int open_files(struct tune *t)
{
    char journal[TUNE_PATH], why[TUNE_PATH];

    if (user_file_open(t->path, why, sizeof why)) {
        complain("%s", why);
        return EXIT_USAGE;
    }
    snprintf(journal, sizeof journal, "%.*s.measured", TUNE_PATH - 16, t->path);
    if (journal_open(&t->journal, journal, why, sizeof why)) {
        complain("%s", why);
        return EXIT_USAGE;
    }
    return 0;
}

static int open_device(struct tune *t)
{
    const vn_status s = suite_open(&t->suite, t->request->common.device);

    if (!s)
        return 0;
    complain("%s", *vn_last_error() ? vn_last_error() : "host memory ran out");
    return s == VN_NO_DEVICE ? EXIT_USAGE : EXIT_FAILURE;
}

static int add_whats(struct workloads *w, const struct request *r)
{
    char why[TUNE_WHY];

    for (int i = 0; i < r->work.whats; i++)
        if (workloads_add(w, r->work.what[i], &r->work.options, why, sizeof why)) {
            complain("%s", why);
            return EXIT_USAGE;
        }
    for (int i = 0; i < w->count && r->measure; i++)
        if (*w->it[i].problem.variant) {
            complain("%s names a variant, and all plans are timed", w->it[i].text);
            return EXIT_USAGE;
        }
    if (!w->count && r->work.whats)
        complain("nothing of that has \"%s\" in its name or problem", r->work.options.filter);
    return w->count || !r->work.whats ? 0 : EXIT_USAGE;
}

const struct argp tune_parser = { options, parse, "[WHAT...]", doc, children, NULL, NULL };

int tune_main(int argc, char **argv)
{
    struct request r = { .work = WORK_UNSAID };
    struct workloads w = { .count = 0 };
    struct tune t = { .request = &r, .journal = { .fd = -1 } };
    int status;

    if (argp_parse(&tune_parser, argc, argv, 0, NULL, &r))
        return EXIT_USAGE;
    if (!r.measure)
        setenv("VERNIER_CACHE", "0", 1);      /* rows that are tried would crowd out what programs use */
    t.to   = report_stream(r.common.json);
    t.rows = json_array();
    take_interrupts();
    if (!(status = add_whats(&w, &r)) && (r.measure || !(status = open_device(&t))) &&
        !(status = open_files(&t)))
        status = r.measure ? measure(&t, &w) : tune(&t, &w);
    journal_close(&t.journal);
    suite_close(t.suite);
    workloads_close(&w);
    json_decref(t.rows);
    return status;
}
