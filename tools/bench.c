/* SPDX-License-Identifier: Apache-2.0
 *
 * bench.c - vernier bench: reads the command line, measures row by row, prints and writes.
 */
#include <argp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "bench.h"
#include "commands.h"
#include "core.h"
#include "report.h"

/* ---- the command line ---- */

enum { WHATS = 32 };

struct request {
    const char *device, *json, *first_call;
    char        compare[128];
    double      budget;
    const char *what[WHATS];
    int         whats;
    struct workload_options options;
};

enum { TOKENS = 256, BATCH, DIRECTION, BUDGET, FILTER, VARIANT, COMPARE, JSON, FIRST_CALL };

static const struct argp_option options[] = {
    { "device",     'd',       "SPEC",  0, "Measure on this device (see vernier devices); else $VERNIER_DEVICE, else the fastest", 0 },
    { "compare",    COMPARE,   "NAMES", 0, "Measure these beside ours, in turns: onednn, openblas, clblast", 0 },
    { "type",       't',       "TYPE",  0, "f32, f16, bf16 or f64, for every problem", 0 },
    { "variant",    VARIANT,   "NAME",  0, "Only this variant of ours (see vernier explain)", 0 },
    { "batch",      BATCH,     "N",     0, "Images of a convolution, batches of a GEMM", 0 },
    { "tokens",     TOKENS,    "N",     0, "Rows of llama31's activations; else 1, 16, 128 and 2048", 0 },
    { "direction",  DIRECTION, "NAME",  0, "forward, backward-data or backward-filter (convolution), backward (softmax)", 0 },
    { "filter",     FILTER,    "TEXT",  0, "Only the rows of a suite whose name or problem has this text in it", 0 },
    { "budget",     BUDGET,    "SECONDS", 0, "Time to spend on a row, after the first runs; 2 unless said", 0 },
    { "json",       JSON,      "FILE",  0, "Write the report as JSON too; - is standard output, the table then goes to stderr", 0 },
    { "first-call", FIRST_CALL, "SPEC", OPTION_HIDDEN, NULL, 0 },
    { NULL, 0, NULL, 0, NULL, 0 }
};

static const char doc[] =
    "Measures WHAT: a problem, as gemm:1024x1024x1024:f32:nn; a suite: squares, resnet50, llama31, "
    "deepbench-gemm, deepbench-conv, softmax-rows; or overhead, which is what a call and a start cost."
    "\v"
    "Times are medians of samples taken in turns with the peers, on random data, after a run that is "
    "checked against them; on a CPU by the clock on the wall, else by the device's events.\n"
    "\n"
    "roof is the share of the device's roofline, as measured at the start: the larger of flops over the "
    "peak of fused multiply-adds and bytes over the bandwidth of a copy, over the time.  Data that stays in "
    "a cache can pass 100 %.  Under a peer's name stands its time over ours: above 1 we are faster.\n"
    "\n"
    "Exit status: 0, 1 if a row failed or its result was wrong, 2 if nothing could be tried.";

static int named(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

static int64_t positive(const struct argp_state *state, const char *option, const char *arg)
{
    char *end;
    const long long v = strtoll(arg, &end, 10);

    if (*end || end == arg || v < 1 || v > 1 << 30)
        argp_error(state, "--%s is \"%s\", and must be a number from 1 to %d", option, arg, 1 << 30);
    return v;
}

static int type_of(const struct argp_state *state, const char *arg)
{
    for (int t = 0; t < VN_TYPE_COUNT; t++)
        if (!strcmp(vn_type_name((vn_type)t), arg))
            return t;
    argp_error(state, "--type is \"%s\", and must be f32, f16, bf16 or f64", arg);
    return -1;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    static const char *const directions[] = {
        [FORWARD] = "forward", [BACKWARD_DATA] = "backward-data", [BACKWARD_FILTER] = "backward-filter", [BACKWARD] = "backward" };
    struct request *const r = state->input;

    switch (key) {
    case 'd':        r->device = arg;                                        return 0;
    case JSON:       r->json = arg;                                          return 0;
    case FILTER:     r->options.filter = arg;                                return 0;
    case VARIANT:    r->options.variant = arg;                               return 0;
    case FIRST_CALL: r->first_call = arg;                                    return 0;
    case 't':        r->options.type = type_of(state, arg);                  return 0;
    case BATCH:      r->options.batch = positive(state, "batch", arg);       return 0;
    case TOKENS:     r->options.tokens = positive(state, "tokens", arg);     return 0;
    case COMPARE:
        if (snprintf(r->compare, sizeof r->compare, "%s", arg) >= (int)sizeof r->compare)
            argp_error(state, "--compare is too long");
        return 0;
    case DIRECTION:
        if ((r->options.direction = named(directions, 4, arg)) < 0)
            argp_error(state, "--direction is \"%s\", and must be forward, backward-data, backward-filter or backward", arg);
        return 0;
    case BUDGET:
        r->budget = atof(arg);
        if (!(r->budget > 0))
            argp_error(state, "--budget is \"%s\", and must be a number of seconds above 0", arg);
        return 0;
    case ARGP_KEY_ARG:
        if (r->whats == WHATS)
            argp_error(state, "at most %d things at a time", WHATS);
        r->what[r->whats++] = arg;
        return 0;
    case ARGP_KEY_END:
        if (!r->whats && !r->first_call)
            argp_error(state, "measure what? A problem, or a suite: %s, overhead", workloads_suites());
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* ---- peers ---- */

/* 0, or an exit status.  A peer that is not there is said so once, and left out. */
static int open_peers(struct bench *b, const char *list)
{
    const struct peer_context context = { b->info.is_cpu, b->info.platform, b->info.name };
    char why[SENTENCE], copy[sizeof ((struct request *)0)->compare], *names = copy;

    snprintf(copy, sizeof copy, "%s", list);
    for (char *name; (name = strsep(&names, ","));) {
        const struct peer *const p = peer_named(name);

        if (!*name)
            continue;
        if (!p || b->peers == BENCH_PEERS) {
            complain("--compare: there is no peer \"%s\": onednn, openblas or clblast", name);
            return EXIT_USAGE;
        }
        if (p->open(&context, why, sizeof why))
            complain("%s is left out: %s", name, why);
        else
            b->peer[b->peers++] = p;
    }
    return 0;
}

/* ---- the table ---- */

struct sheet {
    struct table table;
    int gflops, gbytes;                   /* has the column */
};

/* What is usual needs no room in a table. */
static const char *shown(char out[PROBLEM_TEXT], const char *text)
{
    static const char *const usual[] = { ":nchw", ":forward" };

    snprintf(out, PROBLEM_TEXT, "%s", text);
    for (int i = 0; i < 2; i++) {
        char *const at = strstr(out, usual[i]);
        const size_t length = strlen(usual[i]);

        if (at && (!at[length] || at[length] == ':'))
            memmove(at, at + length, strlen(at + length) + 1);
    }
    return out;
}

/* The longest name that a variant of this operation has. */
static int variant_width(enum op op)
{
    int width = 7;

    for (const struct vn_variant *v = vn__tables[op]; v->name; v++)
        width = (int)strlen(v->name) > width ? (int)strlen(v->name) : width;
    return width;
}

static void sheet_open(struct sheet *s, const struct bench *b, const struct workloads *w, FILE *to)
{
    int width = 10, names = 0;

    *s = (struct sheet){ .gflops = 0 };
    for (int i = 0; i < w->count; i++) {
        char text[PROBLEM_TEXT];
        const int length = (int)strlen(shown(text, w->it[i].text));

        const int name   = variant_width(w->it[i].problem.op);

        width = length > width ? length : width;
        names = name > names ? name : names;
        s->gflops |= w->it[i].problem.op != SOFTMAX;
        s->gbytes |= w->it[i].problem.op == SOFTMAX || row_is_bound_by_memory(b, &w->it[i].problem);
    }
    table_open(&s->table, to);
    table_column(&s->table, "problem", width, 1);
    table_column(&s->table, "variant", names, 1);
    table_column(&s->table, "ms", 7, 0);
    if (s->gflops)
        table_column(&s->table, "GFLOP/s", 7, 0);
    if (s->gbytes)
        table_column(&s->table, "GB/s", 5, 0);
    table_column(&s->table, "roof", 5, 0);
    for (int i = 0; i < b->peers; i++)
        table_column(&s->table, b->peer[i]->name, 6, 0);
    table_head(&s->table);
}

static enum shade shade_of(double ratio)
{
    return ratio >= 1 ? GOOD : ratio > 0 && ratio < 0.6 ? POOR : PLAIN;
}

static void ratio_cell(struct table *t, double ratio)
{
    char text[CELL] = "-";

    if (ratio > 0)
        snprintf(text, sizeof text, ratio < 10 ? "%.2f" : "%.1f", ratio);
    table_cell(t, shade_of(ratio), text);
}

static void sheet_row(struct sheet *s, const struct bench *b, const struct workload *w, const struct row *r)
{
    struct table *const t = &s->table;
    char text[PROBLEM_TEXT], cell[CELL];

    table_cell(t, PLAIN, shown(text, w->text));
    if (!(r->seconds > 0)) {
        table_note(t, r->failed ? POOR : FAINT, r->note);
        return;
    }
    table_cell(t, PLAIN, r->variant);
    table_cell(t, PLAIN, figure(cell, r->seconds * 1e3));
    if (s->gflops)
        table_cell(t, PLAIN, w->problem.op == SOFTMAX ? "" : figure(cell, r->flops / r->seconds * 1e-9));
    if (s->gbytes)
        table_cell(t, PLAIN, w->problem.op == SOFTMAX || row_is_bound_by_memory(b, &w->problem)
                           ? figure(cell, r->bytes / r->seconds * 1e-9) : "");
    snprintf(cell, sizeof cell, "%.0f%%", r->roofline * 100);
    table_cell(t, PLAIN, cell);
    for (int i = 0; i < b->peers; i++)
        ratio_cell(t, row_ratio(r, i));
    table_end(t);
}

/* ---- geometric means ---- */

struct means { double log_sum[BENCH_PEERS]; int count[BENCH_PEERS]; };

static void means_add(struct means *m, const struct bench *b, const struct row *r)
{
    for (int i = 0; i < b->peers; i++)
        if (row_ratio(r, i) > 0) {
            m->log_sum[i] += log(row_ratio(r, i));
            m->count[i]++;
        }
}

static double mean_of(const struct means *m, int peer)
{
    return m->count[peer] ? exp(m->log_sum[peer] / m->count[peer]) : 0;
}

static void sheet_means(struct sheet *s, const struct bench *b, const struct means *m)
{
    table_cell(&s->table, STRONG, "geometric mean");
    for (int i = 1; i < s->table.columns - b->peers; i++)
        table_cell(&s->table, PLAIN, "");
    for (int i = 0; i < b->peers; i++)
        ratio_cell(&s->table, mean_of(m, i));
    table_end(&s->table);
}

/* ---- JSON ---- */

static json_t *json_context(const struct bench *b, const char *program)
{
    const time_t now = time(NULL);
    char date[64], host[128] = "";
    double load[3] = { 0, 0, 0 };
    json_t *const versions = json_object();

    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S%z", localtime(&now));
    gethostname(host, sizeof host - 1);
    if (getloadavg(load, 3) < 0)
        load[0] = load[1] = load[2] = 0;
    for (int i = 0; i < b->peers; i++)
        json_object_set_new(versions, b->peer[i]->name, json_string(b->peer[i]->version()));
    return json_pack("{s:s, s:s, s:s, s:i, s:[f,f,f], s:s, s:s, s:s, s:s, s:s, s:o}",
        "date", date, "host_name", host, "executable", program,
        "num_cpus", (int)sysconf(_SC_NPROCESSORS_ONLN), "load_avg", load[0], load[1], load[2],
        "device", b->info.name, "device_spec", b->info.spec, "platform", b->info.platform,
        "driver", b->info.driver, "library_version", vn_version(), "peers", versions);
}

static void json_peers(json_t *entry, const struct bench *b, const struct row *r)
{
    json_t *const all = json_object();

    for (int i = 0; i < b->peers; i++)
        json_object_set_new(all, b->peer[i]->name, row_ratio(r, i) > 0
            ? json_pack("{s:f, s:f}", "real_time", r->peer[i].seconds, "ratio", row_ratio(r, i))
            : json_pack("{s:s}", "skipped", *r->peer[i].note ? r->peer[i].note : r->note));
    json_object_set_new(entry, "peers", all);
}

static json_t *json_row(const struct bench *b, const struct workload *w, const struct row *r)
{
    json_t *const entry = json_pack("{s:s, s:s, s:s, s:s}", "name", w->text, "run_type", "iteration",
                                    "device", b->info.spec, "variant", r->variant);

    if (*w->label)
        json_object_set_new(entry, "label", json_string(w->label));
    if (!(r->seconds > 0)) {
        json_object_set_new(entry, r->failed ? "error_occurred" : "skipped", json_true());
        json_object_set_new(entry, r->failed ? "error_message" : "skip_message", json_string(r->note));
        return entry;
    }
    json_object_update(entry, json_pack("{s:f, s:s, s:i, s:i, s:f, s:f, s:f}",
        "real_time", r->seconds, "time_unit", "s", "samples", r->samples, "iterations", r->repeats,
        "gflops", r->flops / r->seconds * 1e-9, "gbytes_per_second", r->bytes / r->seconds * 1e-9,
        "roofline", r->roofline));
    if (b->peers)
        json_peers(entry, b, r);
    return entry;
}

static json_t *json_means(const struct bench *b, const struct means *m)
{
    json_t *const out = json_object();

    for (int i = 0; i < b->peers; i++)
        json_object_set_new(out, b->peer[i]->name, m->count[i] ? json_real(mean_of(m, i)) : json_null());
    return out;
}

static json_t *json_roofline(const struct bench *b)
{
    json_t *const out = json_pack("{s:f}", "gbytes_per_second", b->roofline.bandwidth * 1e-9);

    for (int i = 0; i < 2; i++)
        if (b->roofline.peak[i] > 0)
            json_object_set_new(out, i ? "gflops_f64" : "gflops_f32", json_real(b->roofline.peak[i] * 1e-9));
    return out;
}

/* ---- measuring ---- */

struct session {
    struct bench          bench;
    const struct request *request;
    FILE                 *to;
    struct means          means;          /* over everything */
    json_t               *benchmarks, *suites;
    int                   failures, sheets;
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

static int measure_all(struct session *s, const char *what, const struct workloads *w)
{
    struct bench *const b = &s->bench;
    struct row *const rows = calloc((size_t)w->count, sizeof *rows);
    struct means means = { { 0 }, { 0 } };
    struct progress progress;
    struct sheet sheet;

    if (!rows) {
        complain("host memory ran out");
        return EXIT_FAILURE;
    }
    if (s->sheets++)
        fputc('\n', s->to);
    sheet_open(&sheet, b, w, s->to);
    progress_open(&progress, w->count);
    for (int i = 0; i < w->count; i++) {
        progress_show(&progress, i, w->it[i].text);
        row_measure(&rows[i], b, &w->it[i].problem);
        progress_clear(&progress);
        sheet_row(&sheet, b, &w->it[i], &rows[i]);
        means_add(&means, b, &rows[i]);
        means_add(&s->means, b, &rows[i]);
        json_array_append_new(s->benchmarks, json_row(b, &w->it[i], &rows[i]));
        s->failures += rows[i].failed;
    }
    if (b->peers && w->count > 1) {
        sheet_means(&sheet, b, &means);
        json_object_set_new(s->suites, what, json_means(b, &means));
    }
    say_why_not(s, rows, w->count);
    free(rows);
    return 0;
}

static int is_overhead(const char *what)
{
    return !strcmp(what, "overhead");
}

static int measure_roofline(struct session *s, const struct workloads *w)
{
    for (int i = 0; i < w->count; i++) {
        const vn_type type = w->it[i].problem.type;

        if ((type == VN_F64 && !s->bench.info.has_f64) || !roofline_measure(&s->bench.roofline, s->bench.queue, type))
            continue;
        complain("the roofline cannot be measured: %s", vn_last_error());
        return EXIT_FAILURE;
    }
    return 0;
}

static int measure_what(struct session *s, const char *what, const struct workloads *w)
{
    int status;

    if (!is_overhead(what)) {
        status = measure_roofline(s, w);
        return status ? status : measure_all(s, what, w);
    }
    status = overhead_bench(&s->bench, s->to, s->benchmarks);
    return status ? status : startup_bench(&s->bench, s->to, s->benchmarks);
}

/* Reads everything that was asked for before anything is measured. */
static int expand(struct workloads *out, const struct request *r)
{
    char why[512];

    for (int i = 0; i < r->whats; i++) {
        if (is_overhead(r->what[i]))
            continue;
        if (workloads_add(&out[i], r->what[i], &r->options, why, sizeof why)) {
            complain("%s", why);
            return EXIT_USAGE;
        }
        if (!out[i].count) {
            complain("nothing of %s has \"%s\" in its name or problem", r->what[i],
                     r->options.filter ? r->options.filter : "");
            return EXIT_USAGE;
        }
    }
    return 0;
}

static void print_device(const struct session *s)
{
    const struct bench *const b = &s->bench;

    fprintf(s->to, "vernier %s on %s, %s (%s, %s)\n", vn_version(), b->info.spec, b->info.name,
            b->info.platform, b->info.driver);
    for (int i = 0; i < b->peers; i++)
        fprintf(s->to, "%s%s", i ? ", " : "beside ", b->peer[i]->version());
    fputs(b->peers ? "\n\n" : "\n", s->to);
}

static int write_json(struct session *s, const char *program)
{
    const struct request *const r = s->request;

    if (!r->json) {
        json_decref(s->benchmarks);
        json_decref(s->suites);
        return 0;
    }
    return report_json(json_pack("{s:o, s:o, s:{s:o, s:o, s:o}}",
        "context", json_context(&s->bench, program), "benchmarks", s->benchmarks,
        "vernier", "geomean", json_means(&s->bench, &s->means), "suites", s->suites,
        "roofline", json_roofline(&s->bench)), r->json) ? EXIT_FAILURE : 0;
}

static int run_session(struct session *s, const struct workloads *w, const char *program)
{
    const struct request *const r = s->request;
    int status = 0;

    print_device(s);
    for (int i = 0; i < r->whats && !status; i++)
        status = measure_what(s, r->what[i], &w[i]);
    if (s->bench.roofline.bandwidth > 0)
        fprintf(s->to, "\nroof: %.0f GFLOP/s, %.1f GB/s\n",
                (s->bench.roofline.peak[0] > 0 ? s->bench.roofline.peak[0] : s->bench.roofline.peak[1]) * 1e-9,
                s->bench.roofline.bandwidth * 1e-9);

    const int unwritten = write_json(s, program);

    return status ? status : s->failures ? EXIT_FAILURE : unwritten;
}

static int bench(const struct request *r, const struct workloads *w, const char *program)
{
    struct session s = { .request = r, .to = report_stream(r->json) };
    struct bench *const b = &s.bench;
    int status = device_open(&b->device, &b->queue, r->device);

    if (status)
        return status;
    vn_device_describe(&b->info, b->device);
    b->budget    = r->budget;
    s.benchmarks = json_array();
    s.suites     = json_object();
    if (!(status = open_peers(b, r->compare)))
        status = run_session(&s, w, program);
    for (int i = 0; i < b->peers; i++)
        b->peer[i]->close();
    vn_queue_close(b->queue);
    vn_device_close(b->device);
    return status;
}

int bench_main(int argc, char **argv)
{
    static const struct argp argp = { options, parse, "WHAT...", doc, NULL, NULL, NULL };
    struct request r = { .budget = 2, .options = { .type = -1, .direction = -1 } };
    struct workloads w[WHATS] = { { NULL, 0, 0 } };
    int status;

    if (argp_parse(&argp, argc, argv, 0, NULL, &r))
        return EXIT_USAGE;
    if (r.first_call)
        return startup_first_call(r.first_call);
    peer_calm();
    if (!(status = expand(w, &r)))
        status = bench(&r, w, argv[0]);
    for (int i = 0; i < r.whats; i++)
        workloads_close(&w[i]);
    return status;
}
