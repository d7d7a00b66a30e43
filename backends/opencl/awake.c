/* SPDX-License-Identifier: Apache-2.0
 *
 * awake.c - keeps one of PoCL's threads awake between kernels that follow each other.
 *
 * A thread of PoCL that finds no work sleeps at once. After each kernel all but one do so, and that one
 * must wake them for the next, which takes longer than a small product. OpenMP's thread pools spin
 * instead, and so does this: after each launch that threads share, one of them gets a native kernel to
 * run, on a queue of its own, which returns as soon as the next launch begins.
 *
 *     thread 1   | launch 1   |      | launch 2   |
 *     thread 2   | launch 1 | wait | launch 2 | wait ...    until one begins, or for MOST seconds
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"
#include "core.h"

static const double MOST = 1e-4;      /* seconds for which a thread stays awake without work */

struct vn_cl_awake {
    cl_command_queue queue;           /* of the waits */
    unsigned asked, begun;            /* counts of launches; they wrap */
};

/* The argument of a wait, which follows launch number `after`. */
struct wait { struct vn_cl_awake *awake; unsigned after; };

/* NULL where the device is not a CPU of PoCL with several threads, and where the queue cannot be created:
 * launches are only slower then.                                                           */
struct vn_cl_awake *vn__cl_awake_open(const vn_device *d)
{
    const struct vn_cl_device *own = d->impl;
    cl_device_exec_capabilities can = 0;
    struct vn_cl_awake *w;
    cl_int error;

    if (strcmp(d->info.platform, VN_POCL) || strcmp(d->facts.family, "cpu") ||
        d->facts.units < 2
        || clGetDeviceInfo(own->id, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof can, &can, NULL)
        || !(can & CL_EXEC_NATIVE_KERNEL) || !(w = calloc(1, sizeof *w)))
        return NULL;
    w->queue = clCreateCommandQueue(own->context, own->id, 0, &error);
    if (error) {
        free(w);
        return NULL;
    }
    return w;
}

void vn__cl_awake_close(struct vn_cl_awake *w)
{
    if (!w)
        return;
    if (w->asked)                     /* else there is no wait, and closing a device must not block */
        clFinish(w->queue);
    clReleaseCommandQueue(w->queue);
    free(w);
}

static void CL_CALLBACK launch_begins(cl_event launch, cl_int status, void *awake)
{
    struct vn_cl_awake *w = awake;

    (void)launch;
    (void)status;
    __atomic_add_fetch(&w->begun, 1, __ATOMIC_RELEASE);
}

/* Returns at once where a later launch has begun; where its own launch has not, waits for that one. */
static void CL_CALLBACK wait_for_next(void *arguments)
{
    const struct wait *it = arguments;
    const unsigned begun = __atomic_load_n(&it->awake->begun, __ATOMIC_ACQUIRE);
    const double start = vn__seconds();

    if ((int)(begun - it->after) > 0)
        return;
    while (__atomic_load_n(&it->awake->begun, __ATOMIC_ACQUIRE) == begun && vn__seconds() - start < MOST)
        sched_yield();                /* the thread that will begin it may need this core */
}

void vn__cl_stay_awake(struct vn_cl_awake *w, cl_event launch)
{
    struct wait it = { w, __atomic_add_fetch(&w->asked, 1, __ATOMIC_RELAXED) };

    if (clSetEventCallback(launch, CL_RUNNING, launch_begins, w) == CL_SUCCESS)
        clEnqueueNativeKernel(w->queue, wait_for_next, &it, sizeof it, 0, NULL, NULL, 0, NULL, NULL);
    else
        launch_begins(launch, CL_RUNNING, w);   /* counted without a callback, so that nothing waits for it */
}
