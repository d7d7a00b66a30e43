/* SPDX-License-Identifier: Apache-2.0
 *
 * nvrtc.c - NVRTC that compiles any text to a few bytes: the name of its LARGE_LOCAL, if it has one.
 */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/driver.h"
#include "fake.h"

#pragma GCC visibility push(default)

static int stands_for;
static char cubin[80] = "a cubin";
static const char log_text[] = "vernier.cu(7): error: a word is missing";

#define FAILS() do { if (fake_fails(__func__)) return 11; } while (0)

nvrtcResult nvrtcVersion(int *major, int *minor)
{
    FAILS();
    *major = 13;
    *minor = 0;
    return 0;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *text, const char *name, int headers,
                               const char *const *texts, const char *const *names)
{
    FAILS();
    FAKE_NEEDS(strstr(text, "#define TYPE") && *name && !headers && !texts && !names);
    const char *large = strstr(text, "\nLARGE_LOCAL(");

    memset(cubin + 8, 0, sizeof cubin - 8);
    if (large && fake.large_local) {
        large = strchr(large, '(') + 1;
        snprintf(cubin + 8, sizeof cubin - 8, "vn_large_local_%.*s", (int)strcspn(large, ","), large);
    }
    *out = (nvrtcProgram)&stands_for;
    fake.programs++;
    return 0;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int count, const char *const *options)
{
    int exact = 0;

    FAILS();
    FAKE_NEEDS(p);
    for (int i = 0; i < count; i++)
        exact |= !strcmp(options[i], "--gpu-architecture=sm_90a");
    FAKE_NEEDS(exact);
    fake.compiled++;
    return fake.compile_error ? 6 : 0;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *p)
{
    FAKE_NEEDS(*p && fake.programs > 0);
    *p = NULL;
    fake.programs--;
    return 0;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t *out)
{
    FAILS();
    FAKE_NEEDS(p);
    *out = sizeof cubin;
    return 0;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char *out)
{
    FAILS();
    FAKE_NEEDS(p);
    memcpy(out, cubin, sizeof cubin);
    return 0;
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram p, size_t *out)
{
    return nvrtcGetCUBINSize(p, out);
}

nvrtcResult nvrtcGetPTX(nvrtcProgram p, char *out)
{
    return nvrtcGetCUBIN(p, out);
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t *out)
{
    FAILS();
    FAKE_NEEDS(p);
    *out = sizeof log_text;
    return 0;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char *out)
{
    FAILS();
    FAKE_NEEDS(p);
    memcpy(out, log_text, sizeof log_text);
    return 0;
}

const char *nvrtcGetErrorString(nvrtcResult e)
{
    return e == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_INTERNAL_ERROR";
}
