/* SPDX-License-Identifier: Apache-2.0
 *
 * driver.h - the functions of libcuda and NVRTC that the CUDA backend calls.
 *
 * They are looked up at run time, so that the library builds without a CUDA toolkit and runs without
 * CUDA. The declarations are our own, after the manuals of the CUDA Driver API and of NVRTC.
 */
#ifndef VN_CUDA_DRIVER_H
#define VN_CUDA_DRIVER_H

#include <stddef.h>
#include "backend.h"
#include "vendors/library.h"

typedef int                 CUresult;               /* 0: success */
typedef int                 CUdevice;
typedef unsigned long long  CUdeviceptr;
typedef struct CUctx_st    *CUcontext;
typedef struct CUmod_st    *CUmodule;
typedef struct CUfunc_st   *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st  *CUevent;
typedef struct { unsigned char bytes[16]; } CUuuid;

typedef int                     nvrtcResult;        /* 0: success */
typedef struct _nvrtcProgram   *nvrtcProgram;

enum {                                              /* CUdevice_attribute */
    CU_MAX_THREADS_PER_BLOCK = 1, CU_MAX_SHARED_PER_BLOCK = 8, CU_MULTIPROCESSOR_COUNT = 16,
    CU_CLOCK_RATE = 13, CU_COMPUTE_MAJOR = 75, CU_COMPUTE_MINOR = 76
};
enum {                                              /* CUfunction_attribute */
    CU_FUNC_SHARED_BYTES = 1, CU_FUNC_LOCAL_BYTES = 3, CU_FUNC_NUM_REGS = 4, CU_FUNC_DYNAMIC_SHARED = 8
};
enum { CU_OUT_OF_MEMORY = 2, CU_NO_DEVICE = 100, CU_STREAM_NON_BLOCKING = 1 };

/* F(result, name, exported name, parameters) */
#define VN_CUDA_MAP(F) \
    F(CUresult, Init,               cuInit,                       (unsigned flags))                          \
    F(CUresult, DriverGetVersion,   cuDriverGetVersion,           (int *out))                                \
    F(CUresult, GetErrorName,       cuGetErrorName,               (CUresult e, const char **out))            \
    F(CUresult, GetErrorString,     cuGetErrorString,             (CUresult e, const char **out))            \
    F(CUresult, DeviceGetCount,     cuDeviceGetCount,             (int *out))                                \
    F(CUresult, DeviceGet,          cuDeviceGet,                  (CUdevice *out, int index))                \
    F(CUresult, DeviceGetName,      cuDeviceGetName,              (char *out, int room, CUdevice d))         \
    F(CUresult, DeviceGetAttribute, cuDeviceGetAttribute,         (int *out, int attribute, CUdevice d))     \
    F(CUresult, DeviceTotalMem,     cuDeviceTotalMem_v2,          (size_t *out, CUdevice d))                 \
    F(CUresult, DeviceGetUuid,      cuDeviceGetUuid_v2,           (CUuuid *out, CUdevice d))                 \
    F(CUresult, DeviceGetPCIBusId,  cuDeviceGetPCIBusId,          (char *out, int room, CUdevice d))         \
    F(CUresult, PrimaryCtxRetain,   cuDevicePrimaryCtxRetain,     (CUcontext *out, CUdevice d))              \
    F(CUresult, PrimaryCtxRelease,  cuDevicePrimaryCtxRelease_v2, (CUdevice d))                              \
    F(CUresult, CtxPushCurrent,     cuCtxPushCurrent_v2,          (CUcontext c))                             \
    F(CUresult, CtxPopCurrent,      cuCtxPopCurrent_v2,           (CUcontext *out))                          \
    F(CUresult, CtxGetCurrent,      cuCtxGetCurrent,              (CUcontext *out))                          \
    F(CUresult, CtxGetDevice,       cuCtxGetDevice,               (CUdevice *out))                           \
    F(CUresult, StreamCreate,       cuStreamCreate,               (CUstream *out, unsigned flags))           \
    F(CUresult, StreamDestroy,      cuStreamDestroy_v2,           (CUstream s))                              \
    F(CUresult, StreamSynchronize,  cuStreamSynchronize,          (CUstream s))                              \
    F(CUresult, StreamWaitEvent,    cuStreamWaitEvent,            (CUstream s, CUevent e, unsigned flags))   \
    F(CUresult, EventCreate,        cuEventCreate,                (CUevent *out, unsigned flags))            \
    F(CUresult, EventDestroy,       cuEventDestroy_v2,            (CUevent e))                               \
    F(CUresult, EventRecord,        cuEventRecord,                (CUevent e, CUstream s))                   \
    F(CUresult, EventSynchronize,   cuEventSynchronize,           (CUevent e))                               \
    F(CUresult, EventElapsedTime,   cuEventElapsedTime,           (float *out, CUevent from, CUevent to))    \
    F(CUresult, MemAlloc,           cuMemAlloc_v2,                (CUdeviceptr *out, size_t bytes))          \
    F(CUresult, MemFree,            cuMemFree_v2,                 (CUdeviceptr p))                           \
    F(CUresult, MemcpyDtoH,         cuMemcpyDtoH_v2,              (void *to, CUdeviceptr from, size_t n))    \
    F(CUresult, MemcpyHtoDAsync,    cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t n,       \
        CUstream s))                                                                                         \
    F(CUresult, MemcpyDtoHAsync,    cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t n,             \
        CUstream s))                                                                                         \
    F(CUresult, MemcpyDtoDAsync,    cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t n,       \
        CUstream s))                                                                                         \
    F(CUresult, MemsetD8Async,      cuMemsetD8Async,  (CUdeviceptr p, unsigned char v, size_t n,             \
        CUstream s))                                                                                         \
    F(CUresult, MemsetD16Async,     cuMemsetD16Async, (CUdeviceptr p, unsigned short v, size_t n,            \
        CUstream s))                                                                                         \
    F(CUresult, MemsetD32Async,     cuMemsetD32Async, (CUdeviceptr p, unsigned v, size_t n, CUstream s))     \
    F(CUresult, MemsetD2D32Async,   cuMemsetD2D32Async, (CUdeviceptr p, size_t pitch, unsigned v,            \
        size_t width, size_t height, CUstream s))                                                            \
    F(CUresult, ModuleLoadData,     cuModuleLoadData,             (CUmodule *out, const void *image))        \
    F(CUresult, ModuleUnload,       cuModuleUnload,               (CUmodule m))                              \
    F(CUresult, ModuleGetFunction,  cuModuleGetFunction, (CUfunction *out, CUmodule m, const char *name))    \
    F(CUresult, ModuleGetGlobal,    cuModuleGetGlobal_v2, (CUdeviceptr *out, size_t *bytes, CUmodule m,      \
        const char *name))                                                                                   \
    F(CUresult, FuncGetAttribute,   cuFuncGetAttribute,           (int *out, int attribute, CUfunction f))   \
    F(CUresult, FuncSetAttribute,   cuFuncSetAttribute,           (CUfunction f, int attribute, int v))      \
    F(CUresult, LaunchKernel,       cuLaunchKernel, (CUfunction f, unsigned gx, unsigned gy, unsigned gz,    \
        unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream s, void **arguments, void **extra))

#define VN_NVRTC_MAP(F) \
    F(nvrtcResult,  Version,        nvrtcVersion,           (int *major, int *minor))         \
    F(nvrtcResult,  CreateProgram,  nvrtcCreateProgram, (nvrtcProgram *out, const char *text, \
        const char *name, int headers, const char *const *texts, const char *const *names))   \
    F(nvrtcResult,  CompileProgram, nvrtcCompileProgram, (nvrtcProgram p, int count,          \
        const char *const *options))                                                          \
    F(nvrtcResult,  DestroyProgram, nvrtcDestroyProgram,    (nvrtcProgram *p))                \
    F(nvrtcResult,  GetCUBINSize,   nvrtcGetCUBINSize,      (nvrtcProgram p, size_t *out))    \
    F(nvrtcResult,  GetCUBIN,       nvrtcGetCUBIN,          (nvrtcProgram p, char *out))      \
    F(nvrtcResult,  GetPTXSize,     nvrtcGetPTXSize,        (nvrtcProgram p, size_t *out))    \
    F(nvrtcResult,  GetPTX,         nvrtcGetPTX,            (nvrtcProgram p, char *out))      \
    F(nvrtcResult,  GetLogSize,     nvrtcGetProgramLogSize, (nvrtcProgram p, size_t *out))    \
    F(nvrtcResult,  GetLog,         nvrtcGetProgramLog,     (nvrtcProgram p, char *out))      \
    F(const char *, GetErrorString, nvrtcGetErrorString,    (nvrtcResult e))

struct vn_cuda_functions  { VN_CUDA_MAP(VN_POINTER) };
struct vn_nvrtc_functions { VN_NVRTC_MAP(VN_POINTER) };

/* The loaded libraries; NULL where one is missing, too old or broken, and *why says what to install.
 * They are loaded once and never unloaded, which drivers do not survive.               */
const struct vn_cuda_functions  *vn__cuda_driver(const char **why);
const struct vn_nvrtc_functions *vn__nvrtc(const char **why);

/* For reports: the PTX of a text, malloc'd, and the resources of a kernel, as the driver reports them. */
struct vn_cuda_kernel_facts { int registers, stack_bytes, local_bytes; };
vn_status vn__cuda_ptx(char **out, vn_device *d, const char *text);
vn_status vn__cuda_kernel_facts(struct vn_cuda_kernel_facts *out, void *kernel);
#endif
