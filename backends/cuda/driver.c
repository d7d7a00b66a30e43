/* SPDX-License-Identifier: Apache-2.0
 *
 * driver.c - finds libcuda and NVRTC at run time.
 */
#include <pthread.h>
#include <stdio.h>

#include "driver.h"

enum { OLDEST_DRIVER = 11020, WHY = 400 };      /* CUDA 11.2: the first whose NVRTC makes cubins */

static const char *const driver_names[] = { "libcuda.so.1", "libcuda.so", NULL };
static const char *const nvrtc_names[] = {
    "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so", NULL
};

#define DRIVER_SYMBOL(result, name, exported, parameters) \
    { #exported, offsetof(struct vn_cuda_functions, name) },
#define NVRTC_SYMBOL(result, name, exported, parameters) \
    { #exported, offsetof(struct vn_nvrtc_functions, name) },
static const struct vn_symbol driver_symbols[] = { VN_CUDA_MAP(DRIVER_SYMBOL) { NULL, 0 } };
static const struct vn_symbol nvrtc_symbols[]  = { VN_NVRTC_MAP(NVRTC_SYMBOL) { NULL, 0 } };

static struct vn_cuda_functions  driver;
static struct vn_nvrtc_functions nvrtc;
static int   driver_is_there, nvrtc_is_there;
static char  driver_why[WHY], nvrtc_why[WHY];

static void load_driver(void)
{
    void *library = vn__library_open_cuda(driver_names);
    const char *missing;
    int version = 0, error;

    if (!library)
        snprintf(driver_why, WHY, "libcuda.so.1 was not found: install NVIDIA's driver");
    else if ((missing = vn__library_look_up(&driver, driver_symbols, library)))
        snprintf(driver_why, WHY, "libcuda.so.1 lacks %s: install a newer NVIDIA driver (CUDA 11.2 or above)",
                 missing);
    else if ((error = driver.Init(0)))
        snprintf(driver_why, WHY, "cuInit failed with %d: "
                 "is there an NVIDIA GPU, and is its kernel module loaded?", error);
    else if ((error = driver.DriverGetVersion(&version)) || version < OLDEST_DRIVER)
        snprintf(driver_why, WHY, "the NVIDIA driver supports CUDA %d.%d: install one for CUDA 11.2 or above",
                 version / 1000, version % 1000 / 10);
    else
        driver_is_there = 1;
}

static void load_nvrtc(void)
{
    void *library = vn__library_open_cuda(nvrtc_names);
    const char *missing;

    if (!library)
        snprintf(nvrtc_why, WHY, "libnvrtc was not found: "
                 "install the CUDA toolkit's NVRTC (pip: nvidia-cuda-nvrtc), or name its directory, "
                 "followed by a colon, in VERNIER_CUDA_LIBRARY_PATH");
    else if ((missing = vn__library_look_up(&nvrtc, nvrtc_symbols, library)))
        snprintf(nvrtc_why, WHY, "libnvrtc lacks %s: install NVRTC 11.2 or above", missing);
    else
        nvrtc_is_there = 1;
}

const struct vn_cuda_functions *vn__cuda_driver(const char **why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load_driver);
    *why = driver_why;
    return driver_is_there ? &driver : NULL;
}

const struct vn_nvrtc_functions *vn__nvrtc(const char **why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load_nvrtc);
    *why = nvrtc_why;
    return nvrtc_is_there ? &nvrtc : NULL;
}
