/* SPDX-License-Identifier: Apache-2.0
 *
 * check.c - vernier check: runs the conformance suite on a device and says what came of it.
 */
#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "options.h"
#include "report/report.h"
#include "suite.h"

enum { WHATS = 64, JOBS_MOST = 256 };

struct request {
    struct common common;                         /* its device and json */
    const char *variant, *junit;
    int         tap, jobs, whats;
    const char *what[WHATS];
    enum suite_extent extent;
    uint64_t    seed;
};

enum { VARIANT = 256, JOBS, QUICK, FULL, SMALL, TAP, JUNIT, SEED };

static const struct argp_option options[] = {
    { "variant", VARIANT, "NAME", 0, "Run this variant only, not each in its turn", 0 },
    { "jobs",   JOBS,  "N",    0,
      "Run N variants at a time, each on a thread and a queue of its own; 1 unless said", 0 },
    { "quick",  QUICK, NULL,   0, "A tenth of the cases", 0 },
    { "full",   FULL,  NULL,   0, "Ten times the cases", 0 },
    { "small",  SMALL, NULL,   0, "Few cases with no size above 24, for simulators", 0 },
    { "seed",   SEED,  "N",    0, "Draw other problems and other data; 1 unless said", 0 },
    { "tap",    TAP,   NULL,   0, "Write the Test Anything Protocol", 0 },
    { "junit",  JUNIT, "FILE", 0, "Write a report as JUnit's XML too; - is standard output", 0 },
    { NULL, 0, NULL, 0, NULL, 0 }
};

static const char doc_form[] =                         /* %s: the operations */
    "Tests the results on a device.  WHAT is %s, or all of them (all, or nothing said); or "
    "a problem, such as gemm:17x33x5:f16:tn:beta=2, which then runs on integers, on random numbers and on "
    "unusual ones."
    "\v"
    "Cases are exact (integers: tolerance 0), real (random numbers, within the bound that rounding gives) "
    "or special (NaN, infinities, denormals; nothing to do).  Memory around each operand is checked too.  "
    "Of a failure it prints the command that runs it again.\n"
    "\n"
    "Exit status: 0, 1 if a case failed, 2 if nothing could be tried.";

static uint64_t parse_seed(const char *arg, struct argp_state *state)
{
    char *end;
    const unsigned long long v = strtoull(arg, &end, 10);

    if (arg[0] < '0' || arg[0] > '9' || *end)
        argp_error(state, "--seed is \"%s\"; it must be a whole number", arg);
    return v;
}

static int parse_jobs(const char *arg, struct argp_state *state)
{
    char *end;
    const long n = strtol(arg, &end, 10);

    if (end == arg || *end || n < 1 || n > JOBS_MOST)
        argp_error(state, "--jobs is \"%s\"; it must be a whole number from 1 to %d", arg, JOBS_MOST);
    return (int)n;
}

static const struct argp_child children[] = {
    OPTIONS_CHILD(device_argp), OPTIONS_CHILD(json_argp),
    OPTIONS_END };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct request *const r = state->input;

    switch (key) {
    case VARIANT: r->variant = arg;                 return 0;
    case JOBS:  r->jobs   = parse_jobs(arg, state); return 0;
    case QUICK: r->extent = SUITE_QUICK;            return 0;
    case FULL:  r->extent = SUITE_FULL;             return 0;
    case SMALL: r->extent = SUITE_SMALL;            return 0;
    case SEED:  r->seed   = parse_seed(arg, state); return 0;
    case TAP:   r->tap    = 1;                      return 0;
    case JUNIT: r->junit  = arg;                    return 0;
    case ARGP_KEY_INIT:
        options_begin(state, children, &r->common, NULL);
        return 0;
    case ARGP_KEY_ARG:
        if (r->whats == WHATS)
            argp_error(state, "more than %d things to check", WHATS);
        r->what[r->whats++] = arg;
        return 0;
    case ARGP_KEY_END:
        if (r->junit && r->common.json && !strcmp(r->junit, "-") && !strcmp(r->common.json, "-"))
            argp_error(state, "--junit and --json cannot both go to standard output");
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* ---- what to run ------------------------------------------------------------ */

/* Before anything runs: a wrong word should not be found after minutes. */
static int check_what(const char *what)
{
    struct problem p;
    char why[512], list[128];

    if (!strcmp(what, "all") || op_named(what))
        return 0;
    if (!strchr(what, ':')) {
        complain("\"%s\" is nothing to check: %s, all, or a problem such as gemm:17x33x5:f16:tn", what,
                 op_list(list));
        return -1;
    }
    if (problem_parse(&p, what, why, sizeof why)) {
        complain("%s", why);
        return -1;
    }
    return 0;
}

static vn_status run(struct suite *s, const char *what, int jobs)
{
    struct problem p;
    char why[512];
    vn_status status = VN_OK;

    if (op_named(what))
        return suite_run(s, op_named(what), jobs);
    if (!strcmp(what, "all"))
        for (const struct op *const *o = ops; *o && !status; o++)
            status = suite_run(s, *o, jobs);
    else if (problem_parse(&p, what, why, sizeof why) == 0)
        suite_problem(s, &p);
    return status;
}

/* ---- as it goes -------------------------------------------------------------- */

static FILE *text;                /* where lines go: the groups report to one suite at a time */

static void say_tap(const struct suite *s, const struct suite_group *g)
{
    fprintf(text, "%sok %d - %s (%ld cases)\n", g->failed ? "not " : "", s->reported, g->name, g->cases);
    for (const char *line = g->failures; *line;
         line += strcspn(line, "\n") + (line[strcspn(line, "\n")] == '\n'))
        fprintf(text, "# %.*s\n", (int)strcspn(line, "\n"), line);
    fflush(text);
}

static void say_line(const struct suite *s, const struct suite_group *g)
{
    char share[32] = "";

    (void)s;
    if (g->worst > 0)
        snprintf(share, sizeof share, "worst %.2f of the bound", g->worst);
    fprintf(text, "%-6s  %-52s %6ld cases %7.1f s  %s\n", g->failed ? "FAILED" : "passed", g->name, g->cases,
            g->seconds, share);
    fputs(g->failures, text);
    fflush(text);
}

/* ---- reports ------------------------------------------------------------------ */

static json_t *json_groups(const struct suite *s)
{
    json_t *const all = json_array();

    for (int i = 0; i < s->group_count; i++) {
        const struct suite_group *g = &s->groups[i];

        json_array_append_new(all, json_pack("{s:s, s:I, s:I, s:I, s:f, s:f, s:s}", "name", g->name,
            "cases", (json_int_t)g->cases, "failed", (json_int_t)g->failed,
            "passed_over", (json_int_t)g->passed_over, "worst", g->worst, "seconds", g->seconds,
            "failures", g->failures));
    }
    return all;
}

static int write_json(const struct suite *s, const char *path)
{
    json_t *const counts = json_object(), *const worst = json_object();

    for (int kind = 0; kind < KIND_COUNT; kind++)
        json_object_set_new(counts, suite_kinds[kind], json_integer(s->count[kind]));
    for (int t = 0; t < VN_TYPE_COUNT; t++)
        json_object_set_new(worst, vn_type_name((vn_type)t), json_real(s->worst[t]));
    return report_json(json_pack("{s:s, s:{s:s, s:s, s:s, s:s}, s:I, s:o, s:I, s:I, s:I, s:o, s:o}",
        "version", vn_version(),
        "device", "spec", s->info.spec, "name", s->info.name, "platform", s->info.platform,
        "driver", s->info.driver,
        "seed", (json_int_t)s->seed, "count", counts, "failed", (json_int_t)s->failed,
        "passed_over", (json_int_t)s->passed_over, "vacuous", (json_int_t)s->vacuous, "worst", worst,
        "groups", json_groups(s)), path);
}

static void put_xml(FILE *to, const char *s)
{
    static const struct { char c; const char *as; } escapes[] = {
        { '<', "&lt;" }, { '>', "&gt;" }, { '&', "&amp;" }, { '"', "&quot;" } };

    for (; *s; s++) {
        const char *as = NULL;

        for (size_t i = 0; i < sizeof escapes / sizeof escapes[0]; i++)
            as = escapes[i].c == *s ? escapes[i].as : as;
        as ? fputs(as, to) : fputc(*s, to);
    }
}

static void put_testcase(FILE *to, const struct suite_group *g)
{
    fprintf(to, "  <testcase classname=\"vernier\" name=\"");
    put_xml(to, g->name);
    fprintf(to, "\" time=\"%.3f\"", g->seconds);
    if (g->failed) {
        fprintf(to, ">\n    <failure message=\"%ld of %ld cases failed\">", g->failed, g->cases);
        put_xml(to, g->failures);
        fputs("</failure>\n  </testcase>\n", to);
    } else
        fputs(g->cases ? "/>\n" : "><skipped/></testcase>\n", to);
}

static int write_junit(const struct suite *s, const char *path)
{
    FILE *const to = strcmp(path, "-") ? fopen(path, "w") : stdout;
    int failures = 0, bad;

    if (!to) {
        complain("%s cannot be written", path);
        return -1;
    }
    for (int i = 0; i < s->group_count; i++)
        failures += s->groups[i].failed > 0;
    fprintf(to, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"vernier check on ");
    put_xml(to, s->info.name);
    fprintf(to, "\" tests=\"%d\" failures=\"%d\">\n", s->group_count, failures);
    for (int i = 0; i < s->group_count; i++)
        put_testcase(to, &s->groups[i]);
    fputs("</testsuite>\n", to);
    bad = ferror(to);
    if ((to != stdout && fclose(to)) || bad) {
        complain("%s cannot be written", path);
        return -1;
    }
    return 0;
}

static int report(const struct suite *s, const struct request *r)
{
    int bad = 0;

    if (r->tap)
        fprintf(text, "1..%d\n", s->reported);
    else
        suite_report(s, text);
    if (r->junit)
        bad |= write_junit(s, r->junit);
    if (r->common.json)
        bad |= write_json(s, r->common.json);
    return bad;
}

int check_main(int argc, char **argv)
{
    static char doc[sizeof doc_form + 128];
    static const struct argp argp = { options, parse, "[WHAT...]", doc, children, NULL, NULL };
    struct request r = { .extent = SUITE_USUAL, .seed = SUITE_SEED, .jobs = 1 };
    struct suite  *s;
    vn_status      status;
    int            failed;
    char           list[128];

    snprintf(doc, sizeof doc, doc_form, op_list(list));
    if (argp_parse(&argp, argc, argv, 0, NULL, &r))
        return EXIT_USAGE;
    if (r.whats == 0)
        r.what[r.whats++] = "all";
    for (int i = 0; i < r.whats; i++)
        if (check_what(r.what[i]))
            return EXIT_USAGE;
    if ((status = suite_open(&s, r.common.device))) {
        complain("%s", vn_last_error());
        return status == VN_NO_DEVICE ? EXIT_USAGE : EXIT_FAILURE;
    }
    text = (r.common.json && !strcmp(r.common.json, "-")) || (r.junit && !strcmp(r.junit, "-"))
         ? stderr : stdout;
    s->extent     = r.extent;
    s->variant    = r.variant;
    s->seed       = r.seed;
    s->group_done = r.tap ? say_tap : say_line;
    if (!r.tap)
        fprintf(text, "on %s (%s, %s)\n", s->info.name, s->info.platform, s->info.driver);
    for (int i = 0; i < r.whats && !status; i++)
        if ((status = run(s, r.what[i], r.jobs)))
            complain("%s", vn_last_error());
    failed = report(s, &r) || suite_status(s) || status;
    suite_close(s);
    return failed ? EXIT_FAILURE : 0;
}
