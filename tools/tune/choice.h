/* SPDX-License-Identifier: Apache-2.0
 *
 * choice.h - what the files of `vernier choice` share.
 */
#ifndef VERNIER_CHOICE_H
#define VERNIER_CHOICE_H

#include "bench/bench.h"
#include "bench/series.h"
#include "check/suite.h"
#include "measure/sampling.h"
#include "problem/values.h"

/* ---- candidates.c: every way to solve a problem, timed ---- */

struct candidate {
    struct problem  problem;
    const struct vn_choice *choice;       /* that it is done by; NULL: the library's own */
    struct operands o;                    /* buffers are shared, the pack is its own */
    struct series   series;
    json_t         *how;                  /* "variant", "parameters", and if there are any, "estimate" and
                                             "why" it is only used if asked for by name */
    double          seconds;              /* the median; of a slow one, the second run; 0: it failed */
    int             slow;                 /* too slow to be sampled */
    int             samples, repeats;
    double          sample[SAMPLES];      /* ascending */
    char            note[SENTENCE];       /* how it failed */
};

enum { CANDIDATES = 64 };

struct candidates {
    struct candidate it[CANDIDATES];      /* the library's own choice first */
    int              count, best, slow;   /* slow: how many are */
    int              failed;              /* as opposed to skipped */
    char             note[SENTENCE];      /* why nothing was measured; "" where it was */
};

/* Takes so many samples of each.  within: 0, or of plans that are estimated at no more than so many times the
 * library's choice.                                                                                       */
void        candidates_measure(struct candidates *out, struct bench *b, const struct problem *p, int samples,
                               double within);
void        candidates_close  (struct candidates *c);
const char *candidate_variant (const struct candidate *c);
double      candidate_estimate(const struct candidate *c);    /* seconds, by the library; 0: it has none */
/* The chosen one's time over the best one's; 0: not measured. */
double      candidates_ratio  (const struct candidates *c);

/* ---- drawn.c: random GEMM problems ---- */

struct limits {
    double bytes;                         /* of an operand */
    double flops;                         /* of a problem; of f64, two thirds of that */
    int    type;                          /* a vn_type for all of them; -1: drawn too */
};

/* Draws until one is within the limits; from one seed the same problems on every machine. */
void drawn_gemm(char text[PROBLEM_TEXT], struct random *r, const struct limits *most);
#endif
