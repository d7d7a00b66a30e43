/* SPDX-License-Identifier: Apache-2.0
 *
 * test_opencl.c - vernier_opencl.h: operations on a caller's own context, queue and buffers.
 *
 * Two products in a row, D = (A B) B, where A, C and D are sub-buffers of one cl_mem; the
 * first starts after an event of the caller's, and the caller waits for an event of ours.
 * Once on a queue in order, once out of order.  Then every argument that makes no sense.
 */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../fakes/opencl_layer.h"
#include "vernier_opencl.h"

#ifndef LAYER
#define LAYER "tests/fakes/.libs/opencl_layer.so"
#endif

enum { N = 37, PART = 8192, WHOLE = 3 * PART, GUARD = 0x5a };   /* N x N floats fit in a part */

static struct layer layer;
static const char  *where;
static int          checks, arguments, wrong;

#define CHECK(it) (checks++, (it) ? (void)0 : fail(#it, __LINE__))
#define OK(call)  CHECK((call) == VN_OK)

static void fail(const char *it, int line)
{
    wrong++;
    printf("FAIL: %s, line %d: %s (%s)\n", where, line, it, vn_last_error());
}

/* ---- the application's side ------------------------------------------------------------- */

struct application {
    cl_device_id     device;
    cl_context       context;
    cl_command_queue queue;
    cl_mem           whole, a, c, d, b;
    float            host[WHOLE / sizeof(float)], factor[N * N], right[N * N];
};

static struct application app;

static int find_device(cl_device_id *out)
{
    const char *wanted = getenv("VERNIER_DEVICE");
    cl_platform_id platforms[16];
    cl_uint count = 0;
    char name[256];

    if (clGetPlatformIDs(16, platforms, &count))
        return 0;
    for (cl_uint i = 0; i < count && i < 16; i++)
        if (!clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof name, name, NULL) &&
            (!wanted || strstr(name, wanted)) &&
            !clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, out, NULL))
            return 1;
    return 0;
}

static cl_mem part(cl_mem whole, int i)
{
    const cl_buffer_region region = { (size_t)i * PART, N * N * sizeof(float) };
    cl_int error;

    return clCreateSubBuffer(whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
}

/* Entries so small that all sums are exact. */
static void multiply(float *out, const float *a, const float *b)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            out[i * N + j] = 0;
            for (int k = 0; k < N; k++)
                out[i * N + j] += a[i * N + k] * b[k * N + j];
        }
}

static int application_open(cl_command_queue_properties order)
{
    float middle[N * N];
    cl_int error = 0;

    memset(app.host, GUARD, sizeof app.host);
    for (int i = 0; i < N * N; i++) {
        app.host[i] = (float)(i * 7 % 5 - 2);
        app.factor[i] = (float)(i * 11 % 7 - 3);
    }
    multiply(middle, app.host, app.factor);
    multiply(app.right, middle, app.factor);

    app.context = clCreateContext(NULL, 1, &app.device, NULL, NULL, &error);
    app.queue = clCreateCommandQueue(app.context, app.device, order, &error);
    app.whole = clCreateBuffer(app.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof app.host,
                               app.host, &error);
    app.b = clCreateBuffer(app.context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof app.factor,
                           app.factor, &error);
    app.a = part(app.whole, 0);
    app.c = part(app.whole, 1);
    app.d = part(app.whole, 2);
    return app.queue && app.b && app.a && app.c && app.d;
}

static void application_close(void)
{
    clReleaseMemObject(app.a);
    clReleaseMemObject(app.c);
    clReleaseMemObject(app.d);
    clReleaseMemObject(app.b);
    clReleaseMemObject(app.whole);
    clReleaseCommandQueue(app.queue);
    clReleaseContext(app.context);
}

/* ---- two products ------------------------------------------------------------------------- */

static int is_done(cl_event event)
{
    cl_int status = CL_QUEUED;

    clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    return status == CL_COMPLETE;
}

static void read_back(cl_event after)
{
    const size_t bytes = N * N * sizeof(float);
    const unsigned char *all = (const unsigned char *)app.host;
    int touched = 0;

    CHECK(!clEnqueueReadBuffer(app.queue, app.whole, CL_TRUE, 0, sizeof app.host, app.host, 1, &after, NULL));
    CHECK(!memcmp(all + 2 * PART, app.right, bytes));
    for (size_t i = 0; i < WHOLE; i++)
        touched += i % PART >= bytes && all[i] != GUARD;
    CHECK(!touched);
}

static void multiply_twice(void)
{
    vn_device *device = NULL;
    vn_queue *q = NULL;
    vn_buffer *a = NULL, *b = NULL, *c = NULL, *d = NULL;
    cl_event before, after = NULL;
    const uint32_t marked = 0x7fc00000;         /* NaN, which products must overwrite */
    cl_int error;
    long finishes, flushes;

    OK(vn_opencl_device_open(&device, app.context, app.device));
    OK(vn_opencl_queue_open(&q, device, app.queue));
    OK(vn_opencl_buffer_open(&a, device, app.a));
    OK(vn_opencl_buffer_open(&b, device, app.b));
    OK(vn_opencl_buffer_open(&c, device, app.c));
    OK(vn_opencl_buffer_open(&d, device, app.d));

    finishes = layer.calls("clFinish");
    flushes = layer.calls("clFlush");
    before = clCreateUserEvent(app.context, &error);
    OK(vn_opencl_queue_wait(q, 1, &before));
    OK(vn_fill(q, c, 0, N * N * sizeof(float), &marked, 4));
    OK(vn_copy(q, d, 0, c, 0, N * N * sizeof(float)));
    OK(vn_gemm(q, 1, vn_matrix(a, VN_F32, N, N), vn_matrix(b, VN_F32, N, N), 0, vn_matrix(c, VN_F32, N, N),
               NULL));
    OK(vn_gemm(q, 1, vn_matrix(c, VN_F32, N, N), vn_matrix(b, VN_F32, N, N), 0, vn_matrix(d, VN_F32, N, N),
               NULL));
    OK(vn_opencl_queue_event(&after, q));
    CHECK(!is_done(after));

    /* work that is queued outlives our handles */
    vn_buffer_close(a);
    vn_buffer_close(b);
    vn_buffer_close(c);
    vn_buffer_close(d);
    vn_queue_close(q);
    vn_device_close(device);
    CHECK(layer.calls("clFinish") == finishes);
    CHECK(layer.calls("clFlush") == flushes);

    clSetUserEventStatus(before, CL_COMPLETE);
    read_back(after);
    clReleaseEvent(before);
    clReleaseEvent(after);
}

static void products(cl_command_queue_properties order, const char *name)
{
    long held;

    where = name;
    if (!application_open(order)) {
        printf("%s: this device has no such queue, or no sub-buffers\n", name);
        return;
    }
    held = layer.live(NULL);
    multiply_twice();
    CHECK(layer.live(NULL) == held);
    application_close();
}

/* ---- what makes no sense ------------------------------------------------------------------- */

#define REFUSED(call, word) refused(call, word, #call)

static void refused(vn_status s, const char *word, const char *call)
{
    arguments++;
    if (s == VN_INVALID && strstr(vn_last_error(), word))
        return;
    wrong++;
    printf("FAIL: %s is %s (%s); it needs VN_INVALID and the word \"%s\"\n", call, vn_status_name(s),
           vn_last_error(), word);
}

static void bad_arguments(void)
{
    const cl_event none[2] = { NULL, NULL };
    vn_device *device = NULL, *closed = NULL, *d = NULL;
    vn_queue *q = NULL, *other_q = NULL;
    vn_buffer *b = NULL;
    cl_event event = NULL;
    cl_int error;
    const cl_context context = clCreateContext(NULL, 1, &app.device, NULL, NULL, &error);
    const cl_command_queue queue = clCreateCommandQueue(context, app.device, 0, &error);
    const cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &error);
    const cl_event foreign = clCreateUserEvent(context, &error);

    where = "bad arguments";
    OK(vn_opencl_device_open(&device, app.context, app.device));
    OK(vn_opencl_queue_open(&q, device, app.queue));
    OK(vn_opencl_device_open(&closed, app.context, app.device));
    vn_device_close(closed);

    REFUSED(vn_opencl_device_open(NULL, app.context, app.device), "out");
    REFUSED(vn_opencl_device_open(&d, NULL, app.device), "context");
    REFUSED(vn_opencl_device_open(&d, app.context, NULL), "device");
    REFUSED(vn_opencl_queue_open(NULL, device, app.queue), "out");
    REFUSED(vn_opencl_queue_open(&other_q, NULL, app.queue), "device");
    REFUSED(vn_opencl_queue_open(&other_q, closed, app.queue), "closed");
    REFUSED(vn_opencl_queue_open(&other_q, (vn_device *)q, app.queue), "queue");
    REFUSED(vn_opencl_queue_open(&other_q, device, NULL), "queue");
    REFUSED(vn_opencl_queue_open(&other_q, device, queue), "another cl_context");
    REFUSED(vn_opencl_buffer_open(NULL, device, app.b), "out");
    REFUSED(vn_opencl_buffer_open(&b, NULL, app.b), "device");
    REFUSED(vn_opencl_buffer_open(&b, closed, app.b), "closed");
    REFUSED(vn_opencl_buffer_open(&b, device, NULL), "buffer");
    REFUSED(vn_opencl_buffer_open(&b, device, memory), "another cl_context");
    REFUSED(vn_opencl_queue_wait(NULL, 0, NULL), "queue");
    REFUSED(vn_opencl_queue_wait(q, 1, NULL), "events");
    REFUSED(vn_opencl_queue_wait(q, 2, none), "events[0]");
    REFUSED(vn_opencl_queue_wait(q, 1, &foreign), "another cl_context");
    REFUSED(vn_opencl_queue_event(NULL, q), "out");
    REFUSED(vn_opencl_queue_event(&event, NULL), "queue");
    CHECK(!d && !other_q && !b && !event);

    vn_queue_close(q);
    vn_device_close(device);
    clSetUserEventStatus(foreign, CL_COMPLETE);
    clReleaseEvent(foreign);
    clReleaseMemObject(memory);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
}

/* ---- memory that two buffers have in common ----------------------------------------------------- */

/* C := A A, of 4 x 4; refused with this word, or NULL: not. */
static void multiply_into(vn_queue *q, vn_device *d, cl_mem from, int64_t from_at, cl_mem to, int64_t to_at,
                          const char *word)
{
    vn_buffer *a = NULL, *c = NULL;
    vn_tensor m[2];

    OK(vn_opencl_buffer_open(&a, d, from));
    OK(vn_opencl_buffer_open(&c, d, to));
    m[0] = vn_matrix(a, VN_F32, 4, 4);
    m[1] = vn_matrix(c, VN_F32, 4, 4);
    m[0].start = from_at;
    m[1].start = to_at;
    if (word)
        REFUSED(vn_gemm(q, 1, m[0], m[0], 0, m[1], NULL), word);
    else
        OK(vn_gemm(q, 1, m[0], m[0], 0, m[1], NULL));
    vn_buffer_close(a);
    vn_buffer_close(c);
}

/* Softmax in place, x and y being two handles of one cl_mem. */
static void softmax_in_place(vn_queue *q, vn_device *d, cl_mem memory)
{
    vn_buffer *x = NULL, *y = NULL;

    OK(vn_opencl_buffer_open(&x, d, memory));
    OK(vn_opencl_buffer_open(&y, d, memory));
    OK(vn_softmax(q, vn_matrix(x, VN_F32, 4, 4), vn_matrix(y, VN_F32, 4, 4), NULL));
    vn_buffer_close(x);
    vn_buffer_close(y);
}

static void fill_read_only(vn_queue *q, vn_device *d)
{
    const float one = 1;
    vn_buffer *b = NULL, *whole = NULL;

    OK(vn_opencl_buffer_open(&b, d, app.b));
    OK(vn_opencl_buffer_open(&whole, d, app.whole));
    REFUSED(vn_fill(q, b, 0, 64, &one, 4), "only read");
    REFUSED(vn_copy(q, b, 0, whole, 0, 64), "only read");
    vn_buffer_close(b);
    vn_buffer_close(whole);
}

static void one_memory(void)
{
    static float host[64] __attribute__((aligned(4096)));
    enum { IN_PART = PART / sizeof(float) };
    vn_device *d = NULL;
    vn_queue *q = NULL;
    cl_int error;
    const cl_buffer_region first = { 0, 2 * PART }, second = { PART, 2 * PART };
    const cl_mem of_host[2] = {
        clCreateBuffer(app.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, sizeof host, host, &error),
        clCreateBuffer(app.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, sizeof host / 2, host + 32,
                       &error) };
    const cl_mem parts[2] = {
        clCreateSubBuffer(app.whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &first, &error),
        clCreateSubBuffer(app.whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &second, &error) };

    where = "one memory";
    OK(vn_opencl_device_open(&d, app.context, app.device));
    OK(vn_opencl_queue_open(&q, d, app.queue));
    multiply_into(q, d, app.whole, 0, app.whole, 16, NULL);
    multiply_into(q, d, app.whole, IN_PART, app.a, 0, NULL);
    multiply_into(q, d, parts[0], 0, parts[1], 0, NULL);
    multiply_into(q, d, parts[0], IN_PART, parts[1], 16, NULL);
    softmax_in_place(q, d, app.whole);
    multiply_into(q, d, app.whole, 0, app.whole, 15, "C overlaps A");
    multiply_into(q, d, app.whole, IN_PART, app.c, 15, "C overlaps A");
    multiply_into(q, d, app.c, 15, app.whole, IN_PART, "C overlaps A");
    multiply_into(q, d, parts[0], IN_PART, parts[1], 15, "C overlaps A");
    multiply_into(q, d, app.whole, 0, app.b, 0, "only read");
    fill_read_only(q, d);
    if (of_host[0] && of_host[1]) {
        multiply_into(q, d, of_host[0], 16, of_host[1], 0, NULL);
        multiply_into(q, d, of_host[0], 17, of_host[1], 0, "C overlaps A");
        clReleaseMemObject(of_host[0]);
        clReleaseMemObject(of_host[1]);
    }
    vn_queue_finish(q);
    vn_queue_close(q);
    vn_device_close(d);
    clReleaseMemObject(parts[0]);
    clReleaseMemObject(parts[1]);
}

int main(int argc, char **argv)
{
    (void)argc;
    layer = layer_open(LAYER, argv);
    if (!find_device(&app.device)) {
        puts("skipped: there is no OpenCL device (Debian: pocl-opencl-icd)");
        return 77;
    }
    if (!layer.calls(NULL)) {
        puts("skipped: this OpenCL loader takes no layers (Debian: ocl-icd-libopencl1)");
        return 77;
    }
    products(0, "a queue in order");
    products(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, "a queue out of order");
    if (application_open(0)) {
        bad_arguments();
        one_memory();
        application_close();
    }
    printf("%d checks, %d bad arguments, %d wrong\nCOUNT interop %d\nCOUNT arguments %d\n", checks, arguments,
           wrong, checks, arguments);
    return wrong != 0;
}
