/* SPDX-License-Identifier: Apache-2.0
 *
 * ratio.c - from which size on libvernier_cblas.so is faster than a BLAS: the BLAS's time over its own.
 *
 *     VERNIER_BLAS_FROM=0 ./ratio FILE-OF-THE-SHIM FILE-OF-THE-BLAS [MxNxK...]
 *
 * Both run alternately in one process, each behind a pause in which the other's threads come to rest: those
 * of OpenBLAS spin for a while after a product.  A sample is the median of the ratios of neighbours.  All
 * shapes are gone through five times, so that what disturbs one sample of a shape disturbs no other; a line
 * has the median of its five samples, the least and the largest of them, and what all five agree on.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, SAMPLES = 5, ROUNDS = 11, MOST = 3000 };
static const double SAMPLE = 3e-3;     /* seconds that the calls of one round take */

typedef void sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float,
                   float *, int);
typedef void dgemm(int, int, int, int, int, int, double, const double *, int, const double *, int, double,
                   double *, int);

struct library {
    sgemm *s;
    dgemm *d;
};

static const int shapes[][3] = {
    { 16, 16, 16 }, { 32, 32, 32 }, { 64, 64, 64 }, { 96, 96, 96 }, { 128, 128, 128 }, { 192, 192, 192 },
    { 256, 256, 256 }, { 384, 384, 384 }, { 512, 512, 512 }, { 768, 768, 768 }, { 1024, 1024, 1024 },
    { 2048, 2048, 2048 },
    { 1, 512, 512 }, { 1, 1024, 1024 }, { 1, 2048, 2048 }, { 1, 4096, 4096 },
    { 512, 1, 512 }, { 2048, 1, 2048 }, { 4096, 1, 4096 },
    { 16, 1024, 1024 }, { 1024, 16, 1024 }, { 1024, 1024, 16 }, { 64, 2048, 2048 }, { 4096, 64, 64 },
    { 100, 3000, 1000 },
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double seconds(const struct library *l, int is_f64, const int *s, const void *a, const void *b,
                      void *c, int repeats)
{
    const double begin = now();

    for (int i = 0; i < repeats; i++)
        if (is_f64)
            l->d(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, s[0], s[1], s[2], 1, a, s[2], b, s[1], 0, c, s[1]);
        else
            l->s(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, s[0], s[1], s[2], 1, a, s[2], b, s[1], 0, c, s[1]);
    return (now() - begin) / repeats;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static struct library library_of(const char *file)
{
    void *const l = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    struct library out;

    if (!l)
        errx(2, "%s", dlerror());
    out = (struct library){ (sgemm *)dlsym(l, "cblas_sgemm"), (dgemm *)dlsym(l, "cblas_dgemm") };
    if (!out.s || !out.d)
        errx(2, "%s has no cblas_sgemm and cblas_dgemm", file);
    return out;
}

/* Random elements between -1 and 1, in the type. */
static void *elements(size_t count, int is_f64)
{
    void *const out = aligned_alloc(64, (count * 8 + 63) / 64 * 64);
    uint64_t state = 1;

    if (!out)
        err(2, "%zu elements", count);
    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        if (is_f64)
            ((double *)out)[i] = (double)(int32_t)(state >> 32) / 2147483648.0;
        else
            ((float *)out)[i] = (float)(int32_t)(state >> 32) / 2147483648.0f;
    }
    return out;
}

static double median(double *of, int count)
{
    qsort(of, (size_t)count, sizeof *of, ascending);
    return of[count / 2];
}

static double rested(const struct library *l, int is_f64, const int *s, const void *a, const void *b, void *c,
                     int repeats)
{
    static const struct timespec rest = { .tv_nsec = 25000000 };

    nanosleep(&rest, NULL);
    seconds(l, is_f64, s, a, b, c, 1);          /* wakes its threads */
    return seconds(l, is_f64, s, a, b, c, repeats);
}

/* What is known of a shape. */
struct line {
    int    is_f64, size[3];
    double ratio[SAMPLES], own[SAMPLES], other[SAMPLES];
};

static void sample(struct line *l, int number, const struct library *ours, const struct library *theirs)
{
    const int *const s = l->size, is_f64 = l->is_f64;
    const size_t m = (size_t)s[0], n = (size_t)s[1], k = (size_t)s[2];
    void *const a = elements(m * k, is_f64), *const b = elements(k * n, is_f64),
                *const c = elements(m * n, is_f64);
    double ratio[ROUNDS], own[ROUNDS], other[ROUNDS], once = 0;
    int repeats, rounds = ROUNDS;

    for (int warm = 0; warm < (number ? 1 : 3); warm++) {
        seconds(ours, is_f64, s, a, b, c, 1);
        once = seconds(theirs, is_f64, s, a, b, c, 1);
    }
    repeats = once > SAMPLE ? 1 : (int)(SAMPLE / once) + 1;
    if (repeats > MOST)
        repeats = MOST;
    if (once > 0.02)
        rounds = 5;
    for (int r = 0; r < rounds; r++) {          /* each of them first, in turn */
        if (r % 2)
            own[r] = rested(ours, is_f64, s, a, b, c, repeats);
        other[r] = rested(theirs, is_f64, s, a, b, c, repeats);
        if (!(r % 2))
            own[r] = rested(ours, is_f64, s, a, b, c, repeats);
        ratio[r] = other[r] / own[r];
    }
    l->ratio[number] = median(ratio, rounds);
    l->own[number] = median(own, rounds);
    l->other[number] = median(other, rounds);
    free(a);
    free(b);
    free(c);
}

static void print(struct line *l)
{
    const double middle = median(l->ratio, SAMPLES), least = l->ratio[0], most = l->ratio[SAMPLES - 1];

    printf("%-5s %5d %5d %5d %12.1f %12.1f %7.2f   %5.2f %5.2f   %s\n", l->is_f64 ? "f64" : "f32",
           l->size[0], l->size[1], l->size[2], 1e6 * median(l->own, SAMPLES), 1e6 * median(l->other, SAMPLES),
           middle, least, most, least > 1 ? "faster" : most < 1 ? "slower" : "neither");
}

static struct line line_of(int is_f64, const int *s)
{
    return (struct line){ .is_f64 = is_f64, .size = { s[0], s[1], s[2] } };
}

int main(int argc, char **argv)
{
    enum { SHAPES = sizeof shapes / sizeof *shapes };
    struct line *lines;
    int count = 0;

    if (argc < 3)
        errx(2, "usage: ratio FILE-OF-THE-SHIM FILE-OF-THE-BLAS [MxNxK...]");

    const struct library ours = library_of(argv[1]), theirs = library_of(argv[2]);

    if (!(lines = calloc((size_t)(argc > 3 ? argc - 3 : SHAPES) * 2, sizeof *lines)))
        err(2, "a line for each shape");
    for (int is_f64 = 0; is_f64 < 2; is_f64++) {
        for (int i = 3; i < argc; i++) {
            int s[3];

            if (sscanf(argv[i], "%dx%dx%d", &s[0], &s[1], &s[2]) != 3 || s[0] < 1 || s[1] < 1 || s[2] < 1)
                errx(2, "a product is %s; it needs three sizes, MxNxK", argv[i]);
            lines[count++] = line_of(is_f64, s);
        }
        for (int i = 0; argc == 3 && i < SHAPES; i++)
            lines[count++] = line_of(is_f64, shapes[i]);
    }
    for (int number = 0; number < SAMPLES; number++)
        for (int i = 0; i < count; i++)
            sample(&lines[i], number, &ours, &theirs);
    printf("%-5s %5s %5s %5s %12s %12s %7s   %5s %5s   this library is\n", "type", "M", "N", "K", "ours, us",
           "theirs, us", "ratio", "least", "most");
    for (int i = 0; i < count; i++)
        print(&lines[i]);
    free(lines);
    return 0;
}
