/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c - tables, a progress line, interruption, JSON.
 */
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "commands.h"
#include "core.h"
#include "errors.h"
#include "report.h"

/* ---- JSON ---- */

FILE *report_stream(const char *json_path)
{
    return json_path && !strcmp(json_path, "-") ? errors_stream() : stdout;
}

int report_json(json_t *root, const char *path)
{
    const size_t style = JSON_INDENT(2) | JSON_REAL_PRECISION(9);
    json_t *const all = json_pack("{s:i}", "schema", SCHEMA);
    int failed;

    json_object_del(root, "schema");
    json_object_update(all, root);
    json_decref(root);
    root = all;
    if (!strcmp(path, "-"))
        failed = json_dumpf(root, stdout, style) || putchar('\n') == EOF || fflush(stdout);
    else
        failed = json_dump_file(root, path, style);
    json_decref(root);
    if (failed)
        complain("the report cannot be written to \"%s\"", path);
    return failed ? -1 : 0;
}

double json_number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

const char *json_text(const json_t *object, const char *name)
{
    const char *const text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

/* ---- tables ---- */

static int has_colour(FILE *to)
{
    const char *const no = getenv("NO_COLOR"), *const term = getenv("TERM");

    return isatty(fileno(to)) && !(no && *no) && term && strcmp(term, "dumb");
}

void table_open(struct table *t, FILE *to)
{
    *t = (struct table){ .to = to, .colour = has_colour(to) };
}

void table_column(struct table *t, const char *title, int width, int left)
{
    const int c = t->columns++;

    snprintf(t->column[c].title, CELL, "%s", title);
    t->column[c].width = width > (int)strlen(title) ? width : (int)strlen(title);
    t->column[c].left  = left;
}

static void write_shaded(const struct table *t, enum shade shade, const char *text,
                         int pad_before, int pad_after)
{
    static const char *const codes[] = { "", "\033[32m", "\033[33m", "\033[2m", "\033[1m" };
    const int shaded = t->colour && shade != PLAIN;

    fprintf(t->to, "%*s%s%s%s%*s", pad_before, "", shaded ? codes[shade] : "", text,
            shaded ? "\033[0m" : "", pad_after, "");
}

void table_cell(struct table *t, enum shade shade, const char *text)
{
    const int c = t->at++, last = t->at == t->columns;
    const int room = t->column[c].width - (int)strlen(text), pad = room > 0 ? room : 0;

    if (c)
        fputs("  ", t->to);
    write_shaded(t, shade, text, t->column[c].left ? 0 : pad, t->column[c].left && !last ? pad : 0);
}

void table_note(struct table *t, enum shade shade, const char *text)
{
    if (t->at)
        fputs("  ", t->to);
    write_shaded(t, shade, text, 0, 0);
    table_end(t);
}

void table_end(struct table *t)
{
    fputc('\n', t->to);
    fflush(t->to);
    t->at = 0;
}

void table_head(struct table *t)
{
    for (int c = 0; c < t->columns; c++)
        table_cell(t, STRONG, t->column[c].title);
    table_end(t);
}

const char *figure(char out[CELL], double v)
{
    if (!(v > 0) || isinf(v))
        return "-";

    const int exponent = (int)floor(log10(v)), places = 2 - exponent;

    snprintf(out, CELL, "%.*f", places < 0 ? 0 : places > 6 ? 6 : places, v);
    return out;
}

const char *time_text(char out[CELL], double seconds)
{
    const double scale = seconds < 1e-3 ? 1e6 : seconds < 1 ? 1e3 : 1;
    char number[CELL];

    if (seconds > 0)
        snprintf(out, CELL, "%.16s %s", figure(number, seconds * scale),
                 scale > 1e3 ? "us" : scale > 1 ? "ms" : "s");
    else
        snprintf(out, CELL, "-");
    return out;
}

const char *ratio_text(char out[CELL], double v)
{
    snprintf(out, CELL, !(v > 0) ? "-" : v < 0.095 ? "%.2g" : v < 9.995 ? "%.2f" : v < 99999 ? "%.1f"
             : "%.3g", v);
    return out;
}

/* Where the first `most` characters of UTF-8 end. */
static size_t bytes_of(const char *text, int most)
{
    size_t n = 0;

    while (text[n] && (most > 0 || (text[n] & 0xc0) == 0x80))
        most -= (text[n++] & 0xc0) != 0x80;
    return n;
}

const char *shortened(char *out, size_t size, const char *text, int most)
{
    if (text[bytes_of(text, most)])
        snprintf(out, size, "%.*s...", (int)bytes_of(text, most - 3), text);
    else
        snprintf(out, size, "%s", text);
    return out;
}

const char *quantity(char out[CELL], double v, const char *unit)
{
    static const char *const prefixes[] = { "", "k", "M", "G", "T", "P" };
    int p = 0;

    for (; v >= 1000 && p < 5; p++)
        v /= 1000;
    snprintf(out, CELL, "%.*f %s%s", !p || v >= 100 ? 0 : v < 10 ? 2 : 1, v, prefixes[p], unit);
    return out;
}

const char *bytes_text(char out[CELL], double bytes)
{
    static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
    int u = 0;

    while (bytes >= 1024 && u < 4) {
        bytes /= 1024;
        u++;
    }
    snprintf(out, CELL, bytes == floor(bytes) ? "%.0f %s" : "%.2f %s", bytes, units[u]);
    return out;
}

/* ---- progress ---- */

void progress_open(struct progress *p, int total)
{
    *p = (struct progress){ isatty(fileno(errors_stream())), total, vn__seconds() };
}

void progress_say(const struct progress *p, const char *sentence, ...)
{
    va_list args;

    if (!p->shown)
        return;
    fputs("\r\033[K", errors_stream());
    va_start(args, sentence);
    vfprintf(errors_stream(), sentence, args);
    va_end(args);
    fflush(errors_stream());
}

void progress_show(const struct progress *p, int done, const char *what)
{
    const double left = done ? (vn__seconds() - p->start) / done * (p->total - done) : 0;
    char time[32] = "";

    if (done)
        snprintf(time, sizeof time, "  about %d:%02d left", (int)left / 60, (int)left % 60);
    progress_say(p, "[%d/%d] %.60s%s", done + 1, p->total, what, time);
}

void progress_clear(const struct progress *p)
{
    progress_say(p, "%s", "");
}

/* ---- interruption ---- */

volatile int interrupted;

static void interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

void take_interrupts(void)
{
    struct sigaction act = { .sa_handler = interrupt, .sa_flags = SA_RESTART | (int)SA_RESETHAND };

    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
}
