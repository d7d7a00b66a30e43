/* SPDX-License-Identifier: Apache-2.0
 *
 * chart.c - the charts of reports.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "chart.h"
#include "problem/op.h"
#include "report.h"

enum { LABEL_TEXT = 160 };

static const double LEFT = 0.01, RIGHT = 0.99;

/* ---- ratios ---- */

struct row_ratio *comparison_add(struct comparison *c)
{
    if (c->count == c->room) {
        const int room = c->room ? 2 * c->room : 64;
        struct row_ratio *const it = realloc(c->it, (size_t)room * sizeof *it);

        if (!it)
            return NULL;
        c->it   = it;
        c->room = room;
    }
    memset(&c->it[c->count], 0, sizeof *c->it);
    return &c->it[c->count++];
}

void comparison_close(struct comparison *c)
{
    free(c->it);
    c->it = NULL;
    c->count = c->room = 0;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double quantile(const double *sorted, int count, double share)
{
    const double at = share * (count - 1);
    const int i = (int)at, next = i + 1 < count ? i + 1 : i;

    return sorted[i] + (at - i) * (sorted[next] - sorted[i]);
}

struct quartiles quartiles_of(const double *v, int count)
{
    double *const sorted = count > 0 ? malloc((size_t)count * sizeof *sorted) : NULL;
    struct quartiles out = { 0, 0, 0 };

    if (!sorted)
        return out;
    memcpy(sorted, v, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, by_size);
    out = (struct quartiles){ quantile(sorted, count, 0.25), quantile(sorted, count, 0.5),
                              quantile(sorted, count, 0.75) };
    free(sorted);
    return out;
}

/* ---- groups ---- */

static int are_of_one_group(const struct row_ratio *a, const struct row_ratio *b)
{
    return !strcmp(a->group, b->group) && !strcmp(a->versus, b->versus) && a->unlike == b->unlike
        && (!a->unlike || !strcmp(a->engines, b->engines));
}

/* "FFMA, HGMMA f16": each once. */
static void add_engines(struct group *g, const char *engines)
{
    const char *const at = strstr(g->engines, engines);
    const size_t n = strlen(g->engines), length = strlen(engines);

    if (!*engines || (at && (at == g->engines || at[-1] == ' ') && (!at[length] || at[length] == ',')))
        return;
    snprintf(g->engines + n, sizeof g->engines - n, "%s%s", n ? ", " : "", engines);
}

static struct group *group_of(struct groups *g, const struct row_ratio *r)
{
    for (int i = 0; i < g->count; i++)
        if (are_of_one_group(g->it[i].first, r))
            return &g->it[i];
    return NULL;
}

static int is_of_suite(const struct row_ratio *r, const char *suite)
{
    return !suite || !strcmp(r->suite, suite);
}

static void enter(struct groups *g, const struct row_ratio *r, int most)
{
    struct group *at = group_of(g, r);

    if (!at) {
        struct group *const it = realloc(g->it, (size_t)(g->count + 1) * sizeof *it);

        if (!it)
            return;
        g->it = it;
        at    = &it[g->count++];
        *at   = (struct group){ .first = r, .v = malloc((size_t)most * sizeof *at->v) };
    }
    if (!at->v)
        return;
    at->v[at->count++] = r->ratio;
    add_engines(at, r->engines);
}

void groups_open(struct groups *g, const struct comparison *c, const char *suite)
{
    *g = (struct groups){ NULL, 0 };
    for (int i = 0; i < c->count; i++)
        if (is_of_suite(&c->it[i], suite))
            enter(g, &c->it[i], c->count);
    for (int i = 0; i < g->count; i++)
        g->it[i].quartiles = quartiles_of(g->it[i].v, g->it[i].count);
}

void groups_close(struct groups *g)
{
    for (int i = 0; i < g->count; i++)
        free(g->it[i].v);
    free(g->it);
    *g = (struct groups){ NULL, 0 };
}

/* ---- what charts share ---- */

/* Types differ in colour, operations in shape. */
static const char *const types[] = { "f32", "f16", "bf16", "f64" };
static const char *const colours[] = { "blue", "red", "green", "pink", "grey" };

enum { TYPES = sizeof types / sizeof *types };

static const char *colour_of(const char *type)
{
    int i = 0;

    while (i < TYPES && strcmp(types[i], type))
        i++;
    return colours[i];
}

static enum mark shape_of(const char *op)
{
    int i = 0;

    while (ops[i] && strcmp(ops[i]->name, op))
        i++;
    return (enum mark)(i % MARKS);
}

static void mark(const struct svg *s, const char *op, const char *type, int hollow, double x, double y,
                 const char *hint)
{
    char style[32];

    snprintf(style, sizeof style, "%s %s", colour_of(type), hollow ? "hollow" : "mark");
    svg_mark(s, style, shape_of(op), x, y, hint);
}

static struct axis axis_of(const struct comparison *c, double from, double to)
{
    double *const v = calloc(3 * (size_t)c->count + 3, sizeof *v);
    struct axis a;
    int n = 0;

    for (int i = 0; v && i < c->count; i++) {
        v[n++] = c->it[i].ratio;
        v[n++] = c->it[i].low;
        v[n++] = c->it[i].high;
    }
    for (int i = -1; v && i < 2; i++)
        v[n++] = 1 + i * (c->has_parity ? 0.1 : 0);
    a = axis_around(v, v ? n : 0, from, to);
    free(v);
    return a;
}

static void say_outside(const struct svg *s, const struct axis *a, double y)
{
    char text[96];

    if (!a->outside)
        return;
    snprintf(text, sizeof text, "%d value%s beyond the ends of an axis, drawn there", a->outside,
             a->outside == 1 ? " lies" : "s lie");
    svg_text(s, "faint end", RIGHT, y, text);
}

static void draw_parity(const struct svg *s, const struct axis *x, double top, double bottom)
{
    svg_rect(s, "band", axis_at(x, 0.9), top, axis_at(x, 1.1), bottom);
}

static const char *hint_of(char out[LABEL_TEXT + PROBLEM_TEXT], const struct row_ratio *r)
{
    char value[CELL], low[CELL], high[CELL], interval[3 * CELL] = "";

    if (r->low > 0)
        snprintf(interval, sizeof interval, " [%s, %s]", ratio_text(low, r->low), ratio_text(high, r->high));
    snprintf(out, LABEL_TEXT + PROBLEM_TEXT, "%s: %s%s%s%s%s", r->name, ratio_text(value, r->ratio), interval,
             *r->engines ? ", " : "", r->engines, r->disturbed ? ", disturbed" : "");
    return out;
}

/* ---- the summary ---- */

enum { STRIP = 66, STRIP_LINE = 14, STRIP_TOP = 34, STRIP_BOTTOM = 62, STRIPS_HEAD = 16, STRIPS_FOOT = 34 };

double strips_height(const struct strips *s)
{
    return STRIPS_HEAD + s->groups.count * STRIP + STRIPS_FOOT;
}

static void strip_label(const struct svg *s, const struct group *g, double y)
{
    char text[LABEL_TEXT], low[CELL], high[CELL], engines[64];

    snprintf(text, sizeof text, "%s%s%s", g->first->group, *g->first->versus ? " / " : "", g->first->versus);
    svg_text(s, "bold", LEFT, y + STRIP_LINE, text);
    svg_text(s, "bold end", RIGHT, y + STRIP_LINE, ratio_text(low, g->quartiles.median));
    svg_text(s, "faint", LEFT, y + 2 * STRIP_LINE, shortened(engines, sizeof engines, g->engines, 34));
    if (g->count == 1)
        snprintf(text, sizeof text, "1 row");
    else
        snprintf(text, sizeof text, "%d rows, %s to %s", g->count, ratio_text(low, g->quartiles.low),
                 ratio_text(high, g->quartiles.high));
    svg_text(s, "faint end", RIGHT, y + 2 * STRIP_LINE, text);
}

static void strip(const struct svg *s, const struct comparison *c, const struct group *g,
                  const struct axis *x, double y)
{
    const double top = y + STRIP_TOP, bottom = y + STRIP_BOTTOM, middle = (top + bottom) / 2;
    int n = 0;

    if (g->count > 1)
        svg_line(s, "median", axis_at(x, g->quartiles.median), top, axis_at(x, g->quartiles.median),
                 bottom);
    svg_rect(s, "box", axis_at(x, g->quartiles.low), top + 4, axis_at(x, g->quartiles.high), bottom - 4);
    for (int i = 0; i < c->count; i++) {
        const struct row_ratio *const r = &c->it[i];
        char hint[LABEL_TEXT + PROBLEM_TEXT];

        if (!are_of_one_group(g->first, r))
            continue;
        /* the golden ratio spreads neighbours, the same way each time */
        mark(s, r->op, r->type, r->unlike, axis_at(x, r->ratio),
             middle + (fmod(0.5 + 0.618034 * n++, 1) - 0.5) * (bottom - top - 8), hint_of(hint, r));
    }
}

void strips_chart(struct svg *s, const void *state)
{
    const struct strips *const of = state;
    const struct axis x = axis_of(of->of, LEFT, RIGHT);
    const double top = STRIPS_HEAD, bottom = top + of->groups.count * STRIP;

    if (of->of->has_parity)
        draw_parity(s, &x, top, bottom);
    svg_x_axis(s, &x, top, bottom, plain_label);
    svg_line(s, "one", axis_at(&x, 1), top, axis_at(&x, 1), bottom);
    for (int i = 0; i < of->groups.count; i++) {
        strip_label(s, &of->groups.it[i], top + i * STRIP);
        strip(s, of->of, &of->groups.it[i], &x, top + i * STRIP);
    }
    say_outside(s, &x, bottom + 28);
}

/* ---- bars ---- */

enum { BAR = 27, BAR_LINE = 13, BAR_TOP = 16, BAR_BOTTOM = 24, BARS_HEAD = 16, BARS_FOOT = 30 };

static int is_among(const struct bars *b, const struct row_ratio *r)
{
    return is_of_suite(r, b->suite) && !strcmp(r->versus, b->versus);
}

int bars_count(const struct bars *b)
{
    int n = 0;

    for (int i = 0; i < b->of->count; i++)
        n += is_among(b, &b->of->it[i]);
    return n;
}

double bars_height(const struct bars *b)
{
    return BARS_HEAD + bars_count(b) * BAR + BARS_FOOT;
}

static const char *bar_style(const struct comparison *c, const struct row_ratio *r)
{
    if (!c->has_parity)
        return colour_of(r->type);
    if (r->ratio >= 0.9 && r->ratio <= 1.1)
        return "grey";
    return (r->ratio > 1) == c->more_is_better ? "blue" : "red";
}

static void draw_bar(const struct svg *s, const struct comparison *c, const struct row_ratio *r,
                     const struct axis *x, double y)
{
    const double at = axis_at(x, r->ratio), middle = y + (BAR_TOP + BAR_BOTTOM) / 2.0;
    char name[PROBLEM_TEXT], value[CELL], text[CELL + 8], style[32];

    svg_text(s, "", LEFT, y + BAR_LINE, shortened(name, sizeof name, r->name, 44));
    snprintf(text, sizeof text, "%s%s%s", ratio_text(value, r->ratio), r->unlike ? " ≠" : "",
             r->disturbed ? " *" : "");
    svg_text(s, "end", RIGHT, y + BAR_LINE, text);
    snprintf(style, sizeof style, "%s%s", bar_style(c, r), r->unlike || r->disturbed ? " hollow" : "");
    svg_rect(s, style, axis_at(x, 1), y + BAR_TOP, at, y + BAR_BOTTOM);
    svg_line(s, "one", at, y + BAR_TOP, at, y + BAR_BOTTOM);
    if (!(r->low > 0))
        return;
    svg_line(s, "error", axis_at(x, r->low), middle, axis_at(x, r->high), middle);
    svg_line(s, "error", axis_at(x, r->low), middle - 3, axis_at(x, r->low), middle + 3);
    svg_line(s, "error", axis_at(x, r->high), middle - 3, axis_at(x, r->high), middle + 3);
}

void bars_chart(struct svg *s, const void *state)
{
    const struct bars *const b = state;
    const struct axis x = axis_of(b->of, LEFT, RIGHT);
    const double top = BARS_HEAD, bottom = top + bars_count(b) * BAR;
    int n = 0;

    if (b->of->has_parity)
        draw_parity(s, &x, top, bottom);
    svg_x_axis(s, &x, top, bottom, plain_label);
    svg_line(s, "one", axis_at(&x, 1), top, axis_at(&x, 1), bottom);
    for (int i = 0; i < b->of->count; i++)
        if (is_among(b, &b->of->it[i]))
            draw_bar(s, b->of, &b->of->it[i], &x, top + BAR * n++);
}

/* ---- plots ---- */

enum { PLOT_TOP = 56, PLOT_BOTTOM = PLOT_HEIGHT - 38 };

struct seen { int type[TYPES + 1]; unsigned ops; };      /* a bit for each */

static void note_seen(struct seen *seen, const char *op, const char *type)
{
    int i = 0;

    while (i < TYPES && strcmp(types[i], type))
        i++;
    seen->type[i] = 1;
    for (i = 0; ops[i]; i++)
        seen->ops |= (unsigned)!strcmp(ops[i]->name, op) << i;
}

/* A line of colours, and one of shapes. */
static void legend(const struct svg *s, const struct seen *seen)
{
    int n = 0;

    for (int i = 0; i < TYPES; i++)
        if (seen->type[i]) {
            mark(s, "gemm", types[i], 0, LEFT + 0.02 + 0.22 * n, 10, NULL);
            svg_text(s, "", LEFT + 0.045 + 0.22 * n++, 14, types[i]);
        }
    n = 0;
    for (int i = 0; ops[i]; i++)
        if (seen->ops >> i & 1) {
            mark(s, ops[i]->name, "", 1, LEFT + 0.02 + 0.22 * n, 28, NULL);
            svg_text(s, "", LEFT + 0.045 + 0.22 * n++, 32, ops[i]->name);
        }
}

static struct axis axis_of_times(const struct comparison *c)
{
    double *const v = calloc((size_t)c->count + 1, sizeof *v);
    struct axis a;

    for (int i = 0; v && i < c->count; i++)
        v[i] = c->it[i].seconds;
    a = axis_around(v, v ? c->count : 0, LEFT, RIGHT);
    free(v);
    return a;
}

void times_chart(struct svg *s, const void *state)
{
    const struct comparison *const c = state;
    const struct axis x = axis_of_times(c), y = axis_of(c, PLOT_BOTTOM, PLOT_TOP);
    struct seen seen = { .ops = 0 };

    svg_rect(s, "band", LEFT, axis_at(&y, 1.1), RIGHT, axis_at(&y, 0.9));
    svg_x_axis(s, &x, PLOT_TOP, PLOT_BOTTOM, seconds_label);
    svg_line(s, "one", LEFT, axis_at(&y, 1), RIGHT, axis_at(&y, 1));
    for (int i = 0; i < c->count; i++) {
        const struct row_ratio *const r = &c->it[i];
        const double at = axis_at(&x, r->seconds);
        char hint[LABEL_TEXT + PROBLEM_TEXT];

        if (r->low > 0)
            svg_line(s, "error", at, axis_at(&y, r->low), at, axis_at(&y, r->high));
        mark(s, r->op, r->type, r->unlike || r->disturbed, at, axis_at(&y, r->ratio), hint_of(hint, r));
        note_seen(&seen, r->op, r->type);
    }
    svg_y_axis(s, &y, LEFT, RIGHT, plain_label);
    svg_text(s, "middle", 0.5, PLOT_BOTTOM + 32, "time on device 2");
    legend(s, &seen);
    say_outside(s, &(struct axis){ .outside = x.outside + y.outside }, 14);
}

/* ---- the roofline ---- */

static void roofline_axes(struct axis *x, struct axis *y, const struct roofline_chart *c)
{
    const size_t room = (size_t)(c->count + c->roofs) + 1;
    double *const v = calloc(room, sizeof *v), *const w = calloc(room, sizeof *w);
    int n = 0;

    for (int i = 0; v && w && i < c->count; i++, n++) {
        v[n] = c->it[i].intensity;
        w[n] = c->it[i].flops_per_s;
    }
    for (int i = 0; v && w && i < c->roofs; i++, n++) {
        v[n] = c->roof[i].flops_per_s / c->bytes_per_s;
        w[n] = c->roof[i].flops_per_s;
    }
    *x = axis_around(v, n, LEFT, RIGHT);
    *y = axis_around(w, n, PLOT_BOTTOM, PLOT_TOP);
    free(v);
    free(w);
}

static int by_height(const void *a, const void *b)
{
    return by_size(&((const struct roof_line *)b)->flops_per_s, &((const struct roof_line *)a)->flops_per_s);
}

/* From the top down, each label below the one before it. */
static void draw_roofs(const struct svg *s, const struct roofline_chart *c, const struct axis *x,
                       const struct axis *y)
{
    struct roof_line sorted[ROOFS];
    double above = PLOT_TOP - 12;

    memcpy(sorted, c->roof, sizeof sorted);
    qsort(sorted, (size_t)c->roofs, sizeof *sorted, by_height);
    for (int i = 0; i < c->roofs; i++) {
        const double peak = sorted[i].flops_per_s, ridge = peak / c->bytes_per_s, at = axis_at(y, peak);
        char style[32], text[LABEL_TEXT], value[32];

        snprintf(style, sizeof style, "%s roof%s", colour_of(sorted[i].type), strchr(sorted[i].name, '/')
                                                                            ? " dashed" : "");
        svg_line(s, style, axis_at(x, ridge), at, RIGHT, at);
        snprintf(text, sizeof text, "%.60s: %s", sorted[i].name, flops_label(value, peak));
        above = fmax(above + 13, at - 4);
        svg_text(s, "faint end", RIGHT, above, text);
    }
    if (c->roofs) {
        const double top = sorted[0].flops_per_s, from = fmax(x->low, y->low / c->bytes_per_s),
                     to = fmin(fmin(x->high, y->high / c->bytes_per_s), top / c->bytes_per_s);

        if (from < to)
            svg_line(s, "one", axis_at(x, from), axis_at(y, from * c->bytes_per_s), axis_at(x, to),
                     axis_at(y, to * c->bytes_per_s));
    }
}

void roofline_chart(struct svg *s, const void *state)
{
    const struct roofline_chart *const c = state;
    struct seen seen = { .ops = 0 };
    struct axis x, y;
    char text[64];

    roofline_axes(&x, &y, c);
    svg_x_axis(s, &x, PLOT_TOP, PLOT_BOTTOM, plain_label);
    for (int i = 0; i < c->count; i++) {
        const struct point *const p = &c->it[i];
        char hint[LABEL_TEXT + PROBLEM_TEXT], value[32];

        snprintf(hint, sizeof hint, "%s: %s", p->name, flops_label(value, p->flops_per_s));
        mark(s, p->op, p->type, p->cached, axis_at(&x, p->intensity), axis_at(&y, p->flops_per_s), hint);
        note_seen(&seen, p->op, p->type);
    }
    svg_y_axis(s, &y, LEFT, RIGHT, flops_label);
    draw_roofs(s, c, &x, &y);
    snprintf(text, sizeof text, "FLOP per byte; the slope is %.4g GB/s", c->bytes_per_s * 1e-9);
    svg_text(s, "middle", 0.5, PLOT_BOTTOM + 32, text);
    legend(s, &seen);
    say_outside(s, &(struct axis){ .outside = x.outside + y.outside }, 14);
}
