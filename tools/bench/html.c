/* SPDX-License-Identifier: Apache-2.0
 *
 * html.c - what bench measured as a page; from JSON alone.
 */
#include <stdio.h>
#include <string.h>
#include "bench.h"
#include "report/page.h"

enum { PEERS, ROOF, COMPARISONS };

struct draft {
    struct page       page;
    const json_t     *rows, *context, *roofline;
    struct comparison of[COMPARISONS];
    char              title[400];
    int               sustained;
};

/* "squares, resnet50 on NAME (PLATFORM), beside cublas, clblast" */
static void make_title(struct draft *d)
{
    char suites[256], beside[128];
    const char *name;
    json_t *version;
    size_t n = 0;

    *beside = '\0';
    json_object_foreach(json_object_get(d->context, "peers"), name, version)
        if (n < sizeof beside)
            n += (size_t)snprintf(beside + n, sizeof beside - n, "%s%s", n ? ", " : ", beside ", name);
    snprintf(d->title, sizeof d->title, "%s on %.80s (%.40s)%s%s", page_suite_names(suites, d->rows),
             json_text(d->context, "device"), json_text(d->context, "platform"), beside,
             d->sustained ? ", without rests" : "");
}

static void add_row(struct draft *d, const json_t *row)
{
    const char *const engine = json_text(row, "engine");
    struct row_ratio *r;
    const char *name;
    json_t *peer;

    json_object_foreach(json_object_get(row, "peers"), name, peer) {
        const json_t *const like = json_object_get(peer, "like");

        if (!(r = row_ratio_add(&d->of[PEERS], row, json_number(peer, "ratio"), peer)))
            continue;
        snprintf(r->versus, sizeof r->versus, "%s", name);
        engines_text(r->engines, engine, json_text(peer, "engine"));
        r->unlike = like && !json_is_true(like);
    }
    if ((r = row_ratio_add(&d->of[ROOF], row, json_number(row, "roofline"), NULL)))
        snprintf(r->engines, sizeof r->engines, "%.60s", json_text(json_object_get(row, "roof"), "kind"));
}

static void facts(const struct draft *d)
{
    html_head(d->page.to, "What it was measured with");
    html_facts_open(d->page.to);
    page_facts(&d->page, d->context, FROM_DEVICE);
    html_facts_close(d->page.to);
}

static void roofline_figure(struct draft *d)
{
    struct roofline_chart c = { .roofs = 0 };
    json_t *row;
    size_t i;

    json_array_foreach(d->rows, i, row)
        roofline_add(&c, row, json_object_get(row, "roof"), json_number(row, "real_time"));
    page_roofline(&d->page, "roofline", "Roofline", &c, d->roofline);
}

static void row_cells(struct html_table *t, const json_t *row, const char *const *names)
{
    const json_t *const interval = json_object_get(row, "interval_s");
    char text[PROBLEM_TEXT], cell[3 * CELL], low[CELL], high[CELL];
    const char *const why[] = { json_text(row, "error_message"), json_text(row, "skip_message"),
                                json_text(row, "disturbed") };

    html_cell(t, problem_shown(text, json_text(row, "name")));
    html_cell(t, json_text(row, "variant"));
    html_cell(t, json_text(row, "engine"));
    html_cell(t, time_text(cell, json_number(row, "real_time")));
    snprintf(cell, sizeof cell, json_array_size(interval) ? "%s to %s" : "-",
             time_text(low, json_number_value(json_array_get(interval, 0))),
             time_text(high, json_number_value(json_array_get(interval, 1))));
    html_cell(t, cell);
    snprintf(cell, sizeof cell, json_number(row, "roofline") > 0 ? "%.0f%%" : "-",
             json_number(row, "roofline") * 100);
    html_cell(t, cell);
    for (; *names; names++) {
        const json_t *const peer = json_object_get(json_object_get(row, "peers"), *names),
                     *const of = json_object_get(peer, "ratio_interval");

        html_cell(t, interval_text(cell, json_number(peer, "ratio"), json_number_value(json_array_get(of, 0)),
                                   json_number_value(json_array_get(of, 1))));
    }
    html_shaded_cell(t, "faint wrap", *why[0] ? why[0] : *why[1] ? why[1] : why[2]);
}

static void rows_table(const struct page *p, const void *state, const char *suite)
{
    const struct draft *const d = state;
    const char *titles[8 + BENCH_PEERS] = { "<problem", "<variant", "<engine", "time", "95 % interval",
                                            "roof" };
    const char *names[BENCH_PEERS + 1] = { NULL }, *name;
    struct html_table t;
    char of_row[64];
    json_t *row, *unused;
    size_t i;
    int n = 0;

    json_object_foreach(json_object_get(d->context, "peers"), name, unused)
        if (n < BENCH_PEERS) {
            names[n] = name;
            titles[6 + n++] = name;
        }
    titles[6 + n] = "<note";
    html_note(p->to, "The time is the median of the samples. Under a library stands its time over ours: "
                     "above 1, ours is faster.");
    html_table_open(&t, p->to, titles);
    json_array_foreach(d->rows, i, row)
        if (!strcmp(row_suite(of_row, row), suite))
            row_cells(&t, row, names);
    html_table_close(&t);
}

int bench_html(const char *html, const char *svg, const json_t *report)
{
    struct draft d = {
        .rows = json_object_get(report, "benchmarks"), .context = json_object_get(report, "context"),
        .roofline = json_object_get(json_object_get(report, "vernier"), "roofline"),
        .sustained = json_is_true(json_object_get(json_object_get(report, "vernier"), "sustained")),
        .of = { { .title = "Libraries over ours", .file = "peers", .has_parity = 1, .more_is_better = 1,
                  .caption =
                  "The time of a library over ours: above 1, ours is faster. Each mark is a row; the box "
                  "holds the middle half, the line is the median, and the shaded band is 0.9 to 1.1. Hollow "
                  "marks compare unlike engines." },
                { .title = "Share of the roof", .file = "roof", .caption =
                  "The least time that the measured peak and bandwidth allow, over the time. The line at 1 "
                  "is the roof, and the small print names it." } } };
    const struct suites suites = { d.of, COMPARISONS, d.rows, rows_table, &d };
    json_t *row;
    size_t i;
    int failed;

    make_title(&d);
    if (page_open(&d.page, html, svg, d.title))
        return -1;
    json_array_foreach(d.rows, i, row)
        add_row(&d, row);
    page_heading(&d.page, d.title, "Times are medians of samples, taken in turns with the libraries.",
                 d.context);
    page_summary(&d.page, &d.of[PEERS]);
    page_summary(&d.page, &d.of[ROOF]);
    if (html)
        facts(&d);
    roofline_figure(&d);
    page_suites(&d.page, &suites);
    page_cite(&d.page, d.context, d.title);
    failed = page_close(&d.page, html);
    for (i = 0; i < COMPARISONS; i++)
        comparison_close(&d.of[i]);
    return failed;
}
