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
