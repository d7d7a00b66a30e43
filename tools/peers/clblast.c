/* SPDX-License-Identifier: Apache-2.0
 *
 * clblast.c - CLBlast on the same OpenCL device: gemm, batched gemm, and 2-D convolution forward.
 *
 * It has its own context and queue.  The device is found by the names of its platform and its
 * own, since CLBlast must meet the very device that ours ran on.
 */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include "peer.h"
#include "problem/conv.h"

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112, CORRELATE = 151 };     /* of clblast_c.h */

/* One signature for each type of alpha and beta; halves travel as their bits. */
#define GEMM_OF(type) \
    int (*)(int order, int ta, int tb, size_t m, size_t n, size_t k, type alpha,                \
            cl_mem a, size_t a_start, size_t lda, cl_mem b, size_t b_start, size_t ldb,         \
            type beta, cl_mem c, size_t c_start, size_t ldc, cl_command_queue *, cl_event *)
#define BATCHED_OF(type) \
    int (*)(int order, int ta, int tb, size_t m, size_t n, size_t k, type alpha,                \
            cl_mem a, size_t a_start, size_t lda, size_t a_step,                                \
            cl_mem b, size_t b_start, size_t ldb, size_t b_step,                                \
            type beta, cl_mem c, size_t c_start, size_t ldc, size_t c_step,                     \
            size_t batch, cl_command_queue *, cl_event *)

typedef int (*convgemm)(int mode, size_t channels, size_t h, size_t w, size_t r, size_t s,
                        size_t pad_h, size_t pad_w, size_t stride_h, size_t stride_w,
                        size_t dilation_h, size_t dilation_w, size_t filters, size_t images,
                        cl_mem x, size_t x_start, cl_mem filter, size_t filter_start,
                        cl_mem y, size_t y_start, cl_command_queue *, cl_event *);
typedef void (*function)(void);

static struct {
    void            *library;
    cl_device_id     device;
    cl_context       context;
    cl_command_queue queue;
    int              is_cpu, has_half, has_double;
    char             version[64];
    function         gemm[VN_TYPE_COUNT], batched[VN_TYPE_COUNT];
    convgemm         conv[VN_TYPE_COUNT];
} clblast;

static const struct peer_symbol symbols[] = {
    { "CLBlastSgemm",               &clblast.gemm[VN_F32] },
    { "CLBlastDgemm",               &clblast.gemm[VN_F64] },
    { "CLBlastHgemm",               &clblast.gemm[VN_F16] },
    { "CLBlastSgemmStridedBatched", &clblast.batched[VN_F32] },
    { "CLBlastDgemmStridedBatched", &clblast.batched[VN_F64] },
    { "CLBlastHgemmStridedBatched", &clblast.batched[VN_F16] },
    { "CLBlastSconvgemm",           &clblast.conv[VN_F32] },
    { "CLBlastDconvgemm",           &clblast.conv[VN_F64] },
    { "CLBlastHconvgemm",           &clblast.conv[VN_F16] },
    { NULL, NULL }
};

struct run;

/* What there is for one operation. */
struct operation {
    int (*check)(struct run *r, char *why, size_t why_size);
    int (*run)  (const struct run *r);
};

struct run {
    const struct operation *operation;
    struct problem   p;
    struct operands  o;
    struct peer_blas g;
    cl_mem           m[3];
};

/* ---- the library and the device ---- */

static int device_is(cl_device_id id, const char *name)
{
    char text[512] = "";

    return !clGetDeviceInfo(id, CL_DEVICE_NAME, sizeof text, text, NULL)
        && !strncmp(text, name, strlen(name));
}

static int platform_is(cl_platform_id id, const char *name)
{
    char text[512] = "";

    return !clGetPlatformInfo(id, CL_PLATFORM_NAME, sizeof text, text, NULL)
        && !strncmp(text, name, strlen(name));
}

/* Of an NVIDIA GPU, where it is; others have no such number and are told by name alone. */
static int lies_at(cl_device_id id, const char *pci)
{
    enum { PCI_BUS = 0x4008, PCI_SLOT = 0x4009 };
    unsigned domain, place[2];
    cl_uint bus, slot;

    if (clGetDeviceInfo(id, PCI_BUS, sizeof bus, &bus, NULL)
        || clGetDeviceInfo(id, PCI_SLOT, sizeof slot, &slot, NULL)
        || sscanf(pci, "%x:%x:%x", &domain, &place[0], &place[1]) != 3)
        return 1;
    return bus == place[0] && (slot & 0xff) == place[1];
}

/* vn_device_info may have cut a long name short: its beginning is what must agree. */
static int find_device(const struct peer_context *c)
{
    enum { MOST = 32 };
    cl_platform_id platforms[MOST];
    cl_device_id devices[MOST];
    cl_uint np, nd, i, j;

    if (clGetPlatformIDs(MOST, platforms, &np))
        return -1;
    for (i = 0; i < np && i < MOST; i++) {
        if ((!platform_is(platforms[i], c->platform)
             && (strcmp(c->platform, "CUDA") || !platform_is(platforms[i], "NVIDIA CUDA")))
            || clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, MOST, devices, &nd))
            continue;
        for (j = 0; j < nd && j < MOST; j++)
            if (device_is(devices[j], c->device) && lies_at(devices[j], c->pci)) {
                clblast.device = devices[j];
                return 0;
            }
    }
    return -1;
}

static int has_extension(const char *name)
{
    size_t size = 0;
    char *list;
    int found;

    if (clGetDeviceInfo(clblast.device, CL_DEVICE_EXTENSIONS, 0, NULL, &size)
        || !(list = calloc(1, size + 1)))
        return 0;
    found = !clGetDeviceInfo(clblast.device, CL_DEVICE_EXTENSIONS, size, list, NULL) && strstr(list, name);
    free(list);
    return found;
}

static int open_queue(void)
{
    cl_int status;

    clblast.context = clCreateContext(NULL, 1, &clblast.device, NULL, NULL, &status);
    if (status)
        return -1;
    clblast.queue = clCreateCommandQueue(clblast.context, clblast.device,
                                         clblast.is_cpu ? 0 : CL_QUEUE_PROFILING_ENABLE, &status);
    return status ? -1 : 0;
}

static void unload(void)
{
    if (clblast.queue)
        clReleaseCommandQueue(clblast.queue);
    if (clblast.context)
        clReleaseContext(clblast.context);
    clblast.queue = NULL;
    clblast.context = NULL;
}

/* No function tells its version, but its file is named after it: libclblast.so.1.5.3. */
static void read_version(void)
{
    static const char before[] = "libclblast.so.";
    void *symbol;
    Dl_info info;
    char *path = NULL, *found = NULL;

    memcpy(&symbol, &clblast.gemm[VN_F32], sizeof symbol);
    if (dladdr(symbol, &info))
        path = realpath(info.dli_fname, NULL);
    if (path)
        found = strstr(path, before);
    snprintf(clblast.version, sizeof clblast.version, "CLBlast %.40s", found ? found + strlen(before) : "1");
    free(path);
}

static int load(const struct peer_context *c, char *why, size_t why_size)
{
    static const char *const sonames[] = { "libclblast.so.1", "libclblast.so", NULL };

    if (clblast.queue)
        return 0;
    if (!clblast.library) {
        if (peer_load(&clblast.library, sonames, "libclblast1", why, why_size))
            return -1;
        if (peer_symbols(clblast.library, symbols, why, why_size)) {
            clblast.library = NULL;
            return -1;
        }
        read_version();
    }
    if (find_device(c))
        return peer_refuse(why, why_size, "there is no OpenCL device \"%s\" of \"%s\"",
                           c->device, c->platform);
    clblast.is_cpu     = c->is_cpu;
    clblast.has_half   = has_extension("cl_khr_fp16");
    clblast.has_double = has_extension("cl_khr_fp64");
    if (open_queue()) {
        unload();
        return peer_refuse(why, why_size, "\"%s\" gives no context or queue", c->device);
    }
    return 0;
}

static const char *version(void)
{
    return clblast.version;
}

/* ---- one prepared problem ---- */

static int lies_packed(const vn_tensor *t)
{
    int64_t run = 1;
    int d;

    for (d = t->rank - 1; d >= 0; run *= t->extent[d--])
        if (t->extent[d] > 1 && t->stride[d] != run)
            return 0;
    return 1;
}

static int check_gemm(struct run *r, char *why, size_t why_size)
{
    return peer_blas(&r->g, &r->p, &r->o, why, why_size);
}

static int check_conv(struct run *r, char *why, size_t why_size)
{
    const struct problem *p = &r->p;
    const struct conv_problem *c = conv_of(p);

    if (p->direction != FORWARD || c->spatial == 3 || c->groups > 1)
        return peer_refuse(why, why_size,
                           "its convolution is forward, without groups, of one or two dimensions");
    if (p->alpha != 1 || p->beta != 0 || p->bias || p->act != VN_IDENTITY)
        return peer_refuse(why, why_size, "its convolution has no alpha, beta, bias or activation");
    if (c->pad_before[1] != c->pad_after[1] || c->pad_before[2] != c->pad_after[2])
        return peer_refuse(why, why_size, "its convolution pads both sides alike");
    if (!lies_packed(&r->o.t[0]) || !lies_packed(&r->o.t[1]) || !lies_packed(&r->o.t[2]))
        return peer_refuse(why, why_size, "its convolution needs packed NCHW");
    return 0;
}

static int run_gemm(const struct run *r);
static int run_conv(const struct run *r);

static const struct op *const has[] = { &op_gemm, &op_conv, NULL };
static const struct operation operations[] = { { check_gemm, run_gemm }, { check_conv, run_conv } };

static int check(struct run *r, char *why, size_t why_size)
{
    const vn_type type = r->p.type;
    char lacks[64];
    int  place;

    snprintf(lacks, sizeof lacks, "it has no %s", r->p.op->name);
    if ((place = peer_operation(has, &r->p, lacks, why, why_size)) < 0)
        return -1;
    r->operation = &operations[place];
    if (!clblast.gemm[type])
        return peer_refuse(why, why_size, "it has no %s", vn_type_name(type));
    if ((type == VN_F16 && !clblast.has_half) || (type == VN_F64 && !clblast.has_double))
        return peer_refuse(why, why_size, "it needs a device with %s",
                           type == VN_F16 ? "cl_khr_fp16" : "cl_khr_fp64");
    return r->operation->check(r, why, why_size);
}

static void finish(void *state)
{
    struct run *r = state;
    int i;

    if (!r)
        return;
    for (i = 0; i < 3; i++)
        if (r->m[i])
            clReleaseMemObject(r->m[i]);
    free(r);
}

static int fill_buffers(struct run *r, const struct values *data)
{
    const size_t size = vn_type_bytes(r->p.type);
    cl_int status = CL_SUCCESS;
    int i;

    for (i = 0; i < 3 && !status; i++) {
        const size_t bytes = (size_t)r->o.elements[i] * size;

        r->m[i] = clCreateBuffer(clblast.context, CL_MEM_READ_WRITE, bytes ? bytes : 1, NULL, &status);
        if (!status && data->operand[i] && bytes)
            status = clEnqueueWriteBuffer(clblast.queue, r->m[i], CL_TRUE, 0, bytes,
                                          data->operand[i], 0, NULL, NULL);
    }
    return status;
}

static int prepare(void **out, const struct problem *p, const struct values *data,
                   char *why, size_t why_size)
{
    struct run *r = calloc(1, sizeof *r);

    if (!r)
        return peer_refuse(why, why_size, "out of memory");
    r->p = *p;
    if (problem_operands(&r->o, p)) {
        finish(r);
        return peer_refuse(why, why_size, "the problem's size overflows");
    }
    if (check(r, why, why_size)) {
        finish(r);
        return -1;
    }
    if (fill_buffers(r, data)) {
        finish(r);
        return peer_refuse(why, why_size, "the device has no room for the operands");
    }
    *out = r;
    return 0;
}

/* ---- running it ---- */

static cl_half half_bits(double value)
{
    const float f = (float)value;
    uint32_t u, magnitude;

    memcpy(&u, &f, sizeof u);
    magnitude = u & 0x7fffffff;
    if (magnitude < 0x38800000 || magnitude >= 0x47800000)      /* alpha and beta: no subnormals */
        return (cl_half)(u >> 16 & 0x8000) | (magnitude >= 0x47800000 ? 0x7c00 : 0);
    return (cl_half)((u >> 16 & 0x8000) | ((magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13));
}

static int plain_or_transposed(int trans)
{
    return trans ? TRANSPOSED : PLAIN;
}

#define SHAPE(g) ROW_MAJOR, plain_or_transposed((g)->a.trans), plain_or_transposed((g)->b.trans), \
                 (size_t)(g)->m, (size_t)(g)->n, (size_t)(g)->k
#define MATRIX(r, x)  (r)->m[(r)->g.x.operand], (size_t)(r)->g.x.start, (size_t)(r)->g.x.ld
#define BATCHED(r, x) MATRIX(r, x), (size_t)(r)->g.x.step
#define GEMM_FUNCTION(name, scalar, convert)                                                     \
    static int name(const struct run *r)                                                         \
    {                                                                                            \
        const scalar alpha = convert(r->p.alpha), beta = convert(r->p.beta);                     \
                                                                                                 \
        if (r->g.batch == 1)                                                                     \
            return ((GEMM_OF(scalar))clblast.gemm[r->p.type])(SHAPE(&r->g), alpha, MATRIX(r, a), \
                MATRIX(r, b), beta, MATRIX(r, c), &clblast.queue, NULL);                         \
        return ((BATCHED_OF(scalar))clblast.batched[r->p.type])(SHAPE(&r->g), alpha,             \
            BATCHED(r, a), BATCHED(r, b), beta, BATCHED(r, c), (size_t)r->g.batch,               \
            &clblast.queue, NULL);                                                               \
    }
GEMM_FUNCTION(gemm_f32, cl_float,  (cl_float))
GEMM_FUNCTION(gemm_f64, cl_double, (cl_double))
GEMM_FUNCTION(gemm_f16, cl_half,   half_bits)

static int run_gemm(const struct run *r)
{
    static int (*const of_type[VN_TYPE_COUNT])(const struct run *) =
        { [VN_F32] = gemm_f32, [VN_F16] = gemm_f16, [VN_F64] = gemm_f64 };

    return of_type[r->p.type](r);
}

static int run_conv(const struct run *r)
{
    const struct conv_problem *c = conv_of(&r->p);

    return clblast.conv[r->p.type](CORRELATE, (size_t)c->c, (size_t)c->size[1], (size_t)c->size[2],
        (size_t)c->filter[1], (size_t)c->filter[2], (size_t)c->pad_before[1], (size_t)c->pad_before[2],
        (size_t)c->stride[1], (size_t)c->stride[2], (size_t)c->dilation[1], (size_t)c->dilation[2],
        (size_t)c->filters, (size_t)c->images, r->m[0], (size_t)r->o.t[0].start,
        r->m[1], (size_t)r->o.t[1].start, r->m[2], (size_t)r->o.t[2].start, &clblast.queue, NULL);
}

static int enqueue(const struct run *r)
{
    return r->operation->run(r);
}

static int run(void *state)
{
    const int status = enqueue(state);

    return status ? status : clFinish(clblast.queue);
}

static double between(cl_event from, cl_event to)
{
    cl_ulong start, end;

    if (clGetEventProfilingInfo(from, CL_PROFILING_COMMAND_END, sizeof start, &start, NULL)
        || clGetEventProfilingInfo(to, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL) || end < start)
        return -1;
    return 1e-9 * (double)(end - start);
}

static double timed(void *const *state, int count, int repeats)
{
    cl_event from = NULL, to = NULL;
    double seconds = -1;
    int status = clEnqueueMarkerWithWaitList(clblast.queue, 0, NULL, &from);

    for (int i = 0; i < repeats * count && !status; i++)
        status = enqueue(state[i % count]);
    if (!status)
        status = clEnqueueMarkerWithWaitList(clblast.queue, 0, NULL, &to);
    if (!clFinish(clblast.queue) && !status)
        seconds = between(from, to);
    if (from)
        clReleaseEvent(from);
    if (to)
        clReleaseEvent(to);
    return seconds;
}

static int read_output(void *state, int i, void *to)
{
    struct run *r = state;
    const size_t bytes = operand_bytes(&r->o, i);
    void *all = malloc(bytes ? bytes : 1);
    int status = !all || clEnqueueReadBuffer(clblast.queue, r->m[i], CL_TRUE, 0, bytes, all, 0, NULL, NULL);

    if (!status)
        peer_read(to, all, &r->o.t[i]);
    free(all);
    return status;
}

const struct peer peer_clblast = {
    "clblast", 0, load, version, prepare, run, timed, read_output, finish, unload, NULL
};
