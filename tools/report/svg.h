/* SPDX-License-Identifier: Apache-2.0
 *
 * svg.h - charts inside a page of html.h: axes, and marks at places on them.
 */
#ifndef VERNIER_SVG_H
#define VERNIER_SVG_H

#include <stdio.h>

/* Logarithmic: values from low to high lie on pixels from `from` to `to`. */
struct axis { double low, high, from, to; };

/* Around all of count values above 0, out to powers of ten; at least one decade. */
struct axis axis_around(const double *v, int count, double from, double to);
double      axis_at(const struct axis *a, double v);        /* what is outside lies on the edge */

enum mark { CIRCLE, SQUARE, TRIANGLE };

void svg_open (FILE *to, int width, int height, const char *title);
void svg_close(FILE *to);
void svg_line (FILE *to, const char *style, double x1, double y1, double x2, double y2);
void svg_rect (FILE *to, const char *style, double x, double y, double width, double height);
void svg_text (FILE *to, const char *style, double x, double y, const char *text);
/* hint: what a pointer that rests on it shows. */
void svg_mark (FILE *to, const char *style, enum mark shape, double x, double y, const char *hint);

/* The frame of a plot: grid lines and labels at powers of ten, and the axes' names.  `label` writes a
 * value as text.                                                                                   */
struct frame {
    struct axis  x, y;
    const char  *x_name, *y_name;
    const char *(*x_label)(char out[32], double v), *(*y_label)(char out[32], double v);
};
void svg_frame(FILE *to, const struct frame *f);

const char *seconds_label(char out[32], double seconds);     /* "10 us" */
const char *flops_label  (char out[32], double flops);       /* "100 GFLOP/s" */
const char *plain_label  (char out[32], double v);           /* "0.1" */

/* A row of a chart of bars: times over times, from 1 to the right and to the left. */
struct bar { const char *name; double ratio; };
void svg_bars(FILE *to, const char *title, const struct bar *bars, int count);
#endif
