/* SPDX-License-Identifier: Apache-2.0
 *
 * clblast.c - the variant clblast: gemm in f32 and f64 by CLBlast, on any OpenCL device.
 *
 * (In f16 it accumulates in f16, which is not what vn_gemm() promises.) CLBlast keeps the kernels that it
 * has built, and with them their context, until the process ends.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "blas.h"
#include "library.h"
#include "backends/opencl/opencl.h"
#include "vendor.h"

/* ---- the library ----------------------------------------------------------------- */

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };    /* of clblast_c.h */
enum { WHY = 200 };

/* Gemm with a given scratch buffer, the size of that buffer, and batched gemm. */
#define VN_CLBLAST_MAP_OF(F, letter, real) \
    F(int, letter##gemm, CLBlast##letter##gemmWithTempBuffer, (                                          \
        int order, int ta, int tb, size_t m, size_t n, size_t k, real alpha,                             \
        cl_mem a, size_t a_start, size_t lda, cl_mem b, size_t b_start, size_t ldb,                      \
        real beta, cl_mem c, size_t c_start, size_t ldc,                                                 \
        cl_command_queue *q, cl_event *e, cl_mem scratch))                                               \
    F(int, letter##bytes, CLBlast##letter##GemmTempBufferSize, (                                         \
        int order, int ta, int tb, size_t m, size_t n, size_t k,                                         \
        size_t a_start, size_t lda, size_t b_start, size_t ldb, size_t c_start, size_t ldc,              \
        cl_command_queue *q, size_t *out))                                                               \
    F(int, letter##batch, CLBlast##letter##gemmStridedBatched, (                                         \
        int order, int ta, int tb, size_t m, size_t n, size_t k, real alpha,                             \
        cl_mem a, size_t a_start, size_t lda, size_t a_step,                                             \
        cl_mem b, size_t b_start, size_t ldb, size_t b_step,                                             \
        real beta, cl_mem c, size_t c_start, size_t ldc, size_t c_step, size_t batches,                  \
        cl_command_queue *q, cl_event *e))
#define VN_CLBLAST_MAP(F) VN_CLBLAST_MAP_OF(F, S, float) VN_CLBLAST_MAP_OF(F, D, double)

static struct { VN_CLBLAST_MAP(VN_POINTER) } clblast;

#define SYMBOL(result, name, exported, parameters) \
    { #exported, (size_t)((char *)&clblast.name - (char *)&clblast) },

static char why_not_there[WHY];

static void load(void)
{
    static const char *const names[] = { "libclblast.so.1", "libclblast.so", NULL };
    const struct vn_symbol symbols[] = { VN_CLBLAST_MAP(SYMBOL) { NULL, 0 } };
    void *library = vn__library_open(names);
    const char *missing;

    if (!library)
        snprintf(why_not_there, WHY, "libclblast.so.1 was not found: "
                 "install CLBlast (Debian, Ubuntu: libclblast1)");
    else if ((missing = vn__library_look_up(&clblast, symbols, library)))
        snprintf(why_not_there, WHY, "libclblast lacks %s: install CLBlast 1.5.2 or above", missing);
}

static const char *library_missing(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    return *why_not_there ? why_not_there : NULL;
}

/* Codes above OWN_ERRORS are OpenCL's; the others are CLBlast's own. */
static vn_status status_of(int e, const char *call)
{
    enum { OWN_ERRORS = -1001 };

    return e > OWN_ERRORS ? vn__cl_status(e, call)
                          : vn__fail(VN_FAILED, "%s: error %d of CLBlast (see CLBlastStatusCode)", call, e);
}

/* ---- fits ------------------------------------------------------------------------ */

const char *vn__fits_clblast(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;
    struct vn_blas unused;
    const char *why;

    if (strcmp(f->backend, "opencl"))
        return "it needs an OpenCL device";
    if (g->math == VN_MATH_BITWISE)
        return "it sums in another order than VN_MATH_BITWISE promises";
    if (g->head.type != VN_F32 && g->head.type != VN_F64)
        return "it needs f32 or f64";
    if (g->c.type != g->head.type)
        return "A, B and C must have one type";
    if (g->has_bias || g->activation != VN_IDENTITY)
        return "it has no bias and no activation";
    if ((why = vn__blas(&unused, g)))
        return why;
    return library_missing();
}

/* An upper bound: each matrix again, in whole tiles. For a batch CLBlast allocates by itself, whatever the
 * workspace limit, so that there must be none.                                            */
const char *vn__plan_clblast(struct vn_plan *out, const void *problem, const struct vn_row *row,
                             const struct vn_site *site)
{
    enum { TILE = 256 };
    const struct gemm *g = problem;
    const int64_t m = VN_CEIL_DIV(g->m, TILE), n = VN_CEIL_DIV(g->n, TILE), k = VN_CEIL_DIV(g->k, TILE);

    (void)row;
    (void)site;
    out->workspace = g->batches > 1 ? SIZE_MAX
                   : (size_t)(m * k + k * n + m * n) * TILE * TILE * vn_type_bytes(g->head.type);
    return NULL;
}

/* ---- running ----------------------------------------------------------------------- */

static cl_mem memory_of(const vn_buffer *b)
{
    return b->impl;
}

#define SHAPE(b) ROW_MAJOR, (b)->a.trans ? TRANSPOSED : PLAIN, (b)->b.trans ? TRANSPOSED : PLAIN, \
                 (size_t)(b)->m, (size_t)(b)->n, (size_t)(b)->k
#define PLACE(x)   (size_t)(x).start, (size_t)(x).ld
#define MATRIX(x)  memory_of((x).buffer), PLACE(x)
#define BATCHED(x) MATRIX(x), (size_t)(x).step

/* The size of the scratch buffer of one gemm. */
static vn_status scratch_of(size_t *bytes, vn_type t, const struct vn_blas *b, cl_command_queue *queue)
{
    *bytes = 0;
    return status_of((t == VN_F64 ? clblast.Dbytes : clblast.Sbytes)
                     (SHAPE(b), PLACE(b->a), PLACE(b->b), PLACE(b->c), queue, bytes),
                     "CLBlastGemmTempBufferSize");
}

static vn_status single(vn_queue *q, const struct gemm *g, const struct vn_blas *b, cl_command_queue *queue)
{
    vn_buffer *scratch;
    size_t bytes;
    int e;
    vn_status s;

    if ((s = scratch_of(&bytes, g->head.type, b, queue)))
        return s;
    if ((s = vn__workspace(&scratch, q, bytes ? bytes : 1)))
        return s;
    if (g->head.type == VN_F64)
        e = clblast.Dgemm(SHAPE(b), g->alpha, MATRIX(b->a), MATRIX(b->b), g->beta, MATRIX(b->c), queue, NULL,
                          memory_of(scratch));
    else
        e = clblast.Sgemm(SHAPE(b), (float)g->alpha, MATRIX(b->a), MATRIX(b->b), (float)g->beta, MATRIX(b->c),
                          queue, NULL, memory_of(scratch));
    return status_of(e, "CLBlastGemmWithTempBuffer");
}

static vn_status batch(const struct gemm *g, const struct vn_blas *b, cl_command_queue *queue)
{
    int e;

    if (g->head.type == VN_F64)
        e = clblast.Dbatch(SHAPE(b), g->alpha, BATCHED(b->a), BATCHED(b->b), g->beta, BATCHED(b->c),
                           (size_t)b->batches, queue, NULL);
    else
        e = clblast.Sbatch(SHAPE(b), (float)g->alpha, BATCHED(b->a), BATCHED(b->b), (float)g->beta,
                           BATCHED(b->c), (size_t)b->batches, queue, NULL);
    return status_of(e, "CLBlastGemmStridedBatched");
}

static vn_status call(vn_queue *q, const void *problem)
{
    cl_command_queue queue = ((struct vn_cl_queue *)q->impl)->id;
    const struct gemm *g = problem;
    struct vn_blas b;
    vn_status s;

    vn__blas(&b, g);
    if ((s = vn__cl_fence(q)) ||
        (s = b.batches > 1 ? batch(g, &b, &queue) : single(q, g, &b, &queue)))
        return s;
    return vn__cl_fence(q);
}

vn_status vn__run_clblast(vn_queue *q, const struct vn_choice *it, const void *problem,
                          const struct vn_plan *plan)
{
    (void)plan;
    return vn__launch_foreign(q, it, problem, call);
}
