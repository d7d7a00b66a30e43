/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda.c - the backend that talks to NVIDIA GPUs through CUDA's driver API.
 *
 * NVRTC builds kernels for the exact architecture of the device, so that cubins are cached. The
 * backend uses the primary context of the device, or the caller's; the context that is current in
 * the calling thread stays current.
 */
#include "os.h"
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "core.h"

struct device  { CUcontext context; CUdevice id; int primary; char arch[40]; };
struct queue   { CUstream stream; int borrowed; };
struct buffer  { CUdeviceptr at; int borrowed; };
struct program { CUmodule module; vn_device *device; void *cubin; size_t bytes; };
struct kernel  { CUfunction function; int large_local; };

/* It is set before the first device is listed, and so is never NULL where there is a device. */
static const struct vn_cuda_functions *cu;

/* ---- errors ------------------------------------------------------------------- */

vn_status vn__cuda_status(CUresult e, const char *call)
{
    const char *name = NULL, *meaning = NULL;

    if (e == 0)
        return VN_OK;
    cu->GetErrorName(e, &name);
    cu->GetErrorString(e, &meaning);
    return vn__fail(e == CU_OUT_OF_MEMORY ? VN_NO_MEMORY : e == CU_NO_DEVICE ? VN_NO_DEVICE : VN_FAILED,
                    "%s: %s (%d): %s", call, name ? name : "an unknown error", e,
                    meaning ? meaning : "no more is known");
}

/* Where this context is current already, push and pop are skipped: they cost more than the rest of a
 * launch. One bit per level, for nested calls.                                             */
static __thread unsigned in_context;

vn_status vn__cuda_enter(const vn_device *d)
{
    const CUcontext ours = ((struct device *)d->impl)->context;
    CUcontext current = NULL;
    const int there = cu->CtxGetCurrent(&current) == 0 && current == ours;
    const vn_status s = there ? VN_OK : vn__cuda_status(cu->CtxPushCurrent(ours), "cuCtxPushCurrent");

    if (s == VN_OK)
        in_context = in_context << 1 | (unsigned)there;
    return s;
}

vn_status vn__cuda_leave(vn_status s)
{
    CUcontext ours;

    if (!(in_context & 1))
        cu->CtxPopCurrent(&ours);
    in_context >>= 1;
    return s;
}

static void *allocate(size_t bytes, const char *what)
{
    void *p = calloc(1, bytes);

    if (!p)
        vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes for a %s", bytes, what);
    return p;
}

/* ---- devices -------------------------------------------------------------------- */

static int count(void)
{
    const char *why;
    int n = 0;

    if (!(cu = vn__cuda_driver(&why))) {
        vn__log(VN_LOG_BUILD, "no CUDA devices: %s", why);
        return 0;
    }
    return cu->DeviceGetCount(&n) ? 0 : n;
}

static vn_status attribute(int *out, CUdevice d, int which)
{
    *out = 0;
    return vn__cuda_status(cu->DeviceGetAttribute(out, which, d), "cuDeviceGetAttribute");
}

static vn_status describe(struct vn_listing *out, CUdevice d)
{
    vn_device_info *info = &out->info;
    CUuuid uuid = { { 0 } };
    size_t memory = 0;
    int version = 0, local;
    vn_status s;

    memset(out, 0, sizeof *out);
    if ((s = vn__cuda_status(cu->DeviceGetName(info->name, sizeof info->name, d), "cuDeviceGetName")) ||
        (s = vn__cuda_status(cu->DeviceTotalMem(&memory, d), "cuDeviceTotalMem")) ||
        (s = attribute(&info->compute_units, d, CU_MULTIPROCESSOR_COUNT)) ||
        (s = attribute(&local, d, CU_MAX_SHARED_PER_BLOCK)))
        return s;
    cu->DriverGetVersion(&version);
    cu->DeviceGetUuid(&uuid, d);
    cu->DeviceGetPCIBusId(info->pci, sizeof info->pci, d);
    for (char *c = info->pci; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    for (int i = 0; i < 16; i++)
        snprintf(info->uuid + 2 * i, 3, "%02x", uuid.bytes[i]);
    snprintf(info->vendor, sizeof info->vendor, "NVIDIA Corporation");
    snprintf(info->platform, sizeof info->platform, "CUDA");
    snprintf(info->driver, sizeof info->driver, "CUDA %d.%d", version / 1000, version % 1000 / 10);
    info->memory = (int64_t)memory;
    info->local_memory = local;
    info->has_f64 = 1;
    out->rank = 2e12;           /* above every CPU, below the same GPU through OpenCL */
    return VN_OK;
}

static vn_status list(struct vn_listing *out, int index)
{
    CUdevice d;
    vn_status s = vn__cuda_status(cu->DeviceGet(&d, index), "cuDeviceGet");

    return s ? s : describe(out, d);
}

/* NVRTC is told "sm_90a" on compute capability 9.0, for the instructions of that architecture alone. */
static vn_status name_arch(struct device *own, struct vn_facts *f)
{
    int major, minor;
    vn_status s;

    if ((s = attribute(&major, own->id, CU_COMPUTE_MAJOR)) ||
        (s = attribute(&minor, own->id, CU_COMPUTE_MINOR)))
        return s;
    snprintf(f->arch, sizeof f->arch, "sm_%d%d", major, minor);
    snprintf(own->arch, sizeof own->arch, "%s%s", f->arch, major == 9 && minor == 0 ? "a" : "");
    return VN_OK;
}

static vn_status fill_facts(vn_device *d)
{
    struct device *own = d->impl;
    struct vn_facts *f = &d->facts;
    const struct vn_nvrtc_functions *rtc;
    const char *why;
    int major = 0, minor = 0;
    vn_status s;

    if ((s = name_arch(own, f)) || (s = attribute(&f->items, own->id, CU_MAX_THREADS_PER_BLOCK)))
        return s;
    snprintf(f->name, sizeof f->name, "%s", d->info.name);
    snprintf(f->family, sizeof f->family, "nvidia");
    if ((rtc = vn__nvrtc(&why)))
        rtc->Version(&major, &minor);
    snprintf(f->toolchain, sizeof f->toolchain, "CUDA cubin; %s; %s; NVRTC %d.%d", own->arch, d->info.driver,
             major, minor);
    f->units = d->info.compute_units;
    f->vector = 1;
    f->local_bytes = (size_t)d->info.local_memory;
    f->buffer_bytes = (size_t)d->info.memory;
    f->types = 1u << VN_F32 | 1u << VN_F16 | 1u << VN_BF16 | 1u << VN_F64;
    return VN_OK;
}

static vn_status device_of(CUdevice *out, CUcontext context)
{
    CUcontext popped;
    vn_status s;

    if ((s = vn__cuda_status(cu->CtxPushCurrent(context), "cuCtxPushCurrent")))
        return s;
    s = vn__cuda_status(cu->CtxGetDevice(out), "cuCtxGetDevice");
    cu->CtxPopCurrent(&popped);
    return s;
}

vn_status vn__cuda_spec(char *out, size_t room, CUcontext context)
{
    const char *why;
    CUdevice d;
    vn_status s;

    if (!(cu = vn__cuda_driver(&why)))
        return vn__fail(VN_NO_DEVICE, "%s", why);
    if ((s = device_of(&d, context)) == VN_OK)
        snprintf(out, room, "cuda:%d", d);
    return s;
}

/* Takes the caller's context, or the primary one of the device. */
static vn_status find_context(struct device *own, int index, CUcontext callers)
{
    vn_status s;

    if (callers) {
        own->context = callers;
        return device_of(&own->id, callers);
    }
    own->primary = 1;
    if ((s = vn__cuda_status(cu->DeviceGet(&own->id, index), "cuDeviceGet")))
        return s;
    return vn__cuda_status(cu->PrimaryCtxRetain(&own->context, own->id), "cuDevicePrimaryCtxRetain");
}

static vn_status open_device(vn_device *d, int index, void *const native[2])
{
    struct vn_listing l;
    struct device *own;
    const char *why;
    vn_status s;

    if (!(cu = vn__cuda_driver(&why)))
        return vn__fail(VN_NO_DEVICE, "%s", why);
    if (!(own = allocate(sizeof *own, "device")))
        return VN_NO_MEMORY;
    d->impl = own;
    if ((s = find_context(own, index, native ? native[0] : NULL)) == VN_OK &&
        (s = describe(&l, own->id)) == VN_OK) {
        d->info = l.info;
        s = fill_facts(d);
    }
    if (s) {
        if (own->primary && own->context)
            cu->PrimaryCtxRelease(own->id);
        free(own);
    }
    return s;
}

static void close_device(vn_device *d)
{
    struct device *own = d->impl;

    if (own->primary)
        cu->PrimaryCtxRelease(own->id);
    free(own);
}

/* ---- queues ---------------------------------------------------------------------- */

CUstream vn__cuda_stream(const vn_queue *q)
{
    return ((struct queue *)q->impl)->stream;
}

/* native is the address of the caller's CUstream, since NULL is a valid stream. */
static vn_status queue_open(vn_queue *q, void *native)
{
    struct queue *own = allocate(sizeof *own, "queue");
    vn_status s;

    if (!own)
        return VN_NO_MEMORY;
    if (native) {
        own->stream = *(CUstream *)native;
        own->borrowed = 1;
    } else {
        if ((s = vn__cuda_enter(q->device)) == VN_OK)
            s = vn__cuda_leave(vn__cuda_status(cu->StreamCreate(&own->stream, CU_STREAM_NON_BLOCKING),
                                               "cuStreamCreate"));
        if (s) {
            free(own);
            return s;
        }
    }
    q->impl = own;
    return VN_OK;
}

static void queue_close(vn_queue *q)
{
    struct queue *own = q->impl;

    if (!own->borrowed && vn__cuda_enter(q->device) == VN_OK) {
        cu->StreamDestroy(own->stream);
        vn__cuda_leave(VN_OK);
    }
    free(own);
}

static vn_status finish(vn_queue *q)
{
    const vn_status s = vn__cuda_enter(q->device);

    return s ? s
         : vn__cuda_leave(vn__cuda_status(cu->StreamSynchronize(vn__cuda_stream(q)), "cuStreamSynchronize"));
}

/* A stream needs no flush. */
static vn_status flush(vn_queue *q)
{
    (void)q;
    return VN_OK;
}

/* ---- events ----------------------------------------------------------------------- */

vn_status vn__cuda_marker(CUevent *out, vn_queue *q)
{
    CUevent event;
    vn_status s = vn__cuda_enter(q->device);

    if (s)
        return s;
    if ((s = vn__cuda_status(cu->EventCreate(&event, 0), "cuEventCreate")))
        return vn__cuda_leave(s);
    if ((s = vn__cuda_status(cu->EventRecord(event, vn__cuda_stream(q)), "cuEventRecord"))) {
        cu->EventDestroy(event);
        return vn__cuda_leave(s);
    }
    *out = event;
    return vn__cuda_leave(VN_OK);
}

static vn_status event_record(vn_event *e, vn_queue *q)
{
    CUevent event = NULL;
    const vn_status s = vn__cuda_marker(&event, q);

    e->impl = event;
    return s;
}

vn_status vn__cuda_wait(vn_queue *q, unsigned count, CUevent const *events)
{
    vn_status s = vn__cuda_enter(q->device);

    if (s)
        return s;
    for (unsigned i = 0; i < count && s == VN_OK; i++)
        s = vn__cuda_status(cu->StreamWaitEvent(vn__cuda_stream(q), events[i], 0), "cuStreamWaitEvent");
    return vn__cuda_leave(s);
}

static vn_status event_wait(vn_queue *q, vn_event *e)
{
    const CUevent event = e->impl;

    return vn__cuda_wait(q, 1, &event);
}

static vn_status event_finish(vn_event *e)
{
    const vn_status s = vn__cuda_enter(e->device);

    return s ? s : vn__cuda_leave(vn__cuda_status(cu->EventSynchronize(e->impl), "cuEventSynchronize"));
}

static vn_status event_seconds(double *out, vn_event *from, vn_event *to)
{
    float milliseconds = 0;
    vn_status s = vn__cuda_enter(from->device);

    if (s)
        return s;
    if ((s = vn__cuda_status(cu->EventSynchronize(from->impl), "cuEventSynchronize")) == VN_OK &&
        (s = vn__cuda_status(cu->EventSynchronize(to->impl), "cuEventSynchronize")) == VN_OK)
        s = vn__cuda_status(cu->EventElapsedTime(&milliseconds, from->impl, to->impl), "cuEventElapsedTime");
    *out = milliseconds * 1e-3;
    return vn__cuda_leave(s);
}

static void event_close(vn_event *e)
{
    if (vn__cuda_enter(e->device))
        return;
    cu->EventDestroy(e->impl);
    vn__cuda_leave(VN_OK);
}

/* ---- buffers ------------------------------------------------------------------------ */

CUdeviceptr vn__cuda_address(const vn_buffer *b)
{
    return ((const struct buffer *)b->impl)->at;
}

static const char address_space;        /* all of CUDA's memory has addresses of one kind */

/* native is the address of the caller's CUdeviceptr; the caller gives its size. */
static vn_status buffer_open(vn_buffer *b, size_t bytes, void *native)
{
    struct buffer *own = allocate(sizeof *own, "buffer");
    vn_status s;

    if (!own)
        return VN_NO_MEMORY;
    if (native) {
        own->at = *(CUdeviceptr *)native;
        own->borrowed = 1;
    } else {
        if ((s = vn__cuda_enter(b->device)) == VN_OK)
            s = vn__cuda_leave(vn__cuda_status(cu->MemAlloc(&own->at, bytes ? bytes : 1), "cuMemAlloc"));
        if (s) {
            free(own);
            return s;
        }
    }
    b->impl   = own;
    b->memory = &address_space;
    b->at     = (int64_t)own->at;
    b->native = native ? (const void *)(uintptr_t)own->at : NULL;
    return VN_OK;
}

static void buffer_close(vn_buffer *b)
{
    struct buffer *own = b->impl;

    if (!own->borrowed && vn__cuda_enter(b->device) == VN_OK) {
        cu->MemFree(own->at);
        vn__cuda_leave(VN_OK);
    }
    free(own);
}

static vn_status buffer_host(vn_buffer *b, void *memory, size_t bytes)
{
    (void)memory;
    (void)bytes;
    return vn__fail(VN_UNSUPPORTED, "%s has memory of its own; "
                    "it needs a buffer from vn_buffer_open(), and vn_write()", b->device->info.name);
}

/* After the call that queued the transfer. */
static vn_status wait_for_transfer(vn_queue *q, CUresult e, const char *call, int waits)
{
    vn_status s = vn__cuda_status(e, call);

    if (s == VN_OK && waits)
        s = vn__cuda_status(cu->StreamSynchronize(vn__cuda_stream(q)), "cuStreamSynchronize");
    return vn__cuda_leave(s);
}

static vn_status write_buffer(vn_queue *q, vn_buffer *to, size_t at, const void *from, size_t bytes,
                              int waits)
{
    const vn_status s = vn__cuda_enter(q->device);

    return s ? s : wait_for_transfer(q, cu->MemcpyHtoDAsync(vn__cuda_address(to) + at, from, bytes,
                                                            vn__cuda_stream(q)), "cuMemcpyHtoDAsync", waits);
}

static vn_status read_buffer(vn_queue *q, void *to, const vn_buffer *from, size_t at, size_t bytes, int waits)
{
    const vn_status s = vn__cuda_enter(q->device);

    return s ? s : wait_for_transfer(q, cu->MemcpyDtoHAsync(to, vn__cuda_address(from) + at, bytes,
                                                            vn__cuda_stream(q)), "cuMemcpyDtoHAsync", waits);
}

static vn_status copy_buffer(vn_queue *q, vn_buffer *to, size_t to_at, const vn_buffer *from, size_t from_at,
                             size_t bytes)
{
    const vn_status s = vn__cuda_enter(q->device);

    return s ? s : wait_for_transfer(q, cu->MemcpyDtoDAsync(vn__cuda_address(to) + to_at,
                                                            vn__cuda_address(from) + from_at, bytes,
                                                            vn__cuda_stream(q)), "cuMemcpyDtoDAsync", 0);
}

/* CUDA fills with up to 4 bytes: 8 are two columns of a matrix. */
static vn_status fill_buffer(vn_queue *q, vn_buffer *to, size_t at, size_t bytes, const void *pattern,
                             size_t size)
{
    const CUdeviceptr p = vn__cuda_address(to) + at;
    const CUstream stream = vn__cuda_stream(q);
    union { unsigned char byte; unsigned short half; unsigned word[2]; } v;
    CUresult e;
    vn_status s = vn__cuda_enter(q->device);

    if (s)
        return s;
    memcpy(&v, pattern, size);
    if (size == 1)
        e = cu->MemsetD8Async(p, v.byte, bytes, stream);
    else if (size == 2)
        e = cu->MemsetD16Async(p, v.half, bytes / 2, stream);
    else if (size == 4)
        e = cu->MemsetD32Async(p, v.word[0], bytes / 4, stream);
    else if (!(e = cu->MemsetD2D32Async(p, 8, v.word[0], 1, bytes / 8, stream)))
        e = cu->MemsetD2D32Async(p + 4, 8, v.word[1], 1, bytes / 8, stream);
    return wait_for_transfer(q, e, "cuMemset", 0);
}

/* ---- programs ------------------------------------------------------------------------- */

static void program_close(void *program)
{
    struct program *p = program;

    if (p->module && vn__cuda_enter(p->device) == VN_OK) {
        cu->ModuleUnload(p->module);
        vn__cuda_leave(VN_OK);
    }
    free(p->cubin);
    free(p);
}

/* Takes ownership of the cubin. */
static vn_status make_program(void **out, vn_device *d, void *cubin, size_t bytes)
{
    struct program *p = allocate(sizeof *p, "program");
    vn_status s;

    if (!p) {
        free(cubin);
        return VN_NO_MEMORY;
    }
    *p = (struct program){ .device = d, .cubin = cubin, .bytes = bytes };
    if ((s = vn__cuda_enter(d)) == VN_OK)
        s = vn__cuda_leave(vn__cuda_status(cu->ModuleLoadData(&p->module, cubin), "cuModuleLoadData"));
    if (s) {
        p->module = NULL;
        program_close(p);
        return s;
    }
    *out = p;
    return VN_OK;
}

static vn_status compile_error(const struct vn_nvrtc_functions *rtc, nvrtcProgram program, nvrtcResult e)
{
    size_t n = 0;
    char *text;
    vn_status s;

    if (rtc->GetLogSize(program, &n) || !n || !(text = calloc(1, n + 1)))
        return vn__fail(VN_FAILED, "nvrtcCompileProgram: %s", rtc->GetErrorString(e));
    rtc->GetLog(program, text);
    vn__log(VN_LOG_BUILD, "%s", text);
    s = vn__fail(VN_FAILED, "nvrtcCompileProgram: %s: %.400s", rtc->GetErrorString(e), text);
    free(text);
    return s;
}

static vn_status take_cubin(void **cubin, size_t *bytes, const struct vn_nvrtc_functions *rtc,
                            nvrtcProgram program)
{
    nvrtcResult e;

    *cubin = NULL;
    if ((e = rtc->GetCUBINSize(program, bytes)) || !*bytes)
        return vn__fail(VN_FAILED, "nvrtcGetCUBINSize: %s", rtc->GetErrorString(e));
    if (!(*cubin = allocate(*bytes, "cubin")))
        return VN_NO_MEMORY;
    if (!(e = rtc->GetCUBIN(program, *cubin)))
        return VN_OK;
    free(*cubin);
    return vn__fail(VN_FAILED, "nvrtcGetCUBIN: %s", rtc->GetErrorString(e));
}

static vn_status take_ptx(void **ptx, size_t *bytes, const struct vn_nvrtc_functions *rtc,
                          nvrtcProgram program)
{
    nvrtcResult e;

    *ptx = NULL;
    if ((e = rtc->GetPTXSize(program, bytes)) || !*bytes)
        return vn__fail(VN_FAILED, "nvrtcGetPTXSize: %s", rtc->GetErrorString(e));
    if (!(*ptx = allocate(*bytes, "PTX text")))
        return VN_NO_MEMORY;
    if (!(e = rtc->GetPTX(program, *ptx)))
        return VN_OK;
    free(*ptx);
    return vn__fail(VN_FAILED, "nvrtcGetPTX: %s", rtc->GetErrorString(e));
}

/* kind: "sm_" compiles to machine code, "compute_" to PTX. */
static vn_status compile(void **out, size_t *bytes, vn_device *d, const char *text, const char *kind,
                         vn_status (*take)(void **, size_t *, const struct vn_nvrtc_functions *,
                                           nvrtcProgram))
{
    char arch[64];
    /* as in OpenCL: no contraction; subnormals and correctly rounded division are the default */
    const char *const options[] = { arch, "--fmad=false", "--std=c++14" };
    const struct vn_nvrtc_functions *rtc;
    nvrtcProgram program;
    const char *why;
    nvrtcResult e;
    vn_status s;

    if (!(rtc = vn__nvrtc(&why)))
        return vn__fail(VN_UNSUPPORTED, "%s", why);
    snprintf(arch, sizeof arch, "--gpu-architecture=%s%s", kind,
             ((struct device *)d->impl)->arch + strlen("sm_"));
    if ((e = rtc->CreateProgram(&program, text, "vernier.cu", 0, NULL, NULL)))
        return vn__fail(VN_FAILED, "nvrtcCreateProgram: %s", rtc->GetErrorString(e));
    if ((e = rtc->CompileProgram(program, sizeof options / sizeof *options, options)))
        s = compile_error(rtc, program, e);
    else
        s = take(out, bytes, rtc, program);
    rtc->DestroyProgram(&program);
    return s;
}

static vn_status program_build(void **out, vn_device *d, const char *text)
{
    void *cubin = NULL;
    size_t bytes = 0;
    const vn_status s = compile(&cubin, &bytes, d, text, "sm_", take_cubin);

    return s ? s : make_program(out, d, cubin, bytes);
}

vn_status vn__cuda_ptx(char **out, vn_device *d, const char *text)
{
    void *ptx = NULL;
    size_t bytes = 0;
    const vn_status s = compile(&ptx, &bytes, d, text, "compute_", take_ptx);

    *out = ptx;
    return s;
}

static vn_status program_load(void **out, vn_device *d, const void *blob, size_t bytes)
{
    void *cubin = allocate(bytes, "cubin");

    if (!cubin)
        return VN_NO_MEMORY;
    memcpy(cubin, blob, bytes);
    return make_program(out, d, cubin, bytes);
}

static vn_status program_save(void *program, void **blob, size_t *bytes)
{
    const struct program *p = program;

    if (!(*blob = allocate(p->bytes, "cubin")))
        return VN_NO_MEMORY;
    memcpy(*blob, p->cubin, p->bytes);
    *bytes = p->bytes;
    return VN_OK;
}

/* ---- kernels ---------------------------------------------------------------------------- */

/* Local memory above the static limit is requested at the launch. Its size is a constant in the cubin that
 * is named after the kernel (the word LARGE_LOCAL). Other kernels of the file get none: it would limit
 * them to one work-group per multiprocessor.                                                 */
static vn_status find_large_local(struct kernel *k, const struct program *p, const char *entry)
{
    char name[80];
    const int length = snprintf(name, sizeof name, "vn_large_local_%s", entry);
    CUdeviceptr at;
    size_t bytes;
    vn_status s;

    if (length >= (int)sizeof name || !memmem(p->cubin, p->bytes, name, (size_t)length + 1))
        return VN_OK;
    if ((s = vn__cuda_status(cu->ModuleGetGlobal(&at, &bytes, p->module, name), "cuModuleGetGlobal")))
        return s;
    if (bytes != sizeof k->large_local)
        return vn__fail(VN_FAILED, "%s has %zu bytes; it needs %zu", name, bytes, sizeof k->large_local);
    if ((s = vn__cuda_status(cu->MemcpyDtoH(&k->large_local, at, bytes), "cuMemcpyDtoH")))
        return s;
    return vn__cuda_status(cu->FuncSetAttribute(k->function, CU_FUNC_DYNAMIC_SHARED, k->large_local),
                           "cuFuncSetAttribute");
}

static vn_status kernel_open(void **out, vn_device *d, void *program, const char *entry)
{
    struct program *p = program;
    struct kernel *k = allocate(sizeof *k, "kernel");
    vn_status s;

    if (!k)
        return VN_NO_MEMORY;
    if ((s = vn__cuda_enter(d)) == VN_OK) {
        if ((s = vn__cuda_status(cu->ModuleGetFunction(&k->function, p->module, entry),
                                 "cuModuleGetFunction")) == VN_OK)
            s = find_large_local(k, p, entry);
        vn__cuda_leave(s);
    }
    if (s) {
        free(k);
        return s;
    }
    *out = k;
    return VN_OK;
}

static void kernel_close(void *kernel)
{
    free(kernel);
}

vn_status vn__cuda_kernel_facts(struct vn_cuda_kernel_facts *out, void *kernel)
{
    struct kernel *const k = kernel;
    const struct { int attribute, *to; } wanted[] = {
        { CU_FUNC_NUM_REGS,     &out->registers   },
        { CU_FUNC_LOCAL_BYTES,  &out->stack_bytes },
        { CU_FUNC_SHARED_BYTES, &out->local_bytes },
    };
    vn_status s = VN_OK;

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && !s; i++)
        s = vn__cuda_status(cu->FuncGetAttribute(wanted[i].to, wanted[i].attribute, k->function),
                            "cuFuncGetAttribute");
    out->local_bytes += k->large_local;
    return s;
}

static vn_status launch(vn_queue *q, void *kernel, const struct vn_launch *l)
{
    static CUdeviceptr none;
    struct kernel *k = kernel;
    void *arguments[VN_ARGS];
    vn_status s;

    if (l->groups[0] > INT_MAX || l->groups[1] > 65535 || l->groups[2] > 65535)
        return vn__fail(VN_UNSUPPORTED, "the launch has %lld x %lld x %lld work-groups; "
                        "CUDA takes at most 2147483647 x 65535 x 65535", (long long)l->groups[0],
                        (long long)l->groups[1], (long long)l->groups[2]);
    for (int i = 0; i < l->nargs; i++) {
        const struct vn_arg *a = &l->args[i];

        arguments[i] = a->size ? (void *)&a->value
                     : a->buffer ? &((struct buffer *)a->buffer->impl)->at : &none;
    }
    if ((s = vn__cuda_enter(q->device)))
        return s;
    s = vn__cuda_status(cu->LaunchKernel(k->function, (unsigned)l->groups[0], (unsigned)l->groups[1],
                                         (unsigned)l->groups[2], (unsigned)l->items, 1, 1,
                                         (unsigned)k->large_local, vn__cuda_stream(q), arguments, NULL),
                        "cuLaunchKernel");
    return vn__cuda_leave(s);
}

const struct vn_backend vn__cuda = {
    .name = "cuda",
    .count = count,
    .list = list,
    .open = open_device,
    .close = close_device,
    .queue_open = queue_open,
    .queue_close = queue_close,
    .finish = finish,
    .flush = flush,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_finish = event_finish,
    .event_seconds = event_seconds,
    .event_close = event_close,
    .buffer_open = buffer_open,
    .buffer_host = buffer_host,
    .buffer_close = buffer_close,
    .write = write_buffer,
    .read = read_buffer,
    .copy = copy_buffer,
    .fill = fill_buffer,
    .program_build = program_build,
    .program_load = program_load,
    .program_save = program_save,
    .program_close = program_close,
    .kernel_open = kernel_open,
    .kernel_close = kernel_close,
    .launch = launch,
};
