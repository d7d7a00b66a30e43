/* SPDX-License-Identifier: Apache-2.0
 *
 * interposed.c - functions that the linker puts between the library and what it calls.
 */
#include <stdlib.h>
#include <string.h>
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include "interposed.h"

/* ---- allocations ---- */

static int  counting;
static long allocations;

void allocations_start(void)
{
    __atomic_store_n(&allocations, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&counting, 1, __ATOMIC_SEQ_CST);
}

long allocations_stop(void)
{
    __atomic_store_n(&counting, 0, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&allocations, __ATOMIC_RELAXED);
}

static void count(void)
{
    if (__atomic_load_n(&counting, __ATOMIC_RELAXED))
        __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
}

/* A function, and the one it stands before. */
#define INTERPOSE(type, name, parameters, arguments)   \
    type __real_##name parameters;                     \
    type __wrap_##name parameters;                     \
    type __wrap_##name parameters                      \
    {                                                  \
        count();                                       \
        return __real_##name arguments;                \
    }

INTERPOSE(void *, malloc,         (size_t bytes),                           (bytes))
INTERPOSE(void *, calloc,         (size_t n, size_t bytes),                 (n, bytes))
INTERPOSE(void *, realloc,        (void *old, size_t bytes),                (old, bytes))
INTERPOSE(void *, aligned_alloc,  (size_t align, size_t bytes),             (align, bytes))
INTERPOSE(int,    posix_memalign, (void **out, size_t align, size_t bytes), (out, align, bytes))
INTERPOSE(char *, strdup,         (const char *s),                          (s))

/* ---- OpenCL kernels ---- */

enum { KERNELS = 32, ARGUMENTS = 64, VALUE = 64, LAUNCHES = 16 };

struct argument { int given; size_t size; unsigned char value[VALUE]; };

struct kernel { cl_kernel id; struct argument argument[ARGUMENTS]; };

/* A launch, with the arguments as they were when it was enqueued. */
struct launch {
    cl_command_queue queue;
    struct kernel    kernel;
    cl_uint          arguments, dimensions;
    size_t           global[3], local[3];
};

static struct {
    int           open, started, muted, full, kernels, launches;
    struct kernel kernel[KERNELS];
    struct launch launch[LAUNCHES];
} recording;

cl_int __real_clSetKernelArg(cl_kernel, cl_uint, size_t, const void *);
cl_int __wrap_clSetKernelArg(cl_kernel, cl_uint, size_t, const void *);
cl_int __real_clEnqueueNDRangeKernel(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
                                     const size_t *, cl_uint, const cl_event *, cl_event *);
cl_int __wrap_clEnqueueNDRangeKernel(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
                                     const size_t *, cl_uint, const cl_event *, cl_event *);

static struct kernel *kernel_of(cl_kernel id)
{
    for (int i = 0; i < recording.kernels; i++)
        if (recording.kernel[i].id == id)
            return &recording.kernel[i];
    if (recording.kernels == KERNELS)
        return NULL;
    recording.kernel[recording.kernels] = (struct kernel){ .id = id };
    return &recording.kernel[recording.kernels++];
}

static void note_argument(cl_kernel id, cl_uint index, size_t size, const void *value)
{
    struct kernel *const k = kernel_of(id);

    if (!k || index >= ARGUMENTS || size > VALUE || !value) {
        recording.full = 1;
        return;
    }
    k->argument[index].given = 1;
    k->argument[index].size  = size;
    memcpy(k->argument[index].value, value, size);
}

static void note_launch(cl_command_queue queue, cl_kernel id, cl_uint dimensions,
                        const size_t *global, const size_t *local)
{
    struct kernel *const k = kernel_of(id);
    struct launch *const l = &recording.launch[recording.launches];

    if (!k || recording.launches == LAUNCHES || !local) {
        recording.full = 1;
        return;
    }
    *l = (struct launch){ .queue = queue, .kernel = *k, .dimensions = dimensions };
    while (l->arguments < ARGUMENTS && k->argument[l->arguments].given)
        l->arguments++;
    memcpy(l->global, global, dimensions * sizeof *global);
    memcpy(l->local,  local,  dimensions * sizeof *local);
    recording.launches++;
}

cl_int __wrap_clSetKernelArg(cl_kernel id, cl_uint index, size_t size, const void *value)
{
    if (recording.open)
        note_argument(id, index, size, value);
    return recording.muted ? CL_SUCCESS : __real_clSetKernelArg(id, index, size, value);
}

cl_int __wrap_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel id, cl_uint dimensions,
                                     const size_t *offset, const size_t *global, const size_t *local,
                                     cl_uint waits, const cl_event *wait, cl_event *event)
{
    if (recording.started)
        note_launch(queue, id, dimensions, global, local);
    if (recording.muted)
        return CL_SUCCESS;
    return __real_clEnqueueNDRangeKernel(queue, id, dimensions, offset, global, local, waits, wait, event);
}

/* The arguments that a kernel has at a launch may have been given before. */
static void open_recording(void)
{
    memset(&recording, 0, sizeof recording);
    recording.open = 1;
}

static void close_recording(void)
{
    recording.open = 0;
}

static void start(void)
{
    recording.launches = 0;
    recording.started  = 1;
}

static int stop(void)
{
    recording.started = recording.open = 0;
    return recording.full ? -1 : recording.launches;
}

static void mute(int on)
{
    recording.muted = on;
}

static int replay(void)
{
    cl_int error = CL_SUCCESS;

    for (int i = 0; i < recording.launches && !error; i++) {
        const struct launch *const l = &recording.launch[i];

        for (cl_uint a = 0; a < l->arguments && !error; a++) {
            const struct argument *const value = &l->kernel.argument[a];

            error = __real_clSetKernelArg(l->kernel.id, a, value->size, value->value);
        }
        if (!error)
            error = __real_clEnqueueNDRangeKernel(l->queue, l->kernel.id, l->dimensions, NULL,
                                                  l->global, l->local, 0, NULL, NULL);
    }
    return error ? -1 : 0;
}

static int finish(void)
{
    return clFinish(recording.launch[0].queue) ? -1 : 0;
}

static int count_arguments(void)
{
    int n = 0;

    for (int i = 0; i < recording.launches; i++)
        n += (int)recording.launch[i].arguments;
    return n;
}

const struct recorder opencl_recorder = {
    .backend   = "opencl",
    .open      = open_recording,
    .close     = close_recording,
    .start     = start,
    .stop      = stop,
    .arguments = count_arguments,
    .replay    = replay,
    .finish    = finish,
    .mute      = mute,
};
