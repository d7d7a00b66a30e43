/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16x3.h - f32 operands in parts of bf16, for the variants that multiply them (cl/gemm/bf16x3.h).
 */
#ifndef VN_GEMM_SPLIT_H
#define VN_GEMM_SPLIT_H

#include "gemm.h"

enum { VN_SPLIT_UNIT = 16 };                    /* bytes that offsets count */

/* An operand as lines along K: rows of A, or columns of B; and its panels of `per` lines. */
struct vn_side {
    vn_tensor t;
    int64_t   lines, per, panels;               /* panels: of one matrix */
    int64_t   steps;                            /* of 16 of K, whole slices of them */
    int64_t   view[8];                          /* panels from batch to batch; [7] the start, in units */
    int64_t   matrices;                         /* batches that repeat one share it */
    int64_t   units;
};

/* t: the lines, K last.  0 if a size overflows. */
int       vn__split_lay_out(struct vn_side *s, const vn_tensor *t, int64_t per, int64_t blk_k);
size_t    vn__split_bytes(const struct vn_side *s);
/* The launch of `split`, of which a work-group makes `span` of K. */
vn_status vn__split_launch(struct vn_launch *l, const struct vn_side *s, vn_buffer *parts, int span);

/* gemm_split's time, on an H100 in microseconds; less where B is packed as it wants it, or may be. */
double    vn__time_split(const struct gemm *g);
#endif
