/* SPDX-License-Identifier: Apache-2.0
 *
 * data.h - what a case of the suite computes on.
 */
#ifndef VERNIER_DATA_H
#define VERNIER_DATA_H

#include <string.h>

#include "suite.h"

/* Integers are seen as f32 of the same bits: the number that has those of an integer, and back. */
static inline double data_number(int32_t v)
{
    float x;

    memcpy(&x, &v, sizeof x);
    return x;
}

static inline int32_t data_integer(double number)
{
    const float x = (float)number;
    int32_t v;

    memcpy(&v, &x, sizeof v);
    return v;
}

struct data {
    const struct problem  *p;
    const struct operands *o;
    double                *values[OPERANDS];      /* what the oracle reads */
    void                  *bytes[OPERANDS];       /* what the device gets */
    struct random          random;
};

/* ---- for the operations: elements of operand `slot` ---- */

void data_set     (struct data *d, int slot, int64_t at, double v);     /* one, as a number and as bytes */
void data_reals   (struct data *d, int slot, double low, double high);  /* all, uniform */
/* all, with either sign, but never 0 */
void data_integers(struct data *d, int slot, int64_t largest);
void data_value   (struct data *d, int slot, double v);                 /* all */

/* Of operations that sum products of their operands 0 and 1 into 2, perhaps with a bias as operand 3, a
 * residual as operand 4 and a scale as operand 5.                                                     */
void data_fill_products(struct data *d, enum kind kind);

/* ---- unusual numbers ---- */

enum place { FIRST, MIDDLE, LAST };

/* One unusual number, and where it goes. */
struct pattern {
    const char *name;             /* NULL ends the table */
    int         slot;
    double    (*value)(vn_type t);
    int         everywhere;       /* in each element, rather than in one */
    int       (*suits)(const struct problem *p);          /* NULL: always, if the operand is there */
};
extern const struct pattern product_patterns[];

double not_a_number (vn_type t);
double infinity     (vn_type t);
double minus_inf    (vn_type t);
double minus_zero   (vn_type t);
double large        (vn_type t);  /* leaves room for what is added */
double largest      (vn_type t);
double minus_largest(vn_type t);
double denormal     (vn_type t);

int  data_suits(const struct problem *p, const struct pattern *t);
void data_place(struct data *d, const struct pattern *t, enum place place);
#endif
