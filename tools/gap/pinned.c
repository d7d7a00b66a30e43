/* SPDX-License-Identifier: Apache-2.0
 *
 * pinned.c - host memory that the device can read and write by itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "backends/opencl/opencl.h"
#include "core.h"
#include "pinned.h"
#if VN_WITH_CUDA
#include "backends/cuda/driver.h"
#endif

/* ---- OpenCL ---- */

static cl_command_queue queue_of(const vn_queue *q)
{
    return ((const struct vn_cl_queue *)q->impl)->id;
}

static int map_buffer(struct pinned *p, size_t bytes)
{
    const struct vn_cl_device *const d = p->queue->device->impl;
    cl_int error;
    const cl_mem memory = clCreateBuffer(d->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, NULL,
                                         &error);

    if (error)
        return -1;
    p->host = clEnqueueMapBuffer(queue_of(p->queue), memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0,
                                 NULL, NULL, &error);
    p->handle = memory;
    if (!error)
        return 0;
    clReleaseMemObject(memory);
    return -1;
}

static void unmap_buffer(struct pinned *p)
{
    clEnqueueUnmapMemObject(queue_of(p->queue), p->handle, p->host, 0, NULL, NULL);
    clFinish(queue_of(p->queue));
    clReleaseMemObject(p->handle);
}

/* ---- CUDA ---- */

#if VN_WITH_CUDA

enum { FOR_ALL_CONTEXTS = 1 };

/* Registers, or with bytes of 0 forgets, in the device's primary context. */
static int registering(const struct pinned *p, size_t bytes)
{
    const struct vn_cuda_functions *cu;
    const char *const index = strchr(p->queue->device->info.spec, ':'), *why;
    void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    int (*enter)(void *, size_t, unsigned) = NULL, (*leave)(void *) = NULL;
    CUdevice device;
    CUcontext context, popped;
    int failed = 1;

    if (library) {
        void *const in = dlsym(library, "cuMemHostRegister_v2"),
             *const out = dlsym(library, "cuMemHostUnregister");

        memcpy(&enter, &in, sizeof in);
        memcpy(&leave, &out, sizeof out);
        dlclose(library);                           /* the backend keeps it */
    }
    if (!enter || !leave || !index || !(cu = vn__cuda_driver(&why)) || cu->DeviceGet(&device, atoi(index + 1))
        || cu->PrimaryCtxRetain(&context, device))
        return -1;
    if (!cu->CtxPushCurrent(context)) {
        failed = bytes ? enter(p->host, bytes, FOR_ALL_CONTEXTS) : leave(p->host);
        cu->CtxPopCurrent(&popped);
    }
    cu->PrimaryCtxRelease(device);
    return failed ? -1 : 0;
}

#else

static int registering(const struct pinned *p, size_t bytes)
{
    (void)p;
    (void)bytes;
    return -1;
}

#endif

static int register_memory(struct pinned *p, size_t bytes)
{
    if (posix_memalign(&p->host, 4096, bytes))
        return -1;
    if (!registering(p, bytes))
        return 0;
    free(p->host);
    return -1;
}

/* ---- both ---- */

int pinned_open(struct pinned *out, vn_queue *q, size_t bytes)
{
    struct pinned p = { .queue = q };
    const int failed = strcmp(q->device->backend->name, "opencl") ? register_memory(&p, bytes)
                                                                  : map_buffer(&p, bytes);

    *out = failed ? (struct pinned){ .host = NULL } : p;
    return failed;
}

void pinned_close(struct pinned *p)
{
    if (!p->host)
        return;
    if (p->handle)
        unmap_buffer(p);
    else {
        registering(p, 0);
        free(p->host);
    }
    p->host = NULL;
}
