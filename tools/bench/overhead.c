/* SPDX-License-Identifier: Apache-2.0
 *
 * overhead.c - what a warm call costs beside the bare calls of the driver that it makes.
 *
 * One warm vn_gemm() is recorded as it talks to OpenCL or CUDA: its kernels, their arguments,
 * their sizes.  The bare loop then makes those calls itself, clSetKernelArg for every argument
 * and clEnqueueNDRangeKernel, or cuLaunchKernel, on the same queue and kernels.  The two take
 * turns.
 */
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "bench.h"
#include "commands.h"
#include "core.h"
#include "measure/interposed.h"
#include "report/report.h"
#include "measure/sampling.h"
#include "problem/values.h"

enum { CALLS = 64, TURNS = 201, FEWEST_TURNS = 3 };

static const double PATIENCE = 5;        /* seconds; a slow device gets fewer turns */

/* Small, so that what is measured is the call and not the work. */
static const char *const text = "gemm:32x32x32:f32:nn";

static const struct recorder *const recorders[] = {
    &opencl_recorder,
#if VN_WITH_CUDA
    &cuda_recorder,
#endif
};

struct subject {
    const struct recorder *recorder;
    vn_device     *device;
    vn_queue      *queue;
    struct problem problem;
    struct values  values;
    int            launches;
};

/* Enqueues once: through the library, or bare. */
static int enqueue_ours(const struct subject *s)
{
    const vn_tensor *const t = s->values.o.t;

    return vn_gemm(s->queue, 1, t[0], t[1], 0, t[2], NULL) ? -1 : 0;
}

static int enqueue_bare(const struct subject *s)
{
    return s->recorder->replay();
}

static int finish_ours(const struct subject *s)
{
    return vn_queue_finish(s->queue) ? -1 : 0;
}

static int finish_bare(const struct subject *s)
{
    return s->recorder->finish();
}

static const struct side {
    int (*enqueue)(const struct subject *s), (*finish)(const struct subject *s);
} ours = { enqueue_ours, finish_ours }, bare = { enqueue_bare, finish_bare };

/* Seconds of one call, with or without waiting for its end; -1 if it failed. */
static double seconds_of(const struct subject *s, const struct side *side, int waits)
{
    const double start = vn__seconds();
    double end;

    for (int i = 0; i < CALLS; i++)
        if (side->enqueue(s) || (waits && side->finish(s)))
            return -1;
    end = vn__seconds();
    return side->finish(s) ? -1 : (end - start) / CALLS;
}

static int compare(struct call_cost *out, const struct subject *s, int waits)
{
    const double start = vn__seconds();
    double o[TURNS], b[TURNS];
    int i;

    for (i = 0; i < TURNS && (i < FEWEST_TURNS || vn__seconds() - start < PATIENCE); i++) {
        if (i % 2)                                              /* neither is always the first */
            b[i] = seconds_of(s, &bare, waits);
        o[i] = seconds_of(s, &ours, waits);
        if (i % 2 == 0)
            b[i] = seconds_of(s, &bare, waits);
        if (o[i] < 0 || b[i] < 0)
            return -1;
    }
    *out = (struct call_cost){ median_of(o, i), median_of(b, i) };
    return 0;
}

/* The part of a call that is the library's own; -1 if it failed. */
static double library_seconds(const struct subject *s)
{
    double sample[TURNS];

    s->recorder->mute(1);
    for (int i = 0; i < TURNS; i++)
        sample[i] = seconds_of(s, &ours, 0);
    s->recorder->mute(0);
    return median_of(sample, TURNS);
}

static long count_allocations(const struct subject *s)
{
    allocations_start();
    for (int i = 0; i < OVERHEAD_CALLS; i++)
        if (enqueue_ours(s) || (i % CALLS == 0 && finish_ours(s)))
            break;
    finish_ours(s);
    return allocations_stop();
}

static const struct recorder *recorder_of(const char *spec)
{
    for (size_t i = 0; i < sizeof recorders / sizeof *recorders; i++)
        if (!strncmp(spec, recorders[i]->backend, strlen(recorders[i]->backend)))
            return recorders[i];
    return NULL;
}

/* A device of its own: the recording must see its kernels get their first arguments. */
static int subject_open(struct subject *s, const char *spec)
{
    char why[256];

    if (!(s->recorder = recorder_of(spec))) {
        complain("the calls of vn_gemm() on %s cannot be recorded", spec);
        return -1;
    }
    s->recorder->open();
    if (problem_parse(&s->problem, text, why, sizeof why)
        || device_open(&s->device, &s->queue, spec))
        return -1;
    if (values_open(&s->values, s->queue, s->device, &s->problem) || enqueue_ours(s) || finish_ours(s)) {
        complain("%s", vn_last_error());
        return -1;
    }
    s->recorder->start();
    enqueue_ours(s);
    s->launches = s->recorder->stop();
    if (s->launches > 0)
        return 0;
    complain("the calls of vn_gemm() could not be recorded");
    return -1;
}

static void subject_close(struct subject *s)
{
    if (s->recorder)
        s->recorder->close();
    values_close(&s->values);
    vn_queue_close(s->queue);
    vn_device_close(s->device);
}

static void report_pair(FILE *to, json_t *benchmarks, const char *what, const char *name,
                        const struct call_cost *p)
{
    const double ratio = p->ours / p->bare;

    fprintf(to, "%-28s %8.2f us %8.2f us   %.2f times\n", what, p->ours * 1e6, p->bare * 1e6, ratio);
    json_array_append_new(benchmarks, json_pack("{s:s, s:f, s:s, s:f, s:f}", "name", name,
        "real_time", p->ours, "time_unit", "s", "bare_time", p->bare, "ratio", ratio));
}

static int measure(struct overhead *out, const struct subject *s)
{
    *out = (struct overhead){ .launches = s->launches, .arguments = s->recorder->arguments() };
    if (compare(&out->enqueue, s, 0) || compare(&out->finish, s, 1)) {
        complain("%s", vn_last_error());
        return -1;
    }
    out->library     = library_seconds(s);
    out->allocations = count_allocations(s);
    return 0;
}

int overhead_measure(struct overhead *out, const char *spec)
{
    struct subject s = { .recorder = NULL };
    const int failed = subject_open(&s, spec) || measure(out, &s);

    subject_close(&s);
    return failed ? -1 : 0;
}

int overhead_bench(const struct bench *b, FILE *to, json_t *benchmarks)
{
    struct overhead o;

    if (overhead_measure(&o, b->info.spec))
        return EXIT_FAILURE;
    fprintf(to, "%s: %d kernel%s, %d arguments\n\n", text, o.launches, o.launches == 1 ? "" : "s",
            o.arguments);
    fprintf(to, "%-28s %11s %11s   %s\n", "a warm call", "vn_gemm", "bare", "ratio");
    report_pair(to, benchmarks, "enqueue", "overhead:enqueue", &o.enqueue);
    report_pair(to, benchmarks, "enqueue and finish", "overhead:enqueue+finish", &o.finish);
    fprintf(to, "%-28s %8.2f us\n", "of it in the library", o.library * 1e6);
    json_array_append_new(benchmarks, json_pack("{s:s, s:f, s:s}", "name", "overhead:library",
                                                "real_time", o.library, "time_unit", "s"));
    fprintf(to, "%-28s %8ld\n", "allocations in 1000 calls", o.allocations);
    json_array_append_new(benchmarks, json_pack("{s:s, s:i, s:i}", "name", "overhead:allocations",
                                                "calls", OVERHEAD_CALLS, "allocations", (int)o.allocations));
    return 0;
}
