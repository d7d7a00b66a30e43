/* SPDX-License-Identifier: Apache-2.0
 *
 * svg.c - drawings, in a page and in files of their own.
 *
 * Colours are of Okabe and Ito's palette, which the colour-blind can tell apart; marks also differ in shape.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "html.h"
#include "svg.h"

/* ---- style ---- */

/* $name is a colour: a variable in a page, where a dark theme sets it, and fixed in a file. */
static const char style[] =
    "svg text { font: 12px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; fill: "
    "$ink;\n"
    "           paint-order: stroke; stroke: $paper; stroke-width: 3px; stroke-linejoin: round }\n"
    "svg .faint { fill: $faint; font-size: 11px } svg .bold { font-weight: 600 }\n"
    "svg .mono { font: 11px ui-monospace, 'DejaVu Sans Mono', monospace }\n"
    "svg .end { text-anchor: end } svg .middle { text-anchor: middle }\n"
    "svg .grid { stroke: $line } svg .one { stroke: $grey; stroke-width: 1.5 }\n"
    "svg .band { fill: $band } svg .box { fill: $grey; fill-opacity: .3; stroke: $grey }\n"
    "svg .median { stroke: $ink; stroke-width: 2.5 } svg .error { stroke: $ink; stroke-width: 1.25 }\n"
    "svg .blue { fill: $blue } svg .red { fill: $red } svg .green { fill: $green } svg .pink { fill: $pink "
    "}\n"
    "svg .grey { fill: $grey } svg .mark { fill-opacity: .7; stroke: $paper; stroke-width: .6 }\n"
    "svg .hollow { fill-opacity: 0; stroke-width: 1.5 } svg .blue.hollow { stroke: $blue }\n"
    "svg .red.hollow { stroke: $red } svg .green.hollow { stroke: $green } svg .pink.hollow { stroke: "
    "$pink }\n"
    "svg .grey.hollow { stroke: $grey }\n"
    "svg line.blue { stroke: $blue } svg line.red { stroke: $red } svg line.green { stroke: $green }\n"
    "svg line.pink { stroke: $pink } svg line.roof { stroke-width: 1.75 }\n"
    "svg line.dashed { stroke-dasharray: 6 4 }\n";

static const struct { const char *name, *value; } colours[] = {
    { "ink", "#1b1f24" }, { "faint", "#5d6670" }, { "line", "#d5dae0" }, { "band", "#e4ecf3" },
    { "paper", "#ffffff" }, { "blue", "#0072b2" }, { "red", "#d55e00" }, { "green", "#009e73" },
    { "pink", "#b3568c" }, { "grey", "#7b8794" } };

static const char *colour(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof colours / sizeof *colours; i++)
        if (strlen(colours[i].name) == length && !strncmp(colours[i].name, name, length))
            return colours[i].value;
    return "currentColor";
}

void svg_style(FILE *to, int in_page)
{
    for (const char *at = style; *at;) {
        static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
        const size_t n = strcspn(at, "$"), name = strspn(at + n + (at[n] == '$'), letters);

        fwrite(at, 1, n, to);
        at += n;
        if (!*at)
            return;
        if (in_page)
            fprintf(to, "var(--%.*s)", (int)name, at + 1);
        else
            fputs(colour(at + 1, name), to);
        at += 1 + name;
    }
}

/* ---- shapes ---- */

static const char *across(char out[24], const struct svg *s, double x)
{
    snprintf(out, 24, s->width > 0 ? "%.1f" : "%.2f%%", x * (s->width > 0 ? s->width : 100));
    return out;
}

void svg_open(struct svg *s, FILE *to, double width, double height, const char *title)
{
    *s = (struct svg){ to, width };
    if (width > 0)
        fprintf(to, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
                    "width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n<title>",
                width, height, width, height);
    else
        fprintf(to, "<svg class=\"plot\" width=\"100%%\" height=\"%.0f\" role=\"img\">\n<title>", height);
    html_text(to, title);
    fputs("</title>\n", to);
    if (width > 0) {
        fputs("<style>\n", to);
        svg_style(to, 0);
        fputs("</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n", to);
    }
}

void svg_close(struct svg *s)
{
    fputs("</svg>\n", s->to);
}

void svg_line(const struct svg *s, const char *style_, double x1, double y1, double x2, double y2)
{
    char a[24], b[24];

    fprintf(s->to, "<line class=\"%s\" x1=\"%s\" y1=\"%.1f\" x2=\"%s\" y2=\"%.1f\"/>\n", style_,
            across(a, s, x1), y1, across(b, s, x2), y2);
}

void svg_rect(const struct svg *s, const char *style_, double x1, double y1, double x2, double y2)
{
    char a[24], b[24];

    fprintf(s->to, "<rect class=\"%s\" x=\"%s\" y=\"%.1f\" width=\"%s\" height=\"%.1f\"/>\n", style_,
            across(a, s, fmin(x1, x2)), fmin(y1, y2), across(b, s, fabs(x2 - x1)), fabs(y2 - y1));
}

void svg_text(const struct svg *s, const char *style_, double x, double y, const char *text)
{
    char a[24];

    fprintf(s->to, "<text class=\"%s\" x=\"%s\" y=\"%.1f\">", style_, across(a, s, x), y);
    html_text(s->to, text);
    fputs("</text>\n", s->to);
}

/* A path has no shares of the width: it lies in an svg of its own, which has. */
void svg_mark(const struct svg *s, const char *style_, enum mark shape, double x, double y, const char *hint)
{
    static const char *const paths[MARKS] = {
        [CIRCLE]   = "<circle r=\"4\"/>",
        [SQUARE]   = "<rect x=\"-3.5\" y=\"-3.5\" width=\"7\" height=\"7\"/>",
        [DIAMOND]  = "<path d=\"M0-5.5L5.5 0L0 5.5L-5.5 0z\"/>",
        [TRIANGLE] = "<path d=\"M0-5L5 4H-5z\"/>" };
    char a[24];

    fprintf(s->to, "<svg x=\"%s\" y=\"%.1f\" overflow=\"visible\" class=\"%s\">", across(a, s, x), y, style_);
    if (hint) {
        fputs("<title>", s->to);
        html_text(s->to, hint);
        fputs("</title>", s->to);
    }
    fprintf(s->to, "%s</svg>\n", paths[shape]);
}

/* ---- axes ---- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The decimal logarithms of those that have one, in order; their number. */
static int logarithms(double *out, const double *v, int count)
{
    int n = 0;

    for (int i = 0; i < count; i++)
        if (v[i] > 0 && isfinite(v[i]))
            out[n++] = log10(v[i]);
    qsort(out, (size_t)n, sizeof *out, by_size);
    return n;
}

struct axis axis_around(const double *v, int count, double from, double to)
{
    double *const logs = calloc(count > 0 ? (size_t)count : 1, sizeof *logs);
    const int n = logs ? logarithms(logs, v, count) : 0;
    struct axis a = { .low = 0.1, .high = 10, .from = from, .to = to };
    double low, high, room;

    if (n) {
        /* powers of ten that a double has, with all that lies between them */
        low  = fmax(fmax(logs[0], logs[n / 2] - AXIS_DECADES / 2), -290);
        high = fmin(fmin(logs[n - 1], logs[n / 2] + AXIS_DECADES / 2), 290);
        low  = fmin(low, 290 - 1);
        high = fmax(high, low);
        for (int i = 0; i < n; i++)
            a.outside += logs[i] < low || logs[i] > high;
        room   = fmax(0.04 * (high - low), high - low < 0.02 ? 0.02 : 0);
        a.low  = pow(10, low - room);
        a.high = pow(10, high + room);
    }
    free(logs);
    return a;
}

double axis_at(const struct axis *a, double v)
{
    const double share = log(fmin(fmax(v, a->low), a->high) / a->low) / log(a->high / a->low);

    return a->from + share * (a->to - a->from);
}

/* Multiples of a power of ten within each decade, or of a step. */
static int decade_ticks(double out[TICKS], const struct axis *a, const double *of, int count, int every)
{
    int n = 0;

    for (int e = (int)floor(log10(a->low)) - 1; e <= (int)ceil(log10(a->high)); e++)
        for (int i = 0; i < count && e % every == 0; i++) {
            const double v = of[i] * pow(10, e);

            if (v >= a->low && v <= a->high && n < TICKS)
                out[n++] = v;
            else if (v >= a->low && v <= a->high)
                return TICKS + 1;
        }
    return n;
}

static int step_ticks(double out[TICKS], const struct axis *a, double step)
{
    const double first = ceil(a->low / step - 1e-9);
    int n = 0;

    if (a->high / step - first >= TICKS)
        return TICKS + 1;
    for (; (first + n) * step <= a->high * (1 + 1e-9); n++)
        out[n] = (first + n) * step;
    return n;
}

static int are_apart(const double *tick, int n, const struct axis *a, double apart)
{
    for (int i = 1; i < n && n <= TICKS; i++)
        if (fabs(axis_at(a, tick[i]) - axis_at(a, tick[i - 1])) < apart)
            return 0;
    return n <= TICKS;
}

int axis_ticks(double out[TICKS], const struct axis *a, double apart)
{
    static const double in_decade[] = { 1, 2, 5 };
    int n;

    /* steps only where they look even */
    for (double unit = pow(10, floor(log10(a->high)) - 3); a->high / a->low < 4 && unit < a->high; unit *= 10)
        for (int i = 0; i < 3; i++)
            if ((n = step_ticks(out, a, in_decade[i] * unit)) >= 2 && are_apart(out, n, a, apart))
                return n;
    if ((n = decade_ticks(out, a, in_decade, 3, 1)) >= 2 && are_apart(out, n, a, apart))
        return n;
    for (int every = 1; every <= AXIS_DECADES; every++)
        if (are_apart(out, n = decade_ticks(out, a, in_decade, 1, every), a, apart))
            return n;
    return 0;
}

void svg_x_axis(const struct svg *s, const struct axis *x, double top, double bottom, axis_label *label)
{
    double tick[TICKS];
    const int n = axis_ticks(tick, x, label == seconds_label ? 0.13 : 0.1);

    for (int i = 0; i < n; i++) {
        const double at = axis_at(x, tick[i]);
        char text[32];

        svg_line(s, "grid", at, top, at, bottom);
        svg_text(s, "faint middle", at, bottom + 14, label(text, tick[i]));
        if (bottom - top > TALL)
            svg_text(s, "faint middle", at, top - 4, label(text, tick[i]));
    }
}

/* Labels stand on their lines, at the left edge, where they need no margin. */
void svg_y_axis(const struct svg *s, const struct axis *y, double left, double right, axis_label *label)
{
    double tick[TICKS];
    const int n = axis_ticks(tick, y, 22);

    for (int i = 0; i < n; i++) {
        char text[32];

        svg_line(s, "grid", left, axis_at(y, tick[i]), right, axis_at(y, tick[i]));
        svg_text(s, "faint", left, axis_at(y, tick[i]) - 3, label(text, tick[i]));
    }
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
    snprintf(out, 32, "%.4g", v);
    return out;
}
