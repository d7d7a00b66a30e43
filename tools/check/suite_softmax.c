/* SPDX-License-Identifier: Apache-2.0
 *
 * suite_softmax.c - which softmaxes the suite runs, forward and backward.
 */
#include <string.h>

#include "suite.h"

static const int64_t lengths[] = { 1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 23, 24 };
static const int64_t longer[]  = { 31, 32, 33, 63, 64, 65, 97, 127, 128, 129, 255, 256, 257, 511, 513, 1000, 1025 };
static const int64_t rows[]    = { 1, 1, 2, 3, 5, 7, 8, 16, 17 };
static const int64_t inners[]  = { 1, 1, 1, 2, 5, 16 };
static const int64_t batches[] = { 1, 1, 1, 2, 3 };
static const int64_t few[]     = { 1, 2, 3 };               /* a simulator takes a second for each row */
static const double  scales[]  = { 1, 1, 0.5, 2, -1 };
static const double  reals[]   = { 1, 0.125, 0.3, -0.7 };
static const int64_t gaps[]    = { 0, 0, 1, 3, 16 };
static const int64_t starts[]  = { 0, 0, 1, 5 };
static const enum mask masks[] = { NO_MASK, NO_MASK, MASK_ROW, MASK_FULL };

static void draw(struct problem *p, struct random *r, enum suite_extent extent)
{
    p->inner  = extent == SUITE_SMALL ? RANDOM_OF(r, few) : RANDOM_OF(r, inners);
    p->rows   = p->inner * (extent == SUITE_SMALL ? RANDOM_OF(r, few) : RANDOM_OF(r, rows));
    p->batch  = extent == SUITE_SMALL ? 1 : RANDOM_OF(r, batches);
    p->n      = extent == SUITE_SMALL || random_chance(r, 0.5) ? RANDOM_OF(r, lengths) : RANDOM_OF(r, longer);
    p->causal = p->inner == 1 && random_chance(r, 0.25);
    p->log    = random_chance(r, 0.4);
    p->scale  = RANDOM_OF(r, scales);
    p->mask   = p->direction == FORWARD ? RANDOM_OF(r, masks) : NO_MASK;
    p->gap    = RANDOM_OF(r, gaps);
    p->start  = RANDOM_OF(r, starts);
}

static void draws(struct suite *s, enum direction direction, vn_type type, const char *variant, enum kind kind,
                  int times)
{
    struct random r = { s->seed + kind };

    suite_begin(s, "softmax %s %s %s %s", direction == FORWARD ? "forward" : "backward", suite_kinds[kind],
                vn_type_name(type), *variant ? variant : "(chosen)");
    for (int i = 0; i < suite_times(s, times); i++) {
        struct problem p = { .op = SOFTMAX, .type = type, .direction = direction, .alpha = 1, .groups = 1 };

        strcpy(p.variant, variant);
        draw(&p, &r, s->extent);
        if (kind == EXACT) {
            p.log   = direction == BACKWARD && p.log;           /* a logarithm is not exact */
            p.scale = p.scale < 0 ? 1 : p.scale;                /* -infinity must stay it */
        } else
            p.scale = RANDOM_OF(&r, reals);
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
        { "5x13",     ":mask=row",               0 },
        { "5x20",     ":mask=full:log",          0 },
        { "6x13",     ":mask=full:causal",       0 },
        { "8x13",     ":mask=row:inner=2",       0 },
    };

    suite_begin(s, "softmax %s special %s %s", direction == FORWARD ? "forward" : "backward", vn_type_name(type),
                *variant ? variant : "(chosen)");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char text[PROBLEM_TEXT], why[PROBLEM_TEXT];
        struct problem p;

        snprintf(text, sizeof text, "softmax:%s:%s%s%s%s%s", table[i].sizes, vn_type_name(type),
                 direction == FORWARD ? "" : ":backward", table[i].parts, *variant ? ":variant=" : "", variant);
        if (table[i].is_long && s->extent == SUITE_SMALL)
            continue;
        if (problem_parse(&p, text, why, sizeof why))
            suite_fault(s, "%s", why);
        else if (direction == FORWARD || !p.mask)
            suite_case(s, &p, SPECIAL);
    }
    suite_end(s);
}

void suite_softmax(struct suite *s)
{
    for (const char *v = suite_next_variant(s, SOFTMAX, NULL); v; v = suite_next_variant(s, SOFTMAX, v))
        for (int backward = 0; backward < 2; backward++)
            for (int type = 0; type < VN_TYPE_COUNT; type++) {
                const enum direction direction = backward ? BACKWARD : FORWARD;

                draws(s, direction, (vn_type)type, v, EXACT, 120);
                draws(s, direction, (vn_type)type, v, REAL, 60);
                specials(s, direction, (vn_type)type, v);
            }
}
