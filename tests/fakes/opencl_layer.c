/* SPDX-License-Identifier: Apache-2.0
 *
 * opencl_layer.c - counts OpenCL calls and objects, and makes calls fail.
 *
 * One list of functions makes the wrappers, the counters and the table for the loader:
 *
 *   STATUS   returns its error          MAKE   returns an object, its error through `error`
 *   MARK     may give an event          HOLD, DROP   retains, releases an object
 */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl_layer.h>
#include <pthread.h>
#include <string.h>

#include "opencl_layer.h"

#define EXPORT __attribute__((visibility("default")))

#define INFO(f, object, info) \
    STATUS(f, (object o, info what, size_t room, void *out, size_t *bytes), (o, what, room, out, bytes))
#define INFO_OF(f, object, info) \
    STATUS(f, (object o, cl_device_id device, info what, size_t room, void *out, size_t *bytes), \
              (o, device, what, room, out, bytes))
#define WAITS cl_uint waits, const cl_event *wait, cl_event *event

#define FUNCTIONS \
    STATUS(clGetPlatformIDs, (cl_uint room, cl_platform_id *ids, cl_uint *count), (room, ids, count)) \
    STATUS(clGetDeviceIDs, (cl_platform_id platform, cl_device_type type, cl_uint room, cl_device_id *ids, \
                            cl_uint *count), (platform, type, room, ids, count)) \
    INFO(clGetPlatformInfo,       cl_platform_id,   cl_platform_info) \
    INFO(clGetDeviceInfo,         cl_device_id,     cl_device_info) \
    INFO(clGetContextInfo,        cl_context,       cl_context_info) \
    INFO(clGetCommandQueueInfo,   cl_command_queue, cl_command_queue_info) \
    INFO(clGetMemObjectInfo,      cl_mem,           cl_mem_info) \
    INFO(clGetProgramInfo,        cl_program,       cl_program_info) \
    INFO(clGetEventInfo,          cl_event,         cl_event_info) \
    INFO(clGetEventProfilingInfo, cl_event,         cl_profiling_info) \
    INFO_OF(clGetProgramBuildInfo,    cl_program, cl_program_build_info) \
    INFO_OF(clGetKernelWorkGroupInfo, cl_kernel,  cl_kernel_work_group_info) \
    MAKE(clCreateContext, cl_context, CONTEXT, \
         (const cl_context_properties *p, cl_uint n, const cl_device_id *ids, \
          void (CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *with, \
          cl_int *error), \
         (p, n, ids, notify, with, error)) \
    MAKE(clCreateCommandQueue, cl_command_queue, QUEUE, \
         (cl_context c, cl_device_id d, cl_command_queue_properties p, cl_int *error), (c, d, p, error)) \
    MAKE(clCreateBuffer, cl_mem, MEMORY, \
         (cl_context c, cl_mem_flags flags, size_t bytes, void *host, cl_int *error), \
         (c, flags, bytes, host, error)) \
    MAKE(clCreateSubBuffer, cl_mem, MEMORY, \
         (cl_mem m, cl_mem_flags flags, cl_buffer_create_type type, const void *region, cl_int *error), \
         (m, flags, type, region, error)) \
    MAKE(clCreateUserEvent, cl_event, EVENT, (cl_context c, cl_int *error), (c, error)) \
    MAKE(clCreateProgramWithSource, cl_program, PROGRAM, \
         (cl_context c, cl_uint n, const char **texts, const size_t *lengths, cl_int *error), \
         (c, n, texts, lengths, error)) \
    MAKE(clCreateProgramWithBinary, cl_program, PROGRAM, \
         (cl_context c, cl_uint n, const cl_device_id *ids, const size_t *lengths, \
          const unsigned char **binaries, cl_int *refused, cl_int *error), \
         (c, n, ids, lengths, binaries, refused, error)) \
    MAKE(clCreateKernel, cl_kernel, KERNEL, (cl_program p, const char *name, cl_int *error), \
         (p, name, error)) \
    STATUS(clBuildProgram, (cl_program p, cl_uint n, const cl_device_id *ids, const char *options, \
                            void (CL_CALLBACK *notify)(cl_program, void *), void *with), \
           (p, n, ids, options, notify, with)) \
    STATUS(clSetKernelArg, (cl_kernel k, cl_uint i, size_t bytes, const void *value), (k, i, bytes, value)) \
    STATUS(clWaitForEvents, (cl_uint n, const cl_event *events), (n, events)) \
    STATUS(clFlush,  (cl_command_queue q), (q)) \
    STATUS(clFinish, (cl_command_queue q), (q)) \
    MARK(clEnqueueReadBuffer, \
         (cl_command_queue q, cl_mem m, cl_bool blocks, size_t at, size_t bytes, void *to, WAITS), \
         (q, m, blocks, at, bytes, to, waits, wait, event)) \
    MARK(clEnqueueWriteBuffer, (cl_command_queue q, cl_mem m, cl_bool blocks, size_t at, size_t bytes, \
                                const void *from, WAITS), \
         (q, m, blocks, at, bytes, from, waits, wait, event)) \
    MARK(clEnqueueCopyBuffer, (cl_command_queue q, cl_mem from, cl_mem to, size_t from_at, size_t to_at, \
                               size_t bytes, WAITS), \
         (q, from, to, from_at, to_at, bytes, waits, wait, event)) \
    MARK(clEnqueueFillBuffer, (cl_command_queue q, cl_mem m, const void *pattern, size_t size, size_t at, \
                               size_t bytes, WAITS), \
         (q, m, pattern, size, at, bytes, waits, wait, event)) \
    MARK(clEnqueueNDRangeKernel, (cl_command_queue q, cl_kernel k, cl_uint n, const size_t *offset, \
                                  const size_t *global, const size_t *local, WAITS), \
         (q, k, n, offset, global, local, waits, wait, event)) \
    MARK(clEnqueueMarkerWithWaitList,  (cl_command_queue q, WAITS), (q, waits, wait, event)) \
    MARK(clEnqueueBarrierWithWaitList, (cl_command_queue q, WAITS), (q, waits, wait, event)) \
    HOLD(clRetainContext,      cl_context,       CONTEXT) \
    HOLD(clRetainCommandQueue, cl_command_queue, QUEUE) \
    HOLD(clRetainMemObject,    cl_mem,           MEMORY) \
    DROP(clReleaseContext,      cl_context,       CONTEXT) \
    DROP(clReleaseCommandQueue, cl_command_queue, QUEUE) \
    DROP(clReleaseMemObject,    cl_mem,           MEMORY) \
    DROP(clReleaseProgram,      cl_program,       PROGRAM) \
    DROP(clReleaseKernel,       cl_kernel,        KERNEL) \
    DROP(clReleaseEvent,        cl_event,         EVENT)

/* ---- what is counted --------------------------------------------------------- */

enum kind { CONTEXT, QUEUE, MEMORY, PROGRAM, KERNEL, EVENT, KINDS };
static const char *const kind_names[KINDS] = { "context", "queue", "memory", "program", "kernel", "event" };

enum function {
#define STATUS(f, params, args)           OF_##f,
#define MAKE(f, object, kind, params, args) OF_##f,
#define MARK(f, params, args)             OF_##f,
#define HOLD(f, object, kind)             OF_##f,
#define DROP(f, object, kind)             OF_##f,
    FUNCTIONS
#undef STATUS
#undef MAKE
#undef MARK
#undef HOLD
#undef DROP
    FUNCTION_COUNT
};

static const struct { const char *name; int can_fail; } functions[FUNCTION_COUNT] = {
#define STATUS(f, params, args)           { #f, 1 },
#define MAKE(f, object, kind, params, args) { #f, 1 },
#define MARK(f, params, args)             { #f, 1 },
#define HOLD(f, object, kind)             { #f, 1 },
#define DROP(f, object, kind)             { #f, 0 },
    FUNCTIONS
#undef STATUS
#undef MAKE
#undef MARK
#undef HOLD
#undef DROP
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long calls[FUNCTION_COUNT], live[KINDS];
static struct {
    int         on, error, persistent;
    const char *function;             /* NULL: any */
    long        left, failed;
    const char *victim;
} fault;

static int is_hit(enum function f)
{
    if (!fault.on || !functions[f].can_fail || (fault.function && strcmp(fault.function, functions[f].name)))
        return 0;
    if (fault.left > 0)
        fault.left--;
    return fault.left == 0 && (fault.persistent || !fault.failed);
}

/* Counts a call; the error with which it must fail, or CL_SUCCESS. */
static cl_int enter(enum function f)
{
    cl_int error = CL_SUCCESS;

    pthread_mutex_lock(&lock);
    calls[f]++;
    if (is_hit(f)) {
        error = fault.error;
        if (!fault.failed++)
            fault.victim = functions[f].name;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

static void count(enum kind kind, int change)
{
    pthread_mutex_lock(&lock);
    live[kind] += change;
    pthread_mutex_unlock(&lock);
}

/* ---- for the tests ------------------------------------------------------------- */

static void arm(const char *function, long nth, int error, int persistent)
{
    pthread_mutex_lock(&lock);
    fault.on = 1;
    fault.function = function;
    fault.left = nth;
    fault.error = error;
    fault.persistent = persistent;
    fault.failed = 0;
    fault.victim = NULL;
    pthread_mutex_unlock(&lock);
}

static void disarm(void)
{
    pthread_mutex_lock(&lock);
    fault.on = 0;
    pthread_mutex_unlock(&lock);
}

static long failed(void)
{
    return fault.failed;
}

static const char *victim(void)
{
    return fault.victim;
}

static long count_calls(const char *function)
{
    long sum = 0;

    for (int f = 0; f < FUNCTION_COUNT; f++)
        if (function ? !strcmp(function, functions[f].name) : functions[f].can_fail)
            sum += calls[f];
    return sum;
}

static long count_live(const char *kind)
{
    long sum = 0;

    for (int k = 0; k < KINDS; k++)
        if (!kind || !strcmp(kind, kind_names[k]))
            sum += live[k];
    return sum;
}

EXPORT const struct layer vernier_test_layer = { arm, disarm, failed, victim, count_calls, count_live };

/* ---- the wrappers, and the table ------------------------------------------------ */

static const cl_icd_dispatch *driver;
static cl_icd_dispatch        table;

#define STATUS(f, params, args) \
    static cl_int CL_API_CALL our_##f params \
    { \
        const cl_int failure = enter(OF_##f); \
        return failure ? failure : driver->f args; \
    }
#define MAKE(f, object, kind, params, args) \
    static object CL_API_CALL our_##f params \
    { \
        const cl_int failure = enter(OF_##f); \
        object made = failure ? NULL : driver->f args; \
        if (failure && error) \
            *error = failure; \
        if (made) \
            count(kind, 1); \
        return made; \
    }
#define MARK(f, params, args) \
    static cl_int CL_API_CALL our_##f params \
    { \
        const cl_int failure = enter(OF_##f), result = failure ? failure : driver->f args; \
        if (!result && event) \
            count(EVENT, 1); \
        return result; \
    }
#define CHANGE(f, object, kind, change) \
    static cl_int CL_API_CALL our_##f(object o) \
    { \
        const cl_int failure = enter(OF_##f), result = failure ? failure : driver->f(o); \
        if (!result) \
            count(kind, change); \
        return result; \
    }
#define HOLD(f, object, kind) CHANGE(f, object, kind, 1)
#define DROP(f, object, kind) CHANGE(f, object, kind, -1)
FUNCTIONS
#undef STATUS
#undef MAKE
#undef MARK
#undef HOLD
#undef DROP

EXPORT CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t room, void *out,
                                                      size_t *bytes)
{
    static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    static const char name[] = "vernier's tests";
    const void *value = what == CL_LAYER_NAME ? (const void *)name : &version;
    const size_t size = what == CL_LAYER_NAME ? sizeof name : sizeof version;

    if ((what != CL_LAYER_NAME && what != CL_LAYER_API_VERSION) || (out && room < size))
        return CL_INVALID_VALUE;
    if (out)
        memcpy(out, value, size);
    if (bytes)
        *bytes = size;
    return CL_SUCCESS;
}

EXPORT CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch *target,
                                                   cl_uint *entries_ret, const cl_icd_dispatch **ours)
{
    const cl_uint known = sizeof table / sizeof table.clGetPlatformIDs;

    if (!target || !entries_ret || !ours)
        return CL_INVALID_VALUE;
    if (entries > known)
        entries = known;
    memcpy(&table, target, entries * sizeof table.clGetPlatformIDs);
    driver = target;
#define STATUS(f, params, args)             table.f = our_##f;
#define MAKE(f, object, kind, params, args) table.f = our_##f;
#define MARK(f, params, args)               table.f = our_##f;
#define HOLD(f, object, kind)               table.f = our_##f;
#define DROP(f, object, kind)               table.f = our_##f;
    FUNCTIONS
    *entries_ret = entries;
    *ours = &table;
    return CL_SUCCESS;
}
