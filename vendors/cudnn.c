/* SPDX-License-Identifier: Apache-2.0
 *
 * cudnn.c - NVIDIA's cuDNN: the library, and the handle of a queue.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/cuda/cuda.h"
#include "cudnn.h"
#include "vendor.h"

/* ---- the library ----------------------------------------------------------------- */

enum { OLDEST = 8, NEWEST = 9, WHY = 400 };

#define INSTALL "install cuDNN 8 or 9 (pip: nvidia-cudnn-cu13), or name its directory, " \
                "followed by a colon, in VERNIER_CUDA_LIBRARY_PATH"
#define SYMBOL(result, name, exported, parameters) { #exported, offsetof(struct vn_cudnn_functions, name) },
static const struct vn_symbol symbols[] = { VN_CUDNN_MAP(SYMBOL) { NULL, 0 } };

struct vn_cudnn_functions vn__cudnn;
static char why_not_there[WHY], version[32];

/* 8907 is 8.9.7, 90100 is 9.1.0. */
static void check_version(void)
{
    const int v = (int)vn__cudnn.GetVersion(), thousand = v >= 90000 ? 10000 : 1000, major = v / thousand;

    if (major < OLDEST || major > NEWEST)
        snprintf(why_not_there, WHY, "libcudnn has version %d: " INSTALL, major);
    snprintf(version, sizeof version, "cuDNN %d.%d.%d", major, v % thousand / 100, v % 100);
}

static void load(void)
{
    static const char *const names[] = { "libcudnn.so.9", "libcudnn.so.8", "libcudnn.so", NULL };
    void *library = vn__library_open_cuda(names);
    const char *missing;

    if (!library)
        snprintf(why_not_there, WHY, "libcudnn was not found: " INSTALL);
    else if ((missing = vn__library_look_up(&vn__cudnn, symbols, library)))
        snprintf(why_not_there, WHY, "libcudnn lacks %s: " INSTALL, missing);
    else
        check_version();
}

const char *vn__cudnn_missing(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    return *why_not_there ? why_not_there : NULL;
}

const char *vn__cudnn_version(void)
{
    return vn__cudnn_missing() ? "cuDNN" : version;
}

/* Since version 9 a status is a category, in thousands, plus a detail. */
static vn_status meaning(cudnnStatus e)
{
    enum { ALLOC_FAILED_8 = 2, NOT_SUPPORTED_8 = 9 };
    enum { NOT_SUPPORTED_9 = 3, HOST_MEMORY_9 = 4003, DEVICE_MEMORY_9 = 4004 };

    if (e == ALLOC_FAILED_8 || e == HOST_MEMORY_9 || e == DEVICE_MEMORY_9)
        return VN_NO_MEMORY;
    return e == NOT_SUPPORTED_8 || e / 1000 == NOT_SUPPORTED_9 ? VN_UNSUPPORTED : VN_FAILED;
}

vn_status vn__cudnn_status(cudnnStatus e, const char *call)
{
    return e ? vn__fail(meaning(e), "%s: %s (%d)", call, vn__cudnn.GetErrorString(e), e) : VN_OK;
}

/* ---- the handle of a queue --------------------------------------------------------- */

static const char owner[] = "cudnn";

static void release(struct vn_cudnn *own)
{
    for (int i = 0; i < 3; i++)
        if (own->tensor[i])
            vn__cudnn.TensorDestroy(own->tensor[i]);
    if (own->handle)
        vn__cudnn.Destroy(own->handle);
    free(own);
}

static void attached_close(vn_queue *q, struct vn_attachment *it)
{
    struct vn_cudnn *own = (struct vn_cudnn *)it;
    const vn_status s = vn__cuda_enter(q->device);

    if (s)
        own->handle = NULL;             /* it cannot be destroyed outside its context */
    vn__prepared_close(&own->plans);
    release(own);
    if (s == VN_OK)
        vn__cuda_leave(VN_OK);
}

static vn_status set_up(struct vn_cudnn *own, vn_queue *q)
{
    vn_status s;

    if ((s = vn__cudnn_status(vn__cudnn.Create(&own->handle), "cudnnCreate"))) {
        own->handle = NULL;
        return s;
    }
    s = vn__cudnn_status(vn__cudnn.SetStream(own->handle, vn__cuda_stream(q)), "cudnnSetStream");
    for (int i = 0; i < 3 && s == VN_OK; i++)
        if ((s = vn__cudnn_status(vn__cudnn.TensorCreate(&own->tensor[i]), "cudnnCreateTensorDescriptor")))
            own->tensor[i] = NULL;
    return s;
}

vn_status vn__cudnn_attach(struct vn_cudnn **out, vn_queue *q)
{
    struct vn_cudnn *own = (struct vn_cudnn *)vn__attached(q, owner);
    vn_status s;

    if ((*out = own))
        return VN_OK;
    if (!(own = calloc(1, sizeof *own)))
        return vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes for a handle of cuDNN", sizeof *own);
    own->head = (struct vn_attachment){ .owner = owner, .close = attached_close };
    own->plans = (struct vn_prepared_list){ .key_bytes = vn__cudnn_key_bytes, .close = vn__cudnn_plan_close };
    if ((s = set_up(own, q))) {
        release(own);
        return s;
    }
    vn__attach(q, &own->head);
    *out = own;
    return VN_OK;
}

/* ---- arguments ------------------------------------------------------------------------ */

int vn__cudnn_type(vn_type t)
{
    static const int types[VN_TYPE_COUNT] = {
        [VN_F32] = CUDNN_F32, [VN_F16] = CUDNN_F16, [VN_BF16] = CUDNN_BF16, [VN_F64] = CUDNN_F64 };

    return types[t];
}

union vn_cudnn_scalar vn__cudnn_scalar(vn_type t, double v)
{
    return t == VN_F64 ? (union vn_cudnn_scalar){ .d = v } : (union vn_cudnn_scalar){ .f = (float)v };
}

int vn__cudnn_starts_aligned(const vn_tensor *t)
{
    return t->start * (int64_t)vn_type_bytes(t->type) % VN_CUDNN_ALIGNED == 0;
}

/* The check of the address itself: the caller's own memory may have any alignment. */
vn_status vn__cudnn_pointer(void **out, const vn_tensor *t, const char *name)
{
    const CUdeviceptr at = vn__cuda_address(t->buffer) + (CUdeviceptr)t->start * vn_type_bytes(t->type);

    if (at % VN_CUDNN_ALIGNED)
        return vn__fail(VN_UNSUPPORTED, "%s begins at address %#llx; cudnn needs a multiple of %d", name, at,
                        VN_CUDNN_ALIGNED);
    *out = (void *)(uintptr_t)at;
    return VN_OK;
}
