/* SPDX-License-Identifier: Apache-2.0
 *
 * fits.c - what variants of several operations ask of a device before they say that they fit.
 */
#include <stdlib.h>
#include <string.h>

#include "core.h"

int vn__sm(const struct vn_facts *f)
{
    return !strcmp(f->family, "nvidia") && !strncmp(f->arch, "sm_", 3) ? atoi(f->arch + 3) : 0;
}

/* The engines of architectures differ, and some compilers die of an instruction that is not there. */
const char *vn__lacks_engine(const struct vn_facts *f, const char *engine, vn_type type)
{
    enum { HALVES = 1u << VN_F16 | 1u << VN_BF16 };
    enum { CDNA1 = HALVES | 1u << VN_F32, CDNA = CDNA1 | 1u << VN_F64 };
    static const struct { const char *engine, *family, *arch; unsigned types; } engines[] = {
        { "MFMA", "amd", "gfx908", CDNA1 }, { "MFMA", "amd", "gfx90a", CDNA },
        { "MFMA", "amd", "gfx94", CDNA },   { "WMMA", "amd", "gfx11", HALVES },
        { "WMMA", "amd", "gfx120", HALVES }, { "DPAS", "intel", "", HALVES } };

    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++)
        if (!strcmp(engine, engines[i].engine) && !strcmp(f->family, engines[i].family) &&
            !strncmp(f->arch, engines[i].arch, strlen(engines[i].arch)))
            return engines[i].types & 1u << type ? NULL : "the matrix engine does not multiply this type";
    return !strcmp(engine, "MFMA") ? "it needs an AMD GPU of CDNA, for MFMA"
         : !strcmp(engine, "WMMA") ? "it needs an AMD GPU of RDNA 3 or 4, for WMMA"
         : "it needs a GPU of Intel's, for DPAS";
}

const char *vn__fits_any(const void *problem, const struct vn_facts *f)
{
    (void)problem;
    (void)f;
    return NULL;
}

const char *vn__fits_vectors(const void *problem, const struct vn_facts *f)
{
    (void)problem;
    return strcmp(f->family, "cpu") ? "the device is no CPU"
         : f->vector < 2 ? "the device does not ask for explicit vectors" : NULL;
}

const char *vn__fits_warps(const void *problem, const struct vn_facts *f)
{
    (void)problem;
    return vn__sm(f) < 80 ? "the device has no PTX of sm_80" : NULL;
}

double vn__cache_bytes(const vn_queue *q)
{
    enum { TIMES = 4 };
    const struct vn_facts *f = &q->device->facts;

    return TIMES * (double)f->local_bytes * (f->units > 1 ? f->units : 2);
}

int vn__is_past_caches(const vn_queue *q, const vn_tensor *out)
{
    return (double)vn__elements(out) * (double)vn_type_bytes(out->type) > vn__cache_bytes(q);
}
