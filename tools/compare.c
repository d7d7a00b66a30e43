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
#include "compare.h"

struct request { struct common common; const char *html, *svg, *file[2]; int files; };

enum { HTML = 256, SVG };

static const struct argp_option options[] = {
    { "html", HTML, "FILE", 0, "Write it as one HTML file, with its charts", 0 },
    { "svg",  SVG,  "DIR",  0, "Write each chart of it as a file of this folder", 0 },
    { NULL, 0, NULL, 0, NULL, 0 }
};

static const char doc[] =
    "Sets two JSON reports of vernier bench or vernier gap side by side: two devices, or two dates."
    "\v"
    "B/A is the time in the second report over that in the first: above 1, B is slower.  The rows were not "
    "measured in turns, so the interval of B/A is from the least to the largest ratio that both times' 95 % "
    "intervals allow.  Where it lies above 1, B is slower, below 1, faster; where it holds 1 and lies "
    "between 0.9 and 1.1, there is no difference; else, and where a report has no intervals or a row was "
    "disturbed, it cannot be told.\n"
    "\n"
    "Exit status: 0, 1 if a file could not be written, 2 if the reports cannot be compared.";

static const struct argp_child children[] = { OPTIONS_CHILD(json_argp), OPTIONS_END };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct request *const r = state->input;

    switch (key) {
    case HTML: r->html = arg; return 0;
    case SVG:  r->svg  = arg; return 0;
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

static double end_of_interval(const json_t *row, int high)
{
    return json_number_value(json_array_get(json_object_get(row, "interval_s"), (size_t)high));
}

/* Without samples nobody knows how sure a time is; a disturbed one is sure of something else. */
static const char *why_unsure(const json_t *row)
{
    return !(end_of_interval(row, 0) > 0) ? "has no interval"
         : json_number(row, "samples") < SAMPLES_FEW ? "has fewer than five samples"
         : *json_text(row, "disturbed") ? "was disturbed" : NULL;
}

static const double BAND_LOW = 0.9, BAND_HIGH = 1.1;

/* "faster", "slower", "no difference", "cannot tell", of an interval of B/A. */
static const char *verdict(double low, double high)
{
    return high < 1 ? "faster" : low > 1 ? "slower"
         : low >= BAND_LOW && high <= BAND_HIGH ? "no difference" : "cannot tell";
}

static void judge(json_t *out, const json_t *a, const json_t *b)
{
    const char *const unsure_a = why_unsure(a), *const unsure_b = why_unsure(b);
    const int sure = !unsure_a && !unsure_b, known = end_of_interval(a, 0) > 0 && end_of_interval(b, 0) > 0;
    const double low  = known ? end_of_interval(b, 0) / end_of_interval(a, 1) : 0,
                 high = known ? end_of_interval(b, 1) / end_of_interval(a, 0) : 0;
    const char *const said = sure ? verdict(low, high) : "cannot tell";
    char why[64] = "";

    if (!sure)
        snprintf(why, sizeof why, "%c %s", unsure_a ? 'A' : 'B', unsure_a ? unsure_a : unsure_b);
    else if (!strcmp(said, "cannot tell"))
        snprintf(why, sizeof why, "the intervals are too wide");
    if (known)
        json_object_set_new(out, "ratio_interval", json_pack("[f, f]", low, high));
    json_object_set_new(out, "verdict", json_string(said));
    json_object_set_new(out, "why", json_string(why));
}

static json_t *pair_row(const json_t *a, const json_t *b)
{
    json_t *const out = json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:s, s:f}",
        "name", json_text(b, "name"), "variant", json_text(b, "variant"),
        "variant_before", json_text(a, "variant"), "engine", json_text(b, "engine"),
        "engine_before", json_text(a, "engine"), "real_time", json_number(b, "real_time"),
        "real_time_before", json_number(a, "real_time"), "time_unit", "s",
        "ratio", json_number(b, "real_time") / json_number(a, "real_time"));

    if (json_object_get(a, "interval_s"))
        json_object_set(out, "interval_before_s", json_object_get(a, "interval_s"));
    for (const char *const *it = (const char *const []){ "suite", "label", "op", "type", "as", "interval_s",
                                                         NULL }; *it; it++)
        if (json_object_get(b, *it))
            json_object_set(out, *it, json_object_get(b, *it));
    judge(out, a, b);
    return out;
}

static int engine_differs(const json_t *row)
{
    return strcmp(json_text(row, "engine"), json_text(row, "engine_before")) != 0;
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

static json_t *sum_up(const json_t *rows)
{
    json_t *const verdicts = json_object(), *row;
    const size_t count = json_array_size(rows);
    double sum = 0;
    int differ = 0;
    size_t i;

    json_array_foreach(rows, i, row) {
        const char *const said = json_text(row, "verdict");

        sum    += log(json_number(row, "ratio"));
        differ += engine_differs(row);
        json_object_set_new(verdicts, said, json_integer((json_int_t)json_number(verdicts, said) + 1));
    }
    return json_pack("{s:{s:o}, s:o, s:i}",
        "geomean", "ratio", count ? json_real(exp(sum / (double)count)) : json_null(),
        "verdicts", verdicts, "engines_differ", differ);
}

static json_t *compare(const json_t *a, const json_t *b)
{
    json_t *const rows = json_array(), *row, *own;
    size_t i;

    json_array_foreach(json_object_get(b, "benchmarks"), i, row) {
        const json_t *const before = is_measured(row) ? find(a, row) : NULL;

        if (before)
            json_array_append_new(rows, pair_row(before, row));
    }
    own = sum_up(rows);
    json_object_set_new(own, "added", names_only_in(b, a));
    json_object_set_new(own, "missing", names_only_in(a, b));
    return json_pack("{s:{s:O, s:O}, s:o, s:o}", "context", "a", json_object_get(a, "context"),
                     "b", json_object_get(b, "context"), "benchmarks", rows, "vernier", own);
}

/* ---- the table ---- */

/* "gemm_wgmma (HGMMA f16), was gemm_mma (HMMA f16)" */
static const char *changed(char out[160], const json_t *row)
{
    const char *const now = json_text(row, "variant"), *const before = json_text(row, "variant_before");
    const char *const engine = json_text(row, "engine"), *const old = json_text(row, "engine_before");

    if (engine_differs(row))
        snprintf(out, 160, "%s (%s), was %s (%s)", now, *engine ? engine : "?", before, *old ? old : "?");
    else if (strcmp(now, before))
        snprintf(out, 160, "%s, was %s", now, before);
    else
        snprintf(out, 160, "%s", now);
    return out;
}

static void print_names(FILE *to, const char *what, const json_t *names)
{
    json_t *name;
    size_t i;

    json_array_foreach(names, i, name)
        fprintf(to, "%s: %s\n", what, json_string_value(name));
}

static void print_contexts(FILE *to, const json_t *result)
{
    for (const char *const *it = (const char *const []){ "a", "b", NULL }; *it; it++) {
        const json_t *const c = json_object_get(json_object_get(result, "context"), *it);

        fprintf(to, "%c  %s (%s, %s), %s\n", **it - 'a' + 'A', json_text(c, "device"),
                json_text(c, "platform"), json_text(c, "driver"), json_text(c, "date"));
    }
    fputc('\n', to);
}

static void print_row(struct table *t, const json_t *row)
{
    const json_t *const interval = json_object_get(row, "ratio_interval");
    const char *const said = json_text(row, "verdict");
    char text[PROBLEM_TEXT], cell[CELL], low[CELL], high[CELL], range[2 * CELL + 4] = "", variant[160];

    if (interval)
        snprintf(range, sizeof range, "%.14s..%.14s",
                 ratio_text(low, json_number_value(json_array_get(interval, 0))),
                 ratio_text(high, json_number_value(json_array_get(interval, 1))));
    table_cell(t, PLAIN, problem_shown(text, json_text(row, "name")));
    table_cell(t, PLAIN, figure(cell, json_number(row, "real_time_before") * 1e3));
    table_cell(t, PLAIN, figure(cell, json_number(row, "real_time") * 1e3));
    table_cell(t, !strcmp(said, "slower") ? POOR : !strcmp(said, "faster") ? GOOD : PLAIN,
               ratio_text(cell, json_number(row, "ratio")));
    table_cell(t, FAINT, range);
    table_cell(t, PLAIN, said);
    table_cell(t, PLAIN, changed(variant, row));
    if (*json_text(row, "why"))
        table_note(t, FAINT, json_text(row, "why"));
    else
        table_end(t);
}

static void print_verdicts(FILE *to, const json_t *own, size_t rows)
{
    const int differ = (int)json_number(own, "engines_differ");
    const char *name;
    json_t *count;
    int some = 0;

    if (!rows)
        return;
    fprintf(to, "\ngeometric mean of B/A: %.3f (%zu row%s",
            json_number(json_object_get(own, "geomean"), "ratio"), rows, rows == 1 ? "" : "s");
    json_object_foreach(json_object_get(own, "verdicts"), name, count)
        fprintf(to, "%s%lld %s", some++ ? ", " : ": ", (long long)json_integer_value(count), name);
    fputs(")\n", to);
    if (differ)
        fprintf(to, "in %d of them A and B computed on different engines\n", differ);
}

static void print(FILE *to, const json_t *result)
{
    const json_t *const own = json_object_get(result, "vernier"),
                 *const rows = json_object_get(result, "benchmarks");
    char text[PROBLEM_TEXT], variant[160];
    struct table t;
    json_t *row;
    size_t i;
    int width = 14, names = 10;

    print_contexts(to, result);
    json_array_foreach(rows, i, row) {
        const int length = (int)strlen(problem_shown(text, json_text(row, "name")));
        const int name = (int)strlen(changed(variant, row));

        width = length > width ? length : width;
        names = name > names ? name : names;
    }
    table_open(&t, to);
    table_column(&t, "problem", width, 1);
    table_column(&t, "ms A", 8, 0);
    table_column(&t, "ms B", 8, 0);
    table_column(&t, "B/A", 6, 0);
    table_column(&t, "95 %", 12, 1);
    table_column(&t, "verdict", 13, 1);
    table_column(&t, "variant", names, 1);
    table_head(&t);
    json_array_foreach(rows, i, row)
        print_row(&t, row);
    print_verdicts(to, own, json_array_size(rows));
    print_names(to, "only in A", json_object_get(own, "missing"));
    print_names(to, "only in B", json_object_get(own, "added"));
}

const struct argp compare_parser = { options, parse, "A.json B.json", doc, children, NULL, NULL };

int compare_main(int argc, char **argv)
{
    struct request r = { .files = 0 };
    json_t *a, *b, *result;
    int status = 0;

    if (argp_parse(&compare_parser, argc, argv, 0, NULL, &r))
        return EXIT_USAGE;
    a = report_load(r.file[0]);
    b = a ? report_load(r.file[1]) : NULL;
    if (!b) {
        json_decref(a);
        return EXIT_USAGE;
    }
    result = compare(a, b);
    if (!json_array_size(json_object_get(result, "benchmarks"))) {
        complain("%s and %s have no row in common", r.file[0], r.file[1]);
        status = EXIT_USAGE;
    }
    print(report_stream(r.common.json), result);
    if ((r.html || r.svg) && compare_html(r.html, r.svg, result))
        status = EXIT_FAILURE;
    if (r.common.json && report_json(json_incref(result), r.common.json))
        status = EXIT_FAILURE;
    json_decref(result);
    json_decref(a);
    json_decref(b);
    return status;
}
