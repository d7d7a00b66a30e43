/* SPDX-License-Identifier: Apache-2.0
 *
 * onednn.c - oneDNN 2.x and 3.x: gemm, convolution and softmax on all cores.
 *
 * Both versions are spoken to through one set of functions.  What differs is small: how a
 * layout and a primitive are described, three numbers, and two signatures.
 *
 * oneDNN is measured at its best.  A convolution picks its own layouts for all its tensors
 * (format "any", blocked by channels), and they are reordered before the clock starts: that
 * favours the peer, since ours works on the caller's layout.  The peer onednn-plain is what a
 * caller gets who keeps the tensors as they are: only the filter that a convolution reads is
 * reordered, beforehand as well.  A gemm gets both matrices as
 * they are, because C := A B of two fresh matrices is the problem, and of dnnl_sgemm and the
 * matmul primitive takes the quicker.  Convolution is "direct": Winograd has another precision.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "peer.h"
#include "problem/conv.h"
#include "problem/gemm.h"
#include "problem/softmax.h"

typedef void *handle;                        /* an object of oneDNN */
typedef int64_t sizes[12];                   /* dnnl_dims_t */

/* Numbers of the C API, the same in both versions unless a suffix says which. */
enum {
    F16 = 1, BF16 = 2, F32 = 3, CPU = 1, STREAM_DEFAULT = 1, TAG_ANY = 1, OWN_MEMORY = -1,
    TRAINING = 64, INFERENCE = 96, CONV_DIRECT = 1, SOFTMAX_ACCURATE = 0x30000, SOFTMAX_LOG = 0x30001,
    BINARY_ADD = 0x1fff0, QUERY_ARG_LAYOUT = 255,
    SRC = 1, SRC_1 = 2, DST = 17, WEIGHTS = 33, BIAS_ARG = 41,
    DIFF_SRC = 129, DIFF_DST = 145, DIFF_WEIGHTS = 161,
    POST_OP_ARG_2 = 16384, POST_OP_ARG_3 = 32768
};

struct dnnl_release { int major, minor, patch; };

/* Version 2 keeps layouts and descriptions of operations in structs of the caller's.  They
 * are 696 and at most 5976 bytes there; the room is for whatever a patch release adds.      */
enum { LAYOUT_BYTES = 2048 };
union description { char bytes[16384]; int64_t aligned; };

static struct {
    void  *library;
    int    major;
    char   version[64];
    handle engine, stream;

    const struct dnnl_release *(*release)(void);
    int    (*engine_create)    (handle *, int kind, size_t index);
    int    (*engine_destroy)   (handle);
    int    (*stream_create)    (handle *, handle engine, unsigned flags);
    int    (*stream_wait)      (handle);
    int    (*stream_destroy)   (handle);
    int    (*memory_create)    (handle *, const void *layout, handle engine, void *data);
    int    (*memory_data)      (handle, void **);
    int    (*memory_destroy)   (handle);
    int    (*primitive_create) (handle *, handle plan);
    int    (*primitive_destroy)(handle);
    int    (*execute)          (handle, handle stream, int count, const void *arguments);
    int    (*plan_destroy)     (handle);
    const void *(*plan_layout) (handle plan, int query, int index);
    int    (*reorder)          (handle *plan, const void *from, handle, const void *to, handle, handle attr);
    int    (*attr_create)      (handle *);
    int    (*attr_destroy)     (handle);
    int    (*attr_post_ops)    (handle, handle post_ops);
    int    (*post_ops_create)  (handle *);
    int    (*post_ops_destroy) (handle);
    int    (*append_binary)    (handle, int algorithm, const void *layout);
    int    (*sgemm)            (char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha,
                                const float *a, int64_t lda, const float *b, int64_t ldb,
                                float beta, float *c, int64_t ldc);
    struct {
        int (*plan_create)     (handle *, const void *description, handle attr, handle engine, handle hint);
        int (*layout_strides)  (void *, int rank, const int64_t *, int type, const int64_t *strides);
        int (*layout_tag)      (void *, int rank, const int64_t *, int type, int tag);
        int (*append_eltwise)  (handle, float scale, int algorithm, float alpha, float beta);
        int (*append_sum)      (handle, float scale);
        int (*matmul)          (void *, const void *a, const void *b, const void *bias, const void *c);
        int (*conv_forward)    (void *, int kind, int algorithm, const void *x, const void *w,
                                const void *bias, const void *y,
                                const int64_t *, const int64_t *, const int64_t *, const int64_t *);
        int (*conv_data)       (void *, int algorithm, const void *x, const void *w, const void *y,
                                const int64_t *, const int64_t *, const int64_t *, const int64_t *);
        int (*conv_weights)    (void *, int algorithm, const void *x, const void *w,
                                const void *bias, const void *y,
                                const int64_t *, const int64_t *, const int64_t *, const int64_t *);
        int (*softmax_forward) (void *, int kind, int algorithm, const void *x, const void *y, int axis);
        int (*softmax_backward)(void *, int algorithm, const void *dx, const void *dy,
                                const void *y, int axis);
    } v2;
    struct {
        int (*layout_strides)  (void **, int rank, const int64_t *, int type, const int64_t *strides);
        int (*layout_tag)      (void **, int rank, const int64_t *, int type, int tag);
        int (*layout_destroy)  (void *);
        int (*append_eltwise)  (handle, int algorithm, float alpha, float beta);
        int (*append_sum)      (handle, float scale, int32_t zero_point, int type);
        int (*matmul)          (handle *, handle engine, const void *a, const void *b, const void *bias,
                                const void *c, handle attr);
        int (*conv_forward)    (handle *, handle engine, int kind, int algorithm, const void *x,
                                const void *w, const void *bias, const void *y,
                                const int64_t *, const int64_t *, const int64_t *, const int64_t *,
                                handle attr);
        int (*conv_data)       (handle *, handle engine, int algorithm, const void *x, const void *w,
                                const void *y, const int64_t *, const int64_t *,
                                const int64_t *, const int64_t *, handle hint, handle attr);
        int (*conv_weights)    (handle *, handle engine, int algorithm, const void *x, const void *w,
                                const void *bias, const void *y, const int64_t *, const int64_t *,
                                const int64_t *, const int64_t *, handle hint, handle attr);
        int (*softmax_forward) (handle *, handle engine, int kind, int algorithm, const void *x,
                                const void *y, int axis, handle attr);
        int (*softmax_backward)(handle *, handle engine, int algorithm, const void *dx, const void *dy,
                                const void *y, int axis, handle hint, handle attr);
    } v3;
} dnnl;

static const struct peer_symbol symbols[] = {
    { "dnnl_version",                       &dnnl.release },
    { "dnnl_engine_create",                 &dnnl.engine_create },
    { "dnnl_engine_destroy",                &dnnl.engine_destroy },
    { "dnnl_stream_create",                 &dnnl.stream_create },
    { "dnnl_stream_wait",                   &dnnl.stream_wait },
    { "dnnl_stream_destroy",                &dnnl.stream_destroy },
    { "dnnl_memory_create",                 &dnnl.memory_create },
    { "dnnl_memory_get_data_handle",        &dnnl.memory_data },
    { "dnnl_memory_destroy",                &dnnl.memory_destroy },
    { "dnnl_primitive_create",              &dnnl.primitive_create },
    { "dnnl_primitive_destroy",             &dnnl.primitive_destroy },
    { "dnnl_primitive_execute",             &dnnl.execute },
    { "dnnl_primitive_desc_destroy",        &dnnl.plan_destroy },
    { "dnnl_primitive_desc_query_md",       &dnnl.plan_layout },
    { "dnnl_reorder_primitive_desc_create", &dnnl.reorder },
    { "dnnl_primitive_attr_create",         &dnnl.attr_create },
    { "dnnl_primitive_attr_destroy",        &dnnl.attr_destroy },
    { "dnnl_primitive_attr_set_post_ops",   &dnnl.attr_post_ops },
    { "dnnl_post_ops_create",               &dnnl.post_ops_create },
    { "dnnl_post_ops_destroy",              &dnnl.post_ops_destroy },
    { "dnnl_post_ops_append_binary",        &dnnl.append_binary },
    { "dnnl_sgemm",                         &dnnl.sgemm },
    { NULL, NULL }
};

static const struct peer_symbol symbols_v2[] = {
    { "dnnl_primitive_desc_create",                         &dnnl.v2.plan_create },
    { "dnnl_memory_desc_init_by_strides",                   &dnnl.v2.layout_strides },
    { "dnnl_memory_desc_init_by_tag",                       &dnnl.v2.layout_tag },
    { "dnnl_post_ops_append_eltwise",                       &dnnl.v2.append_eltwise },
    { "dnnl_post_ops_append_sum",                           &dnnl.v2.append_sum },
    { "dnnl_matmul_desc_init",                              &dnnl.v2.matmul },
    { "dnnl_dilated_convolution_forward_desc_init",         &dnnl.v2.conv_forward },
    { "dnnl_dilated_convolution_backward_data_desc_init",   &dnnl.v2.conv_data },
    { "dnnl_dilated_convolution_backward_weights_desc_init", &dnnl.v2.conv_weights },
    { "dnnl_softmax_v2_forward_desc_init",                  &dnnl.v2.softmax_forward },
    { "dnnl_softmax_v2_backward_desc_init",                 &dnnl.v2.softmax_backward },
    { NULL, NULL }
};

static const struct peer_symbol symbols_v3[] = {
    { "dnnl_memory_desc_create_with_strides",                    &dnnl.v3.layout_strides },
    { "dnnl_memory_desc_create_with_tag",                        &dnnl.v3.layout_tag },
    { "dnnl_memory_desc_destroy",                                &dnnl.v3.layout_destroy },
    { "dnnl_post_ops_append_eltwise",                            &dnnl.v3.append_eltwise },
    { "dnnl_post_ops_append_sum",                                &dnnl.v3.append_sum },
    { "dnnl_matmul_primitive_desc_create",                       &dnnl.v3.matmul },
    { "dnnl_convolution_forward_primitive_desc_create",          &dnnl.v3.conv_forward },
    { "dnnl_convolution_backward_data_primitive_desc_create",    &dnnl.v3.conv_data },
    { "dnnl_convolution_backward_weights_primitive_desc_create", &dnnl.v3.conv_weights },
    { "dnnl_softmax_forward_primitive_desc_create",              &dnnl.v3.softmax_forward },
    { "dnnl_softmax_backward_primitive_desc_create",             &dnnl.v3.softmax_backward },
    { NULL, NULL }
};

/* ---- the two versions as one ---- */

static int layout_open(void **out, int rank, const int64_t *extent, int type, const int64_t *stride)
{
    if (dnnl.major > 2)
        return stride ? dnnl.v3.layout_strides(out, rank, extent, type, stride)
                      : dnnl.v3.layout_tag(out, rank, extent, type, TAG_ANY);
    if (!(*out = calloc(1, LAYOUT_BYTES)))
        return -1;
    return stride ? dnnl.v2.layout_strides(*out, rank, extent, type, stride)
                  : dnnl.v2.layout_tag(*out, rank, extent, type, TAG_ANY);
}

static void layout_close(void *layout)
{
    if (!layout)
        return;
    if (dnnl.major > 2)
        dnnl.v3.layout_destroy(layout);
    else
        free(layout);
}

static int append_eltwise(handle post, int algorithm, float alpha)
{
    return dnnl.major > 2 ? dnnl.v3.append_eltwise(post, algorithm, alpha, 0)
                          : dnnl.v2.append_eltwise(post, 1, algorithm, alpha, 0);
}

static int append_sum(handle post, float scale)
{
    return dnnl.major > 2 ? dnnl.v3.append_sum(post, scale, 0, 0) : dnnl.v2.append_sum(post, scale);
}

/* The layouts of one operation in the order of problem_operands(), as it is planned. */
struct shape {
    const struct problem *p;
    void   *layout[3], *bias;                /* bias: the primitive's own */
    int     rank;                            /* of the output */
    sizes   stride, dilation, before, after;
};

static int plan_matmul(handle *out, struct shape *s, handle attr)
{
    union description d;

    if (dnnl.major > 2)
        return dnnl.v3.matmul(out, dnnl.engine, s->layout[0], s->layout[1], s->bias, s->layout[2], attr);
    memset(&d, 0, sizeof d);
    return dnnl.v2.matmul(&d, s->layout[0], s->layout[1], s->bias, s->layout[2])
        || dnnl.v2.plan_create(out, &d, attr, dnnl.engine, NULL);
}

#define WINDOW s->stride, s->dilation, s->before, s->after

static int plan_forward(handle *out, const struct shape *s, int kind,
                        const void *x, const void *w, const void *y, handle attr)
{
    union description d;

    if (dnnl.major > 2)
        return dnnl.v3.conv_forward(out, dnnl.engine, kind, CONV_DIRECT, x, w, s->bias, y, WINDOW, attr);
    memset(&d, 0, sizeof d);
    return dnnl.v2.conv_forward(&d, kind, CONV_DIRECT, x, w, s->bias, y, WINDOW)
        || dnnl.v2.plan_create(out, &d, attr, dnnl.engine, NULL);
}

static int plan_backward_data(handle *out, const struct shape *s, handle hint)
{
    const void *dy = s->layout[0], *w = s->layout[1], *dx = s->layout[2];
    union description d;

    if (dnnl.major > 2)
        return dnnl.v3.conv_data(out, dnnl.engine, CONV_DIRECT, dx, w, dy, WINDOW, hint, NULL);
    memset(&d, 0, sizeof d);
    return dnnl.v2.conv_data(&d, CONV_DIRECT, dx, w, dy, WINDOW)
        || dnnl.v2.plan_create(out, &d, NULL, dnnl.engine, hint);
}

static int plan_backward_filter(handle *out, const struct shape *s, handle hint)
{
    const void *x = s->layout[0], *dy = s->layout[1], *dw = s->layout[2];
    union description d;

    if (dnnl.major > 2)
        return dnnl.v3.conv_weights(out, dnnl.engine, CONV_DIRECT, x, dw, NULL, dy, WINDOW, hint, NULL);
    memset(&d, 0, sizeof d);
    return dnnl.v2.conv_weights(&d, CONV_DIRECT, x, dw, NULL, dy, WINDOW)
        || dnnl.v2.plan_create(out, &d, NULL, dnnl.engine, hint);
}

static void fill_window(struct shape *s)
{
    const struct conv_problem *c = conv_of(s->p);
    int d;

    for (d = 0; d < c->spatial; d++) {
        const int from = 3 - c->spatial + d;

        s->stride[d]   = c->stride[from];
        s->dilation[d] = c->dilation[from] - 1;
        s->before[d]   = c->pad_before[from];
        s->after[d]    = c->pad_after[from];
    }
}

static int plan_conv(handle *out, struct shape *s, handle attr)
{
    void *const *t = s->layout;
    handle hint = NULL;
    int status;

    fill_window(s);
    if (s->p->direction == FORWARD)
        return plan_forward(out, s, INFERENCE, t[0], t[1], t[2], attr);
    if (s->p->direction == BACKWARD_DATA)
        status = plan_forward(&hint, s, TRAINING, t[2], t[1], t[0], NULL)
            || plan_backward_data(out, s, hint);
    else
        status = plan_forward(&hint, s, TRAINING, t[0], t[2], t[1], NULL)
            || plan_backward_filter(out, s, hint);
    if (hint)
        dnnl.plan_destroy(hint);
    return status;
}

static int plan_softmax_forward(handle *out, const struct shape *s, int kind,
                                const void *x, const void *y, int axis)
{
    const int algorithm = softmax_of(s->p)->log ? SOFTMAX_LOG : SOFTMAX_ACCURATE;
    union description d;

    if (dnnl.major > 2)
        return dnnl.v3.softmax_forward(out, dnnl.engine, kind, algorithm, x, y, axis, NULL);
    memset(&d, 0, sizeof d);
    return dnnl.v2.softmax_forward(&d, kind, algorithm, x, y, axis)
        || dnnl.v2.plan_create(out, &d, NULL, dnnl.engine, NULL);
}

static int plan_softmax_backward(handle *out, const struct shape *s, int axis, handle hint)
{
    const int algorithm = softmax_of(s->p)->log ? SOFTMAX_LOG : SOFTMAX_ACCURATE;
    const void *y = s->layout[0], *dy = s->layout[1], *dx = s->layout[2];
    union description d;

    if (dnnl.major > 2)
        return dnnl.v3.softmax_backward(out, dnnl.engine, algorithm, dx, dy, y, axis, hint, NULL);
    memset(&d, 0, sizeof d);
    return dnnl.v2.softmax_backward(&d, algorithm, dx, dy, y, axis)
        || dnnl.v2.plan_create(out, &d, NULL, dnnl.engine, hint);
}

/* It has no post-ops: attr says nothing. */
static int plan_softmax(handle *out, struct shape *s, handle attr)
{
    const int axis = s->rank - (softmax_of(s->p)->inner > 1 ? 2 : 1);
    handle hint = NULL;
    int status;

    (void)attr;
    if (s->p->direction == FORWARD)
        return plan_softmax_forward(out, s, INFERENCE, s->layout[0], s->layout[1], axis);
    status = plan_softmax_forward(&hint, s, TRAINING, s->layout[2], s->layout[0], axis)
        || plan_softmax_backward(out, s, axis, hint);
    if (hint)
        dnnl.plan_destroy(hint);
    return status;
}

/* ---- one prepared problem ---- */

enum { BIAS = 3, ARGUMENTS };                /* after up to three operands */
struct argument { int index; handle memory; };          /* dnnl_exec_arg_t */

struct run {
    const struct operation *operation;
    handle          plan, primitive;
    struct argument argument[ARGUMENTS];
    int             count;
    struct operands o;
    void           *user[ARGUMENTS];         /* the layouts of the caller */
    struct peer_blas blas;                   /* for dnnl_sgemm */
    float           alpha, beta;
    int             by_sgemm;
    int             plain;                   /* images and what is written lie as the caller has them */
};

static const int dnnl_types[VN_TYPE_COUNT] = { F32, F16, BF16, 0 };

static const int activations[VN_ACTIVATION_COUNT][2] = {         /* in version 2, in version 3 */
    [VN_RELU] = { 31, 32 }, [VN_GELU] = { 207, 43 }, [VN_SILU] = { 223, 44 },
    [VN_SIGMOID] = { 175, 41 }, [VN_TANH] = { 47, 33 },
};
static const int linear[2] = { 127, 38 };

/* ---- the operations ---- */

/* What oneDNN has no single primitive for: a pair of calls would be no match. */
static const char *gemm_lacks(const struct problem *p)
{
    const struct gemm_problem *const g = gemm_of(p);

    return g->to_f32 || g->sides_f32 || g->residual || g->scale
         ? "it is compared in one type, without scale, and with C as the residual" : NULL;
}

static const char *conv_lacks(const struct problem *p)
{
    if (conv_of(p)->to_f32 || conv_of(p)->sides_f32)
        return "it is compared in one type";
    if (conv_of(p)->residual && conv_of(p)->residual != BIAS_FULL)
        return "it adds residuals of all the output's elements only";
    return p->direction != FORWARD && (p->alpha != 1 || p->beta != 0 || p->bias || p->act != VN_IDENTITY)
         ? "its backward convolutions have no alpha, beta, bias or activation" : NULL;
}

static const char *softmax_lacks(const struct problem *p)
{
    const struct softmax_problem *s = softmax_of(p);

    return s->mask || s->causal || s->scale != 1 ? "its softmax has no mask, no causal and no scale" : NULL;
}

static int no_groups(const struct problem *p)
{
    (void)p;
    return 1;
}

static int conv_groups(const struct problem *p)
{
    return (int)conv_of(p)->groups;
}

static const struct operation {
    const char *(*lacks)(const struct problem *p);
    int         (*plan)(handle *out, struct shape *s, handle attr);
    int         (*groups)(const struct problem *p);
    int           own_layouts;               /* the primitive picks the layouts of its tensors */
    int           channels;                  /* dimension 1 is one: what a bias of rank 1 goes along */
    int           by_sgemm;                  /* dnnl_sgemm may do it, too */
    int           residual;                  /* the operand that is one, if the problem has it; 0: none is */
    int           role[DIRECTIONS][3];       /* what each operand is to oneDNN */
} operations[] = {
    { gemm_lacks, plan_matmul, no_groups, 0, 0, 1, 0,
      { [FORWARD]         = { SRC, WEIGHTS, DST } } },
    { conv_lacks, plan_conv, conv_groups, 1, 1, 0, CONV_RESIDUAL,
      { [FORWARD]         = { SRC, WEIGHTS, DST },
        [BACKWARD_DATA]   = { DIFF_DST, WEIGHTS, DIFF_SRC },
        [BACKWARD_FILTER] = { SRC, DIFF_DST, DIFF_WEIGHTS } } },
    { softmax_lacks, plan_softmax, no_groups, 0, 0, 0, 0,
      { [FORWARD]         = { SRC, DST, 0 },
        [BACKWARD]        = { DST, DIFF_DST, DIFF_SRC } } },
};
static const struct op *const has[] = { &op_gemm, &op_conv, &op_softmax, NULL };

/* The filter of a convolution in groups has a dimension more: G, K/G, C/G, spatial. */
static int tensor_layout(void **out, const struct run *r, const struct problem *p, const vn_tensor *t,
                         int role, int any)
{
    const int groups = r->operation->groups(p);
    const int grouped = groups > 1 && (role == WEIGHTS || role == DIFF_WEIGHTS);
    sizes extent = { 0 }, stride = { 0 };
    int d;

    for (d = 0; d < t->rank; d++) {          /* a stride of 0 repeats, as an extent of 1 does */
        extent[d + grouped] = t->stride[d] ? t->extent[d] : 1;
        stride[d + grouped] = t->stride[d] ? t->stride[d] : 1;
    }
    if (grouped) {
        extent[0] = groups;
        extent[1] /= groups;
        stride[0] = stride[1] * extent[1];
    }
    return layout_open(out, t->rank + grouped, extent, dnnl_types[p->type], any ? NULL : stride);
}

/* Ours may have fewer dimensions than the output, and of one element a channel of a convolution. */
static int bias_layout(void **out, const struct run *r, const vn_tensor *bias, int rank)
{
    sizes extent, stride;
    int d;

    for (d = 0; d < rank; d++) {
        const int at = r->operation->channels && bias->rank == 1 ? d - 1 : d - (rank - bias->rank);
        const int real = at >= 0 && at < bias->rank;

        extent[d] = real ? bias->extent[at] : 1;
        stride[d] = real ? bias->stride[at] : 1;
    }
    return layout_open(out, rank, extent, dnnl_types[bias->type], stride);
}

/* A row (of a gemm) or one element a channel is what the primitives add by themselves. */
static int own_bias(void **out, const struct run *r, const vn_tensor *bias, int rank)
{
    const int64_t ones[] = { 1 };

    if (r->operation->channels)
        return layout_open(out, 1, bias->extent, dnnl_types[bias->type], ones);
    return bias_layout(out, r, bias, rank);
}

/* act(alpha A B + beta C + bias) as steps after A B; *step_arg is where the bias goes, if it is one. */
static int attributes(handle *out, int *step_arg, const struct problem *p, const void *bias_step)
{
    const int at = dnnl.major > 2;
    handle post = NULL;
    int steps = 0, status = dnnl.attr_create(out) || dnnl.post_ops_create(&post);

    if (!status && p->alpha != 1 && ++steps)
        status = append_eltwise(post, linear[at], (float)p->alpha);
    if (!status && p->beta != 0 && ++steps)
        status = append_sum(post, (float)p->beta);
    if (!status && bias_step) {
        *step_arg = (at ? POST_OP_ARG_3 : POST_OP_ARG_2) * ++steps | SRC_1;
        status = dnnl.append_binary(post, BINARY_ADD, bias_step);
    }
    if (!status && p->act != VN_IDENTITY)
        status = append_eltwise(post, activations[p->act][at], p->act == VN_SILU ? 1 : 0);
    if (!status)
        status = dnnl.attr_post_ops(*out, post);
    if (post)
        dnnl.post_ops_destroy(post);
    return status;
}

static int make_plan(struct run *r, const struct problem *p)
{
    const struct operation *const of = r->operation;
    const vn_tensor *const bias = &r->o.t[BIAS];
    const int rank = r->o.t[r->o.output].rank;
    const int by_itself = p->bias && p->alpha == 1 && (of->channels ? bias->rank == 1 : p->bias == BIAS_ROW);
    struct shape s = { .p = p, .rank = rank };
    handle attr = NULL;
    int i, status = 0;

    for (i = 0; i <= r->o.output && !status; i++) {
        const int role = of->role[p->direction][i];

        status = tensor_layout(&r->user[i], r, p, &r->o.t[i], role, 0)
              || tensor_layout(&s.layout[i], r, p, &r->o.t[i], role,
                               of->own_layouts && (!r->plain || role == WEIGHTS));
        r->argument[i].index = role;
    }
    r->count = r->o.output + 1;
    if (!status && p->bias) {                /* then there are three operands */
        r->argument[BIAS].index = BIAS_ARG;
        r->count = ARGUMENTS;
        status = by_itself ? own_bias(&r->user[BIAS], r, bias, rank)
                           : bias_layout(&r->user[BIAS], r, bias, rank);
    }
    s.bias = by_itself ? r->user[BIAS] : NULL;
    if (!status)
        status = attributes(&attr, &r->argument[BIAS].index, p, by_itself ? NULL : r->user[BIAS]);
    if (!status)
        status = of->plan(&r->plan, &s, attr);
    if (attr)
        dnnl.attr_destroy(attr);
    for (i = 0; i < 3; i++)
        layout_close(s.layout[i]);
    return status || dnnl.primitive_create(&r->primitive, r->plan);
}

/* Copies from one layout to another. */
static int reorder(handle from, const void *from_layout, handle to, const void *to_layout)
{
    const struct argument arguments[] = { { SRC, from }, { DST, to } };
    handle plan = NULL, primitive = NULL;
    int status = dnnl.reorder(&plan, from_layout, dnnl.engine, to_layout, dnnl.engine, NULL)
              || dnnl.primitive_create(&primitive, plan)
              || dnnl.execute(primitive, dnnl.stream, 2, arguments)
              || dnnl.stream_wait(dnnl.stream);

    if (primitive)
        dnnl.primitive_destroy(primitive);
    if (plan)
        dnnl.plan_destroy(plan);
    return status;
}

/* Moves a view between the caller's buffer and the primitive's memory of operand i. */
static int move_view(struct run *r, int i, const vn_tensor *t, const void *user_layout, void *data,
                     int inwards)
{
    const void *layout = dnnl.plan_layout(r->plan, QUERY_ARG_LAYOUT, r->argument[i].index);
    handle user = NULL, ours = r->argument[i].memory;
    int status = !layout
              || dnnl.memory_create(&user, user_layout, dnnl.engine,
                                    (char *)data + (size_t)t->start * vn_type_bytes(t->type));

    if (!status)
        status = inwards ? reorder(user, user_layout, ours, layout)
                         : reorder(ours, layout, user, user_layout);
    if (user)
        dnnl.memory_destroy(user);
    return status;
}

static int move(struct run *r, int i, void *data, int inwards)
{
    return move_view(r, i, &r->o.t[i], r->user[i], data, inwards);
}

/* A residual lies where its sum is to be, as applications of oneDNN have it: "sum" adds what the output
 * holds.                                                                                              */
static int fill_output(struct run *r, const struct problem *p, const struct values *data)
{
    const int out = r->o.output, residual = r->operation->residual;
    const int from = residual && r->o.t[residual].rank ? residual : out;
    void *layout = NULL;
    int status;

    if (p->beta == 0)
        return 0;
    status = tensor_layout(&layout, r, p, &r->o.t[from], DST, 0)
          || move_view(r, out, &r->o.t[from], layout, data->operand[from], 1);
    layout_close(layout);
    return status;
}

static int fill_memories(struct run *r, const struct problem *p, const struct values *data)
{
    int i;

    for (i = 0; i < r->count; i++) {
        const void *layout = dnnl.plan_layout(r->plan, QUERY_ARG_LAYOUT, r->argument[i].index);

        if (dnnl.memory_create(&r->argument[i].memory, layout, dnnl.engine, (void *)(intptr_t)OWN_MEMORY)
            || (i != r->o.output && move(r, i, data->operand[i], 1)))
            return -1;
    }
    return fill_output(r, p, data);
}

static int run_primitive(struct run *r)
{
    return dnnl.execute(r->primitive, dnnl.stream, r->count, r->argument) || dnnl.stream_wait(dnnl.stream);
}

static int run_sgemm(struct run *r)
{
    const struct peer_blas *g = &r->blas;
    void *m[3];
    int i;

    for (i = 0; i < 3; i++)
        if (dnnl.memory_data(r->argument[i].memory, &m[i]))
            return -1;
    return dnnl.sgemm(g->a.trans ? 'T' : 'N', g->b.trans ? 'T' : 'N', g->m, g->n, g->k, r->alpha,
                      m[g->a.operand], g->a.ld, m[g->b.operand], g->b.ld, r->beta, m[2], g->c.ld);
}

static int run(void *state)
{
    struct run *r = state;

    return r->by_sgemm ? run_sgemm(r) : run_primitive(r);
}

extern const struct peer peer_onednn;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Runs both ways in turns, the first round to warm up, and keeps the one with the best time.
 * One may fail: the matmul of 3.2 refuses some vectors once it runs.                        */
static int race(struct run *r, const struct problem *p, const struct values *data)
{
    enum { ROUNDS = 4 };
    const double never = 1e30;
    double best[2] = { never, never };
    int i;

    peer_turn(&peer_onednn);
    for (i = 0; i < 2 * ROUNDS; i++) {
        const double start = now();

        r->by_sgemm = i & 1;
        if (!run(r) && i > 1 && now() - start < best[i & 1])
            best[i & 1] = now() - start;
    }
    peer_turn(NULL);
    r->by_sgemm = best[1] < best[0];
    if (best[r->by_sgemm] == never)
        return -1;
    return p->beta != 0 ? move(r, 2, data->operand[2], 1) : 0;
}

static int may_race(struct run *r, const struct problem *p)
{
    char unused[256];

    return r->operation->by_sgemm && p->type == VN_F32 && gemm_of(p)->batch <= 1
        && !peer_blas(&r->blas, p, &r->o, unused, sizeof unused);
}

static void finish(void *state)
{
    struct run *r = state;
    int i;

    if (!r)
        return;
    for (i = 0; i < ARGUMENTS; i++) {
        if (r->argument[i].memory)
            dnnl.memory_destroy(r->argument[i].memory);
        layout_close(r->user[i]);
    }
    if (r->primitive)
        dnnl.primitive_destroy(r->primitive);
    if (r->plan)
        dnnl.plan_destroy(r->plan);
    free(r);
}

static int prepare_in(int plain, void **out, const struct problem *p, const struct values *data,
                      char *why, size_t why_size)
{
    const int place = peer_operation(has, p, "it has no such operation", why, why_size);
    const char *lacks;
    struct run *r;

    if (place < 0)
        return -1;
    if (!dnnl_types[p->type])
        return peer_refuse(why, why_size, "it has no f64 on CPUs");
    if ((lacks = operations[place].lacks(p)))
        return peer_refuse(why, why_size, "%s", lacks);
    if (plain && !operations[place].own_layouts)
        return peer_refuse(why, why_size, "of this operation it has no layouts but the caller's: see onednn");
    if (!(r = calloc(1, sizeof *r)))
        return peer_refuse(why, why_size, "out of memory");
    r->operation = &operations[place];
    r->plain = plain;
    r->alpha = (float)p->alpha;
    r->beta  = (float)p->beta;
    if (problem_operands(&r->o, p)) {
        finish(r);
        return peer_refuse(why, why_size, "the problem's size overflows");
    }
    if (make_plan(r, p)) {
        finish(r);
        return peer_refuse(why, why_size, "%s has no such operation in %s on this CPU",
                           dnnl.version, vn_type_name(p->type));
    }
    if (fill_memories(r, p, data) || (may_race(r, p) && race(r, p, data))) {
        finish(r);
        return peer_refuse(why, why_size, "%s failed while it got ready", dnnl.version);
    }
    *out = r;
    return 0;
}

static int prepare(void **out, const struct problem *p, const struct values *data,
                   char *why, size_t why_size)
{
    return prepare_in(0, out, p, data, why, why_size);
}

static int prepare_plain(void **out, const struct problem *p, const struct values *data,
                         char *why, size_t why_size)
{
    return prepare_in(1, out, p, data, why, why_size);
}

static int read_output(void *state, int i, void *to)
{
    return move(state, i, to, 0);
}

static const char *version(void)
{
    return dnnl.version;
}

static const char *version_plain(void)
{
    static char text[sizeof dnnl.version + 32];

    snprintf(text, sizeof text, "%s, plain tensors", dnnl.version);
    return text;
}

/* The library stays: its threads would outlive their code. */
static void unload(void)
{
    if (dnnl.stream)
        dnnl.stream_destroy(dnnl.stream);
    if (dnnl.engine)
        dnnl.engine_destroy(dnnl.engine);
    dnnl.stream = dnnl.engine = NULL;
}

/* The workers of OpenMP begin with the first product that is large enough to be shared. */
static void wake_threads(void)
{
    enum { SIDE = 256 };
    float *m = peer_copy(NULL, 3 * SIDE * SIDE, VN_F32);
    struct peer_threads before;

    if (!m)
        return;
    peer_threads_note(&before);
    dnnl.sgemm('N', 'N', SIDE, SIDE, SIDE, 1, m, SIDE, m + SIDE * SIDE, SIDE, 0, m + 2 * SIDE * SIDE, SIDE);
    peer_threads_tie(&before);
    free(m);
}

static int find_library(char *why, size_t why_size)
{
    static const char *const sonames[] = { "libdnnl.so.3", "libdnnl.so.2", NULL };
    const struct dnnl_release *release;

    if (dnnl.major)
        return 0;
    if (peer_load(&dnnl.library, sonames, "libdnnl3 (Debian 12: libdnnl2)", why, why_size)
        || peer_symbols(dnnl.library, symbols, why, why_size))
        return -1;
    release = dnnl.release();
    if (peer_symbols(dnnl.library, release->major > 2 ? symbols_v3 : symbols_v2, why, why_size))
        return -1;
    dnnl.major = release->major;
    wake_threads();
    snprintf(dnnl.version, sizeof dnnl.version, "oneDNN %d.%d.%d",
             release->major, release->minor, release->patch);
    return 0;
}

static int load(const struct peer_context *c, char *why, size_t why_size)
{
    if (!c->is_cpu)
        return peer_refuse(why, why_size, "oneDNN is compared on CPUs, and %s is none", c->device);
    if (find_library(why, why_size))
        return -1;
    if (!dnnl.engine && (dnnl.engine_create(&dnnl.engine, CPU, 0)
                         || dnnl.stream_create(&dnnl.stream, dnnl.engine, STREAM_DEFAULT)))
        return peer_refuse(why, why_size, "%s finds no CPU engine", dnnl.version);
    return 0;
}

const struct peer peer_onednn = {
    "onednn", 1, load, version, prepare, run, NULL, read_output, finish, unload, NULL
};
const struct peer peer_onednn_plain = {
    "onednn-plain", 1, load, version_plain, prepare_plain, run, NULL, read_output, finish, unload, NULL
};
