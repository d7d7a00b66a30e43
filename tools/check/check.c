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
#include "core.h"
#include "report/report.h"
#include "suite.h"

enum { WHATS = 64, JOBS_MOST = 256, SHARDS_MOST = 1000 };

struct request {
    struct common common;                         /* its device and json */
    const char *variant, *tap, *junit;
    int         jobs, whats, shard, shards;
    const char *what[WHATS];
    enum suite_extent extent;
    uint64_t    seed;
    double      budget;                           /* seconds; 0: no end */
};

enum { VARIANT = 256, JOBS, QUICK, FULL, SMALL, BUDGET, TAP, JUNIT, SEED, SHARD };

static const struct argp_option options[] = {
    { "variant", VARIANT, "NAME", 0, "Run this variant only, not each in its turn", 0 },
    { "jobs",   JOBS,  "N",    0,
      "Run N variants at a time, each on a thread and a queue of its own; 1 unless said", 0 },
    { "quick",  QUICK, NULL,   0, "A tenth of the cases", 0 },
    { "full",   FULL,  NULL,   0, "Ten times the cases", 0 },
    { "small",  SMALL, NULL,   0, "Few cases with no size above 24, for simulators", 0 },
    { "budget", BUDGET, "TIME", 0,
      "Stop after 30, 60s, 10m or 2h, and until then run groups of cases spread evenly over all", 0 },
    { "shard",  SHARD, "I/N",  0,
      "Run a share of the groups, the I-th of N: so N processes run all", 0 },
    { "seed",   SEED,  "N",    0,
      "Draw other problems and other data, and begin a --budget with another group; 1 unless said", 0 },
    { "tap",    TAP,   "FILE", 0, "Write the Test Anything Protocol too; - is standard output", 0 },
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
    "Exit status: 0, 1 if a case failed or it was interrupted, 2 if nothing could be tried.";

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

static void parse_shard(struct request *r, const char *arg, struct argp_state *state)
{
    char end;

    if (sscanf(arg, "%d/%d%c", &r->shard, &r->shards, &end) != 2 || r->shard < 1 || r->shard > r->shards ||
        r->shards > SHARDS_MOST)
        argp_error(state, "--shard is \"%s\"; it must be I/N, with I from 1 to N, and N up to %d", arg,
                   SHARDS_MOST);
}

static int is_stdout(const char *path)
{
    return path && !strcmp(path, "-");
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
    case SHARD: parse_shard(r, arg, state);         return 0;
    case TAP:   r->tap    = arg;                    return 0;
    case JUNIT: r->junit  = arg;                    return 0;
    case BUDGET: r->budget = option_seconds(state, "budget", arg); return 0;
    case ARGP_KEY_INIT:
        options_begin(state, children, &r->common, NULL);
        return 0;
    case ARGP_KEY_ARG:
        if (r->whats == WHATS)
            argp_error(state, "more than %d things to check", WHATS);
        r->what[r->whats++] = arg;
        return 0;
    case ARGP_KEY_END:
        if (is_stdout(r->tap) + is_stdout(r->junit) + is_stdout(r->common.json) > 1)
            argp_error(state, "only one of --tap, --junit and --json can go to standard output");
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

static size_t ops_count(void)
{
    size_t n = 0;

    while (ops[n])
        n++;
    return n;
}

static vn_status run(struct suite *s, const struct request *r)
{
    struct suite_part *const parts = calloc((size_t)r->whats * ops_count(), sizeof *parts);
    struct problem    *const problems = calloc((size_t)r->whats, sizeof *problems);
    vn_status status = parts && problems ? VN_OK : VN_NO_MEMORY;
    char why[512];
    int count = 0;

    for (int i = 0; i < r->whats && !status; i++)
        if (op_named(r->what[i]))
            parts[count++].op = op_named(r->what[i]);
        else if (!strcmp(r->what[i], "all"))
            for (const struct op *const *o = ops; *o; o++)
                parts[count++].op = *o;
        else if (problem_parse(&problems[i], r->what[i], why, sizeof why) == 0)
            parts[count++].problem = &problems[i];
    if (!status)
        status = suite_run(s, parts, count, r->jobs);
    if (status)
        complain("%s", status == VN_NO_MEMORY ? "host memory ran out" : vn_last_error());
    free(problems);
    free(parts);
    return status;
}

/* ---- as it goes: the groups report to one suite, one at a time ---------------- */

struct told {
    FILE *text, *tap;                             /* tap: NULL, or where that goes */
    struct progress progress;
};

static void say_tap(FILE *to, const struct suite *s, const struct suite_group *g)
{
    fprintf(to, "%sok %d - %s (%ld case%s)\n", g->failed ? "not " : "", s->reported, g->name, g->cases,
            PLURAL(g->cases));
    for (const char *line = g->failures; *line;
         line += strcspn(line, "\n") + (line[strcspn(line, "\n")] == '\n'))
        fprintf(to, "# %.*s\n", (int)strcspn(line, "\n"), line);
    fflush(to);
}

static void say_line(FILE *to, const struct suite_group *g)
{
    char share[32] = "";

    if (g->worst > 0)
        snprintf(share, sizeof share, "worst %.2f of the bound", g->worst);
    fprintf(to, "%-6s  %-52s %6ld case%s %7.1f s  %s%s\n", g->failed ? "FAILED" : "passed", g->name, g->cases,
            g->cases == 1 ? " " : "s", g->seconds, share, g->cut ? " (cut short)" : "");
    fputs(g->failures, to);
    fflush(to);
}

static void say_begun(const struct suite *s, const struct suite_group *g)
{
    const struct told *const told = s->context;
    struct progress p = told->progress;

    p.total = s->planned;
    progress_show(&p, s->handed - 1, g->name);
}

static void say_done(const struct suite *s, const struct suite_group *g)
{
    const struct told *const told = s->context;

    progress_clear(&told->progress);
    say_line(told->text, g);
    if (told->tap)
        say_tap(told->tap, s, g);
}

/* ---- reports ------------------------------------------------------------------ */

static json_t *json_groups(const struct suite *s)
{
    json_t *const all = json_array();

    for (int i = 0; i < s->group_count; i++) {
        const struct suite_group *g = &s->groups[i];

        json_array_append_new(all, json_pack("{s:s, s:b, s:I, s:I, s:I, s:f, s:f, s:s}", "name", g->name,
            "cut_short", g->cut, "cases", (json_int_t)g->cases, "failed", (json_int_t)g->failed,
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
    return report_json(json_pack("{s:s, s:{s:s, s:s, s:s, s:s}, s:I, s:b, s:i, s:i, s:o, s:I, s:I, s:I, s:o, "
                                 "s:o}",
        "version", vn_version(),
        "device", "spec", s->info.spec, "name", s->info.name, "platform", s->info.platform,
        "driver", s->info.driver,
        "seed", (json_int_t)s->seed, "interrupted", interrupted, "groups_planned", s->planned,
        "groups_run", s->ran, "count", counts, "failed", (json_int_t)s->failed,
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

/* "42 of 96 groups" */
static const char *share_run(char out[64], const struct suite *s)
{
    snprintf(out, 64, "%d of %d group%s", s->ran, s->planned, PLURAL(s->planned));
    return out;
}

static int write_junit(const struct suite *s, const char *path)
{
    FILE *const to = is_stdout(path) ? stdout : fopen(path, "w");
    int failures = 0, bad;
    char share[64];

    if (!to) {
        complain("%s cannot be written", path);
        return -1;
    }
    for (int i = 0; i < s->group_count; i++)
        failures += s->groups[i].failed > 0;
    fprintf(to, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"vernier check on ");
    put_xml(to, s->info.name);
    fprintf(to, "\" tests=\"%d\" failures=\"%d\" errors=\"%d\">\n", s->group_count + interrupted, failures,
            interrupted);
    fprintf(to, "  <properties><property name=\"run\" value=\"%s\"/></properties>\n", share_run(share, s));
    for (int i = 0; i < s->group_count; i++)
        put_testcase(to, &s->groups[i]);
    if (interrupted)
        fprintf(to, "  <testcase classname=\"vernier\" name=\"the rest\"><error message=\"interrupted after "
                    "%s\"/></testcase>\n", share);
    fputs("</testsuite>\n", to);
    bad = ferror(to);
    if ((to != stdout && fclose(to)) || bad) {
        complain("%s cannot be written", path);
        return -1;
    }
    return 0;
}

static int end_tap(FILE *to, const struct suite *s, const char *path)
{
    if (interrupted)
        fputs("Bail out! interrupted\n", to);
    else
        fprintf(to, "1..%d\n", s->reported);
    if (fflush(to) || ferror(to) || (to != stdout && fclose(to))) {
        complain("%s cannot be written", path);
        return -1;
    }
    return 0;
}

static int report(const struct suite *s, const struct request *r, const struct told *told)
{
    char share[64];
    int bad = 0;

    progress_clear(&told->progress);
    suite_report(s, told->text);
    if (r->budget > 0)
        fprintf(told->text, "%s in %.4g s (%.0f%%)%s\n", share_run(share, s), r->budget,
                100.0 * s->ran / (s->planned ? s->planned : 1),
                s->ran < s->planned ? ", evenly spread; another --seed begins elsewhere" : "");
    if (told->tap)
        bad |= end_tap(told->tap, s, r->tap);
    if (r->junit)
        bad |= write_junit(s, r->junit);
    if (r->common.json)
        bad |= write_json(s, r->common.json);
    if (interrupted)
        complain("interrupted: %s are reported", share_run(share, s));
    return bad;
}

/* 0, or -1 after a sentence. */
static int told_open(struct told *t, const struct request *r)
{
    t->text = is_stdout(r->tap) || is_stdout(r->junit) ? report_stream("-") : report_stream(r->common.json);
    t->tap  = !r->tap ? NULL : is_stdout(r->tap) ? stdout : fopen(r->tap, "w");
    if (r->tap && !t->tap) {
        complain("%s cannot be written", r->tap);
        return -1;
    }
    progress_open(&t->progress, 0);
    return 0;
}

static char doc[sizeof doc_form + 128];         /* filled in with the names of the operations */

const struct argp check_parser = { options, parse, "[WHAT...]", doc, children, NULL, NULL };

int check_main(int argc, char **argv)
{
    struct request r = { .extent = SUITE_USUAL, .seed = SUITE_SEED, .jobs = 1 };
    const double   began = vn__seconds();
    struct told    told;
    struct suite  *s;
    vn_status      status;
    int            failed;
    char           list[128];

    snprintf(doc, sizeof doc, doc_form, op_list(list));
    if (argp_parse(&check_parser, argc, argv, 0, NULL, &r))
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
    if (told_open(&told, &r)) {
        suite_close(s);
        return EXIT_USAGE;
    }
    take_interrupts();
    s->extent      = r.extent;
    s->variant     = r.variant;
    s->seed        = r.seed;
    s->shard       = r.shards ? r.shard - 1 : 0;
    s->shards      = r.shards;
    s->stop        = &interrupted;
    s->deadline    = r.budget > 0 ? began + r.budget : 0;
    s->group_begun = say_begun;
    s->group_done  = say_done;
    s->context     = &told;
    fprintf(told.text, "on %s (%s, %s)\n", s->info.name, s->info.platform, s->info.driver);
    status = run(s, &r);
    failed = report(s, &r, &told) || suite_status(s) || status || interrupted;
    suite_close(s);
    return failed ? EXIT_FAILURE : 0;
}
