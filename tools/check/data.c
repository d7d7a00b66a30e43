/* SPDX-License-Identifier: Apache-2.0
 *
 * data.c - integers whose sums are exact, random numbers, and the unusual ones.
 */
#include "data.h"

#include <math.h>

#include "oracle.h"

static void set(struct data *d, int slot, int64_t at, double v)
{
    d->values[slot][at] = oracle_round(d->p->type, v);
    oracle_store(d->p->type, d->bytes[slot], at, v);
}

static const vn_tensor *view_of(const struct operands *o, int slot)
{
    return slot == BIAS ? &o->bias : slot == MASK ? &o->mask : &o->t[slot];
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
    set(f->d, f->slot, at, v);
}

static void fill_reals(struct data *d, int slot, double low, double high)
{
    struct filler f = { d, slot, low, high, 0 };

    oracle_each(view_of(d->o, slot), fill_one, &f);
}

static void fill_integers(struct data *d, int slot, int64_t largest)
{
    struct filler f = { d, slot, 0, (double)largest, 1 };

    oracle_each(view_of(d->o, slot), fill_one, &f);
}

static void fill_with(struct data *d, int slot, double v)
{
    struct filler f = { d, slot, v, v, 0 };

    oracle_each(view_of(d->o, slot), fill_one, &f);
}

/* ---- sums ------------------------------------------------------------------- */

static int64_t products(const struct problem *p)
{
    int64_t n = p->k;

    if (p->op == CONV) {
        n = p->direction == FORWARD ? p->c / p->groups
          : p->direction == BACKWARD_DATA ? p->filters / p->groups : p->images;
        for (int i = 0; i < 3; i++)
            n *= p->direction == BACKWARD_FILTER ? p->out[i] : p->filter[i];
    }
    return n;
}

/* Integers up to +-r make sums up to n r r, halves of it with alpha 0.5: exact in f32 by
 * far, and r as large as lets a typical sum be exact in the type stored too.  Where one is
 * not, it is rounded once, from its exact value to nearest even, and that has tolerance 0. */
static void fill_sums_exact(struct data *d)
{
    static const double whole[] = { [VN_F32] = 1 << 20, [VN_F16] = 512, [VN_BF16] = 64, [VN_F64] = 1 << 20 };
    const double n = (double)products(d->p);
    int64_t      r = 4;

    while (r > 1 && n * (double)(r * r) > whole[d->p->type])
        r--;
    fill_integers(d, 0, r);
    fill_integers(d, 1, r);
    if (d->p->beta != 0)
        fill_integers(d, 2, 8);
    if (d->o->bias.rank)
        fill_integers(d, BIAS, 8);
}

static void fill_sums_real(struct data *d)
{
    fill_reals(d, 0, -1, 1);
    fill_reals(d, 1, -1, 1);
    if (d->p->beta != 0)
        fill_reals(d, 2, -1, 1);
    if (d->o->bias.rank)
        fill_reals(d, BIAS, -1, 1);
}

/* ---- softmax ------------------------------------------------------------------ */

struct row_filler { struct data *d; int axis, slot; };

/* Of n elements, a power of two: then 1 over it is exact. */
static int64_t draw_power(struct random *r, int64_t n)
{
    int64_t power = 1;

    while (2 * power <= n)
        power *= 2;
    return random_chance(r, 0.05) ? 0 : power > 1 && random_chance(r, 0.2) ? power / 2 : power;
}

/* One number at `left` of the places that are seen, -infinity at the others.  What the
 * causal mask hides is never read: NaN.                                               */
static void fill_row_equal(void *context, int64_t at, const int64_t place[VN_RANK])
{
    const struct row_filler *f = context;
    struct data   *d = f->d;
    const int64_t  n = d->p->n, i = f->axis > 0 ? place[f->axis - 1] : 0;
    const int64_t  seen = d->p->causal && i + 1 < n ? i + 1 : n;
    int64_t        left = draw_power(&d->random, seen);

    for (int64_t j = 0; j < n; j++) {
        const int keep = j < seen && random_below(&d->random, seen - j) < left;

        set(d, f->slot, at + j * view_of(d->o, f->slot)->stride[f->axis], j >= seen ? NAN : keep ? 2 : -INFINITY);
        left -= keep;
    }
}

static void each_row(struct data *d, int slot, oracle_visit *visit)
{
    vn_tensor         first = *view_of(d->o, slot);
    struct row_filler f = { d, first.rank - 1 - (d->p->inner > 1), slot };

    first.extent[f.axis] = first.extent[f.axis] > 1 ? 1 : first.extent[f.axis];
    oracle_each(&first, visit, &f);
}

/* What the causal mask hid is 0 in y, or -infinity in its logarithm. */
static void hide_later(void *context, int64_t at, const int64_t place[VN_RANK])
{
    struct data *d = context;
    const int    axis = d->o->t[0].rank - 1;

    if (place[axis] > place[axis - 1])
        set(d, 0, at, d->p->log ? -INFINITY : 0);
}

/* Forward, rows of one number and -infinity give 1 over a power of two.  Backward, small
 * integers as y; of the logarithm, whose exponential must be exact, 0 as y.             */
static void fill_softmax_exact(struct data *d)
{
    if (d->p->direction == FORWARD) {
        each_row(d, 0, fill_row_equal);
        if (d->o->mask.rank)
            fill_with(d, MASK, -3);
    } else {
        if (d->p->log)
            fill_with(d, 0, 0);
        else
            fill_integers(d, 0, 3);
        fill_integers(d, 1, 3);
    }
}

static void sometimes_hide(void *context, int64_t at, const int64_t place[VN_RANK])
{
    struct data *d = context;

    (void)place;
    if (random_chance(&d->random, 0.1))
        set(d, MASK, at, -INFINITY);
}

static void fill_softmax_real(struct data *d)
{
    const double reach = random_chance(&d->random, 0.3) ? 30 : 3;

    if (d->p->direction == FORWARD) {
        fill_reals(d, 0, -reach, reach);
        if (d->o->mask.rank)
            fill_reals(d, MASK, -2, 2);
        if (d->p->mask == MASK_FULL)
            oracle_each(&d->o->mask, sometimes_hide, d);
    } else {
        fill_reals(d, 0, d->p->log ? -8 : 0, d->p->log ? 0 : 2.0 / (double)(d->p->n > 1 ? d->p->n : 1));
        fill_reals(d, 1, -1, 1);
    }
}

void data_fill(struct data *d, enum kind kind)
{
    if (d->p->op == SOFTMAX)
        (kind == EXACT ? fill_softmax_exact : fill_softmax_real)(d);
    if (d->p->op == SOFTMAX && d->p->direction == BACKWARD && d->p->causal)
        oracle_each(&d->o->t[0], hide_later, d);
    if (d->p->op != SOFTMAX)
        (kind == EXACT ? fill_sums_exact : fill_sums_real)(d);
}

/* ---- unusual numbers -------------------------------------------------------------- */

static double not_a_number (vn_type t) { (void)t; return NAN; }
static double infinity     (vn_type t) { (void)t; return INFINITY; }
static double minus_inf    (vn_type t) { (void)t; return -INFINITY; }
static double minus_zero   (vn_type t) { (void)t; return -0.0; }
static double large        (vn_type t) { return oracle_largest(t) / 4; }      /* leaves room for what is added */
static double largest      (vn_type t) { return oracle_largest(t); }
static double minus_largest(vn_type t) { return -oracle_largest(t); }

static double denormal(vn_type t)
{
    static const double v[] = { [VN_F32] = 0x1p-130, [VN_F16] = 0x1p-20, [VN_BF16] = 0x1p-130, [VN_F64] = 0x1p-1040 };

    return v[t];
}

static int sums(const struct problem *p)    { return p->op != SOFTMAX; }
static int reads_c(const struct problem *p) { return p->op != SOFTMAX && p->beta != 0; }
static int biased(const struct problem *p)  { return p->op != SOFTMAX && p->bias; }
static int forward(const struct problem *p) { return p->op == SOFTMAX && p->direction == FORWARD; }
static int masked(const struct problem *p)  { return forward(p) && p->mask; }

/* Backward the causal mask leaves out what it hides: only rows that hide nothing here. */
static int backward(const struct problem *p)
{
    return p->op == SOFTMAX && p->direction == BACKWARD && !p->causal;
}

/* Whether a zero of the padding times a NaN of the filter counts is nobody's business:
 * a convolution has them in its second operand only where there is no padding.         */
static int plain(const struct problem *p)
{
    if (p->op != CONV)
        return p->op == GEMM;
    for (int i = 0; i < 3; i++)
        if (p->pad_before[i] || p->pad_after[i] || (p->direction == BACKWARD_DATA && (p->filter[i] > 1 || p->stride[i] > 1)))
            return 0;
    return 1;
}

/* Both operands of a sum that is not to be read. */
static int unread(const struct problem *p)
{
    return p->op != SOFTMAX && p->alpha == 0;
}

const struct pattern patterns[] = {
    { "a NaN in the first operand",        0,    not_a_number,  0, sums     },
    { "an infinity in the first operand",  0,    infinity,      0, sums     },
    { "-infinity in the first operand",    0,    minus_inf,     0, sums     },
    { "a large one in the first operand",  0,    large,         0, sums     },
    { "a denormal in the first operand",   0,    denormal,      0, sums     },
    { "-0 in the first operand",           0,    minus_zero,    1, sums     },
    { "a NaN in the second operand",       1,    not_a_number,  0, plain    },
    { "-infinity in the second operand",   1,    minus_inf,     0, plain    },
    { "a denormal in the second operand",  1,    denormal,      0, sums     },
    { "NaNs in A, alpha 0",                0,    not_a_number,  1, unread   },
    { "NaNs in B, alpha 0",                1,    not_a_number,  1, unread   },
    { "a NaN in C",                        2,    not_a_number,  0, reads_c  },
    { "an infinity in C",                  2,    infinity,      0, reads_c  },
    { "a NaN in the bias",                 BIAS, not_a_number,  0, biased   },
    { "-infinity in the bias",             BIAS, minus_inf,     0, biased   },
    { "a NaN in x",                        0,    not_a_number,  0, forward  },
    { "an infinity in x",                  0,    infinity,      0, forward  },
    { "-infinity in x",                    0,    minus_inf,     0, forward  },
    { "the largest in x",                  0,    largest,       0, forward  },
    { "the least in x",                    0,    minus_largest, 0, forward  },
    { "a denormal in x",                   0,    denormal,      0, forward  },
    { "all of x -infinity",                0,    minus_inf,     1, forward  },
    { "all of x the largest",              0,    largest,       1, forward  },
    { "all of x the least",                0,    minus_largest, 1, forward  },
    { "a NaN in the mask",                 MASK, not_a_number,  0, masked   },
    { "-infinity in the mask",             MASK, minus_inf,     0, masked   },
    { "all of the mask -infinity",         MASK, minus_inf,     1, masked   },
    { "a NaN in y",                        0,    not_a_number,  0, backward },
    { "a NaN in dy",                       1,    not_a_number,  0, backward },
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

    return t->suits(p) && problem_operands(&o, p) == 0 && view_of(&o, t->slot)->rank
        && count_of(view_of(&o, t->slot)) && count_of(&o.t[o.output]);
}

struct placer { struct data *d; const struct pattern *t; int64_t left; };

static void place_one(void *context, int64_t at, const int64_t place[VN_RANK])
{
    struct placer *w = context;

    (void)place;
    if (w->t->everywhere || w->left-- == 0)
        set(w->d, w->t->slot, at, w->t->value(w->d->p->type));
}

void data_place(struct data *d, const struct pattern *t, enum place place)
{
    const vn_tensor *v = view_of(d->o, t->slot);
    const int64_t    n = count_of(v);
    struct placer    w = { d, t, place == FIRST ? 0 : place == MIDDLE ? n / 2 : n - 1 };

    oracle_each(v, place_one, &w);
}
