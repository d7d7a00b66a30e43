/* SPDX-License-Identifier: Apache-2.0
 *
 * roofline.c - measures the two roofs with the kernels of cl/peak.cl.
 *
 * They are built and launched as the library's own are, so what is measured is what its
 * kernels could reach.  Each figure is the best of a few runs: a roof is a maximum.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core.h"
#include "roofline.h"
#include "sampling.h"

enum { RUNS = 8, COPY_ROUNDS = 4096 };

static const double RUN_SECONDS = 0.02, PATIENCE = 0.2;

struct shape { int items, fma_width, copy_width, chains, groups; };

struct bench_kernels { void *program, *fma, *copy; };

/* As our own kernels: CPUs get one work-item a work-group, and vectors written out. */
static struct shape shape_for(const struct vn_facts *f, vn_type type)
{
    const int items = f->items < 256 ? f->items : 256;
    int width = type == VN_F64 ? f->vector / 2 : f->vector;

    if (strcmp(f->family, "cpu") || f->vector < 2)
        return (struct shape){ .items = items, .fma_width = 1, .copy_width = 4, .chains = 8,
                               .groups = 32 * f->units };
    width = width >= 16 ? 16 : width >= 8 ? 8 : width >= 4 ? 4 : 2;
    return (struct shape){ .items = 1, .fma_width = width, .copy_width = width, .chains = 12,
                           .groups = 8 * f->units };
}

/* Not an operation's variant, but text and parameters of one. */
static const struct vn_variant roofs = {
    .name = "roofline", .texts = "cl/peak.cl", .params = "ITEMS FMA_WIDTH COPY_WIDTH CHAINS"
};

static vn_status kernels_open(struct bench_kernels *k, vn_device *d, const struct shape *s, vn_type type)
{
    const int p[VN_PARAMS] = { s->items, s->fma_width, s->copy_width, s->chains };
    char *const text = vn__assemble(d->backend->name, &roofs, p, type, 0);
    vn_status status;

    if (!text)
        return vn__fail(VN_NO_MEMORY, "host memory ran out");
    status = vn__cache_build(&k->program, d, text);
    free(text);
    if (!status)
        status = d->backend->kernel_open(&k->fma, d, k->program, "fma_peak");
    if (!status)
        status = d->backend->kernel_open(&k->copy, d, k->program, "copy");
    return status;
}

static void kernels_close(struct bench_kernels *k, vn_device *d)
{
    if (k->fma)
        d->backend->kernel_close(k->fma);
    if (k->copy)
        d->backend->kernel_close(k->copy);
    if (k->program)
        vn__cache_close(d, k->program);
}

static vn_status timed_launch(double *seconds, vn_queue *q, void *kernel, const struct vn_launch *l)
{
    struct stopwatch watch;
    vn_status s = stopwatch_start(&watch, q, !q->device->info.is_cpu);

    if (!s)
        s = q->device->backend->launch(q, kernel, l);
    if (!s)
        s = stopwatch_stop(seconds, &watch);
    return s;
}

static vn_status best_of_runs(double *best, vn_queue *q, void *kernel, const struct vn_launch *l)
{
    vn_status s = timed_launch(best, q, kernel, l);     /* not counted: PoCL compiles at the first launch */
    double spent = 0;

    *best = 1e30;
    for (int i = 0; i < RUNS && spent < PATIENCE && !s; i++) {
        double seconds = 0;

        s = timed_launch(&seconds, q, kernel, l);
        spent += seconds;
        *best = !s && seconds < *best ? seconds : *best;
    }
    return s;
}

static struct vn_launch fma_launch(const struct shape *s, vn_type type, vn_buffer *y, int rounds)
{
    struct vn_launch l = { .groups = { s->groups, 1, 1 }, .items = s->items };

    vn__arg_buffer(&l, y);
    vn__arg_int(&l, rounds);
    vn__arg_real(&l, type, 0.999);
    vn__arg_real(&l, type, 0.001);
    return l;
}

static vn_status measure_peak(double *out, vn_queue *q, void *kernel, const struct shape *s, vn_type type)
{
    const double each = 2.0 * s->groups * s->items * s->fma_width * s->chains;    /* flops of a round */
    vn_buffer *y = NULL;
    double seconds = 0, rounds = 1024;
    const size_t bytes = (size_t)s->groups * s->items * s->fma_width * vn_type_bytes(type);
    vn_status status = vn_buffer_open(&y, q->device, bytes);

    while (!status) {
        const struct vn_launch l = fma_launch(s, type, y, (int)rounds);

        if ((status = timed_launch(&seconds, q, kernel, &l)) || seconds > RUN_SECONDS / 2 || rounds > 1e8)
            break;
        rounds *= seconds > RUN_SECONDS / 16 ? RUN_SECONDS / seconds : 16;
    }
    if (!status) {
        const struct vn_launch l = fma_launch(s, type, y, (int)rounds);

        status = best_of_runs(&seconds, q, kernel, &l);
        *out   = each * (int)rounds / seconds;
    }
    vn_buffer_close(y);
    return status;
}

/* 256 MiB, as long as that is a small part of the device: well beyond any cache. */
static size_t copy_bytes(const vn_device *d)
{
    size_t bytes = (size_t)256 << 20;

    while (bytes > (size_t)d->info.memory / 8 || (d->facts.buffer_bytes && bytes > d->facts.buffer_bytes))
        bytes /= 2;
    return bytes;
}

static vn_status measure_bandwidth(double *out, vn_queue *q, void *kernel, const struct shape *s,
                                   vn_type type)
{
    const size_t chunk = (size_t)s->items * s->copy_width * vn_type_bytes(type);
    const size_t rounds = s->items == 1 ? COPY_ROUNDS : 16;
    const size_t groups = copy_bytes(q->device) / (chunk * rounds);
    const size_t bytes = groups * chunk * rounds;
    vn_buffer *x = NULL, *y = NULL;
    double seconds;
    vn_status status = vn_buffer_open(&x, q->device, bytes);

    if (!status)
        status = vn_buffer_open(&y, q->device, bytes);
    if (!status) {
        struct vn_launch l = { .groups = { (int64_t)groups, 1, 1 }, .items = s->items };

        vn__arg_buffer(&l, x);
        vn__arg_buffer(&l, y);
        vn__arg_int(&l, (int64_t)rounds);
        if (!(status = timed_launch(&seconds, q, kernel, &l)))       /* pages are touched here */
            status = best_of_runs(&seconds, q, kernel, &l);
        *out = 2.0 * bytes / seconds;
    }
    vn_buffer_close(x);
    vn_buffer_close(y);
    return status;
}

vn_status roofline_measure(struct roofline *r, vn_queue *q, vn_type type)
{
    const vn_type real = type == VN_F64 ? VN_F64 : VN_F32;
    double *const peak = &r->peak[real == VN_F64];

    if (*peak > 0)
        return VN_OK;

    const struct shape shape = shape_for(&q->device->facts, real);
    struct bench_kernels k = { NULL, NULL, NULL };
    vn_status s = kernels_open(&k, q->device, &shape, real);

    if (!s)
        s = measure_peak(peak, q, k.fma, &shape, real);
    if (!s && r->bandwidth == 0)
        s = measure_bandwidth(&r->bandwidth, q, k.copy, &shape, real);
    kernels_close(&k, q->device);
    return s;
}

double roofline_peak(const struct roofline *r, vn_type type)
{
    return r->peak[type == VN_F64];
}

double roofline_seconds(const struct roofline *r, vn_type type, double flops, double bytes)
{
    const double compute = flops / roofline_peak(r, type), memory = bytes / r->bandwidth;

    return compute > memory ? compute : memory;
}
