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
#include "workers.h"

enum { PROCESSES_USUAL = 6 };            /* the least of which order statistics cover 95 % */

struct request {
    struct common common;                /* its json, compare and budget */
    const char *gpu, *pair, *csv, *html, *svg, *from;
    int64_t     processes;
    struct work work;
};

enum { GPU = 256, PAIR, CSV, HTML, SVG, FROM, PROCESSES };

static const struct argp_option options[] = {
    { "gpu",     GPU,     "SPEC",      0, "Of several GPUs this one: a spec, or a word of its name", 0 },
    { "pair",    PAIR,    "SPEC,SPEC", 0, "Any two devices instead: the first is measured against the second",
      0 },
    { "csv",     CSV,     "FILE",      0, "Write every sample as a line of CSV", 0 },
    { "html",    HTML,    "FILE",      0, "Write the report as one HTML file, with its charts", 0 },
    { "svg",     SVG,     "DIR",       0, "Write each chart of it as a file of this folder", 0 },
    { "from",    FROM,    "FILE",      0,
      "Measure nothing: read the JSON of an earlier run, and write CSV, HTML or SVG", 0 },
    { "processes", PROCESSES, "N",     0, "Measure each row in so many processes; 6 unless said", 0 },
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
    "measured.  Interrupted, it reports the rows that it has.\n"
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
    const char      *program;
    char            *compare;            /* the libraries' names, which strsep() takes apart */
    struct workloads w;
    FILE            *to;
    json_t          *benchmarks;
    struct progress  progress;
    int              failures;
    struct workers   workers;            /* who measure, where others than this process do */
    struct contest  *row;                /* of a process: the one in work, and what it is of */
    struct workload  row_of;
    char             row_first[PROBLEM_TEXT];
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
    if (s->request->processes > 1)
        fprintf(s->to, "each row in %lld processes\n", (long long)s->request->processes);
    for (int i = 0; i < g->libraries; i++)
        if (*g->library[i].why)
            fprintf(s->to, "%s is left out: %s\n", g->library[i].name, g->library[i].why);
    fputc('\n', s->to);
}

static struct workload by_variant(const struct workload *w, const char *variant)
{
    struct workload it = *w;

    if (*variant) {
        snprintf(it.problem.variant, sizeof it.problem.variant, "%s", variant);
        problem_format(it.text, &it.problem);
    }
    return it;
}

/* The first alone, since it compiles what the others find in the cache; then these side by side. */
static void prepare_all(struct session *s, int at, const char *variant, const char *of)
{
    for (int i = 0; i < s->workers.count; i++) {
        worker_tell(&s->workers, i,
                    json_pack("{s:i, s:s, s:s}", "prepare", at, "variant", variant, "of", of));
        if (!i)
            json_decref(worker_hear(&s->workers, i));
    }
    for (int i = 1; i < s->workers.count; i++)
        json_decref(worker_hear(&s->workers, i));
}

/* What the workers make of a row of the list. */
static json_t *joined_row(struct session *s, int at, const char *variant, const char *of, char fma[32],
                          int *failed)
{
    json_t *answer[SAMPLES], *row[SAMPLES], *joined;
    int count = 0;

    *fma = '\0';
    prepare_all(s, at, variant, of);
    for (int i = 0; i < s->workers.count && !s->gap.lost && (!i || !interrupted); i++) {
        json_t *const it = worker_ask(&s->workers, i, json_pack("{s:b}", "measure", 1));

        if (!it) {
            complain("process %d of %d has ended", i + 1, s->workers.count);
            s->gap.lost = 1;
            break;
        }
        *failed     |= json_is_true(json_object_get(it, "failed"));
        s->gap.lost |= json_is_true(json_object_get(it, "lost"));
        if (!i)
            snprintf(fma, 32, "%s", json_text(it, "fma"));
        row[count]      = json_object_get(it, "row");
        answer[count++] = it;
    }
    if (!count)
        return NULL;
    joined = rows_join(row, count);
    for (int i = 0; i < count; i++)
        json_decref(answer[i]);
    return joined;
}

static void open_row(struct session *s, int at, const char *variant, const char *of)
{
    gap_row_close(s->row);
    s->row_of = by_variant(&s->w.it[at], variant);
    snprintf(s->row_first, sizeof s->row_first, "%s", of);
    s->row = gap_row_open(&s->gap, &s->row_of, s->row_first);
}

static json_t *close_row(struct session *s, char fma[32], int *failed)
{
    json_t *row;

    *fma = '\0';
    if (!s->row) {
        *failed = 1;
        return json_pack("{s:s, s:b, s:s}", "name", s->row_of.text, "error_occurred", 1,
                         "error_message", "host memory ran out");
    }
    row = gap_row_measure(s->row, fma, failed);
    gap_row_close(s->row);
    s->row = NULL;
    return row;
}

static json_t *own_row(struct session *s, int at, const char *variant, const char *of, char fma[32],
                       int *failed)
{
    open_row(s, at, variant, of);
    return close_row(s, fma, failed);
}

/* variant: "", or that of a second row, and `of` the problem of the first; fma: as of gap_row_measure(). */
static void measure_row(struct session *s, struct gap_sheet *sheet, int at, const char *variant,
                        const char *of, char fma[32])
{
    int failed = 0;
    json_t *const row = (s->workers.count ? joined_row : own_row)(s, at, variant, of, fma, &failed);

    progress_clear(&s->progress);
    s->failures += failed || !row;
    if (!row)
        return;
    gap_sheet_row(sheet, row);
    json_array_append_new(s->benchmarks, row);
}

static void measure_rows(struct session *s)
{
    struct gap_sheet sheet;

    gap_sheet_open(&sheet, s->to, &s->gap, &s->w);
    progress_open(&s->progress, s->w.count);
    for (int i = 0; i < s->w.count && !s->gap.lost && !interrupted; i++) {
        char fma[32], none[32];

        progress_show(&s->progress, i, s->w.it[i].text);
        measure_row(s, &sheet, i, "", "", fma);
        if (*fma && !s->gap.lost && !interrupted)      /* the same problem by multiply-adds */
            measure_row(s, &sheet, i, fma, s->w.it[i].text, none);
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

/* Without the rows; once: with what is measured once for the pair. */
static json_t *frame(struct session *s, int once)
{
    struct gap *const g = &s->gap;
    struct bench b = { .info = g->side[FIRST].info, .pinned = g->pinned };
    json_t *const own = json_pack("{s:o, s:O}", "pair", pair_json(g), "kernels", g->kernels);

    for (int i = 0; i < g->libraries; i++)
        if (g->library[i].peer && b.peers < BENCH_PEERS)
            b.peer[b.peers++] = g->library[i].peer;
    if (once)
        json_object_update_new(own, gap_once(g));
    return json_pack("{s:i, s:o, s:o, s:o}", "schema", SCHEMA, "context", json_context(&b, s->program),
                     "benchmarks", json_array(), "vernier", own);
}

static json_t *make_report(struct session *s)
{
    const int once = !s->gap.lost && !interrupted;
    json_t *const report = s->workers.count ? worker_ask(&s->workers, 0, json_pack("{s:b}", "frame", once))
                                            : frame(s, once);
    json_t *const own = json_object_get(report, "vernier");

    if (!own) {
        complain("the first process has ended: there is no report");
        json_decref(report);
        return NULL;
    }
    json_rows_settle(s->benchmarks);
    json_object_set(report, "benchmarks", s->benchmarks);
    json_object_set_new(own, "geomean", gap_geomeans(s->benchmarks));
    json_object_set_new(own, "parity", gap_parity(s->benchmarks));
    json_object_set_new(json_object_get(report, "context"), "processes",
                        json_integer(s->workers.count ? s->workers.count : 1));
    return report;
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
    if (!(report = make_report(s)))
        return EXIT_FAILURE;
    gap_summary(s->to, report);
    status = write_files(s->request, report);
    json_decref(report);
    return s->failures || s->gap.lost || interrupted ? EXIT_FAILURE : status;
}

/* is_first: it measures the roofs, too, and says what the pair is. */
static int open_session(struct session *s, int is_first)
{
    struct gap *const g = &s->gap;
    struct peer_threads before;
    int status;

    peer_threads_note(&before);
    status = pair_open(g, s->request->gpu, s->request->pair);
    g->pinned = !status && g->side[FIRST].info.is_cpu && peers_are_named(s->request->common.compare);
    if (g->pinned)
        peer_threads_tie(&before);
    if (!status)
        status = open_libraries(g, s->compare);
    if (status)
        return status;
    clocks_open(&g->side[SECOND].info);
    g->repeats = !is_first;
    g->kernels = json_object();
    if (is_first && !(status = measure_rooflines(s)))
        print_pair(s);
    fflush(s->to);
    return status;
}

static void close_session(struct session *s)
{
    gap_row_close(s->row);
    clocks_close();
    json_decref(s->gap.kernels);
    close_libraries(&s->gap);
    pair_close(&s->gap);
}

/* ---- several processes ---- */

static json_t *opened(const struct session *s, int status)
{
    json_t *const names = json_array();

    for (int i = 0; i < s->gap.libraries; i++)
        if (!*s->gap.library[i].why)
            json_array_append_new(names, json_string(s->gap.library[i].name));
    return json_pack("{s:i, s:o, s:b}", "status", status, "libraries", names,
                     "is_cpu", s->gap.side[FIRST].info.is_cpu);
}

static json_t *prepared(struct session *s, const json_t *question)
{
    open_row(s, (int)json_number(question, "prepare"), json_text(question, "variant"),
             json_text(question, "of"));
    if (s->row)
        gap_row_prepare(s->row);
    return json_pack("{s:b}", "prepared", 1);
}

static json_t *measured(struct session *s)
{
    char fma[32];
    int failed = 0;
    json_t *const row = close_row(s, fma, &failed);

    return json_pack("{s:o, s:s, s:b, s:b}", "row", row, "fma", fma, "failed", failed, "lost", s->gap.lost);
}

static json_t *answer_to(struct session *s, const json_t *question)
{
    if (json_object_get(question, "frame"))
        return frame(s, json_is_true(json_object_get(question, "frame")));
    return json_object_get(question, "prepare") ? prepared(s, question) : measured(s);
}

/* One of the processes. */
static int serve(void *context, int which, FILE *from, FILE *to)
{
    struct session *const s = context;
    json_t *question = worker_asked(from);
    int status = EXIT_FAILURE;

    if (question) {
        json_decref(question);
        worker_answer(to, opened(s, status = open_session(s, which == 0)));
    }
    while (!status && (question = worker_asked(from))) {
        worker_answer(to, answer_to(s, question));
        json_decref(question);
    }
    close_session(s);
    return status;
}

/* Of the first process, what the table is made for; 0, or an exit status. */
static int open_workers(struct session *s, json_t **first)
{
    for (int i = 0; i < s->workers.count; i++) {
        json_t *const answer = worker_ask(&s->workers, i, json_pack("{s:b}", "open", 1));
        const int status = answer ? (int)json_number(answer, "status") : EXIT_FAILURE;

        if (!answer)
            complain("process %d of %d has ended", i + 1, s->workers.count);
        if (i == 0)
            *first = answer;
        else
            json_decref(answer);
        if (status)
            return status;
    }
    return 0;
}

static int measure_by_workers(struct session *s)
{
    json_t *first = NULL, *name;
    size_t i;
    int status;

    s->gap.budget /= (double)s->request->processes;
    s->gap.processes = (int)s->request->processes;
    if (workers_open(&s->workers, (int)s->request->processes, serve, s)) {
        complain("--processes: no process can be started");
        return EXIT_FAILURE;
    }
    if (!(status = open_workers(s, &first))) {
        json_array_foreach(json_object_get(first, "libraries"), i, name)
            s->gap.library[s->gap.libraries++].name = json_string_value(name);
        s->gap.side[FIRST].info.is_cpu = json_is_true(json_object_get(first, "is_cpu"));
        status = run_session(s);
    }
    workers_close(&s->workers);
    json_decref(first);
    return status;
}

static int measure(struct request *r, const char *program)
{
    struct session s = { .request = r, .program = program, .compare = strdup(r->common.compare),
                         .to = report_stream(r->common.json), .gap = { .budget = r->common.budget },
                         .benchmarks = json_array() };
    int status = s.compare ? read_workloads(&s) : EXIT_FAILURE;

    if (!status && r->processes > 1)
        status = measure_by_workers(&s);
    else if (!status) {
        if (!(status = open_session(&s, 1)))
            status = run_session(&s);
        close_session(&s);
    }
    json_decref(s.benchmarks);
    workloads_close(&s.w);
    free(s.compare);
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
                         .processes = PROCESSES_USUAL, .work = WORK_UNSAID };

    if (argp_parse(&gap_parser, argc, argv, 0, NULL, &r))
        return EXIT_USAGE;
    peer_calm();
    if (!r.from)
        take_interrupts();
    return r.from ? rewrite(&r) : measure(&r, argv[0]);
}
