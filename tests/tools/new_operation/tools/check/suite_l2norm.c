/* SPDX-License-Identifier: Apache-2.0
 *
 * suite_l2norm.c - which norms the suite computes, and of what.
 */
#include <string.h>

#include "data.h"
#include "oracle.h"
#include "problem/l2norm.h"

/* k^2 elements of one size and the rest 0: the norm is k times that size. */
static void fill_row(void *context, int64_t at, const int64_t place[VN_RANK])
{
    struct data *const d = context;
    const int64_t n = l2norm_of(d->p)->n, step = d->o->t[L2NORM_X].stride[1];
    const double size = (double)(1 << random_below(&d->random, 3));
    int64_t k = 1, left;

    (void)place;
    while ((k + 1) * (k + 1) <= n)
        k++;
    left = k * k;
    for (int64_t j = 0; j < n; j++) {
        const int keep = random_below(&d->random, n - j) < left;

        data_set(d, L2NORM_X, at + j * step, !keep ? 0 : random_chance(&d->random, 0.5) ? size : -size);
        left -= keep;
    }
}

void data_fill_l2norm(struct data *d, enum kind kind)
{
    vn_tensor first = d->o->t[L2NORM_X];

    first.extent[1] = first.extent[1] > 1 ? 1 : first.extent[1];
    if (kind == EXACT)
        oracle_each(&first, fill_row, d);
    else
        data_reals(d, L2NORM_X, -1, 1);
}

const struct pattern l2norm_patterns[] = {
    { "a NaN in x",      L2NORM_X, not_a_number, 0, NULL },
    { "-infinity in x",  L2NORM_X, minus_inf,    0, NULL },
    { "a denormal in x", L2NORM_X, denormal,     0, NULL },
    { "-0 in x",         L2NORM_X, minus_zero,   1, NULL },
    { NULL, 0, NULL, 0, NULL }
};

static void draws(struct suite *s, vn_type type, const char *variant, enum kind kind)
{
    static const int64_t rows[] = { 0, 1, 2, 3, 7, 16, 17 }, small[] = { 1, 2, 3, 7, 8, 9, 16, 17, 24 };
    static const int64_t larger[] = { 31, 32, 33, 63, 64, 65, 100, 257, 1000 }, gaps[] = { 0, 0, 1, 5 };
    struct random r = { s->seed + kind };

    if (!suite_begin(s, "l2norm %s %s %s", suite_kinds[kind], vn_type_name(type),
                     *variant ? variant : "(chosen)"))
        return;
    for (int i = 0; i < suite_times(s, 100); i++) {
        struct problem p;

        problem_usual(&p, &op_l2norm);
        p.type = type;
        strcpy(p.variant, variant);
        l2norm_of(&p)->rows = RANDOM_OF(&r, rows);
        l2norm_of(&p)->n = s->extent == SUITE_SMALL || random_chance(&r, 0.5) ? RANDOM_OF(&r, small)
                                                                              : RANDOM_OF(&r, larger);
        p.gap = RANDOM_OF(&r, gaps);
        p.start = RANDOM_OF(&r, gaps);
        suite_case(s, &p, kind);
    }
    suite_end(s);
}

void suite_l2norm(struct suite *s)
{
    for (const char *v = suite_next_variant(s, &op_l2norm, NULL); v; v = suite_next_variant(s, &op_l2norm, v))
        for (int type = 0; type < VN_TYPE_COUNT; type++)
            for (int kind = 0; kind < KIND_COUNT; kind++)
                draws(s, (vn_type)type, v, (enum kind)kind);
}
