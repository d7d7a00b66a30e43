/* SPDX-License-Identifier: Apache-2.0
 *
 * page.c - what pages have in common: facts, figures, suites behind folds, how to cite.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "commands.h"
#include "page.h"
#include "report.h"

enum { VALUE = 512 };

/* ---- opening and closing ---- */

int page_open(struct page *p, const char *html, const char *svg, const char *title)
{
    *p = (struct page){ .svg = svg };
    if (svg && mkdir(svg, 0777) && errno != EEXIST) {
        complain("the folder \"%s\" cannot be made: %s", svg, strerror(errno));
        return -1;
    }
    if (html && !(p->to = fopen(html, "w"))) {
        complain("the report cannot be written to \"%s\": %s", html, strerror(errno));
        return -1;
    }
    if (p->to)
        html_open(p->to, title);
    return 0;
}

int page_close(struct page *p, const char *html)
{
    int failed = 0;

    if (p->to) {
        html_close(p->to);
        failed = ferror(p->to) | fclose(p->to);
    }
    if (failed)
        complain("the report cannot be written to \"%s\"", html);
    return failed || p->failed ? -1 : 0;
}

/* ---- facts ---- */

static const char *device_text(char out[VALUE], const json_t *context)
{
    if (*json_text(context, "device"))
        snprintf(out, VALUE, "%.20s: %.120s, %.80s, driver %.80s", json_text(context, "device_spec"),
                 json_text(context, "device"), json_text(context, "platform"), json_text(context, "driver"));
    else
        *out = '\0';
    return out;
}

static const char *version_text(char out[VALUE], const json_t *context)
{
    const char *const version = json_text(context, "library_version"),
               *const commit = json_text(context, "library_commit");

    if (*version)
        snprintf(out, VALUE, "%.64s%s%.80s", version, *commit ? ", commit " : "", commit);
    else
        *out = '\0';
    return out;
}

static const char *libraries_text(char out[VALUE], const json_t *context)
{
    const char *name;
    json_t *version;
    size_t n = 0;

    *out = '\0';
    json_object_foreach(json_object_get(context, "peers"), name, version) {
        const char *const text = json_string_value(version);

        if (n < VALUE)
            n += (size_t)snprintf(out + n, VALUE - n, "%s%.80s", n ? "; " : "", text && *text ? text : name);
    }
    return out;
}

static const char *host_text(char out[VALUE], const json_t *context)
{
    const char *const cpu = json_text(context, "host_cpu");
    const double cpus = json_number(context, "num_cpus");

    if (*cpu && cpus > 0)
        snprintf(out, VALUE, "%.160s, %.0f CPU%s online", cpu, cpus, cpus == 1 ? "" : "s");
    else if (cpus > 0)
        snprintf(out, VALUE, "%.0f CPU%s online", cpus, cpus == 1 ? "" : "s");
    else
        snprintf(out, VALUE, "%.160s", cpu);
    return out;
}

static const char *power_text(char out[VALUE], const json_t *context)
{
    const double watts = json_number(context, "power_cap_watts");

    snprintf(out, VALUE, watts > 0 ? "%.0f W" : "", watts);
    return out;
}

static const char *processes_text(char out[VALUE], const json_t *context)
{
    const double processes = json_number(context, "processes");

    snprintf(out, VALUE, processes > 1 ? "%.0f to a row; others, where these disagree" : "", processes);
    return out;
}

static const char *load_text(char out[VALUE], const json_t *context)
{
    const json_t *const load = json_object_get(context, "load_avg");

    if (json_array_size(load))
        snprintf(out, VALUE, "%.2f", json_number_value(json_array_get(load, 0)));
    else
        *out = '\0';
    return out;
}

/* A fact is a member of the context, or made of several. */
static const struct {
    const char *name, *member;
    const char *(*text)(char out[VALUE], const json_t *context);
} facts[] = {
    { "Device",              NULL,                  device_text    },
    { "Vernier",             NULL,                  version_text   },
    { "Libraries beside it", NULL,                  libraries_text },
    { "Host",                NULL,                  host_text      },
    { "Clocks of the host",  "clock_policy",        NULL           },
    { "Clocks of the device", "device_clock_policy", NULL          },
    { "Power cap",           NULL,                  power_text     },
    { "Threads pinned",      "pinning",             NULL           },
    { "Processes",           NULL,                  processes_text },
    { "Load at the end",     NULL,                  load_text      },
    { "Date",                "date",                NULL           },
};

enum { FACTS = sizeof facts / sizeof *facts };

static void fact(FILE *to, int i, const char *which, const json_t *context)
{
    char text[VALUE], name[64];

    snprintf(name, sizeof name, "%s%s", facts[i].name, which);
    html_fact(to, name, facts[i].text ? facts[i].text(text, context) : json_text(context, facts[i].member));
}

static int is_equal(int i, const json_t *a, const json_t *b)
{
    char one[VALUE], two[VALUE];

    return !(facts[i].text ? strcmp(facts[i].text(one, a), facts[i].text(two, b))
                           : strcmp(json_text(a, facts[i].member), json_text(b, facts[i].member)));
}

void page_heading(const struct page *p, const char *title, const char *words, const json_t *context)
{
    char version[VALUE];

    if (!p->to)
        return;
    fputs("<h1>", p->to);
    html_text(p->to, title);
    fputs("</h1>\n<p>", p->to);
    html_text(p->to, words);
    fputs("</p>\n<p class=\"note\">Vernier ", p->to);
    html_text(p->to, version_text(version, context));
    fputs(*json_text(context, "date") ? "; " : "", p->to);
    html_text(p->to, json_text(context, "date"));
    fputs("</p>\n", p->to);
}

void page_facts(const struct page *p, const json_t *context, int first)
{
    for (int i = first; i < FACTS && p->to; i++)
        fact(p->to, i, "", context);
}

void page_facts_of_two(const struct page *p, const json_t *a, const json_t *b)
{
    for (int i = 0; i < FACTS && p->to; i++)
        if (is_equal(i, a, b))
            fact(p->to, i, "", a);
        else {
            fact(p->to, i, ", A", a);
            fact(p->to, i, ", B", b);
        }
}

/* ---- how to cite ---- */

void page_cite(const struct page *p, const json_t *context, const char *title)
{
    const char *const date = json_text(context, "date"), *const commit = json_text(context, "library_commit");

    if (!p->to)
        return;
    html_head(p->to, "How to cite");
    fputs("<pre>@misc{vernier,\n  author = {{The Vernier authors}},\n  title  = {{", p->to);
    html_text(p->to, title);
    fputs("}},\n  note   = {Measured with Vernier ", p->to);
    html_text(p->to, json_text(context, "library_version"));
    if (*commit) {
        fputs(", commit ", p->to);
        html_text(p->to, commit);
    }
    if (*date)
        fprintf(p->to, ", on ");
    html_text(p->to, date);
    fprintf(p->to, "},\n  year   = {%d}\n}</pre>\n", atoi(date) > 0 ? atoi(date) : 0);
    html_note(p->to, "Cite the JSON file with it: it holds every sample. The software itself is cited as "
                     "CITATION.cff of its source says.");
}

/* ---- figures ---- */

static void write_figure(struct page *p, const char *file, const char *title, double height, chart *draw,
                         const void *state)
{
    char path[4096];
    struct svg s;
    FILE *to;
    int failed;

    snprintf(path, sizeof path, "%s/%s.svg", p->svg, file);
    if ((to = fopen(path, "w"))) {
        svg_open(&s, to, SVG_WIDTH, height, title);
        draw(&s, state);
        svg_close(&s);
    }
    failed = !to || ferror(to);
    failed |= to && fclose(to);
    if (!failed)
        return;
    complain("the figure cannot be written to \"%s\"", path);
    p->failed = 1;
}

void page_figure(struct page *p, const char *file, const char *title, const char *caption, double height,
                 chart *draw, const void *state)
{
    struct svg s;

    if (p->to) {
        fputs("<figure>\n<figcaption><b>", p->to);
        html_text(p->to, title);
        fputs("</b>", p->to);
        html_text(p->to, caption);
        fputs("</figcaption>\n", p->to);
        svg_open(&s, p->to, 0, height, title);
        draw(&s, state);
        svg_close(&s);
        fputs("</figure>\n", p->to);
    }
    if (p->svg)
        write_figure(p, file, title, height, draw, state);
}

void page_summary(struct page *p, const struct comparison *c)
{
    struct strips s = { .of = c };
    char file[96];

    groups_open(&s.groups, c, NULL);
    snprintf(file, sizeof file, "summary-%s", c->file);
    if (s.groups.count)
        page_figure(p, file, c->title, c->caption, strips_height(&s), strips_chart, &s);
    groups_close(&s.groups);
}

static void add_roof(struct roofline_chart *c, const char *kind, const char *type, double peak)
{
    for (int i = 0; i < c->roofs; i++)
        if (c->roof[i].flops_per_s == peak)
            return;
    if (!(peak > 0) || c->roofs == ROOFS)
        return;
    shortened(c->roof[c->roofs].name, sizeof c->roof->name, kind, 30);
    snprintf(c->roof[c->roofs].type, sizeof c->roof->type, "%.7s", type);
    c->roof[c->roofs++].flops_per_s = peak;
}

static int has_type(const struct roofline_chart *c, const char *type)
{
    for (int i = 0; i < c->count; i++)
        if (!strcmp(c->it[i].type, type))
            return 1;
    return 0;
}

/* Reports of the first format had two roofs, of multiply-adds. */
static void roofline_roofs(struct roofline_chart *c, const json_t *roofline)
{
    json_t *roof;
    size_t i;

    if (!(c->bytes_per_s > 0))
        c->bytes_per_s = json_number(roofline, "gbytes_per_second") * 1e9;
    json_array_foreach(json_object_get(roofline, "roofs"), i, roof)
        if (has_type(c, json_text(roof, "type")))
            add_roof(c, json_text(roof, "kind"), json_text(roof, "type"), json_number(roof, "flops_per_s"));
    if (c->roofs)
        return;
    add_roof(c, "multiply-adds, f32", "f32", json_number(roofline, "gflops_f32") * 1e9);
    add_roof(c, "multiply-adds, f64", "f64", json_number(roofline, "gflops_f64") * 1e9);
}

void page_roofline(struct page *p, const char *file, const char *title, struct roofline_chart *c,
                   const json_t *roofline)
{
    const char *const disturbed = json_text(roofline, "disturbed");

    roofline_roofs(c, roofline);
    if (c->count && c->bytes_per_s > 0)
        page_figure(p, file, title,
                    "The best of ours. Each horizontal line is what the device was measured to do with that "
                    "engine; the slope is a copy of memory. A hollow mark is of data that a cache holds, "
                    "which may pass the slope.", PLOT_HEIGHT, roofline_chart, c);
    if (c->count && p->to && *disturbed) {
        fputs("<p class=\"note\">Other work disturbed the measurement of these roofs: ", p->to);
        html_text(p->to, disturbed);
        fputs(".</p>\n", p->to);
    }
    free(c->it);
    c->it = NULL;
}

/* ---- suites ---- */

static const char *name_of_file(char out[160], const struct bars *b)
{
    snprintf(out, 160, "rows-%.40s-%.60s%s%.40s", b->of->file, b->suite, *b->versus ? "-" : "", b->versus);
    for (char *at = out; *at; at++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", *at))
            *at = '_';
    return out;
}

static void draw_versus(struct page *p, const struct bars *b)
{
    char title[VALUE], file[160];

    if (!bars_count(b))
        return;
    snprintf(title, sizeof title, "%s%s%s: %s", b->of->title, *b->versus ? ", " : "", b->versus, b->suite);
    page_figure(p, name_of_file(file, b), title, "", bars_height(b), bars_chart, b);
}

/* Each that the comparison was made with, once. */
static void draw_bars(struct page *p, const struct comparison *c, const char *suite)
{
    for (int i = 0; i < c->count; i++) {
        const struct bars b = { c, suite, c->it[i].versus };
        int k = 0;

        while (strcmp(c->it[k].versus, b.versus))
            k++;
        if (k == i)
            draw_versus(p, &b);
    }
}

/* "23 rows; toolchain gap: conv f32 1.03" */
static const char *suite_text(char out[VALUE], const struct suites *s, const char *suite, int rows)
{
    int n = snprintf(out, VALUE, "%d row%s", rows, rows == 1 ? "" : "s");

    for (int i = 0; i < s->count && s->of[i].has_parity; i++) {
        struct groups g;

        groups_open(&g, &s->of[i], suite);
        for (int k = 0; k < g.count && n < VALUE; k++) {
            const struct row_ratio *const first = g.it[k].first;
            char value[CELL];

            n += snprintf(out + n, (size_t)(VALUE - n), "%s%s%s%s%s %s", k ? ", " : "; ",
                          k ? "" : s->of[i].title, k ? "" : ": ", first->group, *first->versus ? " / " : "",
                          first->versus);
            if (n < VALUE)
                n += snprintf(out + n, (size_t)(VALUE - n), " %s",
                              ratio_text(value, g.it[k].quartiles.median));
        }
        groups_close(&g);
    }
    return out;
}

static void one_suite(struct page *p, const struct suites *s, const char *suite, int rows)
{
    char text[VALUE];

    if (p->to)
        html_fold_open(p->to, suite, suite_text(text, s, suite, rows));
    for (int i = 0; i < s->count; i++)
        draw_bars(p, &s->of[i], suite);
    if (p->to) {
        s->table(p, s->state, suite);
        html_fold_close(p->to);
    }
}

/* The rows of the suite that row `at` has; 0 if an earlier row had it. */
static int rows_of_suite(const json_t *rows, size_t at, const char *suite)
{
    char other[64];
    json_t *row;
    size_t i;
    int n = 0;

    json_array_foreach(rows, i, row) {
        if (strcmp(row_suite(other, row), suite))
            continue;
        if (i < at)
            return 0;
        n++;
    }
    return n;
}

void page_suites(struct page *p, const struct suites *s)
{
    char suite[64];
    json_t *row;
    size_t i;

    if (p->to && json_array_size(s->rows)) {
        html_head(p->to, "Row by row");
        html_note(p->to, "Each suite is behind a fold. A bar begins at 1 and ends at the median of the "
                         "ratios; its whisker is the 95 % interval, where one was measured. All charts of "
                         "one kind have one scale, which is logarithmic. \u2260 marks ratios whose two sides "
                         "have unlike engines, * rows that other work on the machine disturbed; their bars "
                         "are hollow.");
        fputs("<p class=\"paper\">Folds that were closed are not printed.</p>\n", p->to);
    }
    json_array_foreach(s->rows, i, row) {
        const int rows = rows_of_suite(s->rows, i, row_suite(suite, row));

        if (rows)
            one_suite(p, s, suite, rows);
    }
}

const char *page_suite_names(char out[256], const json_t *rows)
{
    json_t *row;
    size_t i, n = 0;

    *out = '\0';
    json_array_foreach(rows, i, row) {
        char suite[64], *at = strstr(out, row_suite(suite, row));
        const size_t length = strlen(suite);

        if (at && (at == out || at[-1] == ' ') && (!at[length] || at[length] == ','))
            continue;
        if (n < 256)
            n += (size_t)snprintf(out + n, 256 - n, "%s%s", n ? ", " : "", suite);
    }
    return out;
}

/* ---- rows ---- */

/* Where a row does not say its operation and type, as those of compare, its problem does. */
static const char *name_parts(char op[32], char type[8], const json_t *row)
{
    static const char *const types[] = { "f32", "f16", "bf16", "f64", NULL };
    const char *const name = json_text(row, "name");
    size_t n = strcspn(name, ":");

    snprintf(op, 32, "%s", json_text(row, "op"));
    snprintf(type, 8, "%s", json_text(row, "type"));
    if (!*op)
        snprintf(op, 32, "%.*s", name[n] ? (int)n : 5, name[n] ? name : "other");
    for (const char *at = name + n; *at && !*type; at += n) {
        n = strcspn(++at, ":");
        for (const char *const *it = types; *it; it++)
            if (strlen(*it) == n && !strncmp(*it, at, n))
                snprintf(type, 8, "%s", *it);
    }
    return op;
}

const char *row_suite(char out[64], const json_t *row)
{
    const char *const suite = json_text(row, "suite"), *const label = json_text(row, "label");
    char op[32], type[8];

    if (*suite)
        snprintf(out, 64, "%s", suite);
    else if (strchr(label, '/') && strchr(label, '/') - label < 32)
        snprintf(out, 64, "%.*s", (int)(strchr(label, '/') - label), label);
    else
        snprintf(out, 64, "%s", name_parts(op, type, row));
    return out;
}

struct row_ratio *row_ratio_add(struct comparison *c, const json_t *row, double ratio, const json_t *of)
{
    const json_t *const interval = json_object_get(of, "ratio_interval");
    struct row_ratio *const r = ratio > 0 ? comparison_add(c) : NULL;

    if (!r)
        return NULL;
    problem_shown(r->name, json_text(row, "name"));
    row_suite(r->suite, row);
    name_parts(r->op, r->type, row);
    snprintf(r->group, sizeof r->group, "%s %s", r->op, r->type);
    r->ratio     = ratio;
    r->low       = json_number_value(json_array_get(interval, 0));
    r->high      = json_number_value(json_array_get(interval, 1));
    r->seconds   = json_number(row, "real_time");
    r->disturbed = *json_text(row, "disturbed") != '\0';
    return r;
}

void engines_text(char out[96], const char *one, const char *two)
{
    if (!*one && !*two)
        *out = '\0';
    else if (!strcmp(one, two))
        snprintf(out, 96, "%.40s", one);
    else
        snprintf(out, 96, "%.40s against %.40s", *one ? one : "unknown", *two ? two : "unknown");
}

void roofline_add(struct roofline_chart *c, const json_t *row, const json_t *roof, double seconds)
{
    const double flops = json_number(row, "flops"), bytes = json_number(row, "bytes");
    struct point *const it = flops > 0 && bytes > 0 && seconds > 0
                           ? realloc(c->it, (size_t)(c->count + 1) * sizeof *it) : NULL;
    struct point *p;

    if (!it)
        return;
    c->it = it;
    p     = &it[c->count++];
    memset(p, 0, sizeof *p);
    problem_shown(p->name, json_text(row, "name"));
    name_parts(p->op, p->type, row);
    p->intensity   = flops / bytes;
    p->flops_per_s = flops / seconds;
    p->cached      = json_is_true(json_object_get(roof, "cached"));
    if (json_number(roof, "bytes_per_s") > c->bytes_per_s)
        c->bytes_per_s = json_number(roof, "bytes_per_s");
    if (!strcmp(json_text(roof, "bound"), "flops"))
        add_roof(c, json_text(roof, "kind"), json_text(row, "type"), json_number(roof, "flops_per_s"));
}

const char *interval_text(char out[3 * 32], double v, double low, double high)
{
    char a[CELL], b[CELL], d[CELL];

    if (low > 0)
        snprintf(out, 96, "%.20s [%.20s, %.20s]", ratio_text(a, v), ratio_text(b, low), ratio_text(d, high));
    else
        snprintf(out, 96, "%s", ratio_text(a, v));
    return out;
}
