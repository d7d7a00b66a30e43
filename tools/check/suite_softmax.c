/* SPDX-License-Identifier: Apache-2.0
 *
 * suite_softmax.c - which softmaxes the suite runs, forward and backward, and on what.
 */
#include <math.h>
#include <string.h>

#include "data.h"
#include "oracle.h"
#include "problem/softmax.h"

/* ---- the data ---- */

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
    const int64_t  n = softmax_of(d->p)->n, i = f->axis > 0 ? place[f->axis - 1] : 0;
    const int64_t  seen = softmax_of(d->p)->causal && i + 1 < n ? i + 1 : n;
    int64_t        left = draw_power(&d->random, seen);

    for (int64_t j = 0; j < n; j++) {
        const int keep = j < seen && random_below(&d->random, seen - j) < left;

        data_set(d, f->slot, at + j * d->o->t[f->slot].stride[f->axis],
                 j >= seen ? NAN : keep ? 2 : -INFINITY);
        left -= keep;
    }
}

static void each_row(struct data *d, int slot, oracle_visit *visit)
{
    vn_tensor         first = d->o->t[slot];
    struct row_filler f = { d, first.rank - 1 - (softmax_of(d->p)->inner > 1), slot };

    first.extent[f.axis] = first.extent[f.axis] > 1 ? 1 : first.extent[f.axis];
    oracle_each(&first, visit, &f);
}

/* What the causal mask hid is 0 in y, or -infinity in its logarithm. */
static void hide_later(void *context, int64_t at, const int64_t place[VN_RANK])
{
    struct data *d = context;
    const int    axis = d->o->t[0].rank - 1;

    if (place[axis] > place[axis - 1])
        data_set(d, 0, at, softmax_of(d->p)->log ? -INFINITY : 0);
}

/* Forward, rows of one number and -infinity give 1 over a power of two.  Backward, small
 * integers as y; of the logarithm, whose exponential must be exact, 0 as y.             */
static void fill_exact(struct data *d)
{
    if (d->p->direction == FORWARD) {
        each_row(d, 0, fill_row_equal);
        if (d->o->t[SOFTMAX_MASK].rank)
            data_value(d, SOFTMAX_MASK, -3);
    } else {
        if (softmax_of(d->p)->log)
            data_value(d, 0, 0);
        else
            data_integers(d, 0, 3);
        data_integers(d, 1, 3);
    }
}

static void sometimes_hide(void *context, int64_t at, const int64_t place[VN_RANK])
{
    struct data *d = context;

    (void)place;
    if (random_chance(&d->random, 0.1))
        data_set(d, SOFTMAX_MASK, at, -INFINITY);
}

static void fill_real(struct data *d)
{
    const double reach = random_chance(&d->random, 0.3) ? 30 : 3;

    if (d->p->direction == FORWARD) {
        data_reals(d, 0, -reach, reach);
        if (d->o->t[SOFTMAX_MASK].rank)
            data_reals(d, SOFTMAX_MASK, -2, 2);
        if (softmax_of(d->p)->mask == MASK_FULL)
            oracle_each(&d->o->t[SOFTMAX_MASK], sometimes_hide, d);
    } else {
        data_reals(d, 0, softmax_of(d->p)->log ? -8 : 0,
                   softmax_of(d->p)->log ? 0
                 : 2.0 / (double)(softmax_of(d->p)->n > 1 ? softmax_of(d->p)->n : 1));
        data_reals(d, 1, -1, 1);
    }
}

void data_fill_softmax(struct data *d, enum kind kind)
{
    (kind == EXACT ? fill_exact : fill_real)(d);
    if (d->p->direction == BACKWARD && softmax_of(d->p)->causal)
        oracle_each(&d->o->t[0], hide_later, d);
}

static int forward(const struct problem *p) { return p->direction == FORWARD; }

/* Backward the causal mask leaves out what it hides: only rows that hide nothing here. */
static int backward(const struct problem *p)
{
    return p->direction == BACKWARD && !softmax_of(p)->causal;
}

const struct pattern softmax_patterns[] = {
    { "a NaN in x",                 0,            not_a_number,  0, forward  },
    { "an infinity in x",           0,            infinity,      0, forward  },
    { "-infinity in x",             0,            minus_inf,     0, forward  },
    { "the largest in x",           0,            largest,       0, forward  },
    { "the least in x",             0,            minus_largest, 0, forward  },
    { "a denormal in x",            0,            denormal,      0, forward  },
    { "all of x -infinity",         0,            minus_inf,     1, forward  },
    { "all of x the largest",       0,            largest,       1, forward  },
    { "all of x the least",         0,            minus_largest, 1, forward  },
    { "a NaN in the mask",          SOFTMAX_MASK, not_a_number,  0, forward  },
    { "-infinity in the mask",      SOFTMAX_MASK, minus_inf,     0, forward  },
    { "all of the mask -infinity",  SOFTMAX_MASK, minus_inf,     1, forward  },
    { "a NaN in y",                 0,            not_a_number,  0, backward },
    { "a NaN in dy",                1,            not_a_number,  0, backward },
    { NULL, 0, NULL, 0, NULL }
};

/* ---- the cases ---- */

static const int64_t lengths[] = { 1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 23, 24 };
static const int64_t longer[]  = { 31, 32, 33, 63, 64, 65, 97, 127, 128, 129, 255, 256, 257, 511, 513, 1000,
                                   1025 };
static const int64_t rows[]    = { 1, 1, 2, 3, 5, 7, 8, 16, 17 };
static const int64_t inners[]  = { 1, 1, 1, 2, 5, 16 };
static const int64_t batches[] = { 1, 1, 1, 2, 3 };
static const int64_t few[]     = { 1, 2, 3 };               /* a simulator takes a second for each row */
static const double  scales[]  = { 1, 1, 0.5, 2, -1 };
static const double  reals[]   = { 1, 0.125, 0.3, -0.7 };
static const enum beside besides[] = { APART, APART, APART, APART, APART, BESIDE_ROWS, BESIDE_BLOCKS };
static const int64_t gaps[]    = { 0, 0, 1, 3, 16 };
static const int64_t starts[]  = { 0, 0, 1, 5 };
static const enum mask masks[] = { NO_MASK, NO_MASK, MASK_ROW, MASK_FULL };

static void draw(struct problem *p, struct random *r, enum suite_extent extent)
{
    struct softmax_problem *const o = softmax_of(p);

    o->inner  = extent == SUITE_SMALL ? RANDOM_OF(r, few) : RANDOM_OF(r, inners);
    o->rows   = o->inner * (extent == SUITE_SMALL ? RANDOM_OF(r, few) : RANDOM_OF(r, rows));
    o->batch  = extent == SUITE_SMALL ? 1 : RANDOM_OF(r, batches);
    o->n      = extent == SUITE_SMALL || random_chance(r, 0.5) ? RANDOM_OF(r, lengths) : RANDOM_OF(r, longer);
    o->causal = o->inner == 1 && random_chance(r, 0.25);
    o->log    = random_chance(r, 0.4);
    o->scale  = RANDOM_OF(r, scales);
    o->mask   = p->direction == FORWARD ? RANDOM_OF(r, masks) : NO_MASK;
    p->gap    = RANDOM_OF(r, gaps);
    p->start  = RANDOM_OF(r, starts);
    p->beside = RANDOM_OF(r, besides);
}

static void draws(struct suite *s, enum direction direction, vn_type type, const char *variant,
                  enum kind kind, int times)
{
    struct random r = { s->seed + kind };

    if (!suite_begin(s, "softmax %s %s %s %s", direction == FORWARD ? "forward" : "backward",
                     suite_kinds[kind], vn_type_name(type), *variant ? variant : "(chosen)"))
        return;
    for (int i = 0; i < suite_times(s, times); i++) {
        struct problem p;
        struct softmax_problem *const o = softmax_of(&p);

        problem_usual(&p, &op_softmax);
        p.type = type;
        p.direction = direction;
        strcpy(p.variant, variant);
        draw(&p, &r, s->extent);
        if (kind == EXACT) {
            o->log   = direction == BACKWARD && o->log;         /* a logarithm is not exact */
            o->scale = o->scale < 0 ? 1 : o->scale;             /* -infinity must stay it */
        } else
            o->scale = RANDOM_OF(&r, reals);
        suite_case(s, &p, kind);
    }
    suite_end(s);
}

static void specials(struct suite *s, enum direction direction, vn_type type, const char *variant)
{
    static const struct { const char *sizes, *parts; int is_long; } table[] = {
        { "4x7",      "",                        0 },
        { "3x33",     ":gap=3:start=1:scale=0.5", 0 },
        { "5x24",     ":log",                    0 },
        { "12x17",    ":inner=4",                0 },
        { "6x5",      ":inner=3:log:batch=2",    0 },
        { "9x9",      ":causal",                 0 },
        { "4x9",      ":causal:log:batch=2",     0 },
        { "9x4",      ":causal",                 0 },
        { "3x1",      "",                        0 },
        { "3x1",      ":log",                    0 },
        { "0x5",      "",                        0 },
        { "5x0",      "",                        0 },
        { "5x3",      ":batch=0",                0 },
        { "2x257",    "",                        1 },
        { "1x4099",   ":log",                    1 },
        { "1x65537",  "",                        1 },
        { "2x1024",   ":log",                    1 },     /* around what registers hold */
        { "3x1025",   "",                        1 },
        { "2x4096",   ":start=4",                1 },
        { "1x8193",   "",                        1 },
        { "2x16384",  "",                        1 },
        { "2x16385",  ":start=1",                1 },
        { "3x32768",  "",                        1 },
        { "5x13",     ":scale=nan",              0 },
        { "5x24",     ":batch=2:beside=blocks",  0 },
        { "5x24",     ":beside=rows",            0 },
        { "9x9",      ":scale=nan:causal",       0 },
        { "7x11",     ":scale=nan:log:causal",   0 },
        { "5x13",     ":mask=row",               0 },
        { "5x20",     ":mask=full:log",          0 },
        { "6x13",     ":mask=full:causal",       0 },
        { "8x13",     ":mask=row:inner=2",       0 },
    };

    if (!suite_begin(s, "softmax %s special %s %s", direction == FORWARD ? "forward" : "backward",
                     vn_type_name(type), *variant ? variant : "(chosen)"))
        return;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char text[PROBLEM_TEXT], why[PROBLEM_TEXT];
        struct problem p;

        snprintf(text, sizeof text, "softmax:%s:%s%s%s%s%s", table[i].sizes, vn_type_name(type),
                 direction == FORWARD ? "" : ":backward", table[i].parts, *variant ? ":variant=" : "",
                 variant);
        if (table[i].is_long && s->extent == SUITE_SMALL)
            continue;
        if (problem_parse(&p, text, why, sizeof why))
            suite_fault(s, "%s", why);
        else if (direction == FORWARD || !softmax_of(&p)->mask)
            suite_case(s, &p, SPECIAL);
    }
    suite_end(s);
}

/* Results that no cache of a core holds, of rows that begin on and off the boundaries of vectors. */
static void outgrown(struct suite *s, vn_type type)
{
    static const char *const parts[] = { "", ":log", ":backward" };

    if (s->extent == SUITE_SMALL || !suite_begin(s, "softmax outgrown %s (chosen)", vn_type_name(type)))
        return;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char text[PROBLEM_TEXT], why[PROBLEM_TEXT];
        struct problem p;

        snprintf(text, sizeof text, "softmax:600x7000:%s%s", vn_type_name(type), parts[i]);
        if (problem_parse(&p, text, why, sizeof why))
            suite_fault(s, "%s", why);
        else
            suite_case(s, &p, REAL);
    }
    suite_end(s);
}

void suite_softmax(struct suite *s)
{
    outgrown(s, VN_F32);
    outgrown(s, VN_BF16);
    for (const char *v = suite_next_variant(s, &op_softmax, NULL); v;
         v = suite_next_variant(s, &op_softmax, v))
        for (int backward = 0; backward < 2; backward++)
            for (int type = 0; type < VN_TYPE_COUNT; type++) {
                const enum direction direction = backward ? BACKWARD : FORWARD;

                draws(s, direction, (vn_type)type, v, EXACT, 120);
                draws(s, direction, (vn_type)type, v, REAL, 60);
                specials(s, direction, (vn_type)type, v);
            }
}
