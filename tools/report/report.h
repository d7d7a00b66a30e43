/* SPDX-License-Identifier: Apache-2.0
 *
 * report.h - what the commands print: tables, a progress line, JSON.
 */
#ifndef VERNIER_REPORT_H
#define VERNIER_REPORT_H

#include <jansson.h>
#include <stdio.h>

/* ---- JSON ---- */

/* The version of what the commands write, the first member of each ("schema"); doc/report.schema.json. */
enum { SCHEMA = 2 };

/* Writes root to a file, or with "-" to standard output, and releases it.  0, or -1 after
 * a sentence on stderr.                                                                  */
int report_json(json_t *root, const char *path);

/* The JSON report of `path`, without the control characters that strings of it may hold; NULL after a
 * sentence on stderr, also where it lacks "benchmarks" or "context", or where a number in it is none that a
 * measurement gives (charts cannot scale it).                                                            */
json_t *report_load(const char *path);

/* A report of gap or bench as tidy CSV, a line for each sample; 0, or -1 after a sentence on stderr. */
int report_csv(const char *path, const json_t *report);

double      json_number(const json_t *object, const char *name);       /* 0 where there is none */
const char *json_text  (const json_t *object, const char *name);       /* "" */

/* Where tables go: stdout, unless the JSON does. */
FILE *report_stream(const char *json_path);

/* ---- tables ---- */

enum { TABLE_COLUMNS = 24, CELL = 32 };
enum shade { PLAIN, GOOD, POOR, FAINT, STRONG };

struct table {
    FILE *to;
    int   colour;                 /* a terminal, and no NO_COLOR */
    int   columns, at;            /* the next cell's column */
    struct { char title[CELL]; int width, left; } column[TABLE_COLUMNS];
};

void table_open  (struct table *t, FILE *to);
void table_column(struct table *t, const char *title, int width, int left);
void table_head  (struct table *t);
void table_cell  (struct table *t, enum shade shade, const char *text);
/* A cell that takes the rest of the row, and ends it. */
void table_note  (struct table *t, enum shade shade, const char *text);
void table_end   (struct table *t);     /* of the row */

/* Three digits without an exponent: "0.0123", "1.23", "123", "4567"; "-" for what is not above 0. */
const char *figure(char out[CELL], double v);
/* "12.3 us", "1.05 ms", "-" */
const char *time_text (char out[CELL], double seconds);
/* "1.04", "12.3", "0.0017", "-" */
const char *ratio_text(char out[CELL], double v);
/* At most so many characters of text, the last three of them "..." if it has more. */
const char *shortened(char *out, size_t size, const char *text, int most);
/* "2.15 GFLOP", "512 B" */
const char *quantity(char out[CELL], double v, const char *unit);
/* "4.38 GiB", "512 KiB" */
const char *bytes_text(char out[CELL], double bytes);

/* ---- the progress line, on stderr if that is a terminal ---- */

struct progress { int shown, total; double start; };

void progress_open (struct progress *p, int total);
void progress_say  (const struct progress *p, const char *sentence, ...)
    __attribute__((format(printf, 2, 3)));
void progress_show (const struct progress *p, int done, const char *what);
void progress_clear(const struct progress *p);

/* The first SIGINT or SIGTERM from here on sets `interrupted`: the command ends where it can, and reports
 * what it has.  The second one ends the process, as ever.                                               */
extern volatile int interrupted;
void take_interrupts(void);
#endif
