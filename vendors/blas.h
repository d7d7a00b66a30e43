/* SPDX-License-Identifier: Apache-2.0
 *
 * blas.h - a gemm in the terms of BLAS: row-major, with transposes, leading dimensions, one batch stride.
 */
#ifndef VN_BLAS_H
#define VN_BLAS_H

#include "gemm/gemm.h"

struct vn_blas_matrix {
    vn_buffer *buffer;
    int64_t    start, ld, step;   /* in elements; step: the batch stride */
    int        trans;             /* its columns are contiguous */
};

struct vn_blas {
    int64_t m, n, k, batches;
    struct vn_blas_matrix a, b, c;      /* c is never transposed */
};

/* NULL, or why BLAS cannot express it. */
const char *vn__blas(struct vn_blas *out, const struct gemm *g);
#endif
