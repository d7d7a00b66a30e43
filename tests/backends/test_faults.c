/* SPDX-License-Identifier: Apache-2.0
 *
 * test_faults.c - each OpenCL call of an operation fails in turn.
 *
 * From vn_device_open() to the result, the 1st call fails, then the 2nd, the 3rd... until
 * none is left to fail; with each of three errors; once, and from there on.  Each time:
 *
 *   - no crash, no hang, no VN_OK with a wrong result;
 *   - a failed step says why, and a failed operation left its output alone;
 *   - once the fault is gone, the same step works on the same handles (after a persistent
 *     fault: all of it anew), and the result is right;
 *   - when all handles are closed, so are all OpenCL objects.
 *
 * tests/fakes/opencl_layer.c makes the calls fail.  Where devices are first listed, each fault
 * needs a process of its own.  So do kernels that are built from their text, since the
 * library asks once if there is a cache ($VERNIER_CACHE).
 *
 *     tests/backends/test_faults                                  all of them
 *     tests/backends/test_faults CASE NTH ERROR once|persistent   one: what a failure prints
 */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../fakes/opencl_layer.h"
#include "check/oracle.h"

#ifndef LAYER
#define LAYER "tests/fakes/.libs/opencl_layer.so"
#endif

static const char *const cases[] = {
    "gemm:33x17x29:f32:nn",
    "conv:n2c3h9w8k4r3s3:f32:nchw:forward:pad=1",
    "softmax:5x131:f32",
};

static const struct { const char *name; int code; } errors[] = {
    { "CL_OUT_OF_RESOURCES",     CL_OUT_OF_RESOURCES     },
    { "CL_OUT_OF_HOST_MEMORY",   CL_OUT_OF_HOST_MEMORY   },
    { "CL_DEVICE_NOT_AVAILABLE", CL_DEVICE_NOT_AVAILABLE },
};
enum { ERRORS = sizeof errors / sizeof *errors, CASES = sizeof cases / sizeof *cases };

#define DEVICES   "devices"               /* the case of listing them */
#define TRANSFERS "transfers"             /* the case of what moves bytes, and of the host's memory */

static struct layer layer;

/* ---- the point we are at, and what went wrong there -------------------------------- */

struct point { const char *what; long nth; int error, persistent; };

static char point_text[PROBLEM_TEXT + 64];
static struct { long points, wrong; } *tally;       /* of all processes */

static void name_point(const struct point *p)
{
    snprintf(point_text, sizeof point_text, "%stests/backends/test_faults %s %ld %s %s\n",
             getenv("VERNIER_CACHE") ? "VERNIER_CACHE=0 " : "", p->what, p->nth, errors[p->error].name,
             p->persistent ? "persistent" : "once");
}

static void fail(const char *why, const char *more)
{
    const char *victim = layer.victim();

    tally->wrong++;
    printf("FAIL: %s%s (%s failed)\n      %s", why, more, victim ? victim : "nothing", point_text);
}

static void died(int signal_number)
{
    static const char crash[] = "FAIL: a crash\n      ", hang[] = "FAIL: a hang\n      ";
    ssize_t n = signal_number == SIGALRM ? write(1, hang, sizeof hang - 1)
                                         : write(1, crash, sizeof crash - 1);

    n += write(1, point_text, strlen(point_text));
    tally->wrong++;
    _exit(n > 0 ? 1 : 2);
}

/* ---- one run, in steps that can be taken again --------------------------------------- */

struct run {
    struct problem  problem;
    struct operands operands;
    vn_device      *device;
    vn_queue       *queue;
    vn_event       *from, *to;
    float          *host[3];
    double         *number[3];
    float          *result;
    long double    *value, *bound;
    int             step;
};

static size_t bytes_of(const struct run *r, int i)
{
    return (size_t)r->operands.elements[i] * sizeof(float);
}

static vn_status open_device(struct run *r)
{
    return vn_device_open(&r->device, NULL);
}

static vn_status open_queue(struct run *r)
{
    return vn_queue_open(&r->queue, r->device);
}

static vn_status open_buffers(struct run *r)
{
    vn_status s = VN_OK;

    for (int i = 0; i < r->operands.count && s == VN_OK; i++)
        if (!r->operands.t[i].buffer)
            s = vn_buffer_open(&r->operands.t[i].buffer, r->device, bytes_of(r, i));
    return s;
}

static vn_status write_all(struct run *r)
{
    vn_status s = VN_OK;

    for (int i = 0; i < r->operands.count && s == VN_OK; i++)
        s = vn_write(r->queue, r->operands.t[i].buffer, 0, r->host[i], bytes_of(r, i));
    return s;
}

static vn_status begin(struct run *r)
{
    return vn_event_record(&r->from, r->queue);
}

static vn_status operate(struct run *r)
{
    return problem_run(r->queue, &r->problem, &r->operands);
}

static vn_status end(struct run *r)
{
    return vn_event_record(&r->to, r->queue);
}

static vn_status wait_for_it(struct run *r)
{
    return vn_queue_wait(r->queue, r->to);
}

static vn_status finish(struct run *r)
{
    return vn_queue_finish(r->queue);
}

static vn_status time_it(struct run *r)
{
    double seconds;
    const vn_status s = vn_event_seconds(&seconds, r->from, r->to);

    return s == VN_UNSUPPORTED ? VN_OK : s;
}

static vn_status read_result(struct run *r)
{
    const int i = r->operands.output;

    return vn_read(r->queue, r->result, r->operands.t[i].buffer, 0, bytes_of(r, i));
}

static vn_status (*const steps[])(struct run *r) = {
    open_device, open_queue, open_buffers, write_all, begin, operate, end, wait_for_it, finish, time_it,
    read_result,
};
enum { STEPS = sizeof steps / sizeof *steps };

static vn_status go_on(struct run *r)
{
    vn_status s;

    for (; r->step < STEPS; r->step++)
        if ((s = steps[r->step](r)))
            return s;
    return VN_OK;
}

static void close_all(struct run *r)
{
    vn_event_close(r->from);
    vn_event_close(r->to);
    for (int i = 0; i < r->operands.count; i++) {
        vn_buffer_close(r->operands.t[i].buffer);
        r->operands.t[i].buffer = NULL;
    }
    vn_queue_close(r->queue);
    vn_device_close(r->device);
    r->from = r->to = NULL;
    r->queue = NULL;
    r->device = NULL;
    r->step = 0;
}

/* ---- the data, and what must come out ------------------------------------------------- */

static void *some(size_t bytes)
{
    void *p = calloc(1, bytes);

    if (!p) {
        puts("out of memory");
        exit(2);
    }
    return p;
}

/* Small integers, so that gemm and conv are exact. */
static void prepare(struct run *r, const char *text)
{
    struct oracle right = { .p = &r->problem, .o = &r->operands };
    char why[256];
    unsigned seed = 1;

    memset(r, 0, sizeof *r);
    if (problem_parse(&r->problem, text, why, sizeof why) || problem_operands(&r->operands, &r->problem)) {
        printf("%s: %s\n", text, why);
        exit(2);
    }
    for (int i = 0; i < r->operands.count; i++) {
        const int64_t n = r->operands.elements[i];

        r->host[i] = some(bytes_of(r, i));
        r->number[i] = some((size_t)n * sizeof(double));
        for (int64_t j = 0; j < n; j++) {
            r->number[i][j] = (double)((seed = seed * 1103515245u + 12345u) >> 16 & 7) - 3;
            if (i == r->operands.output)
                oracle_store_canary(VN_F32, r->host[i], j);
            else
                r->host[i][j] = (float)r->number[i][j];
        }
        right.in[i] = r->number[i];
    }
    const size_t n = (size_t)r->operands.elements[r->operands.output];

    r->result = some(n * sizeof *r->result);
    r->value = some(n * sizeof *r->value);
    r->bound = some(n * sizeof *r->bound);
    right.value[r->operands.output] = r->value;
    right.bound[r->operands.output] = r->bound;
    oracle_run(&right);
}

static void release(struct run *r)
{
    for (int i = 0; i < r->operands.count; i++) {
        free(r->host[i]);
        free(r->number[i]);
    }
    free(r->result);
    free(r->value);
    free(r->bound);
}

static void check_result(struct run *r)
{
    const int64_t n = r->operands.elements[r->operands.output];

    for (int64_t j = 0; j < n; j++)
        if (!(fabsl((long double)r->result[j] - r->value[j]) <= r->bound[j])) {
            fail("VN_OK, but the result is wrong", "");
            return;
        }
}

/* Called when the operation failed: nothing of its output may have changed. */
static void check_untouched(struct run *r)
{
    const int i = r->operands.output;

    if (vn_queue_finish(r->queue) || read_result(r))
        fail("after the fault, the output cannot be read: ", vn_last_error());
    else if (memcmp(r->result, r->host[i], bytes_of(r, i)))
        fail("the operation failed, but its output changed", "");
}

static void check_said(vn_status s)
{
    if (!*vn_last_error())
        fail("a status without a sentence: ", vn_status_name(s));
}

static void check_closed(void)
{
    char count[32];

    snprintf(count, sizeof count, "%ld", layer.live(NULL));
    if (layer.live(NULL))
        fail("all is closed, but OpenCL objects are held: ", count);
}

/* ---- the sweeps ------------------------------------------------------------------------- */

/* 0 where no call was left to fail. */
static int run_point(struct run *r, const struct point *p)
{
    vn_status s;
    long failed;

    name_point(p);
    alarm(600);
    memset(r->result, 0, bytes_of(r, r->operands.output));
    layer.arm(NULL, p->nth, errors[p->error].code, p->persistent);
    if ((s = go_on(r)))
        check_said(s);
    if (s && p->persistent)
        close_all(r);
    failed = layer.failed();
    layer.disarm();

    if (s && r->step && steps[r->step] == operate)
        check_untouched(r);
    if (s && go_on(r))
        fail("the fault is gone, but it fails: ", vn_last_error());
    else
        check_result(r);
    close_all(r);
    check_closed();
    tally->points += failed > 0;
    return failed > 0;
}

static void sweep(const char *text)
{
    struct run r;
    struct point p = { .what = text };

    prepare(&r, text);
    if (go_on(&r)) {
        printf("FAIL: %s: %s\n", text, vn_last_error());
        tally->wrong++;
    } else
        for (p.persistent = 0; p.persistent <= 1; p.persistent++)
            for (p.error = 0; p.error < ERRORS; p.error++) {
                close_all(&r);
                for (p.nth = 1; run_point(&r, &p); p.nth++)
                    ;
            }
    close_all(&r);
    release(&r);
}

/* ---- transfers, and the host's memory -------------------------------------------------------- */

struct moves { vn_device *device; vn_queue *queue; vn_buffer *own, *hosts; vn_event *done; };

/* A pattern to a buffer of the device, from there to one that is the host's memory, and read from both. */
static vn_status move_bytes(struct moves *m)
{
    static unsigned char memory[256] __attribute__((aligned(VN_HOST_ALIGN))), back[256];
    static const unsigned char pattern[4] = { 1, 2, 3, 4 };
    int shares;
    vn_status s;

    memset(memory, 0, sizeof memory);
    memset(back, 0, sizeof back);
    if ((s = vn_device_open(&m->device, NULL)) || (s = vn_queue_open(&m->queue, m->device)) ||
        (s = vn_buffer_open(&m->own, m->device, sizeof back)))
        return s;
    s = vn_buffer_open_host(&m->hosts, m->device, memory, sizeof memory);
    if (s && s != VN_UNSUPPORTED)
        return s;
    shares = !s;
    if ((s = vn_write_async(m->queue, m->own, 0, back, sizeof back)) ||
        (s = vn_fill(m->queue, m->own, 0, sizeof back, pattern, sizeof pattern)) ||
        (shares && (s = vn_copy(m->queue, m->hosts, 0, m->own, 0, sizeof memory))) ||
        (s = vn_read_async(m->queue, back, m->own, 0, sizeof back)) ||
        (s = vn_event_record(&m->done, m->queue)) || (s = vn_event_finish(m->done)))
        return s;
    for (size_t i = 0; i < sizeof back; i++)
        if (back[i] != pattern[i % 4] || (shares && memory[i] != pattern[i % 4])) {
            fail("VN_OK, but the bytes are wrong", "");
            break;
        }
    return VN_OK;
}

static void close_moves(struct moves *m)
{
    if (m->queue)
        vn_queue_finish(m->queue);              /* what is in flight uses the host's memory */
    vn_event_close(m->done);
    vn_buffer_close(m->own);
    vn_buffer_close(m->hosts);
    vn_queue_close(m->queue);
    vn_device_close(m->device);
    memset(m, 0, sizeof *m);
    check_closed();
}

/* 0 where no call was left to fail. */
static int transfer_point(const struct point *p)
{
    struct moves m = { NULL, NULL, NULL, NULL, NULL };
    vn_status s;
    long failed;

    name_point(p);
    alarm(600);
    layer.arm(NULL, p->nth, errors[p->error].code, p->persistent);
    if ((s = move_bytes(&m)))
        check_said(s);
    failed = layer.failed();
    layer.disarm();
    close_moves(&m);
    if (s && move_bytes(&m))
        fail("the fault is gone, but it fails: ", vn_last_error());
    close_moves(&m);
    tally->points += failed > 0;
    return failed > 0;
}

static void sweep_transfers(void)
{
    struct point p = { .what = TRANSFERS };

    for (p.persistent = 0; p.persistent <= 1; p.persistent++)
        for (p.nth = 1; p.error = (int)(p.nth % ERRORS), transfer_point(&p); p.nth++)
            ;
}

/* ---- what needs a process of its own -------------------------------------------------------- */

/* Runs work() in a child; its result, or -1 if it died. */
static int in_child(int (*work)(const void *), const void *with)
{
    int status;
    pid_t child;

    if ((child = fork()) == 0)
        _exit(work(with));
    return child > 0 && waitpid(child, &status, 0) > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

enum { NO_LAYER = 255 };                  /* the loader has none: it heard of no call */

static int count_devices(const void *with)
{
    const int count = vn_device_count();

    (void)with;
    return count && !layer.calls(NULL) ? NO_LAYER : count;
}

static int expected;                      /* devices that a process without faults lists */

/* 0 where no call was left to fail. */
static int list_devices(const void *with)
{
    const struct point *p = with;
    vn_device *d = NULL;
    vn_status s;
    long failed;

    name_point(p);
    alarm(600);
    layer.arm(NULL, p->nth, errors[p->error].code, p->persistent);
    vn_device_count();
    failed = layer.failed();
    if ((s = vn_device_open(&d, NULL)))
        check_said(s);
    vn_device_close(d);
    layer.disarm();

    if (vn_device_count() != expected)
        fail("the fault is gone, but not all devices are listed", "");
    if (vn_device_open(&d, NULL))
        fail("the fault is gone, but it fails: ", vn_last_error());
    vn_device_close(d);
    check_closed();
    tally->points += failed > 0;
    return failed > 0;
}

/* Here the errors take turns: a process each is slow. */
static void sweep_devices(void)
{
    struct point p = { .what = DEVICES };
    int any;

    for (p.persistent = 0; p.persistent <= 1; p.persistent++)
        for (p.nth = 1, any = 1; any; p.nth++) {
            p.error = (int)(p.nth % ERRORS);
            if ((any = in_child(list_devices, &p)) < 0) {
                name_point(&p);
                fail("the process that lists devices died", "");
            }
        }
}

static int sweep_uncached(const void *text)
{
    setenv("VERNIER_CACHE", "0", 1);
    sweep(text);
    return 0;
}

/* ---- main ----------------------------------------------------------------------------------- */

static int index_of_error(const char *name)
{
    for (int i = 0; i < ERRORS; i++)
        if (!strcmp(errors[i].name, name))
            return i;
    printf("no such error: %s\n", name);
    exit(2);
}

static void run_one(char **argv)
{
    const struct point p = { argv[1], atol(argv[2]), index_of_error(argv[3]),
                             !strcmp(argv[4], "persistent") };
    struct run r;

    if (!strcmp(p.what, DEVICES)) {
        in_child(list_devices, &p);
        return;
    }
    vn_device_count();                        /* in a sweep they were listed before, too */
    if (!strcmp(p.what, TRANSFERS)) {
        transfer_point(&p);
        return;
    }
    prepare(&r, p.what);
    if (!run_point(&r, &p))
        printf("fewer than %ld calls\n", p.nth);
    release(&r);
}

static void run_all(void)
{
    sweep_devices();
    if (in_child(sweep_uncached, cases[0])) {
        puts("FAIL: the process without a cache died");
        tally->wrong++;
    }
    for (int i = 0; i < CASES; i++)
        sweep(cases[i]);
    sweep_transfers();
    printf("%ld faults, %ld wrong\nCOUNT faults %ld\n", tally->points, tally->wrong, tally->points);
}

int main(int argc, char **argv)
{
    static const int deadly[] = { SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGALRM };

    setvbuf(stdout, NULL, _IOLBF, 0);         /* a crash loses no line, a child prints none twice */
    layer = layer_open(LAYER, argv);
    tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tally == MAP_FAILED)
        return 2;
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        signal(deadly[i], died);
    if ((expected = in_child(count_devices, NULL)) <= 0) {
        puts("skipped: there is no OpenCL device (Debian: pocl-opencl-icd)");
        return 77;
    }
    if (expected == NO_LAYER) {
        puts("skipped: this OpenCL loader takes no layers (Debian: ocl-icd-libopencl1)");
        return 77;
    }
    if (argc == 5)
        run_one(argv);
    else
        run_all();
    return tally->wrong != 0;
}
