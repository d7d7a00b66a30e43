/* SPDX-License-Identifier: Apache-2.0
 *
 * test_warm.c - a second process finds its kernels built: with PoCL, which dies of a
 * damaged binary, and compiles a kernel only when it is launched.
 */
#define _GNU_SOURCE
#include "core.h"
#include "../disk.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum outcome { BUILT = 1, LOADED, FAILED, GAVE_WRONG, NO_DEVICE = 77 };   /* exit status of a process */

static int  cases, failures, builds;
static char base[PATH], dir[PATH], entry[PATH];

__attribute__((format(printf, 2, 3)))
static void check(int good, const char *what, ...)
{
    va_list ap;

    cases++;
    if (good)
        return;
    failures++;
    printf("FAIL warm: ");
    va_start(ap, what);
    vprintf(what, ap);
    va_end(ap);
    printf("\n");
}

static const char *const tile_text =
    "#define STEP(i) c##i = fma((float16)a[12 * k + i], b, c##i);\n"
    "#define OUT(i) vstore16(c##i, i, c);\n"
    "#define ALL(_) _(0) _(1) _(2) _(3) _(4) _(5) _(6) _(7) _(8) _(9) _(10) _(11)\n"
    "__kernel __attribute__((reqd_work_group_size(1, 1, 1)))\n"
    "void tile(__global const float *a, __global float *c, int n)\n"
    "{\n"
    "    float16 c0 = 0, c1 = 0, c2 = 0, c3 = 0, c4 = 0, c5 = 0, c6 = 0, c7 = 0, c8 = 0, c9 = 0, c10 = 0, "
    "c11 = 0;\n"
    "    for (int k = 0; k < n; k++) { float16 b = vload16(k, a); ALL(STEP) }\n"
    "    ALL(OUT)\n"
    "}\n";

static struct vn_backend counting;        /* the real one, but it counts builds */

static vn_status counting_build(void **out, vn_device *d, const char *text)
{
    builds++;
    return vn__opencl.program_build(out, d, text);
}

/* Of all threads of this process; other processes do not add to it. */
static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* a[i] = i & 7, so that the sums are exact.  Gives an outcome. */
static int run(void)
{
    enum { N = 16, IN = 12 * N + 16 * N, OUT = 12 * 16 };
    float a[IN], c[OUT];
    vn_buffer *from, *to;
    struct vn_launch l = { .groups = { 1, 1, 1 }, .items = 1 };
    void *program, *kernel;
    vn_device *d;
    vn_queue *q;
    double began;
    int right = 1;

    if (vn_device_open(&d, "Portable"))
        return NO_DEVICE;
    counting = *d->backend;
    counting.program_build = counting_build;
    d->backend = &counting;
    for (int i = 0; i < IN; i++)
        a[i] = (float)(i & 7);
    if (vn_queue_open(&q, d) || vn_buffer_open(&from, d, sizeof a) || vn_buffer_open(&to, d, sizeof c)
        || vn_write(q, from, 0, a, sizeof a))
        return FAILED;
    vn__arg_buffer(&l, from);
    vn__arg_buffer(&l, to);
    vn__arg_int(&l, N);

    began = cpu_seconds();
    if (vn__cache_build(&program, NULL, d, tile_text) || counting.kernel_open(&kernel, d, program, "tile")
        || counting.launch(q, kernel, &l) || counting.finish(q))
        return FAILED;
    printf("%.6f\n", cpu_seconds() - began);
    if (vn_read(q, c, to, 0, sizeof c))
        return FAILED;
    for (int i = 0; i < OUT; i++) {
        float sum = 0;

        for (int k = 0; k < N; k++)
            sum += a[12 * k + i / 16] * a[16 * k + i % 16];
        right &= c[i] == sum;
    }
    counting.kernel_close(kernel);
    vn__cache_close(d, program);
    vn_buffer_close(from);
    vn_buffer_close(to);
    vn_queue_close(q);
    vn_device_close(d);
    return !right ? GAVE_WRONG : builds ? BUILT : LOADED;
}

/* In a new process, and with PoCL's own cache empty if asked to. */
static int start(double *seconds, int empty)
{
    char pocl[PATH + 16], line[64] = "";
    int status, ends[2];
    pid_t child;

    snprintf(pocl, sizeof pocl, "%s/pocl", base);
    if (empty)
        wipe(pocl);
    mkdir(pocl, 0700);
    setenv("POCL_CACHE_DIR", pocl, 1);
    setenv("VERNIER_CACHE_DIR", dir, 1);
    if (pipe(ends))
        return FAILED;
    if ((child = fork()) == 0) {
        dup2(ends[1], 1);
        execl("/proc/self/exe", "test_warm", "run", (char *)NULL);
        _exit(126);
    }
    close(ends[1]);
    if (read(ends[0], line, sizeof line - 1) > 0)
        *seconds = atof(line);
    close(ends[0]);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int warm_start(void)
{
    double cold = 0, warm = 0, any;
    static unsigned char bad[1 << 20];
    size_t bytes;
    int s;

    wipe(dir);
    if ((s = start(&cold, 1)) == NO_DEVICE) {
        printf("warm: no PoCL here\n");
        return NO_DEVICE;
    }
    check(s == BUILT, "PoCL, first process: %d", s);
    s = start(&warm, 1);
    check(s == LOADED, "PoCL, second process: %d", s);
    printf("warm: PoCL's first result after %.1f ms of CPU time cold, %.1f ms warm\n", 1e3 * cold,
           1e3 * warm);
    check(warm < cold / 10, "PoCL, second process: %.1f ms of CPU time, not under a tenth of %.1f ms",
          1e3 * warm, 1e3 * cold);

    check(look(dir, entry) == 1, "PoCL, one entry");
    bytes = get(entry, bad, sizeof bad);
    for (size_t i = 0; i < 20; i++) {
        put(entry, bad, bytes * i / 20);
        s = start(&any, 0);
        check(s == BUILT, "PoCL, entry truncated to %zu of %zu bytes: %d", bytes * i / 20, bytes, s);

        bad[bytes - 1 - i * bytes / 25] ^= 4;
        put(entry, bad, bytes);
        s = start(&any, 0);
        check(s == BUILT, "PoCL, byte %zu of %zu flipped: %d", bytes - 1 - i * bytes / 25, bytes, s);
        bad[bytes - 1 - i * bytes / 25] ^= 4;
    }
    s = start(&any, 1);
    check(s == LOADED, "PoCL, the entry is good again: %d", s);
    return failures != 0;
}

int main(int count, char **argument)
{
    int status;

    if (count > 1 && strcmp(argument[1], "run") == 0)
        return run();
    make_base(base);
    snprintf(dir, sizeof dir, "%.*s/cache", PATH / 2, base);
    unsetenv("VERNIER_CACHE");
    status = warm_start();
    wipe(base);
    printf("COUNT cache %d\n", cases);
    return status;
}
