/* SPDX-License-Identifier: Apache-2.0
 *
 * roofline.c - measures the two roofs with the kernels of cl/peak.cl.
 *
 * They are built and launched as the library's own are, so what is measured is what its
 * kernels could reach.  Each figure is the best of a few runs: a roof is a maximum.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core.h"
#include "roofline.h"
#include "measure/sampling.h"

enum { RUNS = 8, COPY_ROUNDS = 4096 };

static const double RUN_SECONDS = 0.02, PATIENCE = 0.2;

struct roof_kernels { void *program, *fma, *copy; };

struct shape { int items, fma_width, copy_width, chains, groups; };

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

static vn_status kernels_open(struct roof_kernels *k, vn_device *d, const struct shape *s, vn_type type)
{
    const int p[VN_PARAMS] = { s->items, s->fma_width, s->copy_width, s->chains };
    char *const text = vn__assemble(d->backend->name, &roofs, p, NULL, type, 0);
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

static void kernels_close(struct roof_kernels *k, vn_device *d)
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

/* ---- copies ---- */

struct copier {
    vn_queue           *queue;
    struct roof_kernels kernels;
    vn_buffer          *from, *to;
    struct vn_launch    launch;
    double              bytes;               /* read and written, by a run */
};

/* Rounds enough to pay for a work-group, but no fewer work-groups than keep the device busy. */
static vn_status copier_buffers(struct copier *c, const struct shape *s, vn_type type, size_t bytes)
{
    vn_device *const d = c->queue->device;
    const size_t chunk = (size_t)s->items * s->copy_width * vn_type_bytes(type);
    const size_t most = s->items == 1 ? COPY_ROUNDS : 16;
    const size_t chunks = (bytes / 2 + chunk - 1) / chunk, wanted = chunks / (8 * (size_t)d->facts.units);
    const size_t rounds = wanted < 1 ? 1 : wanted > most ? most : wanted,
                 groups = (chunks + rounds - 1) / rounds;
    vn_status status = vn_buffer_open(&c->from, d, groups * rounds * chunk);

    if (!status)
        status = vn_buffer_open(&c->to, d, groups * rounds * chunk);
    c->bytes  = 2.0 * (double)(groups * rounds * chunk);
    c->launch = (struct vn_launch){ .groups = { (int64_t)groups, 1, 1 }, .items = s->items };
    vn__arg_buffer(&c->launch, c->from);
    vn__arg_buffer(&c->launch, c->to);
    vn__arg_int(&c->launch, (int64_t)rounds);
    return status;
}

vn_status copier_open(struct copier **out, vn_queue *q, double bytes)
{
    const struct shape s = shape_for(&q->device->facts, VN_F32);
    struct copier *const c = *out = calloc(1, sizeof *c);

    if (!c)
        return vn__fail(VN_NO_MEMORY, "host memory ran out");
    c->queue = q;

    vn_status status = kernels_open(&c->kernels, q->device, &s, VN_F32);

    if (!status)
        status = copier_buffers(c, &s, VN_F32, (size_t)bytes);
    if (!status && !(status = copier_run(c)))                   /* touches the pages */
        status = vn_queue_finish(q);
    if (status) {
        copier_close(c);
        *out = NULL;
    }
    return status;
}

vn_status copier_run(const struct copier *c)
{
    return c->queue->device->backend->launch(c->queue, c->kernels.copy, &c->launch);
}

void copier_close(struct copier *c)
{
    if (!c)
        return;
    vn_buffer_close(c->from);
    vn_buffer_close(c->to);
    kernels_close(&c->kernels, c->queue->device);
    free(c);
}

double bytes_beyond_caches(const vn_device *d)
{
    size_t bytes = (size_t)256 << 20;

    while (bytes > (size_t)d->info.memory / 8 || (d->facts.buffer_bytes && bytes > d->facts.buffer_bytes))
        bytes /= 2;
    return 2.0 * (double)bytes;
}

static vn_status measure_bandwidth(double *out, vn_queue *q)
{
    struct copier *c;
    double seconds;
    vn_status status = copier_open(&c, q, bytes_beyond_caches(q->device));

    if (status)
        return status;
    if (!(status = best_of_runs(&seconds, q, c->kernels.copy, &c->launch)))
        *out = c->bytes / seconds;
    copier_close(c);
    return status;
}

/* ---- holds ---- */

struct hold {
    vn_queue           *queue;
    struct roof_kernels kernels;
    struct shape        shape;
    vn_buffer          *y;
    double              rounds;              /* in a second, by one work-group */
};

static vn_status hold_measure(struct hold *h)
{
    const int rounds = 1 << 16;
    struct vn_launch l;
    double seconds;
    vn_status s = vn_buffer_open(&h->y, h->queue->device,
                                 (size_t)h->shape.items * h->shape.fma_width * sizeof(float));

    if (s)
        return s;
    l = fma_launch(&h->shape, VN_F32, h->y, rounds);
    if (!(s = best_of_runs(&seconds, h->queue, h->kernels.fma, &l)))
        h->rounds = rounds / seconds;
    return s;
}

vn_status hold_open(struct hold **out, vn_queue *q)
{
    struct hold *const h = *out = calloc(1, sizeof *h);

    if (!h)
        return vn__fail(VN_NO_MEMORY, "host memory ran out");
    h->queue = q;
    h->shape = shape_for(&q->device->facts, VN_F32);
    h->shape.groups = 1;

    vn_status s = kernels_open(&h->kernels, q->device, &h->shape, VN_F32);

    if (!s)
        s = hold_measure(h);
    if (s) {
        hold_close(h);
        *out = NULL;
    }
    return s;
}

vn_status hold_run(const struct hold *h, double seconds)
{
    const struct vn_launch l = fma_launch(&h->shape, VN_F32, h->y, (int)fmin(h->rounds * seconds, 1e9));

    return h->queue->device->backend->launch(h->queue, h->kernels.fma, &l);
}

void hold_close(struct hold *h)
{
    if (!h)
        return;
    vn_buffer_close(h->y);
    kernels_close(&h->kernels, h->queue->device);
    free(h);
}

/* ---- both roofs ---- */

vn_status roofline_measure(struct roofline *r, vn_queue *q, vn_type type)
{
    const vn_type real = type == VN_F64 ? VN_F64 : VN_F32;
    double *const peak = &r->peak[real == VN_F64];

    if (*peak > 0)
        return VN_OK;

    const struct shape shape = shape_for(&q->device->facts, real);
    struct roof_kernels k = { NULL, NULL, NULL };
    vn_status s = kernels_open(&k, q->device, &shape, real);

    if (!s)
        s = measure_peak(peak, q, k.fma, &shape, real);
    if (!s && r->bandwidth == 0)
        s = measure_bandwidth(&r->bandwidth, q);
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
