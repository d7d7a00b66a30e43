/* SPDX-License-Identifier: Apache-2.0
 *
 * blas.c - from views to the arguments of BLAS.
 */
#include <limits.h>
#include <string.h>

#include "blas.h"

/* Whether `count` rows (or columns) of `length` elements are contiguous, with a valid leading dimension. */
static int is_contiguous(int64_t step, int64_t length, int64_t ld, int64_t count)
{
    return (step == 1 || length == 1) && (ld >= length || count == 1);
}

static int matrix(struct vn_blas_matrix *out, const vn_tensor *t)
{
    const int64_t rows = t->extent[t->rank - 2], cols = t->extent[t->rank - 1];
    const int by_rows = is_contiguous(vn__col(t), cols, vn__row(t), rows);
    const int64_t length = by_rows ? cols : rows, ld = by_rows ? vn__row(t) : vn__col(t);

    *out = (struct vn_blas_matrix){ .buffer = t->buffer, .start = t->start, .trans = !by_rows,
                                    .ld = ld > length ? ld : length };
    return out->ld <= INT_MAX && (by_rows || is_contiguous(vn__row(t), rows, vn__col(t), cols));
}

/* Merges all batch dimensions into one: each must continue where the one inside it ends. */
static int one_step(struct vn_blas *out, const struct gemm *g)
{
    int64_t count = 1;

    for (int d = g->c.rank - 3; d >= 0; d--) {
        if (g->c.extent[d] == 1)
            continue;
        if (count == 1) {
            out->a.step = g->a.stride[d];
            out->b.step = g->b.stride[d];
            out->c.step = g->c.stride[d];
        } else if (g->a.stride[d] != out->a.step * count || g->b.stride[d] != out->b.step * count ||
                   g->c.stride[d] != out->c.step * count)
            return 0;
        count *= g->c.extent[d];
    }
    return 1;
}

const char *vn__blas(struct vn_blas *out, const struct gemm *g)
{
    memset(out, 0, sizeof *out);
    out->m = g->m;
    out->n = g->n;
    out->k = g->k;
    out->batches = g->batches;
    if (g->k == 0)
        return "there is nothing to multiply";
    if (g->has_scale)
        return "it has no scale";
    if (g->beta != 0 && !vn__same_view(&g->residual, &g->c))
        return "what beta multiplies must be C";
    if (g->m > INT_MAX || g->n > INT_MAX || g->k > INT_MAX || g->batches > INT_MAX)
        return "M, N, K and the number of batches must be below 2^31";
    if (!matrix(&out->a, &g->a) || !matrix(&out->b, &g->b) || !matrix(&out->c, &g->c) || out->c.trans)
        return "each matrix must have contiguous rows or columns that do not overlap";
    if (!one_step(out, g))
        return "its batches must have one common stride";
    return NULL;
}
