/* SPDX-License-Identifier: Apache-2.0
 *
 * interposed_cuda.c - what interposed.c does for OpenCL, for launches through CUDA's driver.
 *
 * The linker puts the two functions here before those of the library: one that tells the sizes of
 * the arguments, and the one that looks the driver's functions up, so that cuLaunchKernel is ours.
 */
#include <string.h>
#include "backends/cuda/driver.h"
#include "core.h"
#include "interposed.h"

enum { LAUNCHES = 4 };

struct launch {
    CUfunction  function;
    unsigned    groups[3], items[3], local_bytes;
    CUstream    stream;
    int         nargs;
    struct { int64_t bytes[8]; } value[VN_ARGS];
    void       *argument[VN_ARGS];
};

static struct {
    int           started, muted, full, launches;
    CUcontext     context;                  /* of the launches; current in this thread while it is set */
    struct launch launch[LAUNCHES];
} recording;

static struct vn_cuda_functions driver, interposed;

/* ---- noting ---- */

vn_status __real_vn__launch(vn_queue *q, const struct vn_choice *it, int kernel, struct vn_launch *l);
vn_status __wrap_vn__launch(vn_queue *q, const struct vn_choice *it, int kernel, struct vn_launch *l);
const struct vn_cuda_functions *__real_vn__cuda_driver(const char **why);
const struct vn_cuda_functions *__wrap_vn__cuda_driver(const char **why);

static __thread const struct vn_launch *asked;

vn_status __wrap_vn__launch(vn_queue *q, const struct vn_choice *it, int kernel, struct vn_launch *l)
{
    asked = l;
    return __real_vn__launch(q, it, kernel, l);
}

/* The arguments, whose sizes the driver is not told. */
static void note_arguments(struct launch *out, void *const *arguments)
{
    out->nargs = asked->nargs;
    for (int i = 0; i < out->nargs; i++) {
        const size_t size = asked->args[i].size;

        memcpy(&out->value[i], arguments[i], size ? size : sizeof(CUdeviceptr));
        out->argument[i] = &out->value[i];
    }
}

static CUresult launch_kernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                              unsigned bz, unsigned local_bytes, CUstream s, void **arguments, void **extra)
{
    if (recording.started
        && (recording.launches == LAUNCHES || !asked || driver.CtxGetCurrent(&recording.context)))
        recording.full = 1;
    else if (recording.started) {
        struct launch *const l = &recording.launch[recording.launches++];

        *l = (struct launch){ f, { gx, gy, gz }, { bx, by, bz }, local_bytes, s, .nargs = 0 };
        note_arguments(l, arguments);
    }
    return recording.muted ? 0
         : driver.LaunchKernel(f, gx, gy, gz, bx, by, bz, local_bytes, s, arguments, extra);
}

const struct vn_cuda_functions *__wrap_vn__cuda_driver(const char **why)
{
    const struct vn_cuda_functions *const real = __real_vn__cuda_driver(why);

    if (!real)
        return NULL;
    if (!interposed.LaunchKernel) {
        driver = interposed = *real;
        interposed.LaunchKernel = launch_kernel;
    }
    return &interposed;
}

/* ---- recording ---- */

static void open_recording(void)
{
    memset(&recording, 0, sizeof recording);
}

static void start(void)
{
    recording.started = 1;
}

/* The context is left current in this thread, as a CUDA program has it. */
static int stop(void)
{
    recording.started = 0;
    if (recording.full || !recording.launches || driver.CtxPushCurrent(recording.context))
        recording.context = NULL;
    return recording.context ? recording.launches : -1;
}

static void close_recording(void)
{
    if (recording.context)
        driver.CtxPopCurrent(&recording.context);
    recording.context = NULL;
}

static int count_arguments(void)
{
    int n = 0;

    for (int i = 0; i < recording.launches; i++)
        n += recording.launch[i].nargs;
    return n;
}

static int replay(void)
{
    for (int i = 0; i < recording.launches; i++) {
        struct launch *const l = &recording.launch[i];

        if (driver.LaunchKernel(l->function, l->groups[0], l->groups[1], l->groups[2], l->items[0],
                                l->items[1], l->items[2], l->local_bytes, l->stream, l->argument, NULL))
            return -1;
    }
    return 0;
}

static int finish(void)
{
    return driver.StreamSynchronize(recording.launch[0].stream) ? -1 : 0;
}

static void mute(int on)
{
    recording.muted = on;
}

const struct recorder cuda_recorder = {
    .backend   = "cuda",
    .open      = open_recording,
    .close     = close_recording,
    .start     = start,
    .stop      = stop,
    .arguments = count_arguments,
    .replay    = replay,
    .finish    = finish,
    .mute      = mute,
};
