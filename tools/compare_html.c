/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_html.c - two reports side by side, as a page.
 */
#include <stdio.h>
#include <string.h>
#include "compare.h"
#include "report/page.h"
#include "report/report.h"

struct draft {
    struct page       page;
    const json_t     *rows, *own, *a, *b;
    struct comparison ratio;
    char              title[400];
};

/* The first of these that differs says what was compared. */
static const char *const differences[] = { "device", "platform", "driver", "library_version",
                                           "library_commit",
                                           "date", NULL };

static void make_title(struct draft *d)
{
    const char *const *it = differences, *const device = json_text(d->b, "device");

    while (*it && !strcmp(json_text(d->a, *it), json_text(d->b, *it)))
        it++;
    if (!*it)
        snprintf(d->title, sizeof d->title, "Two reports of one run on %.120s", device);
    else
        snprintf(d->title, sizeof d->title, "%.120s%s%.120s (B) against %.120s (A)",
                 it == differences ? "" : device, it == differences ? "" : ": ",
                 *json_text(d->b, *it) ? json_text(d->b, *it) : "unknown",
                 *json_text(d->a, *it) ? json_text(d->a, *it) : "unknown");
}

static void add_ratio(struct comparison *c, const json_t *row)
{
    struct row_ratio *const r = row_ratio_add(c, row, json_number(row, "ratio"), row);
    const char *const now = json_text(row, "engine"), *const before = json_text(row, "engine_before");

    if (!r)
        return;
    engines_text(r->engines, now, before);
    r->unlike    = strcmp(now, before) != 0;
    r->disturbed = !strcmp(json_text(row, "verdict"), "cannot tell");
}

static void facts(const struct draft *d)
{
    html_head(d->page.to, "What they were measured with");
    html_facts_open(d->page.to);
    page_facts_of_two(&d->page, d->a, d->b);
    html_facts_close(d->page.to);
}

static void headline(const struct draft *d)
{
    const double mean = json_number(json_object_get(d->own, "geomean"), "ratio");
    FILE *const to = d->page.to;
    char value[CELL], more[64];
    const char *verdict;
    json_t *count;

    html_cards_open(to);
    snprintf(value, sizeof value, mean > 0 ? "%.3f" : "-", mean);
    snprintf(more, sizeof more, "geometric mean of %d row%s", d->ratio.count, d->ratio.count == 1 ? "" : "s");
    html_card(to, "time in B over time in A", value, more);
    json_object_foreach(json_object_get(d->own, "verdicts"), verdict, count) {
        snprintf(value, sizeof value, "%.0f", json_number_value(count));
        html_card(to, verdict, value, "rows, by their 95 % intervals");
    }
    html_cards_close(to);
}

static void names_list(FILE *to, const char *what, const json_t *names)
{
    json_t *name;
    char more[32];
    size_t i;

    if (!json_array_size(names))
        return;
    snprintf(more, sizeof more, "%zu row%s", json_array_size(names), json_array_size(names) == 1 ? "" : "s");
    html_fold_open(to, what, more);
    fputs("<ul>\n", to);
    json_array_foreach(names, i, name) {
        fputs("<li>", to);
        html_text(to, json_is_string(name) ? json_string_value(name) : "");
        fputs("</li>\n", to);
    }
    fputs("</ul>\n", to);
    html_fold_close(to);
}

/* "gemm_tiled, was gemm_cpu" */
static const char *changed(char out[200], const char *now, const char *before)
{
    snprintf(out, 200, strcmp(now, before) && *before ? "%.90s, was %.90s" : "%.90s", now, before);
    return out;
}

static double bound(const json_t *row, const char *name, size_t i)
{
    return json_number_value(json_array_get(json_object_get(row, name), i));
}

static void row_cells(struct html_table *t, const json_t *row)
{
    const double ratio = json_number(row, "ratio");
    const char *const verdict = json_text(row, "verdict");
    char text[PROBLEM_TEXT], cell[3 * CELL], words[200];

    html_cell(t, problem_shown(text, json_text(row, "name")));
    html_cell(t, time_text(cell, json_number(row, "real_time_before")));
    html_cell(t, time_text(cell, json_number(row, "real_time")));
    html_shaded_cell(t, !strcmp(verdict, "slower") ? "slower" : !strcmp(verdict, "faster") ? "faster" : "",
                     interval_text(cell, ratio, bound(row, "ratio_interval", 0),
                                   bound(row, "ratio_interval", 1)));
    snprintf(words, sizeof words, "%.90s%s%.90s", verdict, *json_text(row, "why") ? ": " : "",
             json_text(row, "why"));
    html_cell(t, words);
    html_cell(t, changed(words, json_text(row, "variant"), json_text(row, "variant_before")));
    html_cell(t, changed(words, json_text(row, "engine"), json_text(row, "engine_before")));
}

static void rows_table(const struct page *p, const void *state, const char *suite)
{
    static const char *const titles[] = { "<problem", "A", "B", "B/A", "<verdict", "<variant", "<engine",
                                          NULL };
    const struct draft *const d = state;
    struct html_table t;
    char of_row[64];
    json_t *row;
    size_t i;

    html_table_open(&t, p->to, titles);
    json_array_foreach(d->rows, i, row)
        if (!strcmp(row_suite(of_row, row), suite))
            row_cells(&t, row);
    html_table_close(&t);
}

int compare_html(const char *html, const char *svg, const json_t *result)
{
    const json_t *const contexts = json_object_get(result, "context");
    struct draft d = {
        .rows = json_object_get(result, "benchmarks"), .own = json_object_get(result, "vernier"),
        .a = json_object_get(contexts, "a"), .b = json_object_get(contexts, "b"),
        .ratio = { .title = "B over A", .file = "compare", .has_parity = 1, .caption =
            "The time in B over that in A. Each mark is a row; the box holds the middle half, the line is "
            "the median, and the shaded band is 0.9 to 1.1. Hollow marks: A and B computed on unlike "
            "engines." } };
    const struct suites suites = { &d.ratio, 1, d.rows, rows_table, &d };
    json_t *row;
    size_t i;
    int failed;

    make_title(&d);
    if (page_open(&d.page, html, svg, d.title))
        return -1;
    json_array_foreach(d.rows, i, row)
        add_ratio(&d.ratio, row);
    page_heading(&d.page, d.title,
                 "B/A is the time in the second report over that in the first: above 1, B is slower.", d.b);
    if (html)
        headline(&d);
    page_summary(&d.page, &d.ratio);
    if (html)
        facts(&d);
    page_suites(&d.page, &suites);
    if (html) {
        names_list(d.page.to, "Only in A", json_object_get(d.own, "missing"));
        names_list(d.page.to, "Only in B", json_object_get(d.own, "added"));
        page_cite(&d.page, d.b, d.title);
    }
    failed = page_close(&d.page, html);
    comparison_close(&d.ratio);
    return failed;
}
