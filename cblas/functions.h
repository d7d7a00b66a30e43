/* SPDX-License-Identifier: Apache-2.0
 *
 * functions.h - the functions of one family in one type, REAL, with LETTER in their names.
 *
 * gemm_batch and gemm_batch_strided are those of oneMKL and OpenBLAS.  A BLAS without them gets a gemm for
 * each product.
 */
#define THE_NEXT(name, required) \
    static struct next next = { TEXT(name), NULL }; \
    const __typeof__(&name) other = (__typeof__(&name))vn__next(&next, required)

/* ---- gemm ------------------------------------------------------------------------------ */

SHIM_API void FORTRAN(LETTER, gemm)(const char *trans_a, const char *trans_b, const INT *m, const INT *n,
                                    const INT *k, const REAL *alpha, const REAL *a, const INT *lda,
                                    const REAL *b, const INT *ldb, const REAL *beta, REAL *c, const INT *ldc,
                                    size_t length_a, size_t length_b)
{
    const struct call g = { IS_F64, 1, transposed_by_letter(trans_a), transposed_by_letter(trans_b), *m, *n,
                            *k, *lda, *ldb, *ldc, 1, 0, 0, 0, *alpha, *beta, a, b, c };

    if (!gemm(&g)) {
        THE_NEXT(FORTRAN(LETTER, gemm), 1);

        (void)length_a, (void)length_b;         /* C does not pass them */
        other(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, 1, 1);
    }
}

SHIM_API void CBLAS(LETTER, gemm)(int layout, int trans_a, int trans_b, INT m, INT n, INT k, REAL alpha,
                                  const REAL *a, INT lda, const REAL *b, INT ldb, REAL beta, REAL *c, INT ldc)
{
    const struct call g = { IS_F64, layout == COLUMN_MAJOR, transposed(trans_a), transposed(trans_b), m, n, k,
                            lda, ldb, ldc, 1, 0, 0, 0, alpha, beta, a, b, c };

    if ((layout != ROW_MAJOR && layout != COLUMN_MAJOR) || !gemm(&g)) {
        THE_NEXT(CBLAS(LETTER, gemm), 1);

        other(layout, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    }
}

SHIM_API void CBLAS(LETTER, gemm_batch_strided)(int layout, int trans_a, int trans_b, INT m, INT n, INT k,
                                                REAL alpha, const REAL *a, INT lda, INT step_a, const REAL *b,
                                                INT ldb, INT step_b, REAL beta, REAL *c, INT ldc, INT step_c,
                                                INT batches)
{
    const struct call g = { IS_F64, layout == COLUMN_MAJOR, transposed(trans_a), transposed(trans_b), m, n, k,
                            lda, ldb, ldc, batches, step_a, step_b, step_c, alpha, beta, a, b, c };

    if ((layout != ROW_MAJOR && layout != COLUMN_MAJOR) || !gemm(&g)) {
        THE_NEXT(CBLAS(LETTER, gemm_batch_strided), 0);

        if (other) {
            other(layout, trans_a, trans_b, m, n, k, alpha, a, lda, step_a, b, ldb, step_b, beta, c, ldc,
                  step_c, batches);
            return;
        }
        for (INT i = 0; i < batches; i++)
            CBLAS(LETTER, gemm)(layout, trans_a, trans_b, m, n, k, alpha, a + (ptrdiff_t)i * step_a, lda,
                                b + (ptrdiff_t)i * step_b, ldb, beta, c + (ptrdiff_t)i * step_c, ldc);
    }
}

/* Groups of products of one shape; the pointers of all groups follow one another. */
SHIM_API void CBLAS(LETTER, gemm_batch)(int layout, const int *trans_a, const int *trans_b, const INT *m,
                                        const INT *n, const INT *k, const REAL *alpha, const REAL **a,
                                        const INT *lda, const REAL **b, const INT *ldb, const REAL *beta,
                                        REAL **c, const INT *ldc, INT groups, const INT *sizes)
{
    for (INT g = 0; g < groups; g++)
        for (INT i = 0; i < sizes[g]; i++)
            CBLAS(LETTER, gemm)
            (layout, trans_a[g], trans_b[g], m[g], n[g], k[g], alpha[g], *a++, lda[g], *b++, ldb[g], beta[g],
             *c++, ldc[g]);
}

/* ---- gemv ------------------------------------------------------------------------------ */

SHIM_API void FORTRAN(LETTER, gemv)(const char *trans, const INT *m, const INT *n, const REAL *alpha,
                                    const REAL *a, const INT *lda, const REAL *x, const INT *incx,
                                    const REAL *beta, REAL *y, const INT *incy, size_t length)
{
    if (!gemv(IS_F64, 1, transposed_by_letter(trans), *m, *n, *alpha, a, *lda, x, *incx, *beta, y, *incy)) {
        THE_NEXT(FORTRAN(LETTER, gemv), 1);

        (void)length;
        other(trans, m, n, alpha, a, lda, x, incx, beta, y, incy, 1);
    }
}

SHIM_API void CBLAS(LETTER, gemv)(int layout, int trans, INT m, INT n, REAL alpha, const REAL *a, INT lda,
                                  const REAL *x, INT incx, REAL beta, REAL *y, INT incy)
{
    if ((layout != ROW_MAJOR && layout != COLUMN_MAJOR) ||
        !gemv(IS_F64, layout == COLUMN_MAJOR, transposed(trans), m, n, alpha, a, lda, x, incx, beta, y,
              incy)) {
        THE_NEXT(CBLAS(LETTER, gemv), 1);

        other(layout, trans, m, n, alpha, a, lda, x, incx, beta, y, incy);
    }
}

#undef THE_NEXT
#undef REAL
#undef LETTER
#undef IS_F64
