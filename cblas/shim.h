/* SPDX-License-Identifier: Apache-2.0
 *
 * shim.h - what the files of libvernier_cblas.so share: a product in the terms of BLAS, and the BLAS that is
 * there.
 */
#ifndef VN_BLAS_SHIM_H
#define VN_BLAS_SHIM_H

#include <stdint.h>

/* A matrix, or a row of as many as there are batches: where it begins, and its strides in elements. */
struct operand {
    const void *at;
    int64_t     row, col, batch;
};

/* C := alpha A B + beta C: A is M x K, B is K x N, C is M x N with contiguous rows, unless M is 1. */
struct product {
    int            is_f64;
    int64_t        batches, m, n, k;
    double         alpha, beta;
    struct operand a, b, c;
};

/* Computes it, and returns 1 when C is written; 0 if the BLAS must, with C as it was. */
int vn__product(const struct product *p);

/* A function of the BLAS that is there, looked up once. */
struct next {
    const char *name;
    void       *function;
};

/* Where no BLAS has it: NULL, or, if it is required, a sentence on stderr and abort(), as XERBLA stops. */
void *vn__next(struct next *it, int required);
#endif
