/* SPDX-License-Identifier: Apache-2.0
 *
 * gap.c - vernier gap: reads the command line, measures row by row, prints and writes.
 */
#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include "measure/clocks.h"
#include "commands.h"
#include "core.h"
#include "gap.h"
#include "options.h"

struct request {
    struct common common;                /* its json, compare and budget */
    const char *gpu, *pair, *csv, *html, *svg, *from;
    struct work work;
};

enum { GPU = 256, PAIR, CSV, HTML, SVG, FROM };

static const struct argp_option options[] = {
    { "gpu",     GPU,     "SPEC",      0, "Of several GPUs this one: a spec, or a word of its name", 0 },
    { "pair",    PAIR,    "SPEC,SPEC", 0, "Any two devices instead: the first is measured against the second",
      0 },
    { "csv",     CSV,     "FILE",      0, "Write every sample as a line of CSV", 0 },
    { "html",    HTML,    "FILE",      0, "Write the report as one HTML file, with its charts", 0 },
    { "svg",     SVG,     "DIR",       0, "Write each chart of it as a file of this folder", 0 },
    { "from",    FROM,    "FILE",      0,
      "Measure nothing: read the JSON of an earlier run, and write CSV, HTML or SVG", 0 },
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
    "library.  A ratio is the median of the ratios of samples taken in turns, with its 95 % interval.  An "
    "f32 problem that is solved by a matrix engine has a second row, by multiply-adds.  doc/method.md says "
    "how all this is measured.  Interrupted, it reports the rows that it has.\n"
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
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* ---- libraries ---- */

/* Some operation has it as a variant. */
static int is_variant(const char *name)
{
    for (int op = 0; vn__operations[op]; op++)
        for (const struct vn_variant *v = vn__operations[op]->variants; v->name; v++)
            if (!v->texts && !strcmp(v->name, name))
                return 1;
    return 0;
}

static void open_library(struct gap *g, const char *name)
{
    const vn_device_info *const d = &g->side[FIRST].info;
    const struct peer_context context = { d->is_cpu, d->platform, d->name, d->uuid, d->pci };
    struct library *const l = &g->library[g->libraries++];
    const struct peer *const p = peer_named(name);

    *l = (struct library){ .name = p ? p->name : name };
    if (p && !p->open(&context, l->why, SENTENCE)) {
        l->peer = p;
        g->peers++;
    }
    if (is_variant(name))
        *l->why = '\0';
    else if (!p)
        snprintf(l->why, SENTENCE, "this vernier was built without it");
}

/* 0, or an exit status. */
static int open_libraries(struct gap *g, char *names)
{
    for (char *name; (name = strsep(&names, ","));) {
        if (!*name || !strcmp(name, "none"))
            continue;
        if (g->libraries == LIBRARIES || (!is_variant(name) && !peer_named(name) && strcmp(name, "cublas")
                                          && strcmp(name, "cudnn") && strcmp(name, "clblast"))) {
            complain("--compare: there is no library \"%s\": cublas, cudnn, clblast, onednn, "
                     "onednn-plain, openblas or torch", name);
            return EXIT_USAGE;
        }
        open_library(g, name);
    }
    return 0;
}

static void close_libraries(struct gap *g)
{
    for (int i = 0; i < g->libraries; i++)
        if (g->library[i].peer)
            g->library[i].peer->close();
}

/* ---- measuring ---- */

struct session {
    struct gap       gap;
    struct request  *request;
    struct workloads w;
    FILE            *to;
    json_t          *benchmarks;
    struct progress  progress;
    int              failures;
};

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

static int measure_rooflines(struct session *s)
{
    for (int i = 0; i < s->w.count; i++)
        for (int j = 0; j < 2; j++) {
            struct side *const side = &s->gap.side[j];
            const vn_type type = s->w.it[i].problem.type;

            if ((type == VN_F64 && !side->info.has_f64)
                || !roofline_measure(&side->roofline, side->queue, type, s->w.it[i].problem.math))
                continue;
            complain("the roofline of %s cannot be measured: %s", side->info.spec, vn_last_error());
            return EXIT_FAILURE;
        }
    return 0;
}

static void print_pair(const struct session *s)
{
    const struct gap *const g = &s->gap;

    fprintf(s->to, "vernier %s, %s\n", vn_version(), g->side[FIRST].info.name);
    for (int i = 0; i < 2; i++)
        fprintf(s->to, "device %d  %s (%s, %s)\n", i + 1, g->side[i].info.spec, g->side[i].info.platform,
                g->side[i].info.driver);
    fprintf(s->to, "kernel time by %s\n",
            g->side[FIRST].by_events ? "the devices' events" : "the clock on the wall");
    for (int i = 0; i < g->libraries; i++)
        if (*g->library[i].why)
            fprintf(s->to, "%s is left out: %s\n", g->library[i].name, g->library[i].why);
    fputc('\n', s->to);
}

/* fma: that of gap_row(). */
static void measure_row(struct session *s, struct gap_sheet *sheet, const struct workload *w, const char *of,
                        char fma[32])
{
    int failed = 0;
    json_t *const row = gap_row(&s->gap, w, of, fma, &failed);

    progress_clear(&s->progress);
    gap_sheet_row(sheet, row);
    json_array_append_new(s->benchmarks, row);
    s->failures += failed;
}

/* The same problem by multiply-adds: a row of its own. */
static void measure_fma_row(struct session *s, struct gap_sheet *sheet, const struct workload *w,
                            const char *variant)
{
    struct workload by_fma = *w;
    char none[32];

    snprintf(by_fma.problem.variant, sizeof by_fma.problem.variant, "%s", variant);
    problem_format(by_fma.text, &by_fma.problem);
    measure_row(s, sheet, &by_fma, w->text, none);
}

static void measure_rows(struct session *s)
{
    struct gap_sheet sheet;

    gap_sheet_open(&sheet, s->to, &s->gap, &s->w);
    progress_open(&s->progress, s->w.count);
    for (int i = 0; i < s->w.count && !s->gap.lost && !interrupted; i++) {
        char fma[32];

        progress_show(&s->progress, i, s->w.it[i].text);
        measure_row(s, &sheet, &s->w.it[i], "", fma);
        if (*fma && !s->gap.lost && !interrupted)
            measure_fma_row(s, &sheet, &s->w.it[i], fma);
    }
    if (s->gap.lost)
        complain("a device was lost: the %zu rows until then are reported", json_array_size(s->benchmarks));
    else if (interrupted)
        complain("interrupted: the %zu rows until then are reported", json_array_size(s->benchmarks));
}

/* Notes that a ratio is missing, each once. */
static void say_why_not(const struct session *s)
{
    const char *said = "";
    json_t *row, *run;
    size_t i, j;

    json_array_foreach(s->benchmarks, i, row) {
        json_array_foreach(json_object_get(row, "runs"), j, run) {
            const char *const name = json_text(run, "library"), *const note = json_text(run, "skip_message"),
                       *const error = json_text(run, "error_message");
            const char *const why = *error ? error : note;

            if (!*why || !strcmp(why, said))
                continue;
            fprintf(s->to, "%s: %s: %s\n", json_text(row, "name"),
                    *name ? name : json_text(run, "device"), why);
            said = why;
        }
    }
}

static json_t *make_report(struct session *s, const char *program)
{
    struct gap *const g = &s->gap;
    struct bench b = { .info = g->side[FIRST].info, .pinned = g->pinned };
    json_t *const own = json_pack("{s:o, s:o, s:o, s:o}", "geomean", gap_geomeans(s->benchmarks),
                                  "parity", gap_parity(s->benchmarks), "pair", pair_json(g),
                                  "kernels", json_incref(g->kernels));

    for (int i = 0; i < g->libraries; i++)
        if (g->library[i].peer && b.peers < BENCH_PEERS)
            b.peer[b.peers++] = g->library[i].peer;
    json_rows_settle(s->benchmarks);
    if (!g->lost && !interrupted)
        json_object_update_new(own, gap_once(g));
    return json_pack("{s:i, s:o, s:O, s:o}", "schema", SCHEMA, "context", json_context(&b, program),
                     "benchmarks", s->benchmarks, "vernier", own);
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

static int run_session(struct session *s, const char *program)
{
    json_t *report;
    int status = measure_rooflines(s);

    if (status)
        return status;
    print_pair(s);
    measure_rows(s);
    say_why_not(s);
    report = make_report(s, program);
    gap_summary(s->to, report);
    status = write_files(s->request, report);
    json_decref(report);
    return s->failures || s->gap.lost || interrupted ? EXIT_FAILURE : status;
}

static int measure(struct request *r, const char *program)
{
    struct session s = { .request = r, .to = report_stream(r->common.json),
                         .gap = { .budget = r->common.budget } };
    struct peer_threads before;
    int status = read_workloads(&s);

    peer_threads_note(&before);
    if (!status)
        status = pair_open(&s.gap, r->gpu, r->pair);
    s.gap.pinned = !status && s.gap.side[FIRST].info.is_cpu && peers_are_named(r->common.compare);
    if (s.gap.pinned)
        peer_threads_tie(&before);
    if (!status)
        status = open_libraries(&s.gap, r->common.compare);
    if (!status) {
        s.benchmarks  = json_array();
        s.gap.kernels = json_object();
        clocks_open(&s.gap.side[SECOND].info);
        status = run_session(&s, program);
        clocks_close();
        json_decref(s.benchmarks);
        json_decref(s.gap.kernels);
    }
    close_libraries(&s.gap);
    pair_close(&s.gap);
    workloads_close(&s.w);
    return status;
}

/* The means and the band are computed again: they follow from the rows. */
static int rewrite(const struct request *r)
{
    json_t *const report = report_load(r->from), *const own = json_object_get(report, "vernier");
    int status;

    if (!report)
        return EXIT_USAGE;
    if (!json_is_array(json_object_get(own, "pair"))) {
        complain("%s is no report of vernier gap: it has no \"vernier\" with a \"pair\"", r->from);
        json_decref(report);
        return EXIT_USAGE;
    }
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
                         .work = WORK_UNSAID };

    if (argp_parse(&gap_parser, argc, argv, 0, NULL, &r))
        return EXIT_USAGE;
    peer_calm();
    if (!r.from)
        take_interrupts();
    return r.from ? rewrite(&r) : measure(&r, argv[0]);
}
