/* SPDX-License-Identifier: Apache-2.0
 *
 * interop.c - our handles on the caller's own CUDA objects.
 *
 * It is built without the CUDA backend too, so that a program finds the same functions either way.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "core.h"
#include "vernier_cuda.h"

static vn_status check_out(const void *out, const char *type)
{
    return out ? VN_OK : vn__fail(VN_INVALID, "out is NULL; it needs the address of a %s", type);
}

#if VN_WITH_CUDA
#include "cuda.h"

/* Handles on another backend's device have no CUDA objects. */
static vn_status check_backend(const vn_device *d, const char *argument)
{
    if (d->backend == &vn__cuda)
        return VN_OK;
    return vn__fail(VN_INVALID, "%s is of %s; it needs to be of a CUDA device", argument, d->info.spec);
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

static vn_status device_open(vn_device **out, CUcontext context)
{
    void *const native[2] = { context, NULL };
    char spec[32];
    vn_status s;

    if (!context)
        return vn__fail(VN_INVALID, "context is NULL; it needs a CUcontext");
    if ((s = vn__cuda_spec(spec, sizeof spec, context)))
        return s;
    return vn__device_open(out, &vn__cuda, -1, native, spec);
}

static vn_status queue_open(vn_queue **out, vn_device *d, CUstream stream)
{
    const vn_status s = check_device(d);

    return s ? s : vn__queue_open(out, d, &stream);
}

static vn_status buffer_open(vn_buffer **out, vn_device *d, CUdeviceptr address, size_t bytes)
{
    const vn_status s = check_device(d);

    if (s)
        return s;
    if (!address && bytes)
        return vn__fail(VN_INVALID, "address is 0; it needs a CUdeviceptr of %zu bytes", bytes);
    return vn__buffer_open(out, d, bytes, &address);
}

static vn_status queue_wait(vn_queue *q, unsigned count, CUevent const *events)
{
    vn_status s = check_queue(q);

    if (s || !count)
        return s;
    if (!events)
        return vn__fail(VN_INVALID, "events is NULL; it needs the %u events that count says", count);
    for (unsigned i = 0; i < count; i++)
        if (!events[i])
            return vn__fail(VN_INVALID, "events[%u] is NULL; it needs a CUevent", i);
    return vn__cuda_wait(q, count, events);
}

static vn_status queue_event(CUevent *out, vn_queue *q)
{
    const vn_status s = check_queue(q);

    return s ? s : vn__cuda_marker(out, q);
}
#else
static vn_status without_cuda(void)
{
    return vn__fail(VN_UNSUPPORTED, "this library was built without CUDA; "
                    "it needs one configured without --without-cuda");
}

#define device_open(out, context)            ((void)(context), without_cuda())
#define queue_open(out, d, stream)           ((void)(d), (void)(stream), without_cuda())
#define buffer_open(out, d, address, bytes)  ((void)(d), (void)(address), (void)(bytes), without_cuda())
#define queue_wait(q, count, events)         ((void)(q), (void)(count), (void)(events), without_cuda())
#define queue_event(out, q)                  ((void)(q), without_cuda())
#endif

vn_status vn_cuda_device_open(vn_device **out, struct CUctx_st *context)
{
    vn_status s;

    if ((s = vn__enter("vn_cuda_device_open")) || (s = check_out(out, "vn_device *")))
        return s;
    *out = NULL;
    return vn__leave(device_open(out, context));
}

vn_status vn_cuda_queue_open(vn_queue **out, vn_device *d, struct CUstream_st *stream)
{
    vn_status s;

    if ((s = vn__enter("vn_cuda_queue_open")) || (s = check_out(out, "vn_queue *")))
        return s;
    *out = NULL;
    return vn__leave(queue_open(out, d, stream));
}

vn_status vn_cuda_buffer_open(vn_buffer **out, vn_device *d, unsigned long long address, size_t bytes)
{
    vn_status s;

    if ((s = vn__enter("vn_cuda_buffer_open")) || (s = check_out(out, "vn_buffer *")))
        return s;
    *out = NULL;
    return vn__leave(buffer_open(out, d, address, bytes));
}

vn_status vn_cuda_queue_wait(vn_queue *q, unsigned count, struct CUevent_st *const *events)
{
    const vn_status s = vn__enter("vn_cuda_queue_wait");

    return s ? s : vn__leave(queue_wait(q, count, events));
}

vn_status vn_cuda_queue_event(struct CUevent_st **out, vn_queue *q)
{
    vn_status s;

    if ((s = vn__enter("vn_cuda_queue_event")) || (s = check_out(out, "CUevent")))
        return s;
    *out = NULL;
    return vn__leave(queue_event(out, q));
}
