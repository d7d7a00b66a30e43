/* SPDX-License-Identifier: Apache-2.0
 *
 * chart.h - the charts of reports: ratios summed up, row by row, and against time; and rooflines.
 *
 * A chart has one scale.  Ratios whose two sides have unlike engines (other instructions, or another
 * precision) are never summed up with others, and are drawn hollow.
 */
#ifndef VERNIER_CHART_H
#define VERNIER_CHART_H

#include "problem/problem.h"
#include "svg.h"

struct row_ratio {
    char   name[PROBLEM_TEXT], suite[64];
    char   group[64];                     /* "gemm f32"; its side in the comparison is `versus` */
    char   versus[32];                    /* a library, or "" */
    char   engines[96];                   /* "HGMMA bf16 x 3 against FFMA", "FFMA" */
    char   op[32], type[8];
    double ratio, low, high;              /* its interval; 0: none was measured */
    double seconds;                       /* what it is drawn over, in a chart against time */
    int    unlike, disturbed;
};

/* One question to all rows.  Parity, where there is one, is 0.9 to 1.1. */
struct comparison {
    const char  *title, *file, *caption;  /* file: of --svg, without its ending */
    int          has_parity, more_is_better;
    struct row_ratio *it;
    int          count, room;
};

/* A ratio for the caller to fill, all zeros; NULL if memory ran out. */
struct row_ratio *comparison_add  (struct comparison *c);
void          comparison_close(struct comparison *c);

/* As the quantiles of numpy: between two values, linearly. */
struct quartiles { double low, median, high; };
struct quartiles quartiles_of(const double *v, int count);

/* What sums up rows alike: those of one group, versus and, where unlike, engines. */
struct group {
    const struct row_ratio *first;
    char   engines[128];                  /* of all its rows */
    double *v;
    int    count;
    struct quartiles quartiles;
};
struct groups { struct group *it; int count; };

/* suite: only its rows; or NULL */
void groups_open (struct groups *g, const struct comparison *c, const char *suite);
void groups_close(struct groups *g);

/* ---- charts; a state of each is what its function draws ---- */

typedef void chart(struct svg *s, const void *state);

/* Each group: median, quartiles, and every row as a mark.  state: a struct strips. */
struct strips { const struct comparison *of; struct groups groups; };
double strips_height(const struct strips *s);
chart  strips_chart;

/* Each row of a suite as a bar from 1, with its interval. */
struct bars { const struct comparison *of; const char *suite, *versus; };
int    bars_count(const struct bars *b);
double bars_height(const struct bars *b);
chart  bars_chart;

/* Ratios against time; state: a struct comparison. */
enum { PLOT_HEIGHT = 400 };
chart  times_chart;

/* Roofs: the slope of a bandwidth, and a line for each kind of arithmetic. */
enum { ROOFS = 16 };
struct roof_line  { char name[64], type[8]; double flops_per_s; };
struct point { char name[PROBLEM_TEXT], op[32], type[8]; double intensity, flops_per_s; int cached; };
struct roofline_chart {
    double       bytes_per_s;
    struct roof_line  roof[ROOFS];
    int          roofs;
    struct point *it;
    int          count;
};
chart  roofline_chart;
#endif
