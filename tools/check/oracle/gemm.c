/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm.c - the matrix product as its definition says.
 */
#include <math.h>

#include "problem/gemm.h"
#include "products.h"

enum { PANEL = 8, DEPTH = 128 };               /* columns and rows of B that are walked at a time */

/* The products of one row of A with a panel of B, some of K at a time. */
struct dots { long double sum[PANEL], size[PANEL]; };

static void dots_wide(struct dots *d, const double *x, int64_t step, double panel[][PANEL], int64_t depth)
{
    for (int64_t k = 0; k < depth; k++)
        for (int t = 0; t < PANEL; t++) {
            const long double product = (long double)x[k * step] * panel[k][t];

            d->sum[t]  += product;
            d->size[t] += fabsl(product);
        }
}

/* f64 holds the products of two values with 24 significant bits or fewer, and its sum is off by 2^-29 of
 * what one in f32 may be.                                                                              */
static void dots_narrow(struct dots *d, const double *x, int64_t step, double panel[][PANEL], int64_t depth)
{
    double sum[PANEL] = { 0 }, size[PANEL] = { 0 };

    for (int64_t k = 0; k < depth; k++)
        for (int t = 0; t < PANEL; t++) {
            const double product = x[k * step] * panel[k][t];

            sum[t]  += product;
            size[t] += fabs(product);
        }
    for (int t = 0; t < PANEL; t++) {
        d->sum[t]  = sum[t];
        d->size[t] = size[t];
    }
}

/* One panel of one matrix: the offsets are of the matrices, `k` and `j` the panel's first row and column. */
static void panel_sums(const struct sums *s, const struct oracle *c, const double *a, const double *b,
                       int64_t to, int64_t k, int64_t j)
{
    const struct gemm_problem *const p = gemm_of(c->p);
    const vn_tensor *const t_a = &c->o->t[GEMM_A], *const t_b = &c->o->t[GEMM_B],
                    *const t_c = &c->o->t[GEMM_C];
    const int      row = t_c->rank - 2, col = row + 1;
    const int64_t  depth = p->k - k < DEPTH ? p->k - k : DEPTH, width = p->n - j < PANEL ? p->n - j : PANEL;
    double panel[DEPTH][PANEL] = { { 0 } };

    for (int64_t i = 0; i < depth; i++)
        for (int64_t t = 0; t < width; t++)
            panel[i][t] = b[(k + i) * t_b->stride[row] + (j + t) * t_b->stride[col]];
    for (int64_t i = 0; i < p->m; i++) {
        const double *x = a + i * t_a->stride[row] + k * t_a->stride[col];
        struct dots   d = { { 0 }, { 0 } };

        (c->p->type == VN_F64 ? dots_wide : dots_narrow)(&d, x, t_a->stride[col], panel, depth);
        for (int64_t t = 0; t < width; t++) {
            const int64_t at = to + i * t_c->stride[row] + (j + t) * t_c->stride[col];

            s->sum[at]  += d.sum[t];
            s->size[at] += d.size[t];
        }
    }
}

static void sum(const struct oracle *c, const struct sums *s)
{
    const struct gemm_problem *const p = gemm_of(c->p);
    const vn_tensor *const a = &c->o->t[GEMM_A], *const b = &c->o->t[GEMM_B], *const to = &c->o->t[GEMM_C];

    for (int64_t l = 0; l < p->batch; l++)
        for (int64_t k = 0; k < p->k; k += DEPTH)
            for (int64_t j = 0; j < p->n; j += PANEL)
                panel_sums(s, c,
                           c->in[GEMM_A] + a->start
                           + (to->rank > 2 && a->extent[0] > 1 ? l * a->stride[0] : 0),
                           c->in[GEMM_B] + b->start
                           + (to->rank > 2 && b->extent[0] > 1 ? l * b->stride[0] : 0),
                           to->start + (to->rank > 2 ? l * to->stride[0] : 0), k, j);
}

void oracle_gemm(const struct oracle *c)
{
    oracle_products(c, sum);
}
