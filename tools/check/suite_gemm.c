/* SPDX-License-Identifier: Apache-2.0
 *
 * suite_gemm.c - which matrix products the suite runs.
 *
 * Sizes straddle the powers of two that tiles have, and primes are among them.  Each
 * variant and type gets the same draws from these tables, so that a failure of one says
 * something about the others.
 */
#include <string.h>

#include "suite.h"

static const int64_t small[]   = { 1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 15, 16, 17, 19, 23, 24 };
static const int64_t medium[]  = { 25, 29, 31, 32, 33, 37, 41, 47, 48, 49, 53, 63, 64, 65 };
static const int64_t larger[]  = { 67, 79, 95, 96, 97, 101, 127, 128, 129, 131, 191, 192, 193, 255, 256, 257 };
static const int64_t deep[]    = { 300, 512, 777, 1000, 1024, 1025 };       /* of K, where C is small */
static const double  factors[] = { 0, 1, 1, -1, 2, 0.5 };
static const int64_t gaps[]    = { 0, 0, 1, 3, 16 };
static const int64_t starts[]  = { 0, 0, 1, 5 };
static const int64_t batches[] = { 1, 1, 1, 2, 3, 4 };
static const enum bias biases[] = { NO_BIAS, NO_BIAS, BIAS_ROW, BIAS_COL, BIAS_FULL };

enum { WORK = 1 << 18 };          /* multiplications, at most: the oracle's time */

static int64_t draw_size(struct random *r, enum suite_extent extent)
{
    const double where = random_real(r, 0, 1);

    if (extent == SUITE_SMALL || where < 0.6)
        return RANDOM_OF(r, small);
    return where < 0.9 ? RANDOM_OF(r, medium) : RANDOM_OF(r, larger);
}

static int64_t round_up(int64_t n) { return (n + 7) / 8 * 8; }

/* Lines of whole 16 bytes: what copy engines ask for. */
static void align(struct problem *p)
{
    p->m = round_up(p->m);
    p->n = round_up(p->n);
    p->k = round_up(p->k);
    p->gap = p->gap / 16 * 16;
    p->start = p->start > 1 ? 16 : 0;
}

static const struct problem plain = { .op = GEMM, .alpha = 1, .batch = 1, .inner = 1, .groups = 1, .scale = 1 };

static void draw(struct problem *p, struct random *r, enum suite_extent extent)
{
    const int is_deep = extent != SUITE_SMALL && random_chance(r, 0.06);

    do {
        p->m = draw_size(r, extent);
        p->n = draw_size(r, extent);
        p->k = is_deep ? RANDOM_OF(r, deep) : random_chance(r, 0.02) ? 0 : draw_size(r, extent);
        p->batch = RANDOM_OF(r, batches);
    } while (p->m * p->n * p->k * p->batch > WORK);
    p->trans_a = random_chance(r, 0.5);
    p->trans_b = random_chance(r, 0.5);
    p->trans_c = random_chance(r, 0.2);
    p->share_a = p->batch > 1 && random_chance(r, 0.25);
    p->share_b = p->batch > 1 && random_chance(r, 0.25);
    p->alpha   = RANDOM_OF(r, factors);
    p->beta    = RANDOM_OF(r, factors);
    if (p->alpha == 0 && random_chance(r, 0.7))
        p->alpha = 1;
    p->bias    = RANDOM_OF(r, biases);
    p->act     = random_chance(r, 0.15) ? VN_RELU : VN_IDENTITY;
    p->gap     = RANDOM_OF(r, gaps);
    p->start   = RANDOM_OF(r, starts);
    p->packed  = random_chance(r, 0.25);
    if (random_chance(r, 0.25))
        align(p);
}

/* What rounding forgives may be any function, any factor and any way of rounding. */
static void draw_real(struct problem *p, struct random *r)
{
    static const double reals[] = { 1, 1, -0.75, 0.3, 1.7 };

    p->alpha = RANDOM_OF(r, reals);
    p->beta  = random_chance(r, 0.5) ? 0 : RANDOM_OF(r, reals);
    p->act   = (vn_activation)random_below(r, VN_ACTIVATION_COUNT);
    p->math  = random_chance(r, 0.1) ? VN_MATH_TF32 : random_chance(r, 0.1) ? VN_MATH_BITWISE : VN_MATH_DEFAULT;
}

static void draws(struct suite *s, vn_type type, const char *variant, enum kind kind, int times)
{
    struct random r = { s->seed + kind };

    suite_begin(s, "gemm %s %s %s", suite_kinds[kind], vn_type_name(type), *variant ? variant : "(chosen)");
    for (int i = 0; i < suite_times(s, times); i++) {
        struct problem p = plain;

        p.type = type;
        strcpy(p.variant, variant);
        draw(&p, &r, s->extent);
        if (kind == REAL)
            draw_real(&p, &r);
        else if (type == VN_F32 && random_chance(&r, 0.25))
            p.math = VN_MATH_TF32;              /* to which small integers are exact, too */
        suite_case(s, &p, kind);
    }
    suite_end(s);
}

/* Longer than what kernels take of K at a time, and B large enough to be shared out along K. */
static void stretches(struct suite *s, vn_type type, const char *variant)
{
    static const struct problem table[] = {
        { .m = 1,  .n = 2055, .k = 1100 },
        { .m = 3,  .n = 4099, .k = 530, .bias = BIAS_ROW, .beta = -1 },
        { .m = 5,  .n = 33,   .k = 2600, .trans_b = 1, .beta = 2 },
        { .m = 13, .n = 40,   .k = 2100, .trans_a = 1 },
        { .m = 27, .n = 67,   .k = 1100, .trans_a = 1, .trans_b = 1, .bias = BIAS_COL },
        { .m = 67, .n = 37,   .k = 1030 },
        { .m = 1289, .n = 37, .k = 1100, .bias = BIAS_ROW },    /* many rows: sums may wait in C */
        { .m = 29, .n = 70,   .k = 1100, .packed = 1 },
        { .m = 37, .n = 97,   .k = 2100, .trans_b = 1, .packed = 1, .bias = BIAS_ROW },
        { .m = 2,  .n = 17412, .k = 132, .trans_b = 1 },        /* more tiles than units */
    };

    suite_begin(s, "gemm stretches %s %s", vn_type_name(type), *variant ? variant : "(chosen)");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct problem p = table[i];

        p.op    = GEMM;
        p.type  = type;
        p.alpha = p.scale = 1;
        p.batch = p.inner = p.groups = 1;
        strcpy(p.variant, variant);
        suite_case(s, &p, EXACT);
    }
    suite_end(s);
}

/* Unusual numbers, and nothing to do. */
static void specials(struct suite *s, vn_type type, const char *variant)
{
    static const struct problem table[] = {
        { .m = 5,  .n = 7,  .k = 9 },
        { .m = 17, .n = 19, .k = 23, .beta = 1, .trans_a = 1, .bias = BIAS_ROW, .gap = 3 },
        { .m = 33, .n = 9,  .k = 17, .beta = -1, .trans_b = 1, .bias = BIAS_FULL, .act = VN_GELU },
        { .m = 8,  .n = 21, .k = 3,  .act = VN_RELU, .bias = BIAS_COL, .batch = 2 },
        { .m = 1,  .n = 18, .k = 33, .act = VN_SILU, .start = 1 },
        { .m = 24, .n = 1,  .k = 40, .act = VN_SIGMOID, .beta = 2 },
        { .m = 6,  .n = 6,  .k = 5,  .act = VN_TANH },
        { .m = 9,  .n = 11, .k = 13, .alpha = -2, .beta = 0.5, .trans_a = 1, .trans_b = 1 },
        { .m = 14, .n = 35, .k = 10, .packed = 1 },
        { .m = 0,  .n = 11, .k = 4,  .packed = 1 },
        { .m = 9,  .n = 11, .k = 0,  .beta = 2, .bias = BIAS_ROW },
        { .m = 9,  .n = 11, .k = 0 },
        { .m = 0,  .n = 11, .k = 4 },
        { .m = 9,  .n = 0,  .k = 4 },
        { .m = 0,  .n = 0,  .k = 0 },
        { .m = 9,  .n = 11, .k = 4, .batch = -1 },              /* none */
    };

    suite_begin(s, "gemm special %s %s", vn_type_name(type), *variant ? variant : "(chosen)");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        for (int way = 0; way < (type == VN_F32 && s->extent != SUITE_SMALL ? 4 : 2); way++) {
            const int without = way % 2;
            struct problem p = table[i];

            p.op    = GEMM;
            p.type  = type;
            p.scale = 1;
            p.inner = p.groups = 1;
            p.batch = p.batch < 0 ? 0 : p.batch ? p.batch : 1;
            p.alpha = without ? 0 : p.alpha != 0 ? p.alpha : 1;
            p.math  = way / 2 ? VN_MATH_TF32 : VN_MATH_DEFAULT;
            strcpy(p.variant, variant);
            suite_case(s, &p, SPECIAL);
        }
    suite_end(s);
}

void suite_gemm(struct suite *s)
{
    for (const char *v = suite_next_variant(s, GEMM, NULL); v; v = suite_next_variant(s, GEMM, v))
        for (int type = 0; type < VN_TYPE_COUNT; type++) {
            draws(s, (vn_type)type, v, EXACT, 400);
            draws(s, (vn_type)type, v, REAL, 100);
            specials(s, (vn_type)type, v);
            if (s->extent != SUITE_SMALL)
                stretches(s, (vn_type)type, v);
        }
}
