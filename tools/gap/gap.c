/* SPDX-License-Identifier: Apache-2.0
 *
 * gap.c - vernier gap: reads the command line, measures row by row, prints and writes.
 */
#include <argp.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "commands.h"
#include "core.h"
#include "session.h"

enum { GPU = 256, PAIR, CSV, HTML, SVG, FROM, PROCESSES, RESUME, ROWS_ONLY };

static const double SAVE_SECONDS = 30;

static const struct argp_option options[] = {
    { "gpu",     GPU,     "SPEC",      0, "Of several GPUs this one: a spec, or a word of its name", 0 },
    { "pair",    PAIR,    "SPEC,SPEC", 0, "Any two devices instead: the first is measured against the second",
      0 },
    { "csv",     CSV,     "FILE",      0, "Write every sample as a line of CSV", 0 },
    { "html",    HTML,    "FILE",      0, "Write the report as one HTML file, with its charts", 0 },
    { "svg",     SVG,     "DIR",       0, "Write each chart of it as a file of this folder", 0 },
    { "from",    FROM,    "FILE",      0,
      "Measure nothing: read the JSON of an earlier run, and write CSV, HTML or SVG", 0 },
    { "resume",  RESUME,  "FILE",      0,
      "Take over the rows that FILE, the JSON of an interrupted run, has, and measure the others", 0 },
    { "processes", PROCESSES, "N",     0, "Measure each row in so many processes; 6 unless said", 0 },
    { "rows-only", ROWS_ONLY, NULL,    0, "Measure no launches, transfers and builds", 0 },
    { NULL, 0, NULL, 0, NULL, 0 }
};

static const char doc[] =
    "Measures WHAT (a problem, as gemm:1024x1024x1024:f32:nn, or a suite, as vernier bench has them) on one "
    "GPU through OpenCL and through CUDA, in turns, and reports the gaps between the two, to the vendors' "
    "libraries and to the roofline."
    "\v"
    "The gap 1/2 is the toolchain's: the time of one kernel with one tune row on device 1 (first ms) over "
    "that on device 2 (second ms); above 1, device 1 is slower.  From 0.9 to 1.1 is parity.  best is ours at "
    "its best on each, where that is another kernel; 1/LIBRARY is ours at its best on device 1 over the "
    "library.  A ratio is the median of the ratios of samples taken in turns; where several processes "
    "measure a row, the median of theirs, with the 95 % interval that these have.  An f32 problem that is "
    "solved by a matrix engine has a second row, by multiply-adds.  doc/method.md says how all this is "
    "measured.  Interrupted, it reports the rows that it has; while it runs, FILE.part beside the file of "
    "--json has those until then.\n"
    "\n"
    "Exit status: 0, 1 if a row failed, a device was lost or it was interrupted, 2 if there is no pair of "
    "devices.";

static const struct argp_child children[] = {
    OPTIONS_CHILD(json_argp), OPTIONS_CHILD(compare_argp),
    OPTIONS_CHILD(budget_argp), OPTIONS_CHILD(work_argp), OPTIONS_END };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct request *const r = state->input;

    switch (key) {
    case GPU:    r->gpu  = arg;                                      return 0;
    case PAIR:   r->pair = arg;                                      return 0;
    case CSV:    r->csv  = arg;                                      return 0;
    case HTML:   r->html = arg;                                      return 0;
    case SVG:    r->svg  = arg;                                      return 0;
    case FROM:   r->from = arg;                                      return 0;
    case RESUME: r->resume = arg;                                    return 0;
    case ROWS_ONLY: r->rows_only = 1;                                return 0;
    case PROCESSES:
        if ((r->processes = option_count(state, "processes", arg)) > SAMPLES)
            argp_error(state, "--processes is \"%s\", and must be a number from 1 to %d", arg, SAMPLES);
        return 0;
    case ARGP_KEY_INIT:
        options_begin(state, children, &r->common, &r->work);
        return 0;
    case ARGP_KEY_END:
        if (r->gpu && r->pair)
            argp_error(state, "--gpu and --pair both name the devices: one is enough");
        if (!r->work.whats && !r->from)
            argp_error(state, "measure what? A problem, or a suite: %s", workloads_suites());
        if (r->work.whats && r->from)
            argp_error(state, "--from reads what was measured: \"%s\" has no place beside it",
                       r->work.what[0]);
        if (r->resume && r->from)
            argp_error(state, "--from measures nothing, which --resume \"%s\" would have done", r->resume);
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* ---- measuring ---- */

static int read_workloads(struct session *s)
{
    const struct request *const r = s->request;
    char why[512];

    for (int i = 0; i < r->work.whats; i++)
        if (workloads_add(&s->w, r->work.what[i], &r->work.options, why, sizeof why)) {
            complain("%s", why);
            return EXIT_USAGE;
        }
    if (s->w.count)
        return 0;
    complain("nothing there has \"%s\" in its name or problem",
             r->work.options.filter ? r->work.options.filter : "");
    return EXIT_USAGE;
}

static json_t *own_row(struct session *s, int at, const char *variant, const char *of, char fma[32],
                       int *failed)
{
    session_row(s, at, variant, of);
    return session_measure(s, fma, failed);
}

/* variant: "", or that of a second row, and `of` the problem of the first; fma: as of gap_row_measure(). */
static void measure_row(struct session *s, struct gap_sheet *sheet, int at, const char *variant,
                        const char *of, char fma[32])
{
    int failed = 0;
    json_t *const row = (s->workers.count ? processes_row : own_row)(s, at, variant, of, fma, &failed);

    progress_clear(&s->progress);
    s->failures += failed || !row;
    if (!row)
        return;
    gap_sheet_row(sheet, row);
    json_array_append_new(s->benchmarks, row);
}

/* How it was measured. */
static void set_regime(const struct session *s, json_t *report)
{
    json_t *const context = json_object_get(report, "context");

    json_object_set_new(context, "processes", json_integer(s->workers.count ? s->workers.count : 1));
    json_object_set_new(context, "budget_s", json_real(s->request->common.budget));
}

/* once: with what is measured once for the pair. */
static json_t *make_report(struct session *s, int once)
{
    json_t *const report = s->workers.count ? processes_frame(s, once) : session_frame(s, once);
    json_t *const own = json_object_get(report, "vernier");

    set_regime(s, report);
    if (s->earlier)
        resumed_join(report, s->earlier, s->taken_over);
    json_rows_settle(s->benchmarks);
    json_object_set(report, "benchmarks", s->benchmarks);
    json_object_set_new(own, "geomean", gap_geomeans(s->benchmarks));
    json_object_set_new(own, "parity", gap_parity(s->benchmarks));
    return report;
}

/* ---- while it measures ---- */

/* The rows until now, where a lost machine leaves them: FILE.part, of --json FILE. */
static void part_path(char out[PATH_MAX], const struct session *s)
{
    const char *const path = s->request->common.json;

    *out = '\0';
    if (path && strcmp(path, "-") && snprintf(out, PATH_MAX, "%s.part", path) >= PATH_MAX)
        *out = '\0';
}

static void save_part(struct session *s)
{
    char path[PATH_MAX], new[PATH_MAX + 8];
    json_t *report;

    part_path(path, s);
    if (!*path || vn__seconds() - s->saved < SAVE_SECONDS || s->gap.lost || interrupted)
        return;
    snprintf(new, sizeof new, "%s.new", path);
    report = make_report(s, 0);
    if (report && !report_json(report, new) && rename(new, path))
        unlink(new);
    s->saved = vn__seconds();
}

static void forget_part(const struct session *s)
{
    char path[PATH_MAX];

    part_path(path, s);
    if (*path)
        unlink(path);
}

/* Has the report that is resumed the rows of a problem? */
static int take_over(struct session *s, struct gap_sheet *sheet, int at)
{
    json_t *const rows = s->earlier ? resumed_rows(s->earlier, s->w.it[at].text) : NULL, *row;
    const int count = (int)json_array_size(rows);
    size_t i;

    if (count)
        progress_clear(&s->progress);
    json_array_foreach(rows, i, row) {
        gap_sheet_row(sheet, row);
        json_array_append(s->benchmarks, row);
    }
    json_decref(rows);
    s->taken_over += count;
    return count;
}

static void measure_rows(struct session *s)
{
    struct gap_sheet sheet;

    gap_sheet_open(&sheet, s->to, &s->gap, &s->w);
    progress_open(&s->progress, s->w.count);
    for (int i = 0; i < s->w.count && !s->gap.lost && !interrupted; i++) {
        char fma[32], none[32];

        progress_show(&s->progress, i, s->w.it[i].text);
        if (take_over(s, &sheet, i))
            continue;
        measure_row(s, &sheet, i, "", "", fma);
        if (*fma && !s->gap.lost && !interrupted)      /* the same problem by multiply-adds */
            measure_row(s, &sheet, i, fma, s->w.it[i].text, none);
        save_part(s);
    }
    if (s->gap.lost)
        complain("a device was lost: the %zu rows until then are reported", json_array_size(s->benchmarks));
    else if (interrupted)
        complain("interrupted: the %zu rows until then are reported", json_array_size(s->benchmarks));
}

/* Why a ratio is missing, or a process: the first row that this holds of, and how many it does. */
static void note(json_t *notes, const char *row, const char *who, const char *why)
{
    char text[2 * SENTENCE];
    json_t *entry;

    if (!*why)
        return;
    snprintf(text, sizeof text, "%s%s%s", who, *who ? ": " : "", why);
    if (!(entry = json_object_get(notes, text)))
        json_object_set_new(notes, text, json_pack("{s:s, s:i}", "row", row, "more", 0));
    else
        json_object_set_new(entry, "more", json_integer((json_int_t)json_number(entry, "more") + 1));
}

static void say_why_not(const struct session *s)
{
    json_t *const notes = json_object(), *row, *run, *it;
    const char *text;
    size_t i, j;

    json_array_foreach(s->benchmarks, i, row) {
        const char *const name = json_text(row, "name");

        json_array_foreach(json_object_get(row, "runs"), j, run) {
            const char *const library = json_text(run, "library"),
                       *const error = json_text(run, "error_message");

            note(notes, name, *library ? library : json_text(run, "device"),
                 *error ? error : json_text(run, "skip_message"));
        }
        json_array_foreach(json_object_get(row, "failures"), j, it)
            note(notes, name, "a process failed", json_string_value(it));
    }
    json_object_foreach(notes, text, it) {
        const int more = (int)json_number(it, "more");

        fprintf(s->to, "%s (%s", text, json_text(it, "row"));
        fprintf(s->to, more > 1 ? " and %d more rows)\n" : more ? " and %d more row)\n" : ")\n", more);
    }
    json_decref(notes);
}

/* An earlier report of this command; NULL after a sentence. */
static json_t *load(const char *path)
{
    json_t *const report = report_load(path);

    if (!report || json_is_array(json_object_get(json_object_get(report, "vernier"), "pair")))
        return report;
    complain("%s is no report of vernier gap: it has no \"vernier\" with a \"pair\"", path);
    json_decref(report);
    return NULL;
}

/* 0, or an exit status. */
static int check_resumed(struct session *s)
{
    json_t *const report = s->workers.count ? json_incref(json_object_get(s->first, "report"))
                                            : session_frame(s, 0);
    int status;

    set_regime(s, report);
    status = resumed_check(s->earlier, s->request->resume, report);
    json_decref(report);
    return status;
}

static int write_files(const struct request *r, json_t *report)
{
    int failed = 0;

    if (r->csv)
        failed |= report_csv(r->csv, report);
    if (r->html || r->svg)
        failed |= gap_html(r->html, r->svg, report);
    if (r->common.json)
        failed |= report_json(json_incref(report), r->common.json);
    return failed ? EXIT_FAILURE : 0;
}

static int run_session(struct session *s)
{
    json_t *report;
    int status;

    measure_rows(s);
    say_why_not(s);
    report = make_report(s, !s->gap.lost && !interrupted && !s->request->rows_only);
    gap_summary(s->to, report);
    if (!(status = write_files(s->request, report)))
        forget_part(s);
    json_decref(report);
    return s->failures || s->gap.lost || interrupted ? EXIT_FAILURE : status;
}

static int measure(struct request *r, const char *program)
{
    struct session s = { .request = r, .program = program, .compare = strdup(r->common.compare),
                         .to = report_stream(r->common.json), .gap = { .budget = r->common.budget },
                         .benchmarks = json_array(), .saved = -SAVE_SECONDS };
    const int several = r->processes > 1;
    int status = s.compare ? read_workloads(&s) : EXIT_FAILURE;

    if (!status && r->resume && !(s.earlier = load(r->resume)))
        status = EXIT_USAGE;
    if (!status)
        status = several ? processes_open(&s) : session_open(&s, 1);
    if (!status && s.earlier)
        status = check_resumed(&s);
    if (!status)
        status = run_session(&s);
    (several ? processes_close : session_close)(&s);
    json_decref(s.earlier);
    json_decref(s.benchmarks);
    workloads_close(&s.w);
    free(s.compare);
    return status;
}

/* The means and the band are computed again: they follow from the rows. */
static int rewrite(const struct request *r)
{
    json_t *const report = load(r->from), *const own = json_object_get(report, "vernier");
    int status;

    if (!report)
        return EXIT_USAGE;
    json_object_set_new(own, "geomean", gap_geomeans(json_object_get(report, "benchmarks")));
    json_object_set_new(own, "parity", gap_parity(json_object_get(report, "benchmarks")));
    gap_summary(report_stream(r->common.json), report);
    status = write_files(r, report);
    json_decref(report);
    return status;
}

const struct argp gap_parser = { options, parse, "WHAT...", doc, children, NULL, NULL };

int gap_main(int argc, char **argv)
{
    struct request r = { .common = { .budget = BUDGET_USUAL, .compare = "cublas,cudnn,clblast" },
                         .processes = PROCESSES_USUAL, .work = WORK_UNSAID };

    if (argp_parse(&gap_parser, argc, argv, 0, NULL, &r))
        return EXIT_USAGE;
    peer_calm();
    if (!r.from)
        take_interrupts();
    return r.from ? rewrite(&r) : measure(&r, argv[0]);
}
