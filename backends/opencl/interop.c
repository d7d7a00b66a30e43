/* SPDX-License-Identifier: Apache-2.0
 *
 * interop.c - our handles on the caller's own OpenCL objects.
 */
#include <stdio.h>

#include "opencl.h"
#include "core.h"
#include "vernier_opencl.h"

static vn_status check_out(const void *out, const char *type)
{
    return out ? VN_OK : vn__fail(VN_INVALID, "out is NULL; it needs the address of a %s", type);
}

static vn_status check_given(const void *object, const char *argument, const char *type)
{
    return object ? VN_OK : vn__fail(VN_INVALID, "%s is NULL; it needs a %s", argument, type);
}

/* Handles on another backend's device have no OpenCL objects. */
static vn_status check_backend(const vn_device *d, const char *argument)
{
    if (d->backend == &vn__opencl)
        return VN_OK;
    return vn__fail(VN_INVALID, "%s is of %s; it needs to be of an OpenCL device", argument, d->info.spec);
}

static vn_status check_device(const vn_device *d)
{
    const vn_status s = vn__handle_check(d, VN_DEVICE, "device");

    return s ? s : check_backend(d, "device");
}

static vn_status check_queue(const vn_queue *q)
{
    const vn_status s = vn__handle_check(q, VN_QUEUE, "queue");

    return s ? s : check_backend(q->device, "queue");
}

vn_status vn_opencl_device_open(vn_device **out, cl_context context, cl_device_id device)
{
    void *const native[2] = { context, device };
    char spec[32];
    vn_status s;

    if ((s = vn__enter("vn_opencl_device_open")) || (s = check_out(out, "vn_device *")))
        return s;
    *out = NULL;
    if ((s = check_given(context, "context", "cl_context")) ||
        (s = check_given(device, "device", "cl_device_id")))
        return s;
    vn__cl_spec(spec, sizeof spec, device);
    return vn__leave(vn__device_open(out, &vn__opencl, -1, native, spec));
}

vn_status vn_opencl_queue_open(vn_queue **out, vn_device *d, cl_command_queue queue)
{
    vn_status s;

    if ((s = vn__enter("vn_opencl_queue_open")) || (s = check_out(out, "vn_queue *")))
        return s;
    *out = NULL;
    if ((s = check_device(d)) || (s = check_given(queue, "queue", "cl_command_queue")))
        return s;
    return vn__leave(vn__queue_open(out, d, queue));
}

vn_status vn_opencl_buffer_open(vn_buffer **out, vn_device *d, cl_mem buffer)
{
    vn_status s;

    if ((s = vn__enter("vn_opencl_buffer_open")) || (s = check_out(out, "vn_buffer *")))
        return s;
    *out = NULL;
    if ((s = check_device(d)) || (s = check_given(buffer, "buffer", "cl_mem")))
        return s;
    return vn__leave(vn__buffer_open(out, d, 0, buffer));
}

vn_status vn_opencl_queue_wait(vn_queue *q, cl_uint count, const cl_event *events)
{
    vn_status s;

    if ((s = vn__enter("vn_opencl_queue_wait")) || (s = check_queue(q)) || !count)
        return s;
    if (!events)
        return vn__fail(VN_INVALID, "events is NULL; it needs the %u events that count says", count);
    for (cl_uint i = 0; i < count; i++)
        if (!events[i])
            return vn__fail(VN_INVALID, "events[%u] is NULL; it needs a cl_event", i);
    return vn__leave(vn__cl_wait(q, count, events));
}

vn_status vn_opencl_queue_event(cl_event *out, vn_queue *q)
{
    vn_status s;

    if ((s = vn__enter("vn_opencl_queue_event")) || (s = check_out(out, "cl_event")))
        return s;
    *out = NULL;
    if ((s = check_queue(q)))
        return s;
    return vn__leave(vn__cl_marker(out, q));
}
