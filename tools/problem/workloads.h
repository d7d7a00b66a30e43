/* SPDX-License-Identifier: Apache-2.0
 *
 * workloads.h - what to measure: a problem, or each row of a suite (a CSV file of suites/).
 *
 * Suites are looked for in $VERNIER_SUITES, beside the source of an uninstalled build, and
 * where they were installed.
 */
#ifndef VERNIER_WORKLOADS_H
#define VERNIER_WORKLOADS_H

#include "problem.h"

enum { ALL_DIRECTIONS = -2 };           /* each problem in all directions that its operation has */

/* What the command line says of all problems; -1 and NULL: nothing. */
struct workload_options {
    int         type, direction;
    int64_t     batch, tokens;
    const char *variant, *filter, *with;    /* with: words added to each problem's text */
    int         sequences;                  /* suites that are one keep each row, in its place */
};

enum { LABEL = 128 };

struct workload {
    struct problem problem;
    char           text[PROBLEM_TEXT];
    const char    *suite;                /* its name, or "" */
    char           label[LABEL];         /* "res2a_branch1", or ""; of one shape, several */
    int            layers;               /* of a sequence, whose first is the problem; 0: the problem alone */
};

/* is_sequence: the problems follow each other, and are measured as one: the layers of a network. */
struct workloads { struct workload *it; int count, room, is_sequence; };

/* Adds what `what` stands for; 0, or -1 with a sentence in why[]. */
int  workloads_add(struct workloads *w, const char *what, const struct workload_options *o,
                   char *why, size_t why_size);
void workloads_close(struct workloads *w);

/* What stands for a sequence in reports: "sequence:resnet50-network:53:" and its first problem. */
void workloads_sequence(struct workload *out, const struct workloads *w);

/* "squares, resnet50, ..." for --help */
const char *workloads_suites(void);
#endif
