/* SPDX-License-Identifier: Apache-2.0
 *
 * suite_cross_entropy.c - which losses the suite computes, and of what.
 */
#include <math.h>
#include <string.h>

#include "data.h"
#include "oracle.h"
#include "problem/cross_entropy.h"

/* ---- the data ---- */

/* Most targets are classes; some are to be ignored, some are none. */
static int64_t draw_target(struct data *d)
{
    static const int64_t none[] = { -1, -99, INT32_MIN, INT32_MAX - (1 << 24) };
    const struct cross_entropy_problem *const e = cross_entropy_of(d->p);

    if (random_chance(&d->random, 0.1))
        return e->ignore ? e->ignore : ENTROPY_IGNORED;
    if (random_chance(&d->random, 0.1))
        return random_chance(&d->random, 0.5) ? e->classes : RANDOM_OF(&d->random, none);
    return random_below(&d->random, e->classes);
}

static void set_target(struct data *d, int64_t row, int64_t target)
{
    const vn_tensor *const t = &d->o->t[ENTROPY_TARGETS];
    const int64_t at = t->start + row * t->stride[0];

    data_set(d, ENTROPY_TARGETS, at, data_number((int32_t)target));
    if (t->extent[1] == 2)
        data_set(d, ENTROPY_TARGETS, at + 1, data_number((int32_t)(target >> 32)));
}

/* One class has a small integer, the others -infinity: the sum is 1, its logarithm 0. */
static void fill_row_exact(struct data *d, int64_t row, int64_t target)
{
    const struct cross_entropy_problem *const e = cross_entropy_of(d->p);
    const vn_tensor *const x = &d->o->t[ENTROPY_X];
    const int64_t one = target >= 0 && target < e->classes && random_chance(&d->random, 0.8)
                      ? target : random_below(&d->random, e->classes);

    for (int64_t j = 0; j < e->classes; j++)
        data_set(d, ENTROPY_X, x->start + row * x->stride[0] + j * x->stride[1],
                 j == one ? (double)random_below(&d->random, 7) - 3 : -INFINITY);
}

void data_fill_cross_entropy(struct data *d, enum kind kind)
{
    const struct cross_entropy_problem *const e = cross_entropy_of(d->p);
    const double reach = random_chance(&d->random, 0.3) ? 30 : 3;

    if (kind != EXACT)
        data_reals(d, ENTROPY_X, -reach, reach);
    if (e->weights && kind == EXACT)
        data_integers(d, ENTROPY_WEIGHTS, 3);
    else if (e->weights)
        data_reals(d, ENTROPY_WEIGHTS, -2, 2);
    for (int64_t row = 0; row < e->rows; row++) {
        const int64_t target = draw_target(d);

        set_target(d, row, target);
        if (kind == EXACT)
            fill_row_exact(d, row, target);
    }
}

const struct pattern cross_entropy_patterns[] = {
    { "a NaN in x",           ENTROPY_X, not_a_number,  0, NULL },
    { "an infinity in x",     ENTROPY_X, infinity,      0, NULL },
    { "-infinity in x",       ENTROPY_X, minus_inf,     0, NULL },
    { "the largest in x",     ENTROPY_X, largest,       0, NULL },
    { "the least in x",       ENTROPY_X, minus_largest, 0, NULL },
    { "all of x -infinity",   ENTROPY_X, minus_inf,     1, NULL },
    { "a NaN in the weights", ENTROPY_WEIGHTS, not_a_number, 0, NULL },
    { NULL, 0, NULL, 0, NULL }
};

/* ---- the cases ---- */

static const int64_t lengths[] = { 1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 23, 24 };
static const int64_t longer[]  = { 31, 32, 33, 63, 64, 65, 97, 127, 128, 129, 255, 256, 257, 511, 513, 1000,
                                   1024, 1025 };
static const int64_t rows[]    = { 1, 2, 3, 5, 7, 8, 16, 17 };
static const int64_t few[]     = { 1, 2, 3 };               /* a simulator takes a second for each row */
static const int64_t gaps[]    = { 0, 0, 0, 1, 3, 8 };
static const int64_t starts[]  = { 0, 0, 1, 5 };
static const double  shares[]  = { 0, 0, 0.1, 0.5, 1 };
static const double  losses[]  = { 0, 0, 1e-4, 0.5 };

static void draw(struct problem *p, struct random *r, enum suite_extent extent, enum kind kind)
{
    struct cross_entropy_problem *const e = cross_entropy_of(p);

    e->rows    = extent == SUITE_SMALL ? RANDOM_OF(r, few) : RANDOM_OF(r, rows);
    e->classes = extent == SUITE_SMALL || random_chance(r, 0.5) ? RANDOM_OF(r, lengths)
                                                                : RANDOM_OF(r, longer);
    e->ignore  = random_chance(r, 0.3) ? 1 : 0;
    e->only_loss = random_chance(r, 0.2);
    e->in_place  = !e->only_loss && random_chance(r, 0.4);
    e->weights   = random_chance(r, 0.4);
    e->lse       = random_chance(r, 0.4);
    e->wide_targets = random_chance(r, 0.4);
    e->smoothing = kind == EXACT ? 0 : RANDOM_OF(r, shares);
    e->z_loss    = kind == EXACT ? (random_chance(r, 0.3) ? 0.5 : 0) : RANDOM_OF(r, losses);
    p->beta  = e->in_place;
    p->gap   = RANDOM_OF(r, gaps);
    p->start = RANDOM_OF(r, starts);
}

static void draws(struct suite *s, vn_type type, const char *variant, enum kind kind, int times)
{
    struct random r = { s->seed + kind };

    if (!suite_begin(s, "cross-entropy %s %s %s", suite_kinds[kind], vn_type_name(type),
                     *variant ? variant : "(chosen)"))
        return;
    for (int i = 0; i < suite_times(s, times); i++) {
        struct problem p;

        problem_usual(&p, &op_cross_entropy);
        p.type = type;
        strcpy(p.variant, variant);
        draw(&p, &r, s->extent, kind);
        suite_case(s, &p, kind);
    }
    suite_end(s);
}

static void specials(struct suite *s, vn_type type, const char *variant)
{
    static const struct { const char *sizes, *parts; int is_long; } table[] = {
        { "4x7",     "",                                 0 },
        { "3x33",    ":gap=3:start=1:smoothing=0.1",     0 },
        { "5x24",    ":inplace:lse",                     0 },
        { "5x24",    ":loss:zloss=0.001:targets=i64",    0 },
        { "6x16",    ":weights:inplace:targets=i64",     0 },
        { "3x1",     ":lse",                             0 },
        { "0x5",     "",                                 0 },
        { "2x257",   ":inplace",                         1 },
        { "2x4099",  ":smoothing=0.1",                   1 },
        { "3x16384", ":inplace",                         1 },      /* around what registers hold */
        { "2x16385", ":start=1",                         1 },
        { "1x65536", ":inplace:zloss=0.0001",            1 },
    };

    if (!suite_begin(s, "cross-entropy special %s %s", vn_type_name(type), *variant ? variant : "(chosen)"))
        return;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char text[PROBLEM_TEXT], why[PROBLEM_TEXT];
        struct problem p;

        snprintf(text, sizeof text, "cross-entropy:%s:%s%s%s%s", table[i].sizes, vn_type_name(type),
                 table[i].parts, *variant ? ":variant=" : "", variant);
        if (table[i].is_long && s->extent == SUITE_SMALL)
            continue;
        if (problem_parse(&p, text, why, sizeof why))
            suite_fault(s, "%s", why);
        else
            suite_case(s, &p, SPECIAL);
    }
    suite_end(s);
}

void suite_cross_entropy(struct suite *s)
{
    for (const char *v = suite_next_variant(s, &op_cross_entropy, NULL); v;
         v = suite_next_variant(s, &op_cross_entropy, v))
        for (int type = 0; type < VN_TYPE_COUNT; type++) {
            draws(s, (vn_type)type, v, EXACT, 120);
            draws(s, (vn_type)type, v, REAL, 120);
            specials(s, (vn_type)type, v);
        }
}
