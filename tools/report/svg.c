/* SPDX-License-Identifier: Apache-2.0
 *
 * svg.c - charts inside a page of html.h.
 */
#include <math.h>
#include <string.h>
#include "html.h"
#include "svg.h"

/* ---- axes ---- */

struct axis axis_around(const double *v, int count, double from, double to)
{
    double low = INFINITY, high = 0;

    for (int i = 0; i < count; i++)
        if (v[i] > 0) {
            low  = fmin(low, v[i]);
            high = fmax(high, v[i]);
        }
    if (!(high > 0))
        low = high = 1;
    low  = pow(10, floor(log10(low * 0.9)));
    high = pow(10, ceil(log10(high * 1.1)));
    return (struct axis){ low, high > low ? high : 10 * low, from, to };
}

double axis_at(const struct axis *a, double v)
{
    const double share = log(fmin(fmax(v, a->low), a->high) / a->low) / log(a->high / a->low);

    return a->from + share * (a->to - a->from);
}

const char *seconds_label(char out[32], double seconds)
{
    static const struct { double unit; const char *name; } units[] = {
        { 1, "s" }, { 1e-3, "ms" }, { 1e-6, "us" }, { 1e-9, "ns" } };
    int i = 0;

    while (i < 3 && seconds < units[i].unit * 0.999)
        i++;
    snprintf(out, 32, "%.3g %s", seconds / units[i].unit, units[i].name);
    return out;
}

const char *flops_label(char out[32], double flops)
{
    static const struct { double unit; const char *name; } units[] = {
        { 1e15, "PFLOP/s" }, { 1e12, "TFLOP/s" }, { 1e9, "GFLOP/s" }, { 1e6, "MFLOP/s" } };
    int i = 0;

    while (i < 3 && flops < units[i].unit * 0.999)
        i++;
    snprintf(out, 32, "%.3g %s", flops / units[i].unit, units[i].name);
    return out;
}

const char *plain_label(char out[32], double v)
{
    snprintf(out, 32, "%g", v);
    return out;
}

/* ---- shapes ---- */

void svg_open(FILE *to, int width, int height, const char *title)
{
    fprintf(to, "<div class=\"scroll\"><svg class=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"",
            width, height);
    html_text(to, title);
    fprintf(to, "\" style=\"max-width:%dpx\">\n", width);
}

void svg_close(FILE *to)
{
    fputs("</svg></div>\n", to);
}

void svg_line(FILE *to, const char *style, double x1, double y1, double x2, double y2)
{
    fprintf(to, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", style, x1, y1,
            x2, y2);
}

void svg_rect(FILE *to, const char *style, double x, double y, double width, double height)
{
    fprintf(to, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", style, x, y,
            width, height);
}

void svg_text(FILE *to, const char *style, double x, double y, const char *text)
{
    fprintf(to, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", style, x, y);
    html_text(to, text);
    fputs("</text>\n", to);
}

void svg_mark(FILE *to, const char *style, enum mark shape, double x, double y, const char *hint)
{
    fprintf(to, "<g class=\"%s\">", style);
    if (*hint) {
        fputs("<title>", to);
        html_text(to, hint);
        fputs("</title>", to);
    }
    switch (shape) {
    case CIRCLE:   fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>", x, y);                    break;
    case SQUARE:   fprintf(to, "<rect x=\"%.1f\" y=\"%.1f\" width=\"8\" height=\"8\"/>", x - 4, y - 4); break;
    case TRIANGLE: fprintf(to, "<path d=\"M%.1f %.1fl5 9h-10z\"/>", x, y - 5.5);                        break;
    }
    fputs("</g>\n", to);
}

/* ---- frames ---- */

static void draw_x(FILE *to, const struct frame *f)
{
    char label[32];

    for (double v = f->x.low; v < f->x.high * 1.5; v *= 10) {
        const double x = axis_at(&f->x, v);

        svg_line(to, "grid", x, f->y.from, x, f->y.to);
        svg_text(to, "faint middle", x, f->y.from + 18, f->x_label(label, v));
    }
    svg_text(to, "middle", (f->x.from + f->x.to) / 2, f->y.from + 38, f->x_name);
}

static void draw_y(FILE *to, const struct frame *f)
{
    char label[32];

    for (double v = f->y.low; v < f->y.high * 1.5; v *= 10) {
        const double y = axis_at(&f->y, v);

        svg_line(to, "grid", f->x.from, y, f->x.to, y);
        svg_text(to, "faint end", f->x.from - 8, y + 4, f->y_label(label, v));
    }
    svg_text(to, "", f->x.from - 70, f->y.to - 14, f->y_name);
}

void svg_frame(FILE *to, const struct frame *f)
{
    draw_x(to, f);
    draw_y(to, f);
    svg_rect(to, "axis", f->x.from, f->y.to, f->x.to - f->x.from, f->y.from - f->y.to);
}

/* ---- bars ---- */

enum { BAR_WIDTH = 900, BAR_STEP = 18, BAR_TOP = 28, NAME_WIDTH = 330, VALUE_WIDTH = 60 };

/* 1 in the middle, symmetric, and as wide as the widest ratio needs; with a tick between. */
static const struct { double edge, tick; } scales[] = {
    { 1.25, 1.1 }, { 1.5, 1.2 }, { 2, 1.4 }, { 4, 2 }, { 8, 3 }, { 16, 4 }, { 64, 8 }, { 1000, 30 } };

enum { SCALES = sizeof scales / sizeof *scales };

static int scale_for(const struct bar *bars, int count)
{
    double worst = 1;
    int i = 0;

    for (int k = 0; k < count; k++)
        worst = fmax(worst, fmax(bars[k].ratio, 1 / bars[k].ratio));
    while (i < SCALES - 1 && scales[i].edge < worst)
        i++;
    return i;
}

static void bar_scale(FILE *to, const struct axis *a, double tick, double bottom)
{
    const double middle = axis_at(a, 1), ticks[] = { a->low, 1 / tick, 1, tick, a->high };

    svg_rect(to, "band", axis_at(a, 0.9), BAR_TOP - 6, axis_at(a, 1.1) - axis_at(a, 0.9),
             bottom - BAR_TOP + 6);
    for (int i = 0; i < 5; i++) {
        char label[32];

        svg_line(to, "grid", axis_at(a, ticks[i]), BAR_TOP - 6, axis_at(a, ticks[i]), bottom);
        snprintf(label, sizeof label, ticks[i] < 0.995 ? "%.2g" : "%g", ticks[i]);
        svg_text(to, "faint middle", axis_at(a, ticks[i]), BAR_TOP - 12, label);
    }
    svg_line(to, "axis", middle, BAR_TOP - 6, middle, bottom);
}

void svg_bars(FILE *to, const char *title, const struct bar *bars, int count)
{
    const int bottom = BAR_TOP + count * BAR_STEP, scale = scale_for(bars, count);
    const struct axis a = { 1 / scales[scale].edge, scales[scale].edge, NAME_WIDTH, BAR_WIDTH - VALUE_WIDTH };

    svg_open(to, BAR_WIDTH, bottom + 6, title);
    bar_scale(to, &a, scales[scale].tick, bottom);
    for (int i = 0; i < count; i++) {
        const double one = axis_at(&a, 1), x = axis_at(&a, bars[i].ratio), y = BAR_TOP + i * BAR_STEP;
        const char *const style = bars[i].ratio > 1.1 ? "red" : bars[i].ratio < 0.9 ? "blue" : "grey";
        char value[32], name[64];

        snprintf(name, sizeof name, "%.45s%s", bars[i].name, strlen(bars[i].name) > 45 ? "..." : "");
        svg_text(to, "mono end", NAME_WIDTH - 10, y + 12, name);
        svg_rect(to, style, fmin(one, x), y + 3, fmax(fabs(x - one), 1), BAR_STEP - 6);
        snprintf(value, sizeof value, bars[i].ratio < 0.095 ? "%.2g" : bars[i].ratio < 10 ? "%.2f" : "%.1f",
                 bars[i].ratio);
        svg_text(to, "mono end", BAR_WIDTH - 8, y + 12, value);
    }
    svg_close(to);
}
