/* SPDX-License-Identifier: Apache-2.0
 *
 * cudnn_graph.h - convolutions as graphs of operations, for cuDNN's backend API: the parts of a graph, and
 * the fastest of the engines that cuDNN has for it.
 */
#ifndef VN_CUDNN_GRAPH_H
#define VN_CUDNN_GRAPH_H

#include "cudnn_conv.h"

/* ---- timing ---- */

/* One of the ways to solve a problem. */
typedef vn_status vn_cudnn_way(void *own, vn_queue *q, cudnnHandle handle,
                               const struct vn_cudnn_operands *at);

/* Milliseconds of the fastest of several runs after the first; below 0: it failed. */
float     vn__cudnn_time(vn_cudnn_way *way, void *own, vn_queue *q, cudnnHandle handle,
                         const struct vn_cudnn_operands *at);
/* The queue's scratch memory; NULL for no bytes. */
vn_status vn__cudnn_workspace(void **out, vn_queue *q, size_t bytes);

/* ---- graphs ---- */

struct vn_cudnn_graph;
vn_status vn__cudnn_graph_open (struct vn_cudnn_graph **out, const struct vn_cudnn_key *k);
void      vn__cudnn_graph_close(struct vn_cudnn_graph *g);

/* Parts of it, which it keeps; NULL after a failure, which the next part passes on.  id: 'x', 'w', 'y', 'z'
 * (the residual) or 'b' (the bias), or any other character for what is virtual. */
cudnnDescriptor vn__cudnn_graph_tensor(struct vn_cudnn_graph *g, int64_t id, const struct vn_cudnn_shape *s,
                                       int type, char is_virtual);
/* Of the key's direction, the output y, x or w := the key's alpha times the sum + beta y, x or w. */
cudnnDescriptor vn__cudnn_graph_convolution(struct vn_cudnn_graph *g, cudnnDescriptor x, cudnnDescriptor w,
                                            cudnnDescriptor y, double beta);
/* y := x + scale b */
cudnnDescriptor vn__cudnn_graph_add (struct vn_cudnn_graph *g, cudnnDescriptor x, cudnnDescriptor b,
                                     double scale, cudnnDescriptor y);
/* y := max(x, 0) */
cudnnDescriptor vn__cudnn_graph_relu(struct vn_cudnn_graph *g, cudnnDescriptor x, cudnnDescriptor y);

/* Runs the engines that cuDNN's heuristics name for these operations, and keeps the fastest if it is faster
 * than *best milliseconds, which are then its own; below 0: nothing else was measured.  An operation may be
 * NULL: then there is no engine, nor is there after a failure. */
void      vn__cudnn_graph_choose(struct vn_cudnn_graph *g, vn_queue *q, cudnnHandle handle,
                                 const cudnnDescriptor *operation, int64_t count,
                                 const struct vn_cudnn_operands *at, float *best);
int       vn__cudnn_graph_has_engine(const struct vn_cudnn_graph *g);
vn_status vn__cudnn_graph_run(struct vn_cudnn_graph *g, vn_queue *q, cudnnHandle handle,
                              const struct vn_cudnn_operands *at);
#endif
