/* SPDX-License-Identifier: Apache-2.0
 *
 * cudnn_conv.c - the variant cudnn of convolution, in its three directions.
 *
 * At the first problem of a kind all algorithms of cuDNN are timed.  The fastest is then timed beside engines
 * of the graph API, where alone some gradients have good ones, and the faster is remembered.  FFT and
 * Winograd are left out unless the caller allows TF32: they round more than direct products do.
 */
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cuda.h"
#include "cudnn_graph.h"
#include "vendor.h"

/* ---- shapes as cuDNN sees them ------------------------------------------------------ */

struct shapes {
    struct vn_cudnn_shape x, w, y;
    int rank, channels_last;
};

/* The last `rank` dimensions of a view; rows that pose() had merged are separated again. */
static int take(int64_t extent[RANK], int64_t stride[RANK], const vn_tensor *t, int rank, int64_t joined)
{
    const int skipped = RANK - rank;

    for (int i = 0; i < rank; i++) {
        extent[i] = t->extent[i < 2 ? i : i + skipped];
        stride[i] = t->stride[i < 2 ? i : i + skipped];
    }
    if (joined > 1) {
        extent[rank - 1] /= joined;
        extent[rank - 2] = joined;
        stride[rank - 2] = stride[rank - 1] * extent[rank - 1];
    }
    for (int i = 0; i < rank; i++)
        if (extent[i] > INT_MAX || stride[i] > INT_MAX)
            return 0;
    return vn__elements(t) <= INT_MAX;
}

static void pack(int64_t stride[RANK], const int64_t extent[RANK], int rank, int channels_last)
{
    int64_t step = channels_last ? extent[1] : 1;

    for (int i = rank - 1; i >= 2; i--) {
        stride[i] = step;
        step *= extent[i];
    }
    stride[1] = channels_last ? 1 : step;
    stride[0] = channels_last ? step : step * extent[1];
}

/* Whether it is packed, save for dimensions of extent 1, whose strides are then set as packed. */
static int lies_packed(int64_t stride[RANK], const int64_t extent[RANK], int rank, int channels_last)
{
    int64_t packed[RANK];

    pack(packed, extent, rank, channels_last);
    for (int i = 0; i < rank; i++)
        if (extent[i] > 1 && stride[i] != packed[i])
            return 0;
    memcpy(stride, packed, sizeof packed);
    return 1;
}

static int describe(struct vn_cudnn_shape *out, const vn_tensor *t, int rank, int64_t joined,
                    int channels_last, int must)
{
    int64_t extent[RANK], stride[RANK];

    if (!take(extent, stride, t, rank, joined) || (!lies_packed(stride, extent, rank, channels_last) && must))
        return 0;
    for (int i = 0; i < rank; i++) {
        out->extent[i] = (int)extent[i];
        out->stride[i] = stride[i] ? (int)stride[i] : 1;
    }
    return 1;
}

static int describe_all(struct shapes *out, const struct conv *c, int channels_last, int must)
{
    memset(out, 0, sizeof *out);
    out->channels_last = channels_last;
    out->rank = c->x.extent[2] == 1 && c->w.extent[2] == 1 && c->y.extent[2] == 1 ? 4 : RANK;
    return describe(&out->w, &c->w, out->rank, 1, channels_last, 1) &&
           describe(&out->x, &c->x, out->rank, c->joined, channels_last, must) &&
           describe(&out->y, &c->y, out->rank, c->joined, channels_last, must);
}

/* The filter must be packed, as NCHW or NHWC; x and y preferably are. */
static int shapes_of(struct shapes *out, const struct conv *c)
{
    return describe_all(out, c, 0, 1) || describe_all(out, c, 1, 1) ||
           describe_all(out, c, 0, 0) || describe_all(out, c, 1, 0);
}

/* ---- fits ---------------------------------------------------------------------------- */

/* cuDNN pads both sides alike. */
static int pads_alike(const struct conv *c)
{
    for (int d = 0; d < DIMS; d++) {
        const int64_t window = c->dilation[d] * (c->w.extent[2 + d] - 1) + 1;
        const int64_t room = c->x.extent[2 + d] + 2 * c->pad[d] - window;

        if (room < 0 || room / c->stride[d] + 1 != c->y.extent[2 + d])
            return 0;
    }
    return 1;
}

static int repeats(const vn_tensor *t)
{
    for (int d = 0; d < t->rank; d++)
        if (t->stride[d] == 0 && t->extent[d] > 1)
            return 1;
    return 0;
}

static int are_small(const struct conv *c)
{
    for (int d = 0; d < DIMS; d++)
        if (c->stride[d] > INT_MAX || c->dilation[d] > INT_MAX || c->pad[d] > INT_MAX / 4)
            return 0;
    return c->groups <= INT_MAX;
}

/* Whether more than a scaled convolution is added to y. */
static int is_fused(const struct conv *c)
{
    return c->has_bias || c->activation != VN_IDENTITY ||
           (c->beta != 0 && !vn__same_view(&c->residual, vn__conv_output(c)));
}

/* Of the type of y, beginning at a multiple of 16 bytes; like y, or one element for each channel. */
static int lies_like(const vn_tensor *t, const vn_tensor *y, int by_channel)
{
    if (t->type != y->type || !vn__cudnn_starts_aligned(t))
        return 0;
    for (int d = 0; d < RANK; d++) {
        const int64_t stride = !by_channel ? y->stride[d] : d == 1 ? 1 : 0;

        if (y->extent[d] > 1 && t->stride[d] != stride)
            return 0;
    }
    return 1;
}

/* Engines of the graph API compute places beyond 2^31 wrongly. */
static int suits_graph(const int64_t stride[DIMS], const int64_t dilation[DIMS])
{
    enum { MOST_STEP = 1024 };

    for (int d = 0; d < DIMS; d++)
        if (stride[d] > MOST_STEP || dilation[d] > MOST_STEP)
            return 0;
    return 1;
}

static const char *fits_fused(const struct conv *c)
{
    if (c->direction != FORWARD)
        return "it is not used with bias, activation or residual in backward directions";
    if (!suits_graph(c->stride, c->dilation))
        return "it is used with bias, activation or residual for strides and dilations up to 1024";
    if (c->p.type == VN_F64 || (c->activation != VN_IDENTITY && c->activation != VN_RELU))
        return "it is used with ReLU alone, not in f64";
    if (c->has_bias && !lies_like(&c->bias, &c->y, 1))
        return "its bias is one element for each channel, side by side, in the type of y";
    if (c->beta != 0 && (!lies_like(&c->residual, &c->y, 0) || vn__same_view(&c->residual, &c->y)))
        return "its residual must lie as y does, and be another tensor";
    return NULL;
}

const char *vn__fits_cudnn_conv(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;
    struct shapes unused;
    const char *why;

    if (strcmp(f->backend, "cuda"))
        return "it needs a CUDA device";
    if (c->math == VN_MATH_BITWISE)
        return "it sums in another order than VN_MATH_BITWISE promises";
    if (vn__conv_output(c)->type != c->p.type)
        return "it is not used with an output of another type";
    if (is_fused(c) && (why = fits_fused(c)))
        return why;
    if (!isfinite(c->alpha) || !isfinite(c->beta))
        return "alpha and beta must be finite";
    if (c->is_empty)
        return "there is nothing to sum";
    if (repeats(&c->x) || repeats(&c->w) || repeats(&c->y))
        return "its tensors may not repeat elements";
    if (!are_small(c) || !shapes_of(&unused, c))
        return "the filter must be packed, and each tensor must have fewer than 2^31 elements";
    if (!pads_alike(c))
        return "it needs the same padding on both sides";
    if (!vn__cudnn_starts_aligned(&c->x) || !vn__cudnn_starts_aligned(&c->w) ||
        !vn__cudnn_starts_aligned(&c->y))
        return "its tensors must begin at multiples of 16 bytes";
    return vn__cudnn_missing();
}

/* ---- directions ------------------------------------------------------------------------ */

enum { CONV_X, CONV_W, CONV_Y, OPERANDS };

/* operand: in the order of cuDNN's arguments, two inputs, then the output. exact: a bit for each algorithm
 * that computes direct products.                                                            */
static const struct {
    cudnnStatus (**find)  VN_CUDNN_SEARCH;
    cudnnStatus (**guess) VN_CUDNN_SEARCH;
    cudnnStatus (**run)   VN_CUDNN_CONVOLVE;
    const char  *find_name, *run_name;
    int          operand[OPERANDS];
    unsigned     exact;
} directions[] = {
    [FORWARD] = {
        &vn__cudnn.FindForward, &vn__cudnn.GuessForward, &vn__cudnn.Forward,
        "cudnnFindConvolutionForwardAlgorithm", "cudnnConvolutionForward", { CONV_X, CONV_W, CONV_Y }, 0xf },
    [BACKWARD_DATA] = {
        &vn__cudnn.FindData, &vn__cudnn.GuessData, &vn__cudnn.BackwardData,
        "cudnnFindConvolutionBackwardDataAlgorithm", "cudnnConvolutionBackwardData",
        { CONV_W, CONV_Y, CONV_X }, 0x3 },
    [BACKWARD_FILTER] = {
        &vn__cudnn.FindFilter, &vn__cudnn.GuessFilter, &vn__cudnn.BackwardFilter,
        "cudnnFindConvolutionBackwardFilterAlgorithm", "cudnnConvolutionBackwardFilter",
        { CONV_X, CONV_Y, CONV_W }, 0xb },
};

/* ---- plans ------------------------------------------------------------------------------ */

struct plan {
    struct vn_prepared head;
    struct vn_cudnn_key    key;
    cudnnDescriptor        operand[OPERANDS], conv;
    int                    algorithm, math;
    size_t                 workspace;
    struct vn_cudnn_fused *fused;            /* or NULL */
    struct vn_cudnn_graph *graph;            /* faster than the algorithm; or NULL */
};

const size_t vn__cudnn_key_bytes = sizeof(struct vn_cudnn_key);

void vn__cudnn_plan_close(struct vn_prepared *p)
{
    struct plan *own = (struct plan *)p;

    vn__cudnn_fused_close(own->fused);
    vn__cudnn_graph_close(own->graph);
    if (own->operand[CONV_X])
        vn__cudnn.TensorDestroy(own->operand[CONV_X]);
    if (own->operand[CONV_W])
        vn__cudnn.FilterDestroy(own->operand[CONV_W]);
    if (own->operand[CONV_Y])
        vn__cudnn.TensorDestroy(own->operand[CONV_Y]);
    if (own->conv)
        vn__cudnn.ConvDestroy(own->conv);
    free(own);
}

static struct vn_cudnn_key key_of(const struct conv *c, size_t workspace)
{
    struct vn_cudnn_key k = { .direction = c->direction, .type = c->p.type, .math = c->math,
                              .groups = c->groups, .workspace = (int64_t)workspace,
                              .alpha = c->alpha, .beta = c->beta };
    struct shapes s;

    shapes_of(&s, c);
    k.rank = s.rank;
    k.channels_last = s.channels_last;
    k.x = s.x;
    k.w = s.w;
    k.y = s.y;
    memcpy(k.pad, c->pad, sizeof k.pad);
    memcpy(k.stride, c->stride, sizeof k.stride);
    memcpy(k.dilation, c->dilation, sizeof k.dilation);
    if (is_fused(c)) {
        k.is_fused   = 1;
        k.has_bias   = c->has_bias;
        k.activation = c->activation;
    }
    return k;
}

static vn_status make_tensor(cudnnDescriptor *out, const struct vn_cudnn_key *k,
                             const struct vn_cudnn_shape *s)
{
    const vn_status status = vn__cudnn_status(vn__cudnn.TensorCreate(out), "cudnnCreateTensorDescriptor");

    return status ? status
         : vn__cudnn_status(vn__cudnn.TensorSet(*out, vn__cudnn_type((vn_type)k->type), (int)k->rank,
                                                s->extent, s->stride), "cudnnSetTensorNdDescriptor");
}

static vn_status make_filter(cudnnDescriptor *out, const struct vn_cudnn_key *k)
{
    const vn_status s = vn__cudnn_status(vn__cudnn.FilterCreate(out), "cudnnCreateFilterDescriptor");

    return s ? s : vn__cudnn_status(vn__cudnn.FilterSet(*out, vn__cudnn_type((vn_type)k->type),
                                    k->channels_last ? CUDNN_NHWC : CUDNN_NCHW, (int)k->rank, k->w.extent),
                                    "cudnnSetFilterNdDescriptor");
}

/* f32 stays f32, unless the caller allows TF32; 16-bit types use tensor cores. */
static int math_of(const struct vn_cudnn_key *k)
{
    if (k->type == VN_F16 || k->type == VN_BF16)
        return CUDNN_TENSOR_OP;
    return k->type == VN_F32 && k->math == VN_MATH_TF32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA;
}

static vn_status make_conv(cudnnDescriptor *out, const struct vn_cudnn_key *k)
{
    const int type = k->type == VN_F64 ? CUDNN_F64 : CUDNN_F32, dims = (int)k->rank - 2;
    int pad[DIMS], stride[DIMS], dilation[DIMS];
    vn_status s;

    for (int d = 0; d < dims; d++) {
        pad[d]      = (int)k->pad[DIMS - dims + d];
        stride[d]   = (int)k->stride[DIMS - dims + d];
        dilation[d] = (int)k->dilation[DIMS - dims + d];
    }
    if ((s = vn__cudnn_status(vn__cudnn.ConvCreate(out), "cudnnCreateConvolutionDescriptor")) ||
        (s = vn__cudnn_status(vn__cudnn.ConvSet(*out, dims, pad, stride, dilation, CUDNN_CROSS_CORRELATION,
                                                type), "cudnnSetConvolutionNdDescriptor")) ||
        (s = vn__cudnn_status(vn__cudnn.ConvSetGroups(*out, (int)k->groups),
                              "cudnnSetConvolutionGroupCount")))
        return s;
    return vn__cudnn_status(vn__cudnn.ConvSetMath(*out, math_of(k)), "cudnnSetConvolutionMathType");
}

/* Takes the fastest algorithm that may be used; they come sorted. cuDNN times f32 as TF32, too: only where it
 * does not distinguish them is any math type accepted. 0: there is none.                    */
static int pick(struct plan *p, const cudnnFound *found, int count)
{
    const struct vn_cudnn_key *k = &p->key;
    const unsigned allowed = k->math == VN_MATH_TF32 ? ~0u : directions[k->direction].exact;
    const int math = math_of(k);

    for (int any = math != CUDNN_FMA; any <= 1; any++)
        for (int i = 0; i < count; i++)
            if (!found[i].status && allowed >> found[i].algorithm & 1 &&
                found[i].workspace <= (uint64_t)k->workspace && (any || found[i].math == math)) {
                p->algorithm = found[i].algorithm;
                p->workspace = found[i].workspace;
                p->math = math == CUDNN_FMA ? math : found[i].math;
                return 1;
            }
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const cudnnFound *const one = a, *const other = b;

    return (one->milliseconds > other->milliseconds) - (one->milliseconds < other->milliseconds);
}

/* Times them all, in memory of the library's own; where that runs out, asks for its guess.  A search times
 * each algorithm once, the first one also the loading of its kernels: the least of several times counts. */
static vn_status find(struct plan *p, cudnnHandle handle)
{
    enum { WANTED = 16, SEARCHES = 3 };
    const enum direction d = (enum direction)p->key.direction;
    const int *o = directions[d].operand;
    cudnnFound found[SEARCHES * WANTED];
    int all = 0, count = 0;
    cudnnStatus e = 0;

    for (int i = 0; i < SEARCHES && !e; i++) {
        e = (*directions[d].find)(handle, p->operand[o[0]], p->operand[o[1]], p->conv, p->operand[o[2]],
                                  WANTED, &count, found + all);
        all += e ? 0 : count;
    }
    qsort(found, (size_t)all, sizeof found[0], by_time);
    if (!pick(p, found, all)) {
        count = 0;
        e = (*directions[d].guess)(handle, p->operand[o[0]], p->operand[o[1]], p->conv, p->operand[o[2]],
                                   WANTED, &count, found);
        if (e)
            return vn__cudnn_status(e, directions[d].find_name);
        if (!pick(p, found, count))
            return vn__fail(VN_UNSUPPORTED, "%s found no algorithm for this problem",
                            directions[d].find_name);
    }
    return vn__cudnn_status(vn__cudnn.ConvSetMath(p->conv, p->math), "cudnnSetConvolutionMathType");
}

static vn_status run_algorithm(void *own, vn_queue *q, cudnnHandle handle, const struct vn_cudnn_operands *at)
{
    const struct plan *p = own;
    const struct vn_cudnn_key *k = &p->key;
    const union vn_cudnn_scalar alpha = vn__cudnn_scalar((vn_type)k->type, k->alpha);
    const union vn_cudnn_scalar beta = vn__cudnn_scalar((vn_type)k->type, k->beta);
    void *const all[OPERANDS] = { [CONV_X] = at->x, [CONV_W] = at->w, [CONV_Y] = at->y };
    const int *o = directions[k->direction].operand;
    void *workspace;
    const vn_status s = vn__cudnn_workspace(&workspace, q, p->workspace);

    return s ? s : vn__cudnn_status(
        (*directions[k->direction].run)(handle, &alpha, p->operand[o[0]], all[o[0]], p->operand[o[1]],
                                        all[o[1]], p->conv, p->algorithm, workspace, p->workspace, &beta,
                                        p->operand[o[2]], all[o[2]]), directions[k->direction].run_name);
}

/* ---- beside engines of the graph API ---- */

/* Bytes from its first element to behind its last; 0: more than can be said. */
static size_t span_of(const struct vn_cudnn_shape *s, const struct vn_cudnn_key *k)
{
    int64_t all = 1, step;

    for (int i = 0; i < k->rank; i++)
        if (s->stride[i] < 1 || !vn__mul(&step, s->extent[i] - 1, s->stride[i]) || !vn__add(&all, all, step))
            return 0;
    return vn__mul(&all, all, (int64_t)vn_type_bytes((vn_type)k->type)) ? (size_t)all : 0;
}

/* The operands that candidates are run on.  With a beta each run adds to the output, which then is scratch
 * memory, closed by the caller; else each run writes the same result. */
static vn_status stage(struct vn_cudnn_operands *out, vn_buffer **scratch, vn_queue *q,
                       const struct vn_cudnn_key *k, const struct vn_cudnn_operands *at)
{
    void **const outputs[] = { [FORWARD] = &out->y, [BACKWARD_DATA] = &out->x, [BACKWARD_FILTER] = &out->w };
    const struct vn_cudnn_shape *const shapes[] = {
        [FORWARD] = &k->y, [BACKWARD_DATA] = &k->x, [BACKWARD_FILTER] = &k->w };
    const size_t bytes = span_of(shapes[k->direction], k);
    vn_status s;

    *out = *at;
    if (k->beta == 0)
        return VN_OK;
    if (!bytes)
        return VN_UNSUPPORTED;
    if ((s = vn__buffer_open(scratch, q->device, bytes, NULL)) == VN_OK)
        *outputs[k->direction] = (void *)(uintptr_t)vn__cuda_address(*scratch);
    return s;
}

/* The fastest engine; its milliseconds, or below 0: there is none, and no graph. */
static float ask_graph(struct plan *p, vn_queue *q, cudnnHandle handle, const struct vn_cudnn_operands *at)
{
    const struct vn_cudnn_key *k = &p->key;
    const int type = vn__cudnn_type((vn_type)k->type);
    float best = -1;

    if (!suits_graph(k->stride, k->dilation) || vn__cudnn_graph_open(&p->graph, k))
        return -1;
    const cudnnDescriptor x = vn__cudnn_graph_tensor(p->graph, 'x', &k->x, type, 0);
    const cudnnDescriptor w = vn__cudnn_graph_tensor(p->graph, 'w', &k->w, type, 0);
    const cudnnDescriptor y = vn__cudnn_graph_tensor(p->graph, 'y', &k->y, type, 0);
    const cudnnDescriptor operation = vn__cudnn_graph_convolution(p->graph, x, w, y, k->beta);

    vn__cudnn_graph_choose(p->graph, q, handle, &operation, 1, at, &best);
    return best;
}

static void drop_graph(struct plan *p)
{
    vn__cudnn_graph_close(p->graph);
    p->graph = NULL;
}

/* The faster of an algorithm and an engine, where there are both.  The search for an algorithm comes last,
 * so that its sentence says why there is neither. */
static vn_status choose(struct plan *p, vn_queue *q, cudnnHandle handle, const struct vn_cudnn_operands *at)
{
    struct vn_cudnn_operands where;
    vn_buffer *scratch = NULL;
    float engine = -1, algorithm;
    vn_status s;

    if (stage(&where, &scratch, q, &p->key, at) == VN_OK)
        engine = ask_graph(p, q, handle, &where);
    if (engine < 0)
        drop_graph(p);
    s = find(p, handle);
    if (s == VN_OK && p->graph) {
        algorithm = vn__cudnn_time(run_algorithm, p, q, handle, &where);
        if (algorithm >= 0 && algorithm < engine)
            drop_graph(p);
    }
    vn__buffer_close(scratch);
    return p->graph ? VN_OK : s;
}

static vn_status make_plan(struct plan **out, vn_queue *q, struct vn_cudnn *own, const struct vn_cudnn_key *k,
                           const struct vn_cudnn_operands *at)
{
    struct plan *p = calloc(1, sizeof *p);
    vn_status s;

    if (!p)
        return vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes for a plan of cuDNN", sizeof *p);
    p->key = *k;
    p->head.key = &p->key;
    if ((s = make_tensor(&p->operand[CONV_X], k, &k->x)) || (s = make_filter(&p->operand[CONV_W], k)) ||
        (s = make_tensor(&p->operand[CONV_Y], k, &k->y)) || (s = make_conv(&p->conv, k)) ||
        (s = k->is_fused ? vn__cudnn_fused_open(&p->fused, q, own->handle, k, p->operand, p->conv, at)
                         : choose(p, q, own->handle, at))) {
        vn__cudnn_plan_close(&p->head);
        return s;
    }
    vn__prepared_add(&own->plans, &p->head);
    *out = p;
    return VN_OK;
}

/* ---- running ------------------------------------------------------------------------------ */

static vn_status convolve(vn_queue *q, struct vn_cudnn *own, const struct conv *c)
{
    static const char *const names[OPERANDS] = { "x", "w", "y" };
    const vn_tensor *const tensors[OPERANDS] = { &c->x, &c->w, &c->y };
    const struct vn_cudnn_key k = key_of(c, q->workspace_limit);
    struct plan *p = (struct plan *)vn__prepared_find(&own->plans, &k);
    struct vn_cudnn_operands all = { .z = NULL };
    void *at[OPERANDS];
    vn_status s;

    for (int i = 0; i < OPERANDS; i++)
        if ((s = vn__cudnn_pointer(&at[i], tensors[i], names[i])))
            return s;
    all.x = at[CONV_X];
    all.w = at[CONV_W];
    all.y = at[CONV_Y];
    if ((k.has_bias && (s = vn__cudnn_pointer(&all.bias, &c->bias, "bias"))) ||
        (k.is_fused && k.beta != 0 && (s = vn__cudnn_pointer(&all.z, &c->residual, "residual"))) ||
        (!p && (s = make_plan(&p, q, own, &k, &all))))
        return s;
    if (p->fused)
        return vn__cudnn_fused_run(p->fused, q, own->handle, &all);
    return p->graph ? vn__cudnn_graph_run(p->graph, q, own->handle, &all)
         : run_algorithm(p, q, own->handle, &all);
}

static vn_status call(vn_queue *q, const void *problem)
{
    struct vn_cudnn *own;
    vn_status s;

    if ((s = vn__cuda_enter(q->device)))
        return s;
    if ((s = vn__cudnn_attach(&own, q)) == VN_OK)
        s = convolve(q, own, problem);
    return vn__cuda_leave(s);
}

vn_status vn__run_cudnn_conv(vn_queue *q, const struct vn_choice *it, const void *problem,
                             const struct vn_plan *plan)
{
    (void)plan;
    return vn__launch_foreign(q, it, problem, call);
}
