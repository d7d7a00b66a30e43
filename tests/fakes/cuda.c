/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda.c - libcuda of one GPU of sm_90 that executes nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/driver.h"
#include "fake.h"

#pragma GCC visibility push(default)

enum { UNKNOWN = 999 };
enum { DEPTH = 64, MOST_SHARED = 232448 };

static int context_stands_for, stream_stands_for, function_stands_for, large_stands_for;
static float recorded[1024];    /* events: when, by the panel's clock; places of old ones are used again */
static void *held[16384];       /* buffers: what a failure leaves open is not lost to leak checkers */
static CUcontext current[DEPTH];

#define FAILS() do { if (fake_fails(__func__)) return UNKNOWN; } while (0)
#define IN_CONTEXT() FAKE_NEEDS(fake.depth > 0)

CUresult cuInit(unsigned flags)
{
    FAILS();
    FAKE_NEEDS(flags == 0);
    return 0;
}

CUresult cuDriverGetVersion(int *out)
{
    FAILS();
    *out = fake.driver_version;
    return 0;
}

CUresult cuGetErrorName(CUresult e, const char **out)
{
    *out = e == UNKNOWN ? "CUDA_ERROR_UNKNOWN" : e == CU_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : NULL;
    return *out ? 0 : 1;
}

CUresult cuGetErrorString(CUresult e, const char **out)
{
    *out = e == UNKNOWN ? "as the test wanted" : NULL;
    return *out ? 0 : 1;
}

CUresult cuDeviceGetCount(int *out)
{
    FAILS();
    *out = fake.devices;
    return 0;
}

CUresult cuDeviceGet(CUdevice *out, int index)
{
    FAILS();
    *out = index;
    return index < fake.devices ? 0 : 101;
}

CUresult cuDeviceGetName(char *out, int room, CUdevice d)
{
    FAILS();
    FAKE_NEEDS(d == 0);
    snprintf(out, (size_t)room, "A fake GPU");
    return 0;
}

CUresult cuDeviceGetAttribute(int *out, int attribute, CUdevice d)
{
    static const struct { int which, value; } known[] = {
        { CU_MAX_THREADS_PER_BLOCK, 1024 }, { CU_MAX_SHARED_PER_BLOCK, 49152 },
        { CU_MULTIPROCESSOR_COUNT, 132 },
        { CU_CLOCK_RATE, 1980000 }, { CU_COMPUTE_MAJOR, 9 }, { CU_COMPUTE_MINOR, 0 } };

    FAILS();
    FAKE_NEEDS(d == 0);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].which == attribute) {
            *out = known[i].value;
            return 0;
        }
    return 1;
}

CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice d)
{
    FAILS();
    FAKE_NEEDS(d == 0);
    *out = (size_t)1 << 32;
    return 0;
}

CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice d)
{
    FAILS();
    FAKE_NEEDS(d == 0);
    memset(out, 0x5a, sizeof *out);
    return 0;
}

CUresult cuDeviceGetPCIBusId(char *out, int room, CUdevice d)
{
    FAILS();
    FAKE_NEEDS(d == 0);
    snprintf(out, (size_t)room, "0000:5A:00.0");
    return 0;
}

/* ---- contexts --------------------------------------------------------------------- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice d)
{
    FAILS();
    FAKE_NEEDS(d == 0);
    *out = (CUcontext)&context_stands_for;
    fake.contexts++;
    return 0;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d)
{
    FAKE_NEEDS(d == 0 && fake.contexts > 0);
    fake.contexts--;
    return 0;
}

CUresult cuCtxPushCurrent_v2(CUcontext c)
{
    FAILS();
    FAKE_NEEDS(c && fake.depth < DEPTH);
    current[fake.depth++] = c;
    return 0;
}

CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
    FAKE_NEEDS(fake.depth > 0);
    *out = current[--fake.depth];
    return 0;
}

CUresult cuCtxGetCurrent(CUcontext *out)
{
    FAILS();
    *out = fake.depth ? current[fake.depth - 1] : NULL;
    return 0;
}

CUresult cuCtxGetDevice(CUdevice *out)
{
    FAILS();
    IN_CONTEXT();
    *out = 0;
    return 0;
}

/* ---- streams and events ------------------------------------------------------------- */

CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    FAILS();
    IN_CONTEXT();
    FAKE_NEEDS(flags == CU_STREAM_NON_BLOCKING);
    *out = (CUstream)&stream_stands_for;
    fake.streams++;
    return 0;
}

CUresult cuStreamDestroy_v2(CUstream s)
{
    IN_CONTEXT();
    FAKE_NEEDS(s && fake.streams > 0);
    fake.streams--;
    return 0;
}

CUresult cuStreamSynchronize(CUstream s)
{
    (void)s;
    FAILS();
    IN_CONTEXT();
    return 0;
}

CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags)
{
    (void)s;
    FAILS();
    IN_CONTEXT();
    FAKE_NEEDS(e && flags == 0);
    return 0;
}

CUresult cuEventCreate(CUevent *out, unsigned flags)
{
    static size_t made;

    FAILS();
    IN_CONTEXT();
    FAKE_NEEDS(flags == 0);
    *out = (CUevent)(void *)&recorded[made++ % (sizeof recorded / sizeof *recorded)];
    fake.events++;
    return 0;
}

CUresult cuEventDestroy_v2(CUevent e)
{
    IN_CONTEXT();
    FAKE_NEEDS(e && fake.events > 0);
    fake.events--;
    return 0;
}

CUresult cuEventRecord(CUevent e, CUstream s)
{
    (void)s;
    FAILS();
    IN_CONTEXT();
    FAKE_NEEDS(e);
    *(float *)(void *)e = fake.clock;
    return 0;
}

CUresult cuEventSynchronize(CUevent e)
{
    FAILS();
    IN_CONTEXT();
    FAKE_NEEDS(e);
    return 0;
}

CUresult cuEventElapsedTime(float *out, CUevent from, CUevent to)
{
    FAILS();
    IN_CONTEXT();
    FAKE_NEEDS(from && to);
    *out = 1.5f + *(float *)(void *)to - *(float *)(void *)from;
    return 0;
}

/* ---- memory ---------------------------------------------------------------------------- */

/* The place in held[] of a buffer, or of none. */
static void **place_of(const void *p)
{
    size_t i = 0;

    while (i < sizeof held / sizeof *held - 1 && held[i] != p)
        i++;
    FAKE_NEEDS(held[i] == p);
    return &held[i];
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
    void *p = NULL;

    FAILS();
    IN_CONTEXT();
    FAKE_NEEDS(bytes > 0);
    if (fake.out_of_memory || posix_memalign(&p, 256, bytes))
        return CU_OUT_OF_MEMORY;
    memset(p, 0, bytes < 1 << 20 ? bytes : 1 << 20);
    *out = (CUdeviceptr)(size_t)p;
    *place_of(NULL) = p;
    fake.buffers++;
    return 0;
}

CUresult cuMemFree_v2(CUdeviceptr p)
{
    IN_CONTEXT();
    FAKE_NEEDS(p && fake.buffers > 0);
    *place_of((void *)(size_t)p) = NULL;
    free((void *)(size_t)p);
    fake.buffers--;
    return 0;
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t n)
{
    FAILS();
    IN_CONTEXT();
    memcpy(to, (const void *)(size_t)from, n);
    return 0;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, CUstream s)
{
    (void)s;
    FAILS();
    IN_CONTEXT();
    memcpy((void *)(size_t)to, from, n);
    return 0;
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream s)
{
    (void)s;
    FAILS();
    IN_CONTEXT();
    memcpy(to, (const void *)(size_t)from, n);
    return 0;
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s)
{
    (void)s;
    FAILS();
    IN_CONTEXT();
    memcpy((void *)(size_t)to, (const void *)(size_t)from, n);
    return 0;
}

CUresult cuMemsetD2D32Async(CUdeviceptr p, size_t pitch, unsigned v, size_t width, size_t height, CUstream s)
{
    (void)s;
    FAILS();
    IN_CONTEXT();
    FAKE_NEEDS(p % 4 == 0 && pitch % 4 == 0);
    for (size_t i = 0; i < height; i++)
        for (size_t j = 0; j < width; j++)
            memcpy((char *)(size_t)p + i * pitch + 4 * j, &v, 4);
    return 0;
}

#define SET(name, type) \
    CUresult name(CUdeviceptr p, type v, size_t n, CUstream s) \
    { \
        (void)s; \
        FAILS(); \
        IN_CONTEXT(); \
        FAKE_NEEDS(p % sizeof v == 0); \
        for (size_t i = 0; i < n; i++) \
            memcpy((char *)(size_t)p + i * sizeof v, &v, sizeof v); \
        return 0; \
    }
SET(cuMemsetD8Async, unsigned char)
SET(cuMemsetD16Async, unsigned short)
SET(cuMemsetD32Async, unsigned)

/* ---- modules and launches ----------------------------------------------------------------- */

CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
    FAILS();
    IN_CONTEXT();
    FAKE_NEEDS(!memcmp(image, "a cubin", 8));
    *out = (CUmodule)(size_t)image;
    fake.modules++;
    fake.loaded++;
    return 0;
}

CUresult cuModuleUnload(CUmodule m)
{
    IN_CONTEXT();
    FAKE_NEEDS(m && fake.modules > 0);
    fake.modules--;
    return 0;
}

/* After "a cubin" fake_nvrtc.c writes the name of the kernel with large local memory. */
static int is_large(CUmodule m, const char *kernel)
{
    const char *name = (const char *)m + sizeof "a cubin";

    return fake.large_local && !strncmp(name, "vn_large_local_", 15) && !strcmp(name + 15, kernel);
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule m, const char *name)
{
    FAILS();
    IN_CONTEXT();
    FAKE_NEEDS(m && *name);
    *out = (CUfunction)(is_large(m, name) ? &large_stands_for : &function_stands_for);
    return 0;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *out, size_t *bytes, CUmodule m, const char *name)
{
    FAILS();
    IN_CONTEXT();
    FAKE_NEEDS(m && !strncmp(name, "vn_large_local_", 15) && is_large(m, name + 15));
    *out = (CUdeviceptr)(size_t)&fake.large_local;
    *bytes = sizeof fake.large_local;
    return 0;
}

CUresult cuFuncGetAttribute(int *out, int attribute, CUfunction f)
{
    FAILS();
    IN_CONTEXT();
    FAKE_NEEDS(f && attribute >= 0);
    *out = 0;
    return 0;
}

CUresult cuFuncSetAttribute(CUfunction f, int attribute, int v)
{
    FAILS();
    IN_CONTEXT();
    FAKE_NEEDS(f == (CUfunction)&large_stands_for && attribute == CU_FUNC_DYNAMIC_SHARED && v <= MOST_SHARED);
    fake.shared_asked = v;
    return 0;
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream s, void **arguments, void **extra)
{
    (void)s;
    FAILS();
    IN_CONTEXT();
    FAKE_NEEDS(f && gx && gy && gz && gy <= 65535 && gz <= 65535);
    FAKE_NEEDS(bx >= 1 && bx <= 1024 && by == 1 && bz == 1);
    FAKE_NEEDS(arguments && arguments[0] && !extra);
    FAKE_NEEDS((int)shared == (f == (CUfunction)&large_stands_for ? fake.large_local : 0));
    if (shared)
        fake.shared_given = (int)shared;
    fake.launches++;
    return 0;
}
