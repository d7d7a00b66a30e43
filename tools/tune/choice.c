/* SPDX-License-Identifier: Apache-2.0
 *
 * choice.c - vernier choice: how good are the library's choices, and its model of time?
 *
 * Of each problem every way to solve it is timed; the ratio is the time of the one that the library
 * chooses over the time of the fastest.
 */
#include <argp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "choice.h"
#include "commands.h"
#include "core.h"
#include "options.h"

static const double POOR_CHOICE = 1.25, GOOD_CHOICE = 1.05;   /* ratios */

/* ---- the command line ---- */

struct request {
    const char   *device, *json;
    struct work   work;
    struct limits limits;
    int64_t       random, seed, samples;
    double        within;
};

enum { RANDOM = 256, SEED, SAMPLES_EACH, LIMIT_FLOPS, LIMIT_BYTES, WITHIN };

static const struct argp_option options[] = {
    { "device",      'd',          "SPEC",  0,
      "Measure on this device (see vernier devices); else $VERNIER_DEVICE, else the fastest", 0 },
    { "random",      RANDOM,       "N",     0, "Also measure N random GEMM problems", 0 },
    { "seed",        SEED,         "S",     0, "Of the random problems; 1 unless said", 0 },
    { "samples",     SAMPLES_EACH, "N",     0, "To take of each candidate; 5 unless said", 0 },
    { "limit-flops", LIMIT_FLOPS,  "FLOPS", 0,
      "Of a random problem, two thirds of it where that is f64; 6e12 unless said", 0 },
    { "limit-bytes", LIMIT_BYTES,  "BYTES", 0, "Of a random problem's operand; 1.5 GiB unless said", 0 },
    { "within",      WITHIN,       "TIMES", 0,
      "Only candidates that are estimated at no more than so many times the library's choice", 0 },
    { "json",        'j',          "FILE",  0,
      "Write the report as JSON too; - is standard output, the table then goes to stderr", 0 },
    { NULL, 0, NULL, 0, NULL, 0 }
};

static const char doc[] =
    "Times every variant that fits WHAT, a problem or a suite of bench, and compares the one that the "
    "library chooses with the fastest: the ratio of their times is 1 where the choice is right."
    "\v"
    "Times are medians of samples taken in turns, each round in another order; on a CPU by the clock on the "
    "wall, else by the device's events.  A candidate whose second run takes more than 5 times as long as "
    "that of the best is not sampled.  The column `tried` has the number of candidates, and how many of them "
    "were slow in that way.  Results are not checked: vernier check does that.\n"
    "\n"
    "Where the library estimates times, the error of its model is the estimate over the measured time, of "
    "all candidates that were sampled.\n"
    "\n"
    "Exit status: 0, 1 if something failed or it was interrupted, 2 if nothing could be tried.";

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct request *const r = state->input;

    switch (key) {
    case 'd':         r->device = arg;                                            return 0;
    case 'j':         r->json = arg;                                              return 0;
    case RANDOM:      r->random = option_count(state, "random", arg);             return 0;
    case SEED:        r->seed = option_count(state, "seed", arg);                 return 0;
    case LIMIT_FLOPS: r->limits.flops = option_amount(state, "limit-flops", arg); return 0;
    case LIMIT_BYTES: r->limits.bytes = option_amount(state, "limit-bytes", arg); return 0;
    case WITHIN:      r->within = option_amount(state, "within", arg);            return 0;
    case SAMPLES_EACH:
        if ((r->samples = option_count(state, "samples", arg)) > SAMPLES)
            argp_error(state, "--samples is \"%s\", and must be a number from 1 to %d", arg, SAMPLES);
        return 0;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &r->work;
        return 0;
    case ARGP_KEY_END:
        if (!r->work.whats && !r->random)
            argp_error(state, "choose for what? A problem, a suite (%s), or --random N", workloads_suites());
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* ---- what to measure ---- */

static int add_what(struct workloads *w, const char *what, const struct workload_options *o)
{
    char why[512];

    if (!workloads_add(w, what, o, why, sizeof why))
        return 0;
    complain("%s", why);
    return EXIT_USAGE;
}

static int make_list(struct workloads *w, struct request *r)
{
    struct random random = { (uint64_t)r->seed };
    char text[PROBLEM_TEXT];
    int status = 0;

    r->limits.type = r->work.options.type;
    for (int i = 0; i < r->work.whats && !status; i++)
        status = add_what(w, r->work.what[i], &r->work.options);
    for (int64_t i = 0; i < r->random && !status; i++) {
        drawn_gemm(text, &random, &r->limits);
        status = add_what(w, text, &r->work.options);
    }
    for (int i = 0; i < w->count && !status; i++)
        if (*w->it[i].problem.variant) {
            complain("%s names a variant, and choice compares them all", w->it[i].text);
            status = EXIT_USAGE;
        }
    if (!status && !w->count) {
        complain("nothing of that has \"%s\" in its name or problem", r->work.options.filter);
        status = EXIT_USAGE;
    }
    return status;
}

/* ---- what came of it ---- */

struct verdict { const char *text; char chosen[32], best[32]; double ratio; };

struct session {
    struct bench          bench;
    const struct request *request;
    FILE                 *to;
    json_t               *problems;
    struct verdict       *verdict;        /* of each problem that was measured */
    int                   verdicts, failures;
    double               *error;          /* logarithms of the model's */
    int                   errors, room;
};

static int ascending_verdicts(const void *a, const void *b)
{
    const double x = ((const struct verdict *)a)->ratio, y = ((const struct verdict *)b)->ratio;

    return (x < y) - (x > y);
}

static int note_error(struct session *s, double estimate, double measured)
{
    if (s->errors == s->room) {
        const int room = s->room ? 2 * s->room : 256;
        double *const more = realloc(s->error, (size_t)room * sizeof *more);

        if (!more)
            return -1;
        s->error = more;
        s->room  = room;
    }
    s->error[s->errors++] = log(estimate / measured);
    return 0;
}

static int conclude(struct session *s, const struct workload *w, const struct candidates *c)
{
    struct verdict *const v = &s->verdict[s->verdicts];

    s->failures += c->failed;
    for (int i = 0; i < c->count; i++) {
        const struct candidate *const it = &c->it[i];
        const double estimate = candidate_estimate(it);

        s->failures += i && *it->note;
        if (it->samples && it->seconds > 0 && estimate > 0 && note_error(s, estimate, it->seconds)) {
            complain("host memory ran out");
            return EXIT_FAILURE;
        }
    }
    if (*c->note)
        return 0;
    *v = (struct verdict){ .text = w->text, .ratio = candidates_ratio(c) };
    snprintf(v->chosen, sizeof v->chosen, "%s", candidate_variant(&c->it[0]));
    snprintf(v->best, sizeof v->best, "%s", candidate_variant(&c->it[c->best]));
    s->verdicts++;
    return 0;
}

static double mean_ratio(const struct session *s)
{
    double sum = 0;

    for (int i = 0; i < s->verdicts; i++)
        sum += log(s->verdict[i].ratio);
    return s->verdicts ? exp(sum / s->verdicts) : 0;
}

static int poor_choices(const struct session *s)
{
    int count = 0;

    for (int i = 0; i < s->verdicts; i++)
        count += s->verdict[i].ratio > POOR_CHOICE;
    return count;
}

/* Of the model: how far off it is as a rule, and how much that varies (1: not at all). */
struct deviation { double median, spread; };

static struct deviation deviation_of(const struct session *s)
{
    double mean = 0, square = 0;

    for (int i = 0; i < s->errors; i++)
        mean += s->error[i] / s->errors;
    for (int i = 0; i < s->errors; i++)
        square += (s->error[i] - mean) * (s->error[i] - mean) / s->errors;
    return (struct deviation){ exp(median_of(s->error, s->errors)), exp(sqrt(square)) };
}

/* ---- the table ---- */

static int widest_variant(void)
{
    size_t width = 6;

    for (int op = 0; vn__operations[op]; op++)
        for (const struct vn_variant *v = vn__operations[op]->variants; v->name; v++)
            width = strlen(v->name) > width ? strlen(v->name) : width;
    return (int)width;
}

static void open_table(struct table *t, const struct workloads *w, FILE *to)
{
    char shown[PROBLEM_TEXT];
    int width = 10;

    for (int i = 0; i < w->count; i++) {
        const int length = (int)strlen(problem_shown(shown, w->it[i].text));

        width = length > width ? length : width;
    }
    table_open(t, to);
    table_column(t, "problem", width, 1);
    table_column(t, "chosen", widest_variant(), 1);
    table_column(t, "ms", 7, 0);
    table_column(t, "best", widest_variant(), 1);
    table_column(t, "ms", 7, 0);
    table_column(t, "ratio", 5, 0);
    table_column(t, "tried", 5, 1);
    table_head(t);
}

static void print_row(struct table *t, const struct workload *w, const struct candidates *c)
{
    const struct candidate *const best = &c->it[c->best];
    const double ratio = candidates_ratio(c);
    char shown[PROBLEM_TEXT], cell[CELL];
    int failed = 0;
    size_t n;

    table_cell(t, PLAIN, problem_shown(shown, w->text));
    if (*c->note) {
        table_note(t, c->failed ? POOR : FAINT, c->note);
        return;
    }
    table_cell(t, PLAIN, candidate_variant(&c->it[0]));
    table_cell(t, PLAIN, figure(cell, c->it[0].seconds * 1e3));
    table_cell(t, PLAIN, candidate_variant(best));
    table_cell(t, PLAIN, figure(cell, best->seconds * 1e3));
    snprintf(cell, sizeof cell, "%.2f", ratio);
    table_cell(t, ratio > POOR_CHOICE ? POOR : ratio <= GOOD_CHOICE ? GOOD : PLAIN, cell);
    for (int i = 0; i < c->count; i++)
        failed += *c->it[i].note != '\0';
    n = (size_t)snprintf(cell, sizeof cell, "%d", c->count);
    if (c->slow)
        n += (size_t)snprintf(cell + n, sizeof cell - n, ", %d slow", c->slow);
    if (failed)
        snprintf(cell + n, sizeof cell - n, ", %d failed", failed);
    table_cell(t, failed ? POOR : PLAIN, cell);
    table_end(t);
}

static void print_summary(struct session *s)
{
    const int poor = poor_choices(s);
    char shown[PROBLEM_TEXT];

    if (!s->verdicts)
        return;
    fprintf(s->to, "\ngeometric mean of the ratios  %.3f, of %d problem%s\n", mean_ratio(s), s->verdicts,
            PLURAL(s->verdicts));
    fprintf(s->to, "ratios above %.2f             %d\n", POOR_CHOICE, poor);
    qsort(s->verdict, (size_t)s->verdicts, sizeof *s->verdict, ascending_verdicts);
    for (int i = 0; i < poor; i++)
        fprintf(s->to, "  %6.2f  %s: %s, best %s\n", s->verdict[i].ratio,
                problem_shown(shown, s->verdict[i].text), s->verdict[i].chosen, s->verdict[i].best);
    if (s->errors) {
        const struct deviation d = deviation_of(s);

        fprintf(s->to, "estimate over measured        median %.2f, geometric standard deviation %.2f, "
                       "of %d candidate%s\n", d.median, d.spread, s->errors, PLURAL(s->errors));
    }
}

/* ---- JSON ---- */

static json_t *json_candidate(const struct candidate *c)
{
    static const char *const keys[] = { "row", "parameters", "workspace", "estimate" };
    json_t *const out = json_pack("{s:s}", "variant", candidate_variant(c)), *samples;

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(c->how, keys[i]))
            json_object_set(out, keys[i], json_object_get(c->how, keys[i]));
    if (*c->note) {
        json_object_set_new(out, "error_message", json_string(c->note));
        return out;
    }
    json_object_set_new(out, "real_time", json_real(c->seconds));
    json_object_set_new(out, "slow", json_boolean(c->slow));
    json_object_set_new(out, "iterations", json_integer(c->slow ? 1 : c->repeats));
    json_object_set_new(out, "samples", samples = json_array());
    for (int i = 0; i < c->samples; i++)
        json_array_append_new(samples, json_real(c->sample[i]));
    return out;
}

static json_t *json_problem(const struct workload *w, const struct candidates *c)
{
    json_t *const out = json_pack("{s:s}", "name", w->text), *const all = json_array();

    if (*w->label)
        json_object_set_new(out, "label", json_string(w->label));
    if (*c->note)
        json_object_set_new(out, c->failed ? "error_message" : "skip_message", json_string(c->note));
    else {
        json_object_set_new(out, "chosen", json_string(candidate_variant(&c->it[0])));
        json_object_set_new(out, "chosen_time", json_real(c->it[0].seconds));
        json_object_set_new(out, "best", json_string(candidate_variant(&c->it[c->best])));
        json_object_set_new(out, "best_time", json_real(c->it[c->best].seconds));
        json_object_set_new(out, "ratio", json_real(candidates_ratio(c)));
    }
    for (int i = 0; i < c->count; i++)
        json_array_append_new(all, json_candidate(&c->it[i]));
    json_object_set_new(out, "candidates", all);
    return out;
}

/* null where the library estimates nothing */
static json_t *json_model(const struct session *s)
{
    const struct deviation d = deviation_of(s);

    return s->errors ? json_pack("{s:f, s:f, s:i}", "median", d.median, "geometric_deviation", d.spread,
                                 "candidates", s->errors) : json_null();
}

static int write_json(const struct session *s, const char *program)
{
    if (!s->request->json)
        return 0;
    return report_json(json_pack("{s:o, s:O, s:{s:o, s:i, s:i, s:o}}",
        "context", json_context(&s->bench, program), "problems", s->problems, "vernier",
        "geomean", s->verdicts ? json_real(mean_ratio(s)) : json_null(), "measured", s->verdicts,
        "above_1.25", poor_choices(s), "model", json_model(s)), s->request->json) ? EXIT_FAILURE : 0;
}

/* ---- from beginning to end ---- */

static int measure_all(struct session *s, const struct workloads *w)
{
    struct candidates *const c = malloc(sizeof *c);
    struct progress progress;
    struct table table;
    int status = 0;

    s->verdict = calloc((size_t)w->count, sizeof *s->verdict);
    if (!c || !s->verdict) {
        complain("host memory ran out");
        free(c);
        return EXIT_FAILURE;
    }
    open_table(&table, w, s->to);
    progress_open(&progress, w->count);
    for (int i = 0; i < w->count && !interrupted && !status; i++) {
        progress_show(&progress, i, w->it[i].text);
        candidates_measure(c, &s->bench, &w->it[i].problem, (int)s->request->samples,
                           s->request->within);
        progress_clear(&progress);
        print_row(&table, &w->it[i], c);
        json_array_append_new(s->problems, json_problem(&w->it[i], c));
        status = conclude(s, &w->it[i], c);
        candidates_close(c);
    }
    free(c);
    return status;
}

static int choose(const struct request *r, const struct workloads *w, const char *program)
{
    struct session s = { .request = r, .to = report_stream(r->json), .problems = json_array() };
    struct bench *const b = &s.bench;
    int status = device_open(&b->device, &b->queue, r->device), unwritten;

    if (!status) {
        vn_device_describe(&b->info, b->device);
        if (!b->info.is_cpu && hold_open(&b->hold, b->queue))
            b->hold = NULL;                     /* short runs go without */
        fprintf(s.to, "vernier %s on %s, %s (%s, %s)\n\n", vn_version(), b->info.spec, b->info.name,
                b->info.platform, b->info.driver);
        status = measure_all(&s, w);
        print_summary(&s);
        if (interrupted)
            complain("interrupted: the rows until then are reported");
        unwritten = write_json(&s, program);
        status = status ? status : s.failures || interrupted ? EXIT_FAILURE : unwritten;
        hold_close(b->hold);
        vn_queue_close(b->queue);
        vn_device_close(b->device);
    }
    json_decref(s.problems);
    free(s.verdict);
    free(s.error);
    return status;
}

static const struct argp_child children[] = { OPTIONS_CHILD(work_argp), OPTIONS_END };

const struct argp choice_parser = { options, parse, "[WHAT...]", doc, children, NULL, NULL };

int choice_main(int argc, char **argv)
{
    struct request r = { .work = WORK_UNSAID, .limits = { .bytes = 0x1.8p30, .flops = 6e12 }, .seed = 1,
                         .samples = 5 };
    struct workloads w = { .count = 0 };
    int status;

    if (argp_parse(&choice_parser, argc, argv, 0, NULL, &r))
        return EXIT_USAGE;
    take_interrupts();
    if (!(status = make_list(&w, &r)))
        status = choose(&r, &w, argv[0]);
    workloads_close(&w);
    return status;
}
