/* SPDX-License-Identifier: Apache-2.0
 *
 * drawn.c - random GEMM problems: sizes that no suite has, aligned and not.
 *
 * M, N and K are log-uniform from 1 to 16384, and half of them are rounded to a multiple of 8.
 * Of ten problems about three have a batch, log-uniform from 2 to 64.  Each number takes the same
 * draws whatever came of those before it.
 */
#include <inttypes.h>
#include <math.h>
#include "choice.h"

static int64_t draw_extent(struct random *r)
{
    const int64_t v = (int64_t)floor(exp2(14 * random_real(r, 0, 1)) + 0.5);

    if (!random_chance(r, 0.5))
        return v;
    return v < 8 ? 8 : (v + 4) / 8 * 8;
}

static int64_t draw_batch(struct random *r)
{
    const int is_batched = random_chance(r, 0.3);
    const double v = 2 * exp2(5 * random_real(r, 0, 1));

    return is_batched ? (int64_t)floor(v + 0.5) : 1;
}

struct drawn { vn_type type; vn_math math; int trans_a, trans_b; int64_t m, n, k, batch; };

static void draw(struct drawn *p, struct random *r)
{
    static const struct { double up_to; vn_type type; vn_math math; } kinds[] = {
        { 0.35, VN_F32,  VN_MATH_DEFAULT }, { 0.70, VN_F16, VN_MATH_DEFAULT },
        { 0.80, VN_BF16, VN_MATH_DEFAULT }, { 0.90, VN_F64, VN_MATH_DEFAULT },
        { 1.00, VN_F32,  VN_MATH_TF32    } };
    const double kind = random_real(r, 0, 1);
    int i = 0;

    while (kind >= kinds[i].up_to)
        i++;
    *p = (struct drawn){ .type = kinds[i].type, .math = kinds[i].math };
    p->trans_a = random_chance(r, 0.5);
    p->trans_b = random_chance(r, 0.5);
    p->m = draw_extent(r);
    p->n = draw_extent(r);
    p->k = draw_extent(r);
    p->batch = draw_batch(r);
}

static int is_within(const struct drawn *p, const struct limits *most)
{
    const double m = (double)p->m, n = (double)p->n, k = (double)p->k, batch = (double)p->batch;
    const double largest = fmax(fmax(m * k, k * n), m * n) * batch * (double)vn_type_bytes(p->type);

    return largest <= most->bytes && 2 * m * n * k * batch * (p->type == VN_F64 ? 1.5 : 1) <= most->flops;
}

void drawn_gemm(char text[PROBLEM_TEXT], struct random *r, const struct limits *most)
{
    struct drawn p;

    do {
        draw(&p, r);
        if (most->type >= 0)
            p.type = (vn_type)most->type;
    } while (!is_within(&p, most));
    snprintf(text, PROBLEM_TEXT, "gemm:%" PRId64 "x%" PRId64 "x%" PRId64 ":%s:%c%c:batch=%" PRId64 "%s",
             p.m, p.n, p.k, vn_type_name(p.type), "nt"[p.trans_a], "nt"[p.trans_b], p.batch,
             p.math == VN_MATH_TF32 && p.type == VN_F32 ? ":math=tf32" : "");
}
