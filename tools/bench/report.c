/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c - what was measured, as a table and as JSON.
 *
 * The JSON has the keys of Google Benchmark, context and benchmarks, so that its tools read it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "bench.h"
#include "core.h"
#include "problem/op.h"

/* ---- the table ---- */

/* The longest name that a variant of this operation has. */
static int variant_width(const struct op *op)
{
    int width = 7;

    for (const struct vn_variant *v = op->operation->variants; v->name; v++)
        width = (int)strlen(v->name) > width ? (int)strlen(v->name) : width;
    return width;
}

void sheet_open(struct sheet *s, const struct bench *b, const struct workloads *w, FILE *to)
{
    int width = 10, names = 0;

    *s = (struct sheet){ .gflops = 0 };
    for (int i = 0; i < w->count; i++) {
        char text[PROBLEM_TEXT];
        const int length = (int)strlen(problem_shown(text, w->it[i].text));

        const int name   = variant_width(w->it[i].problem.op);

        width = length > width ? length : width;
        names = name > names ? name : names;
        s->gflops |= !w->it[i].problem.op->by_bytes;
        s->gbytes |= w->it[i].problem.op->by_bytes || row_is_bound_by_memory(b, &w->it[i].problem);
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
    if (s->gbytes)
        table_column(&s->table, "copy", 5, 0);
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

static const char *share(char out[CELL], double of_one)
{
    snprintf(out, CELL, of_one > 0 ? "%.0f%%" : "", of_one * 100);
    return out;
}

void sheet_row(struct sheet *s, const struct bench *b, const struct workload *w, const struct row *r)
{
    struct table *const t = &s->table;
    char text[PROBLEM_TEXT], cell[CELL];

    table_cell(t, PLAIN, problem_shown(text, w->text));
    if (!(r->seconds > 0)) {
        table_note(t, r->failed ? POOR : FAINT, r->note);
        return;
    }
    table_cell(t, PLAIN, r->variant);
    table_cell(t, PLAIN, figure(cell, r->seconds * 1e3));
    if (s->gflops)
        table_cell(t, PLAIN, w->problem.op->by_bytes ? "" : figure(cell, r->flops / r->seconds * 1e-9));
    if (s->gbytes)
        table_cell(t, PLAIN, w->problem.op->by_bytes || row_is_bound_by_memory(b, &w->problem)
                           ? figure(cell, r->bytes / r->seconds * 1e-9) : "");
    table_cell(t, PLAIN, share(cell, r->roofline));
    if (s->gbytes)
        table_cell(t, PLAIN, share(cell, r->copy / r->seconds));
    for (int i = 0; i < b->peers; i++)
        ratio_cell(t, row_ratio(r, i));
    table_end(t);
}

/* ---- geometric means ---- */

void means_add(struct means *m, const struct bench *b, const struct row *r)
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

void sheet_means(struct sheet *s, const struct bench *b, const struct means *m)
{
    table_cell(&s->table, STRONG, "geometric mean");
    for (int i = 1; i < s->table.columns - b->peers; i++)
        table_cell(&s->table, PLAIN, "");
    for (int i = 0; i < b->peers; i++)
        ratio_cell(&s->table, mean_of(m, i));
    table_end(&s->table);
}

/* ---- JSON ---- */

json_t *json_context(const struct bench *b, const char *program)
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

json_t *json_row(const struct bench *b, const struct workload *w, const struct row *r)
{
    json_t *const entry = json_pack("{s:s, s:s, s:s, s:s}", "name", w->text, "run_type", "iteration",
                                    "device", b->info.spec, "variant", r->variant);
    json_t *numbers;

    if (*w->label)
        json_object_set_new(entry, "label", json_string(w->label));
    if (!(r->seconds > 0)) {
        json_object_set_new(entry, r->failed ? "error_occurred" : "skipped", json_true());
        json_object_set_new(entry, r->failed ? "error_message" : "skip_message", json_string(r->note));
        return entry;
    }
    numbers = json_pack("{s:f, s:s, s:i, s:i, s:f, s:f, s:f}",
        "real_time", r->seconds, "time_unit", "s", "samples", r->samples, "iterations", r->repeats,
        "gflops", r->flops / r->seconds * 1e-9, "gbytes_per_second", r->bytes / r->seconds * 1e-9,
        "roofline", r->roofline);
    json_object_update(entry, numbers);
    json_decref(numbers);
    if (r->copy > 0)
        json_object_set_new(entry, "copy_time", json_real(r->copy));
    if (b->peers)
        json_peers(entry, b, r);
    return entry;
}

json_t *json_means(const struct bench *b, const struct means *m)
{
    json_t *const out = json_object();

    for (int i = 0; i < b->peers; i++)
        json_object_set_new(out, b->peer[i]->name, m->count[i] ? json_real(mean_of(m, i)) : json_null());
    return out;
}

json_t *json_roofline(const struct bench *b)
{
    json_t *const out = json_pack("{s:f}", "gbytes_per_second", b->roofline.bandwidth * 1e-9);

    for (int i = 0; i < 2; i++)
        if (b->roofline.peak[i] > 0)
            json_object_set_new(out, i ? "gflops_f64" : "gflops_f32", json_real(b->roofline.peak[i] * 1e-9));
    return out;
}
