/* SPDX-License-Identifier: Apache-2.0
 *
 * cublas.h - the functions of cuBLAS and cuBLASLt that the variant cublas calls.
 *
 * The declarations are our own, after NVIDIA's cuBLAS manual.
 */
#ifndef VN_CUBLAS_H
#define VN_CUBLAS_H

#include <stdint.h>
#include "backends/cuda/driver.h"

typedef int cublasStatus;                           /* 0: success */
typedef struct cublasContext *cublasHandle;         /* cuBLASLt takes it, too */
typedef void *ltDescription, *ltLayout, *ltPreference;
typedef struct { uint64_t data[8]; } ltAlgorithm;
typedef struct {
    ltAlgorithm  algorithm;
    size_t       workspace;
    cublasStatus state;
    float        waves;
    int          reserved[4];
} ltFound;

enum { CUBLAS_ALLOC_FAILED = 3, CUBLAS_ARCH_MISMATCH = 8, CUBLAS_NOT_SUPPORTED = 15 };
enum { CUDA_F32 = 0, CUDA_F64 = 1, CUDA_F16 = 2, CUDA_BF16 = 14 };                  /* cudaDataType */
enum { CUBLAS_32F = 68, CUBLAS_32F_TF32 = 77, CUBLAS_64F = 70 };                    /* cublasComputeType_t */
enum { CUBLAS_SUM_IN_FULL = 16, CUBLAS_GEMM_DEFAULT = -1 };
enum { CUBLAS_MAJOR = 0, CUBLAS_MINOR = 1, CUBLAS_PATCH = 2 };                      /* libraryPropertyType */
enum { LT_TRANSA = 3, LT_TRANSB = 4, LT_EPILOGUE = 7, LT_BIAS = 8 };                /* of a description */
enum { LT_BATCHES = 5, LT_STEP = 6 };                                               /* of a layout */
enum { LT_WORKSPACE = 1, LT_REDUCTIONS = 3, LT_ALIGNMENT = 5 };                     /* of a preference */
enum { LT_REDUCE_NOT = 0, LT_REDUCE_IN_PLACE = 1, LT_REDUCE_IN_FULL = 2 };
enum { LT_PLAIN = 1, LT_RELU = 2, LT_ADD_BIAS = 4, LT_GELU = 32 };                  /* epilogues */

#define VN_CUBLAS_MAP(F) \
    F(cublasStatus, GetProperty,     cublasGetProperty,          (int which, int *out))                    \
    F(const char *, GetStatusString, cublasGetStatusString,      (cublasStatus s))                         \
    F(cublasStatus, Create,          cublasCreate_v2,            (cublasHandle *out))                      \
    F(cublasStatus, Destroy,         cublasDestroy_v2,           (cublasHandle h))                         \
    F(cublasStatus, SetStream,       cublasSetStream_v2,         (cublasHandle h, CUstream s))             \
    F(cublasStatus, SetWorkspace,    cublasSetWorkspace_v2,      (cublasHandle h, void *at, size_t bytes)) \
    F(cublasStatus, SetMathMode,     cublasSetMathMode,          (cublasHandle h, int mode))               \
    F(cublasStatus, Gemm,            cublasGemmEx, (cublasHandle h, int ta, int tb, int m, int n, int k,   \
        const void *alpha, const void *a, int a_type, int lda, const void *b, int b_type, int ldb,         \
        const void *beta, void *c, int c_type, int ldc, int compute, int algorithm))                       \
    F(cublasStatus, GemmBatch,       cublasGemmStridedBatchedEx, (cublasHandle h, int ta, int tb, int m,   \
        int n, int k, const void *alpha, const void *a, int a_type, int lda, long long a_step,             \
        const void *b, int b_type, int ldb, long long b_step, const void *beta, void *c, int c_type,       \
        int ldc, long long c_step, int batches, int compute, int algorithm))

#define VN_CUBLASLT_MAP(F) \
    F(cublasStatus, GetProperty,        cublasLtGetProperty,                  (int which, int *out))         \
    F(cublasStatus, DescriptionCreate,  cublasLtMatmulDescCreate, (ltDescription *out, int compute,          \
        int scale))                                                                                          \
    F(cublasStatus, DescriptionDestroy, cublasLtMatmulDescDestroy,            (ltDescription d))             \
    F(cublasStatus, DescriptionSet,     cublasLtMatmulDescSetAttribute, (ltDescription d, int which,         \
        const void *v, size_t bytes))                                                                        \
    F(cublasStatus, LayoutCreate,       cublasLtMatrixLayoutCreate, (ltLayout *out, int type, uint64_t rows, \
        uint64_t cols, int64_t ld))                                                                          \
    F(cublasStatus, LayoutDestroy,      cublasLtMatrixLayoutDestroy,          (ltLayout l))                  \
    F(cublasStatus, LayoutSet,          cublasLtMatrixLayoutSetAttribute, (ltLayout l, int which,            \
        const void *v, size_t bytes))                                                                        \
    F(cublasStatus, PreferenceCreate,   cublasLtMatmulPreferenceCreate,       (ltPreference *out))           \
    F(cublasStatus, PreferenceDestroy,  cublasLtMatmulPreferenceDestroy,      (ltPreference p))              \
    F(cublasStatus, PreferenceSet,      cublasLtMatmulPreferenceSetAttribute, (ltPreference p, int which,    \
        const void *v, size_t bytes))                                                                        \
    F(cublasStatus, Heuristic,          cublasLtMatmulAlgoGetHeuristic, (cublasHandle h, ltDescription d,    \
        ltLayout a, ltLayout b, ltLayout c, ltLayout out_c, ltPreference p, int wanted, ltFound *out,        \
        int *found))                                                                                         \
    F(cublasStatus, Matmul,             cublasLtMatmul, (cublasHandle h, ltDescription d, const void *alpha, \
        const void *a, ltLayout la, const void *b, ltLayout lb, const void *beta, const void *c,             \
        ltLayout lc, void *out, ltLayout lout, const ltAlgorithm *algorithm, void *workspace, size_t bytes,  \
        CUstream s))

struct vn_cublas_functions   { VN_CUBLAS_MAP(VN_POINTER) };
struct vn_cublaslt_functions { VN_CUBLASLT_MAP(VN_POINTER) };
#endif
