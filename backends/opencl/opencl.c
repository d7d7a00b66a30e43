/* SPDX-License-Identifier: Apache-2.0
 *
 * opencl.c - the OpenCL backend: queues, events, buffers, programs, kernels, launches.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"
#include "core.h"

/* ---- queues ---------------------------------------------------------------- */

static vn_status check_queue(const struct vn_cl_device *d, cl_command_queue id)
{
    cl_context context = NULL;
    cl_device_id device = NULL;
    cl_int error = clGetCommandQueueInfo(id, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);

    if (!error)
        error = clGetCommandQueueInfo(id, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
    if (error == CL_INVALID_COMMAND_QUEUE)
        return vn__fail(VN_INVALID, "queue is not a cl_command_queue");
    if (error)
        return vn__cl_status(error, "clGetCommandQueueInfo");
    if (context != d->context || device != d->id)
        return vn__fail(VN_INVALID, "queue is of another %s than the device",
                        context != d->context ? "cl_context" : "cl_device_id");
    return VN_OK;
}

static vn_status borrow_queue(struct vn_cl_queue *own, const struct vn_cl_device *d, cl_command_queue id)
{
    cl_command_queue_properties properties = 0;
    vn_status s = check_queue(d, id);

    if (s == VN_OK)
        s = vn__cl_status(clGetCommandQueueInfo(id, CL_QUEUE_PROPERTIES, sizeof properties, &properties,
                                                NULL),
                          "clGetCommandQueueInfo(CL_QUEUE_PROPERTIES)");
    if (s == VN_OK)
        s = vn__cl_status(clRetainCommandQueue(id), "clRetainCommandQueue");
    *own = (struct vn_cl_queue){
        .id = id, .unordered = !!(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
    };
    return s;
}

/* vn_event_seconds() needs profiling, which costs nothing measurable. */
static vn_status create_queue(struct vn_cl_queue *own, const struct vn_cl_device *d)
{
    cl_int error;

    *own = (struct vn_cl_queue){
        .id = clCreateCommandQueue(d->context, d->id, CL_QUEUE_PROFILING_ENABLE, &error)
    };
    return vn__cl_status(error, "clCreateCommandQueue");
}

static vn_status queue_open(vn_queue *q, void *native)
{
    const struct vn_cl_device *d = q->device->impl;
    struct vn_cl_queue *own = calloc(1, sizeof *own);
    vn_status s;

    if (!own)
        return vn__fail(VN_NO_MEMORY, "host memory ran out");
    s = native ? borrow_queue(own, d, native) : create_queue(own, d);
    if (s) {
        free(own);
        return s;
    }
    q->impl = own;
    return VN_OK;
}

static cl_command_queue id_of(const vn_queue *q)
{
    return ((const struct vn_cl_queue *)q->impl)->id;
}

static void queue_close(vn_queue *q)
{
    clReleaseCommandQueue(id_of(q));
    free(q->impl);
}

static vn_status finish(vn_queue *q)
{
    return vn__cl_status(clFinish(id_of(q)), "clFinish");
}

static vn_status flush(vn_queue *q)
{
    return vn__cl_status(clFlush(id_of(q)), "clFlush");
}

vn_status vn__cl_fence(vn_queue *q)
{
    const struct vn_cl_queue *own = q->impl;

    if (!own->unordered)
        return VN_OK;
    return vn__cl_status(clEnqueueBarrierWithWaitList(own->id, 0, NULL, NULL),
                         "clEnqueueBarrierWithWaitList");
}

/* ---- events ---------------------------------------------------------------- */

/* A wait on another queue for this event never ends if this queue is not flushed. The caller's own queue is
 * the caller's to flush.                                                                 */
vn_status vn__cl_marker(cl_event *out, vn_queue *q)
{
    cl_event event;
    vn_status s = vn__cl_status(clEnqueueMarkerWithWaitList(id_of(q), 0, NULL, &event),
                                "clEnqueueMarkerWithWaitList");

    if (s)
        return s;
    if (!q->borrowed && (s = flush(q))) {
        clReleaseEvent(event);
        return s;
    }
    *out = event;
    return VN_OK;
}

static vn_status event_record(vn_event *e, vn_queue *q)
{
    cl_event event = NULL;
    const vn_status s = vn__cl_marker(&event, q);

    e->impl = event;
    return s;
}

vn_status vn__cl_wait(vn_queue *q, cl_uint count, const cl_event *events)
{
    const cl_int error = clEnqueueBarrierWithWaitList(id_of(q), count, events, NULL);

    if (error == CL_INVALID_CONTEXT)
        return vn__fail(VN_INVALID, "an event is of another cl_context than the queue");
    return vn__cl_status(error, "clEnqueueBarrierWithWaitList");
}

static vn_status event_wait(vn_queue *q, vn_event *e)
{
    const cl_event event = e->impl;

    return vn__cl_wait(q, 1, &event);
}

static vn_status event_finish(vn_event *e)
{
    const cl_event event = e->impl;

    return vn__cl_status(clWaitForEvents(1, &event), "clWaitForEvents");
}

/* Some drivers (rusticl 22.3) succeed and return 0. */
static vn_status nanoseconds(cl_ulong *out, cl_event event)
{
    const cl_int error = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof *out, out, NULL);

    if (error == CL_PROFILING_INFO_NOT_AVAILABLE || (!error && !*out))
        return vn__fail(VN_UNSUPPORTED, "the device has no time for this event; "
                        "was its queue created without CL_QUEUE_PROFILING_ENABLE?");
    return vn__cl_status(error, "clGetEventProfilingInfo(CL_PROFILING_COMMAND_END)");
}

static vn_status event_seconds(double *out, vn_event *from, vn_event *to)
{
    const cl_event both[2] = { from->impl, to->impl };
    cl_ulong begin = 0, end = 0;
    vn_status s = vn__cl_status(clWaitForEvents(2, both), "clWaitForEvents");

    if (s == VN_OK)
        s = nanoseconds(&begin, both[0]);
    if (s == VN_OK)
        s = nanoseconds(&end, both[1]);
    if (s == VN_OK)
        *out = 1e-9 * (double)(cl_long)(end - begin);
    return s;
}

static void event_close(vn_event *e)
{
    clReleaseEvent(e->impl);
}

/* ---- buffers --------------------------------------------------------------- */

static const char host_memory[] = "where all buffers with CL_MEM_USE_HOST_PTR are";

/* Where it lies: a sub-buffer in what it is a part of, and a buffer that uses memory of the host in that. */
static cl_int place_buffer(vn_buffer *b, cl_mem memory)
{
    cl_mem whole = NULL;
    cl_mem_flags flags = 0, whole_flags = 0;
    size_t offset = 0;
    char *host = NULL;
    cl_int error = clGetMemObjectInfo(memory, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof whole, &whole, NULL);

    if (!error)
        error = clGetMemObjectInfo(memory, CL_MEM_OFFSET, sizeof offset, &offset, NULL);
    if (!error)
        error = clGetMemObjectInfo(memory, CL_MEM_FLAGS, sizeof flags, &flags, NULL);
    if (!whole)
        whole = memory;
    if (!error)
        error = clGetMemObjectInfo(whole, CL_MEM_FLAGS, sizeof whole_flags, &whole_flags, NULL);
    if (!error && whole_flags & CL_MEM_USE_HOST_PTR)
        error = clGetMemObjectInfo(whole, CL_MEM_HOST_PTR, sizeof host, &host, NULL);
    b->memory    = host ? (const void *)host_memory : whole;
    b->at        = (int64_t)((uintptr_t)host + offset);
    b->read_only = (flags & CL_MEM_READ_ONLY) != 0;
    return error;
}

static vn_status borrow_buffer(vn_buffer *b, const struct vn_cl_device *d, cl_mem memory)
{
    cl_context context = NULL;
    cl_mem_object_type type = 0;
    cl_int error = clGetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof context, &context, NULL);

    if (!error)
        error = clGetMemObjectInfo(memory, CL_MEM_TYPE, sizeof type, &type, NULL);
    if (!error)
        error = clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof b->bytes, &b->bytes, NULL);
    if (error == CL_INVALID_MEM_OBJECT || (!error && type != CL_MEM_OBJECT_BUFFER))
        return vn__fail(VN_INVALID, "buffer is not a cl_mem from clCreateBuffer or clCreateSubBuffer");
    if (error)
        return vn__cl_status(error, "clGetMemObjectInfo");
    if (context != d->context)
        return vn__fail(VN_INVALID, "buffer is of another cl_context than the device");
    if ((error = place_buffer(b, memory)))
        return vn__cl_status(error, "clGetMemObjectInfo");
    b->impl = memory;
    b->native = memory;
    return vn__cl_status(clRetainMemObject(memory), "clRetainMemObject");
}

static vn_status create_buffer(vn_buffer *b, const struct vn_cl_device *d, size_t bytes)
{
    cl_int error;

    b->impl = clCreateBuffer(d->context, CL_MEM_READ_WRITE, bytes ? bytes : 1, NULL, &error);
    if (error)
        return vn__fail(VN_NO_MEMORY, "a buffer of %zu bytes: clCreateBuffer: %s (%d)", bytes,
                        vn__cl_error_name(error), error);
    b->bytes = bytes;
    return VN_OK;
}

static vn_status buffer_open(vn_buffer *b, size_t bytes, void *native)
{
    const struct vn_cl_device *d = b->device->impl;

    return native ? borrow_buffer(b, d, native) : create_buffer(b, d, bytes);
}

static void buffer_close(vn_buffer *b)
{
    clReleaseMemObject(b->impl);
}

static vn_status buffer_host(vn_buffer *b, void *memory, size_t bytes)
{
    const struct vn_cl_device *d = b->device->impl;
    int shares;
    cl_int error;
    vn_status s = vn__cl_shares_host(&shares, b->device);

    if (s)
        return s;
    if (shares < 0)
        return vn__fail(VN_UNSUPPORTED, "%s does not compute in the host's memory; "
                        "it needs a buffer of its own, from vn_buffer_open() and vn_write()",
                        b->device->info.name);
    b->impl = clCreateBuffer(d->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, memory, &error);
    if (error)
        return vn__fail(VN_NO_MEMORY, "a buffer of %zu bytes of the host: clCreateBuffer: %s (%d)", bytes,
                        vn__cl_error_name(error), error);
    b->memory = host_memory;
    b->at     = (int64_t)(uintptr_t)memory;
    return VN_OK;
}

/* Every command of ours on an out-of-order queue has a fence before it, and one behind it. */
static vn_status fence_behind(vn_queue *q, cl_int error, const char *call)
{
    return error ? vn__cl_status(error, call) : vn__cl_fence(q);
}

static vn_status write_buffer(vn_queue *q, vn_buffer *to, size_t at, const void *from, size_t bytes,
                              int waits)
{
    const vn_status s = bytes ? vn__cl_fence(q) : VN_OK;

    if (s || !bytes)
        return s;
    return fence_behind(q, clEnqueueWriteBuffer(id_of(q), to->impl, waits ? CL_TRUE : CL_FALSE, at, bytes,
                                                from, 0, NULL, NULL),
                        "clEnqueueWriteBuffer");
}

static vn_status read_buffer(vn_queue *q, void *to, const vn_buffer *from, size_t at, size_t bytes, int waits)
{
    const vn_status s = bytes ? vn__cl_fence(q) : VN_OK;

    if (s || !bytes)
        return s;
    return fence_behind(q, clEnqueueReadBuffer(id_of(q), from->impl, waits ? CL_TRUE : CL_FALSE, at, bytes,
                                               to, 0, NULL, NULL),
                        "clEnqueueReadBuffer");
}

static vn_status copy_buffer(vn_queue *q, vn_buffer *to, size_t to_at, const vn_buffer *from, size_t from_at,
                             size_t bytes)
{
    const vn_status s = vn__cl_fence(q);

    return s ? s : fence_behind(q, clEnqueueCopyBuffer(id_of(q), from->impl, to->impl, from_at, to_at, bytes,
                                                       0, NULL, NULL),
                                "clEnqueueCopyBuffer");
}

static vn_status fill_buffer(vn_queue *q, vn_buffer *to, size_t at, size_t bytes, const void *pattern,
                             size_t size)
{
    const vn_status s = vn__cl_fence(q);

    return s ? s : fence_behind(q, clEnqueueFillBuffer(id_of(q), to->impl, pattern, size, at, bytes, 0, NULL,
                                                       NULL),
                                "clEnqueueFillBuffer");
}

/* ---- programs -------------------------------------------------------------- */

struct program {
    cl_program   id;
    cl_device_id device;
};

/* The build log, malloc'd; NULL if there is none. */
static char *build_log(const struct program *p)
{
    size_t bytes = 0;
    char *text;

    if (clGetProgramBuildInfo(p->id, p->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) || !bytes)
        return NULL;
    text = calloc(1, bytes + 1);
    if (text && clGetProgramBuildInfo(p->id, p->device, CL_PROGRAM_BUILD_LOG, bytes, text, NULL)) {
        free(text);
        return NULL;
    }
    return text;
}

static vn_status build(const struct program *p, const struct vn_cl_device *d)
{
    const cl_int error = clBuildProgram(p->id, 1, &d->id, d->options, NULL, NULL);
    char *text = error == CL_BUILD_PROGRAM_FAILURE || vn__logs(VN_LOG_BUILD) ? build_log(p) : NULL;
    vn_status s;

    if (text && *text)
        vn__log(VN_LOG_BUILD, "%s", text);
    if (error == CL_BUILD_PROGRAM_FAILURE)
        s = vn__fail(VN_FAILED, "clBuildProgram: %s (%d): %.400s", vn__cl_error_name(error), error,
                     text ? text : "(no build log)");
    else
        s = vn__cl_status(error, "clBuildProgram");
    free(text);
    return s;
}

static void program_close(void *program)
{
    struct program *p = program;

    clReleaseProgram(p->id);
    free(p);
}

/* Takes ownership of `id`, even when it fails. */
static vn_status make_program(void **out, const struct vn_cl_device *d, cl_program id)
{
    struct program *p = malloc(sizeof *p);
    vn_status s;

    if (!p) {
        clReleaseProgram(id);
        return vn__fail(VN_NO_MEMORY, "host memory ran out");
    }
    *p = (struct program){ .id = id, .device = d->id };
    if ((s = build(p, d)))
        program_close(p);
    else
        *out = p;
    return s;
}

static vn_status program_load(void **out, vn_device *device, const void *blob, size_t bytes)
{
    const struct vn_cl_device *d = device->impl;
    const unsigned char *const binary = blob;
    cl_int error, refused = CL_SUCCESS;
    const cl_program id = clCreateProgramWithBinary(d->context, 1, &d->id, &bytes,
                                                    (const unsigned char **)&binary, &refused, &error);

    if (!error && refused) {
        clReleaseProgram(id);
        error = refused;
    }
    return error ? vn__cl_status(error, "clCreateProgramWithBinary") : make_program(out, d, id);
}

/* A program in a caller's context belongs to all devices of it. Only ours has a binary, and OpenCL skips
 * devices whose pointer is NULL.                                                      */
enum { DEVICES = 256 };

struct binary {
    size_t count, at;                 /* devices of the program, and the index of ours */
    size_t bytes;                     /* the size of its binary */
};

static vn_status find_binary(struct binary *out, const struct program *p)
{
    cl_device_id devices[DEVICES];
    size_t sizes[DEVICES] = { 0 }, filled = 0;
    cl_int error = clGetProgramInfo(p->id, CL_PROGRAM_DEVICES, sizeof devices, devices, &filled);

    if (!error)
        error = clGetProgramInfo(p->id, CL_PROGRAM_BINARY_SIZES, sizeof sizes, sizes, NULL);
    if (error)
        return vn__cl_status(error, "clGetProgramInfo(CL_PROGRAM_BINARY_SIZES)");
    out->count = filled / sizeof *devices;
    for (out->at = 0; out->at < out->count; out->at++)
        if (devices[out->at] == p->device && (out->bytes = sizes[out->at]))
            return VN_OK;
    return vn__fail(VN_UNSUPPORTED, "the driver gives no binary of a program");
}

/* rusticl aborts unless the size passed is exactly that of one pointer per device. */
static vn_status program_save(void *program, void **blob, size_t *bytes)
{
    const struct program *p = program;
    unsigned char *binaries[DEVICES] = { NULL };
    struct binary its = { 0, 0, 0 };
    vn_status s = find_binary(&its, p);

    if (s)
        return s;
    if (!(binaries[its.at] = malloc(its.bytes)))
        return vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes for a program's binary", its.bytes);
    s = vn__cl_status(clGetProgramInfo(p->id, CL_PROGRAM_BINARIES, its.count * sizeof *binaries, binaries,
                                       NULL),
                      "clGetProgramInfo(CL_PROGRAM_BINARIES)");
    if (s) {
        free(binaries[its.at]);
        return s;
    }
    *blob = binaries[its.at];
    *bytes = its.bytes;
    return VN_OK;
}

static vn_status build_source(void **out, vn_device *device, const char *text)
{
    const struct vn_cl_device *d = device->impl;
    cl_int error;
    const cl_program id = clCreateProgramWithSource(d->context, 1, &text, NULL, &error);

    return error ? vn__cl_status(error, "clCreateProgramWithSource") : make_program(out, d, id);
}

/* A program for NVIDIA whose PTX has instructions that need the exact architecture of the device is built
 * again from that PTX (ptx.c).                                                          */
static vn_status program_build(void **out, vn_device *device, const char *text)
{
    void *ptx, *program;
    size_t bytes;
    vn_status s = build_source(&program, device, text);

    if (s)
        return s;
    if (!strcmp(device->facts.family, "nvidia")) {
        if ((s = program_save(program, &ptx, &bytes))) {
            program_close(program);
            return s;
        }
        if (vn__cl_retarget(&ptx, &bytes, device->facts.arch)) {
            program_close(program);
            s = program_load(&program, device, ptx, bytes);
        }
        free(ptx);
    }
    if (s == VN_OK)
        *out = program;
    return s;
}

/* ---- kernels --------------------------------------------------------------- */

struct kernel {
    cl_kernel       id;
    pthread_mutex_t lock;             /* a cl_kernel holds its arguments: set and enqueue are one step */
    char            entry[64];
    struct vn_arg   set[VN_ARGS];     /* what the cl_kernel holds; size 0: not known */
    uint64_t        again;            /* q->again when `set` was filled */
};

#define KERNEL_INFO(out, k, d, what) \
    vn__cl_status(clGetKernelWorkGroupInfo((k)->id, (d)->id, what, sizeof *(out), out, NULL), \
                  "clGetKernelWorkGroupInfo(" #what ")")

/* What the driver reports for a kernel with 256 bytes of local memory: rusticl 22.3 counts each array
 * twice. It is queried only where a kernel seems to need too much.                    */
static cl_ulong counted_for_256(vn_device *device)
{
    static const char text[] =
        "__kernel void probe(__global int *g)\n"
        "{\n"
        "    __local int l[64];\n"
        "    l[get_local_id(0)] = g[get_local_id(0)];\n"
        "    barrier(CLK_LOCAL_MEM_FENCE);\n"
        "    g[get_local_id(0)] = l[63 - get_local_id(0)];\n"
        "}\n";
    struct kernel probe = { .entry = "probe" };
    void *program;
    cl_ulong bytes = 0;
    cl_int error;

    if (program_build(&program, device, text))
        return 256;
    probe.id = clCreateKernel(((struct program *)program)->id, probe.entry, &error);
    if (!error) {
        if (KERNEL_INFO(&bytes, &probe, (const struct vn_cl_device *)device->impl, CL_KERNEL_LOCAL_MEM_SIZE))
            bytes = 0;
        clReleaseKernel(probe.id);
    }
    program_close(program);
    return bytes > 256 ? bytes : 256;
}

/* The check is here, since at the launch it would be too late to choose another variant; and PoCL 3.1 aborts
 * there instead of failing.                                                           */
static vn_status check_local_memory(const struct kernel *k, vn_device *device)
{
    const size_t limit = device->facts.local_bytes;
    cl_ulong bytes = 0;
    const vn_status s = KERNEL_INFO(&bytes, k, (const struct vn_cl_device *)device->impl,
                                    CL_KERNEL_LOCAL_MEM_SIZE);

    if (s)
        return s;
    if (bytes > limit && !((const struct vn_cl_device *)device->impl)->hides_local)
        bytes = bytes * 256 / counted_for_256(device);
    if (bytes > limit && !((const struct vn_cl_device *)device->impl)->hides_local)
        return vn__fail(VN_UNSUPPORTED, "kernel %s needs %llu bytes of local memory; the device has %zu",
                        k->entry, (unsigned long long)bytes, limit);
    return VN_OK;
}

static vn_status check_work_group(const struct kernel *k, const vn_device *device)
{
    const struct vn_cl_device *d = device->impl;
    size_t declared[1][3] = { { 0 } }, items, most = (size_t)device->facts.items;
    vn_status s = KERNEL_INFO(declared, k, d, CL_KERNEL_COMPILE_WORK_GROUP_SIZE);

    if (s == VN_OK && d->limits_kernels)
        s = KERNEL_INFO(&most, k, d, CL_KERNEL_WORK_GROUP_SIZE);
    items = declared[0][0] * declared[0][1] * declared[0][2];
    if (s == VN_OK && items > most)
        return vn__fail(VN_UNSUPPORTED,
                        "kernel %s has work-groups of %zu; the device can run %zu work-items of it",
                        k->entry, items, most);
    return s;
}

static void kernel_close(void *kernel)
{
    struct kernel *k = kernel;

    clReleaseKernel(k->id);
    pthread_mutex_destroy(&k->lock);
    free(k);
}

static vn_status kernel_open(void **out, vn_device *device, void *program, const char *entry)
{
    const struct program *p = program;
    struct kernel *k = calloc(1, sizeof *k);
    cl_int error;
    vn_status s;

    if (!k)
        return vn__fail(VN_NO_MEMORY, "host memory ran out");
    snprintf(k->entry, sizeof k->entry, "%s", entry);
    k->id = clCreateKernel(p->id, entry, &error);
    if (error) {
        free(k);
        return vn__fail(error == CL_INVALID_KERNEL_NAME ? VN_FAILED : vn__cl_status(error, ""),
                        "kernel %s: clCreateKernel: %s (%d)", entry, vn__cl_error_name(error), error);
    }
    pthread_mutex_init(&k->lock, NULL);
    s = check_local_memory(k, device);
    if (s == VN_OK)
        s = check_work_group(k, device);
    if (s)
        kernel_close(k);
    else
        *out = k;
    return s;
}

/* ---- launch ---------------------------------------------------------------- */

/* Scalars and views are set only when they change. A buffer is always set: another cl_mem may have the
 * address of one that was released.                                                     */
static cl_int set_argument(struct kernel *k, cl_uint i, const struct vn_arg *a)
{
    struct vn_arg *held = &k->set[i];
    cl_mem memory;
    cl_int error;

    if (!a->size) {
        memory = a->buffer ? a->buffer->impl : NULL;
        held->size = 0;
        return clSetKernelArg(k->id, i, sizeof memory, &memory);
    }
    if (held->size == a->size && !memcmp(&held->value, &a->value, a->size))
        return CL_SUCCESS;
    error = clSetKernelArg(k->id, i, a->size, &a->value);
    held->size = error ? 0 : a->size;
    memcpy(&held->value, &a->value, a->size);
    return error;
}

static vn_status fail_at_argument(const struct kernel *k, cl_uint i, cl_int error)
{
    char call[112];

    snprintf(call, sizeof call, "kernel %s: clSetKernelArg(%u)", k->entry, i);
    return vn__cl_status(error, call);
}

static vn_status fail_at_enqueue(const struct kernel *k, cl_int error)
{
    char call[112];

    snprintf(call, sizeof call, "kernel %s: clEnqueueNDRangeKernel", k->entry);
    return vn__cl_status(error, call);
}

/* Where several threads share the launch, and the queue is ours. */
static struct vn_cl_awake *awake_after(const vn_queue *q, const struct vn_launch *l)
{
    const int is_shared = l->groups[0] > 1 || l->groups[1] > 1 || l->groups[2] > 1;

    return is_shared && !q->borrowed ? ((const struct vn_cl_device *)q->device->impl)->awake : NULL;
}

static vn_status set_and_enqueue(vn_queue *q, struct kernel *k, const struct vn_launch *l)
{
    const struct vn_cl_device *const d = q->device->impl;
    const struct vn_cl_grid g = vn__cl_grid(l, d->in_line);
    struct vn_cl_awake *const awake = awake_after(q, l);
    cl_event event = NULL;
    cl_int error;

    if (!q->again || q->again != k->again) {
        k->again = 0;
        for (cl_uint i = 0; i < (cl_uint)l->nargs; i++)
            if ((error = set_argument(k, i, &l->args[i])))
                return fail_at_argument(k, i, error);
        k->again = q->again;
    }
    error = clEnqueueNDRangeKernel(id_of(q), k->id, 3, d->in_line ? g.offset : NULL, g.global, g.local,
                                   0, NULL, awake ? &event : NULL);
    if (error)
        return fail_at_enqueue(k, error);
    if (event) {
        vn__cl_stay_awake(awake, event);
        clReleaseEvent(event);
    }
    return VN_OK;
}

/* A kernel counts its work-groups in an int, and drivers count work-items in 32 bits. */
static vn_status check_groups(const struct kernel *k, const struct vn_launch *l, int in_line)
{
    const double all = (double)l->groups[0] * (double)l->groups[1] * (double)l->groups[2];

    for (int i = 0; i < 3; i++)
        if (l->groups[i] > (i ? INT32_MAX : (int64_t)UINT32_MAX / l->items) || l->groups[i] > INT32_MAX)
            return vn__fail(VN_UNSUPPORTED, "kernel %s: %lld work-groups of %d along dimension %d; "
                            "OpenCL devices count work-items in 32 bits", k->entry, (long long)l->groups[i],
                            i ? 1 : l->items, i);
    if (in_line && all > INT32_MAX)
        return vn__fail(VN_UNSUPPORTED, "kernel %s: %.0f work-groups; this driver runs at most %d of them",
                        k->entry, all, INT32_MAX);
    return VN_OK;
}

static vn_status launch(vn_queue *q, void *kernel, const struct vn_launch *l)
{
    struct kernel *k = kernel;
    vn_status s = check_groups(k, l, ((const struct vn_cl_device *)q->device->impl)->in_line);

    if (s == VN_OK)
        s = vn__cl_fence(q);
    if (s)
        return s;
    pthread_mutex_lock(&k->lock);
    s = set_and_enqueue(q, k, l);
    pthread_mutex_unlock(&k->lock);
    return s ? s : vn__cl_fence(q);
}

const struct vn_backend vn__opencl = {
    .name          = "opencl",
    .count         = vn__cl_count,
    .list          = vn__cl_list,
    .open          = vn__cl_open,
    .close         = vn__cl_close,
    .queue_open    = queue_open,
    .queue_close   = queue_close,
    .finish        = finish,
    .flush         = flush,
    .event_record  = event_record,
    .event_wait    = event_wait,
    .event_finish  = event_finish,
    .event_seconds = event_seconds,
    .event_close   = event_close,
    .buffer_open   = buffer_open,
    .buffer_host   = buffer_host,
    .buffer_close  = buffer_close,
    .write         = write_buffer,
    .read          = read_buffer,
    .copy          = copy_buffer,
    .fill          = fill_buffer,
    .program_build = program_build,
    .program_load  = program_load,
    .program_save  = program_save,
    .program_close = program_close,
    .kernel_open   = kernel_open,
    .kernel_close  = kernel_close,
    .launch        = launch,
};
