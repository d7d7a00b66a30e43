/* SPDX-License-Identifier: Apache-2.0
 *
 * cudnn_softmax.c - the variant cudnn of softmax, forward and backward.
 *
 * cuDNN takes four dimensions N, C, H, W, and reduces along C; rows are the others. (A row of -infinity
 * alone gives NaN, where ours gives 0.)
 */
#include <limits.h>
#include <string.h>

#include "backends/cuda/cuda.h"
#include "cudnn.h"
#include "softmax/softmax.h"
#include "vendor.h"

enum { N, C, H, WIDTH, PLACES };

/* ---- fits ------------------------------------------------------------------------ */

static int fits_int(const vn_tensor *t)
{
    for (int d = 0; d < t->rank; d++)
        if (t->extent[d] > INT_MAX || t->stride[d] > INT_MAX)
            return 0;
    return vn__elements(t) <= INT_MAX;
}

static int repeats(const vn_tensor *t)
{
    for (int d = 0; d < t->rank; d++)
        if (t->stride[d] == 0 && t->extent[d] > 1)
            return 1;
    return 0;
}

static const char *fits_view(const vn_tensor *t)
{
    if (t->rank > PLACES)
        return "it takes at most three row dimensions";
    if (repeats(t))
        return "its tensors may not repeat elements";
    if (!fits_int(t))
        return "its tensors must have fewer than 2^31 elements";
    return vn__cudnn_starts_aligned(t) ? NULL : "its tensors must begin at multiples of 16 bytes";
}

const char *vn__fits_cudnn_softmax(const void *problem, const struct vn_facts *f)
{
    const struct softmax *s = problem;

    if (strcmp(f->backend, "cuda"))
        return "it needs a CUDA device";
    if (s->causal || (s->has_w && !s->backward))
        return "it has no mask";
    if (s->scale != 1 && !s->backward)
        return "it has no scale";
    for (int v = 0; v < VIEWS; v++) {
        const char *why = fits_view(&s->t[v]);

        if (why)
            return why;
    }
    return vn__cudnn_missing();
}

/* ---- running ----------------------------------------------------------------------- */

/* Maps each dimension of a view: contiguous rows become pixels, others images. */
static void place(int to[PLACES], const struct softmax *s)
{
    const int rows = s->t[X].rank - 1;

    memcpy(to, (const int [PLACES]){ N, H, WIDTH }, sizeof(int [PLACES]));
    if (rows == 1 && s->across)
        to[0] = H;
    to[rows] = C;
}

static cudnnStatus describe(cudnnDescriptor d, const struct softmax *s, const vn_tensor *t)
{
    int to[PLACES], extent[PLACES] = { 1, 1, 1, 1 }, stride[PLACES] = { 1, 1, 1, 1 };

    place(to, s);
    for (int i = 0; i < t->rank; i++) {
        extent[to[i]] = (int)t->extent[i];
        stride[to[i]] = t->extent[i] > 1 ? (int)t->stride[i] : 1;
    }
    for (int i = PLACES - 2; i >= 0; i--)       /* a dimension of extent 1 gets its packed stride */
        if (extent[i] == 1)
            stride[i] = extent[i + 1] * stride[i + 1];
    return vn__cudnn.TensorSet(d, vn__cudnn_type(t->type), PLACES, extent, stride);
}

static vn_status softmax(const struct vn_cudnn *own, const struct softmax *s, void *const at[VIEWS])
{
    const vn_type t = s->head.type;
    const union vn_cudnn_scalar alpha = vn__cudnn_scalar(t, s->backward ? s->scale : 1);
    const union vn_cudnn_scalar beta = vn__cudnn_scalar(t, 0);
    const int algorithm = s->log ? CUDNN_LOG : CUDNN_ACCURATE;
    const int mode = s->t[X].rank <= 2 && !s->across ? CUDNN_INSTANCE : CUDNN_CHANNEL;

    if (s->backward)
        return vn__cudnn_status(vn__cudnn.SoftmaxBackward(own->handle, algorithm, mode, &alpha,
                                                          own->tensor[X], at[X], own->tensor[W], at[W],
                                                          &beta, own->tensor[Y], at[Y]),
                                "cudnnSoftmaxBackward");
    return vn__cudnn_status(vn__cudnn.Softmax(own->handle, algorithm, mode, &alpha, own->tensor[X], at[X],
                            &beta, own->tensor[Y], at[Y]), "cudnnSoftmaxForward");
}

static vn_status describe_all(void *at[VIEWS], const struct vn_cudnn *own, const struct softmax *s)
{
    static const char *const names[VIEWS] = { "the first tensor", "the second tensor", "the output" };
    vn_status status;

    for (int v = 0; v < VIEWS; v++)
        if ((status = vn__cudnn_status(describe(own->tensor[v], s, &s->t[v]),
                                       "cudnnSetTensorNdDescriptor")) ||
            (status = vn__cudnn_pointer(&at[v], &s->t[v], names[v])))
            return status;
    return VN_OK;
}

static vn_status call(vn_queue *q, const void *problem)
{
    struct vn_cudnn *own;
    void *at[VIEWS];
    vn_status s;

    if ((s = vn__cuda_enter(q->device)))
        return s;
    if ((s = vn__cudnn_attach(&own, q)) == VN_OK && (s = describe_all(at, own, problem)) == VN_OK)
        s = softmax(own, problem, at);
    return vn__cuda_leave(s);
}

vn_status vn__run_cudnn_softmax(vn_queue *q, const struct vn_choice *it, const void *problem,
                                const struct vn_plan *plan)
{
    (void)plan;
    return vn__launch_foreign(q, it, problem, call);
}
