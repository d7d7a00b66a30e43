/* SPDX-License-Identifier: Apache-2.0
 *
 * gauges.c - measures rates of a device one by one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "measure/sampling.h"
#include "model.h"

/* ---- launches ---- */

static vn_status copy_once(void *state)
{
    return copier_run(state);
}

vn_status gauge_launch(double *seconds, struct bench *b)
{
    enum { LAUNCHES = HELD, ROUNDS = 6 };
    struct series series = { .queue = b->queue, .by_events = !b->info.is_cpu, .hold = b->hold };
    struct copier *c;
    double all, least = INFINITY;
    vn_status s = copier_open(&c, b->queue, 2);             /* a single work-group */

    if (s)
        return s;
    for (int i = 0; i < ROUNDS && !s; i++)
        if (!(s = series_time(&all, &series, copy_once, c, LAUNCHES)) && i)
            least = fmin(least, all / LAUNCHES);
    copier_close(c);
    *seconds = least;
    return s;
}

/* ---- caches ---- */

static const double CPU_SECONDS = 5e-3, GPU_SECONDS = 2e-3;     /* of a run; long beside a launch */
static const double PATIENCE = 12;        /* seconds for all windows */
static const double GROWTH = 1.25;        /* from one window to the next */
static const double AS_MEMORY = 1.25;     /* times its rate: a window this slow stays in no cache */
enum { STEPS_AT_FIRST_CPU = 64, RUNS = 3, WINDOWS = 96, SLOW_WINDOWS = 3 };

struct windows {
    vn_queue  *queue;
    void      *program, *kernel;
    vn_buffer *from, *to;
    int        is_cpu, items, width, parts;
    int        steps, most;               /* of a window; that there is room for */
    double     rate[WINDOWS], bytes[WINDOWS];
    int        count;
};

static double bytes_of(const struct windows *w)
{
    return 2.0 * w->parts * w->steps * w->items * w->width * (double)sizeof(float);
}

static vn_status build(struct windows *w)
{
    static const struct vn_variant kernels = {
        .name = "window", .texts = "cl/window.cl", .params = "ITEMS COPY_WIDTH"
    };
    vn_device *const d = w->queue->device;
    const int p[VN_PARAMS] = { w->items, w->width };
    char *const text = vn__assemble(d->backend->name, &kernels, p, NULL, VN_F32, 0, NULL);
    vn_status s;

    if (!text)
        return vn__fail(VN_NO_MEMORY, "host memory ran out");
    s = vn__cache_build(&w->program, NULL, d, text);
    free(text);
    return s ? s : d->backend->kernel_open(&w->kernel, d, w->program, "copy_window");
}

static vn_status windows_open(struct windows *w, vn_queue *q)
{
    const struct vn_facts *const f = &q->device->facts;
    const int items = f->items < 256 ? f->items : 256;
    const size_t room = (size_t)(bytes_beyond_caches(q->device) / 2);
    vn_status s;

    *w = (struct windows){ .queue = q, .is_cpu = !strcmp(f->family, "cpu") && f->vector > 1 };
    w->items = w->is_cpu ? 1 : items;
    w->width = !w->is_cpu ? 4 : f->vector >= 16 ? 16 : f->vector >= 8 ? 8 : f->vector >= 4 ? 4 : 2;
    w->parts = w->is_cpu ? f->units : 4 * f->units;
    w->steps = w->is_cpu ? STEPS_AT_FIRST_CPU : 1;
    w->most  = (int)fmin((double)room / (bytes_of(w) / 2 / w->steps), 1 << 28);
    if (!(s = build(w)) && !(s = vn_buffer_open(&w->from, q->device, room)))
        s = vn_buffer_open(&w->to, q->device, room);
    return s;
}

static void windows_close(struct windows *w)
{
    vn_device *const d = w->queue->device;

    vn_buffer_close(w->from);
    vn_buffer_close(w->to);
    if (w->kernel)
        d->backend->kernel_close(w->kernel);
    if (w->program)
        vn__cache_close(d, w->program);
}

static vn_status copy_times(double *seconds, const struct windows *w, int times)
{
    struct vn_launch l = { .groups = { w->parts, 1, 1 }, .items = w->items };
    struct stopwatch watch;
    vn_status s = stopwatch_start(&watch, w->queue, !w->queue->device->info.is_cpu);

    vn__arg_buffer(&l, w->from);
    vn__arg_buffer(&l, w->to);
    vn__arg_int(&l, w->parts);
    vn__arg_int(&l, w->steps);
    vn__arg_int(&l, times);
    vn__arg_int(&l, !w->is_cpu);
    if (!s)
        s = w->queue->device->backend->launch(w->queue, w->kernel, &l);
    return s ? s : stopwatch_stop(seconds, &watch);
}

/* Bytes a second of the window that is set: the best of a few runs. */
static vn_status rate_of(double *rate, const struct windows *w)
{
    const double wanted = w->is_cpu ? CPU_SECONDS : GPU_SECONDS;
    double seconds, least = INFINITY, times = 1;
    vn_status s = copy_times(&seconds, w, 1);               /* not counted: it touches the pages */

    while (!s && !(s = copy_times(&seconds, w, (int)times)) && seconds < wanted / 2 && times < 1e8)
        times = seconds > wanted / 16 ? ceil(times * wanted / seconds) : times * 8;
    for (int i = 0; i < RUNS && !s; i++)
        if (!(s = copy_times(&seconds, w, (int)times)))
            least = fmin(least, seconds);
    *rate = bytes_of(w) * (int)times / least;
    return s;
}

/* Windows of growing size, until some are as slow as memory. */
static vn_status measure_windows(struct windows *w, double memory)
{
    const double start = vn__seconds();
    int slow = 0;
    vn_status s = VN_OK;

    while (!s && w->steps <= w->most && w->count < WINDOWS && slow < SLOW_WINDOWS &&
           vn__seconds() - start < PATIENCE) {
        w->bytes[w->count] = bytes_of(w);
        if (!(s = rate_of(&w->rate[w->count], w)))
            slow = w->rate[w->count++] < AS_MEMORY * memory ? slow + 1 : 0;
        w->steps = (int)ceil(w->steps * GROWTH);
    }
    return s;
}

/* A window stays where its rate is nearer to that of the fastest than to the memory's. */
static void read_off(double *rate, double *bytes, const struct windows *w, double memory)
{
    double fastest = 0, staying[WINDOWS];
    int last = -1;

    for (int i = 0; i < w->count; i++)
        fastest = fmax(fastest, w->rate[i]);
    for (int i = 0; i < w->count; i++)
        if (fastest >= AS_MEMORY * memory && w->rate[i] * w->rate[i] >= fastest * memory)
            last = i;
    memcpy(staying, w->rate, sizeof staying);
    *rate  = last < 0 ? memory : median_of(staying, last + 1);
    *bytes = last < 0 ? 0 : w->bytes[last];
}

vn_status gauge_cache(double *rate, double *bytes, vn_queue *q, double memory)
{
    struct windows w;
    vn_status s = windows_open(&w, q);

    if (!s)
        s = measure_windows(&w, memory);
    if (!s)
        read_off(rate, bytes, &w, memory);
    windows_close(&w);
    return s;
}

/* ---- matrix engines ---- */

static const double LARGE = 1e-3;         /* seconds of a product that is large enough */

static double estimate(const struct vn_candidate *it, const void *problem, const struct vn_rates *rates,
                       vn_queue *q)
{
    const struct vn_site site = { &q->device->facts, rates, q, 0 };
    struct vn_plan plan = { 0 };

    it->variant->plan(&plan, problem, &it->row, &site);
    return plan.seconds;
}

static double estimate_at(double rate, const struct vn_candidate *it, const void *problem,
                          const struct vn_rates *rates, size_t engine, vn_queue *q)
{
    struct vn_rates changed = *rates;

    *(double *)((char *)&changed + engine) = rate;
    return estimate(it, problem, &changed, q);
}

/* The cheapest plan whose time depends on the engine: 0, there is none. */
static int uses_engine(struct vn_candidate *out, struct bench *b, const struct vn_rates *rates, size_t engine)
{
    const double slow = 1, fast = 2;
    const struct vn_memo *const last = b->queue->last;
    struct vn_candidate *list;
    double least = INFINITY;
    int count;

    if (vn__candidates(&list, &count, b->queue, last->table, last->problem, NULL, 0))
        return 0;
    for (int i = 0; i < count; i++) {
        const struct vn_candidate *const it = &list[i];

        if (!it->why && it->variant->texts && it->variant->plan &&
            it->plan.seconds > 0 && it->plan.seconds < least &&
            estimate_at(fast, it, last->problem, rates, engine, b->queue) <
                0.9 * estimate_at(slow, it, last->problem, rates, engine, b->queue)) {
            *out  = *it;
            least = it->plan.seconds;
        }
    }
    free(list);
    return isfinite(least);
}

struct product { struct problem problem; struct operands *o; vn_queue *queue; };

static vn_status multiply(void *state)
{
    const struct product *const p = state;

    return problem_run(p->queue, &p->problem, p->o);
}

static vn_status time_product(double *seconds, struct bench *b, struct product *p)
{
    enum { SAMPLES_TAKEN = 5, REPEATS = 4 };
    struct series series = { .queue = b->queue, .by_events = !b->info.is_cpu, .hold = b->hold };
    double sample[SAMPLES_TAKEN];
    vn_status s = multiply(p);

    for (int i = 0; i < SAMPLES_TAKEN && !s; i++)
        s = series_time(&sample[i], &series, multiply, p, REPEATS);
    if (!s)
        *seconds = median_of(sample, SAMPLES_TAKEN) / REPEATS;
    return s;
}

/* By bisection: the faster the engine, the less time. */
static double rate_that_takes(double seconds, const struct vn_candidate *it, const void *problem,
                              const struct vn_rates *rates, size_t engine, vn_queue *q)
{
    double low = 1e-2, high = 1e8;

    if (estimate_at(high, it, problem, rates, engine, q) > seconds ||
        estimate_at(low, it, problem, rates, engine, q) < seconds)
        return 0;
    while (high / low > 1.0001) {
        const double middle = sqrt(low * high);

        *(estimate_at(middle, it, problem, rates, engine, q) > seconds ? &low : &high) = middle;
    }
    return high;
}

/* *seconds: of the product; 0 where no plan uses the engine. */
static vn_status measure_product(double *rate, double *seconds, struct bench *b,
                                 const struct problem *problem, const struct vn_rates *rates, size_t engine)
{
    struct vn_candidate it;
    struct values v;
    struct product p = { .problem = *problem, .o = &v.o, .queue = b->queue };
    vn_status s;

    *seconds = 0;
    if (values_open(&v, b->queue, b->device, problem)) {
        values_close(&v);
        return *vn_last_error() ? VN_FAILED : vn__fail(VN_NO_MEMORY, "host memory ran out");
    }
    if (!(s = multiply(&p)) && uses_engine(&it, b, rates, engine)) {
        snprintf(p.problem.variant, sizeof p.problem.variant, "%s", it.variant->name);
        if (!(s = time_product(seconds, b, &p)))
            *rate = rate_that_takes(*seconds, &it, b->queue->last->problem, rates, engine, b->queue);
    }
    values_close(&v);
    return s;
}

vn_status gauge_engine(double *rate, struct bench *b, const char *text, const struct vn_rates *rates,
                       size_t engine)
{
    struct problem p;
    char product[PROBLEM_TEXT], why[SENTENCE];
    double seconds = 0;
    vn_status s = VN_OK;

    *rate = 0;
    for (int n = 1024; n <= 8192 && !s && (n == 1024 || (seconds > 0 && seconds < LARGE)); n *= 2) {
        snprintf(product, sizeof product, "gemm:%dx%dx%d:%s", n, n, n, text);
        if (problem_parse(&p, product, why, sizeof why) || values_fit(b->device, &p, 2, why, sizeof why))
            break;
        s = measure_product(rate, &seconds, b, &p, rates, engine);
    }
    return s;
}
