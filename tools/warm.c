/* SPDX-License-Identifier: Apache-2.0
 *
 * warm.c - vernier warm: builds the kernels of what a program will ask for, so that it finds them on disk.
 */
#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include "commands.h"
#include "options.h"
#include "core.h"
#include "problem/values.h"
#include "report/report.h"

struct request { struct common common; struct work work; int build_only; };

enum { BUILD = 256 };

static const struct argp_option options[] = {
    { "build", BUILD, NULL, 0, "Run nothing: drivers that compile at the first launch (PoCL) still will", 0 },
    { NULL, 0, NULL, 0, NULL, 0 }
};

static const char doc[] =
    "Prepares WHAT, a problem or a suite of bench: a variant is chosen for each problem, its kernels are "
    "built and kept on disk, and it is run once, on memory with no data in it.  The first call of a later "
    "process then compiles nothing."
    "\v"
    "The column `prepare` is the time of choosing, and of building or loading, `run` that of the first run.  "
    "In a second process the former says what its first call costs more than the others.\n"
    "\n"
    "Kernels are kept where VERNIER_CACHE_DIR says, else in ~/.cache/vernier; of what drivers keep "
    "themselves, POCL_CACHE_DIR and CUDA_CACHE_PATH have the place.\n"
    "\n"
    "Exit status: 0, 1 if a problem failed or it was interrupted, 2 if nothing could be tried.";

static const struct argp_child children[] = {
    OPTIONS_CHILD(device_argp), OPTIONS_CHILD(json_argp), OPTIONS_CHILD(work_argp), OPTIONS_END };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct request *const r = state->input;

    (void)arg;
    switch (key) {
    case BUILD:
        r->build_only = 1;
        return 0;
    case ARGP_KEY_INIT:
        options_begin(state, children, &r->common, &r->work);
        return 0;
    case ARGP_KEY_END:
        if (!r->work.whats)
            argp_error(state, "prepare what? A problem, or a suite: %s", workloads_suites());
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* ---- one problem ---- */

struct warmed {
    double  prepare, run;                 /* seconds; run: 0 where nothing was run */
    json_t *how;                          /* vn_queue_explain() */
    char    why[512];                     /* it failed: a sentence; else "" */
};

/* Buffers that nothing is written to, of which a CPU's take no memory before they are used. */
static vn_status open_buffers(struct operands *o, vn_device *d)
{
    vn_status s = VN_OK;

    for (int i = 0; i < o->count && !s; i++) {
        const int home = home_of(o, i);
        const size_t bytes = operand_bytes(o, i);

        if (home == i && o->t[i].rank)
            s = vn_buffer_open(&o->t[i].buffer, d, bytes ? bytes : 1);
        o->t[i].buffer = o->t[home].buffer;
    }
    return s;
}

static void close_buffers(struct operands *o)
{
    for (int i = 0; i < o->count; i++)
        if (home_of(o, i) == i)
            vn_buffer_close(o->t[i].buffer);
    vn_pack_close(o->pack);
}

static vn_status timed(double *seconds, vn_queue *q, const struct problem *p, const struct operands *o)
{
    const double start = vn__seconds();
    vn_status s = problem_run(q, p, o);

    s = s ? s : vn_queue_finish(q);
    *seconds = vn__seconds() - start;
    return s;
}

static void warm(struct warmed *w, vn_device *d, const struct problem *p, int build_only)
{
    struct operands o = { .count = 0 };
    vn_queue *q = NULL;
    vn_status s;

    *w = (struct warmed){ .how = NULL };
    if (problem_operands(&o, p)) {
        snprintf(w->why, sizeof w->why, "its sizes overflow");
        return;
    }
    if (values_fit(d, p, 0, w->why, sizeof w->why))
        return;
    if (!(s = vn_queue_open(&q, d)) && !(s = open_buffers(&o, d)) && !(s = problem_pack(q, p, &o)) &&
        !(s = vn_queue_prepare(q, 1)) && !(s = timed(&w->prepare, q, p, &o))) {
        w->how = json_loads(vn_queue_explain(q), 0, NULL);
        if (!build_only && !(s = vn_queue_prepare(q, 0)))
            s = timed(&w->run, q, p, &o);
    }
    if (s)
        snprintf(w->why, sizeof w->why, "%s", vn_last_error());
    vn_queue_close(q);                    /* a queue for each: its own scratch memory, nothing remembered */
    close_buffers(&o);
}

/* ---- all of them ---- */

static json_t *json_warmed(const struct workload *it, const struct warmed *w)
{
    json_t *const out = json_pack("{s:s}", "name", it->text);

    if (*w->why)
        json_object_set_new(out, "error_message", json_string(w->why));
    else {
        json_object_set_new(out, "prepare_time", json_real(w->prepare));
        if (w->run > 0)
            json_object_set_new(out, "first_time", json_real(w->run));
        json_object_set(out, "explain", w->how);
    }
    return out;
}

static void print(struct table *t, const struct workload *it, const struct warmed *w)
{
    char cell[PROBLEM_TEXT];

    table_cell(t, PLAIN, problem_shown(cell, it->text));
    if (*w->why) {
        table_note(t, POOR, w->why);
        return;
    }
    table_cell(t, PLAIN, figure(cell, w->prepare * 1e3));
    table_cell(t, PLAIN, figure(cell, w->run * 1e3));
    table_note(t, PLAIN, json_text(w->how, "variant"));
}

/* How many failed. */
static int warm_all(json_t *rows, FILE *to, vn_device *d, const struct workloads *all, int build_only)
{
    struct progress progress;
    struct table table;
    int failures = 0;

    table_open(&table, to);
    table_column(&table, "problem", 44, 1);
    table_column(&table, "prepare ms", 10, 0);
    table_column(&table, "run ms", 8, 0);
    table_column(&table, "variant", 8, 1);
    table_head(&table);
    progress_open(&progress, all->count);
    for (int i = 0; i < all->count && !interrupted; i++) {
        struct warmed w;

        progress_show(&progress, i, all->it[i].text);
        warm(&w, d, &all->it[i].problem, build_only);
        progress_clear(&progress);
        print(&table, &all->it[i], &w);
        fflush(to);
        json_array_append_new(rows, json_warmed(&all->it[i], &w));
        failures += *w.why != '\0';
        json_decref(w.how);
    }
    return failures;
}

/* 0, or an exit status. */
static int list(struct workloads *out, const struct work *work)
{
    char why[512];

    for (int i = 0; i < work->whats; i++)
        if (workloads_add(out, work->what[i], &work->options, why, sizeof why)) {
            complain("%s", why);
            return EXIT_USAGE;
        }
    if (out->count)
        return 0;
    complain("nothing of that has \"%s\" in its name or problem",
             work->options.filter ? work->options.filter : "");
    return EXIT_USAGE;
}

const struct argp warm_parser = { options, parse, "WHAT...", doc, children, NULL, NULL };

int warm_main(int argc, char **argv)
{
    struct request r = { .work = WORK_UNSAID };
    struct workloads all = { .count = 0 };
    json_t *rows;
    vn_device *d;
    int status;

    if (argp_parse(&warm_parser, argc, argv, 0, NULL, &r))
        return EXIT_USAGE;
    take_interrupts();
    if (!(status = list(&all, &r.work)) && !(status = device_open(&d, NULL, r.common.device))) {
        rows = json_array();
        if (warm_all(rows, report_stream(r.common.json), d, &all, r.build_only) || interrupted)
            status = EXIT_FAILURE;
        if (!r.common.json)
            json_decref(rows);
        else if (report_json(json_pack("{s:o}", "warmed", rows), r.common.json))
            status = EXIT_FAILURE;
        vn_device_close(d);
    }
    workloads_close(&all);
    return status;
}
