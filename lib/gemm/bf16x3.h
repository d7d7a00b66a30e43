/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16x3.h - f32 operands as three bf16 parts, for the variants that multiply them (cl/gemm/bf16x3.h).
 */
#ifndef VN_GEMM_BF16X3_H
#define VN_GEMM_BF16X3_H

#include "gemm.h"

enum { VN_BF16X3_UNIT = 16 };                   /* bytes that offsets count */

/* An operand as rows along K: of A, or of the transpose of B; and its panels of `per` rows. */
struct vn_bf16x3_side {
    vn_tensor t;
    int64_t   rows, per, panels;                /* panels: of one matrix */
    int64_t   steps;                            /* of 16 of K, whole slices of them */
    int64_t   view[8];                          /* panels from batch to batch; [7] the start, in units */
    int64_t   matrices;                         /* batches that repeat one share it */
    int64_t   units;
};

/* t: the rows, K last.  0 if a size overflows. */
int       vn__bf16x3_panels(struct vn_bf16x3_side *s, const vn_tensor *t, int64_t per, int64_t blk_k);
size_t    vn__bf16x3_bytes(const struct vn_bf16x3_side *s);
/* The launch of `split`, of which a work-group makes `span` of K. */
vn_status vn__bf16x3_launch_split(struct vn_launch *l, const struct vn_bf16x3_side *s, vn_buffer *parts,
                                  int span);
/* GFLOP/s of a compute unit that multiplies f32 so. */
double    vn__bf16x3_peak(const struct vn_site *site);
#endif
