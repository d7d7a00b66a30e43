/* SPDX-License-Identifier: Apache-2.0
 *
 * data.h - what a case of the suite computes on.
 */
#ifndef VERNIER_DATA_H
#define VERNIER_DATA_H

#include "suite.h"

enum { BIAS = 3, MASK = 4, SLOTS = 5 };           /* after the operands of a problem */

struct data {
    const struct problem  *p;
    const struct operands *o;
    double                *values[SLOTS];         /* what the oracle reads */
    void                  *bytes[SLOTS];          /* what the device gets */
    struct random          random;
};

/* Sets every element that the operation reads, as numbers and as bytes. */
void data_fill(struct data *d, enum kind kind);

enum place { FIRST, MIDDLE, LAST };

/* One unusual number, and where it goes. */
struct pattern {
    const char *name;             /* NULL ends the table */
    int         slot;
    double    (*value)(vn_type t);
    int         everywhere;       /* in each element, rather than in one */
    int       (*suits)(const struct problem *p);
};
extern const struct pattern patterns[];

int  data_suits(const struct problem *p, const struct pattern *t);
void data_place(struct data *d, const struct pattern *t, enum place place);
#endif
