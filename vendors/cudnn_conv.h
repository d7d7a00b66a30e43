/* SPDX-License-Identifier: Apache-2.0
 *
 * cudnn_conv.h - a convolution as cuDNN sees it, and those with what follows the sum in the same call.
 */
#ifndef VN_CUDNN_CONV_H
#define VN_CUDNN_CONV_H

#include "conv/conv.h"
#include "cudnn.h"

/* Two or three spatial dimensions; the stride of a dimension of extent 1 is that of packed NCHW or NHWC. */
struct vn_cudnn_shape { int extent[RANK], stride[RANK]; };

/* What a plan depends on, the scales too, which are part of a graph.  Of an epilogue: whether there is a bias
 * (one for each channel) and the activation; all 0 where it is a bare convolution.                         */
struct vn_cudnn_key {
    int64_t direction, type, math, workspace, groups, rank, channels_last;
    int64_t pad[DIMS], stride[DIMS], dilation[DIMS];
    int64_t is_fused, has_bias, activation;
    double  alpha, beta;
    struct vn_cudnn_shape x, w, y;
};

/* Addresses on the device; z: the residual. */
struct vn_cudnn_operands { void *x, *w, *y, *z, *bias; };

/* cudnn_fused.c.  operand: the descriptors of x, w, y, which must outlive it, as conv. */
struct vn_cudnn_fused;
vn_status vn__cudnn_fused_open(struct vn_cudnn_fused **out, vn_queue *q, cudnnHandle handle,
                               const struct vn_cudnn_key *k, const cudnnDescriptor operand[3],
                               cudnnDescriptor conv, const struct vn_cudnn_operands *at);
vn_status vn__cudnn_fused_run (struct vn_cudnn_fused *f, vn_queue *q, cudnnHandle handle,
                               const struct vn_cudnn_operands *at);
void      vn__cudnn_fused_close(struct vn_cudnn_fused *f);
#endif
