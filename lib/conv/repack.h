/* SPDX-License-Identifier: Apache-2.0
 *
 * repack.h - tensors of images (filters) as rows of contiguous channels: NHWC whose pixels begin at multiples
 * of 16 bytes.
 */
#ifndef VN_CONV_REPACK_H
#define VN_CONV_REPACK_H

#include "conv.h"

/* Whether a tensor is such rows; and the strides of a copy that is, `row` pixels to a row. */
int     vn__conv_is_rows(const vn_tensor *t);
void    vn__conv_lay_rows(vn_tensor *t, int64_t row);
/* Channels of a pixel of the copy. */
int64_t vn__conv_row_channels(const vn_tensor *t);
/* Elements of the copy, `row` pixels to a row; 0 if they overflow. */
int64_t vn__conv_row_elements(const vn_tensor *t, int64_t row);

/* Queues the copy from `t` to element `start` of `to`, rows of `row` pixels, whose first is column w0 of t;
 * by the choice's `kernel`, `repack` of cl/conv/repack.cl.                                               */
vn_status vn__conv_repack(vn_queue *q, const struct vn_choice *it, int kernel, const vn_tensor *t,
                          int64_t row, int64_t w0, vn_buffer *to, int64_t start);

/* A filter of 1 that jumps over pixels reads others than these nowhere, nor does its gradient: they are a
 * view of their own. */
struct conv vn__conv_without_jumps(const struct conv *c);

/* Arguments: a view as kernels take it (cl/conv/conv.h), and extents with four numbers of the caller's. */
void vn__conv_arg_image(struct vn_launch *l, const vn_tensor *t, vn_buffer *b, int64_t start);
void vn__conv_arg_sizes(struct vn_launch *l, int64_t s0, int64_t s1, int64_t s2, int64_t s3,
                        const int64_t dims[DIMS]);
#endif
