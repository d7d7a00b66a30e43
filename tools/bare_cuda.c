/* SPDX-License-Identifier: Apache-2.0
 *
 * bare_cuda.c - what a warm vn_gemm() costs beside the bare CUDA calls that it makes.
 *
 * As overhead.c does for OpenCL: one warm call is noted, its kernels, arguments and sizes, and
 * made again by hand: cuLaunchKernel on functions of a module loaded from the same cubin, with
 * the context current, as a CUDA program has it.
 */
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "bare_cuda.h"
#include "commands.h"
#include "core.h"
#include "sampling.h"
#include "values.h"

#if VN_WITH_CUDA
#include "../backends/cuda_driver.h"

enum { CALLS = 64, TURNS = 41, LAUNCHES = 4 };

static const char *const text = "gemm:32x32x32:f32:nn";

/* ---- noting what the library launches ---- */

static struct { struct vn_launch it[LAUNCHES]; void *kernel[LAUNCHES]; int count; } noted;
static vn_status (*launch)(vn_queue *q, void *kernel, const struct vn_launch *l);

static vn_status note_launch(vn_queue *q, void *kernel, const struct vn_launch *l)
{
    if (noted.count < LAUNCHES) {
        noted.it[noted.count]     = *l;
        noted.kernel[noted.count] = kernel;
    }
    noted.count++;
    return launch(q, kernel, l);
}

/* ---- the same by hand ---- */

struct bare {
    const struct vn_cuda_functions *cu;
    CUdevice    device;
    CUcontext   context;
    CUmodule    module;
    CUstream    stream;
    CUfunction  function[LAUNCHES];
    CUdeviceptr memory[LAUNCHES][VN_ARGS];
    void       *argument[LAUNCHES][VN_ARGS];
};

struct subject {
    vn_device     *device;
    vn_queue      *queue;
    struct problem problem;
    struct values  values;
    struct bare    bare;
};

/* The entry whose kernel this is, among the words of variant->entries. */
static int entry_name(char out[64], const struct vn_choice *it, const void *kernel)
{
    const char *at = it->variant->entries;

    for (int i = 0; i < VN_ENTRIES && *at; i++) {
        const size_t n = strcspn(at, " ");

        if (it->kernel[i] == kernel) {
            snprintf(out, 64, "%.*s", (int)n, at);
            return 0;
        }
        at += n + strspn(at + n, " ");
    }
    return -1;
}

static int load_module(struct subject *s)
{
    const struct vn_choice *const it = s->queue->last->choice;
    const struct vn_problem *const head = (const struct vn_problem *)s->queue->last->problem;
    char *const source = vn__assemble("cuda", it->variant, it->p, head->type, head->wide);
    void *program = NULL, *cubin = NULL;
    size_t bytes;
    int failed = !source || vn__cache_build(&program, s->device, source)
              || s->device->backend->program_save(program, &cubin, &bytes)
              || s->bare.cu->ModuleLoadData(&s->bare.module, cubin);

    for (int i = 0; i < noted.count && !failed; i++) {
        char name[64];

        failed = entry_name(name, it, noted.kernel[i])
              || s->bare.cu->ModuleGetFunction(&s->bare.function[i], s->bare.module, name);
    }
    if (program)
        vn__cache_close(s->device, program);
    free(cubin);
    free(source);
    return failed;
}

static int make_arguments(struct bare *b, int l)
{
    for (int i = 0; i < noted.it[l].nargs; i++) {
        struct vn_arg *const a = &noted.it[l].args[i];

        if (!a->size && a->buffer && b->cu->MemAlloc(&b->memory[l][i], a->buffer->bytes))
            return -1;
        b->argument[l][i] = a->size ? (void *)&a->value : &b->memory[l][i];
    }
    return 0;
}

static int bare_open(struct subject *s)
{
    struct bare *const b = &s->bare;
    const char *const index = strchr(s->device->info.spec, ':'), *why;

    if (!(b->cu = vn__cuda_driver(&why)) || !index || b->cu->DeviceGet(&b->device, atoi(index + 1))
        || b->cu->PrimaryCtxRetain(&b->context, b->device) || b->cu->CtxPushCurrent(b->context))
        return -1;
    if (load_module(s) || b->cu->StreamCreate(&b->stream, CU_STREAM_NON_BLOCKING))
        return -1;
    for (int i = 0; i < noted.count; i++)
        if (make_arguments(b, i))
            return -1;
    return 0;
}

static void bare_close(struct bare *b)
{
    CUcontext popped;

    if (!b->context)
        return;
    for (int l = 0; l < LAUNCHES; l++)
        for (int i = 0; i < VN_ARGS; i++)
            if (b->memory[l][i])
                b->cu->MemFree(b->memory[l][i]);
    if (b->stream)
        b->cu->StreamDestroy(b->stream);
    if (b->module)
        b->cu->ModuleUnload(b->module);
    b->cu->CtxPopCurrent(&popped);
    b->cu->PrimaryCtxRelease(b->device);
}

/* ---- both in turns ---- */

static int enqueue(struct subject *s, int bare)
{
    const vn_tensor *const t = s->values.o.t;

    if (!bare)
        return vn_gemm(s->queue, 1, t[0], t[1], 0, t[2], NULL) ? -1 : 0;
    for (int i = 0; i < noted.count; i++) {
        const struct vn_launch *const l = &noted.it[i];

        if (s->bare.cu->LaunchKernel(s->bare.function[i], (unsigned)l->groups[0], (unsigned)l->groups[1],
                                     (unsigned)l->groups[2], (unsigned)l->items, 1, 1, 0, s->bare.stream,
                                     s->bare.argument[i], NULL))
            return -1;
    }
    return 0;
}

static int finish(struct subject *s, int bare)
{
    return bare ? s->bare.cu->StreamSynchronize(s->bare.stream) : (int)vn_queue_finish(s->queue);
}

static double seconds_of(struct subject *s, int bare, int waits)
{
    const double start = vn__seconds();
    double end;

    for (int i = 0; i < CALLS; i++)
        if (enqueue(s, bare) || (waits && finish(s, bare)))
            return -1;
    end = vn__seconds();
    return finish(s, bare) ? -1 : (end - start) / CALLS;
}

static int compare(struct call_cost *out, struct subject *s, int waits)
{
    double sample[2][TURNS];

    for (int i = 0; i < TURNS; i++)
        for (int j = 0; j < 2; j++) {
            const int bare = (i + j) % 2;                       /* neither is always the first */

            if ((sample[bare][i] = seconds_of(s, bare, waits)) < 0)
                return -1;
        }
    *out = (struct call_cost){ median_of(sample[0], TURNS), median_of(sample[1], TURNS) };
    return 0;
}

static int note_one_call(struct subject *s)
{
    const struct vn_backend *const real = s->device->backend;
    struct vn_backend noting = *real;
    int failed;

    launch         = real->launch;
    noting.launch  = note_launch;
    noted.count    = 0;
    s->device->backend = &noting;
    failed = enqueue(s, 0);
    s->device->backend = real;
    return failed || finish(s, 0) || noted.count < 1 || noted.count > LAUNCHES ? -1 : 0;
}

int bare_cuda_measure(struct call_cost *once, struct call_cost *finished, const char *spec)
{
    struct subject s = { NULL, NULL, { .op = GEMM }, { .o.count = 0 }, { .cu = NULL } };
    char why[256];
    int failed = problem_parse(&s.problem, text, why, sizeof why) || device_open(&s.device, &s.queue, spec)
              || values_open(&s.values, s.queue, s.device, &s.problem)
              || enqueue(&s, 0) || finish(&s, 0) || note_one_call(&s) || bare_open(&s)
              || compare(once, &s, 0) || compare(finished, &s, 1);

    bare_close(&s.bare);
    values_close(&s.values);
    vn_queue_close(s.queue);
    vn_device_close(s.device);
    return failed ? -1 : 0;
}

#else

int bare_cuda_measure(struct call_cost *once, struct call_cost *finished, const char *spec)
{
    (void)once;
    (void)finished;
    (void)spec;
    return -1;
}

#endif
