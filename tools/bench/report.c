/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c - what was measured, as a table and as JSON.
 *
 * The JSON has the keys of Google Benchmark, context and benchmarks, so that its tools read it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
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

static int engine_width(const struct bench *b, const struct workloads *w)
{
    char engine[VN_ENGINE];
    size_t width = 6;

    for (int i = 0; i < w->count; i++)
        for (const struct vn_variant *v = w->it[i].problem.op->operation->variants; v->name; v++)
            if (!v->engine || !b->info.is_cpu) {
                vn__engine(engine, v, w->it[i].problem.type, b->device->facts.family);
                width = strlen(engine) > width ? strlen(engine) : width;
            }
    return (int)width;
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
        s->gbytes |= w->it[i].problem.op->by_bytes || row_is_bound_by_memory(b, &w->it[i]);
    }
    table_open(&s->table, to);
    table_column(&s->table, "problem", width, 1);
    table_column(&s->table, "variant", names, 1);
    table_column(&s->table, "engine", engine_width(b, w), 1);
    table_column(&s->table, "ms", 7, 0);
    table_column(&s->table, "95 %", 14, 1);
    if (s->gflops)
        table_column(&s->table, "GFLOP/s", 7, 0);
    if (s->gbytes)
        table_column(&s->table, "GB/s", 5, 0);
    table_column(&s->table, "roof", 5, 0);
    if (s->gbytes)
        table_column(&s->table, "copy", 5, 0);
    for (int i = 0; i < b->peers; i++) {
        char title[CELL];

        snprintf(title, sizeof title, "%.20s ms", b->peer[i]->name);
        table_column(&s->table, title, 7, 0);
        table_column(&s->table, "ratio", 5, 0);
        table_column(&s->table, "95 %", 12, 1);
    }
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

/* Times in milliseconds with scale 1e3; what is no better known than that it lies between two figures. */
static void interval_cell(struct table *t, const struct summary *s, double scale)
{
    char low[CELL], high[CELL], text[2 * CELL + 4] = "";

    if (s->count > 1)
        snprintf(text, sizeof text, "%.14s..%.14s", figure(low, s->low * scale),
                 figure(high, s->high * scale));
    table_cell(t, FAINT, text);
}

static void peer_cells(struct table *t, const struct row *r, int peer)
{
    const struct summary *const theirs = &r->peer[peer].t.s, *const ratio = &r->peer[peer].ratio.s;
    char cell[CELL];

    table_cell(t, PLAIN, figure(cell, theirs->median * 1e3));
    ratio_cell(t, ratio->median);
    interval_cell(t, ratio, 1);
}

/* Ends the row, with what the reader must know of it: "3 samples; disturbed: ...". */
static void remark(struct table *t, const struct row *r)
{
    char text[CELL + sizeof r->watched.why + 16];
    size_t n = 0;

    *text = '\0';
    if (r->ours.s.count < SAMPLES_FEW)
        n = (size_t)snprintf(text, sizeof text, "%d sample%s", r->ours.s.count,
                             r->ours.s.count == 1 ? "" : "s");
    if (*r->watched.why)
        snprintf(text + n, sizeof text - n, "%sdisturbed: %s", n ? "; " : "", r->watched.why);
    if (*text)
        table_note(t, POOR, text);
    else
        table_end(t);
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
    table_cell(t, PLAIN, r->engine);
    table_cell(t, PLAIN, figure(cell, r->seconds * 1e3));
    interval_cell(t, &r->ours.s, 1e3);
    if (s->gflops)
        table_cell(t, PLAIN, w->problem.op->by_bytes ? "" : figure(cell, r->flops / r->seconds * 1e-9));
    if (s->gbytes)
        table_cell(t, PLAIN, w->problem.op->by_bytes || row_is_bound_by_memory(b, w)
                           ? figure(cell, r->bytes / r->seconds * 1e-9) : "");
    share(cell, r->roofline);
    if (r->roofline > 1 && row_is_bound_by_memory(b, w))
        snprintf(cell, sizeof cell, "cache");
    table_cell(t, PLAIN, cell);
    if (s->gbytes)
        table_cell(t, PLAIN, share(cell, r->copy / r->seconds));
    for (int i = 0; i < b->peers; i++)
        peer_cells(t, r, i);
    remark(t, r);
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
    for (int i = 1; i < s->table.columns - 3 * b->peers; i++)
        table_cell(&s->table, PLAIN, "");
    for (int i = 0; i < b->peers; i++) {
        table_cell(&s->table, PLAIN, "");
        ratio_cell(&s->table, mean_of(m, i));
        table_cell(&s->table, PLAIN, "");
    }
    table_end(&s->table);
}

/* ---- JSON ---- */

static json_t *json_peer(const struct row *r, int peer)
{
    const double seconds = r->peer[peer].t.s.median;
    json_t *out, *ratio;

    if (!(seconds > 0))
        return json_pack("{s:s}", "skipped", *r->peer[peer].note ? r->peer[peer].note : r->note);
    out   = json_pack("{s:f, s:s}", "real_time", seconds, "engine", "");
    ratio = ratio_json(&r->peer[peer].ratio);
    json_object_update_new(out, timing_json(&r->peer[peer].t));
    json_object_update_new(out, ratio);
    return out;
}

/* Each layer of a sequence has a roof of its own: their seconds are summed. */
static json_t *json_layers_roof(const struct row *r)
{
    return json_pack("{s:s, s:s, s:f}", "kind", "that of each layer", "bound", "flops", "seconds", r->least);
}

static json_t *json_layers(const struct row *r)
{
    json_t *const out = json_array();

    for (int i = 0; i < r->layers; i++)
        json_array_append_new(out, json_pack("{s:s, s:s}", "variant", r->layer[i].variant,
                                             "engine", r->layer[i].engine));
    return out;
}

json_t *json_row(const struct bench *b, const struct workload *w, const struct row *r)
{
    json_t *const entry = json_pack("{s:s, s:s, s:i, s:i, s:i, s:s, s:s, s:s, s:s, s:s}",
        "name", w->text, "run_name", w->text, "repetitions", 1,
        "repetition_index", 0, "threads", 1, "op", w->problem.op->name,
        "type", vn_type_name(w->problem.type), "device", b->info.spec, "variant", r->variant,
        "engine", r->engine);

    if (*w->suite)
        json_object_set_new(entry, "suite", json_string(w->suite));
    if (*w->label)
        json_object_set_new(entry, "label", json_string(w->label));
    if (!(r->seconds > 0)) {
        json_object_set_new(entry, r->failed ? "error_occurred" : "skipped", json_true());
        json_object_set_new(entry, r->failed ? "error_message" : "skip_message", json_string(r->note));
        return entry;
    }
    json_object_update_new(entry, json_pack("{s:f, s:s}", "real_time", r->seconds, "time_unit", "s"));
    json_object_update_new(entry, timing_json(&r->ours));
    json_object_update_new(entry, json_pack("{s:s, s:O, s:f, s:f, s:f, s:f, s:f}",
        "disturbed", r->watched.why, "machine", r->watched.machine, "flops", r->flops, "bytes", r->bytes,
        "gflops", r->flops / r->seconds * 1e-9, "gbytes_per_second", r->bytes / r->seconds * 1e-9,
        "roofline", r->roofline));
    json_object_set_new(entry, "roof", w->layers ? json_layers_roof(r)
                                                 : json_roof(&b->roofline, &w->problem, r->seconds));
    if (w->layers)
        json_object_set_new(entry, "layers", json_layers(r));
    if (r->copy > 0)
        json_object_set_new(entry, "copy_time", json_real(r->copy));
    if (b->peers) {
        json_t *const all = json_object();

        for (int i = 0; i < b->peers; i++)
            json_object_set_new(all, b->peer[i]->name, json_peer(r, i));
        json_object_set_new(entry, "peers", all);
    }
    return entry;
}

json_t *json_means(const struct bench *b, const struct means *m)
{
    json_t *const out = json_object();

    for (int i = 0; i < b->peers; i++)
        json_object_set_new(out, b->peer[i]->name, m->count[i] ? json_real(mean_of(m, i)) : json_null());
    return out;
}

json_t *json_roofline(const struct roofline *r)
{
    json_t *const out = json_pack("{s:f, s:f, s:s}", "gbytes_per_second", r->bandwidth * 1e-9,
                                  "reading_gbytes_per_second", r->reading * 1e-9,
                                  "disturbed", r->disturbed[2]);
    json_t *const roofs = json_array();

    for (int i = 0; i < 2; i++)
        if (r->peak[i] > 0) {
            json_object_set_new(out, i ? "gflops_f64" : "gflops_f32", json_real(r->peak[i] * 1e-9));
            json_array_append_new(roofs, json_pack("{s:s, s:s, s:f, s:s}", "kind", i ? "FMA f64" : "FMA f32",
                                                   "type", i ? "f64" : "f32", "flops_per_s", r->peak[i],
                                                   "disturbed", r->disturbed[i]));
        }
    for (int t = 0; t < VN_TYPE_COUNT; t++)
        if (r->matrix[t].flops > 0)
            json_array_append_new(roofs, json_pack("{s:s, s:s, s:f, s:f}", "kind", r->matrix[t].engine,
                                                   "type", vn_type_name((vn_type)t),
                                                   "flops_per_s", r->matrix[t].flops,
                                                   "sustained_flops_per_s", r->matrix[t].sustained));
    json_object_set_new(out, "roofs", roofs);
    return out;
}

json_t *json_roof(const struct roofline *r, const struct problem *p, double seconds)
{
    const struct amount w = problem_amount(p);
    const struct roof roof = roofline_of(r, p->type, p->math);
    const double least = roofline_seconds(r, p->type, p->math, &w), moving = roofline_moving(r, &w);
    const int by_bytes = moving > w.flops / roof.flops;
    json_t *const out = json_pack("{s:s, s:s, s:f, s:f, s:f}", "kind", by_bytes ? "bandwidth" : roof.kind,
                                  "bound", by_bytes ? "bytes" : "flops", "flops_per_s", roof.flops,
                                  "bytes_per_s", (w.read + w.written) / moving, "seconds", least);

    if (by_bytes && least > seconds && w.read + w.written < ROOFLINE_CACHED)
        json_object_set_new(out, "cached", json_true());
    return out;
}

void json_rows_settle(json_t *benchmarks)
{
    json_t *row;
    size_t i;

    json_array_foreach(benchmarks, i, row) {
        const json_t *const time = json_object_get(row, "real_time");

        json_object_set_new(row, "run_type", json_string(time ? "iteration" : "aggregate"));
        if (time)
            json_object_set_new(row, "cpu_time", json_real(json_number_value(time)));
        else
            json_object_set_new(row, "aggregate_name", json_string("not measured"));
    }
}

void json_roofs_settle(json_t *benchmarks, const struct roofline *r)
{
    json_t *row;
    size_t i;

    json_array_foreach(benchmarks, i, row) {
        const double seconds = json_number_value(json_object_get(row, "real_time"));
        struct problem p;
        char why[SENTENCE];
        json_t *roof;

        if (!(seconds > 0) || !json_object_get(row, "roofline")
            || problem_parse(&p, json_string_value(json_object_get(row, "name")), why, sizeof why))
            continue;
        roof = json_roof(r, &p, seconds);
        json_object_set_new(row, "roofline",
                            json_real(json_number_value(json_object_get(roof, "seconds")) / seconds));
        json_object_set_new(row, "roof", roof);
    }
}
