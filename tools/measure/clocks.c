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

/* What nvmlDeviceGetCurrentClocksThrottleReasons() says in bits.  A power cap is how the device is set up;
 * the others are not.                                                                                   */
static const struct { unsigned long long bit; const char *name; int disturbs; } reasons[] = {
    { 0x04, "power cap",                    0 },
    { 0x08, "hardware slowdown",            1 },
    { 0x10, "sync boost",                   1 },
    { 0x20, "heat (by software)",           1 },
    { 0x40, "heat (by hardware)",           1 },
    { 0x80, "power brake",                  1 },
};

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
    /* NULL where the driver has none */
    int      (*throttle)   (nvmlDevice d, unsigned long long *bits);
    int      (*cap)        (nvmlDevice d, unsigned *milliwatts);
    int      (*most)       (nvmlDevice d, int which, unsigned *mhz);
    int      (*application)(nvmlDevice d, int which, unsigned *mhz);
    unsigned long long seen;          /* bits since clocks_forget() */
} nvml;

static int look_up(void)
{
    const struct { const char *name; void *to; int optional; } symbols[] = {
        { "nvmlInit_v2",                                &nvml.init,        0 },
        { "nvmlShutdown",                               &nvml.shutdown,    0 },
        { "nvmlDeviceGetHandleByPciBusId_v2",           &nvml.by_pci,      0 },
        { "nvmlDeviceGetHandleByUUID",                  &nvml.by_uuid,     0 },
        { "nvmlDeviceGetClockInfo",                     &nvml.clock,       0 },
        { "nvmlDeviceGetPowerUsage",                    &nvml.power,       0 },
        { "nvmlDeviceGetTemperature",                   &nvml.temperature, 0 },
        { "nvmlDeviceGetCurrentClocksThrottleReasons",  &nvml.throttle,    1 },
        { "nvmlDeviceGetEnforcedPowerLimit",            &nvml.cap,         1 },
        { "nvmlDeviceGetMaxClockInfo",                  &nvml.most,        1 },
        { "nvmlDeviceGetApplicationsClock",             &nvml.application, 1 },
    };

    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *const found = dlsym(nvml.library, symbols[i].name);

        if (!found && !symbols[i].optional)
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

double clocks_sm(void)
{
    unsigned mhz = 0;

    return nvml.library && !nvml.clock(nvml.device, CLOCK_SM, &mhz) ? mhz : 0;
}

void clocks_forget(void)
{
    nvml.seen = 0;
}

void clocks_watch(void)
{
    unsigned long long bits = 0;

    if (nvml.library && nvml.throttle && !nvml.throttle(nvml.device, &bits))
        nvml.seen |= bits;
}

const char *clocks_throttled(int *disturbs)
{
    static char text[160];
    size_t n = 0;

    *text = '\0';
    *disturbs = 0;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (nvml.seen & reasons[i].bit && n < sizeof text) {
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? ", " : "", reasons[i].name);
            *disturbs |= reasons[i].disturbs;
        }
    return text;
}

json_t *clocks_limits(void)
{
    unsigned milliwatts = 0, most = 0, set = 0;
    char policy[80] = "";

    if (!nvml.library)
        return json_object();
    if (nvml.cap)
        nvml.cap(nvml.device, &milliwatts);
    if (nvml.most)
        nvml.most(nvml.device, CLOCK_SM, &most);
    if (nvml.application && !nvml.application(nvml.device, CLOCK_SM, &set) && set)
        snprintf(policy, sizeof policy, "SM clock set to %u of at most %u MHz", set, most);
    return json_pack("{s:s, s:f}", "device_clock_policy", policy, "power_cap_watts", milliwatts * 1e-3);
}

void clocks_close(void)
{
    if (!nvml.library)
        return;
    nvml.shutdown();
    dlclose(nvml.library);
    nvml.library = NULL;
}
