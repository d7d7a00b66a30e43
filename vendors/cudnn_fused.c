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

#include "backends/cuda/cuda.h"
#include "cudnn_conv.h"
#include "vendor.h"

/* Numbers of the graph API, by its names: kinds of descriptors, types of attributes, attributes. */
enum { POINTWISE = 0, CONVOLUTION = 1, ENGINE = 2, ENGINECFG = 3, ENGINEHEUR = 4, PLAN = 5,
       OPERATION_CONV = 10, OPERATION_POINTWISE = 13, GRAPH = 15, VARIANT_PACK = 16, TENSOR = 17 };
enum { HANDLE = 0, DATA_TYPE = 1, BOOLEAN = 2, INT64 = 3, FLOAT = 4, VOID_PTR = 6, CONV_MODE = 7,
       HEUR_MODE = 8, NUMERICAL_NOTE = 11, POINTWISE_MODE = 14, DESCRIPTOR = 15 };
enum {
    PW_MODE = 0, PW_MATH_PREC = 1,
    CONV_COMP_TYPE = 100, CONV_CONV_MODE, CONV_DILATIONS, CONV_STRIDES, CONV_POST_PADDINGS, CONV_PRE_PADDINGS,
    CONV_SPATIAL_DIMS,
    HEUR_MODE_IS = 200, HEUR_GRAPH, HEUR_RESULTS, CONFIG_ENGINE = 300,
    PLAN_HANDLE = 400, PLAN_CONFIG, PLAN_WORKSPACE,
    FORWARD_ALPHA = 700, FORWARD_BETA, FORWARD_CONV, FORWARD_W, FORWARD_X, FORWARD_Y,
    OP_PW = 750, OP_X, OP_B, OP_Y, OP_ALPHA1, OP_ALPHA2,
    GRAPH_HANDLE = 800, GRAPH_OPS, TENSOR_ALIGNMENT = 900, TENSOR_TYPE, TENSOR_DIMENSIONS, TENSOR_STRIDES,
    TENSOR_ID = 906, TENSOR_IS_VIRTUAL, PACK_IDS = 1000, PACK_POINTERS, PACK_WORKSPACE = 1003,
    ENGINE_NOTES = 1303
};
enum { MODE_ADD = 0, MODE_RELU = 100, HEUR_MODE_A = 3 };
enum { NOTE_TENSOR_CORE = 0, NOTE_DOWN_CONVERT = 1, NOTE_REDUCED_SUMS = 2, NOTE_FFT = 3, NOTE_WINOGRAD = 5,
       NOTES = 32 };

enum { MADE = 32, CANDIDATES = 10, TIMES = 6, PRECOMPUTED_GEMM = 1 };
static const double PATIENCE = 0.3;     /* seconds for the candidates of a problem: some engines compile */

struct attribute { int name, type; int64_t count; const void *at; };
#define END { 0, 0, 0, NULL }

struct candidate { cudnnDescriptor config, plan; int64_t workspace; };

struct vn_cudnn_fused {
    cudnnDescriptor  made[MADE];              /* that the graph consists of */
    int              count;
    struct candidate graph;                   /* plan NULL: the older function */
    cudnnDescriptor  bias, activation;        /* of that */
    cudnnDescriptor  operand[3], conv;        /* the caller's, x, w, y */
    size_t           workspace;
    struct vn_cudnn_key key;
};

/* ---- the graph ---- */

static int make(cudnnDescriptor *out, int kind, const struct attribute *a)
{
    cudnnStatus e = vn__cudnn.BackendCreate(kind, out);

    if (e) {
        *out = NULL;
        return -1;
    }
    for (; a->count && !e; a++)
        e = vn__cudnn.BackendSet(*out, a->name, a->type, a->count, a->at);
    if (!e && !vn__cudnn.BackendFinalize(*out))
        return 0;
    vn__cudnn.BackendDestroy(*out);
    *out = NULL;
    return -1;
}

/* A part of the graph, which the graph keeps; NULL after a failure, which the next part passes on. */
static cudnnDescriptor part(struct vn_cudnn_fused *f, int kind, const struct attribute *a)
{
    cudnnDescriptor made;

    for (const struct attribute *it = a; it->count; it++)
        if (it->type == DESCRIPTOR && !*(const cudnnDescriptor *)it->at)
            return NULL;
    if (f->count == MADE || make(&made, kind, a))
        return NULL;
    return f->made[f->count++] = made;
}

static cudnnDescriptor tensor(struct vn_cudnn_fused *f, int64_t id, const struct vn_cudnn_shape *s, int type,
                              char is_virtual)
{
    const int rank = (int)f->key.rank;
    const int64_t alignment = VN_CUDNN_ALIGNED;
    int64_t extent[RANK], stride[RANK];

    for (int i = 0; i < rank; i++) {
        extent[i] = s->extent[i];
        stride[i] = s->stride[i];
    }
    return part(f, TENSOR, (const struct attribute[]){
        { TENSOR_TYPE, DATA_TYPE, 1, &type }, { TENSOR_DIMENSIONS, INT64, rank, extent },
        { TENSOR_STRIDES, INT64, rank, stride },
        { TENSOR_ID, INT64, 1, &id }, { TENSOR_ALIGNMENT, INT64, 1, &alignment },
        { TENSOR_IS_VIRTUAL, BOOLEAN, 1, &is_virtual }, END });
}

static cudnnDescriptor convolution(struct vn_cudnn_fused *f, cudnnDescriptor x, cudnnDescriptor w,
                                   cudnnDescriptor y)
{
    const struct vn_cudnn_key *const k = &f->key;
    const int64_t dims = k->rank - 2, from = DIMS - dims;
    const int type = CUDNN_F32, mode = CUDNN_CROSS_CORRELATION;
    const float alpha = (float)k->alpha, zero = 0;
    const cudnnDescriptor conv = part(f, CONVOLUTION, (const struct attribute[]){
        { CONV_SPATIAL_DIMS, INT64, 1, &dims }, { CONV_COMP_TYPE, DATA_TYPE, 1, &type },
        { CONV_CONV_MODE, CONV_MODE, 1, &mode },
        { CONV_PRE_PADDINGS, INT64, dims, k->pad + from }, { CONV_POST_PADDINGS, INT64, dims, k->pad + from },
        { CONV_DILATIONS, INT64, dims, k->dilation + from }, { CONV_STRIDES, INT64, dims, k->stride + from },
        END });

    return part(f, OPERATION_CONV, (const struct attribute[]){
        { FORWARD_X, DESCRIPTOR, 1, &x }, { FORWARD_W, DESCRIPTOR, 1, &w }, { FORWARD_Y, DESCRIPTOR, 1, &y },
        { FORWARD_CONV, DESCRIPTOR, 1, &conv }, { FORWARD_ALPHA, FLOAT, 1, &alpha },
        { FORWARD_BETA, FLOAT, 1, &zero }, END });
}

/* y := x + scale b, or y := relu(x) where there is no b. */
static cudnnDescriptor pointwise(struct vn_cudnn_fused *f, int mode, cudnnDescriptor x,
                                 const cudnnDescriptor *b, double scale, cudnnDescriptor y)
{
    const int type = CUDNN_F32;
    const float one = 1, by = (float)scale;
    const cudnnDescriptor what = part(f, POINTWISE, (const struct attribute[]){
        { PW_MODE, POINTWISE_MODE, 1, &mode }, { PW_MATH_PREC, DATA_TYPE, 1, &type }, END });

    if (!b)
        return part(f, OPERATION_POINTWISE, (const struct attribute[]){
            { OP_PW, DESCRIPTOR, 1, &what }, { OP_X, DESCRIPTOR, 1, &x }, { OP_Y, DESCRIPTOR, 1, &y }, END });
    return part(f, OPERATION_POINTWISE, (const struct attribute[]){
        { OP_PW, DESCRIPTOR, 1, &what }, { OP_X, DESCRIPTOR, 1, &x }, { OP_B, DESCRIPTOR, 1, b },
        { OP_Y, DESCRIPTOR, 1, &y }, { OP_ALPHA1, FLOAT, 1, &one }, { OP_ALPHA2, FLOAT, 1, &by }, END });
}

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
static cudnnDescriptor build_graph(struct vn_cudnn_fused *f, cudnnHandle handle)
{
    const struct vn_cudnn_key *const k = &f->key;
    const struct vn_cudnn_shape of_bias = bias_shape(k);
    const int type = vn__cudnn_type((vn_type)k->type);
    const cudnnDescriptor x = tensor(f, 'x', &k->x, type, 0), w = tensor(f, 'w', &k->w, type, 0);
    int64_t left = (k->beta != 0) + k->has_bias + (k->activation == VN_RELU), count = 0;
    cudnnDescriptor operation[4], from, to, other;

    to = left ? tensor(f, 'p', &k->y, CUDNN_F32, 1) : tensor(f, 'y', &k->y, type, 0);
    operation[count++] = convolution(f, x, w, to);
    for (int step = 0; step < 3; step++) {
        if (!(step == 0 ? k->beta != 0 : step == 1 ? k->has_bias : k->activation == VN_RELU))
            continue;
        from = to;
        to = --left ? tensor(f, 'q' + step, &k->y, CUDNN_F32, 1) : tensor(f, 'y', &k->y, type, 0);
        other = step == 0 ? tensor(f, 'z', &k->y, type, 0)
              : step == 1 ? tensor(f, 'b', &of_bias, type, 0) : NULL;
        operation[count++] = pointwise(f, step < 2 ? MODE_ADD : MODE_RELU, from, step < 2 ? &other : NULL,
                                       step == 0 ? k->beta : 1, to);
    }
    for (int i = 0; i < count; i++)
        if (!operation[i])
            return NULL;
    return part(f, GRAPH, (const struct attribute[]){
        { GRAPH_OPS, DESCRIPTOR, count, operation }, { GRAPH_HANDLE, HANDLE, 1, &handle }, END });
}

/* Whether an engine rounds as ours may: no TF32 unless it is allowed, sums in f32, direct products. */
static int may_use(cudnnDescriptor config, const struct vn_cudnn_key *k)
{
    const unsigned never = 1u << NOTE_REDUCED_SUMS | 1u << NOTE_FFT | 1u << NOTE_WINOGRAD;
    const unsigned no_tf32 = k->type == VN_F32 ? 1u << NOTE_TENSOR_CORE | 1u << NOTE_DOWN_CONVERT : 0;
    cudnnDescriptor engine;
    int64_t count = 0;
    int notes[NOTES], may = 0;

    if (vn__cudnn.BackendCreate(ENGINE, &engine))
        return 0;
    if (!vn__cudnn.BackendGet(config, CONFIG_ENGINE, DESCRIPTOR, 1, &count, &engine) &&
        !vn__cudnn.BackendGet(engine, ENGINE_NOTES, NUMERICAL_NOTE, NOTES, &count, notes)) {
        may = 1;
        for (int64_t i = 0; i < count && i < NOTES && k->math != VN_MATH_TF32; i++)
            may &= notes[i] < 0 || notes[i] >= 32 || !((never | no_tf32) >> notes[i] & 1);
    }
    vn__cudnn.BackendDestroy(engine);
    return may;
}

static void drop(struct candidate *c)
{
    if (c->plan)
        vn__cudnn.BackendDestroy(c->plan);
    if (c->config)
        vn__cudnn.BackendDestroy(c->config);
    *c = (struct candidate){ NULL, NULL, 0 };
}

/* The engines that the heuristics name, the best first. */
static int64_t ask(cudnnDescriptor config[CANDIDATES], struct vn_cudnn_fused *f, cudnnDescriptor graph)
{
    const int mode = HEUR_MODE_A;
    const cudnnDescriptor heuristics = part(f, ENGINEHEUR, (const struct attribute[]){
        { HEUR_GRAPH, DESCRIPTOR, 1, &graph }, { HEUR_MODE_IS, HEUR_MODE, 1, &mode }, END });
    int64_t count = 0, room = 0;

    while (heuristics && room < CANDIDATES && !vn__cudnn.BackendCreate(ENGINECFG, &config[room]))
        room++;
    if (room && vn__cudnn.BackendGet(heuristics, HEUR_RESULTS, DESCRIPTOR, room, &count, config))
        count = 0;
    count = count < room ? count : room;
    while (room > count)
        vn__cudnn.BackendDestroy(config[--room]);
    return count;
}

/* ---- running it ---- */

static cudnnStatus run_graph(const struct vn_cudnn_fused *f, cudnnHandle handle, const struct candidate *c,
                             const struct vn_cudnn_operands *at, void *workspace)
{
    const void *pointer[5] = { at->x, at->w, at->y };
    int64_t     id[5] = { 'x', 'w', 'y' }, count = 3;
    cudnnDescriptor pack;
    cudnnStatus e;

    if (f->key.beta != 0) {
        pointer[count] = at->z;
        id[count++] = 'z';
    }
    if (f->key.has_bias) {
        pointer[count] = at->bias;
        id[count++] = 'b';
    }
    if (make(&pack, VARIANT_PACK, (const struct attribute[]){
            { PACK_POINTERS, VOID_PTR, count, pointer }, { PACK_IDS, INT64, count, id },
            { PACK_WORKSPACE, VOID_PTR, 1, &workspace }, END }))
        return CUDNN_NOT_SUPPORTED;
    e = vn__cudnn.BackendExecute(handle, c->plan, pack);
    vn__cudnn.BackendDestroy(pack);
    return e;
}

static cudnnStatus run_function(const struct vn_cudnn_fused *f, cudnnHandle handle,
                                const struct vn_cudnn_operands *at, void *workspace)
{
    const union vn_cudnn_scalar alpha = vn__cudnn_scalar((vn_type)f->key.type, f->key.alpha);
    const union vn_cudnn_scalar beta = vn__cudnn_scalar((vn_type)f->key.type, f->key.beta);

    return vn__cudnn.Fused(handle, &alpha, f->operand[0], at->x, f->operand[1], at->w, f->conv,
                           PRECOMPUTED_GEMM, workspace, f->workspace, &beta, f->operand[2],
                           f->key.beta != 0 ? at->z : at->y, f->bias, at->bias, f->activation, f->operand[2],
                           at->y);
}

static vn_status run(const struct vn_cudnn_fused *f, vn_queue *q, cudnnHandle handle,
                     const struct candidate *c, const struct vn_cudnn_operands *at)
{
    const size_t bytes = c ? (size_t)c->workspace : f->workspace;
    void *workspace = NULL;
    vn_buffer *b;
    vn_status s;

    if (bytes) {
        if ((s = vn__workspace(&b, q, bytes)))
            return s;
        workspace = (void *)(uintptr_t)vn__cuda_address(b);
    }
    return c ? vn__cudnn_status(run_graph(f, handle, c, at, workspace), "cudnnBackendExecute")
             : vn__cudnn_status(run_function(f, handle, at, workspace),
                                "cudnnConvolutionBiasActivationForward");
}

/* ---- choosing ---- */

struct watch { const struct vn_cuda_functions *cu; CUevent from, to; };

static int watch_open(struct watch *w)
{
    const char *unused;

    *w = (struct watch){ .cu = vn__cuda_driver(&unused) };
    return !w->cu || w->cu->EventCreate(&w->from, 0) || w->cu->EventCreate(&w->to, 0) ? -1 : 0;
}

static void watch_close(struct watch *w)
{
    if (w->from)
        w->cu->EventDestroy(w->from);
    if (w->to)
        w->cu->EventDestroy(w->to);
}

/* Milliseconds of the fastest of several runs after the first; below 0: it failed. */
static float time_of(const struct watch *w, const struct vn_cudnn_fused *f, vn_queue *q, cudnnHandle handle,
                     const struct candidate *c, const struct vn_cudnn_operands *at)
{
    const CUstream stream = vn__cuda_stream(q);
    float best = -1, took;

    for (int i = 0; i <= TIMES; i++) {
        if (w->cu->EventRecord(w->from, stream) || run(f, q, handle, c, at) ||
            w->cu->EventRecord(w->to, stream) || w->cu->EventSynchronize(w->to) ||
            w->cu->EventElapsedTime(&took, w->from, w->to))
            return -1;
        if (i > 0 && (best < 0 || took < best))
            best = took;
    }
    return best;
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

/* Times one engine's plan against the best so far, which is then the plan that is kept. */
static void try_engine(struct vn_cudnn_fused *f, const struct watch *w, vn_queue *q, cudnnHandle handle,
                       cudnnDescriptor config, const struct vn_cudnn_operands *at, float *best)
{
    struct candidate c = { .config = config };
    int64_t count;
    float took;

    if (may_use(config, &f->key) &&
        !make(&c.plan, PLAN, (const struct attribute[]){
            { PLAN_HANDLE, HANDLE, 1, &handle }, { PLAN_CONFIG, DESCRIPTOR, 1, &config }, END }) &&
        !vn__cudnn.BackendGet(c.plan, PLAN_WORKSPACE, INT64, 1, &count, &c.workspace) &&
        (uint64_t)c.workspace <= (uint64_t)f->key.workspace &&
        (took = time_of(w, f, q, handle, &c, at)) >= 0 && (*best < 0 || took < *best)) {
        *best = took;
        drop(&f->graph);
        f->graph = c;
    } else {
        drop(&c);
    }
}

static vn_status choose(struct vn_cudnn_fused *f, vn_queue *q, cudnnHandle handle,
                        const struct vn_cudnn_operands *at)
{
    const double start = vn__seconds();
    cudnnDescriptor config[CANDIDATES], graph;
    struct watch w;
    float best = -1;
    int64_t count = 0;

    if (!watch_open(&w)) {
        if (prepare_function(f, handle))
            best = time_of(&w, f, q, handle, NULL, at);
        if ((graph = build_graph(f, handle)))
            count = ask(config, f, graph);
        for (int64_t i = 0; i < count; i++)
            if (f->graph.plan && vn__seconds() - start > PATIENCE)
                vn__cudnn.BackendDestroy(config[i]);
            else
                try_engine(f, &w, q, handle, config[i], at, &best);
    }
    watch_close(&w);
    return best >= 0 ? VN_OK
         : vn__fail(VN_UNSUPPORTED, "cuDNN has no engine for this convolution with what follows it");
}

/* ---- for cudnn_conv.c ---- */

void vn__cudnn_fused_close(struct vn_cudnn_fused *f)
{
    if (!f)
        return;
    drop(&f->graph);
    while (f->count)
        vn__cudnn.BackendDestroy(f->made[--f->count]);
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
    if ((s = choose(f, q, handle, at)))
        vn__cudnn_fused_close(f);
    else
        *out = f;
    return s;
}

vn_status vn__cudnn_fused_run(const struct vn_cudnn_fused *f, vn_queue *q, cudnnHandle handle,
                              const struct vn_cudnn_operands *at)
{
    return run(f, q, handle, f->graph.plan ? &f->graph : NULL, at);
}
