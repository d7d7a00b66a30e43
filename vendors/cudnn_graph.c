/* SPDX-License-Identifier: Apache-2.0
 *
 * cudnn_graph.c - graphs of operations for cuDNN's backend API, and the choice of an engine.
 *
 * cuDNN's heuristics name engines for a graph, the best first by their estimate.  Those that round as ours
 * may are run on the operands and timed, and the fastest is kept.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cuda.h"
#include "cudnn_graph.h"

/* Numbers of the graph API, by its names: kinds of descriptors, types of attributes, attributes. */
enum { POINTWISE = 0, CONVOLUTION = 1, ENGINE = 2, ENGINECFG = 3, ENGINEHEUR = 4, PLAN = 5,
       OPERATION_FORWARD = 10, OPERATION_BWD_FILTER = 11, OPERATION_BWD_DATA = 12, OPERATION_POINTWISE = 13,
       GRAPH = 15, VARIANT_PACK = 16, TENSOR = 17 };
enum { HANDLE = 0, DATA_TYPE = 1, BOOLEAN = 2, INT64 = 3, FLOAT = 4, DOUBLE = 5, VOID_PTR = 6, CONV_MODE = 7,
       HEUR_MODE = 8, NUMERICAL_NOTE = 11, POINTWISE_MODE = 14, DESCRIPTOR = 15 };
enum {
    PW_MODE = 0, PW_MATH_PREC = 1,
    CONV_COMP_TYPE = 100, CONV_CONV_MODE, CONV_DILATIONS, CONV_STRIDES, CONV_POST_PADDINGS, CONV_PRE_PADDINGS,
    CONV_SPATIAL_DIMS,
    HEUR_MODE_IS = 200, HEUR_GRAPH, HEUR_RESULTS, CONFIG_ENGINE = 300,
    PLAN_HANDLE = 400, PLAN_CONFIG, PLAN_WORKSPACE,
    FORWARD_ALPHA = 700, BWD_DATA_ALPHA = 706, BWD_FILTER_ALPHA = 712,
    OP_PW = 750, OP_X, OP_B, OP_Y, OP_ALPHA1, OP_ALPHA2,
    GRAPH_HANDLE = 800, GRAPH_OPS, TENSOR_ALIGNMENT = 900, TENSOR_TYPE, TENSOR_DIMENSIONS, TENSOR_STRIDES,
    TENSOR_ID = 906, TENSOR_IS_VIRTUAL, PACK_IDS = 1000, PACK_POINTERS, PACK_WORKSPACE = 1003,
    ENGINE_NOTES = 1303
};
/* From the first attribute of a convolution, alike in each direction: W, X, Y are also DW, DX, DY. */
enum { OF_ALPHA, OF_BETA, OF_CONV, OF_W, OF_X, OF_Y };
enum { MODE_ADD = 0, MODE_RELU = 100, HEUR_MODE_A = 3 };
enum { NOTE_TENSOR_CORE = 0, NOTE_DOWN_CONVERT = 1, NOTE_REDUCED_SUMS = 2, NOTE_FFT = 3, NOTE_WINOGRAD = 5,
       NOTES = 32 };

/* ASKED: more than are tried, since some of them may not be used. */
enum { MADE = 32, ASKED = 32, CANDIDATES = 10, TIMES = 6 };
static const double PATIENCE = 0.3;     /* seconds for the candidates of a problem: some engines compile */

struct attribute { int name, type; int64_t count; const void *at; };
#define END { 0, 0, 0, NULL }

struct engine { cudnnDescriptor config, plan; int64_t workspace; };

struct vn_cudnn_graph {
    cudnnDescriptor          made[MADE];    /* that the graph consists of */
    int                      count;
    struct engine            engine;        /* the fastest; plan NULL: there is none */
    cudnnDescriptor          pack;          /* of the last run, or NULL */
    struct vn_cudnn_operands at;            /* what it holds */
    void                    *workspace;
    struct vn_cudnn_key      key;
};

/* ---- parts ---- */

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

static cudnnDescriptor part(struct vn_cudnn_graph *g, int kind, const struct attribute *a)
{
    cudnnDescriptor made;

    for (const struct attribute *it = a; it->count; it++)
        if (it->type == DESCRIPTOR && !*(const cudnnDescriptor *)it->at)
            return NULL;
    if (g->count == MADE || make(&made, kind, a))
        return NULL;
    return g->made[g->count++] = made;
}

cudnnDescriptor vn__cudnn_graph_tensor(struct vn_cudnn_graph *g, int64_t id, const struct vn_cudnn_shape *s,
                                       int type, char is_virtual)
{
    const int rank = (int)g->key.rank;
    const int64_t alignment = VN_CUDNN_ALIGNED;
    int64_t extent[RANK], stride[RANK];

    for (int i = 0; i < rank; i++) {
        extent[i] = s->extent[i];
        stride[i] = s->stride[i];
    }
    return part(g, TENSOR, (const struct attribute[]){
        { TENSOR_TYPE, DATA_TYPE, 1, &type }, { TENSOR_DIMENSIONS, INT64, rank, extent },
        { TENSOR_STRIDES, INT64, rank, stride },
        { TENSOR_ID, INT64, 1, &id }, { TENSOR_ALIGNMENT, INT64, 1, &alignment },
        { TENSOR_IS_VIRTUAL, BOOLEAN, 1, &is_virtual }, END });
}

static const struct { int kind, first; } operations[] = {
    [FORWARD]         = { OPERATION_FORWARD,    FORWARD_ALPHA },
    [BACKWARD_DATA]   = { OPERATION_BWD_DATA,   BWD_DATA_ALPHA },
    [BACKWARD_FILTER] = { OPERATION_BWD_FILTER, BWD_FILTER_ALPHA },
};

cudnnDescriptor vn__cudnn_graph_convolution(struct vn_cudnn_graph *g, cudnnDescriptor x, cudnnDescriptor w,
                                            cudnnDescriptor y, double beta)
{
    const struct vn_cudnn_key *const k = &g->key;
    const int64_t dims = k->rank - 2, from = DIMS - dims;
    const int is_double = k->type == VN_F64, scalar = is_double ? DOUBLE : FLOAT;
    const int type = is_double ? CUDNN_F64 : CUDNN_F32, mode = CUDNN_CROSS_CORRELATION;
    const int kind = operations[k->direction].kind, first = operations[k->direction].first;
    const union vn_cudnn_scalar by_sum = vn__cudnn_scalar((vn_type)k->type, k->alpha);
    const union vn_cudnn_scalar by_output = vn__cudnn_scalar((vn_type)k->type, beta);
    const cudnnDescriptor conv = part(g, CONVOLUTION, (const struct attribute[]){
        { CONV_SPATIAL_DIMS, INT64, 1, &dims }, { CONV_COMP_TYPE, DATA_TYPE, 1, &type },
        { CONV_CONV_MODE, CONV_MODE, 1, &mode },
        { CONV_PRE_PADDINGS, INT64, dims, k->pad + from }, { CONV_POST_PADDINGS, INT64, dims, k->pad + from },
        { CONV_DILATIONS, INT64, dims, k->dilation + from }, { CONV_STRIDES, INT64, dims, k->stride + from },
        END });

    return part(g, kind, (const struct attribute[]){
        { first + OF_X, DESCRIPTOR, 1, &x }, { first + OF_W, DESCRIPTOR, 1, &w },
        { first + OF_Y, DESCRIPTOR, 1, &y }, { first + OF_CONV, DESCRIPTOR, 1, &conv },
        { first + OF_ALPHA, scalar, 1, &by_sum }, { first + OF_BETA, scalar, 1, &by_output }, END });
}

static cudnnDescriptor pointwise(struct vn_cudnn_graph *g, int mode)
{
    const int type = CUDNN_F32;

    return part(g, POINTWISE, (const struct attribute[]){
        { PW_MODE, POINTWISE_MODE, 1, &mode }, { PW_MATH_PREC, DATA_TYPE, 1, &type }, END });
}

cudnnDescriptor vn__cudnn_graph_add(struct vn_cudnn_graph *g, cudnnDescriptor x, cudnnDescriptor b,
                                    double scale, cudnnDescriptor y)
{
    const float one = 1, by = (float)scale;
    const cudnnDescriptor what = pointwise(g, MODE_ADD);

    return part(g, OPERATION_POINTWISE, (const struct attribute[]){
        { OP_PW, DESCRIPTOR, 1, &what }, { OP_X, DESCRIPTOR, 1, &x }, { OP_B, DESCRIPTOR, 1, &b },
        { OP_Y, DESCRIPTOR, 1, &y }, { OP_ALPHA1, FLOAT, 1, &one }, { OP_ALPHA2, FLOAT, 1, &by }, END });
}

cudnnDescriptor vn__cudnn_graph_relu(struct vn_cudnn_graph *g, cudnnDescriptor x, cudnnDescriptor y)
{
    const cudnnDescriptor what = pointwise(g, MODE_RELU);

    return part(g, OPERATION_POINTWISE, (const struct attribute[]){
        { OP_PW, DESCRIPTOR, 1, &what }, { OP_X, DESCRIPTOR, 1, &x }, { OP_Y, DESCRIPTOR, 1, &y }, END });
}

/* ---- engines ---- */

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

static void drop(struct engine *e)
{
    if (e->plan)
        vn__cudnn.BackendDestroy(e->plan);
    if (e->config)
        vn__cudnn.BackendDestroy(e->config);
    *e = (struct engine){ NULL, NULL, 0 };
}

/* The engines that the heuristics name, the best first. */
static int64_t ask(cudnnDescriptor config[ASKED], struct vn_cudnn_graph *g, cudnnDescriptor graph)
{
    const int mode = HEUR_MODE_A;
    const cudnnDescriptor heuristics = part(g, ENGINEHEUR, (const struct attribute[]){
        { HEUR_GRAPH, DESCRIPTOR, 1, &graph }, { HEUR_MODE_IS, HEUR_MODE, 1, &mode }, END });
    int64_t count = 0, room = 0;

    while (heuristics && room < ASKED && !vn__cudnn.BackendCreate(ENGINECFG, &config[room]))
        room++;
    if (room && vn__cudnn.BackendGet(heuristics, HEUR_RESULTS, DESCRIPTOR, room, &count, config))
        count = 0;
    count = count < room ? count : room;
    while (room > count)
        vn__cudnn.BackendDestroy(config[--room]);
    return count;
}

/* ---- running it ---- */

vn_status vn__cudnn_workspace(void **out, vn_queue *q, size_t bytes)
{
    vn_buffer *b;
    vn_status s;

    *out = NULL;
    q->workspace_used = 0;                      /* a way that was tried before may have used some */
    if (!bytes)
        return VN_OK;
    if ((s = vn__workspace(&b, q, bytes)) == VN_OK)
        *out = (void *)(uintptr_t)vn__cuda_address(b);
    return s;
}

static void drop_pack(struct vn_cudnn_graph *g)
{
    if (g->pack)
        vn__cudnn.BackendDestroy(g->pack);
    g->pack = NULL;
}

/* Says where the operands are.  Runs that follow one another mostly have them at the same places, and what
 * the host takes for this would count against short kernels. */
static cudnnStatus fill_pack(struct vn_cudnn_graph *g, const struct vn_cudnn_operands *at, void *workspace)
{
    const void *pointer[5] = { at->x, at->w, at->y };
    int64_t     id[5] = { 'x', 'w', 'y' }, count = 3;

    if (g->pack && g->workspace == workspace && !memcmp(&g->at, at, sizeof *at))
        return 0;
    if (at->z) {
        pointer[count] = at->z;
        id[count++] = 'z';
    }
    if (at->bias) {
        pointer[count] = at->bias;
        id[count++] = 'b';
    }
    drop_pack(g);
    if (make(&g->pack, VARIANT_PACK, (const struct attribute[]){
            { PACK_POINTERS, VOID_PTR, count, pointer }, { PACK_IDS, INT64, count, id },
            { PACK_WORKSPACE, VOID_PTR, 1, &workspace }, END }))
        return CUDNN_NOT_SUPPORTED;
    g->at = *at;
    g->workspace = workspace;
    return 0;
}

static vn_status run(struct vn_cudnn_graph *g, const struct engine *it, vn_queue *q, cudnnHandle handle,
                     const struct vn_cudnn_operands *at)
{
    void *workspace;
    vn_status s = vn__cudnn_workspace(&workspace, q, (size_t)it->workspace);
    cudnnStatus e;

    if (s)
        return s;
    if (!(e = fill_pack(g, at, workspace)))
        e = vn__cudnn.BackendExecute(handle, it->plan, g->pack);
    return vn__cudnn_status(e, "cudnnBackendExecute");
}

vn_status vn__cudnn_graph_run(struct vn_cudnn_graph *g, vn_queue *q, cudnnHandle handle,
                              const struct vn_cudnn_operands *at)
{
    return run(g, &g->engine, q, handle, at);
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

float vn__cudnn_time(vn_cudnn_way *way, void *own, vn_queue *q, cudnnHandle handle,
                     const struct vn_cudnn_operands *at)
{
    const CUstream stream = vn__cuda_stream(q);
    struct watch w;
    float best = -1, took;
    int failed = watch_open(&w);

    for (int i = 0; i <= TIMES && !failed; i++) {
        failed = w.cu->EventRecord(w.from, stream) || way(own, q, handle, at) ||
                 w.cu->EventRecord(w.to, stream) || w.cu->EventSynchronize(w.to) ||
                 w.cu->EventElapsedTime(&took, w.from, w.to);
        if (!failed && i > 0 && (best < 0 || took < best))
            best = took;
    }
    watch_close(&w);
    return failed ? -1 : best;
}

struct trial { struct vn_cudnn_graph *g; struct engine engine; };

static vn_status run_trial(void *own, vn_queue *q, cudnnHandle handle, const struct vn_cudnn_operands *at)
{
    const struct trial *t = own;

    return run(t->g, &t->engine, q, handle, at);
}

/* Times one engine's plan against the best so far, which is then the plan that is kept. */
static void try_engine(struct vn_cudnn_graph *g, vn_queue *q, cudnnHandle handle, cudnnDescriptor config,
                       const struct vn_cudnn_operands *at, float *best)
{
    struct trial t = { g, { .config = config } };
    struct engine *const e = &t.engine;
    int64_t count;
    float took;

    if (!make(&e->plan, PLAN, (const struct attribute[]){
            { PLAN_HANDLE, HANDLE, 1, &handle }, { PLAN_CONFIG, DESCRIPTOR, 1, &config }, END }) &&
        !vn__cudnn.BackendGet(e->plan, PLAN_WORKSPACE, INT64, 1, &count, &e->workspace) &&
        (uint64_t)e->workspace <= (uint64_t)g->key.workspace &&
        (took = vn__cudnn_time(run_trial, &t, q, handle, at)) >= 0 && (*best < 0 || took < *best)) {
        *best = took;
        drop(&g->engine);
        g->engine = *e;
    } else {
        drop(e);
    }
}

void vn__cudnn_graph_choose(struct vn_cudnn_graph *g, vn_queue *q, cudnnHandle handle,
                            const cudnnDescriptor *operation, int64_t count,
                            const struct vn_cudnn_operands *at, float *best)
{
    const double start = vn__seconds();
    cudnnDescriptor config[ASKED], graph;
    int64_t asked;
    int tried = 0;

    for (int64_t i = 0; i < count; i++)
        if (!operation[i])
            return;
    graph = part(g, GRAPH, (const struct attribute[]){
        { GRAPH_OPS, DESCRIPTOR, count, operation }, { GRAPH_HANDLE, HANDLE, 1, &handle }, END });
    asked = ask(config, g, graph);
    for (int64_t i = 0; i < asked; i++)
        if (tried == CANDIDATES || (g->engine.plan && vn__seconds() - start > PATIENCE) ||
            !may_use(config[i], &g->key)) {
            vn__cudnn.BackendDestroy(config[i]);
        } else {
            try_engine(g, q, handle, config[i], at, best);
            tried++;
        }
}

int vn__cudnn_graph_has_engine(const struct vn_cudnn_graph *g)
{
    return g->engine.plan != NULL;
}

/* ---- opening ---- */

vn_status vn__cudnn_graph_open(struct vn_cudnn_graph **out, const struct vn_cudnn_key *k)
{
    struct vn_cudnn_graph *g = calloc(1, sizeof *g);

    if (!g)
        return vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes for a graph of cuDNN", sizeof *g);
    g->key = *k;
    *out = g;
    return VN_OK;
}

void vn__cudnn_graph_close(struct vn_cudnn_graph *g)
{
    if (!g)
        return;
    drop(&g->engine);
    drop_pack(g);
    while (g->count)
        vn__cudnn.BackendDestroy(g->made[--g->count]);
    free(g);
}
