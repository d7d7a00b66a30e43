/* SPDX-License-Identifier: Apache-2.0
 *
 * host.c - whether a device computes in the host's memory itself.
 *
 * With CL_MEM_USE_HOST_PTR a driver may work in a copy until the buffer is mapped.  So each CPU is tried
 * once: a kernel adds 1 to what the host wrote after the buffer was made, twice.  A driver that copies adds
 * it to what the memory held before, or shows its sum too late.
 */
#include <stdlib.h>

#include "opencl.h"

struct trial {
    cl_command_queue queue;
    cl_program       program;
    cl_kernel        kernel;
    cl_mem           buffer;
    volatile cl_int *memory;
};

static cl_int open_trial(struct trial *t, const struct vn_cl_device *d)
{
    static const char *text = "__kernel void plus_one(__global int *g) { g[0] += 1; }\n";
    cl_int error;

    *t->memory = 1;
    t->buffer = clCreateBuffer(d->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, VN_HOST_ALIGN,
                               (void *)t->memory, &error);
    if (!error)
        t->queue = clCreateCommandQueue(d->context, d->id, 0, &error);
    if (!error)
        t->program = clCreateProgramWithSource(d->context, 1, &text, NULL, &error);
    if (!error)
        error = clBuildProgram(t->program, 1, &d->id, d->options, NULL, NULL);
    if (!error)
        t->kernel = clCreateKernel(t->program, "plus_one", &error);
    return error;
}

static cl_int run_trial(int *shares, const struct trial *t)
{
    const size_t one = 1;
    cl_int error = clSetKernelArg(t->kernel, 0, sizeof t->buffer, &t->buffer);

    *shares = 1;
    for (int i = 41; i < 43 && !error; i++) {
        *t->memory = i;
        error = clEnqueueNDRangeKernel(t->queue, t->kernel, 1, NULL, &one, &one, 0, NULL, NULL);
        if (!error)
            error = clFinish(t->queue);
        *shares &= *t->memory == i + 1;
    }
    return error;
}

static void close_trial(const struct trial *t)
{
    if (t->kernel)
        clReleaseKernel(t->kernel);
    if (t->program)
        clReleaseProgram(t->program);
    if (t->queue)
        clReleaseCommandQueue(t->queue);
    if (t->buffer)
        clReleaseMemObject(t->buffer);
}

vn_status vn__cl_shares_host(int *out, vn_device *device)
{
    struct vn_cl_device *d = device->impl;
    struct trial t = { NULL, NULL, NULL, NULL, NULL };
    char *memory;
    cl_int error;

    if ((*out = __atomic_load_n(&d->shares_host, __ATOMIC_ACQUIRE)))
        return VN_OK;
    if (!device->info.is_cpu) {
        *out = -1;
        return VN_OK;
    }
    if (!(memory = malloc(2 * VN_HOST_ALIGN)))
        return vn__fail(VN_NO_MEMORY, "host memory ran out: %d bytes", 2 * VN_HOST_ALIGN);
    t.memory = (void *)(memory + VN_HOST_ALIGN - (uintptr_t)memory % VN_HOST_ALIGN);
    error = open_trial(&t, d);
    if (!error && (error = run_trial(out, &t)))
        memory = NULL;                      /* a kernel may still be running: it is not freed */
    close_trial(&t);
    free(memory);
    if (error)
        return vn__cl_status(error, "a trial of the host's memory");
    if (!*out)
        *out = -1;
    __atomic_store_n(&d->shares_host, *out, __ATOMIC_RELEASE);
    return VN_OK;
}
