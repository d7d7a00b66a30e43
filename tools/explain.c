/* SPDX-License-Identifier: Apache-2.0
 *
 * explain.c - vernier explain: runs one problem and says how it ran, and why so.
 */
#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include "bench/bench.h"
#include "commands.h"
#include "options.h"
#include "core.h"
#include "report/report.h"
#include "measure/sampling.h"
#include "problem/values.h"
#include "tune/choice.h"

struct request { struct common common; const char *problem; int plans; };

enum { PLANS = 256 };

static const struct argp_option options[] = {
    { "plans",  PLANS, NULL, 0, "Time every plan, and set its estimate beside that", 0 },
    { NULL, 0, NULL, 0, NULL, 0 }
};

static const char doc[] =
    "Runs one problem, as gemm:1024x1024x1024:f32:nn, and says which variant was chosen, with which "
    "parameters and from where, why the ones before it were passed over, and how near to the device's "
    "roofline it came.  variant=NAME in the problem asks for a variant.";

static const struct argp_child children[] = {
    OPTIONS_CHILD(device_argp), OPTIONS_CHILD(json_argp),
    OPTIONS_END };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct request *const r = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        options_begin(state, children, &r->common, NULL);
        return 0;
    case PLANS:
        r->plans = 1;
        return 0;
    case ARGP_KEY_ARG:
        if (r->problem)
            argp_error(state, "one problem at a time: \"%s\" is the second", arg);
        r->problem = arg;
        return 0;
    case ARGP_KEY_END:
        if (!r->problem)
            argp_error(state, "explain what? A problem, as gemm:1024x1024x1024:f32:nn");
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* ---- running ---- */

struct explained {
    struct problem  problem;
    char            text[PROBLEM_TEXT];
    vn_device_info  info;
    struct roofline roofline;
    double          first, warm;          /* seconds of the first run, and of a later one */
    json_t         *how;                  /* vn_queue_explain() */
    int             packed;               /* an operand is, beforehand */
};

static vn_status timed(double *seconds, const struct explained *e, vn_queue *q, const struct operands *o)
{
    struct stopwatch watch;
    vn_status s = stopwatch_start(&watch, q, !e->info.is_cpu);

    if (!s)
        s = problem_run(q, &e->problem, o);
    return s ? s : stopwatch_stop(seconds, &watch);
}

/* The first run, by the clock on the wall, also chooses and builds; the median of the next few
 * is the warm one.                                                                            */
static vn_status run(struct explained *e, vn_queue *q, const struct operands *o)
{
    const double start = vn__seconds();
    double sample[5];
    vn_status s = problem_run(q, &e->problem, o);

    if (!s) {
        e->how = json_loads(vn_queue_explain(q), 0, NULL);
        s = vn_queue_finish(q);
        e->first = vn__seconds() - start;
    }
    for (int i = 0; i < 5 && !s; i++)
        s = timed(&sample[i], e, q, o);
    if (!s)
        e->warm = median_of(sample, 5);
    return s;
}

static vn_status explain(struct explained *e, vn_device *d, vn_queue *q)
{
    struct values v;
    char why[SENTENCE];
    vn_status s = VN_OK;

    if (values_fit(d, &e->problem, 1 + e->info.is_cpu, why, sizeof why)) {
        complain("%s: %s", e->text, why);
        return VN_NO_MEMORY;
    }
    if (values_open(&v, q, d, &e->problem)) {
        complain("%s", *vn_last_error() ? vn_last_error() : "host memory ran out");
        s = VN_NO_MEMORY;
    } else if ((s = run(e, q, &v.o))
               || (s = roofline_measure(&e->roofline, q, e->problem.type, e->problem.math)))
        complain("%s", vn_last_error());
    e->packed = v.o.pack != NULL;
    values_close(&v);
    return s;
}

/* ---- all plans, timed ---- */

static void print_parameters(FILE *to, const json_t *how);

static void print_plan(struct table *t, const struct candidate *c, int chosen)
{
    const double estimate = candidate_estimate(c);
    char cell[CELL], parameters[256] = "";
    FILE *const to = fmemopen(parameters, sizeof parameters, "w");

    if (to) {
        print_parameters(to, c->how);
        fclose(to);
    }
    table_cell(t, chosen ? STRONG : PLAIN, candidate_variant(c));
    table_cell(t, PLAIN, figure(cell, estimate * 1e3));
    table_cell(t, PLAIN, figure(cell, c->seconds * 1e3));
    snprintf(cell, sizeof cell, estimate > 0 && c->seconds > 0 ? "%.2f" : "-", estimate / c->seconds);
    table_cell(t, PLAIN, cell);
    table_note(t, *c->note ? POOR : PLAIN, *c->note ? c->note : parameters + (*parameters == ' '));
}

static json_t *json_plans(const struct candidates *c)
{
    json_t *const out = json_array();

    for (int i = 0; i < c->count; i++) {
        const struct candidate *const it = &c->it[i];
        json_t *const plan = json_pack("{s:s}", "variant", candidate_variant(it));

        if (json_object_get(it->how, "parameters"))
            json_object_set(plan, "parameters", json_object_get(it->how, "parameters"));
        if (candidate_estimate(it) > 0)
            json_object_set_new(plan, "estimate", json_real(candidate_estimate(it)));
        if (*it->note)
            json_object_set_new(plan, "error_message", json_string(it->note));
        else
            json_object_set_new(plan, "real_time", json_real(it->seconds));
        json_array_append_new(out, plan);
    }
    return out;
}

/* A table of them, and as JSON; an exit status. */
static int time_plans(json_t **out, const struct explained *e, vn_device *d, vn_queue *q, FILE *to)
{
    enum { SAMPLES_EACH = 5 };
    struct bench b = { .device = d, .queue = q, .info = e->info };
    struct candidates *const c = malloc(sizeof *c);
    struct table t;
    int failed;

    if (!c) {
        complain("host memory ran out");
        return EXIT_FAILURE;
    }
    if (!b.info.is_cpu && hold_open(&b.hold, q))
        b.hold = NULL;
    candidates_measure(c, &b, &e->problem, SAMPLES_EACH, 0);
    if ((failed = *c->note != '\0'))
        complain("%s: %s", e->text, c->note);
    else {
        fputc('\n', to);
        table_open(&t, to);
        table_column(&t, "plan", 20, 1);
        table_column(&t, "estimate", 8, 0);
        table_column(&t, "ms", 7, 0);
        table_column(&t, "ratio", 6, 0);
        table_column(&t, "parameters", 10, 1);
        table_head(&t);
        for (int i = 0; i < c->count; i++)
            print_plan(&t, &c->it[i], i == 0);
        *out = json_plans(c);
    }
    candidates_close(c);
    free(c);
    hold_close(b.hold);
    return failed || interrupted ? EXIT_FAILURE : 0;
}

/* ---- printing ---- */

static double share(const struct explained *e)
{
    const struct problem *const p = &e->problem;
    const struct amount w = problem_amount(p);

    return roofline_seconds(&e->roofline, p->type, p->math, &w) / e->warm;
}

static const char *word(const struct explained *e, const char *key)
{
    const char *const text = json_string_value(json_object_get(e->how, key));

    return text ? text : "";
}

static void print_parameters(FILE *to, const json_t *how)
{
    const char *name;
    json_t *value;

    json_object_foreach(json_object_get(how, "parameters"), name, value)
        fprintf(to, " %s=%lld", name, (long long)json_integer_value(value));
}

static void print_estimate(FILE *to, const json_t *how)
{
    const json_t *const estimate = json_object_get(how, "estimate");
    char text[CELL];

    if (estimate)
        fprintf(to, ", %s ms estimated", figure(text, json_number_value(estimate) * 1e3));
}

static void print_passed_over(FILE *to, const struct explained *e)
{
    size_t i;
    json_t *it;

    json_array_foreach(json_object_get(e->how, "passed_over"), i, it) {
        fprintf(to, "%-11s %s", i ? "" : "passed over", json_string_value(json_object_get(it, "variant")));
        print_parameters(to, it);
        print_estimate(to, it);
        fprintf(to, ": %s\n", json_string_value(json_object_get(it, "why")));
    }
}

static void print(FILE *to, const struct explained *e)
{
    const double flops = problem_flops(&e->problem), bytes = problem_bytes(&e->problem);
    const struct roof roof = roofline_of(&e->roofline, e->problem.type, e->problem.math);
    char a[CELL], b[CELL];

    fprintf(to, "problem     %s\n", e->text);
    fprintf(to, "device      %s, %s\n", e->info.spec, e->info.name);
    fprintf(to, "variant     %s\n", word(e, "variant"));
    fprintf(to, "engine      %s\n", *word(e, "engine") ? word(e, "engine") : "the library's own");
    fprintf(to, "row         %s ", word(e, "row"));
    print_parameters(to, e->how);
    print_estimate(to, e->how);
    fputc('\n', to);
    print_passed_over(to, e);
    fprintf(to, "workspace   %s\n", bytes_text(a, json_number_value(json_object_get(e->how, "workspace"))));
    if (e->packed)
        fprintf(to, "packed      %s\n", bytes_text(a, json_number_value(json_object_get(e->how, "packed"))));
    fprintf(to, "work        %s, %s: %.3g flops a byte\n", quantity(a, flops, "FLOP"),
            quantity(b, bytes, "B"), flops / bytes);
    fprintf(to, "first run   %s ms, with choosing and building\n", figure(a, e->first * 1e3));
    fprintf(to, "then        %s ms: %s GFLOP/s, ", figure(a, e->warm * 1e3),
            figure(b, flops / e->warm * 1e-9));
    fprintf(to, "%s GB/s\n", figure(a, bytes / e->warm * 1e-9));
    fprintf(to, "roofline    %.0f%% of what the device can do (%s: %s GFLOP/s, ", share(e) * 100, roof.kind,
            figure(a, roof.flops * 1e-9));
    fprintf(to, "copy %s GB/s, ", figure(a, e->roofline.bandwidth * 1e-9));
    fprintf(to, "reading %s GB/s)\n", figure(a, e->roofline.reading * 1e-9));
}

static json_t *json_explained(const struct explained *e)
{
    json_t *const out = json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:f}",
        "name", e->text, "device", e->info.spec, "first_time", e->first, "real_time", e->warm,
        "gflops", problem_flops(&e->problem) / e->warm * 1e-9,
        "gbytes_per_second", problem_bytes(&e->problem) / e->warm * 1e-9, "roofline", share(e));

    json_object_set(out, "explain", e->how);
    return out;
}

/* Else the user would wonder why their rows do nothing. */
static void complain_of_user_file(void)
{
    char path[4096], why[4608], *const text = vn__tune_path(path, sizeof path) ? vn__tune_read(path) : NULL;

    if (text && vn__tune_check(why, sizeof why, path, text))
        complain("%s; the file is not used", why);
    free(text);
}

const struct argp explain_parser = { options, parse, "PROBLEM", doc, children, NULL, NULL };

int explain_main(int argc, char **argv)
{
    struct request r = { .problem = NULL };
    struct explained e = { .how = NULL };
    json_t *plans = NULL, *report;
    vn_device *d;
    vn_queue *q;
    char why[512];
    int status;

    if (argp_parse(&explain_parser, argc, argv, 0, NULL, &r))
        return EXIT_USAGE;
    if (r.plans)
        take_interrupts();
    if (problem_parse(&e.problem, r.problem, why, sizeof why)) {
        complain("%s", why);
        return EXIT_USAGE;
    }
    problem_format(e.text, &e.problem);
    if ((status = device_open(&d, &q, r.common.device)))
        return status;
    vn_device_describe(&e.info, d);
    complain_of_user_file();
    if (!(status = explain(&e, d, q) ? EXIT_FAILURE : 0)) {
        print(report_stream(r.common.json), &e);
        if (r.plans)
            status = time_plans(&plans, &e, d, q, report_stream(r.common.json));
        report = r.common.json ? json_explained(&e) : NULL;
        if (report && plans)
            json_object_set(report, "plans", plans);
        if (report && report_json(report, r.common.json))
            status = EXIT_FAILURE;
    }
    json_decref(plans);
    json_decref(e.how);
    vn_queue_close(q);
    vn_device_close(d);
    return status;
}
