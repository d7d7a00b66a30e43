/* SPDX-License-Identifier: Apache-2.0
 *
 * svg.h - drawings: inside a page they are as wide as the window, in a file of their own as wide as a column
 * of a paper.
 *
 * So that text keeps its size on a phone, a place across is a share of the width, from 0 to 1; a place down
 * is in pixels.
 */
#ifndef VERNIER_SVG_H
#define VERNIER_SVG_H

#include <stdio.h>

struct svg { FILE *to; double width; };             /* width in pixels; 0: inside a page */

enum { SVG_WIDTH = 760 };                            /* of a file */

void svg_open (struct svg *s, FILE *to, double width, double height, const char *title);
void svg_close(struct svg *s);
/* The style of drawings; with `in_page`, colours are the variables of html.c's style. */
void svg_style(FILE *to, int in_page);

void svg_line(const struct svg *s, const char *style, double x1, double y1, double x2, double y2);
void svg_rect(const struct svg *s, const char *style, double x1, double y1, double x2, double y2);
void svg_text(const struct svg *s, const char *style, double x, double y, const char *text);

enum mark { CIRCLE, SQUARE, DIAMOND, TRIANGLE, MARKS };

/* hint: what a pointer that rests on it shows; or NULL. */
void svg_mark(const struct svg *s, const char *style, enum mark shape, double x, double y, const char *hint);

/* ---- axes ---- */

/* Logarithmic: values from low to high lie between the places `from` and `to`. */
struct axis { double low, high, from, to; int outside; };    /* outside: values that lie beyond its ends */

/* Around those of count values that are above 0 and finite, with some room; at most AXIS_DECADES decades,
 * those around the median.                                                                              */
enum { AXIS_DECADES = 12 };
struct axis axis_around(const double *v, int count, double from, double to);
double      axis_at(const struct axis *a, double v);        /* what is outside lies on the edge */

/* Ticks at round values, at least `apart` (a share of the axis) from each other; their number. */
enum { TICKS = 32 };
int axis_ticks(double out[TICKS], const struct axis *a, double apart);

/* Grid lines and labels; `label` writes a value as text.  An axis across that is taller than TALL has labels
 * above `top`, too.                                                                                        */
enum { TALL = 500 };
typedef const char *axis_label(char out[32], double v);

void svg_x_axis(const struct svg *s, const struct axis *x, double top, double bottom, axis_label *label);
void svg_y_axis(const struct svg *s, const struct axis *y, double left, double right, axis_label *label);

axis_label seconds_label, flops_label, plain_label;          /* "10 us", "100 GFLOP/s", "0.1" */
#endif
