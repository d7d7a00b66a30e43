/* SPDX-License-Identifier: Apache-2.0
 *
 * html.c - the gap report as a page: headline figures, charts, tables, and the method.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "commands.h"
#include "gap.h"
#include "problem/op.h"
#include "report/html.h"
#include "report/svg.h"

struct page {
    FILE         *to;
    const json_t *report, *rows, *own, *means;
    const json_t *device[2];
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

/* ---- the headline ---- */

static void card(FILE *to, const char *value, const char *what, const char *more)
{
    fputs("<div class=\"card\"><span>", to);
    html_text(to, what);
    fputs("</span><b>", to);
    html_text(to, value);
    fputs("</b><span>", to);
    html_text(to, more);
    fputs("</span></div>\n", to);
}

static double first_launch(const struct page *p, const char *side)
{
    return json_number(json_array_get(json_object_get(p->own, "launch"), 0), side);
}

static void library_cards(const struct page *p)
{
    json_t *groups;
    const char *name;
    char value[CELL], what[64];

    json_object_foreach(json_object_get(p->means, "library_gap"), name, groups) {
        snprintf(what, sizeof what, "our best on device 1 over %s", name);
        card(p->to, ratio_text(value, json_number(groups, "all")), what, "geometric mean of kernel time");
    }
}

static void headline(const struct page *p)
{
    const json_t *const parity = json_object_get(p->own, "parity");
    const double gap = json_number(json_object_get(p->means, "toolchain_gap"), "all");
    char value[CELL], more[CELL + 32], one[CELL], two[CELL];

    fputs("<div class=\"cards\">\n", p->to);
    card(p->to, ratio_text(value, gap), "toolchain gap, device 1 over device 2",
         gap > 0 ? parity_words(gap) : "no row has both");
    snprintf(value, sizeof value, "%.0f of %.0f", json_number(parity, "within"), json_number(parity, "rows"));
    snprintf(more, sizeof more, "%.0f slower on device 1, %.0f faster", json_number(parity, "slower"),
             json_number(parity, "faster"));
    card(p->to, value, "rows at parity (0.9 to 1.1)", more);
    ratio_text(value, json_number(json_object_get(p->means, "best_gap"), "all"));
    card(p->to, value, "best of ours, device 1 over device 2", "each with its own variant and row");
    library_cards(p);
    if (first_launch(p, "first") > 0) {
        snprintf(more, sizeof more, "%s on device 2", time_text(two, first_launch(p, "second")));
        card(p->to, time_text(one, first_launch(p, "first")), "to enqueue an empty kernel on device 1", more);
    }
    fputs("</div>\n", p->to);
}

static void heading(const struct page *p)
{
    const json_t *const context = json_object_get(p->report, "context");

    fputs("<h1>", p->to);
    html_text(p->to, json_text(p->device[0], "name"));
    fputs("</h1>\n<p class=\"note\">The gap, read by vernier ", p->to);
    html_text(p->to, json_text(context, "library_version"));
    fputs(" on ", p->to);
    html_text(p->to, json_text(context, "date"));
    fputs("</p>\n<ul>\n", p->to);
    for (int i = 0; i < 2; i++) {
        fprintf(p->to, "<li><b>Device %d</b> ", i + 1);
        for (const char *const *it = (const char *const []){ "spec", "name", "platform", "driver", NULL };
             *it; it++) {
            html_text(p->to, json_text(p->device[i], *it));
            fputs(it[1] ? ", " : "", p->to);
        }
        fprintf(p->to, "; kernel time by %s</li>\n", json_text(p->device[i], "kernel_time"));
    }
    fputs("</ul>\n<p>A gap is the time on device 1 over the time it is compared with: above 1, device 1 is "
          "slower.</p>\n", p->to);
}

/* ---- geometric means ---- */

static void means_row(struct html_table *t, const char *what, const json_t *groups, const json_t *names)
{
    const char *name;
    json_t *unused;

    html_cell(t, what);
    json_object_foreach((json_t *)names, name, unused)
        ratio_cell(t, json_number(groups, name));
}

static void means_table(const struct page *p)
{
    enum { TITLES = 32 };
    const json_t *const names = json_object_get(p->means, "best_gap");
    const char *titles[TITLES] = { "<geometric mean" }, *name;
    char what[64];
    struct html_table t;
    json_t *groups;
    int n = 1;

    json_object_foreach((json_t *)names, name, groups)
        if (n < TITLES - 1)
            titles[n++] = name;
    if (n == 1)
        return;
    html_table_open(&t, p->to, titles);
    means_row(&t, "toolchain gap, kernel time", json_object_get(p->means, "toolchain_gap"), names);
    means_row(&t, "toolchain gap, wall time", json_object_get(p->means, "toolchain_gap_wall"), names);
    means_row(&t, "best of ours, device 1 over 2", names, names);
    json_object_foreach(json_object_get(p->means, "library_gap"), name, groups) {
        snprintf(what, sizeof what, "library gap, %s", name);
        means_row(&t, what, groups, names);
    }
    html_table_close(&t);
}

/* ---- bars ---- */

enum { BARS_IN_ONE = 40 };                /* a chart no longer than a page of paper */

static int gather_bars(struct bar *out, char (*names)[PROBLEM_TEXT], const struct page *p,
                       const char *library)
{
    json_t *row;
    size_t i;
    int n = 0;

    json_array_foreach(p->rows, i, row) {
        const double ratio = library ? json_number(json_object_get(row, "library_gap"), library)
                                     : json_number(row, "toolchain_gap");

        if (ratio > 0) {
            out[n] = (struct bar){ problem_shown(names[n], json_text(row, "name")), ratio };
            n++;
        }
    }
    return n;
}

static void bars_of(const struct page *p, const char *title, const char *library)
{
    const size_t rows = json_array_size(p->rows);
    struct bar *const bars = calloc(rows ? rows : 1, sizeof *bars);
    char (*const names)[PROBLEM_TEXT] = calloc(rows ? rows : 1, sizeof *names);
    const int count = bars && names ? gather_bars(bars, names, p, library) : 0;

    if (count) {
        fputs("<h3>", p->to);
        html_text(p->to, title);
        fputs("</h3>\n", p->to);
    }
    for (int i = 0; i < count; i += BARS_IN_ONE)
        svg_bars(p->to, title, bars + i, count - i < BARS_IN_ONE ? count - i : BARS_IN_ONE);
    free(bars);
    free(names);
}

static void all_bars(const struct page *p)
{
    json_t *groups;
    const char *name;
    char title[96];

    html_head(p->to, "The gaps, row by row");
    html_note(p->to, "Grey bars lie in the parity band (0.9 to 1.1, shaded); to the right device 1 is "
                     "slower, to the left faster. The scale is logarithmic.");
    bars_of(p, "Toolchain gap: one kernel and one row, device 1 over device 2", NULL);
    json_object_foreach(json_object_get(p->means, "library_gap"), name, groups) {
        snprintf(title, sizeof title, "Library gap: our best on device 1 over %s", name);
        bars_of(p, title, name);
    }
}

/* ---- plots ---- */

enum { PLOT_WIDTH = 900, PLOT_HEIGHT = 500, LEFT = 100, RIGHT = 880, TOP = 40, BOTTOM = 440 };

/* The kernel's time on device 2: the best of ours there. */
static double best_second(const json_t *row)
{
    const double gap = json_number(row, "best_gap");

    return gap > 0 ? json_number(row, "real_time") / gap : 0;
}

/* Of the one kernel that ran on both. */
static double same_time(const json_t *row, int device)
{
    return json_number_value(json_array_get(json_object_get(row, "same_time"), (size_t)device));
}

static double peak_of(const json_t *device, const char *name)
{
    return json_number(json_object_get(device, "roofline"), name) * 1e9;
}

static void roof(const struct page *p, const struct frame *f, int device, const char *peak_name)
{
    const double peak = peak_of(p->device[device], peak_name),
                 bandwidth = peak_of(p->device[device], "gbytes_per_second");
    const char *const style = device ? "red-line" : "blue-line";
    char label[64], flops[32];

    if (!(peak > 0) || !(bandwidth > 0))
        return;

    const double ridge = peak / bandwidth, from = fmax(f->x.low, f->y.low / bandwidth);

    svg_line(p->to, style, axis_at(&f->x, from), axis_at(&f->y, from * bandwidth), axis_at(&f->x, ridge),
             axis_at(&f->y, fmin(peak, ridge * bandwidth)));
    svg_line(p->to, style, axis_at(&f->x, ridge), axis_at(&f->y, peak), axis_at(&f->x, f->x.high),
             axis_at(&f->y, peak));
    snprintf(label, sizeof label, "%s, device %d: %s", peak_name + strlen("gflops_"), device + 1,
             flops_label(flops, peak));
    svg_text(p->to, "faint end", f->x.to - 6, axis_at(&f->y, peak) + (device ? 16 : -6), label);
}

static void legend(FILE *to, double x, const char *style, enum mark shape, const char *text)
{
    svg_mark(to, style, shape, x, 20, "");
    svg_text(to, "", x + 10, 24, text);
}

static void roofline_points(const struct page *p, const struct frame *f)
{
    json_t *row;
    size_t i;

    json_array_foreach(p->rows, i, row) {
        const double intensity = json_number(row, "flops") / json_number(row, "bytes"),
                     first = json_number(row, "real_time");
        const double second = best_second(row);

        if (!(first > 0))
            continue;
        svg_mark(p->to, "blue mark", CIRCLE, axis_at(&f->x, intensity),
                 axis_at(&f->y, json_number(row, "flops") / first), json_text(row, "name"));
        if (second > 0)
            svg_mark(p->to, "hollow", SQUARE, axis_at(&f->x, intensity),
                     axis_at(&f->y, json_number(row, "flops") / second), json_text(row, "name"));
    }
}

/* Room for everything on both axes: points, and the roofs. */
static int plot_range(struct frame *f, const struct page *p)
{
    const size_t rows = json_array_size(p->rows), room = 2 * rows + 8;
    double *const x = calloc(room, sizeof *x), *const y = calloc(room, sizeof *y);
    json_t *row;
    size_t i;
    int n = 0;

    if (x && y)
        json_array_foreach(p->rows, i, row)
            for (int k = 0; k < 2; k++) {
                const double seconds = k ? best_second(row) : json_number(row, "real_time");

                if (seconds > 0) {
                    x[n]   = json_number(row, "flops") / json_number(row, "bytes");
                    y[n++] = json_number(row, "flops") / seconds;
                }
            }
    if (n) {
        const int points = n;

        for (int k = 0; k < 2; k++) {
            y[n++] = peak_of(p->device[k], "gflops_f32");
            y[n++] = peak_of(p->device[k], "gflops_f64");
        }
        f->x = axis_around(x, points, LEFT, RIGHT);
        f->y = axis_around(y, n, BOTTOM, TOP);
    }
    free(x);
    free(y);
    return n;
}

static void roofline_plot(const struct page *p)
{
    struct frame f = { .x_name = "FLOP per byte", .y_name = "FLOP/s", .x_label = plain_label,
                       .y_label = flops_label };

    if (!plot_range(&f, p))
        return;
    html_head(p->to, "Roofline");
    html_note(p->to, "The roofs were measured on each device at the start: fused multiply-adds without "
                     "memory, and a copy. Rows of 16-bit types that run on matrix engines may lie above the "
                     "f32 roof, and rows whose data stays in a cache above the slope.");
    svg_open(p->to, PLOT_WIDTH, PLOT_HEIGHT, "roofline plot of both devices");
    svg_frame(p->to, &f);
    for (int i = 0; i < 2; i++) {
        roof(p, &f, i, "gflops_f32");
        roof(p, &f, i, "gflops_f64");
    }
    roofline_points(p, &f);
    legend(p->to, LEFT + 150, "blue mark", CIRCLE, "device 1");
    legend(p->to, LEFT + 250, "hollow", SQUARE, "device 2");
    svg_close(p->to);
}

/* How the points of an operation look: no two of the first nine alike. */
struct look { const char *style; enum mark mark; };

static struct look look_of(int op)
{
    static const char *const styles[] = { "blue mark", "red mark", "green mark" };
    static const enum mark marks[] = { CIRCLE, TRIANGLE, SQUARE };

    return (struct look){ styles[op % 3], marks[(op + op / 3) % 3] };
}

static void draw_band(FILE *to, const struct axis *x, const struct axis *y)
{
    const double low = x->low, high = x->high;

    fprintf(to, "<clipPath id=\"frame\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                "height=\"%.1f\"/></clipPath>\n",
            x->from, y->to, x->to - x->from, y->from - y->to);
    /* in logarithms a ratio is a distance */
    const double up = (y->from - y->to) * log(1.1) / log(y->high / y->low),
                 down = (y->from - y->to) * -log(0.9) / log(y->high / y->low);

    fprintf(to, "<path clip-path=\"url(#frame)\" class=\"band\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fL%.1f "
                "%.1fz\"/>\n",
            axis_at(x, low), axis_at(y, low) - up, axis_at(x, high), axis_at(y, high) - up,
            axis_at(x, high), axis_at(y, high) + down, axis_at(x, low), axis_at(y, low) + down);
    svg_line(to, "axis", axis_at(x, low), axis_at(y, low), axis_at(x, high), axis_at(y, high));
}

static void scatter_points(const struct page *p, const struct axis *x, const struct axis *y)
{
    json_t *row;
    size_t i;

    json_array_foreach(p->rows, i, row) {
        const double second = same_time(row, SECOND);
        char hint[PROBLEM_TEXT + 32];
        int k = 0;

        while (ops[k] && strcmp(ops[k]->name, json_text(row, "op")))
            k++;
        snprintf(hint, sizeof hint, "%s: %.3f", json_text(row, "name"), json_number(row, "toolchain_gap"));
        if (second > 0)
            svg_mark(p->to, look_of(k).style, look_of(k).mark, axis_at(x, second),
                     axis_at(y, same_time(row, FIRST)), hint);
    }
}

static int scatter_range(struct frame *f, const struct page *p)
{
    double *const v = calloc(2 * json_array_size(p->rows) + 1, sizeof *v);
    json_t *row;
    size_t i;
    int n = 0;

    if (v)
        json_array_foreach(p->rows, i, row)
            for (int k = 0; k < 2; k++)
                if (same_time(row, k) > 0)
                    v[n++] = same_time(row, k);
    f->x = axis_around(v, n, LEFT, RIGHT);
    f->y = axis_around(v, n, BOTTOM, TOP);
    free(v);
    return n;
}

static void scatter_plot(const struct page *p)
{
    struct frame f = { .x_name = "time on device 2", .y_name = "time on device 1", .x_label = seconds_label,
                       .y_label = seconds_label };

    if (!scatter_range(&f, p))
        return;
    html_head(p->to, "Shape by shape");
    html_note(p->to, "One kernel with one tune row on both devices. On the line both take the same time; the "
                     "shaded band is parity; above it device 1 is slower.");
    svg_open(p->to, PLOT_WIDTH, PLOT_HEIGHT, "time on device 1 against time on device 2");
    draw_band(p->to, &f.x, &f.y);
    svg_frame(p->to, &f);
    scatter_points(p, &f.x, &f.y);
    for (int k = 0; ops[k]; k++)
        legend(p->to, LEFT + 150 + 100 * k, look_of(k).style, look_of(k).mark, ops[k]->name);
    svg_close(p->to);
}

/* ---- tables ---- */

static void once_table(const struct page *p, const char *member, const char *head, const char *note)
{
    static const char *const titles[] = { "<", "device 1", "device 2", "1/2", NULL };
    const json_t *const entries = json_object_get(p->own, member);
    struct html_table t;
    json_t *entry;
    size_t i;

    if (!json_array_size(entries))
        return;
    html_head(p->to, head);
    html_note(p->to, note);
    html_table_open(&t, p->to, titles);
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
    static const char *const members[] = { "error_message", "skip_message", "toolchain_note" };

    for (int i = 0; i < 3; i++)
        if (*json_text(row, members[i]))
            return json_text(row, members[i]);
    return "";
}

/* What the libraries launched: "cublas: HGMMA, nvjet_hsh_..."; or why a ratio is missing. */
static const char *note_of(char *out, size_t size, const json_t *row)
{
    const json_t *run, *kernel;
    size_t i, j, n = 0;

    if (*why_not(row))
        return why_not(row);
    *out = '\0';
    json_array_foreach(json_object_get(row, "runs"), i, run)
        json_array_foreach(json_object_get(run, "kernels"), j, kernel)
            if (n < size)
                n += (size_t)snprintf(out + n, size - n, "%s%s %.48s", j ? "," : n ? "; " : "",
                                      j ? "" : *json_text(run, "instructions")
                                        ? json_text(run, "instructions") : json_text(run, "library"),
                                      json_string_value(kernel));
    return out;
}

static void rows_table(const struct page *p)
{
    const char *titles[10 + LIBRARIES] = { "<problem", "<variant", "device 1", "device 2", "toolchain",
                                           "wall", "best", "roofline" };
    const json_t *const libraries = json_object_get(p->means, "library_gap");
    struct html_table t;
    json_t *row, *unused;
    const char *name;
    size_t i;
    int n = 8;

    html_head(p->to, "All rows");
    html_note(p->to, "Times are kernel times of the best of ours. Toolchain, wall and best are times on "
                     "device 1 over times on device 2: of one kernel by kernel time and by the wall, and of "
                     "the best of ours on each. Under a library stands our best on device 1 over it.");
    json_object_foreach((json_t *)libraries, name, unused)
        if (n < 8 + LIBRARIES)
            titles[n++] = name;
    titles[n++] = "<library's kernels, or note";
    html_table_open(&t, p->to, titles);
    json_array_foreach(p->rows, i, row) {
        char text[PROBLEM_TEXT], share[CELL] = "-", note[512];

        if (json_number(row, "roofline") > 0)
            snprintf(share, sizeof share, "%.0f%%", json_number(row, "roofline") * 100);
        html_cell(&t, problem_shown(text, json_text(row, "name")));
        html_cell(&t, json_text(row, "variant"));
        time_cell(&t, json_number(row, "real_time"));
        time_cell(&t, best_second(row));
        ratio_cell(&t, json_number(row, "toolchain_gap"));
        ratio_cell(&t, json_number(row, "toolchain_gap_wall"));
        ratio_cell(&t, json_number(row, "best_gap"));
        html_cell(&t, share);
        json_object_foreach((json_t *)libraries, name, unused)
            ratio_cell(&t, json_number(json_object_get(row, "library_gap"), name));
        html_shaded_cell(&t, "faint wrap", note_of(note, sizeof note, row));
    }
    html_table_close(&t);
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

static void kernels_table(const struct page *p)
{
    static const char *const titles[] = { "<kernel and row", "<entry", "device", "registers", "spilled bytes",
                                          "local memory", "instructions", "<of these", "<PTX hash", NULL };
    struct html_table t;
    json_t *kernel;
    const char *name;

    if (!json_object_size(json_object_get(p->own, "kernels")))
        return;
    html_head(p->to, "What the compilers made of each kernel");
    html_note(p->to, "By ptxas and cuobjdump where they are installed. FFMA and DFMA are multiply-adds of "
                     "f32 and f64; HMMA, HGMMA and DMMA run on the matrix engines; LDL and STL are spills. "
                     "Without NVIDIA's tools, or on other devices, this is unknown.");
    html_table_open(&t, p->to, titles);
    json_object_foreach(json_object_get(p->own, "kernels"), name, kernel) {
        if (json_object_get(kernel, "first"))
            kernel_rows(&t, name, json_object_get(kernel, "first"), 0);
        if (json_object_get(kernel, "second"))
            kernel_rows(&t, name, json_object_get(kernel, "second"), 1);
    }
    html_table_close(&t);
}

/* ---- the method ---- */

static const char *const method[] = {
    "Toolchain gap: one text of a kernel, one tune row, one launch shape, built by the compilers of both "
    "devices with contraction and fast-math off on both. Library gap: our best on device 1 against a "
    "vendor's library, at equal precision. Roofline gap: against what the device was measured to do. The "
    "three are never mixed.",
    "Both devices compute on the same random numbers in [-1, 1); never zeros, which save power and raise "
    "clocks. Every result is compared with that of device 1, which an oracle in double precision has "
    "checked, before anything is timed.",
    "All runners take turns on one machine, with fixed warm-up runs, each for the same share of the time. "
    "Times are medians.",
    "Kernel time is the time between two events of the device around a batch of calls, which begins when all "
    "are queued if the host would be slower; wall time is the host's, with a finish, and is reported apart. "
    "Where the events of either device are no times, kernel time is the wall's.",
    "Transfers are of pageable memory, as malloc gives it, and of pinned memory, as each interface makes it. "
    "Builds are measured in a process of their own, with all caches empty and then full.",
    "Clocks are read before and after each row and are never set.",
    "Parity is 0.9 to 1.1. A row outside it is to be explained from registers, spills, instructions and the "
    "two PTX texts, whose hashes are given.",
};

static void method_section(const struct page *p)
{
    html_head(p->to, "Method");
    fputs("<ol>\n", p->to);
    for (size_t i = 0; i < sizeof method / sizeof *method; i++) {
        fputs("<li>", p->to);
        html_text(p->to, method[i]);
        fputs("</li>\n", p->to);
    }
    fputs("</ol>\n", p->to);
    html_note(p->to, "The rules follow J. Fang, A. L. Varbanescu and H. Sips, A Comprehensive Performance "
                     "Comparison of CUDA and OpenCL, ICPP 2011. doc/method.md of the source says more.");
}

/* ---- the page ---- */

static void write_page(const struct page *p)
{
    char title[192];

    snprintf(title, sizeof title, "vernier gap: %s", json_text(p->device[0], "name"));
    html_open(p->to, title);
    heading(p);
    headline(p);
    means_table(p);
    all_bars(p);
    scatter_plot(p);
    roofline_plot(p);
    once_table(p, "launch", "Launch", "What the host spends on a call. vn_gemm is measured beside the bare "
                                      "calls of the driver that it makes.");
    once_table(p, "transfer", "Transfer", "From and to memory of the host; each call waits for its end.");
    once_table(p, "build", "Build", "A process's first vn_gemm (512 x 512 x 512) with empty caches, and with "
                                    "what that left on disk.");
    rows_table(p);
    kernels_table(p);
    method_section(p);
    html_close(p->to);
}

int gap_html(const char *path, const json_t *report)
{
    const json_t *const own = json_object_get(report, "vernier"), *const pair = json_object_get(own, "pair");
    const struct page page = {
        .to = fopen(path, "w"), .report = report, .rows = json_object_get(report, "benchmarks"), .own = own,
        .means = json_object_get(own, "geomean"),
        .device = { json_array_get(pair, 0), json_array_get(pair, 1) } };
    int failed = !page.to;

    if (page.to) {
        write_page(&page);
        failed = ferror(page.to) | fclose(page.to);
    }
    if (failed)
        complain("the report cannot be written to \"%s\"", path);
    return failed ? -1 : 0;
}
