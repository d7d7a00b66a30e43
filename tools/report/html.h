/* SPDX-License-Identifier: Apache-2.0
 *
 * html.h - a page that needs nothing but itself: no script, no network; for screens, phones, paper; light and
 * dark.
 */
#ifndef VERNIER_HTML_H
#define VERNIER_HTML_H

#include <stdio.h>

void html_open (FILE *to, const char *title);       /* the head, its style, and <body> */
void html_close(FILE *to);
void html_text (FILE *to, const char *text);         /* with entities; without what XML has not */
void html_head (FILE *to, const char *title);        /* <h2> */
void html_note (FILE *to, const char *text);         /* a paragraph in small type */

/* A fold: what is between is shown when its title is touched, and is not printed until then. */
void html_fold_open (FILE *to, const char *title, const char *more);
void html_fold_close(FILE *to);

/* A list of facts, and figures of a headline. */
void html_facts_open (FILE *to);
void html_fact       (FILE *to, const char *name, const char *value);      /* nothing where value is "" */
void html_facts_close(FILE *to);
void html_cards_open (FILE *to);
void html_card       (FILE *to, const char *what, const char *value, const char *more);
void html_cards_close(FILE *to);

/* A table that scrolls where it is too wide.  titles ends with NULL; one that begins with '<'
 * is of a column of text, written to the left; others are of numbers.                       */
struct html_table { FILE *to; const char *const *titles; int at; };

void html_table_open (struct html_table *t, FILE *to, const char *const *titles);
void html_cell       (struct html_table *t, const char *text);               /* begins and ends rows itself */
void html_shaded_cell(struct html_table *t, const char *shade, const char *text);  /* a class of the style */
void html_table_close(struct html_table *t);
#endif
