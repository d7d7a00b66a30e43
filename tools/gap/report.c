/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c - the arithmetic of the gap report, and its table; from JSON alone.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "commands.h"
#include "core.h"
#include "gap.h"
#include "problem/op.h"

/* ---- arithmetic ---- */

static const double BAND_LOW = 0.9, BAND_HIGH = 1.1;

const char *parity_words(double toolchain_gap)
{
    return toolchain_gap > BAND_HIGH ? "device 1 slower"
         : toolchain_gap < BAND_LOW ? "device 1 faster" : "at parity";
}

int engine_is_fma(const char *engine)
{
    return !strncmp(engine, "FMA ", 4) || !strcmp(engine, "FFMA") || !strcmp(engine, "DFMA");
}

int engines_are_like(const char *a, const char *b)
{
    const int parts_a = strstr(a, " x ") != NULL, parts_b = strstr(b, " x ") != NULL;

    return parts_a == parts_b && (!*a || !*b || engine_is_fma(a) == engine_is_fma(b));
}

/* While rows are read, a group is {"log_sum", "count"}. */
static void add_to_group(json_t *groups, const char *name, double ratio)
{
    const json_t *const old = json_object_get(groups, name);

    json_object_set_new(groups, name, json_pack("{s:f, s:f}",
                                                "log_sum", json_number(old, "log_sum") + log(ratio),
                                                "count", json_number(old, "count") + 1));
}

/* gap: NULL in a report that is older than schema 2; again: the problem has another row, which counts */
static void add_to_groups(json_t *groups, const json_t *row, double ratio, const json_t *gap, int again)
{
    const int unlike = json_is_false(json_object_get(gap, "like"));
    char typed[64];

    if (!(ratio > 0) || !isfinite(ratio))
        return;
    snprintf(typed, sizeof typed, "%s:%s%s", json_text(row, "op"), json_text(row, "type"),
             unlike ? " as chosen" : again ? " by FMA" : "");
    if (unlike || again) {
        add_to_group(groups, typed, ratio);
        return;
    }
    add_to_group(groups, "all", ratio);
    add_to_group(groups, json_text(row, "op"), ratio);
    add_to_group(groups, typed, ratio);
}

static json_t *finish_groups(json_t *groups)
{
    json_t *const out = json_object(), *group;
    const char *name;

    json_object_foreach(groups, name, group)
        json_object_set_new(out, name,
                            json_real(exp(json_number(group, "log_sum") / json_number(group, "count"))));
    json_decref(groups);
    return out;
}

json_t *gap_named(const json_t *row, const char *name)
{
    return json_object_get(json_object_get(row, "gaps"), name);
}

static json_t *mean_of_member(const json_t *benchmarks, const char *member, const char *name)
{
    json_t *const groups = json_object(), *row;
    size_t i;

    json_array_foreach(benchmarks, i, row)
        add_to_groups(groups, row, json_number(row, member), gap_named(row, name),
                      !strcmp(json_text(row, "as"), "FMA"));
    return finish_groups(groups);
}

static json_t *mean_of_libraries(const json_t *benchmarks)
{
    json_t *const all = json_object(), *const out = json_object(), *row, *ratio, *groups;
    const char *name;
    size_t i;

    json_array_foreach(benchmarks, i, row)
        json_object_foreach(json_object_get(row, "library_gap"), name, ratio) {
            if (!json_object_get(all, name))
                json_object_set_new(all, name, json_object());
            add_to_groups(json_object_get(all, name), row, json_number_value(ratio),
                          json_object_get(gap_named(row, "library"), name), 0);
        }
    json_object_foreach(all, name, groups)
        json_object_set_new(out, name, finish_groups(json_incref(groups)));
    json_decref(all);
    return out;
}

json_t *gap_geomeans(const json_t *benchmarks)
{
    return json_pack("{s:o, s:o, s:o, s:o}",
                     "toolchain_gap", mean_of_member(benchmarks, "toolchain_gap", "toolchain"),
                     "toolchain_gap_wall",
                     mean_of_member(benchmarks, "toolchain_gap_wall", "toolchain_wall"),
                     "best_gap", mean_of_member(benchmarks, "best_gap", "best"),
                     "library_gap", mean_of_libraries(benchmarks));
}

json_t *gap_parity(const json_t *benchmarks)
{
    int rows = 0, slower = 0, faster = 0;
    json_t *row;
    size_t i;

    json_array_foreach(benchmarks, i, row) {
        const double ratio = json_number(row, "toolchain_gap");

        rows   += ratio > 0;
        slower += ratio > BAND_HIGH;
        faster += ratio > 0 && ratio < BAND_LOW;
    }
    return json_pack("{s:i, s:i, s:i, s:i}", "rows", rows, "within", rows - slower - faster,
                     "slower", slower, "faster", faster);
}

/* ---- the table ---- */

/* The longest name that a kernel of ours has for these problems. */
static int variant_width(const struct workloads *w)
{
    size_t width = 7;

    for (int i = 0; i < w->count; i++)
        for (const struct vn_variant *v = w->it[i].problem.op->operation->variants; v->name; v++)
            if (v->texts && strlen(v->name) > width)
                width = strlen(v->name);
    return (int)width;
}

void gap_sheet_open(struct gap_sheet *s, FILE *to, const struct gap *g, const struct workloads *w)
{
    int width = 10, library = 4;

    *s = (struct gap_sheet){ .libraries = 0 };
    for (int i = 0; i < w->count; i++) {
        char text[PROBLEM_TEXT];
        const int length = (int)strlen(problem_shown(text, w->it[i].text));

        width = length > width ? length : width;
    }
    for (int i = 0; i < g->libraries; i++)
        if (!*g->library[i].why) {
            const int length = (int)strlen(g->library[i].name);

            s->library[s->libraries++] = g->library[i].name;
            library = length > library ? length : library;
        }
    table_open(&s->table, to);
    table_column(&s->table, "problem", width, 1);
    table_column(&s->table, "gap", 2 + library, 1);
    table_column(&s->table, "variant", variant_width(w), 1);
    table_column(&s->table, "engine", g->side[FIRST].info.is_cpu ? 7 : VN_ENGINE / 2, 1);
    table_column(&s->table, "first ms", 8, 0);
    table_column(&s->table, "second ms", 9, 0);
    table_column(&s->table, "ratio", 5, 0);
    table_column(&s->table, "95 %", 12, 1);
    table_column(&s->table, "roof", 5, 0);
    table_head(&s->table);
}

static enum shade shade_of(double ratio)
{
    return ratio > BAND_HIGH ? POOR : ratio > 0 && ratio < BAND_LOW ? GOOD : PLAIN;
}

static void interval_cell(struct table *t, const json_t *interval)
{
    char low[CELL], high[CELL], text[2 * CELL + 4] = "";

    if (json_array_size(interval) == 2)
        snprintf(text, sizeof text, "%.14s..%.14s",
                 ratio_text(low, json_number_value(json_array_get(interval, 0))),
                 ratio_text(high, json_number_value(json_array_get(interval, 1))));
    table_cell(t, FAINT, text);
}

/* What the reader must know: engines that differ, too few samples, a disturbance. */
static void remark(struct table *t, const json_t *row, const json_t *gap, int first)
{
    const json_t *const engines = json_object_get(gap, "engines");
    const char *const other = json_string_value(json_array_get(engines, 1));
    const double samples = json_number(row, "samples");
    char text[256] = "";
    size_t n = 0;

    if (json_is_false(json_object_get(gap, "like")))
        n = (size_t)snprintf(text, sizeof text, "%.40s beside %.40s",
                             json_string_value(json_array_get(engines, 0)), *other ? other : "multiply-adds");
    if (first && samples > 0 && samples < SAMPLES_FEW)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%.0f sample%s", n ? "; " : "", samples,
                              samples == 1 ? "" : "s");
    if (first && json_number(row, "processes") > 0 && json_is_true(json_object_get(row, "few")))
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%.0f process%s", n ? "; " : "",
                              json_number(row, "processes"), json_number(row, "processes") == 1 ? "" : "es");
    if (json_number(gap, "first_mhz") > 0)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%.0f and %.0f MHz", n ? "; " : "",
                              json_number(gap, "first_mhz"), json_number(gap, "second_mhz"));
    if (first && *json_text(row, "disturbed"))
        snprintf(text + n, sizeof text - n, "%sdisturbed: %.80s", n ? "; " : "", json_text(row, "disturbed"));
    if (*text)
        table_note(t, POOR, text);
    else
        table_end(t);
}

/* Of what a gap is made of, its first; without a gap, of the row. */
static const char *first_text(const json_t *row, const json_t *gap, const char *many, const char *one)
{
    const char *const text = json_string_value(json_array_get(json_object_get(gap, many), 0));

    return text ? text : json_text(row, one);
}

/* A line: what is set beside what, the two times, their ratio. */
static void gap_line(struct table *t, const json_t *row, const char *what, const json_t *gap, int first)
{
    const double ratio = json_number(gap, "ratio");
    const double seconds = gap ? json_number(gap, "first_s") : json_number(row, "real_time");
    const int cached = json_is_true(json_object_get(json_object_get(row, "roof"), "cached"));
    char text[PROBLEM_TEXT], cell[CELL] = "";

    table_cell(t, PLAIN, !first ? "" : *json_text(row, "of") ? "  by multiply-adds"
                                     : problem_shown(text, json_text(row, "name")));
    table_cell(t, PLAIN, what);
    table_cell(t, PLAIN, first_text(row, gap, "variants", "variant"));
    table_cell(t, PLAIN, first_text(row, gap, "engines", "engine"));
    table_cell(t, PLAIN, figure(cell, seconds * 1e3));
    table_cell(t, PLAIN, figure(cell, json_number(gap, "second_s") * 1e3));
    table_cell(t, shade_of(ratio), ratio_text(cell, ratio));
    interval_cell(t, json_object_get(gap, "ratio_interval"));
    snprintf(cell, sizeof cell, !first ? "" : cached ? "cache" : "%.0f%%",
             json_number(row, "roofline") * 100);
    table_cell(t, PLAIN, cell);
    remark(t, row, gap, first);
}

void gap_sheet_row(struct gap_sheet *s, const json_t *row)
{
    struct table *const t = &s->table;
    const json_t *const toolchain = gap_named(row, "toolchain"), *const best = gap_named(row, "best");
    char text[PROBLEM_TEXT], what[CELL];

    if (!(json_number(row, "real_time") > 0)) {
        const int failed = json_is_true(json_object_get(row, "error_occurred"));

        table_cell(t, PLAIN, problem_shown(text, json_text(row, "name")));
        table_note(t, failed ? POOR : FAINT, json_text(row, failed ? "error_message" : "skip_message"));
        return;
    }
    gap_line(t, row, "1/2", toolchain, 1);
    if (best && (json_number(best, "first_s") != json_number(toolchain, "first_s")
                 || json_number(best, "second_s") != json_number(toolchain, "second_s")))
        gap_line(t, row, "best", best, 0);
    for (int i = 0; i < s->libraries; i++) {
        const json_t *const gap = json_object_get(gap_named(row, "library"), s->library[i]);

        snprintf(what, sizeof what, "1/%.28s", s->library[i]);
        if (gap)
            gap_line(t, row, what, gap, 0);
    }
}

/* ---- what sums it up ---- */

static void print_means(FILE *to, const char *what, const json_t *means)
{
    const char *name;
    json_t *mean;

    if (!json_object_size(means))
        return;
    fprintf(to, "%-24s", what);
    json_object_foreach((json_t *)means, name, mean)
        fprintf(to, "  %s %.3g", name, json_number_value(mean));
    fputc('\n', to);
}

static void print_once(FILE *to, const char *title, const json_t *entries)
{
    json_t *entry;
    size_t i;

    if (!json_array_size(entries))
        return;
    fprintf(to, "\n%-60s %11s %11s   %s\n", title, "device 1", "device 2", "1/2");
    json_array_foreach(entries, i, entry) {
        const int is_time = !strcmp(json_text(entry, "unit"), "s");
        const double one = json_number(entry, "first"), two = json_number(entry, "second");
        char a[CELL], b[CELL], ratio[CELL];

        fprintf(to, "%-60s %11s %11s", json_text(entry, "name"),
                is_time ? time_text(a, one) : ratio_text(a, one),
                is_time ? time_text(b, two) : ratio_text(b, two));
        if (one > 0 && two > 0 && is_time)
            fprintf(to, "   %s", ratio_text(ratio, one / two));
        fputc('\n', to);
    }
}

void gap_summary(FILE *to, const json_t *report)
{
    const json_t *const own = json_object_get(report, "vernier"),
                 *const means = json_object_get(own, "geomean");
    const json_t *const parity = json_object_get(own, "parity");
    json_t *groups;
    const char *name;
    char what[64];

    fputs("\nGeometric means\n", to);
    print_means(to, "toolchain, kernel time", json_object_get(means, "toolchain_gap"));
    print_means(to, "toolchain, wall time", json_object_get(means, "toolchain_gap_wall"));
    print_means(to, "best of ours, 1 over 2", json_object_get(means, "best_gap"));
    json_object_foreach(json_object_get(means, "library_gap"), name, groups) {
        snprintf(what, sizeof what, "ours over %s", name);
        print_means(to, what, groups);
    }
    fprintf(to, "%.0f of %.0f row%s at parity (0.9 to 1.1), %.0f slower on device 1, %.0f faster\n",
            json_number(parity, "within"), json_number(parity, "rows"),
            json_number(parity, "rows") == 1 ? "" : "s", json_number(parity, "slower"),
            json_number(parity, "faster"));
    print_once(to, "launch", json_object_get(own, "launch"));
    print_once(to, "transfer", json_object_get(own, "transfer"));
    print_once(to, "build", json_object_get(own, "build"));
}
