/* SPDX-License-Identifier: Apache-2.0
 *
 * openblas.c - OpenBLAS: gemm in f32 and f64 on all cores; a batch is a loop of calls.
 */
#include <stdlib.h>
#include <string.h>
#include "peer.h"

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };        /* of CBLAS */

static struct {
    void *library;
    char  version[96];
    char *(*config)(void);
    char *(*core)(void);
    void (*sgemm)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                  const float *b, int ldb, float beta, float *c, int ldc);
    void (*dgemm)(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda,
                  const double *b, int ldb, double beta, double *c, int ldc);
} blas;

static const struct peer_symbol symbols[] = {
    { "openblas_get_config",   &blas.config },
    { "openblas_get_corename", &blas.core },
    { "cblas_sgemm",           &blas.sgemm },
    { "cblas_dgemm",           &blas.dgemm },
    { NULL, NULL }
};

struct run {
    struct peer_blas g;
    vn_type          type;
    double           alpha, beta;
    vn_tensor        c;
    void            *data[3];
};

/* Releases that do not know a newer CPU take it for one without AVX-512 and lose half the speed. */
static void name_the_core(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")
        && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        setenv("OPENBLAS_CORETYPE", "SKYLAKEX", 0);
#endif
}

static int load(const struct peer_context *c, char *why, size_t why_size)
{
    static const char *const sonames[] = { "libopenblas.so.0", "libopenblas.so", NULL };
    struct peer_threads before;
    const char *number;

    if (!c->is_cpu)
        return peer_refuse(why, why_size, "OpenBLAS runs on CPUs, and %s is none", c->device);
    if (blas.library)
        return 0;
    name_the_core();
    peer_threads_note(&before);
    if (peer_load(&blas.library, sonames, "libopenblas0-pthread", why, why_size))
        return -1;
    if (peer_symbols(blas.library, symbols, why, why_size)) {
        blas.library = NULL;
        return -1;
    }
    peer_threads_tie(&before);
    number = blas.config();                         /* "OpenBLAS 0.3.21 DYNAMIC_ARCH ..." */
    if (!strncmp(number, "OpenBLAS ", 9))
        number += 9;
    snprintf(blas.version, sizeof blas.version, "OpenBLAS %.*s (%s)",
             (int)strcspn(number, " "), number, blas.core());
    return 0;
}

static const char *version(void)
{
    return blas.version;
}

static void finish(void *state)
{
    struct run *r = state;
    int i;

    for (i = 0; r && i < 3; i++)
        free(r->data[i]);
    free(r);
}

static int fits_int(const struct peer_blas *g)
{
    const int64_t sizes[] = { g->m, g->n, g->k, g->a.ld, g->b.ld, g->c.ld };
    size_t i;

    for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] > INT32_MAX)
            return 0;
    return 1;
}

static int prepare(void **out, const struct problem *p, const struct values *data,
                   char *why, size_t why_size)
{
    struct operands o;
    struct peer_blas g;
    struct run *r;
    int i;

    if (problem_operands(&o, p))
        return peer_refuse(why, why_size, "the problem's size overflows");
    if (peer_blas(&g, p, &o, why, why_size))
        return -1;
    if (p->type != VN_F32 && p->type != VN_F64)
        return peer_refuse(why, why_size, "its gemm has f32 and f64, not %s", vn_type_name(p->type));
    if (!fits_int(&g))
        return peer_refuse(why, why_size, "its gemm counts in 32 bits");
    if (!(r = calloc(1, sizeof *r)))
        return peer_refuse(why, why_size, "out of memory");
    *r = (struct run){ g, p->type, p->alpha, p->beta, o.t[2], { NULL, NULL, NULL } };
    for (i = 0; i < 3; i++)
        if (!(r->data[i] = peer_copy(data->operand[i], o.elements[i], p->type))) {
            finish(r);
            return peer_refuse(why, why_size, "out of memory");
        }
    *out = r;
    return 0;
}

#define AT(type, x) ((type *)r->data[g->x.operand] + g->x.start + at * g->x.step)
#define GEMM_CALL(gemm, type) \
    gemm(ROW_MAJOR, g->a.trans ? TRANSPOSED : PLAIN, g->b.trans ? TRANSPOSED : PLAIN,        \
         (int)g->m, (int)g->n, (int)g->k, (type)r->alpha, AT(type, a), (int)g->a.ld,         \
         AT(type, b), (int)g->b.ld, (type)r->beta, AT(type, c), (int)g->c.ld)

static int run(void *state)
{
    const struct run *r = state;
    const struct peer_blas *g = &r->g;
    int64_t at;

    for (at = 0; at < g->batch; at++)
        if (r->type == VN_F32)
            GEMM_CALL(blas.sgemm, float);
        else
            GEMM_CALL(blas.dgemm, double);
    return 0;
}

static int read_output(void *state, int i, void *to)
{
    const struct run *r = state;

    peer_read(to, r->data[i], &r->c);
    return 0;
}

/* The library stays: its threads would outlive their code. */
static void unload(void)
{
}

const struct peer peer_openblas = {
    "openblas", 1, load, version, prepare, run, NULL, read_output, finish, unload, NULL
};
