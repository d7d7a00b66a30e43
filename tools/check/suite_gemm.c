/* SPDX-License-Identifier: Apache-2.0
 *
 * suite_gemm.c - which matrix products the suite runs.
 *
 * Sizes straddle the powers of two that tiles have, and primes are among them.  Each
 * variant and type gets the same draws from these tables, so that a failure of one says
 * something about the others.
 */
#include <string.h>

#include "problem/gemm.h"
#include "suite.h"

static const int64_t small[]   = { 1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 15, 16, 17, 19, 23, 24 };
static const int64_t medium[]  = { 25, 29, 31, 32, 33, 37, 41, 47, 48, 49, 53, 63, 64, 65 };
static const int64_t larger[]  = { 67, 79, 95, 96, 97, 101, 127, 128, 129, 131, 191, 192, 193, 255, 256,
                                   257 };
static const int64_t deep[]    = { 300, 512, 777, 1000, 1024, 1025 };       /* of K, where C is small */
static const double  factors[] = { 0, 1, 1, -1, 2, 0.5 };
static const enum beside besides[] = { APART, APART, APART, APART, APART, BESIDE_ROWS, BESIDE_BLOCKS };
static const int64_t gaps[]    = { 0, 0, 1, 3, 16 };
static const int64_t starts[]  = { 0, 0, 1, 5 };
static const int64_t batches[] = { 1, 1, 1, 2, 3, 4 };
static const double reals[]    = { 1, 1, -0.75, 0.3, 1.7 };
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

/* Rows of whole 16-byte vectors: what TMA asks for. */
static void align(struct problem *p)
{
    struct gemm_problem *const g = gemm_of(p);

    g->m = round_up(g->m);
    g->n = round_up(g->n);
    g->k = round_up(g->k);
    p->gap = p->gap / 16 * 16;
    p->start = p->start > 1 ? 16 : 0;
}

static void draw(struct problem *p, struct random *r, enum suite_extent extent)
{
    struct gemm_problem *const g = gemm_of(p);
    const int is_deep = extent != SUITE_SMALL && random_chance(r, 0.06);

    do {
        g->m = draw_size(r, extent);
        g->n = draw_size(r, extent);
        g->k = is_deep ? RANDOM_OF(r, deep) : random_chance(r, 0.02) ? 0 : draw_size(r, extent);
        g->batch = RANDOM_OF(r, batches);
    } while (g->m * g->n * g->k * g->batch > WORK);
    g->trans  = random_chance(r, 0.5) ? TRANS_A : 0;
    g->trans |= random_chance(r, 0.5) ? TRANS_B : 0;
    g->trans |= random_chance(r, 0.2) ? TRANS_C : 0;
    g->share  = g->batch > 1 && random_chance(r, 0.25) ? SHARE_A : 0;
    g->share |= g->batch > 1 && random_chance(r, 0.25) ? SHARE_B : 0;
    p->alpha  = RANDOM_OF(r, factors);
    if (p->alpha == 0 && random_chance(r, 0.7))
        p->alpha = 1;
    p->gap    = RANDOM_OF(r, gaps);
    p->start  = RANDOM_OF(r, starts);
    g->packed = random_chance(r, 0.25);
    p->beside = RANDOM_OF(r, besides);
    if (random_chance(r, 0.25))
        align(p);
}

/* What rounding forgives may be any factor and any way of rounding. */
static void draw_real(struct problem *p, struct random *r)
{
    p->alpha = RANDOM_OF(r, reals);
    if (p->beta != 0)
        p->beta = RANDOM_OF(r, reals);
    p->math  = random_chance(r, 0.1) ? VN_MATH_TF32
             : random_chance(r, 0.1) ? VN_MATH_BITWISE : VN_MATH_DEFAULT;
}

static void draw_epilogue(struct problem *p, struct random *r, enum kind kind)
{
    struct gemm_problem *const g = gemm_of(p);

    p->beta = random_chance(r, 0.5) ? 0 : kind == REAL ? RANDOM_OF(r, reals) : RANDOM_OF(r, factors);
    p->bias = RANDOM_OF(r, biases);
    p->act  = kind == REAL ? (vn_activation)random_below(r, VN_ACTIVATION_COUNT)
            : random_chance(r, 0.3) ? VN_RELU : VN_IDENTITY;
    g->residual = random_chance(r, 0.4) ? (int)RANDOM_OF(r, biases) : NO_BIAS;
    g->scale    = random_chance(r, 0.3) ? (int)RANDOM_OF(r, biases) : NO_BIAS;
    if (vn_type_bytes(p->type) == 2) {
        g->to_f32    = random_chance(r, 0.3);
        g->sides_f32 = random_chance(r, 0.3);
    }
}

static int is_plain(const struct problem *p)
{
    return p->beta == 0 && !p->bias && !p->act && !gemm_of(p)->scale && !gemm_of(p)->to_f32;
}

/* An epilogue is a kernel to build, of each layout of A and B.  Unless the suite is full, a variant and type
 * have one beside the plain product, with one layout, others for each; random numbers keep their activation,
 * where a variant is forced.                                                                              */
static void keep_short(struct problem *p, const struct suite *s, enum kind kind)
{
    static const struct { enum bias bias, residual, scale; vn_activation act; int f32; } kept[] = {
        { BIAS_ROW,  NO_BIAS,   NO_BIAS,  VN_RELU,     0 },
        { BIAS_COL,  BIAS_FULL, BIAS_COL, VN_IDENTITY, 0 },
        { BIAS_FULL, NO_BIAS,   BIAS_ROW, VN_RELU,     1 },
        { NO_BIAS,   BIAS_ROW,  NO_BIAS,  VN_IDENTITY, 1 },
    };
    struct random r = { suite_seed(s, p->variant, (int)p->type) };
    const size_t which = (size_t)random_below(&r, sizeof kept / sizeof kept[0]);
    struct gemm_problem *const g = gemm_of(p);

    if (s->extent == SUITE_FULL || is_plain(p))
        return;
    p->beta = p->beta == 0 ? 1 : p->beta;
    p->bias = kept[which].bias;
    if (kind != REAL || !*p->variant || s->extent == SUITE_SMALL)
        p->act = kept[which].act;
    g->residual = (int)kept[which].residual;
    g->scale = (int)kept[which].scale;
    g->to_f32 = g->sides_f32 = kept[which].f32 && vn_type_bytes(p->type) == 2;
    g->trans = (g->trans & TRANS_C) | (int)random_below(&r, 2) * TRANS_A | (int)random_below(&r, 2) * TRANS_B;
}

static void draws(struct suite *s, vn_type type, const char *variant, enum kind kind, int times)
{
    struct random r = { s->seed + kind }, e = { suite_seed(s, variant, (int)type * 4 + (int)kind) };
    struct problem epilogue[SUITE_EPILOGUES];

    for (int i = 0; i < SUITE_EPILOGUES; i++) {
        problem_usual(&epilogue[i], &op_gemm);
        epilogue[i].type = type;
        strcpy(epilogue[i].variant, variant);
        if (i > 0)
            draw_epilogue(&epilogue[i], &e, kind);
    }
    if (!suite_begin(s, "gemm %s %s %s", suite_kinds[kind], vn_type_name(type),
                     *variant ? variant : "(chosen)"))
        return;
    for (int i = 0; i < suite_times(s, times); i++) {
        struct problem p = epilogue[i % suite_epilogues(s)];

        draw(&p, &r, s->extent);
        keep_short(&p, s, kind);
        if (!gemm_has_one_type(&p))
            p.beside = APART;
        if (kind == REAL)
            draw_real(&p, &r);
        else if (type == VN_F32 && random_chance(&r, 0.25))
            p.math = VN_MATH_TF32;              /* to which small integers are exact, too */
        suite_case(s, &p, kind);
    }
    suite_end(s);
}

/* One row of the tables below: problems as text, which are easier to read than structs. */
struct row { const char *sizes, *parts; };

static int parse_row(struct problem *out, struct suite *s, const struct row *row, vn_type type,
                     const char *variant)
{
    char text[PROBLEM_TEXT], why[PROBLEM_TEXT];

    snprintf(text, sizeof text, "gemm:%s:%s%s%s%s", row->sizes, vn_type_name(type), row->parts,
             *variant ? ":variant=" : "", variant);
    if (problem_parse(out, text, why, sizeof why) == 0)
        return 0;
    suite_fault(s, "%s", why);
    return -1;
}

/* K longer than what kernels take at a time, and B large enough for split-K. */
static void stretches(struct suite *s, vn_type type, const char *variant)
{
    static const struct row table[] = {
        { "1x2055x1100",  ""                    },
        { "3x4099x530",   ":bias=row:beta=-1"   },
        { "5x33x2600",    ":nt:beta=2"          },
        { "13x40x2100",   ":tn"                 },
        { "27x67x1100",   ":tt:bias=col"        },
        { "67x37x1030",   ""                    },
        { "1289x37x1100", ":bias=row"           },              /* many rows: partial sums may wait in C */
        { "29x70x1100",   ":packed"             },
        { "37x97x2100",   ":nt:packed:bias=row" },
        { "2x17412x132",  ":nt"                 },              /* more tiles than compute units */
    };
    struct problem p;

    if (!suite_begin(s, "gemm stretches %s %s", vn_type_name(type), *variant ? variant : "(chosen)"))
        return;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (!parse_row(&p, s, &table[i], type, variant)) {
            keep_short(&p, s, EXACT);
            suite_case(s, &p, EXACT);
        }
    suite_end(s);
}

/* Unusual numbers, and nothing to do. */
static void specials(struct suite *s, vn_type type, const char *variant)
{
    static const struct row table[] = {
        { "5x7x9",    ""                            },
        { "17x19x23", ":beta=1:tn:bias=row:gap=3"   },
        { "9x11x13",  ":alpha=-2:beta=0.5:tt"       },
        { "11x9x5",   ":alpha=nan"                  },
        { "9x11x13",  ":alpha=inf:beta=2"           },
        { "9x11x13",  ":beta=nan:bias=row"          },
        { "9x11x0",   ":alpha=nan:beta=2"           },
        { "7x6x5",    ":tn:batch=2:beside=blocks"   },
        { "7x6x5",    ":bias=full:beta=1:beside=rows" },
        { "14x35x10", ":packed"                     },
        { "0x11x4",   ":packed"                     },
        { "9x11x0",   ":beta=2:bias=row"            },
        { "9x11x0",   ""                            },
        { "0x11x4",   ""                            },
        { "9x0x4",    ""                            },
        { "0x0x0",    ""                            },
        { "9x11x4",   ":batch=0"                    },
    };
    /* of which each variant and type has one, and what is chosen has all */
    static const struct row some[] = {
        { "33x9x17",  ":beta=-1:nt:bias=full:act=gelu"  },
        { "8x21x3",   ":act=relu:bias=col:batch=2"      },
        { "1x18x33",  ":act=silu:start=1"               },
        { "24x1x40",  ":act=sigmoid:beta=2"             },
        { "6x6x5",    ":act=tanh"                       },
        { "10x24x9",  ":beta=1:residual=full:scale=row" },
        { "24x10x9",  ":residual=row:scale=col"         },      /* not read: beta is 0 */
    };
    const size_t count = sizeof table / sizeof table[0], others = sizeof some / sizeof some[0];
    const size_t one = suite_seed(s, variant, (int)type * 4 + SPECIAL) % others;
    struct problem p;

    if (!suite_begin(s, "gemm special %s %s", vn_type_name(type), *variant ? variant : "(chosen)"))
        return;
    for (size_t i = 0; i < count + others; i++)
        for (int way = 0; way < (type == VN_F32 && s->extent != SUITE_SMALL ? 4 : 2); way++) {
            if (*variant && i >= count && i - count != one)
                continue;
            if (parse_row(&p, s, i < count ? &table[i] : &some[i - count], type, variant))
                continue;
            keep_short(&p, s, SPECIAL);
            if (!gemm_has_one_type(&p))
                p.beside = APART;
            p.alpha = way % 2 ? 0 : p.alpha;
            p.math  = way / 2 ? VN_MATH_TF32 : VN_MATH_DEFAULT;
            suite_case(s, &p, SPECIAL);
        }
    suite_end(s);
}

void suite_gemm(struct suite *s)
{
    for (const char *v = suite_next_variant(s, &op_gemm, NULL); v; v = suite_next_variant(s, &op_gemm, v))
        for (int type = 0; type < VN_TYPE_COUNT; type++) {
            draws(s, (vn_type)type, v, EXACT, 400);
            draws(s, (vn_type)type, v, REAL, 100);
            specials(s, (vn_type)type, v);
            if (s->extent != SUITE_SMALL)
                stretches(s, (vn_type)type, v);
        }
}
