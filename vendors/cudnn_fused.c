/* SPDX-License-Identifier: Apache-2.0
 *
 * cudnn_fused.c - cuDNN's convolutions with bias, residual and ReLU in one call.
 *
 * There are two ways: a graph of operations, for which cuDNN's heuristics name engines, and the older
 * function cudnnConvolutionBiasActivationForward.  At the first problem of a kind each candidate is run on
 * its operands and timed, and the fastest is kept: y is then written several times, with the same result.
 */
#include <stdlib.h>
#include <string.h>

#include "cudnn_graph.h"

enum { PRECOMPUTED_GEMM = 1 };

struct vn_cudnn_fused {
    struct vn_cudnn_graph *graph;             /* without an engine: the older function */
    cudnnDescriptor  bias, activation;        /* of that */
    cudnnDescriptor  operand[3], conv;        /* the caller's, x, w, y */
    size_t           workspace;
    struct vn_cudnn_key key;
};

/* ---- the graph ---- */

static struct vn_cudnn_shape bias_shape(const struct vn_cudnn_key *k)
{
    const int filters = k->y.extent[1];
    struct vn_cudnn_shape s;

    for (int i = 0; i < k->rank; i++) {
        s.extent[i] = i == 1 ? filters : 1;
        s.stride[i] = i == 1 || (i > 1 && !k->channels_last) ? 1 : filters;
    }
    return s;
}

/* The convolution, then + beta z, + bias and ReLU, as far as the call has them.  The last one writes y. */
static int64_t build(cudnnDescriptor operation[4], struct vn_cudnn_graph *g, const struct vn_cudnn_key *k)
{
    const struct vn_cudnn_shape of_bias = bias_shape(k);
    const int type = vn__cudnn_type((vn_type)k->type);
    const cudnnDescriptor x = vn__cudnn_graph_tensor(g, 'x', &k->x, type, 0);
    const cudnnDescriptor w = vn__cudnn_graph_tensor(g, 'w', &k->w, type, 0);
    int64_t left = (k->beta != 0) + k->has_bias + (k->activation == VN_RELU), count = 0;
    cudnnDescriptor from, to, other;

    to = left ? vn__cudnn_graph_tensor(g, 'p', &k->y, CUDNN_F32, 1)
       : vn__cudnn_graph_tensor(g, 'y', &k->y, type, 0);
    operation[count++] = vn__cudnn_graph_convolution(g, x, w, to, 0);
    for (int step = 0; step < 3; step++) {
        if (!(step == 0 ? k->beta != 0 : step == 1 ? k->has_bias : k->activation == VN_RELU))
            continue;
        from = to;
        to = --left ? vn__cudnn_graph_tensor(g, 'q' + step, &k->y, CUDNN_F32, 1)
           : vn__cudnn_graph_tensor(g, 'y', &k->y, type, 0);
        other = step == 0 ? vn__cudnn_graph_tensor(g, 'z', &k->y, type, 0)
              : step == 1 ? vn__cudnn_graph_tensor(g, 'b', &of_bias, type, 0) : NULL;
        operation[count++] = step < 2 ? vn__cudnn_graph_add(g, from, other, step == 0 ? k->beta : 1, to)
                           : vn__cudnn_graph_relu(g, from, to);
    }
    return count;
}

/* ---- the older function ---- */

static vn_status run_function(void *own, vn_queue *q, cudnnHandle handle, const struct vn_cudnn_operands *at)
{
    const struct vn_cudnn_fused *f = own;
    const union vn_cudnn_scalar alpha = vn__cudnn_scalar((vn_type)f->key.type, f->key.alpha);
    const union vn_cudnn_scalar beta = vn__cudnn_scalar((vn_type)f->key.type, f->key.beta);
    void *workspace;
    const vn_status s = vn__cudnn_workspace(&workspace, q, f->workspace);

    return s ? s : vn__cudnn_status(
        vn__cudnn.Fused(handle, &alpha, f->operand[0], at->x, f->operand[1], at->w, f->conv, PRECOMPUTED_GEMM,
                        workspace, f->workspace, &beta, f->operand[2], f->key.beta != 0 ? at->z : at->y,
                        f->bias, at->bias, f->activation, f->operand[2], at->y),
        "cudnnConvolutionBiasActivationForward");
}

/* The older function, if it can; else its descriptors stay NULL. */
static int prepare_function(struct vn_cudnn_fused *f, cudnnHandle handle)
{
    enum { WANTED = 16, NOT_PROPAGATE_NAN = 0, ACTIVATION_RELU = 1, ACTIVATION_IDENTITY = 5 };
    const struct vn_cudnn_shape s = bias_shape(&f->key);
    cudnnFound found[WANTED];
    int count = 0, known = 0;

    if (!f->key.has_bias ||
        vn__cudnn.GuessForward(handle, f->operand[0], f->operand[1], f->conv, f->operand[2], WANTED, &count,
                               found))
        return 0;
    for (int i = 0; i < count && !known; i++)
        if (!found[i].status && found[i].algorithm == PRECOMPUTED_GEMM &&
            found[i].workspace <= (uint64_t)f->key.workspace) {
            f->workspace = found[i].workspace;
            known = 1;
        }
    return known && !vn__cudnn.TensorCreate(&f->bias) &&
           !vn__cudnn.TensorSet(f->bias, vn__cudnn_type((vn_type)f->key.type), (int)f->key.rank, s.extent,
                                s.stride) &&
           !vn__cudnn.ActivationCreate(&f->activation) &&
           !vn__cudnn.ActivationSet(f->activation, f->key.activation == VN_RELU ? ACTIVATION_RELU
                                                                              : ACTIVATION_IDENTITY,
                                    NOT_PROPAGATE_NAN, 0);
}

static vn_status choose(struct vn_cudnn_fused *f, vn_queue *q, cudnnHandle handle,
                        const struct vn_cudnn_operands *at)
{
    cudnnDescriptor operation[4];
    float best = -1;
    int64_t count;

    if (prepare_function(f, handle))
        best = vn__cudnn_time(run_function, f, q, handle, at);
    count = build(operation, f->graph, &f->key);
    vn__cudnn_graph_choose(f->graph, q, handle, operation, count, at, &best);
    return best >= 0 ? VN_OK
         : vn__fail(VN_UNSUPPORTED, "cuDNN has no engine for this convolution with what follows it");
}

/* ---- for cudnn_conv.c ---- */

void vn__cudnn_fused_close(struct vn_cudnn_fused *f)
{
    if (!f)
        return;
    vn__cudnn_graph_close(f->graph);
    if (f->bias)
        vn__cudnn.TensorDestroy(f->bias);
    if (f->activation)
        vn__cudnn.ActivationDestroy(f->activation);
    free(f);
}

vn_status vn__cudnn_fused_open(struct vn_cudnn_fused **out, vn_queue *q, cudnnHandle handle,
                               const struct vn_cudnn_key *k, const cudnnDescriptor operand[3],
                               cudnnDescriptor conv, const struct vn_cudnn_operands *at)
{
    struct vn_cudnn_fused *f = calloc(1, sizeof *f);
    vn_status s;

    if (!f)
        return vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes for a plan of cuDNN", sizeof *f);
    f->key = *k;
    f->conv = conv;
    memcpy(f->operand, operand, sizeof f->operand);
    if ((s = vn__cudnn_graph_open(&f->graph, k)) || (s = choose(f, q, handle, at)))
        vn__cudnn_fused_close(f);
    else
        *out = f;
    return s;
}

vn_status vn__cudnn_fused_run(struct vn_cudnn_fused *f, vn_queue *q, cudnnHandle handle,
                              const struct vn_cudnn_operands *at)
{
    return vn__cudnn_graph_has_engine(f->graph) ? vn__cudnn_graph_run(f->graph, q, handle, at)
         : run_function(f, q, handle, at);
}
