/* SPDX-License-Identifier: Apache-2.0
 *
 * cublas.c - cuBLAS and cuBLASLt in one file: they multiply nothing, and check what they are told.
 */
#include "vendors/cublas.h"
#include "fake.h"

#pragma GCC visibility push(default)

static int stands_for;

#define FAILS() do { if (fake_fails(__func__)) return 14; } while (0)
#define IN_CONTEXT() FAKE_NEEDS(fake.depth > 0)

cublasStatus cublasGetProperty(int which, int *out)
{
    *out = which == CUBLAS_MAJOR ? fake.cublas_major : 0;
    return 0;
}

cublasStatus cublasLtGetProperty(int which, int *out)
{
    *out = which == CUBLAS_MAJOR ? fake.cublaslt_major : 0;
    return 0;
}

const char *cublasGetStatusString(cublasStatus s)
{
    return s == 14 ? "CUBLAS_STATUS_INTERNAL_ERROR" : "another status";
}

cublasStatus cublasCreate_v2(cublasHandle *out)
{
    FAILS();
    IN_CONTEXT();
    *out = (cublasHandle)&stands_for;
    fake.handles++;
    return 0;
}

cublasStatus cublasDestroy_v2(cublasHandle h)
{
    IN_CONTEXT();
    FAKE_NEEDS(h && fake.handles > 0);
    fake.handles--;
    return 0;
}

cublasStatus cublasSetStream_v2(cublasHandle h, CUstream s)
{
    FAILS();
    FAKE_NEEDS(h && s);
    return 0;
}

cublasStatus cublasSetWorkspace_v2(cublasHandle h, void *at, size_t bytes)
{
    FAILS();
    FAKE_NEEDS(h && !at == !bytes);
    return 0;
}

cublasStatus cublasSetMathMode(cublasHandle h, int mode)
{
    FAILS();
    FAKE_NEEDS(h && mode == CUBLAS_SUM_IN_FULL);
    return 0;
}

/* Columns first: an operand that is not transposed has its rows along memory. */
cublasStatus cublasGemmStridedBatchedEx(cublasHandle h, int ta, int tb, int m, int n, int k,
    const void *alpha, const void *a, int a_type, int lda, long long a_step,
    const void *b, int b_type, int ldb, long long b_step,
    const void *beta, void *c, int c_type, int ldc, long long c_step, int batches, int compute, int algorithm)
{
    FAILS();
    IN_CONTEXT();
    FAKE_NEEDS(h && alpha && beta && a && b && c);
    FAKE_NEEDS(m > 0 && n > 0 && k > 0 && batches > 0);
    FAKE_NEEDS(lda >= (ta ? k : m) && ldb >= (tb ? n : k) && ldc >= m);
    FAKE_NEEDS(a_type == b_type && b_type == c_type && a_step >= 0 && b_step >= 0);
    FAKE_NEEDS(batches == 1 || c_step >= (long long)ldc * (n - 1) + m);
    FAKE_NEEDS(compute == (a_type == CUDA_F64 ? CUBLAS_64F : CUBLAS_32F) && algorithm == CUBLAS_GEMM_DEFAULT);
    fake.foreign++;
    return 0;
}

cublasStatus cublasGemmEx(cublasHandle h, int ta, int tb, int m, int n, int k,
    const void *alpha, const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
    const void *beta, void *c, int c_type, int ldc, int compute, int algorithm)
{
    return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0,
                                      beta, c, c_type, ldc, 0, 1, compute, algorithm);
}

/* ---- cuBLASLt ----------------------------------------------------------------------- */

static cublasStatus make(void **out)
{
    *out = &stands_for;
    fake.descriptors++;
    return 0;
}

static cublasStatus unmake(void *it)
{
    FAKE_NEEDS(it && fake.descriptors > 0);
    fake.descriptors--;
    return 0;
}

cublasStatus cublasLtMatmulDescCreate(ltDescription *out, int compute, int scale)
{
    FAILS();
    FAKE_NEEDS(compute == CUBLAS_32F && scale == CUDA_F32);
    return make(out);
}

cublasStatus cublasLtMatmulDescDestroy(ltDescription d)
{
    return unmake(d);
}

cublasStatus cublasLtMatmulDescSetAttribute(ltDescription d, int which, const void *v, size_t bytes)
{
    FAILS();
    FAKE_NEEDS(d && v && bytes == (which == LT_BIAS ? sizeof(void *) : 4));
    return 0;
}

cublasStatus cublasLtMatrixLayoutCreate(ltLayout *out, int type, uint64_t rows, uint64_t cols, int64_t ld)
{
    FAILS();
    FAKE_NEEDS(type == CUDA_F32 && rows && cols && ld >= (int64_t)rows);
    return make(out);
}

cublasStatus cublasLtMatrixLayoutDestroy(ltLayout l)
{
    return unmake(l);
}

cublasStatus cublasLtMatrixLayoutSetAttribute(ltLayout l, int which, const void *v, size_t bytes)
{
    FAILS();
    FAKE_NEEDS(l && v && bytes == (which == LT_STEP ? 8 : 4));
    return 0;
}

cublasStatus cublasLtMatmulPreferenceCreate(ltPreference *out)
{
    FAILS();
    return make(out);
}

cublasStatus cublasLtMatmulPreferenceDestroy(ltPreference p)
{
    return unmake(p);
}

cublasStatus cublasLtMatmulPreferenceSetAttribute(ltPreference p, int which, const void *v, size_t bytes)
{
    FAILS();
    FAKE_NEEDS(p && v && bytes == (which == LT_WORKSPACE ? 8 : 4));
    return 0;
}

cublasStatus cublasLtMatmulAlgoGetHeuristic(cublasHandle h, ltDescription d, ltLayout a, ltLayout b,
    ltLayout c, ltLayout out_c, ltPreference p, int wanted, ltFound *out, int *found)
{
    FAILS();
    IN_CONTEXT();
    FAKE_NEEDS(h && d && a && b && c && out_c && p && wanted >= 1);
    *out = (ltFound){ .workspace = 1024 };
    *found = 1;
    fake.searches++;
    return 0;
}

cublasStatus cublasLtMatmul(cublasHandle h, ltDescription d, const void *alpha, const void *a, ltLayout la,
    const void *b, ltLayout lb, const void *beta, const void *c, ltLayout lc, void *out, ltLayout lout,
    const ltAlgorithm *algorithm, void *workspace, size_t bytes, CUstream s)
{
    FAILS();
    IN_CONTEXT();
    FAKE_NEEDS(h && d && alpha && a && la && b && lb && beta && c == out && lc && lout && algorithm && s);
    FAKE_NEEDS(workspace && bytes == 1024);
    fake.foreign++;
    return 0;
}
