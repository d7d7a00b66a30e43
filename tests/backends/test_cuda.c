/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cuda.c - the CUDA backend and NVIDIA's libraries without a GPU, by fakes of them.
 *
 * Each scene runs in a process of its own, since a library is loaded once: with libraries
 * missing, empty, or of a version that cannot be used; and all of them there, when each call
 * fails in turn, once or from then on.  Then the right status, a sentence, nothing left open.
 */
#define _GNU_SOURCE
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../disk.h"
#include "../fakes/fake.h"
#include "check/oracle.h"
#include "problem/problem.h"
#include "vernier_cuda.h"

struct fake fake;

static char base[PATH];
static const char *scene;
static int checks, wrong;

#define CHECK(it) (checks++, (it) ? (void)0 : fail(#it, __LINE__))

static void fail(const char *it, int line)
{
    if (wrong++ < 20)
        printf("FAIL: %s, line %d: %s (%s)\n", scene, line, it, vn_last_error());
}

int fake_fails(const char *call)
{
    fake.calls++;
    if (!fake.fail_at || fake.calls < fake.fail_at || (fake.calls > fake.fail_at && !fake.persistent))
        return 0;
    if (!fake.failed)
        fake.failed = call;
    return 1;
}

void fake_complain(const char *call, const char *what)
{
    if (!fake.complaints++)
        snprintf(fake.complaint, sizeof fake.complaint, "%s needs %s", call, what);
}

/* ---- which libraries there are ---------------------------------------------------------- */

enum library { CUDA, NVRTC, CUBLAS, CUBLASLT, CUDNN, LIBRARIES };
enum state { THERE, MISSING, EMPTY };

static const struct { const char *name, *fake; } libraries[LIBRARIES] = {
    [CUDA]     = { "libcuda.so.1",      "cuda" },
    [NVRTC]    = { "libnvrtc.so.13",    "nvrtc" },
    [CUBLAS]   = { "libcublas.so.13",   "cublas" },
    [CUBLASLT] = { "libcublasLt.so.13", "cublas" },
    [CUDNN]    = { "libcudnn.so.9",     "cudnn" },
};

/* An empty library is another one's: it has none of the functions. */
static void install(const enum state *states)
{
    char directory[PATH + 16], path[PATH + 64], from[PATH];

    snprintf(directory, sizeof directory, "%s/libraries", base);
    wipe(directory);
    mkdir(directory, 0700);
    for (int i = 0; i < LIBRARIES; i++) {
        const char *name = states[i] == EMPTY ? i == CUDA ? "cudnn" : "cuda" : libraries[i].fake;

        snprintf(path, sizeof path, "%s/%s", directory, libraries[i].name);
        snprintf(from, sizeof from, "%s/%s.so", FAKES, name);
        if (states[i] != MISSING)
            CHECK(symlink(from, path) == 0);
    }
    setenv("VERNIER_CUDA_LIBRARY_PATH", directory, 1);
}

/* Numerical notes of cuDNN's engines. */
enum { TENSOR_CORE = 0, DOWN_CONVERT = 1, REDUCED_SUMS = 2, FFT = 3, WINOGRAD = 5, STRICT_NAN = 9 };

static void reset(void)
{
    fake = (struct fake){ .driver_version = 13000, .devices = 1, .cublas_major = 13, .cublaslt_major = 13,
                          .cudnn_version = 91900,
                          .older = 2, .engines = 2,
                          .engine = { { .note = WINOGRAD, .milliseconds = 0.1f },
                                      { .note = STRICT_NAN, .milliseconds = 1 } } };
}

static int open_things(void)
{
    return fake.contexts + fake.depth + fake.streams + fake.events + fake.modules + fake.buffers +
           fake.programs + fake.handles + fake.descriptors;
}

/* ---- what is done with them ----------------------------------------------------------------- */

struct work { vn_device *d; vn_queue *q; vn_buffer *b[5]; vn_event *from, *to; struct operands o; };

enum { ROOM = 1 << 16, TIMED = 7 };         /* TIMED: how often cuDNN's candidates run */

/* Runs a problem of the little language on the buffers that there are. */
static vn_status solve(struct work *w, const char *text)
{
    struct problem p;
    char why[256];

    if (problem_parse(&p, text, why, sizeof why) || problem_operands(&w->o, &p)) {
        printf("%s: %s\n", text, why);
        exit(2);
    }
    for (int i = 0; i < w->o.count; i++)
        w->o.t[i].buffer = w->b[i];
    return problem_run(w->q, &p, &w->o);
}

static const char *const problems[] = {
    "gemm:64x64x64:f32:nn",
    "softmax:12x32:f32",
    "gemm:20x24x28:f32:tn:variant=cublas:gap=4:batch=2",
    "gemm:20x24x28:f64:tt:variant=cublas:beta=1",
    "gemm:20x24x28:f32:nt:variant=cublas:bias=row:act=gelu:batch=2",
    "gemm:20x24x28:f32:nt:variant=cublas:bias=row:act=gelu:batch=2",
    "conv:n2c4h8w9k8r3s3:f32:nchw:forward:variant=cudnn:pad=1",
    "conv:n2c4h8w9k8r3s3:f32:nhwc:backward-data:variant=cudnn:pad=1",
    "conv:n2c4h8w9k8r3s3:f32:nchw:backward-filter:variant=cudnn:pad=1",
    "conv:n2c4h8w9k8r3s3:f32:nchw:backward-filter:variant=cudnn:pad=1",
    "conv:n2c4h8w9k8r3s3:f32:nhwc:forward:variant=cudnn:pad=1:bias:act=relu:beta=1:residual=full",
    "conv:n2c4h8w9k8r3s3:f32:nchw:forward:variant=cudnn:pad=1:act=relu",
    "conv:n2c4h8w9k8r3s3:f32:nchw:forward:variant=cudnn:pad=1:act=relu",
    "softmax:12x32:f32:variant=cudnn",
    "softmax:12x32:f32:backward:log:variant=cudnn:scale=2",
};
enum { PROBLEMS = sizeof problems / sizeof *problems };

static vn_status open_all(struct work *w)
{
    vn_status s;

    if ((s = vn_device_open(&w->d, "cuda:0")) || (s = vn_queue_open(&w->q, w->d)))
        return s;
    for (int i = 0; i < 5; i++)
        if ((s = vn_buffer_open(&w->b[i], w->d, ROOM)))
            return s;
    return VN_OK;
}

/* Patterns of each size, copied, read without waiting. */
static vn_status move_bytes(struct work *w)
{
    static unsigned char to[64];
    static const unsigned char pattern[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    vn_event *e = NULL;
    vn_status s;

    for (size_t size = 1; size < 16; size *= 2) {
        if ((s = vn_write_async(w->q, w->b[3], 0, pattern, sizeof pattern)) ||
            (s = vn_fill(w->q, w->b[3], 8, 32, pattern, size)) ||
            (s = vn_copy(w->q, w->b[2], 64, w->b[3], 0, sizeof to)) ||
            (s = vn_read_async(w->q, to, w->b[2], 64, sizeof to)) || (s = vn_event_record(&e, w->q)))
            return s;
        if ((s = vn_event_finish(e))) {
            w->to = e;                          /* closed with the others: closing clears the sentence */
            return s;
        }
        vn_event_close(e);
        for (int i = 0; i < 40; i++)
            CHECK(to[i] == pattern[i < 8 ? (size_t)i : (size_t)i % size]);
    }
    return VN_OK;
}

static vn_status use_all(struct work *w)
{
    static float host[ROOM / sizeof(float)];
    double seconds;
    vn_status s;

    if ((s = vn_write(w->q, w->b[0], 0, host, sizeof host)) || (s = vn_event_record(&w->from, w->q)))
        return s;
    for (int i = 0; i < PROBLEMS; i++)
        if ((s = solve(w, problems[i])))
            return s;
    if ((s = move_bytes(w)) || (s = vn_event_record(&w->to, w->q)) || (s = vn_queue_wait(w->q, w->from)) ||
        (s = vn_event_seconds(&seconds, w->from, w->to)) ||
        (s = vn_read(w->q, host, w->b[2], 0, sizeof host)))
        return s;
    return vn_queue_finish(w->q);
}

static void close_all(struct work *w)
{
    vn_event_close(w->from);
    vn_event_close(w->to);
    for (int i = 0; i < 5; i++)
        vn_buffer_close(w->b[i]);
    vn_queue_close(w->q);
    vn_device_close(w->d);
}

/* The sentence is kept, as closing things clears it. */
static vn_status work(char sentence[512])
{
    struct work w = { NULL, NULL, { NULL }, NULL, NULL, { 0 } };
    vn_status s = open_all(&w);

    if (!s)
        s = use_all(&w);
    snprintf(sentence, 512, "%s", vn_last_error());
    close_all(&w);
    return s;
}

/* ---- scenes: everything is there ---------------------------------------------------------------- */

static void all_is_well(void)
{
    char sentence[512];

    CHECK(work(sentence) == VN_OK);
    if (*sentence)
        puts(sentence);
    CHECK(fake.launches > 0);
    /* cuDNN's ways with an epilogue are timed: the function and an engine of a graph, or the latter alone;
     * and those without one: of three plans, an algorithm and an engine */
    CHECK(fake.foreign == PROBLEMS - 2 + 3 * TIMED + 3 * 2 * TIMED);
    CHECK(fake.searches == 2 + 3 * 3);          /* a plan is remembered: three problems came again */
    CHECK(fake.slow == 0);                      /* though a search may find the fastest algorithm slow */
    CHECK(open_things() == 0);
}

static void large_local_memory(void)
{
    char sentence[512];

    fake.large_local = 200000;
    CHECK(work(sentence) == VN_OK);
    CHECK(fake.shared_asked == 200000 && fake.shared_given == 200000);
}

/* The parent has run all_is_well with this cache, so there is nothing to compile. */
static void cubins_are_kept(void)
{
    char sentence[512];

    setenv("VERNIER_CACHE", "1", 1);
    CHECK(work(sentence) == VN_OK);
    const int compiled = fake.compiled, loaded = fake.loaded;

    CHECK(compiled > 0);
    CHECK(work(sentence) == VN_OK);
    CHECK(fake.compiled - compiled < compiled);         /* what failed its trial is not kept */
    CHECK(fake.loaded > loaded);
}

static void compile_errors_are_told(void)
{
    char sentence[512];

    fake.compile_error = 1;
    CHECK(work(sentence) == VN_FAILED);
    CHECK(strstr(sentence, "vernier.cu(7): error: a word is missing"));
    CHECK(open_things() == 0);
}

static void memory_runs_out(void)
{
    char sentence[512];

    fake.out_of_memory = 1;
    CHECK(work(sentence) == VN_NO_MEMORY);
    CHECK(strstr(sentence, "CUDA_ERROR_OUT_OF_MEMORY"));
    CHECK(open_things() == 0);
}

/* The second time, when the libraries are loaded. */
static long count_calls(void)
{
    char sentence[512];

    for (int i = 0; i < 2; i++) {
        reset();
        fake.large_local = 65536;
        CHECK(work(sentence) == VN_OK);
    }
    return fake.calls;
}

/* Some calls may fail and nobody minds: a trial that fails, the second of two ways. */
static void fail_each(int persistent)
{
    const long calls = count_calls();
    char sentence[512];

    CHECK(calls > 100);
    for (long n = 1; n <= calls; n++) {
        vn_status s;

        reset();
        fake.large_local = 65536;
        fake.fail_at = n;
        fake.persistent = persistent;
        s = work(sentence);
        CHECK(s == VN_OK || s == VN_FAILED || s == VN_UNSUPPORTED || s == VN_NO_DEVICE || s == VN_INVALID);
        CHECK(!s == !*sentence);
        CHECK(!s || strncmp(sentence, "vn_", 3) == 0);
        CHECK(fake.depth == 0 && fake.complaints == 0);
        if (!fake.failed || fake.complaints) {
            printf("call %ld of %ld, %s: %s\n", n, calls, fake.failed ? fake.failed : "not reached",
                   fake.complaint);
            continue;
        }
        if (persistent || !strcmp(fake.failed, "cuCtxPushCurrent_v2"))
            continue;                   /* without its context nothing can be given back */
        CHECK(open_things() == 0);
        if (open_things())
            printf("%s, call %ld, left %d open: %s\n", fake.failed, n, open_things(), sentence);
    }
    reset();
    CHECK(work(sentence) == VN_OK && open_things() == 0);
}

static void each_call_fails_once(void)  { fail_each(0); }
static void each_call_fails_on(void)    { fail_each(1); }

/* ---- scenes: rows that prefer a vendor's library ------------------------------------------------ */

static void prefer(void)
{
    static const char rows[] =
        "columns cublas PREFERRED\ncublas nvidia/sm_90/* cuda f32 * 1\n"
        "columns cudnn CONV SOFTMAX\ncudnn * * * * 0 1\n";
    char path[PATH + 16];

    snprintf(path, sizeof path, "%s/user.tune", base);
    put(path, rows, strlen(rows));
    setenv("VERNIER_TUNE", path, 1);
}

static void solve_plainly(struct work *w)
{
    CHECK(open_all(w) == VN_OK);
    CHECK(solve(w, "gemm:20x24x28:f32:nn") == VN_OK);
    CHECK(solve(w, "softmax:12x32:f32") == VN_OK);
    CHECK(solve(w, "conv:n2c4h8w9k8r3s3:f32:nchw:forward") == VN_OK);
}

static void preferred_are_used(void)
{
    struct work w = { NULL, NULL, { NULL }, NULL, NULL, { 0 } };

    prefer();
    solve_plainly(&w);
    CHECK(fake.foreign == 2);                           /* all but the convolution */
    CHECK(solve(&w, "gemm:20x24x28:f64:nn") == VN_OK);
    CHECK(solve(&w, "gemm:20x24x28:f32:nn:act=silu") == VN_OK);
    CHECK(fake.foreign == 2);                           /* another type, and what it cannot do */
    close_all(&w);
    CHECK(open_things() == 0);
}

static void preferred_may_be_missing(void)
{
    struct work w = { NULL, NULL, { NULL }, NULL, NULL, { 0 } };

    prefer();
    solve_plainly(&w);
    CHECK(fake.foreign == 0 && fake.launches >= 3);
    CHECK(strstr(vn_queue_explain(w.q), "cudnn"));
    close_all(&w);
}

/* ---- scenes: cuDNN's graphs beside its algorithms --------------------------------------------------- */

static const char *const convolutions[] = {
    "conv:n2c4h8w9k8r3s3:f32:nchw:forward:variant=cudnn:pad=1",
    "conv:n2c4h8w9k8r3s3:f32:nhwc:backward-data:variant=cudnn:pad=1",
    "conv:n2c4h8w9k8r3s3:f32:nchw:backward-filter:variant=cudnn:pad=1",
    "conv:n2c8h7w7k4r1s1:f32:nhwc:backward-filter:variant=cudnn:stride=2",
    "conv:n2c4h9w8k8r3s2:f32:nhwc:forward:variant=cudnn:stride=2:dil=2:alpha=2:beta=3",
    "conv:n2c4h9w8k8r3s2:f32:nchw:backward-data:variant=cudnn:pad=2x1:dil=1x2:alpha=-1:beta=1",
    "conv:n2c4h9w8k8r3s2:f32:nchw:backward-filter:variant=cudnn:stride=1x2:alpha=2:beta=-2",
    "conv:n2c8h6w6k4r3s3:f32:nchw:forward:variant=cudnn:groups=2:pad=1",
    "conv:n2c8h6w6k4r3s3:f32:nchw:backward-data:variant=cudnn:groups=2:pad=1:beta=1",
    "conv:n2c8h6w6k4r3s3:f32:nhwc:backward-filter:variant=cudnn:groups=2",
    "conv:n2c4w20k8s3:f32:nchw:backward-filter:variant=cudnn:pad=1",
    "conv:n1c4d5h4w6k4t3r2s3:f32:nchw:backward-data:variant=cudnn:pad=1x0x1",
    "conv:n2c4h8w9k8r3s3:f64:nchw:forward:variant=cudnn:alpha=2:beta=1",
    "conv:n2c4h8w9k8r3s3:f64:nchw:backward-data:variant=cudnn",
    "conv:n2c4h8w9k8r3s3:f64:nhwc:backward-filter:variant=cudnn:beta=-1",
};
enum { CONVOLUTIONS = sizeof convolutions / sizeof *convolutions, PLAIN = 3 };

/* Whether the output is the oracle's, for operands of small integers.  One call, on a queue of its own. */
static int is_right(const char *text)
{
    static unsigned char bytes[ROOM];
    static double in[3][ROOM / 4];
    static long double value[ROOM / 4], bound[ROOM / 4];
    struct work w = { NULL, NULL, { NULL }, NULL, NULL, { 0 } };
    struct oracle right = { .value = { [2] = value }, .bound = { [2] = bound } };
    struct problem p;
    char why[256];
    int same = 1;

    CHECK(open_all(&w) == VN_OK);
    if (problem_parse(&p, text, why, sizeof why) || problem_operands(&w.o, &p) || w.o.count < 3) {
        printf("%s: %s\n", text, why);
        exit(2);
    }
    for (int i = 0; i < 3; i++) {
        for (int64_t at = 0; at < w.o.elements[i]; at++) {
            in[i][at] = (double)((at * 7 + at / 3 + i) % 5 - 2);
            oracle_store(w.o.t[i].type, bytes, at, in[i][at]);
        }
        right.in[i] = in[i];
        CHECK(operand_bytes(&w.o, i) <= ROOM &&
              vn_write(w.q, w.b[i], 0, bytes, operand_bytes(&w.o, i)) == VN_OK);
    }
    CHECK(solve(&w, text) == VN_OK && vn_read(w.q, bytes, w.b[2], 0, operand_bytes(&w.o, 2)) == VN_OK);
    right.p = &p;
    right.o = &w.o;
    oracle_run(&right);
    for (int64_t at = 0; at < w.o.elements[2]; at++)
        same &= oracle_load(w.o.t[2].type, bytes, at) == (double)value[at];
    close_all(&w);
    CHECK(open_things() == 0);
    return same;
}

/* Engine `it` is run for the call, too, after it was timed. */
static int is_taken(int it)
{
    return fake.engine[it].ran == TIMED + 1;
}

static void faster_graphs_are_used(void)
{
    for (int i = 0; i < CONVOLUTIONS; i++) {
        reset();
        fake.groups = 2;
        CHECK(is_right(convolutions[i]));
        CHECK(is_taken(1) && fake.engine[0].ran == 0 && fake.older_ran == TIMED);
    }
}

static void faster_algorithms_are_used(void)
{
    for (int i = 0; i < CONVOLUTIONS; i++) {
        reset();
        fake.groups = 2;
        fake.older = 0.5f;
        is_right(convolutions[i]);
        CHECK(fake.engine[1].ran == TIMED && fake.older_ran == TIMED + 1 && fake.slow == 0);
    }
}

/* A plan is of one alpha and one beta, which a graph has in it. */
static void choices_are_remembered(void)
{
    struct work w = { NULL, NULL, { NULL }, NULL, NULL, { 0 } };

    CHECK(open_all(&w) == VN_OK);
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < PLAIN; d++)
            CHECK(solve(&w, convolutions[d]) == VN_OK);
    CHECK(fake.engine[1].ran == PLAIN * (TIMED + 2) && fake.older_ran == PLAIN * TIMED);
    CHECK(solve(&w, "conv:n2c4h8w9k8r3s3:f32:nchw:forward:variant=cudnn:pad=1:alpha=2") == VN_OK);
    CHECK(fake.engine[1].ran == PLAIN * (TIMED + 2) + TIMED + 1);
    close_all(&w);
    CHECK(open_things() == 0);
}

/* Without an engine that can be run nothing is timed. */
static void graphs_may_have_no_engine(void)
{
    for (int way = 0; way < 4; way++)
        for (int i = 0; i < PLAIN; i++) {
            reset();
            if (way == 0)
                fake.engines = 0;
            fake.engine[1].refuses = way == 1;
            fake.engine[1].fails = way == 2;
            if (way == 3)
                fake.engine[1].note = FFT;
            is_right(convolutions[i]);
            CHECK(fake.older_ran == 1 && fake.slow == 0 && fake.engine[0].ran == 0);
            CHECK(fake.engine[1].ran == (way == 2));
        }
}

static void engines_that_fail_are_passed_over(void)
{
    for (int i = 0; i < CONVOLUTIONS; i++) {
        reset();
        fake.groups = 2;
        fake.engines = 4;
        fake.engine[0] = (struct fake_engine){ .note = STRICT_NAN, .milliseconds = 0.1f, .fails = 1 };
        fake.engine[2] = (struct fake_engine){ .note = STRICT_NAN, .milliseconds = 0.2f, .refuses = 1 };
        fake.engine[3] = (struct fake_engine){ .note = STRICT_NAN, .milliseconds = 0.5f };
        CHECK(is_right(convolutions[i]));
        CHECK(fake.engine[0].ran == 1 && fake.engine[1].ran == TIMED && fake.engine[2].ran == 0);
        CHECK(is_taken(3));
    }
}

static void offer(int note, int slower_note)
{
    reset();
    fake.engines = 3;
    fake.engine[0] = (struct fake_engine){ .note = note, .milliseconds = 0.1f };
    fake.engine[1] = (struct fake_engine){ .note = slower_note, .milliseconds = 0.2f };
    fake.engine[2] = (struct fake_engine){ .note = STRICT_NAN, .milliseconds = 1 };
}

/* f32 stays f32 unless the caller allows TF32; f64 has no other type to round to. */
static void engines_round_as_ours(void)
{
    for (int i = 0; i < PLAIN; i++) {
        char text[128];

        offer(TENSOR_CORE, DOWN_CONVERT);
        CHECK(is_right(convolutions[i]));
        CHECK(is_taken(2) && fake.engine[0].ran == 0 && fake.engine[1].ran == 0);
        offer(REDUCED_SUMS, FFT);
        CHECK(is_right(convolutions[i]));
        CHECK(is_taken(2) && fake.engine[0].ran == 0 && fake.engine[1].ran == 0);
        offer(TENSOR_CORE, DOWN_CONVERT);
        fake.tf32 = 1;
        snprintf(text, sizeof text, "%s:math=tf32", convolutions[i]);
        CHECK(is_right(text));
        CHECK(is_taken(0));
        offer(TENSOR_CORE, WINOGRAD);
        CHECK(is_right(convolutions[CONVOLUTIONS - 3 + i]));
        CHECK(is_taken(0) && fake.engine[1].ran == 0);
    }
}

/* ---- scenes: vernier_cuda.h ------------------------------------------------------------------------ */

static void callers_objects(void)
{
    struct CUctx_st *const context = (struct CUctx_st *)&fake;
    struct CUevent_st *event = NULL;
    static float memory[96];
    vn_device *d = NULL;
    vn_queue *q = NULL;
    vn_buffer *b = NULL, *behind = NULL;
    vn_device_info info;

    CHECK(vn_cuda_device_open(&d, NULL) == VN_INVALID && strstr(vn_last_error(), "context is NULL"));
    CHECK(vn_cuda_device_open(NULL, context) == VN_INVALID && strstr(vn_last_error(), "out is NULL"));
    CHECK(vn_cuda_device_open(&d, context) == VN_OK);
    CHECK(vn_device_describe(&info, d) == VN_OK && !strcmp(info.spec, "cuda:0")
          && !strcmp(info.pci, "0000:5a:00.0"));
    CHECK(vn_cuda_queue_open(&q, NULL, NULL) == VN_INVALID);
    CHECK(vn_cuda_queue_open(NULL, d, NULL) == VN_INVALID);
    CHECK(vn_cuda_queue_open(&q, d, NULL) == VN_OK);                    /* the default stream */
    CHECK(vn_cuda_buffer_open(&b, d, 0, 8) == VN_INVALID);
    CHECK(vn_cuda_buffer_open(&b, d, (unsigned long long)(size_t)memory, 256) == VN_OK);
    CHECK(vn_softmax(q, vn_matrix(b, VN_F32, 4, 8), vn_matrix(b, VN_F32, 4, 8), NULL) == VN_OK);
    CHECK(fake.launches == 1);
    CHECK(vn_cuda_buffer_open(&behind, d, (unsigned long long)(size_t)(memory + 32), 256) == VN_OK);
    CHECK(vn_softmax(q, vn_matrix(b, VN_F32, 4, 8), vn_matrix(behind, VN_F32, 4, 8), NULL) == VN_OK);
    CHECK(vn_softmax(q, vn_matrix(b, VN_F32, 11, 3), vn_matrix(behind, VN_F32, 11, 3), NULL) == VN_INVALID);
    CHECK(strstr(vn_last_error(), "y overlaps x"));
    vn_buffer_close(behind);
    CHECK(vn_softmax(q, vn_matrix(b, VN_F32, 9, 8), vn_matrix(b, VN_F32, 9, 8), NULL) == VN_INVALID);
    CHECK(vn_cuda_queue_event(NULL, q) == VN_INVALID);
    CHECK(vn_cuda_queue_event(&event, q) == VN_OK && event && fake.events == 1);
    CHECK(vn_cuda_queue_wait(q, 1, NULL) == VN_INVALID);
    CHECK(vn_cuda_queue_wait(q, 1, (struct CUevent_st *const []){ NULL }) == VN_INVALID);
    CHECK(vn_cuda_queue_wait(q, 1, &event) == VN_OK && vn_cuda_queue_wait(q, 0, NULL) == VN_OK);
    vn_buffer_close(b);
    vn_queue_close(q);
    vn_device_close(d);
    CHECK(open_things() == 1);                                          /* the caller's event */
}

/* ---- scenes: something is not there ------------------------------------------------------------------ */

static void expect(const char *text, vn_status status, const char *part, ...)
{
    struct work w = { NULL, NULL, { NULL }, NULL, NULL, { 0 } };
    vn_status s = open_all(&w);
    va_list parts;

    if (!s)
        s = solve(&w, text);
    CHECK(s == status);
    va_start(parts, part);
    for (; part; part = va_arg(parts, const char *))
        CHECK(strstr(vn_last_error(), part));
    va_end(parts);
    close_all(&w);
    CHECK(open_things() == 0);
}

static const char any[] = "gemm:8x8x8:f32:nn", cublas[] = "gemm:8x8x8:f32:nn:variant=cublas",
                  cudnn[] = "softmax:8x8:f32:variant=cudnn";

static void memory_of_the_host(void)
{
    static char memory[256] __attribute__((aligned(VN_HOST_ALIGN)));
    struct work w = { NULL, NULL, { NULL }, NULL, NULL, { 0 } };

    CHECK(open_all(&w) == VN_OK);
    vn_buffer_close(w.b[0]);
    CHECK(vn_buffer_open_host(&w.b[0], w.d, memory, sizeof memory) == VN_UNSUPPORTED);
    CHECK(strstr(vn_last_error(), "memory of its own"));
    close_all(&w);
    CHECK(open_things() == 0);
}

static void no_driver(void)
{
    expect(any, VN_NO_DEVICE, "libcuda.so.1 was not found", "install NVIDIA's driver", NULL);
}

static void driver_lacks_functions(void)
{
    expect(any, VN_NO_DEVICE, "libcuda.so.1 lacks cuInit", "install a newer NVIDIA driver", NULL);
}

static void driver_too_old(void)
{
    fake.driver_version = 11010;
    expect(any, VN_NO_DEVICE, "the NVIDIA driver supports CUDA 11.1", "11.2 or above", NULL);
}

static void driver_fails(void)
{
    fake.fail_at = 1;
    expect(any, VN_NO_DEVICE, "cuInit failed with 999", NULL);
}

static void no_gpu(void)
{
    fake.devices = 0;
    expect(any, VN_FAILED, "cuDeviceGet", NULL);
}

static void no_nvrtc(void)
{
    expect(any, VN_UNSUPPORTED, "libnvrtc was not found", "nvidia-cuda-nvrtc", "VERNIER_CUDA_LIBRARY_PATH",
           NULL);
}

static void nvrtc_lacks_functions(void)
{
    expect(any, VN_UNSUPPORTED, "libnvrtc lacks nvrtcVersion", "install NVRTC 11.2", NULL);
}

static void no_cublas(void)
{
    expect(cublas, VN_UNSUPPORTED, "libcublas was not found", "pip: nvidia-cublas", NULL);
}

static void no_cublaslt(void)
{
    expect(cublas, VN_UNSUPPORTED, "libcublasLt was not found", NULL);
}

static void cublas_lacks_functions(void)
{
    expect(cublas, VN_UNSUPPORTED, "cuBLAS lacks cublasGetProperty", NULL);
}

static void cublas_of_another_major(void)
{
    fake.cublas_major = 10;
    expect(cublas, VN_UNSUPPORTED, "libcublas has version 10", "11 to 13", NULL);
}

static void cublaslt_of_another_toolkit(void)
{
    fake.cublaslt_major = 12;
    expect(cublas, VN_UNSUPPORTED, "version 13 and libcublasLt 12", "of one toolkit", NULL);
}

static void no_cudnn(void)
{
    expect(cudnn, VN_UNSUPPORTED, "libcudnn was not found", "install cuDNN 8 or 9", NULL);
}

static void cudnn_lacks_functions(void)
{
    expect(cudnn, VN_UNSUPPORTED, "libcudnn lacks cudnnGetVersion", NULL);
}

static void cudnn_of_another_major(void)
{
    fake.cudnn_version = 7605;
    expect(cudnn, VN_UNSUPPORTED, "libcudnn has version 7", "8 or 9", NULL);
}

static void does_not_fit(void)
{
    expect("gemm:8x8x8:f32:nn:act=silu:variant=cublas", VN_UNSUPPORTED, "ReLU and GELU", NULL);
    expect("gemm:8x8x8:f32:nn:math=bitwise:variant=cublas", VN_UNSUPPORTED, "VN_MATH_BITWISE", NULL);
    expect("gemm:8x8x8:f64:nn:act=relu:variant=cublas", VN_UNSUPPORTED, "f64", NULL);
    expect("gemm:8x8x8:f32:nn:bias=col:variant=cublas", VN_UNSUPPORTED, "one row", NULL);
    expect("gemm:8x8x8:f32:nn:alpha=0:variant=cublas", VN_UNSUPPORTED, "nothing to multiply", NULL);
    expect("gemm:8x8x8:f32:nn:variant=clblast", VN_UNSUPPORTED, "it needs an OpenCL device", NULL);
    expect("softmax:8x8:f32:causal:variant=cudnn", VN_UNSUPPORTED, "it has no mask", NULL);
    expect("softmax:8x8:f32:start=1:variant=cudnn", VN_UNSUPPORTED, "multiples of 16 bytes", NULL);
    expect("conv:n1c4h8w8k4r3s3:f32:nchw:forward:pad=0-1x0-1:variant=cudnn", VN_UNSUPPORTED, "same padding",
           NULL);
    expect("conv:n1c4h8w8k4r3s3:f32:nchw:forward:act=gelu:variant=cudnn", VN_UNSUPPORTED, "ReLU alone", NULL);
    expect("conv:n1c4h8w8k4r3s3:f32:nchw:forward:bias=full:variant=cudnn", VN_UNSUPPORTED, "each channel",
           NULL);
    expect("conv:n1c4h8w8k4r3s3:f32:nchw:backward-data:act=relu:variant=cudnn", VN_UNSUPPORTED, "backward",
           NULL);
}

static const struct { const char *name; void (*play)(void); enum state states[LIBRARIES]; } scenes[] = {
    { "all is well",                      all_is_well,                 { THERE } },
    { "large local memory",               large_local_memory,          { THERE } },
    { "cubins are kept",                  cubins_are_kept,             { THERE } },
    { "compile errors are told",          compile_errors_are_told,     { THERE } },
    { "memory runs out",                  memory_runs_out,             { THERE } },
    { "each call fails, once",            each_call_fails_once,        { THERE } },
    { "each call fails, and all after",   each_call_fails_on,          { THERE } },
    { "a row prefers a library",          preferred_are_used,          { THERE } },
    { "a row prefers what is missing",    preferred_may_be_missing,
      { [CUBLAS] = MISSING, [CUDNN] = MISSING } },
    { "cuDNN's graphs are faster",        faster_graphs_are_used,      { THERE } },
    { "cuDNN's algorithms are faster",    faster_algorithms_are_used,  { THERE } },
    { "cuDNN's choices are remembered",   choices_are_remembered,      { THERE } },
    { "cuDNN has no engine",              graphs_may_have_no_engine,   { THERE } },
    { "cuDNN's engines fail",             engines_that_fail_are_passed_over, { THERE } },
    { "cuDNN's engines round",            engines_round_as_ours,       { THERE } },
    { "a caller's own objects",           callers_objects,             { THERE } },
    { "memory of the host",               memory_of_the_host,          { THERE } },
    { "what does not fit",                does_not_fit,                { THERE } },
    { "no driver",                        no_driver,                   { [CUDA] = MISSING } },
    { "a driver without functions",       driver_lacks_functions,      { [CUDA] = EMPTY } },
    { "a driver that is too old",         driver_too_old,              { THERE } },
    { "a driver that fails",              driver_fails,                { THERE } },
    { "no GPU",                           no_gpu,                      { THERE } },
    { "no NVRTC",                         no_nvrtc,                    { [NVRTC] = MISSING } },
    { "NVRTC without functions",          nvrtc_lacks_functions,       { [NVRTC] = EMPTY } },
    { "no cuBLAS",                        no_cublas,                   { [CUBLAS] = MISSING } },
    { "no cuBLASLt",                      no_cublaslt,                 { [CUBLASLT] = MISSING } },
    { "cuBLAS without functions",         cublas_lacks_functions,      { [CUBLAS] = EMPTY } },
    { "cuBLAS of another major",          cublas_of_another_major,     { THERE } },
    { "cuBLASLt of another toolkit",      cublaslt_of_another_toolkit, { THERE } },
    { "no cuDNN",                         no_cudnn,                    { [CUDNN] = MISSING } },
    { "cuDNN without functions",          cudnn_lacks_functions,       { [CUDNN] = EMPTY } },
    { "cuDNN of another major",           cudnn_of_another_major,      { THERE } },
};

/* Tells the parent how much was checked: 0 if all was right. */
static void play(int i, int to)
{
    scene = scenes[i].name;
    install(scenes[i].states);
    reset();
    scenes[i].play();
    CHECK(fake.complaints == 0);
    if (fake.complaints)
        printf("%s: %s\n", scene, fake.complaint);
    fflush(stdout);
    if (write(to, &checks, sizeof checks) != sizeof checks)
        wrong++;
    exit(wrong != 0);
}

/* 0 if the scene went well. */
static int in_a_process(int i, int *done)
{
    int ends[2], status, n = 0;

    fflush(stdout);
    if (pipe(ends))
        return 1;
    const pid_t child = fork();

    if (child == 0) {
        close(ends[0]);
        play(i, ends[1]);
    }
    close(ends[1]);
    if (read(ends[0], &n, sizeof n) != sizeof n)
        n = 0;
    close(ends[0]);
    *done += n;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 1;
    if (WIFSIGNALED(status))
        printf("FAIL: %s: killed by signal %d\n", scenes[i].name, WTERMSIG(status));
    return !WIFEXITED(status) || WEXITSTATUS(status);
}

int main(void)
{
    int failed = 0, done = 0;

#if !VN_WITH_CUDA
    puts("left out: the library was built without CUDA");
    return 77;
#endif
    make_base(base);
    setenv("OCL_ICD_VENDORS", base, 1);             /* no OpenCL: it would take a second each time */
    setenv("VERNIER_CACHE_DIR", base, 1);
    setenv("VERNIER_CACHE", "0", 1);
    unsetenv("VERNIER_DEVICE");
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        const int bad = in_a_process((int)i, &done);

        printf("%s  %s\n", bad ? "failed" : "passed", scenes[i].name);
        failed += bad;
    }
    wipe(base);
    printf("%d failed\nCOUNT cuda %d\n", failed, done);
    return failed != 0;
}
