/* SPDX-License-Identifier: Apache-2.0
 *
 * data.c - integers whose sums are exact, random numbers, and unusual ones.
 */
#include "data.h"

#include <math.h>

#include "oracle.h"

void data_set(struct data *d, int slot, int64_t at, double v)
{
    const vn_type type = d->o->t[slot].type;

    d->values[slot][at] = oracle_round(type, v);
    oracle_store(type, d->bytes[slot], at, v);
}

/* ---- one number after another --------------------------------------------- */

struct filler { struct data *d; int slot; double low, high; int whole; };

static void fill_one(void *context, int64_t at, const int64_t place[VN_RANK])
{
    const struct filler *f = context;
    struct random       *r = &f->d->random;
    double v = random_real(r, f->low, f->high);

    (void)place;
    if (f->whole)                                               /* never 0: that would hide errors */
        v = (double)(1 + random_below(r, (int64_t)f->high)) * (random_chance(r, 0.5) ? -1 : 1);
    data_set(f->d, f->slot, at, v);
}

void data_reals(struct data *d, int slot, double low, double high)
{
    struct filler f = { d, slot, low, high, 0 };

    oracle_each(&d->o->t[slot], fill_one, &f);
}

void data_integers(struct data *d, int slot, int64_t largest)
{
    struct filler f = { d, slot, 0, (double)largest, 1 };

    oracle_each(&d->o->t[slot], fill_one, &f);
}

void data_value(struct data *d, int slot, double v)
{
    struct filler f = { d, slot, v, v, 0 };

    oracle_each(&d->o->t[slot], fill_one, &f);
}

/* ---- sums of products ---- */

enum { SUM = 2, BIAS = 3, RESIDUAL = 4, SCALE = 5 };

/* Integers up to +-r make sums up to n r r, halves of it with alpha 0.5: exact in f32 by
 * far, and r as large as lets a typical sum be exact in the type stored too.  Where one is
 * not, it is rounded once, from its exact value to nearest even, and that has tolerance 0. */
static void fill_exact(struct data *d)
{
    static const double whole[] = { [VN_F32] = 1 << 20, [VN_F16] = 512, [VN_BF16] = 64, [VN_F64] = 1 << 20 };
    const double n = d->p->op->summands(d->p);
    int64_t      r = 4;

    while (r > 1 && n * (double)(r * r) > whole[d->p->type])
        r--;
    data_integers(d, 0, r);
    data_integers(d, 1, r);
    if (d->o->t[SCALE].rank)
        data_integers(d, SCALE, 2);
    if (d->p->beta != 0)
        data_integers(d, d->o->t[RESIDUAL].rank ? RESIDUAL : SUM, 8);
    if (d->o->t[BIAS].rank)
        data_integers(d, BIAS, 8);
}

static void fill_real(struct data *d)
{
    data_reals(d, 0, -1, 1);
    data_reals(d, 1, -1, 1);
    if (d->o->t[SCALE].rank)
        data_reals(d, SCALE, -2, 2);
    if (d->p->beta != 0)
        data_reals(d, d->o->t[RESIDUAL].rank ? RESIDUAL : SUM, -1, 1);
    if (d->o->t[BIAS].rank)
        data_reals(d, BIAS, -1, 1);
}

void data_fill_products(struct data *d, enum kind kind)
{
    (kind == EXACT ? fill_exact : fill_real)(d);
}

/* ---- unusual numbers -------------------------------------------------------------- */

double not_a_number (vn_type t) { (void)t; return NAN; }
double infinity     (vn_type t) { (void)t; return INFINITY; }
double minus_inf    (vn_type t) { (void)t; return -INFINITY; }
double minus_zero   (vn_type t) { (void)t; return -0.0; }
double large        (vn_type t) { return oracle_largest(t) / 4; }
double largest      (vn_type t) { return oracle_largest(t); }
double minus_largest(vn_type t) { return -oracle_largest(t); }

double denormal(vn_type t)
{
    static const double v[] = { [VN_F32] = 0x1p-130, [VN_F16] = 0x1p-20, [VN_BF16] = 0x1p-130,
                                [VN_F64] = 0x1p-1040 };

    return v[t];
}

static int reads_sum(const struct problem *p) { return p->beta != 0; }

/* Both operands of a sum that is not to be read. */
static int unread(const struct problem *p) { return p->alpha == 0; }

const struct pattern product_patterns[] = {
    { "a NaN in the first operand",        0,    not_a_number,  0, NULL      },
    { "an infinity in the first operand",  0,    infinity,      0, NULL      },
    { "-infinity in the first operand",    0,    minus_inf,     0, NULL      },
    { "a large one in the first operand",  0,    large,         0, NULL      },
    { "a denormal in the first operand",   0,    denormal,      0, NULL      },
    { "-0 in the first operand",           0,    minus_zero,    1, NULL      },
    { "a NaN in the second operand",       1,    not_a_number,  0, NULL      },
    { "-infinity in the second operand",   1,    minus_inf,     0, NULL      },
    { "a denormal in the second operand",  1,    denormal,      0, NULL      },
    { "NaNs in A, alpha 0",                0,    not_a_number,  1, unread    },
    { "NaNs in B, alpha 0",                1,    not_a_number,  1, unread    },
    { "a NaN in C",                        SUM,  not_a_number,  0, reads_sum },
    { "an infinity in C",                  SUM,  infinity,      0, reads_sum },
    { "a NaN in the bias",                 BIAS, not_a_number,  0, NULL      },
    { "a NaN in the residual",             RESIDUAL, not_a_number, 1, NULL   },
    { "an infinity in the scale",          SCALE, infinity,     0, NULL      },
    { "-infinity in the bias",             BIAS, minus_inf,     0, NULL      },
    { NULL, 0, NULL, 0, NULL }
};

static int64_t count_of(const vn_tensor *t)
{
    int64_t n = 1;

    for (int i = 0; i < t->rank; i++)
        n *= t->extent[i];
    return n;
}

int data_suits(const struct problem *p, const struct pattern *t)
{
    struct operands o;

    return (!t->suits || t->suits(p)) && (!p->op->suits || p->op->suits(p, t)) && problem_operands(&o, p) == 0
        && o.t[t->slot].rank && count_of(&o.t[t->slot]) && count_of(&o.t[o.output]);
}

struct placer { struct data *d; const struct pattern *t; int64_t left; };

static void place_one(void *context, int64_t at, const int64_t place[VN_RANK])
{
    struct placer *w = context;

    (void)place;
    if (w->t->everywhere || w->left-- == 0)
        data_set(w->d, w->t->slot, at, w->t->value(w->d->o->t[w->t->slot].type));
}

void data_place(struct data *d, const struct pattern *t, enum place place)
{
    const vn_tensor *v = &d->o->t[t->slot];
    const int64_t    n = count_of(v);
    struct placer    w = { d, t, place == FIRST ? 0 : place == MIDDLE ? n / 2 : n - 1 };

    oracle_each(v, place_one, &w);
}
