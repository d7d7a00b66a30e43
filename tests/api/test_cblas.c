/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cblas.c - libvernier_cblas.so before a BLAS: which of both a product goes to, and that all are right.
 *
 * All data are small integers, so that both compute them exactly.  The BLAS is tests/fakes/blas.c, which
 * counts its calls.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vernier.h"

enum { ROW = 101, COL = 102, N = 111, T = 112, SKIPPED = 77, FROM = 1000, THREADS = 4, PATIENCE = 600 };

typedef void sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float,
                   float *, int);
typedef void dgemm(int, int, int, int, int, int, double, const double *, int, const double *, int, double,
                   double *, int);
typedef void dgemm_64(int, int, int, int64_t, int64_t, int64_t, double, const double *, int64_t,
                      const double *, int64_t, double, double *, int64_t);
typedef void sgemv(int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
typedef void sgemm_fortran(const char *, const char *, const int *, const int *, const int *, const float *,
                           const float *, const int *, const float *, const int *, const float *, float *,
                           const int *, size_t, size_t);
typedef void sgemm_strided(int, int, int, int, int, int, float, const float *, int, int, const float *, int,
                           int, float, float *, int, int, int);
typedef void sgemm_batch(int, const int *, const int *, const int *, const int *, const int *, const float *,
                         const float **, const int *, const float **, const int *, const float *, float **,
                         const int *, int, const int *);

static struct {
    sgemm         *sgemm;
    dgemm         *dgemm;
    dgemm_64      *dgemm_64;
    sgemv         *sgemv;
    sgemm_fortran *fortran;
    sgemm_strided *strided;
    sgemm_batch   *batch;
} ours, theirs;

static int *calls;              /* of the BLAS */
static int cases, failures;

enum { ROOM = 1 << 14 };
static float  a_s[ROOM], b_s[ROOM], c_s[ROOM], want_s[ROOM];
static double a_d[ROOM], b_d[ROOM], c_d[ROOM], want_d[ROOM];

static void fill(void)
{
    for (int i = 0; i < ROOM; i++) {
        a_d[i] = a_s[i] = (float)(i * 7 % 11 - 5);
        b_d[i] = b_s[i] = (float)(i * 5 % 13 - 6);
        want_d[i] = c_d[i] = want_s[i] = c_s[i] = (float)(i % 9 - 4);
    }
}

/* The results are those of the BLAS alone, which was called so many times before for them. */
static void expect(const char *what, int called, int want_calls)
{
    cases++;
    if (memcmp(c_s, want_s, sizeof c_s) || memcmp(c_d, want_d, sizeof c_d)) {
        printf("%s: the result is not that of the BLAS\n", what);
        failures++;
    }
    if (called != want_calls) {
        printf("%s: the BLAS was called %d times, not %d\n", what, called, want_calls);
        failures++;
    }
    fill();
}

/* Runs a call here, then the same in the BLAS; `large` is whether it should come here. */
#define BOTH(what, large, ours_call, theirs_call) do { \
        const int before = *calls; \
        int called; \
        \
        ours_call; \
        called = *calls - before; \
        theirs_call; \
        expect(what, called, !(large)); \
    } while (0)

/* ---- products --------------------------------------------------------------------------- */

static const struct {
    int layout, ta, tb, m, n, k, lda, ldb, ldc, large;
    double alpha, beta;
} products[] = {
    { ROW, N, N, 12, 17, 33, 33, 17, 17, 1, 1, 0 },
    { ROW, N, N, 12, 17, 33, 40, 20, 19, 1, 2, 1 },
    { ROW, N, T, 12, 17, 33, 35, 33, 18, 1, 1, -1 },
    { ROW, T, N, 12, 17, 33, 13, 17, 17, 1, 1, 0 },
    { COL, N, N, 17, 12, 33, 17, 33, 17, 1, 1, 0 },
    { COL, T, N, 17, 12, 33, 40, 41, 20, 1, -1, 1 },
    { COL, T, T, 17, 12, 33, 33, 12, 17, 1, 1, 0 },
    { ROW, N, N, 1, 60, 60, 60, 60, 60, 1, 1, 0 },
    { ROW, N, N, 60, 1, 60, 60, 1, 1, 1, 1, 0 },
    { ROW, N, N, 9, 9, 9, 9, 9, 9, 0, 1, 0 },
    { COL, N, N, 9, 9, 9, 10, 11, 12, 0, 2, 1 },
    { ROW, N, N, 12, 17, 33, 33, 17, 17, 1, 0, 2 },
    { ROW, N, N, 12, 17, 0, 1, 17, 17, 0, 1, 2 },
};

static void products_right(int has_f64)
{
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        const int l = products[i].layout, ta = products[i].ta, tb = products[i].tb, m = products[i].m;
        const int n = products[i].n, k = products[i].k, lda = products[i].lda, ldb = products[i].ldb;
        const int ldc = products[i].ldc, large = products[i].large;
        const double alpha = products[i].alpha, beta = products[i].beta;
        char what[100];

        snprintf(what, sizeof what, "product %zu", i);
        BOTH(what, large,
             ours.sgemm(l, ta, tb, m, n, k, (float)alpha, a_s + 3, lda, b_s + 1, ldb, (float)beta, c_s, ldc),
             theirs.sgemm(l, ta, tb, m, n, k, (float)alpha, a_s + 3, lda, b_s + 1, ldb, (float)beta, want_s,
                          ldc));
        if (i % 3)
            continue;
        BOTH(what, large && has_f64,
             ours.dgemm(l, ta, tb, m, n, k, alpha, a_d, lda, b_d + 3, ldb, beta, c_d + 1, ldc),
             theirs.dgemm(l, ta, tb, m, n, k, alpha, a_d, lda, b_d + 3, ldb, beta, want_d + 1, ldc));
    }
}

static void other_forms_right(void)
{
    static const int n = 12, k = 33, trans = N, three = 3;
    static const float one = 1, zero = 0;
    const float *as[] = { a_s, a_s + 40, a_s + 80 }, *bs[] = { b_s, b_s + 9, b_s + 90 };
    float *cs[] = { c_s, c_s + 200, c_s + 400 };

    BOTH("64-bit integers", 1, ours.dgemm_64(ROW, N, N, 12, 17, 33, 1, a_d, 33, b_d, 17, 0, c_d, 17),
         theirs.dgemm(ROW, N, N, 12, 17, 33, 1, a_d, 33, b_d, 17, 0, want_d, 17));
    BOTH("Fortran", 1, ours.fortran("T", "n", &n, &n, &k, &one, a_s, &k, b_s, &k, &zero, c_s, &n, 1, 1),
         theirs.sgemm(COL, T, N, n, n, k, 1, a_s, k, b_s, k, 0, want_s, n));
    BOTH("a matrix by a vector", 1, ours.sgemv(ROW, N, 60, 50, 1, a_s, 55, b_s, 2, 1, c_s, 3),
         theirs.sgemv(ROW, N, 60, 50, 1, a_s, 55, b_s, 2, 1, want_s, 3));
    BOTH("a transposed matrix by a vector", 1, ours.sgemv(COL, T, 60, 50, 1, a_s, 64, b_s, 1, 0, c_s, 1),
         theirs.sgemv(COL, T, 60, 50, 1, a_s, 64, b_s, 1, 0, want_s, 1));
    BOTH("a vector backwards", 0, ours.sgemv(ROW, N, 60, 50, 1, a_s, 55, b_s, -1, 1, c_s, 1),
         theirs.sgemv(ROW, N, 60, 50, 1, a_s, 55, b_s, -1, 1, want_s, 1));
    BOTH("a batch by steps", 1,
         ours.strided(ROW, N, N, n, n, k, 1, a_s, k, n * k, b_s, n, 0, 0, c_s, n, 200, 3),
         for (int i = 0; i < 3; i++)
             theirs.sgemm(ROW, N, N, n, n, k, 1, a_s + i * n * k, k, b_s, n, 0, want_s + i * 200, n));
    BOTH("a batch by pointers", 1,
         ours.batch(ROW, &trans, &trans, &n, &n, &k, &one, as, &k, bs, &n, &zero, cs, &n, 1, &three),
         for (int i = 0; i < 3; i++)
             theirs.sgemm(ROW, N, N, n, n, k, 1, as[i], k, bs[i], n, 0, want_s + (cs[i] - c_s), n));
}

/* ---- threads and children ------------------------------------------------------------------ */

static void *multiply(void *result)
{
    for (int i = 0; i < 20; i++)
        ours.sgemm(ROW, N, N, 12, 17, 33, 1, a_s, 33, b_s, 17, 0, result, 17);
    return NULL;
}

static void threads_right(void)
{
    static float c[THREADS][12 * 17];
    pthread_t thread[THREADS];

    theirs.sgemm(ROW, N, N, 12, 17, 33, 1, a_s, 33, b_s, 17, 0, want_s, 17);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, multiply, c[i])) {
            printf("no thread can be made\n");
            exit(1);
        }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        cases++;
        if (memcmp(c[i], want_s, sizeof c[i])) {
            printf("thread %d: another result\n", i);
            failures++;
        }
    }
    fill();
}

static int exit_of(pid_t child)
{
    int status;

    return child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ? -1 : WEXITSTATUS(status);
}

/* The child of a process that has a device leaves everything to the BLAS. */
static void child_right(void)
{
    const pid_t child = fork();

    if (child == 0) {
        alarm(PATIENCE);
        failures = 0;
        BOTH("in a child", 0, ours.sgemm(ROW, N, N, 12, 17, 33, 1, a_s, 33, b_s, 17, 0, c_s, 17),
             theirs.sgemm(ROW, N, N, 12, 17, 33, 1, a_s, 33, b_s, 17, 0, want_s, 17));
        fflush(stdout);
        _exit(failures != 0);
    }
    cases++;
    if (exit_of(child)) {
        printf("the child of fork() failed\n");
        failures++;
    }
}

/* ---- ------------------------------------------------------------------------------------- */

static void *library(const char *file)
{
    void *const l = dlopen(file, RTLD_NOW | RTLD_LOCAL);

    if (!l) {
        printf("%s\n", dlerror());
        exit(1);
    }
    return l;
}

static void load(void)
{
    void *const shim = library(SHIM), *const blas = library(BLAS);

    ours.sgemm = (sgemm *)dlsym(shim, "cblas_sgemm");
    ours.dgemm = (dgemm *)dlsym(shim, "cblas_dgemm");
    ours.dgemm_64 = (dgemm_64 *)dlsym(shim, "scipy_cblas_dgemm64_");
    ours.sgemv = (sgemv *)dlsym(shim, "cblas_sgemv");
    ours.fortran = (sgemm_fortran *)dlsym(shim, "sgemm_");
    ours.strided = (sgemm_strided *)dlsym(shim, "cblas_sgemm_batch_strided");
    ours.batch = (sgemm_batch *)dlsym(shim, "cblas_sgemm_batch");
    theirs.sgemm = (sgemm *)dlsym(blas, "cblas_sgemm");
    theirs.dgemm = (dgemm *)dlsym(blas, "cblas_dgemm");
    theirs.sgemv = (sgemv *)dlsym(blas, "cblas_sgemv");
    calls = dlsym(blas, "fake_blas_calls");
}

/* In a process of its own, on another device: 0, 1, or SKIPPED where there is none. */
static void in_process(const char *self, const char *mode)
{
    const pid_t child = fork();
    int status;

    if (child == 0) {
        execl(self, self, mode, (char *)NULL);
        _exit(1);
    }
    status = exit_of(child);
    cases++;
    if (status == SKIPPED)
        printf("left out: %s\n", mode);
    else if (status) {
        printf("%s: failed\n", mode);
        failures++;
    }
}

static int has_device(void)
{
    void *const l = dlopen("libvernier.so.0", RTLD_NOW | RTLD_NOLOAD);
    vn_status (*const open)(vn_device **, const char *) =
        l ? (vn_status (*)(vn_device **, const char *))dlsym(l, "vn_device_open") : NULL;
    vn_device *d;

    return open && open(&d, NULL) == VN_OK;
}

static int one_mode(const char *mode)
{
    const int is_absent = !strcmp(mode, "no device");

    load();
    fill();
    if (!is_absent && !has_device())
        return SKIPPED;
    for (int m = 30; m < 33; m++) {
        BOTH(mode, !is_absent, ours.sgemm(ROW, N, T, m, 17, 33, 1, a_s, 40, b_s, 33, 1, c_s, 19),
             theirs.sgemm(ROW, N, T, m, 17, 33, 1, a_s, 40, b_s, 33, 1, want_s, 19));
        BOTH(mode, !is_absent, ours.sgemm(ROW, N, T, m, 17, 33, 1, a_s, 33, b_s, 33, 0, c_s, 17),
             theirs.sgemm(ROW, N, T, m, 17, 33, 1, a_s, 33, b_s, 33, 0, want_s, 17));
    }
    return failures != 0;
}

int main(int argc, char **argv)
{
    char from[20];

    snprintf(from, sizeof from, "%d", FROM);
    setenv("VERNIER_BLAS", BLAS, 1);
    setenv("VERNIER_BLAS_FROM", from, 1);
    if (argc > 1) {
        setenv("VERNIER_DEVICE", !strcmp(argv[1], "no device") ? "no such device" : "rusticl", 1);
        setenv("RUSTICL_ENABLE", "llvmpipe", 1);
        return one_mode(argv[1]);
    }
    in_process(argv[0], "no device");
    in_process(argv[0], "a device with copies (rusticl)");
    load();
    if (!has_device()) {
        printf("skipped: there is no device\n");
        return SKIPPED;
    }
    fill();
    products_right(1);
    other_forms_right();
    threads_right();
    child_right();
    printf("%d cases, %d failures\nCOUNT cblas %d\n", cases, failures, cases);
    return failures != 0;
}
