/* SPDX-License-Identifier: Apache-2.0
 *
 * cublas.c - the variant cublas: gemm by NVIDIA's cuBLAS, and with bias or activation by cuBLASLt.
 *
 * Both are column-major: a row-major C = A B is C^T = B^T A^T to them, so that A and B change places. A
 * handle belongs to a queue, since two threads may not use one at once.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blas.h"
#include "cublas.h"
#include "backends/cuda/cuda.h"
#include "prepared.h"
#include "vendor.h"

/* ---- the library --------------------------------------------------------------- */

enum { OLDEST = 11, NEWEST = 13, WHY = 400 };

#define INSTALL "install cuBLAS 11 to 13 with the CUDA toolkit (pip: nvidia-cublas), or name its " \
                "directory, followed by a colon, in VERNIER_CUDA_LIBRARY_PATH"
#define BLAS_SYMBOL(result, name, exported, parameters) \
    { #exported, offsetof(struct vn_cublas_functions, name) },
#define LT_SYMBOL(result, name, exported, parameters) \
    { #exported, offsetof(struct vn_cublaslt_functions, name) },
static const struct vn_symbol blas_symbols[] = { VN_CUBLAS_MAP(BLAS_SYMBOL) { NULL, 0 } };
static const struct vn_symbol lt_symbols[]   = { VN_CUBLASLT_MAP(LT_SYMBOL) { NULL, 0 } };

static struct vn_cublas_functions   blas;
static struct vn_cublaslt_functions lt;
static char why_not_there[WHY];         /* "" once both are loaded */
static char version[32];

static void check_versions(void)
{
    int major = 0, minor = 0, patch = 0, lt_major = 0;

    blas.GetProperty(CUBLAS_MINOR, &minor);
    blas.GetProperty(CUBLAS_PATCH, &patch);

    if (blas.GetProperty(CUBLAS_MAJOR, &major) || major < OLDEST || major > NEWEST)
        snprintf(why_not_there, WHY, "libcublas has version %d: " INSTALL, major);
    else if (lt.GetProperty(CUBLAS_MAJOR, &lt_major) || lt_major != major)
        snprintf(why_not_there, WHY, "libcublas has version %d and libcublasLt %d: "
                 "they must be of one toolkit; " INSTALL, major, lt_major);
    snprintf(version, sizeof version, "cuBLAS %d.%d.%d", major, minor, patch);
}

/* cuBLASLt is loaded first: cuBLAS is linked with it, and so finds this one. */
static void load(void)
{
    static const char *const lt_names[] = {
        "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so", NULL };
    static const char *const blas_names[] = {
        "libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so", NULL };
    void *lt_library = vn__library_open_cuda(lt_names), *blas_library = vn__library_open_cuda(blas_names);
    const char *missing;

    if (!lt_library || !blas_library)
        snprintf(why_not_there, WHY, "%s was not found: " INSTALL,
                 blas_library ? "libcublasLt" : "libcublas");
    else if ((missing = vn__library_look_up(&lt, lt_symbols, lt_library)) ||
             (missing = vn__library_look_up(&blas, blas_symbols, blas_library)))
        snprintf(why_not_there, WHY, "cuBLAS lacks %s: " INSTALL, missing);
    else
        check_versions();
}

static const char *library_missing(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    return *why_not_there ? why_not_there : NULL;
}

const char *vn__cublas_version(void)
{
    return library_missing() ? "cuBLAS" : version;
}

static vn_status status_of(cublasStatus e, const char *call)
{
    if (e == 0)
        return VN_OK;
    return vn__fail(e == CUBLAS_ALLOC_FAILED ? VN_NO_MEMORY
                  : e == CUBLAS_NOT_SUPPORTED || e == CUBLAS_ARCH_MISMATCH ? VN_UNSUPPORTED : VN_FAILED,
                    "%s: %s (%d)", call, blas.GetStatusString(e), e);
}

/* ---- fits ---------------------------------------------------------------------- */

static const struct { int data, scale, compute; } types[VN_TYPE_COUNT] = {
    [VN_F32]  = { CUDA_F32,  CUDA_F32, CUBLAS_32F },
    [VN_F16]  = { CUDA_F16,  CUDA_F32, CUBLAS_32F },
    [VN_BF16] = { CUDA_BF16, CUDA_F32, CUBLAS_32F },
    [VN_F64]  = { CUDA_F64,  CUDA_F64, CUBLAS_64F },
};

static int compute_of(const struct gemm *g)
{
    return g->head.type == VN_F32 && g->math == VN_MATH_TF32 ? CUBLAS_32F_TF32 : types[g->head.type].compute;
}

/* One element per column of C, the same in all rows and batches. */
static int is_bias_of_columns(const struct gemm *g)
{
    for (int d = 0; d < g->bias.rank - 1; d++)
        if (g->bias.stride[d] && g->bias.extent[d] > 1)
            return 0;
    return g->n == 1 || vn__col(&g->bias) == 1;
}

static int needs_epilogue(const struct gemm *g)
{
    return g->has_bias || g->activation != VN_IDENTITY;
}

static int epilogue_of(const struct gemm *g)
{
    static const int of[VN_ACTIVATION_COUNT] = { [VN_RELU] = LT_RELU, [VN_GELU] = LT_GELU };

    return of[g->activation] | (g->has_bias ? LT_ADD_BIAS : 0);
}

const char *vn__fits_cublas(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;
    struct vn_blas unused;
    const char *why;

    if (strcmp(f->backend, "cuda"))
        return "it needs a CUDA device";
    if (g->math == VN_MATH_BITWISE)
        return "it sums in another order than VN_MATH_BITWISE promises";
    if (g->activation != VN_IDENTITY && g->activation != VN_RELU && g->activation != VN_GELU)
        return "it has no activation but ReLU and GELU";
    if (needs_epilogue(g) && g->head.type == VN_F64)
        return "it has no bias and no activation in f64";
    if (g->has_bias && g->bias.type != g->c.type)
        return "its bias must have the type of C";
    if (g->has_bias && !is_bias_of_columns(g))
        return "its bias must be one row, common to all rows of C";
    if ((why = vn__blas(&unused, g)))
        return why;
    return library_missing();
}

/* ---- the handle of a queue ------------------------------------------------------- */

struct attached {
    struct vn_attachment head;
    cublasHandle         handle;
    CUdeviceptr          workspace;     /* what the handle uses, */
    size_t               bytes;         /* and how much */
    struct vn_prepared_list      plans;
};

static const char owner[] = "cublas";

static void attached_close(vn_queue *q, struct vn_attachment *it)
{
    struct attached *own = (struct attached *)it;

    vn__prepared_close(&own->plans);
    if (vn__cuda_enter(q->device) == VN_OK) {
        blas.Destroy(own->handle);
        vn__cuda_leave(VN_OK);
    }
    free(own);
}

static void plan_close(struct vn_prepared *p);

/* Partial sums of split-K must not be rounded to 16 bits. */
static vn_status set_up(cublasHandle handle, vn_queue *q)
{
    const vn_status s = status_of(blas.SetStream(handle, vn__cuda_stream(q)), "cublasSetStream");

    return s ? s : status_of(blas.SetMathMode(handle, CUBLAS_SUM_IN_FULL), "cublasSetMathMode");
}

struct key {
    int64_t m, n, k, batches, lda, ldb, ldc, a_step, b_step, c_step, workspace, bias_aligned;
    int32_t transa, transb, type, type_c, compute, epilogue, a_aligned, b_aligned, c_aligned, unused;
};

static vn_status attach(struct attached **out, vn_queue *q)
{
    struct attached *own = (struct attached *)vn__attached(q, owner);
    vn_status s;

    if ((*out = own))
        return VN_OK;
    if (!(own = calloc(1, sizeof *own)))
        return vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes for a handle of cuBLAS", sizeof *own);
    own->head = (struct vn_attachment){ .owner = owner, .close = attached_close };
    own->plans = (struct vn_prepared_list){ .key_bytes = sizeof(struct key), .close = plan_close };
    if ((s = status_of(blas.Create(&own->handle), "cublasCreate"))) {
        free(own);
        return s;
    }
    if ((s = set_up(own->handle, q))) {
        blas.Destroy(own->handle);
        free(own);
        return s;
    }
    vn__attach(q, &own->head);
    *out = own;
    return VN_OK;
}

/* As much as cuBLAS allocates by itself on the largest GPUs, if the queue allows it. */
static vn_status find_workspace(CUdeviceptr *at, size_t *bytes, vn_queue *q)
{
    enum { ENOUGH = 32 << 20 };
    vn_buffer *b;
    vn_status s;

    *at = 0;
    *bytes = q->workspace_limit < ENOUGH ? q->workspace_limit : ENOUGH;
    if (*bytes == 0)
        return VN_OK;
    if ((s = vn__workspace(&b, q, *bytes)) == VN_OK)
        *at = vn__cuda_address(b);
    return s;
}

/* ---- plain gemm, by cuBLAS --------------------------------------------------------- */

union scalar { float f; double d; };

static union scalar scalar_of(vn_type type, double v)
{
    return type == VN_F64 ? (union scalar){ .d = v } : (union scalar){ .f = (float)v };
}

static void *pointer_to(const struct vn_blas_matrix *m, vn_type type)
{
    return (void *)(uintptr_t)(vn__cuda_address(m->buffer) + (CUdeviceptr)m->start * vn_type_bytes(type));
}

/* Setting the workspace costs a call, and resets cuBLAS's state: only where it has changed. */
static vn_status use_workspace(struct attached *own, CUdeviceptr at, size_t bytes)
{
    vn_status s;

    if (at && own->workspace == at && own->bytes == bytes)
        return VN_OK;
    s = status_of(blas.SetWorkspace(own->handle, (void *)(uintptr_t)at, bytes), "cublasSetWorkspace");
    own->workspace = s ? 0 : at;
    own->bytes = bytes;
    return s;
}

static vn_status plain(vn_queue *q, struct attached *own, const struct gemm *g, const struct vn_blas *b)
{
    const vn_type t = g->head.type;
    const int type = types[t].data, type_c = types[g->c.type].data;
    const union scalar alpha = scalar_of(t, g->alpha), beta = scalar_of(t, g->beta);
    CUdeviceptr at;
    size_t bytes;
    vn_status s;

    if ((s = find_workspace(&at, &bytes, q)) || (s = use_workspace(own, at, bytes)))
        return s;
    if (b->batches == 1)
        return status_of(blas.Gemm(own->handle, b->b.trans, b->a.trans, (int)b->n, (int)b->m, (int)b->k,
                                   &alpha, pointer_to(&b->b, t), type, (int)b->b.ld,
                                   pointer_to(&b->a, t), type, (int)b->a.ld,
                                   &beta, pointer_to(&b->c, g->c.type), type_c, (int)b->c.ld,
                                   compute_of(g), CUBLAS_GEMM_DEFAULT), "cublasGemmEx");
    return status_of(blas.GemmBatch(own->handle, b->b.trans, b->a.trans, (int)b->n, (int)b->m, (int)b->k,
                                    &alpha, pointer_to(&b->b, t), type, (int)b->b.ld, b->b.step,
                                    pointer_to(&b->a, t), type, (int)b->a.ld, b->a.step,
                                    &beta, pointer_to(&b->c, g->c.type), type_c, (int)b->c.ld, b->c.step,
                                    (int)b->batches, compute_of(g), CUBLAS_GEMM_DEFAULT),
                     "cublasGemmStridedBatchedEx");
}

/* ---- with bias or activation, by cuBLASLt -------------------------------------------- */

struct plan {
    struct vn_prepared head;
    struct key     key;
    ltDescription  description;
    ltLayout       layout[3];           /* of B, A and C, the library's A, B and C */
    ltFound        found;
};

static void plan_close(struct vn_prepared *p)
{
    struct plan *own = (struct plan *)p;

    for (int i = 0; i < 3; i++)
        if (own->layout[i])
            lt.LayoutDestroy(own->layout[i]);
    if (own->description)
        lt.DescriptionDestroy(own->description);
    free(own);
}

/* The largest power of two, up to 256, to which p is aligned. */
static int32_t alignment_of(const void *p)
{
    int32_t n = 1;

    while (n < 256 && (uintptr_t)p % (2 * (uintptr_t)n) == 0)
        n *= 2;
    return n;
}

static struct key key_of(const struct gemm *g, const struct vn_blas *b, const void *bias, size_t workspace)
{
    return (struct key){
        .m = b->m, .n = b->n, .k = b->k, .batches = b->batches,
        .lda = b->a.ld, .ldb = b->b.ld, .ldc = b->c.ld,
        .a_step = b->a.step, .b_step = b->b.step, .c_step = b->c.step,
        .transa = b->a.trans, .transb = b->b.trans, .type = types[g->head.type].data,
        .type_c = types[g->c.type].data,
        .compute = compute_of(g), .epilogue = epilogue_of(g), .workspace = (int64_t)workspace,
        .bias_aligned = alignment_of(bias),
        .a_aligned = alignment_of(pointer_to(&b->a, g->head.type)),
        .b_aligned = alignment_of(pointer_to(&b->b, g->head.type)),
        .c_aligned = alignment_of(pointer_to(&b->c, g->c.type)),
    };
}

/* Row-major r x c, or its transpose, as a column-major layout. */
static vn_status lay_out(ltLayout *out, int type, int64_t r, int64_t c, int trans, int64_t ld, int64_t step,
                         int64_t batches)
{
    const int32_t count = (int32_t)batches;
    vn_status s;

    if ((s = status_of(lt.LayoutCreate(out, type, (uint64_t)(trans ? r : c), (uint64_t)(trans ? c : r), ld),
                       "cublasLtMatrixLayoutCreate")) || batches == 1)
        return s;
    if ((s = status_of(lt.LayoutSet(*out, LT_BATCHES, &count, sizeof count),
                       "cublasLtMatrixLayoutSetAttribute")))
        return s;
    return status_of(lt.LayoutSet(*out, LT_STEP, &step, sizeof step), "cublasLtMatrixLayoutSetAttribute");
}

static vn_status lay_out_all(struct plan *p)
{
    const struct key *k = &p->key;
    vn_status s;

    if ((s = lay_out(&p->layout[0], k->type, k->k, k->n, k->transb, k->ldb, k->b_step, k->batches)) ||
        (s = lay_out(&p->layout[1], k->type, k->m, k->k, k->transa, k->lda, k->a_step, k->batches)))
        return s;
    return lay_out(&p->layout[2], k->type_c, k->m, k->n, 0, k->ldc, k->c_step, k->batches);
}

static vn_status set(struct plan *p, int which, const void *value, size_t bytes)
{
    return status_of(lt.DescriptionSet(p->description, which, value, bytes),
                     "cublasLtMatmulDescSetAttribute");
}

static vn_status describe(struct plan *p, const void *bias)
{
    const struct key *k = &p->key;
    vn_status s;

    if ((s = status_of(lt.DescriptionCreate(&p->description, k->compute, CUDA_F32),
                       "cublasLtMatmulDescCreate")) ||
        (s = set(p, LT_TRANSA, &k->transb, sizeof k->transb)) ||
        (s = set(p, LT_TRANSB, &k->transa, sizeof k->transa)) ||
        (s = set(p, LT_EPILOGUE, &k->epilogue, sizeof k->epilogue)))
        return s;
    return bias ? set(p, LT_BIAS, &bias, sizeof bias) : VN_OK;
}

static vn_status prefer(ltPreference preference, const struct key *k)
{
    const uint32_t reductions = LT_REDUCE_NOT | LT_REDUCE_IN_PLACE | LT_REDUCE_IN_FULL;
    const uint64_t workspace = (uint64_t)k->workspace;
    const uint32_t aligned[4] = { (uint32_t)k->b_aligned, (uint32_t)k->a_aligned,
                                  (uint32_t)k->c_aligned, (uint32_t)k->c_aligned };
    cublasStatus e = lt.PreferenceSet(preference, LT_WORKSPACE, &workspace, sizeof workspace);

    if (!e)
        e = lt.PreferenceSet(preference, LT_REDUCTIONS, &reductions, sizeof reductions);
    for (int i = 0; i < 4 && !e; i++)
        e = lt.PreferenceSet(preference, LT_ALIGNMENT + i, &aligned[i], sizeof aligned[i]);
    return status_of(e, "cublasLtMatmulPreferenceSetAttribute");
}

static vn_status search(struct plan *p, cublasHandle handle)
{
    ltPreference preference;
    int found = 0;
    vn_status s = status_of(lt.PreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");

    if (s)
        return s;
    if ((s = prefer(preference, &p->key)) == VN_OK)
        s = status_of(lt.Heuristic(handle, p->description, p->layout[0], p->layout[1], p->layout[2],
                                   p->layout[2], preference, 1, &p->found, &found),
                      "cublasLtMatmulAlgoGetHeuristic");
    lt.PreferenceDestroy(preference);
    return s || found ? s
         : vn__fail(VN_UNSUPPORTED, "cublasLtMatmulAlgoGetHeuristic found no algorithm for this problem");
}

static vn_status make_plan(struct plan **out, struct attached *own, const struct key *k, const void *bias)
{
    struct plan *p = calloc(1, sizeof *p);
    vn_status s;

    if (!p)
        return vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes for a plan of cuBLASLt", sizeof *p);
    p->key = *k;
    p->head.key = &p->key;
    if ((s = lay_out_all(p)) || (s = describe(p, bias)) || (s = search(p, own->handle))) {
        plan_close(&p->head);
        return s;
    }
    vn__prepared_add(&own->plans, &p->head);
    *out = p;
    return VN_OK;
}

/* A plan serves any bias: its address is set for each call. */
static vn_status find_plan(struct plan **out, struct attached *own, const struct key *k, const void *bias)
{
    if (!(*out = (struct plan *)vn__prepared_find(&own->plans, k)))
        return make_plan(out, own, k, bias);
    return bias ? set(*out, LT_BIAS, &bias, sizeof bias) : VN_OK;
}

static vn_status fused(vn_queue *q, struct attached *own, const struct gemm *g, const struct vn_blas *b)
{
    const vn_type t = g->head.type;
    const union scalar alpha = scalar_of(t, g->alpha), beta = scalar_of(t, g->beta);
    const struct vn_blas_matrix row = { .buffer = g->bias.buffer, .start = g->bias.start };
    const void *bias = g->has_bias ? pointer_to(&row, g->bias.type) : NULL;
    struct plan *p;
    struct key k;
    CUdeviceptr at;
    size_t bytes;
    void *c;
    vn_status s;

    if ((s = find_workspace(&at, &bytes, q)))
        return s;
    k = key_of(g, b, bias, bytes);
    if ((s = find_plan(&p, own, &k, bias)))
        return s;
    c = pointer_to(&b->c, g->c.type);
    return status_of(lt.Matmul(own->handle, p->description, &alpha, pointer_to(&b->b, t), p->layout[0],
                               pointer_to(&b->a, t), p->layout[1], &beta, c, p->layout[2], c, p->layout[2],
                               &p->found.algorithm, (void *)(uintptr_t)at, p->found.workspace,
                               vn__cuda_stream(q)),
                     "cublasLtMatmul");
}

/* ---- the call -------------------------------------------------------------------------- */

static vn_status call(vn_queue *q, const void *problem)
{
    const struct gemm *g = problem;
    struct attached *own;
    struct vn_blas b;
    vn_status s;

    vn__blas(&b, g);
    if ((s = vn__cuda_enter(q->device)))
        return s;
    if ((s = attach(&own, q)) == VN_OK)
        s = needs_epilogue(g) ? fused(q, own, g, &b) : plain(q, own, g, &b);
    return vn__cuda_leave(s);
}

vn_status vn__run_cublas(vn_queue *q, const struct vn_choice *it, const void *problem,
                         const struct vn_plan *plan)
{
    (void)plan;
    return vn__launch_foreign(q, it, problem, call);
}
