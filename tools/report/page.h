/* SPDX-License-Identifier: Apache-2.0
 *
 * page.h - what the pages of `vernier gap`, `compare` and `bench` have in common.
 */
#ifndef VERNIER_PAGE_H
#define VERNIER_PAGE_H

#include <jansson.h>
#include "chart.h"
#include "html.h"

/* A page, a folder for its figures, or both: to or svg may be NULL. */
struct page { FILE *to; const char *svg; int failed; };

/* 0, or -1 after a sentence on stderr.  html: a file, or NULL; svg: a folder, which is made, or NULL. */
int  page_open (struct page *p, const char *html, const char *svg, const char *title);
int  page_close(struct page *p, const char *html);

/* What was compared, in words too, and what measured it. */
void page_heading(const struct page *p, const char *title, const char *words, const json_t *context);

/* How it was measured, from a report's context; the device is the first fact.  Of two reports, facts that are
 * the same stand once.                                                                                     */
enum { FROM_DEVICE, FROM_VERSION };
void page_facts       (const struct page *p, const json_t *context, int first);
void page_facts_of_two(const struct page *p, const json_t *a, const json_t *b);
/* How to cite it. */
void page_cite (const struct page *p, const json_t *context, const char *title);

/* A figure, in the page and in the folder as FILE.svg. */
void page_figure(struct page *p, const char *file, const char *title, const char *caption, double height,
                 chart *draw, const void *state);

/* The summary figure of a comparison, if it has rows. */
void page_summary(struct page *p, const struct comparison *c);

/* The points that were added, below the roofs that a report says were measured, of types that points have. */
void page_roofline(struct page *p, const char *file, const char *title, struct roofline_chart *c,
                   const json_t *roofline);

/* The rows of each suite behind a fold: its bars, and what `table` writes. */
struct suites {
    const struct comparison *of;          /* whose rows are drawn */
    int                      count;
    const json_t            *rows;        /* of the report */
    void                   (*table)(const struct page *p, const void *state, const char *suite);
    const void              *state;
};
void page_suites(struct page *p, const struct suites *s);
/* "squares, resnet50": each suite once. */
const char *page_suite_names(char out[256], const json_t *rows);

/* ---- what a row of a report says ---- */

/* Its suite; of a report that has none, the first part of its label, or its operation. */
const char *row_suite(char out[64], const json_t *row);
/* Adds a ratio of the row, with the interval that `of` holds, if it is not NULL. */
struct row_ratio *row_ratio_add(struct comparison *c, const json_t *row, double ratio, const json_t *of);
/* "FFMA", or "HGMMA bf16 x 3 against FFMA" */
void engines_text(char out[96], const char *one, const char *two);
/* A point and its roof, from what is said of a device; nothing where flops or seconds are unknown. */
void roofline_add(struct roofline_chart *c, const json_t *row, const json_t *roof, double seconds);
/* "1.03 [1.01, 1.05]", "1.03", "-" */
const char *interval_text(char out[3 * 32], double v, double low, double high);
#endif
