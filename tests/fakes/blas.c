/* SPDX-License-Identifier: Apache-2.0
 *
 * blas.c - a BLAS for the tests of libvernier_cblas.so: gemm and gemv by their definition, which count their
 * calls.
 */
#include <stdint.h>

#define FAKE_API __attribute__((visibility("default")))

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 };

FAKE_API int fake_blas_calls;

#define GEMM(name, real, integer) \
    FAKE_API void name(int layout, int ta, int tb, integer m, integer n, integer k, real alpha, \
                       const real *a, integer lda, const real *b, integer ldb, real beta, real *c, \
                       integer ldc) \
    { \
        const int by_rows = layout == ROW_MAJOR; \
        const int a_rows = by_rows == (ta == NO_TRANSPOSE), b_rows = by_rows == (tb == NO_TRANSPOSE); \
\
        __atomic_add_fetch(&fake_blas_calls, 1, __ATOMIC_RELAXED); \
        for (integer i = 0; i < m; i++) \
            for (integer j = 0; j < n; j++) { \
                real *const at = &c[by_rows ? i * ldc + j : j * ldc + i], sum = 0; \
\
                for (integer l = 0; l < k; l++) \
                    sum += a[a_rows ? i * lda + l : l * lda + i] * b[b_rows ? l * ldb + j : j * ldb + l]; \
                *at = alpha * sum + (beta == 0 ? 0 : beta * *at); \
            } \
    }

#define GEMV(name, real) \
    FAKE_API void name(int layout, int trans, int m, int n, real alpha, const real *a, int lda, \
                       const real *x, int incx, real beta, real *y, int incy) \
    { \
        const int straight = trans == NO_TRANSPOSE, by_rows = (layout == ROW_MAJOR) == straight; \
        const int rows = straight ? m : n, cols = straight ? n : m; \
\
        __atomic_add_fetch(&fake_blas_calls, 1, __ATOMIC_RELAXED); \
        for (int i = 0; i < rows; i++) { \
            real *const at = &y[incy < 0 ? (i - rows + 1) * incy : i * incy], sum = 0; \
\
            for (int l = 0; l < cols; l++) \
                sum += \
                    a[by_rows ? i * lda + l : l * lda + i] * x[incx < 0 ? (l - cols + 1) * incx : l * incx]; \
            *at = alpha * sum + (beta == 0 ? 0 : beta * *at); \
        } \
    }

GEMM(cblas_sgemm, float, int32_t)
GEMM(cblas_dgemm, double, int32_t)
GEMM(scipy_cblas_dgemm64_, double, int64_t)
GEMV(cblas_sgemv, float)
GEMV(cblas_dgemv, double)

FAKE_API void sgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k,
                     const float *alpha, const float *a, const int *lda, const float *b, const int *ldb,
                     const float *beta, float *c, const int *ldc)
{
    cblas_sgemm(102, *ta == 'N' ? 111 : 112, *tb == 'N' ? 111 : 112, *m, *n, *k, *alpha, a, *lda, b, *ldb,
                *beta, c, *ldc);
}
