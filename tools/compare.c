/* SPDX-License-Identifier: Apache-2.0
 *
 * compare.c - vernier compare: two reports of bench or gap, row beside row.
 *
 * Rows are matched by name and variant, else by name alone: a faster variant is a change
 * worth seeing.
 */
#include <argp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "commands.h"
#include "gap/gap.h"
#include "options.h"
#include "report/html.h"
#include "report/svg.h"

struct request { struct common common; const char *html, *file[2]; int files; };

enum { HTML = 256 };

static const struct argp_option options[] = {
    { "html", HTML, "FILE", 0, "Write it as one HTML file", 0 },
    { NULL, 0, NULL, 0, NULL, 0 }
};

static const char doc[] =
    "Sets two JSON reports of vernier bench or vernier gap side by side: two devices, or two dates."
    "\v"
    "B/A is the time in the second report over that in the first: above 1, B is slower.";

static const struct argp_child children[] = { OPTIONS_CHILD(json_argp), OPTIONS_END };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct request *const r = state->input;

    switch (key) {
    case HTML: r->html = arg; return 0;
    case ARGP_KEY_INIT:
        options_begin(state, children, &r->common, NULL);
        return 0;
    case ARGP_KEY_ARG:
        if (r->files == 2)
            argp_error(state, "two reports at a time: \"%s\" is the third", arg);
        r->file[r->files++] = arg;
        return 0;
    case ARGP_KEY_END:
        if (r->files != 2)
            argp_error(state, "compare what? Two JSON files, as vernier bench --json writes them");
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* ---- reading and matching ---- */

static json_t *load(const char *path)
{
    json_t *const report = report_read(path);

    if (report && !json_is_array(json_object_get(report, "benchmarks"))) {
        complain("%s is no report of vernier bench or gap: it has no \"benchmarks\"", path);
        json_decref(report);
        return NULL;
    }
    return report;
}

static int is_measured(const json_t *row)
{
    return json_number(row, "real_time") > 0;
}

static const json_t *find(const json_t *report, const json_t *like)
{
    const json_t *by_name = NULL;
    json_t *row;
    size_t i;

    json_array_foreach(json_object_get(report, "benchmarks"), i, row) {
        if (!is_measured(row) || strcmp(json_text(row, "name"), json_text(like, "name")))
            continue;
        if (!strcmp(json_text(row, "variant"), json_text(like, "variant")))
            return row;
        by_name = by_name ? by_name : row;
    }
    return by_name;
}

static json_t *pair_row(const json_t *a, const json_t *b)
{
    json_t *const out = json_pack("{s:s, s:s, s:f, s:s}", "name", json_text(b, "name"),
                                  "variant", json_text(b, "variant"),
                                  "real_time", json_number(b, "real_time"), "time_unit", "s");

    if (!a)
        return out;
    json_object_set_new(out, "variant_before", json_string(json_text(a, "variant")));
    json_object_set_new(out, "real_time_before", json_real(json_number(a, "real_time")));
    json_object_set_new(out, "ratio", json_real(json_number(b, "real_time") / json_number(a, "real_time")));
    return out;
}

/* The names of measured rows of one report that the other lacks. */
static json_t *names_only_in(const json_t *report, const json_t *other)
{
    json_t *const out = json_array(), *row;
    size_t i;

    json_array_foreach(json_object_get(report, "benchmarks"), i, row)
        if (is_measured(row) && !find(other, row))
            json_array_append_new(out, json_string(json_text(row, "name")));
    return out;
}

static json_t *compare(const json_t *a, const json_t *b)
{
    json_t *const rows = json_array(), *row;
    double sum = 0;
    int count = 0;
    size_t i;

    json_array_foreach(json_object_get(b, "benchmarks"), i, row) {
        const json_t *const before = is_measured(row) ? find(a, row) : NULL;

        if (!before)
            continue;
        json_array_append_new(rows, pair_row(before, row));
        sum += log(json_number(row, "real_time") / json_number(before, "real_time"));
        count++;
    }
    return json_pack("{s:{s:O, s:O}, s:o, s:{s:{s:o}, s:o, s:o}}",
        "context", "a", json_object_get(a, "context"), "b", json_object_get(b, "context"), "benchmarks", rows,
        "vernier", "geomean", "ratio", count ? json_real(exp(sum / count)) : json_null(),
        "added", names_only_in(b, a), "missing", names_only_in(a, b));
}

/* ---- the table ---- */

static const char *changed(char out[80], const json_t *row)
{
    const char *const now = json_text(row, "variant"), *const before = json_text(row, "variant_before");

    if (strcmp(now, before))
        snprintf(out, 80, "%s, was %s", now, before);
    else
        snprintf(out, 80, "%s", now);
    return out;
}

static void print_names(FILE *to, const char *what, const json_t *names)
{
    json_t *name;
    size_t i;

    json_array_foreach(names, i, name)
        fprintf(to, "%s: %s\n", what, json_string_value(name));
}

static void print(FILE *to, const json_t *result)
{
    const json_t *const own = json_object_get(result, "vernier");
    char text[PROBLEM_TEXT], cell[CELL], variant[80];
    struct table t;
    json_t *row;
    size_t i;
    int width = 14;

    for (const char *const *it = (const char *const []){ "a", "b", NULL }; *it; it++) {
        const json_t *const c = json_object_get(json_object_get(result, "context"), *it);

        fprintf(to, "%c  %s (%s, %s), %s\n", **it - 'a' + 'A', json_text(c, "device"),
                json_text(c, "platform"), json_text(c, "driver"), json_text(c, "date"));
    }
    json_array_foreach(json_object_get(result, "benchmarks"), i, row) {
        const int length = (int)strlen(problem_shown(text, json_text(row, "name")));

        width = length > width ? length : width;
    }
    fputc('\n', to);
    table_open(&t, to);
    table_column(&t, "problem", width, 1);
    table_column(&t, "ms A", 8, 0);
    table_column(&t, "ms B", 8, 0);
    table_column(&t, "B/A", 6, 0);
    table_column(&t, "variant", 10, 1);
    table_head(&t);
    json_array_foreach(json_object_get(result, "benchmarks"), i, row) {
        const double ratio = json_number(row, "ratio");

        table_cell(&t, PLAIN, problem_shown(text, json_text(row, "name")));
        table_cell(&t, PLAIN, figure(cell, json_number(row, "real_time_before") * 1e3));
        table_cell(&t, PLAIN, figure(cell, json_number(row, "real_time") * 1e3));
        snprintf(cell, sizeof cell, "%.3f", ratio);
        table_cell(&t, ratio > 1.1 ? POOR : ratio < 0.9 ? GOOD : PLAIN, cell);
        table_cell(&t, PLAIN, changed(variant, row));
        table_end(&t);
    }
    fprintf(to, "\ngeometric mean of B/A: %.3f (%zu rows)\n",
            json_number(json_object_get(own, "geomean"), "ratio"),
            json_array_size(json_object_get(result, "benchmarks")));
    print_names(to, "only in A", json_object_get(own, "missing"));
    print_names(to, "only in B", json_object_get(own, "added"));
}

/* ---- the page ---- */

static void page_heading(FILE *to, const json_t *result, const char *const file[2])
{
    fputs("<h1>Two reports side by side</h1>\n<ul>\n", to);
    for (int k = 0; k < 2; k++) {
        const json_t *const c = json_object_get(json_object_get(result, "context"), k ? "b" : "a");

        fprintf(to, "<li><b>%c</b> ", 'A' + k);
        for (const char *const *it = (const char *const []){ "device", "platform", "driver", "date", NULL };
             *it; it++) {
            html_text(to, json_text(c, *it));
            fputs(", ", to);
        }
        html_text(to, file[k]);
        fputs("</li>\n", to);
    }
    fprintf(to, "</ul>\n<div class=\"cards\"><div class=\"card\"><span>time in B over time in A</span>"
                "<b>%.3f</b><span>geometric mean of %zu rows</span></div></div>\n",
            json_number(json_object_get(json_object_get(result, "vernier"), "geomean"), "ratio"),
            json_array_size(json_object_get(result, "benchmarks")));
}

static void page_names(FILE *to, const char *what, const json_t *names)
{
    json_t *name;
    size_t i;

    if (!json_array_size(names))
        return;
    html_head(to, what);
    fputs("<ul>\n", to);
    json_array_foreach(names, i, name) {
        fputs("<li>", to);
        html_text(to, json_string_value(name));
        fputs("</li>\n", to);
    }
    fputs("</ul>\n", to);
}

static void page_bars(FILE *to, const json_t *rows)
{
    enum { IN_ONE = 40 };
    struct bar bars[IN_ONE];
    char names[IN_ONE][PROBLEM_TEXT];
    json_t *row;
    size_t i;
    int n = 0;

    json_array_foreach(rows, i, row) {
        bars[n] = (struct bar){ problem_shown(names[n], json_text(row, "name")), json_number(row, "ratio") };
        if (++n == IN_ONE || i + 1 == json_array_size(rows)) {
            svg_bars(to, "time in B over time in A", bars, n);
            n = 0;
        }
    }
}

static void page_table(FILE *to, const json_t *rows)
{
    static const char *const titles[] = { "<problem", "ms A", "ms B", "B/A", "<variant", NULL };
    struct html_table t;
    json_t *row;
    size_t i;

    html_table_open(&t, to, titles);
    json_array_foreach(rows, i, row) {
        const double ratio = json_number(row, "ratio");
        char text[PROBLEM_TEXT], cell[CELL], variant[80];

        html_cell(&t, problem_shown(text, json_text(row, "name")));
        html_cell(&t, figure(cell, json_number(row, "real_time_before") * 1e3));
        html_cell(&t, figure(cell, json_number(row, "real_time") * 1e3));
        snprintf(cell, sizeof cell, "%.3f", ratio);
        html_shaded_cell(&t, ratio > 1.1 ? "slower" : ratio < 0.9 ? "faster" : "", cell);
        html_cell(&t, changed(variant, row));
    }
    html_table_close(&t);
}

static int write_page(const char *path, const json_t *result, const char *const file[2])
{
    const json_t *const own = json_object_get(result, "vernier"),
                 *const rows = json_object_get(result, "benchmarks");
    FILE *const to = fopen(path, "w");
    int failed = !to;

    if (to) {
        html_open(to, "vernier compare");
        page_heading(to, result, file);
        html_head(to, "Row by row");
        html_note(to, "To the right B is slower, to the left faster; grey bars lie between 0.9 and 1.1.");
        page_bars(to, rows);
        page_table(to, rows);
        page_names(to, "Only in A", json_object_get(own, "missing"));
        page_names(to, "Only in B", json_object_get(own, "added"));
        html_close(to);
        failed = ferror(to) | fclose(to);
    }
    if (failed)
        complain("the report cannot be written to \"%s\"", path);
    return failed ? EXIT_FAILURE : 0;
}

int compare_main(int argc, char **argv)
{
    static const struct argp argp = { options, parse, "A.json B.json", doc, children, NULL, NULL };
    struct request r = { .files = 0 };
    json_t *a, *b, *result;
    int status = 0;

    if (argp_parse(&argp, argc, argv, 0, NULL, &r))
        return EXIT_USAGE;
    a = load(r.file[0]);
    b = a ? load(r.file[1]) : NULL;
    if (!b) {
        json_decref(a);
        return EXIT_USAGE;
    }
    result = compare(a, b);
    print(report_stream(r.common.json), result);
    if (r.html)
        status = write_page(r.html, result, r.file);
    if (r.common.json && report_json(json_incref(result), r.common.json))
        status = EXIT_FAILURE;
    json_decref(result);
    json_decref(a);
    json_decref(b);
    return status;
}
