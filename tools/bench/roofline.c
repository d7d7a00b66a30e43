/* SPDX-License-Identifier: Apache-2.0
 *
 * roofline.c - measures the roofs with the kernels of cl/peak*.cl.
 *
 * They are built and launched as the library's own are, so what is measured is what its
 * kernels could reach.  Each figure is the best of many launches: a roof is a maximum.  On a
 * CPU these are short, so that some of them have all cores to themselves; on other devices
 * they go on until a power cap, if there is one, has been met.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core.h"
#include "engines.h"
#include "roofline.h"
#include "measure/machine.h"
#include "measure/sampling.h"

enum { COPY_ROUNDS = 4096, SUSTAINED = 8, RAISES = 2, LOOKS = 3, LAUNCHES = 30 };

static const double CPU_LAUNCH = 5e-4, GPU_LAUNCH = 0.02;     /* seconds, at least, less than twice that */
static const double CPU_TIME = 0.2, GPU_TIME = 1;             /* of all launches of one kind */
static const double WINDOW = 16 << 20;                        /* bytes that a launch copies, on a CPU */
static const size_t LONG_COPY = (size_t)1 << 30;              /* ... reads on a GPU */
/* All cores over one, times their number; on a machine that others use it should be nearer to 1. */
static const double CORES_LEAST = 0.7, CORES_BUSY = 0.95, CORES_MOST = 1.3;

struct roof_kernels { void *program, *fma, *copy, *reading; };

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
    char *const text = vn__assemble(d->backend->name, &roofs, p, NULL, type, 0, NULL);
    vn_status status;

    if (!text)
        return vn__fail(VN_NO_MEMORY, "host memory ran out");
    status = vn__cache_build(&k->program, NULL, d, text);
    free(text);
    if (!status)
        status = d->backend->kernel_open(&k->fma, d, k->program, "fma_peak");
    if (!status)
        status = d->backend->kernel_open(&k->copy, d, k->program, "copy");
    if (!status)
        status = d->backend->kernel_open(&k->reading, d, k->program, "reading");
    return status;
}

static void kernels_close(struct roof_kernels *k, vn_device *d)
{
    if (k->fma)
        d->backend->kernel_close(k->fma);
    if (k->copy)
        d->backend->kernel_close(k->copy);
    if (k->reading)
        d->backend->kernel_close(k->reading);
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

/* Of many launches the least time, and the median of the last ones: what a power cap leaves.  The first is
 * not counted: PoCL compiles then.                                                                       */
static vn_status best_of_launches(double *best, double *sustained, vn_queue *q, void *kernel,
                                  const struct vn_launch *l, double time)
{
    double last[SUSTAINED], spent = 0, seconds;
    vn_status s = timed_launch(&seconds, q, kernel, l);
    int n = 0;

    *best = 1e30;
    for (; !s && (n < SUSTAINED || spent < time) && !(n > 0 && spent > 10 * time); n++)
        if (!(s = timed_launch(&seconds, q, kernel, l))) {
            spent += seconds;
            last[n % SUSTAINED] = seconds;
            *best = fmin(*best, seconds);
        }
    if (sustained)
        *sustained = median_of(last, n < SUSTAINED ? n : SUSTAINED);
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

/* Of a kernel whose argument `at` says how many rounds it goes, a few at first: so many that a launch is long
 * enough, and longer by far than to launch it takes.                                                      */
static vn_status calibrate(struct vn_launch *l, int at, vn_queue *q, void *kernel)
{
    int32_t *const rounds = &l->args[at].value.i;
    double wanted = q->device->info.is_cpu ? CPU_LAUNCH : GPU_LAUNCH, seconds, least = 1e30;
    vn_status s = timed_launch(&seconds, q, kernel, l);           /* not counted */

    for (int i = 0; i < LOOKS && !s; i++)
        if (!(s = timed_launch(&seconds, q, kernel, l)))
            least = fmin(least, seconds);
    wanted = fmax(wanted, LAUNCHES * least);
    while (!s && !(s = timed_launch(&seconds, q, kernel, l)) && seconds < wanted && *rounds < 1 << 29)
        *rounds *= 2;
    return s;
}

/* FLOP/s of a kernel that does `each` in a round, with l->args[1] rounds at first. */
static vn_status measure_rate(double *best, double *sustained, vn_queue *q, void *kernel, struct vn_launch *l,
                              double each)
{
    const double time = q->device->info.is_cpu ? CPU_TIME : GPU_TIME;
    double least = 0, last = 0;
    vn_status s = calibrate(l, 1, q, kernel);

    if (!s && !(s = best_of_launches(&least, &last, q, kernel, l, time))) {
        *best = each * l->args[1].value.i / least;
        if (sustained)
            *sustained = each * l->args[1].value.i / last;
    }
    return s;
}

static double flops_of_round(const struct shape *s)
{
    return 2.0 * s->groups * s->items * s->fma_width * s->chains;
}

static vn_status measure_fma(double *out, vn_queue *q, void *kernel, const struct shape *s, vn_type type)
{
    const size_t bytes = (size_t)s->groups * (size_t)(s->items * s->fma_width) * vn_type_bytes(type);
    vn_buffer *y = NULL;
    vn_status status = vn_buffer_open(&y, q->device, bytes);
    double best;

    if (!status) {
        struct vn_launch l = fma_launch(s, type, y, 4);

        if (!(status = measure_rate(&best, NULL, q, kernel, &l, flops_of_round(s))))
            *out = fmax(*out, best);
    }
    vn_buffer_close(y);
    return status;
}

/* Since then, on a CPU; why holds 80 characters. */
static int was_disturbed(char *why, const struct machine_look *from)
{
    struct machine_look to;
    struct machine m;

    machine_look(&to);
    machine_between(&m, from, &to);
    return machine_is_disturbed(why, 80, &m, 1);
}

/* All cores of a CPU, and one alone: what all reach together must be about as many times that.  Where it is
 * not, both are measured again, and then marked.                                                         */
static vn_status measure_cores(struct roofline *r, vn_queue *q, void *kernel, const struct shape *shape,
                               vn_type type)
{
    const int cores = machine_cores(), is_f64 = type == VN_F64;
    struct shape one = *shape;
    double alone = 0;
    vn_status s = VN_OK;

    one.groups = 1;
    for (int i = 0; i < RAISES && !s; i++) {
        struct machine_look from;

        machine_look(&from);
        if ((s = measure_fma(&r->peak[is_f64], q, kernel, shape, type))
            || (s = measure_fma(&alone, q, kernel, &one, type)))
            return s;

        const int busy = was_disturbed(r->disturbed[is_f64], &from);
        const double share = r->peak[is_f64] / (alone * cores);

        *r->disturbed[is_f64] = '\0';
        if (share >= (busy ? CORES_BUSY : CORES_LEAST) && share <= CORES_MOST)
            break;
        snprintf(r->disturbed[is_f64], sizeof r->disturbed[is_f64],
                 "one core reaches %.3g GFLOP/s, %d cores %.3g", alone * 1e-9, cores,
                 r->peak[is_f64] * 1e-9);
    }
    return s;
}

/* ---- matrix engines ---- */

/* VN_OK also where the driver cannot build it: the device then has no such roof. */
static vn_status measure_engine(struct matrix_roof *out, vn_queue *q, const struct matrix_engine *e,
                                vn_type type)
{
    vn_device *const d = q->device;
    const int groups = 4 * d->facts.units;
    struct vn_choice it = { .variant = &e->kernel, .source = "roof" };
    struct vn_launch l = { .groups = { groups, 1, 1 }, .items = e->items };
    void *program = NULL;
    vn_buffer *y = NULL;
    vn_status s;

    memcpy(it.p, e->p, sizeof it.p);
    if (vn__choice_open(&it, &program, NULL, d, type, 0)) {
        vn__choice_close(&it, program, d);
        return VN_OK;
    }
    if (!(s = vn_buffer_open(&y, d, (size_t)groups * (size_t)e->items * sizeof(double)))) {
        vn__arg_buffer(&l, y);
        vn__arg_int(&l, 4);
        s = measure_rate(&out->flops, &out->sustained, q, it.kernel[0], &l, e->flops * groups);
    }
    if (!s)
        vn__engine(out->engine, &e->kernel, type, d->facts.family);
    vn_buffer_close(y);
    vn__choice_close(&it, program, d);
    return s;
}

/* The first engine that the device turns out to have. */
static vn_status measure_matrix(struct roofline *r, vn_queue *q, vn_type type)
{
    struct matrix_roof *const out = &r->matrix[type];
    const struct matrix_engine *it = matrix_engines;
    vn_status s = VN_OK;

    if (out->known || !(q->device->facts.types >> type & 1))
        return VN_OK;
    out->known = 1;
    for (; !s && !(out->flops > 0) && (it = matrix_engine_for(it, &q->device->facts, type)); it++)
        s = measure_engine(out, q, it, type);
    return s;
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
    vn__arg_int(&c->launch, 0);
    return status;
}

/* Pages that nobody has written may all be one, of zeros, which a cache holds. */
static vn_status copier_fill(const struct copier *c)
{
    struct vn_launch back = c->launch;

    back.args[0] = c->launch.args[1];
    back.args[1] = c->launch.args[0];
    return c->queue->device->backend->launch(c->queue, c->kernels.copy, &back);
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
    if (!status && !(status = copier_fill(c)) && !(status = copier_run(c)))
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

/* 2 x `most`, if that is a small part of the device. */
static double bytes_of_copy(const vn_device *d, size_t most)
{
    size_t bytes = most;

    while (bytes > (size_t)d->info.memory / 8 || (d->facts.buffer_bytes && bytes > d->facts.buffer_bytes))
        bytes /= 2;
    return 2.0 * (double)bytes;
}

double bytes_beyond_caches(const vn_device *d)
{
    return bytes_of_copy(d, (size_t)256 << 20);
}

/* Window after window of the copier's buffers, so that no cache holds them; the kernel moves `bytes`. */
static vn_status move_windows(double *best, const struct copier *c, void *kernel, double bytes)
{
    const double each = bytes / (double)c->launch.groups[0];               /* of a work-group */
    const int64_t all = c->launch.groups[0], most = (int64_t)(2 * WINDOW / c->bytes * (double)all),
                  groups = most < 1 ? 1 : most < all ? most : all;
    struct vn_launch l = c->launch;
    double spent = 0, seconds, least = 1e30;
    int64_t at = 0;
    vn_status s = VN_OK;

    l.groups[0] = groups;
    while (!s && spent < CPU_TIME) {
        l.args[3].value.i = (int32_t)at;
        if (!(s = timed_launch(&seconds, c->queue, kernel, &l))) {
            spent += seconds;
            least  = fmin(least, seconds);
        }
        at = at + 2 * groups <= all ? at + groups : 0;
    }
    *best = each * (double)groups / least;
    return s;
}

/* ... again where others used the memory, too, and then it is marked. */
static vn_status measure_windows(struct roofline *r, const struct copier *c)
{
    vn_status s = VN_OK;
    int busy = 1;

    for (int i = 0; i < RAISES && busy && !s; i++) {
        struct machine_look from;
        double copying, reading;

        machine_look(&from);
        if (!(s = move_windows(&copying, c, c->kernels.copy, c->bytes))
            && !(s = move_windows(&reading, c, c->kernels.reading, c->bytes / 2))) {
            r->bandwidth = fmax(r->bandwidth, copying);
            r->reading   = fmax(r->reading, reading);
        }
        busy = was_disturbed(r->disturbed[2], &from);
    }
    return s;
}

/* On a GPU by launches that are long beside their beginning and end. */
static vn_status measure_bandwidth(struct roofline *r, vn_queue *q)
{
    const vn_device *const d = q->device;
    struct copier *c;
    double copying, reading;
    vn_status s = copier_open(&c, q, d->info.is_cpu ? bytes_beyond_caches(d) : bytes_of_copy(d, LONG_COPY));

    if (s)
        return s;
    if (d->info.is_cpu)
        s = measure_windows(r, c);
    else if (!(s = best_of_launches(&copying, NULL, q, c->kernels.copy, &c->launch, GPU_TIME / 4))
             && !(s = best_of_launches(&reading, NULL, q, c->kernels.reading, &c->launch, GPU_TIME / 4))) {
        r->bandwidth = fmax(r->bandwidth, c->bytes / copying);
        r->reading   = fmax(r->reading, c->bytes / 2 / reading);
    }
    copier_close(c);
    return s;
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
    struct vn_launch l = { .nargs = 0 };
    double seconds;
    vn_status s = vn_buffer_open(&h->y, h->queue->device,
                                 (size_t)h->shape.items * h->shape.fma_width * sizeof(float));

    if (s)
        return s;
    l = fma_launch(&h->shape, VN_F32, h->y, rounds);
    if (!(s = best_of_launches(&seconds, NULL, h->queue, h->kernels.fma, &l, 0)))
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

/* ---- all roofs ---- */

vn_status roofline_measure_fma(struct roofline *r, vn_queue *q, vn_type type)
{
    const vn_type real = type == VN_F64 ? VN_F64 : VN_F32;
    const struct shape shape = shape_for(&q->device->facts, real);
    struct roof_kernels k = { .program = NULL };
    vn_status s = kernels_open(&k, q->device, &shape, real);

    if (!s)
        s = q->device->info.is_cpu ? measure_cores(r, q, k.fma, &shape, real)
                                   : measure_fma(&r->peak[real == VN_F64], q, k.fma, &shape, real);
    if (!s)
        s = measure_bandwidth(r, q);
    kernels_close(&k, q->device);
    return s;
}

vn_status roofline_measure(struct roofline *r, vn_queue *q, vn_type type, vn_math math)
{
    vn_status s = r->peak[type == VN_F64] > 0 && r->bandwidth > 0 ? VN_OK : roofline_measure_fma(r, q, type);

    if (!s)
        s = measure_matrix(r, q, type == VN_F32 ? VN_BF16 : type);
    if (!s && type == VN_F32 && math == VN_MATH_TF32)
        s = measure_matrix(r, q, VN_F32);
    return s;
}

static void lift(struct roof *roof, double flops, const char *engine, const char *parts)
{
    if (flops <= roof->flops)
        return;
    roof->flops = flops;
    snprintf(roof->kind, sizeof roof->kind, "%s%s", engine, parts);
}

struct roof roofline_of(const struct roofline *r, vn_type type, vn_math math)
{
    const int is_f64 = type == VN_F64, is_f32 = type == VN_F32;
    struct roof roof = { .flops = 0 };

    lift(&roof, r->peak[is_f64], is_f64 ? "FMA f64" : "FMA f32", "");
    if (math == VN_MATH_BITWISE)
        return roof;
    if (is_f32)                                       /* six products of three parts */
        lift(&roof, r->matrix[VN_BF16].flops / 6, r->matrix[VN_BF16].engine, " / 6");
    if (!is_f32 || math == VN_MATH_TF32)
        lift(&roof, r->matrix[type].flops, r->matrix[type].engine, "");
    return roof;
}

double roofline_peak(const struct roofline *r, vn_type type, vn_math math)
{
    return roofline_of(r, type, math).flops;
}

double roofline_moving(const struct roofline *r, const struct amount *w)
{
    const double both = fmin(w->read, w->written), reading = fmax(r->reading, r->bandwidth);

    return 2 * both / r->bandwidth + (w->read - both) / reading + (w->written - both) / r->bandwidth;
}

double roofline_seconds(const struct roofline *r, vn_type type, vn_math math, const struct amount *w)
{
    return fmax(w->flops / roofline_peak(r, type, math), roofline_moving(r, w));
}

/* Memory sets the roof, and a cache may hold what is moved. */
static int may_be_cached(const struct roofline *r, double peak, const struct amount *w)
{
    return roofline_moving(r, w) > w->flops / peak && w->read + w->written < ROOFLINE_CACHED;
}

vn_status roofline_raise(struct roofline *r, vn_queue *q, vn_type type, vn_math math, const struct amount *w,
                         double seconds)
{
    vn_status s = VN_OK;

    for (int i = 0; i < RAISES && !s; i++) {
        if (roofline_seconds(r, type, math, w) <= seconds
            || may_be_cached(r, roofline_peak(r, type, math), w))
            return VN_OK;
        s = roofline_measure_fma(r, q, type);
    }
    if (!s && w->flops / roofline_peak(r, type, math) > seconds)
        snprintf(r->disturbed[type == VN_F64], sizeof *r->disturbed, "a row of %.3g GFLOP/s passes it",
                 w->flops / seconds * 1e-9);
    else if (!s && roofline_moving(r, w) > seconds)
        snprintf(r->disturbed[2], sizeof *r->disturbed, "a row of %.3g GB/s passes it",
                 (w->read + w->written) / seconds * 1e-9);
    return s;
}
