/* SPDX-License-Identifier: Apache-2.0
 *
 * bench.c - vernier bench: reads the command line, measures row by row, prints and writes.
 */
#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"
#include "commands.h"
#include "measure/clocks.h"
#include "options.h"

/* ---- the command line ---- */

struct request {
    struct common common;
    const char *first_call, *html, *svg, *csv;
    int         layers;                 /* of sequences, each, too */
    int         sustained;
    struct work work;
};

enum { DIRECTION = 256, VARIANT, FIRST_CALL, HTML, SVG, CSV, LAYERS, SUSTAINED };

static const struct argp_option options[] = {
    { "variant",    VARIANT,   "NAME",  0, "Only this variant of ours (see vernier explain)", 0 },
    { "direction",  DIRECTION, "NAME",  0,
      "forward, backward-data or backward-filter (convolution), backward (softmax, attention), or all", 0 },
    { "layers",     LAYERS,    NULL,    0,
      "Of a suite that is a sequence, measure each layer, too, those of one shape once", 0 },
    { "sustained",  SUSTAINED, NULL,    0,
      "Without rests: each sample follows 0.4 s of the same runs", 0 },
    { "csv",        CSV,       "FILE",  0, "Write every sample as a line of CSV", 0 },
    { "html",       HTML,      "FILE",  0, "Write the report as one HTML file, with its charts", 0 },
    { "svg",        SVG,       "DIR",   0, "Write each chart of it as a file of this folder", 0 },
    { "first-call", FIRST_CALL, "SPEC", OPTION_HIDDEN, NULL, 0 },
    { NULL, 0, NULL, 0, NULL, 0 }
};

static const char doc[] =
    "Measures WHAT: a problem, as gemm:1024x1024x1024:f32:nn; a suite: squares, resnet50, resnet50-network, "
    "mobilenet, unet3d, wavenet, llama31, deepbench-gemm, deepbench-conv, epilogues, mixed, batched, "
    "softmax-rows, attention, decode, cross-entropy; or overhead, which is what a call and a start cost. "
    "resnet50-network is a sequence: its 53 convolutions run one after the other and are timed as one."
    "\v"
    "Times are medians of samples taken in turns with the peers, on random data, after a run that is "
    "checked against them; on a CPU by the clock on the wall, else by the device's events, with the device "
    "held until all runs of a sample are queued, so that the host does not set the pace.\n"
    "\n"
    "roof is the share of the device's roofline, as measured: the larger of flops over the peak of the "
    "engine that the type may use (multiply-adds, or a matrix engine; of f32 a sixth of bf16's) and bytes "
    "over the bandwidth of a copy, over the time; \"cache\", where a cache holds the data and that passes "
    "100 %.  copy, where memory sets that roof, is the time of a copy that reads and writes as many bytes, "
    "launched and measured alike, over the time.  Behind a peer's time stands the ratio of it to ours, above "
    "1 we are faster: the median of the ratios of samples taken in turns.  95 % is the interval of a median "
    "by order statistics.  A row during which other processes ran is measured once more, and then marked as "
    "disturbed.\n"
    "\n"
    "Interrupted, it reports the rows that it has.\n"
    "\n"
    "Exit status: 0, 1 if a row failed, its result was wrong or it was interrupted, 2 if nothing could be "
    "tried.";

static int direction_named(const char *name)
{
    for (int i = 0; i < DIRECTIONS; i++)
        if (!strcmp(direction_names[i], name))
            return i;
    return strcmp(name, "all") ? -1 : ALL_DIRECTIONS;
}

static const struct argp_child children[] = {
    OPTIONS_CHILD(device_argp), OPTIONS_CHILD(json_argp), OPTIONS_CHILD(compare_argp),
    OPTIONS_CHILD(budget_argp), OPTIONS_CHILD(work_argp), OPTIONS_END };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct request *const r = state->input;

    switch (key) {
    case VARIANT:    r->work.options.variant = arg; return 0;
    case FIRST_CALL: r->first_call = arg;           return 0;
    case CSV:        r->csv  = arg;                 return 0;
    case LAYERS:     r->layers = 1;                 return 0;
    case SUSTAINED:  r->sustained = 1;              return 0;
    case HTML:       r->html = arg;                 return 0;
    case SVG:        r->svg  = arg;                 return 0;
    case DIRECTION:
        if ((r->work.options.direction = direction_named(arg)) == -1)
            argp_error(state, "--direction is \"%s\", and must be forward, backward-data, backward-filter, "
                              "backward or all", arg);
        return 0;
    case ARGP_KEY_INIT:
        options_begin(state, children, &r->common, &r->work);
        return 0;
    case ARGP_KEY_END:
        if (!r->work.whats && !r->first_call)
            argp_error(state, "measure what? A problem, or a suite: %s, overhead", workloads_suites());
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* ---- what to measure ---- */

/* A table: a suite, or problems that follow each other; nothing in it: overhead. */
struct group { const char *name; struct workloads w; };
struct plan  { struct group group[2 * WORK_MOST]; int groups; };

static int add_what(struct plan *p, const char *what, const struct workload_options *o)
{
    static const char problems[] = "problems";
    const char *const name = strchr(what, ':') ? problems : what;
    char why[512];

    if (!p->groups || name != problems || p->group[p->groups - 1].name != problems)
        p->group[p->groups++].name = name;

    struct workloads *const w = &p->group[p->groups - 1].w;

    if (!strcmp(what, "overhead"))
        return 0;
    if (workloads_add(w, what, o, why, sizeof why)) {
        complain("%s", why);
        return EXIT_USAGE;
    }
    if (!w->count) {
        complain("nothing of %s has \"%s\" in its name or problem", what, o->filter ? o->filter : "");
        return EXIT_USAGE;
    }
    return 0;
}

/* Reads everything that was asked for before anything is measured. */
static int make_plan(struct plan *p, const struct request *r)
{
    int status = 0;

    for (int i = 0; i < r->work.whats && !status; i++) {
        struct workload_options o = r->work.options;

        o.sequences = 1;
        status = add_what(p, r->work.what[i], &o);
        o.sequences = 0;
        if (!status && r->layers && p->group[p->groups - 1].w.is_sequence)
            status = add_what(p, r->work.what[i], &o);
    }
    return status;
}

/* ---- peers ---- */

/* 0, or an exit status.  A peer that is not there is said so once, and left out. */
static int open_peers(struct bench *b, const char *list)
{
    const struct peer_context context = { b->info.is_cpu, b->info.platform, b->info.name,
                                          b->info.uuid, b->info.pci };
    char why[SENTENCE], copy[sizeof ((struct common *)0)->compare], *names = copy;

    snprintf(copy, sizeof copy, "%s", list);
    for (char *name; (name = strsep(&names, ","));) {
        const struct peer *const p = peer_named(name);

        if (!*name || !strcmp(name, "none"))
            continue;
        if (!p || b->peers == BENCH_PEERS) {
            complain("--compare: there is no peer \"%s\": onednn, onednn-plain, openblas, clblast, cublas, "
                     "cudnn or torch", name);
            return EXIT_USAGE;
        }
        if (p->open(&context, why, sizeof why))
            complain("%s is left out: %s", name, why);
        else
            b->peer[b->peers++] = p;
    }
    return 0;
}

/* ---- measuring ---- */

struct session {
    struct bench          bench;
    const struct request *request;
    FILE                 *to;
    struct means          means;          /* over everything */
    json_t               *benchmarks, *suites;
    int                   failures;
};

/* Peers that had no part in a row say why, once. */
static void say_why_not(struct session *s, const struct row *rows, int count)
{
    struct bench *const b = &s->bench;

    for (int i = 0; i < b->peers; i++) {
        const char *said = "";

        for (int j = 0; j < count; j++) {
            const char *const note = rows[j].peer[i].note;

            if (!*note || !strcmp(note, said))
                continue;
            fprintf(s->to, "%s, where it has \"-\": %s\n", b->peer[i]->name, note);
            said = note;
        }
    }
}

/* The rows of a table: shown[i] stands for the count problems from it[i] on. */
static int measure_all(struct session *s, const char *name, const struct workloads *shown,
                       const struct workload *it, int count)
{
    struct bench *const b = &s->bench;
    const struct workloads *const w = shown;
    struct row *const rows = calloc((size_t)w->count, sizeof *rows);
    struct means means = { { 0 }, { 0 } };
    struct progress progress;
    struct sheet sheet;

    if (!rows) {
        complain("host memory ran out");
        return EXIT_FAILURE;
    }
    sheet_open(&sheet, b, w, s->to);
    progress_open(&progress, w->count);
    for (int i = 0; i < w->count && !interrupted; i++) {
        progress_show(&progress, i, w->it[i].text);
        row_measure(&rows[i], b, &it[i], count);
        progress_clear(&progress);
        sheet_row(&sheet, b, &w->it[i], &rows[i]);
        means_add(&means, b, &rows[i]);
        means_add(&s->means, b, &rows[i]);
        json_array_append_new(s->benchmarks, json_row(b, &w->it[i], &rows[i]));
        s->failures += rows[i].failed;
    }
    if (b->peers && w->count > 1) {
        sheet_means(&sheet, b, &means);
        json_object_set_new(s->suites, name, json_means(b, &means));
    }
    say_why_not(s, rows, w->count);
    for (int i = 0; i < w->count; i++)
        row_close(&rows[i]);
    free(rows);
    return 0;
}

static int measure_roofline(struct session *s, const struct workloads *w)
{
    for (int i = 0; i < w->count; i++) {
        const vn_type type = w->it[i].problem.type;

        if ((type == VN_F64 && !s->bench.info.has_f64)
            || !roofline_measure(&s->bench.roofline, s->bench.queue, type, w->it[i].problem.math))
            continue;
        complain("the roofline cannot be measured: %s", vn_last_error());
        return EXIT_FAILURE;
    }
    return 0;
}

static int measure_overhead(struct session *s)
{
    const int status = overhead_bench(&s->bench, s->to, s->benchmarks);

    return status ? status : startup_bench(&s->bench, s->to, s->benchmarks);
}

static int measure_group(struct session *s, const struct group *g)
{
    int status;

    if (!g->w.count)
        return measure_overhead(s);
    if (!s->bench.info.is_cpu && !s->bench.hold && hold_open(&s->bench.hold, s->bench.queue))
        s->bench.hold = NULL;                   /* short runs go without */
    if ((status = measure_roofline(s, &g->w)))
        return status;
    if (!g->w.is_sequence)
        return measure_all(s, g->name, &g->w, g->w.it, 1);

    struct workload all;

    workloads_sequence(&all, &g->w);
    return measure_all(s, g->name, &(struct workloads){ .it = &all, .count = 1 }, g->w.it, g->w.count);
}

static void print_device(const struct session *s)
{
    const struct bench *const b = &s->bench;

    fprintf(s->to, "vernier %s on %s, %s (%s, %s)\n", vn_version(), b->info.spec, b->info.name,
            b->info.platform, b->info.driver);
    for (int i = 0; i < b->peers; i++)
        fprintf(s->to, "%s%s", i ? ", " : "beside ", b->peer[i]->version());
    fputs(b->peers ? "\n" : "", s->to);
    fputs(b->sustained ? "without rests: each sample follows 0.4 s of the same runs\n\n" : "\n", s->to);
}

/* "roof: FMA f32 57.1 GFLOP/s, HGMMA f16 801234 GFLOP/s, copy 10.1 GB/s" */
static void print_roofs(FILE *to, const struct roofline *r)
{
    static const char *const of[] = { "f32", "f64", "the bandwidth" };
    char cell[CELL];

    fputs("\nroof: ", to);
    for (int i = 0; i < 2; i++)
        if (r->peak[i] > 0)
            fprintf(to, "FMA %s %s GFLOP/s, ", i ? "f64" : "f32", figure(cell, r->peak[i] * 1e-9));
    for (int t = 0; t < VN_TYPE_COUNT; t++)
        if (r->matrix[t].flops > 0)
            fprintf(to, "%s %s GFLOP/s, ", r->matrix[t].engine, figure(cell, r->matrix[t].flops * 1e-9));
    fprintf(to, "copy %s GB/s", figure(cell, r->bandwidth * 1e-9));
    fprintf(to, ", reading %s GB/s\n", figure(cell, r->reading * 1e-9));
    for (int i = 0; i < 3; i++)
        if (*r->disturbed[i])
            fprintf(to, "the roof of %s was disturbed: %s\n", of[i], r->disturbed[i]);
}

static int write_files(struct session *s, const char *program)
{
    const struct request *const r = s->request;
    json_t *report;
    int failed = 0;

    json_rows_settle(s->benchmarks);
    json_roofs_settle(s->benchmarks, &s->bench.roofline);
    report = json_pack("{s:o, s:o, s:{s:b, s:o, s:o, s:o}}",
        "context", json_context(&s->bench, program), "benchmarks", s->benchmarks,
        "vernier", "sustained", s->bench.sustained, "geomean", json_means(&s->bench, &s->means),
        "suites", s->suites, "roofline", json_roofline(&s->bench.roofline));
    if (r->csv)
        failed |= report_csv(r->csv, report);
    if (r->html || r->svg)
        failed |= bench_html(r->html, r->svg, report);
    if (r->common.json)
        failed |= report_json(json_incref(report), r->common.json);
    json_decref(report);
    return failed ? EXIT_FAILURE : 0;
}

static int run_session(struct session *s, const struct plan *plan, const char *program)
{
    int status = 0;

    print_device(s);
    for (int i = 0; i < plan->groups && !status && !interrupted; i++) {
        if (i)
            fputc('\n', s->to);
        status = measure_group(s, &plan->group[i]);
        fflush(s->to);
    }
    if (s->bench.roofline.bandwidth > 0)
        print_roofs(s->to, &s->bench.roofline);

    if (interrupted)
        complain("interrupted: the rows until then are reported");

    const int unwritten = write_files(s, program);

    return status ? status : s->failures || interrupted ? EXIT_FAILURE : unwritten;
}

static int bench(const struct request *r, const struct plan *plan, const char *program)
{
    struct session s = { .request = r, .to = report_stream(r->common.json) };
    struct bench *const b = &s.bench;
    struct peer_threads before;
    int status;

    peer_threads_note(&before);
    if ((status = device_open(&b->device, &b->queue, r->common.device)))
        return status;
    vn_device_describe(&b->info, b->device);
    b->pinned = b->info.is_cpu && peers_are_named(r->common.compare);
    if (b->pinned)
        peer_threads_tie(&before);
    clocks_open(&b->info);
    b->budget    = r->common.budget;
    b->sustained = r->sustained;
    s.benchmarks = json_array();
    s.suites     = json_object();
    if (!(status = open_peers(b, r->common.compare)))
        status = run_session(&s, plan, program);
    for (int i = 0; i < b->peers; i++)
        b->peer[i]->close();
    clocks_close();
    hold_close(b->hold);
    vn_queue_close(b->queue);
    vn_device_close(b->device);
    return status;
}

const struct argp bench_parser = { options, parse, "WHAT...", doc, children, NULL, NULL };

int bench_main(int argc, char **argv)
{
    struct request r = { .common = { .budget = BUDGET_USUAL }, .work = WORK_UNSAID };
    struct plan plan = { .groups = 0 };
    int status;

    if (argp_parse(&bench_parser, argc, argv, 0, NULL, &r))
        return EXIT_USAGE;
    if (r.first_call)
        return startup_first_call(r.first_call);
    peer_calm();
    take_interrupts();
    if (!(status = make_plan(&plan, &r)))
        status = bench(&r, &plan, argv[0]);
    for (int i = 0; i < plan.groups; i++)
        workloads_close(&plan.group[i].w);
    return status;
}
