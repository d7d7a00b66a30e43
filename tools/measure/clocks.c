/* SPDX-License-Identifier: Apache-2.0
 *
 * clocks.c - NVML's few functions, after its manual.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "clocks.h"

typedef void *nvmlDevice;

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, SENSOR_GPU = 0 };

static struct {
    void      *library;
    nvmlDevice device;
    int      (*init)       (void);
    int      (*shutdown)   (void);
    int      (*by_pci)     (const char *pci, nvmlDevice *out);
    int      (*by_uuid)    (const char *uuid, nvmlDevice *out);
    int      (*clock)      (nvmlDevice d, int which, unsigned *mhz);
    int      (*power)      (nvmlDevice d, unsigned *milliwatts);
    int      (*temperature)(nvmlDevice d, int sensor, unsigned *celsius);
} nvml;

static int look_up(void)
{
    const struct { const char *name; void *to; } symbols[] = {
        { "nvmlInit_v2",                       &nvml.init        },
        { "nvmlShutdown",                      &nvml.shutdown    },
        { "nvmlDeviceGetHandleByPciBusId_v2",  &nvml.by_pci      },
        { "nvmlDeviceGetHandleByUUID",         &nvml.by_uuid     },
        { "nvmlDeviceGetClockInfo",            &nvml.clock       },
        { "nvmlDeviceGetPowerUsage",           &nvml.power       },
        { "nvmlDeviceGetTemperature",          &nvml.temperature },
    };

    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *const found = dlsym(nvml.library, symbols[i].name);

        if (!found)
            return -1;
        memcpy(symbols[i].to, &found, sizeof found);
    }
    return 0;
}

/* "GPU-01234567-89ab-cdef-0123-456789abcdef" */
static int find_by_uuid(const char *hex)
{
    char text[48];

    if (strlen(hex) != 32)
        return -1;
    snprintf(text, sizeof text, "GPU-%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
    return nvml.by_uuid(text, &nvml.device);
}

int clocks_open(const vn_device_info *info)
{
    if (!*info->pci && !*info->uuid)
        return -1;
    if (!(nvml.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)))
        return -1;
    if (!look_up() && !nvml.init()) {
        if ((*info->pci && !nvml.by_pci(info->pci, &nvml.device)) || !find_by_uuid(info->uuid))
            return 0;
        nvml.shutdown();
    }
    dlclose(nvml.library);
    nvml.library = NULL;
    return -1;
}

json_t *clocks_read(void)
{
    unsigned sm = 0, memory = 0, milliwatts = 0, celsius = 0;

    if (!nvml.library)
        return NULL;
    nvml.clock(nvml.device, CLOCK_SM, &sm);
    nvml.clock(nvml.device, CLOCK_MEMORY, &memory);
    nvml.power(nvml.device, &milliwatts);
    nvml.temperature(nvml.device, SENSOR_GPU, &celsius);
    return json_pack("{s:i, s:i, s:f, s:i}", "sm_mhz", (int)sm, "memory_mhz", (int)memory,
                     "watts", milliwatts * 1e-3, "celsius", (int)celsius);
}

void clocks_close(void)
{
    if (!nvml.library)
        return;
    nvml.shutdown();
    dlclose(nvml.library);
    nvml.library = NULL;
}
