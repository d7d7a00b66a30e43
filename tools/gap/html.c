/* SPDX-License-Identifier: Apache-2.0
 *
 * html.c - the gap report as a page: headline figures, charts, tables, and the method.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "commands.h"
#include "gap.h"
#include "report/page.h"

/* The three gaps of every row. */
enum { TOOLCHAIN, LIBRARY, ROOF, COMPARISONS };

struct draft {
    struct page       page;
    FILE             *to;                 /* the page's */
    const json_t     *report, *rows, *own, *means, *context;
    const json_t     *device[2];
    struct comparison gap[COMPARISONS];
    char              title[256];
};

/* ---- cells ---- */

static const char *shade_of(double ratio)
{
    return ratio > 1.1 ? "slower" : ratio > 0 && ratio < 0.9 ? "faster" : "";
}

static void ratio_cell(struct html_table *t, double ratio)
{
    char text[CELL];

    html_shaded_cell(t, shade_of(ratio), ratio_text(text, ratio));
}

/* With the interval, where it was measured; the sides' engines, where they are unlike. */
static void gap_cell(struct html_table *t, double ratio, const json_t *gap)
{
    const json_t *const interval = json_object_get(gap, "ratio_interval");
    char text[3 * CELL], whole[4 * CELL];

    interval_text(text, ratio, json_number_value(json_array_get(interval, 0)),
                  json_number_value(json_array_get(interval, 1)));
    snprintf(whole, sizeof whole, "%s%s", text, json_is_false(json_object_get(gap, "like")) ? " \u2260" : "");
    html_shaded_cell(t, shade_of(ratio), whole);
}

static void time_cell(struct html_table *t, double seconds)
{
    char text[CELL];

    html_cell(t, time_text(text, seconds));
}

static void count_cell(struct html_table *t, const json_t *object, const char *name)
{
    const json_t *const v = json_object_get(object, name);
    char text[CELL] = "unknown";

    if (v)
        snprintf(text, sizeof text, "%.0f", json_number_value(v));
    html_shaded_cell(t, v ? "" : "faint", text);
}

/* ---- what was compared ---- */

static const char *interface_of(const json_t *device)
{
    const char *const spec = json_text(device, "spec");

    return !strncmp(spec, "opencl:", 7) ? "OpenCL" : !strncmp(spec, "cuda:", 5) ? "CUDA"
         : json_text(device, "platform");
}

static void make_title(struct draft *d)
{
    const char *side[2] = { interface_of(d->device[0]), interface_of(d->device[1]) };
    const char *const name[2] = { json_text(d->device[0], "name"), json_text(d->device[1], "name") };

    if (!strcmp(side[0], side[1]))
        for (int i = 0; i < 2; i++)
            side[i] = json_text(d->device[i], "platform");
    if (!strcmp(name[0], name[1]))
        snprintf(d->title, sizeof d->title, "%.60s against %.60s on %.100s", side[0], side[1], name[0]);
    else
        snprintf(d->title, sizeof d->title, "%.50s (%.70s) against %.50s (%.70s)", side[0], name[0], side[1],
                 name[1]);
}

static void device_fact(const struct draft *d, int i)
{
    char text[512], name[CELL];
    const json_t *const v = d->device[i];

    snprintf(name, sizeof name, "Device %d", i + 1);
    snprintf(text, sizeof text, "%s: %.120s, %.80s, driver %.80s; kernel time by %.40s", json_text(v, "spec"),
             json_text(v, "name"), json_text(v, "platform"), json_text(v, "driver"),
             json_text(v, "kernel_time"));
    html_fact(d->to, name, *json_text(v, "spec") ? text : "");
    snprintf(name, sizeof name, "Compiler %d", i + 1);
    snprintf(text, sizeof text, "%s", json_text(v, "toolchain"));
    for (char *bar = text; (bar = strchr(bar, '|'));)
        *bar = ';';
    html_fact(d->to, name, text);
}

static void heading(const struct draft *d)
{
    char suites[256], words[400];

    snprintf(words, sizeof words, "%s. A gap is the time on device 1 over the time that it is compared with: "
             "above 1, device 1 is slower.", page_suite_names(suites, d->rows));
    page_heading(&d->page, d->title, words, d->context);
    if (!json_object_get(d->report, "schema"))
        html_note(d->to, "This report was measured by an older version, which kept neither samples nor "
                         "intervals.");
}

/* Rows of earlier runs. */
static void resumed_facts(const struct draft *d)
{
    const json_t *run;
    char text[160];
    size_t i;

    json_array_foreach(json_object_get(d->context, "resumed"), i, run) {
        snprintf(text, sizeof text, "%d of the rows, from the run of %.60s",
                 (int)json_number(run, "rows"), json_text(run, "date"));
        html_fact(d->to, "Resumed", text);
    }
}

static void facts(const struct draft *d)
{
    if (!d->to)
        return;
    html_head(d->to, "What it was measured with");
    html_facts_open(d->to);
    device_fact(d, 0);
    device_fact(d, 1);
    page_facts(&d->page, d->context, FROM_VERSION);
    resumed_facts(d);
    html_facts_close(d->to);
}

/* ---- the gaps of a row ---- */

static int is_matrix(const char *engine)
{
    return strstr(engine, "MMA") || strstr(engine, "MFMA") || strstr(engine, "DPAS");
}

/* Of ours in a report that did not name it: from the instructions of the kernel, if they are known. */
static const char *engine_of_kernel(const struct draft *d, const json_t *row)
{
    static const char *const classes[] = { "HGMMA", "HMMA", "DMMA", "FFMA", "DFMA", NULL };
    const json_t *const kernels = json_object_get(d->own, "kernels"),
                 *const kernel = json_object_get(kernels, json_text(row, "kernel"));
    json_t *entry;
    const char *name;

    for (const char *const *it = classes; *it; it++)
        json_object_foreach(json_object_get(json_object_get(kernel, "first"), "entries"), name, entry)
            if (json_number(json_object_get(entry, "instructions"), *it) > 0)
                return *it;
    return "";
}

static const char *engine_of_row(const struct draft *d, const json_t *row)
{
    return *json_text(row, "engine") ? json_text(row, "engine") : engine_of_kernel(d, row);
}

static const json_t *run_of_library(const json_t *row, const char *library)
{
    json_t *run;
    size_t i;

    json_array_foreach(json_object_get(row, "runs"), i, run)
        if (!strcmp(json_text(run, "library"), library))
            return run;
    return NULL;
}

static const char *text_at(const json_t *array, size_t i)
{
    const char *const text = json_string_value(json_array_get(array, i));

    return text ? text : "";
}

static void add_library(struct draft *d, const json_t *row, const char *name, double ratio)
{
    const json_t *const gap = json_object_get(json_object_get(json_object_get(row, "gaps"), "library"), name),
                 *const engines = json_object_get(gap, "engines");
    struct row_ratio *const r = row_ratio_add(&d->gap[LIBRARY], row, ratio, gap);
    const char *const ours = json_array_size(engines) ? text_at(engines, 0) : engine_of_row(d, row),
               *const theirs = json_array_size(engines) ? text_at(engines, 1)
                             : json_text(run_of_library(row, name), "instructions");

    if (!r)
        return;
    snprintf(r->versus, sizeof r->versus, "%s", name);
    engines_text(r->engines, ours, theirs);
    r->unlike = gap ? !json_is_true(json_object_get(gap, "like")) : is_matrix(ours) != is_matrix(theirs);
    if (r->unlike)
        strcat(r->group, " as chosen");
}

/* A problem whose engine is no multiply-add has a second row, by multiply-adds, in groups of its own. */
static void mark_second(struct row_ratio *r, const json_t *row)
{
    if (!strcmp(json_text(row, "as"), "FMA"))
        strcat(r->group, " by FMA");
}

static void add_gaps(struct draft *d, const json_t *row)
{
    const json_t *const gap = json_object_get(json_object_get(row, "gaps"), "toolchain");
    struct row_ratio *r = row_ratio_add(&d->gap[TOOLCHAIN], row, json_number(row, "toolchain_gap"), gap);
    const char *name;
    json_t *ratio;

    if (r) {
        const json_t *const same = json_object_get(row, "same_time");
        const double second = json_number(gap, "second_s");

        r->seconds = second > 0 ? second : json_number_value(json_array_get(same, 1));
        engines_text(r->engines, engine_of_row(d, row), engine_of_row(d, row));
        mark_second(r, row);
    }
    json_object_foreach(json_object_get(row, "library_gap"), name, ratio)
        add_library(d, row, name, json_number_value(ratio));
    if (!(r = row_ratio_add(&d->gap[ROOF], row, json_number(row, "roofline"), NULL)))
        return;
    mark_second(r, row);
    snprintf(r->engines, sizeof r->engines, "%.60s", json_text(json_object_get(row, "roof"), "kind"));
}

static void make_gaps(struct draft *d)
{
    json_t *row;
    size_t i;

    d->gap[TOOLCHAIN] = (struct comparison){
        .title = "Toolchain gap", .file = "toolchain", .has_parity = 1, .caption =
        "One kernel with one tune row, built by both compilers: the time on device 1 over that on device 2. "
        "Each mark is a row; the box holds the middle half, the line is the median, and the shaded band is "
        "parity, 0.9 to 1.1." };
    d->gap[LIBRARY] = (struct comparison){
        .title = "Library gap", .file = "library", .has_parity = 1, .caption =
        "The best of ours on device 1 over the library. Where the two sides compute with unlike engines, a "
        "line of its own says so, and its marks are hollow: such a ratio compares methods, not kernels." };
    d->gap[ROOF] = (struct comparison){
        .title = "Share of the roof", .file = "roof", .caption =
        "The least time that the peak and the bandwidth of device 1 allow, as they were measured, over the "
        "time of our best there. The line at 1 is the roof, and the small print names it." };
    json_array_foreach(d->rows, i, row)
        add_gaps(d, row);
}

/* ---- the headline ---- */

static double first_launch(const struct draft *d, const char *side)
{
    return json_number(json_array_get(json_object_get(d->own, "launch"), 0), side);
}

/* Of rows with like engines alone. */
static void library_cards(const struct draft *d)
{
    json_t *groups;
    const char *name;
    char value[CELL], what[64];

    json_object_foreach(json_object_get(d->means, "library_gap"), name, groups) {
        double sum = 0;
        int like = 0, unlike = 0;
        char more[96];

        for (int i = 0; i < d->gap[LIBRARY].count; i++) {
            const struct row_ratio *const r = &d->gap[LIBRARY].it[i];

            if (strcmp(r->versus, name))
                continue;
            like   += !r->unlike;
            unlike += r->unlike;
            sum    += r->unlike ? 0 : log(r->ratio);
        }
        snprintf(what, sizeof what, "our best on device 1 over %.32s", name);
        snprintf(more, sizeof more, "geometric mean of %d row%s with like engines%s", like,
                 like == 1 ? "" : "s", unlike ? "; the others apart" : "");
        html_card(d->to, what, ratio_text(value, like ? exp(sum / like) : 0), more);
    }
}

static void headline(const struct draft *d)
{
    const json_t *const parity = json_object_get(d->own, "parity");
    const double gap = json_number(json_object_get(d->means, "toolchain_gap"), "all");
    char value[CELL], more[CELL + 32], one[CELL], two[CELL];

    html_cards_open(d->to);
    html_card(d->to, "toolchain gap, device 1 over device 2", ratio_text(value, gap),
              gap > 0 ? parity_words(gap) : "no row has both");
    snprintf(value, sizeof value, "%.0f of %.0f", json_number(parity, "within"), json_number(parity, "rows"));
    snprintf(more, sizeof more, "%.0f slower on device 1, %.0f faster", json_number(parity, "slower"),
             json_number(parity, "faster"));
    html_card(d->to, "rows at parity (0.9 to 1.1)", value, more);
    library_cards(d);
    if (first_launch(d, "first") > 0) {
        snprintf(more, sizeof more, "%s on device 2", time_text(two, first_launch(d, "second")));
        html_card(d->to, "to enqueue an empty kernel on device 1", time_text(one, first_launch(d, "first")),
                  more);
    }
    html_cards_close(d->to);
}

/* ---- geometric means ---- */

static void means_row(struct html_table *t, const char *what, const json_t *groups, const char *const *names)
{
    html_cell(t, what);
    for (; *names; names++)
        ratio_cell(t, json_number(groups, *names));
}

static void means_table(const struct draft *d)
{
    enum { TITLES = 32 };
    const char *titles[TITLES + 1] = { "<geometric mean" }, *name;
    char what[64];
    struct html_table t;
    json_t *groups;
    int n = 1;

    json_object_foreach(json_object_get(d->means, "best_gap"), name, groups)
        if (n < TITLES)
            titles[n++] = name;
    if (n == 1)
        return;
    html_head(d->to, "Geometric means");
    html_table_open(&t, d->to, titles);
    means_row(&t, "toolchain gap, kernel time", json_object_get(d->means, "toolchain_gap"), titles + 1);
    means_row(&t, "toolchain gap, wall time", json_object_get(d->means, "toolchain_gap_wall"), titles + 1);
    means_row(&t, "best of ours, device 1 over 2", json_object_get(d->means, "best_gap"), titles + 1);
    json_object_foreach(json_object_get(d->means, "library_gap"), name, groups) {
        snprintf(what, sizeof what, "library gap, %.32s", name);
        means_row(&t, what, groups, titles + 1);
    }
    html_table_close(&t);
}

/* ---- charts ---- */

/* The kernel's time on device 2: the best of ours there. */
static double best_second(const json_t *row)
{
    const double gap = json_number(row, "best_gap");

    return gap > 0 ? json_number(row, "real_time") / gap : 0;
}

static void roofline_figure(struct draft *d, int device)
{
    struct roofline_chart c = { .roofs = 0 };
    char title[64], file[CELL];
    json_t *row;
    size_t i;

    json_array_foreach(d->rows, i, row)
        roofline_add(&c, row, json_object_get(row, device ? "roof_second" : "roof"),
                     device ? best_second(row) : json_number(row, "real_time"));
    snprintf(title, sizeof title, "Roofline of device %d", device + 1);
    snprintf(file, sizeof file, "roofline-%d", device + 1);
    page_roofline(&d->page, file, title, &c, json_object_get(d->device[device], "roofline"));
}

static void figures(struct draft *d)
{
    page_summary(&d->page, &d->gap[TOOLCHAIN]);
    page_summary(&d->page, &d->gap[LIBRARY]);
    page_summary(&d->page, &d->gap[ROOF]);
    facts(d);
    if (d->gap[TOOLCHAIN].count)
        page_figure(&d->page, "toolchain-time", "Toolchain gap against time",
                    "Each row at the time that it takes on device 2, with the 95 % interval of the ratio "
                    "where one was measured; hollow marks were disturbed by other work on the machine.",
                    PLOT_HEIGHT, times_chart, &d->gap[TOOLCHAIN]);
    roofline_figure(d, 0);
    roofline_figure(d, 1);
}

/* ---- tables ---- */

static void once_table(const struct draft *d, const char *member, const char *head, const char *note)
{
    static const char *const titles[] = { "<", "device 1", "device 2", "1/2", NULL };
    const json_t *const entries = json_object_get(d->own, member);
    struct html_table t;
    json_t *entry;
    size_t i;

    if (!json_array_size(entries))
        return;
    html_head(d->to, head);
    html_note(d->to, note);
    html_table_open(&t, d->to, titles);
    json_array_foreach(entries, i, entry) {
        const double one = json_number(entry, "first"), two = json_number(entry, "second");
        const int is_time = !strcmp(json_text(entry, "unit"), "s");

        html_cell(&t, json_text(entry, "name"));
        if (is_time) {
            time_cell(&t, one);
            time_cell(&t, two);
            ratio_cell(&t, one > 0 && two > 0 ? one / two : 0);
        } else {
            ratio_cell(&t, one);
            ratio_cell(&t, two);
            html_cell(&t, "");
        }
    }
    html_table_close(&t);
}

static const char *why_not(const json_t *row)
{
    static const char *const members[] = { "error_message", "skip_message", "disturbed", "toolchain_note" };

    for (int i = 0; i < 4; i++)
        if (*json_text(row, members[i]))
            return json_text(row, members[i]);
    return "";
}

/* The clocks of long runs, and what the libraries launched: "1305 and 1410 MHz; cublas: HGMMA, nvjet_...";
 * or why a ratio is missing.                                                                            */
static const char *note_of(char *out, size_t size, const json_t *row)
{
    const json_t *const gap = gap_named(row, "toolchain"), *run, *kernel;
    size_t i, j, n = 0;

    if (*why_not(row))
        return why_not(row);
    *out = '\0';
    if (json_number(gap, "first_mhz") > 0)
        n = (size_t)snprintf(out, size, "%.0f and %.0f MHz", json_number(gap, "first_mhz"),
                             json_number(gap, "second_mhz"));
    json_array_foreach(json_object_get(row, "runs"), i, run)
        json_array_foreach(json_object_get(run, "kernels"), j, kernel)
            if (n < size)
                n += (size_t)snprintf(out + n, size - n, "%s%s %.48s", j ? "," : n ? "; " : "",
                                      j ? "" : *json_text(run, "instructions")
                                        ? json_text(run, "instructions") : json_text(run, "library"),
                                      json_string_value(kernel));
    return out;
}

static void row_cells(struct html_table *t, const struct draft *d, const json_t *row, const json_t *libraries)
{
    const json_t *const gaps = json_object_get(row, "gaps");
    char text[PROBLEM_TEXT], share[CELL] = "-", note[512];
    json_t *unused;
    const char *name;

    if (json_number(row, "roofline") > 0)
        snprintf(share, sizeof share, "%.0f%%", json_number(row, "roofline") * 100);
    html_cell(t, problem_shown(text, json_text(row, "name")));
    html_cell(t, json_text(row, "variant"));
    html_cell(t, engine_of_row(d, row));
    time_cell(t, json_number(row, "real_time"));
    time_cell(t, best_second(row));
    gap_cell(t, json_number(row, "toolchain_gap"), json_object_get(gaps, "toolchain"));
    gap_cell(t, json_number(row, "toolchain_gap_wall"), json_object_get(gaps, "toolchain_wall"));
    gap_cell(t, json_number(row, "best_gap"), json_object_get(gaps, "best"));
    html_cell(t, share);
    json_object_foreach((json_t *)libraries, name, unused)
        gap_cell(t, json_number(json_object_get(row, "library_gap"), name),
                 json_object_get(json_object_get(gaps, "library"), name));
    html_shaded_cell(t, "faint wrap", note_of(note, sizeof note, row));
}

static void rows_table(const struct page *p, const void *state, const char *suite)
{
    const struct draft *const d = state;
    const char *titles[11 + LIBRARIES] = { "<problem", "<variant", "<engine", "device 1", "device 2",
                                           "toolchain",
                                           "wall", "best", "roof" };
    json_t *libraries = json_object(), *row, *unused;
    struct html_table t;
    const char *name;
    char of_row[64];
    size_t i;
    int n = 9;

    json_object_foreach(json_object_get(d->means, "library_gap"), name, unused)
        if (n < 9 + LIBRARIES) {
            titles[n++] = name;
            json_object_set_new(libraries, name, json_true());
        }
    titles[n++] = "<library's kernels, or note";
    html_note(p->to, "Times are medians of kernel times of the best of ours. Toolchain, wall and best are "
                     "times on device 1 over times on device 2: of one kernel by kernel time and by the "
                     "wall, and of the best of ours on each. Under a library stands our best on device 1 "
                     "over it. Brackets hold 95 % intervals.");
    html_table_open(&t, p->to, titles);
    json_array_foreach(d->rows, i, row)
        if (!strcmp(row_suite(of_row, row), suite))
            row_cells(&t, d, row, libraries);
    html_table_close(&t);
    json_decref(libraries);
}

static const char *classes_text(char *out, size_t size, const json_t *counts)
{
    size_t n = 0;
    const char *name;
    json_t *count;

    *out = '\0';
    json_object_foreach((json_t *)counts, name, count)
        if (strcmp(name, "all") && n < size)
            n += (size_t)snprintf(out + n, size - n, "%s%s %.0f", n ? ", " : "", name,
                                  json_number_value(count));
    return json_object_size(counts) ? out : "unknown";
}

static void kernel_rows(struct html_table *t, const char *kernel, const json_t *made, int device)
{
    json_t *entry;
    const char *name;
    char text[512];

    json_object_foreach(json_object_get(made, "entries"), name, entry) {
        const json_t *const counts = json_object_get(entry, "instructions");

        html_cell(t, kernel);
        html_cell(t, name);
        html_cell(t, device ? "2" : "1");
        count_cell(t, entry, "registers");
        count_cell(t, entry, "spill_bytes");
        count_cell(t, entry, "local_bytes");
        count_cell(t, counts, "all");
        html_shaded_cell(t, "wrap", classes_text(text, sizeof text, counts));
        html_cell(t, *json_text(made, "ptx_hash") ? json_text(made, "ptx_hash") : "none");
    }
    if (json_object_size(json_object_get(made, "entries")))
        return;
    html_cell(t, kernel);
    html_cell(t, "");
    html_cell(t, device ? "2" : "1");
    for (int i = 0; i < 4; i++)
        html_shaded_cell(t, "faint", "unknown");
    html_shaded_cell(t, "faint", "unknown");
    html_cell(t, *json_text(made, "ptx_hash") ? json_text(made, "ptx_hash") : "none");
}

static void kernels_table(const struct draft *d)
{
    static const char *const titles[] = { "<kernel and row", "<entry", "device", "registers", "spilled bytes",
                                          "local memory", "instructions", "<of these", "<PTX hash", NULL };
    struct html_table t;
    json_t *kernel;
    const char *name;

    if (!json_object_size(json_object_get(d->own, "kernels")))
        return;
    html_head(d->to, "What the compilers made of each kernel");
    html_fold_open(d->to, "Registers, spills and instructions", "by kernel, tune row and constants");
    html_note(d->to, "By ptxas and cuobjdump where they are installed. FFMA and DFMA are multiply-adds of "
                     "f32 and f64; HMMA, HGMMA and DMMA run on the matrix engines; LDL and STL are spills. "
                     "Without NVIDIA's tools, or on other devices, this is unknown.");
    html_table_open(&t, d->to, titles);
    json_object_foreach(json_object_get(d->own, "kernels"), name, kernel) {
        if (json_object_get(kernel, "first"))
            kernel_rows(&t, name, json_object_get(kernel, "first"), 0);
        if (json_object_get(kernel, "second"))
            kernel_rows(&t, name, json_object_get(kernel, "second"), 1);
    }
    html_table_close(&t);
    html_fold_close(d->to);
}

/* ---- the method ---- */

static const char *const method[] = {
    "Toolchain gap: one text of a kernel, one tune row, one launch shape, built by the compilers of both "
    "devices with contraction and fast-math off on both. Library gap: our best on device 1 against a "
    "vendor's library; where the two compute with unlike engines, that is said, and no mean holds both "
    "kinds. Roofline gap: against what the device was measured to do with the engine that was used. The "
    "three are never mixed.",
    "Both devices compute on the same random numbers in [-1, 1); never zeros, which save power and raise "
    "clocks. Every result is compared with that of device 1, which an oracle in double precision has "
    "checked, before anything is timed.",
    "All contenders of a row take turns on one machine, a sample each in a round. A time is the median of "
    "its samples; a ratio is the median of the ratios of samples that were taken in one round. Where several "
    "processes measured a row one after the other, a figure is the median of theirs: memory, contexts and "
    "the algorithms that libraries find differ between processes by more than samples of one; other "
    "processes measured it again where the interval of the toolchain gap was wider than ±2 %. Intervals "
    "are of 95 %, by order statistics of the processes, or of the samples of a single one, and hold for the "
    "median; a row with fewer than five says so. On a GPU, samples of runs of 3 ms or more follow a tenth of "
    "a second of the same kernel, and the clock is read behind them: these rows are of continuous launches.",
    "What else ran is read before and after each row. A row that was disturbed is measured again, and marked "
    "if that does not help.",
    "Kernel time is the time between two events of the device around a batch of calls, which begins when all "
    "are queued if the host would be slower; wall time is the host's, with a finish, and is reported apart. "
    "Where the events of either device are no times, kernel time is the wall's.",
    "Transfers are of pageable memory, as malloc gives it, and of pinned memory, as each interface makes it. "
    "Builds are measured in a process of their own, with all caches empty and then full.",
    "Clocks are read before and after each row and are never set.",
    "Parity is 0.9 to 1.1. A row outside it is to be explained from registers, spills, instructions and the "
    "two PTX texts, whose hashes are given.",
};

static void method_section(const struct draft *d)
{
    html_head(d->to, "Method");
    fputs("<ol>\n", d->to);
    for (size_t i = 0; i < sizeof method / sizeof *method; i++) {
        fputs("<li>", d->to);
        html_text(d->to, method[i]);
        fputs("</li>\n", d->to);
    }
    fputs("</ol>\n", d->to);
    html_note(d->to, "The rules follow J. Fang, A. L. Varbanescu and H. Sips, A Comprehensive Performance "
                     "Comparison of CUDA and OpenCL, ICPP 2011. doc/method.md of the source says more.");
}

/* ---- the page ---- */

static void write_text(struct draft *d)
{
    means_table(d);
    once_table(d, "launch", "Launch", "What the host spends on a call. vn_gemm is measured beside the bare "
                                      "calls of the driver that it makes.");
    once_table(d, "transfer", "Transfer", "From and to memory of the host; each call waits for its end.");
    once_table(d, "build", "Build", "A process's first vn_gemm (512 x 512 x 512) with empty caches, and with "
                                    "what that left on disk.");
    kernels_table(d);
    method_section(d);
    page_cite(&d->page, d->context, d->title);
}

int gap_html(const char *path, const char *svg, const json_t *report)
{
    const json_t *const own = json_object_get(report, "vernier"), *const pair = json_object_get(own, "pair");
    struct draft d = {
        .report = report, .rows = json_object_get(report, "benchmarks"), .own = own,
        .means = json_object_get(own, "geomean"), .context = json_object_get(report, "context"),
        .device = { json_array_get(pair, 0), json_array_get(pair, 1) } };
    struct suites suites = { d.gap, COMPARISONS, d.rows, rows_table, &d };
    int failed;

    make_title(&d);
    if (page_open(&d.page, path, svg, d.title))
        return -1;
    d.to = d.page.to;
    make_gaps(&d);
    if (d.to) {
        heading(&d);
        headline(&d);
    }
    figures(&d);
    page_suites(&d.page, &suites);
    if (d.to)
        write_text(&d);
    failed = page_close(&d.page, path);
    for (int i = 0; i < COMPARISONS; i++)
        comparison_close(&d.gap[i]);
    return failed;
}
