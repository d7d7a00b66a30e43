/* SPDX-License-Identifier: Apache-2.0
 *
 * cblas.c - gemm and gemv of BLAS and CBLAS, and gemm's batched forms: what is large goes to vn_gemm(), the
 * rest, and all calls that BLAS would refuse, to the BLAS that is there.
 *
 * A family is the names of one BLAS: what stands before and behind them, and the type of its integers.
 * NumPy's and SciPy's wheels call libraries of their own by names of their own.
 */
#include <stddef.h>
#include <string.h>

#include "shim.h"

#define SHIM_API __attribute__((visibility("default")))

enum { ROW_MAJOR = 101, COLUMN_MAJOR = 102, NO_TRANSPOSE = 111, TRANSPOSE = 112, CONJUGATE = 113 };

/* 0 or 1, or -1 for what is no transpose; of real numbers the conjugate is the same. */
static int transposed(int how)
{
    return how == NO_TRANSPOSE ? 0 : how == TRANSPOSE || how == CONJUGATE ? 1 : -1;
}

static int transposed_by_letter(const char *how)
{
    return !*how ? -1 : strchr("Nn", *how) ? 0 : strchr("TtCc", *how) ? 1 : -1;
}

/* op(X) of so many rows and columns, stored by rows or, if it is transposed, by columns; 0 if ld is too
 * small. */
static int operand(struct operand *out, const void *at, int is_transposed, int64_t rows, int64_t cols,
                   int64_t ld)
{
    *out = (struct operand){ at, is_transposed ? 1 : ld, is_transposed ? ld : 1, 0 };
    return is_transposed >= 0 && ld >= 1 && ld >= (is_transposed ? rows : cols);
}

/* A gemm as its arguments say it.  Column-major, it is C^T = op(B)^T op(A)^T of row-major matrices. */
struct call {
    int         is_f64, is_column_major, trans_a, trans_b;
    int64_t     m, n, k, lda, ldb, ldc, batches, step_a, step_b, step_c;
    double      alpha, beta;
    const void *a, *b, *c;
};

static int gemm(const struct call *g)
{
    const int f = g->is_column_major;
    struct product p = { .is_f64 = g->is_f64,
                         .batches = g->batches,
                         .m = f ? g->n : g->m,
                         .n = f ? g->m : g->n,
                         .k = g->k,
                         .alpha = g->alpha,
                         .beta = g->beta };

    if (!operand(&p.a, f ? g->b : g->a, f ? g->trans_b : g->trans_a, p.m, p.k, f ? g->ldb : g->lda) ||
        !operand(&p.b, f ? g->a : g->b, f ? g->trans_a : g->trans_b, p.k, p.n, f ? g->lda : g->ldb) ||
        !operand(&p.c, g->c, 0, p.m, p.n, g->ldc) || g->step_a < 0 || g->step_b < 0 || g->step_c < 0)
        return 0;
    p.a.batch = f ? g->step_b : g->step_a;
    p.b.batch = f ? g->step_a : g->step_b;
    p.c.batch = g->step_c;
    return vn__product(&p);
}

/* y := alpha op(A) x + beta y as the product of a row with a matrix; A is rows x cols, trans of it is taken.
 */
static int gemv(int is_f64, int is_column_major, int trans, int64_t rows, int64_t cols, double alpha,
                const void *a, int64_t lda, const void *x, int64_t incx, double beta, const void *y,
                int64_t incy)
{
    const int64_t k = trans ? rows : cols;
    struct product p = { .is_f64 = is_f64,
                         .batches = 1,
                         .m = 1,
                         .n = trans ? cols : rows,
                         .k = k,
                         .alpha = alpha,
                         .beta = beta,
                         .a = { x, 0, incx, 0 },
                         .c = { y, 0, incy, 0 } };

    /* B is op(A)^T: stored by columns where A is stored by rows and not transposed. */
    return trans >= 0 && incx > 0 && incy > 0 &&
           operand(&p.b, a, trans == is_column_major, p.k, p.n, lda) && vn__product(&p);
}

#define PASTE_(a, b, c, d) a##b##c##d
#define PASTE(a, b, c, d) PASTE_(a, b, c, d)
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

/* The reference BLAS, and what takes its place. */
#define INT int32_t
#define CBLAS(letter, f) PASTE(cblas_, letter, f, )
#define FORTRAN(letter, f) PASTE(, letter, f, _)
#include "family.h"

/* With integers of 64 bits; NumPy's wheels up to 1.26. */
#define INT int64_t
#define CBLAS(letter, f) PASTE(cblas_, letter, f, 64_)
#define FORTRAN(letter, f) PASTE(, letter, f, _64_)
#include "family.h"

/* SciPy's wheels. */
#define INT int32_t
#define CBLAS(letter, f) PASTE(scipy_cblas_, letter, f, )
#define FORTRAN(letter, f) PASTE(scipy_, letter, f, _)
#include "family.h"

/* NumPy's wheels from 2.0 on. */
#define INT int64_t
#define CBLAS(letter, f) PASTE(scipy_cblas_, letter, f, 64_)
#define FORTRAN(letter, f) PASTE(scipy_, letter, f, _64_)
#include "family.h"
