/* SPDX-License-Identifier: Apache-2.0
 *
 * cache_absent.c - the calls of cache.c where the system has no cache: each program is built in each process.
 * Drivers for Windows keep what they build themselves.
 */
#include "os.h"
#include "core.h"

#include <errno.h>

vn_status vn__cache_build(void **program, int *proved, vn_device *d, const char *text)
{
    const double began = vn__seconds();
    const vn_status s = d->backend->program_build(program, d, text);

    vn__log(VN_LOG_BUILD, "a program: %s in %.1f ms", s == VN_OK ? "built" : "failed",
            1e3 * (vn__seconds() - began));
    vn__trace_span("build", "a program", began, vn__seconds());
    if (proved)
        *proved = 0;
    return s;
}

void vn__cache_settle(vn_device *d)
{
    (void)d;
}

void vn__cache_forget(vn_device *d, void *program)
{
    (void)d;
    (void)program;
}

void vn__cache_close(vn_device *d, void *program)
{
    d->backend->program_close(program);
}

const char *vn__cache_directory(void)
{
    return "";
}

vn_status vn__cache_list(struct vn_cached **out, size_t *count)
{
    *out = NULL;
    *count = 0;
    return vn__fail(VN_FAILED, "built kernels are not kept on disk on this system");
}

int vn__cache_remove(const char *name)
{
    (void)name;
    return ENOENT;
}
