/* SPDX-License-Identifier: Apache-2.0
 *
 * device.c - the list of backends; devices, buffers and transfers.
 */
#include "os.h"
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

const struct vn_backend *const vn__backends[] = {
    &vn__opencl,
#if VN_WITH_CUDA
    &vn__cuda,
#endif
    NULL
};

/* ---- the list -------------------------------------------------------------- */

/* The device at `index` in the list of all backends' devices. */
static vn_status listing(struct vn_listing *out, const struct vn_backend **backend, int *local, int index)
{
    for (const struct vn_backend *const *b = vn__backends; *b; b++) {
        const int count = (*b)->count();

        if (index < count) {
            const vn_status s = (*b)->list(out, index);

            snprintf(out->info.spec, sizeof out->info.spec, "%s:%d", (*b)->name, index);
            *backend = *b;
            *local = index;
            return s;
        }
        index -= count;
    }
    return vn__fail(VN_NO_DEVICE, "the device is no longer there");
}

static int device_count(void)
{
    int n = 0;

    vn__use_drivers();
    for (const struct vn_backend *const *b = vn__backends; *b; b++)
        n += (*b)->count();
    return n;
}

int vn_device_count(void)
{
    return vn__enter("vn_device_count") ? 0 : device_count();
}

vn_status vn_device_get(vn_device_info *out, int index)
{
    const struct vn_backend *backend;
    struct vn_listing l;
    vn_status s;
    int local;

    if ((s = vn__enter("vn_device_get")))
        return s;
    if (!out)
        return vn__fail(VN_INVALID, "out is NULL; it needs a vn_device_info");
    if (index < 0 || index >= device_count())
        return vn__fail(VN_INVALID, "index is %d; it needs 0 to %d, since there are %d devices", index,
                        device_count() - 1, device_count());
    if ((s = listing(&l, &backend, &local, index)))
        return s;
    *out = l.info;
    return vn__leave(VN_OK);
}

vn_status vn_device_describe(vn_device_info *out, const vn_device *d)
{
    vn_status s;

    if ((s = vn__enter("vn_device_describe")))
        return s;
    if (!out)
        return vn__fail(VN_INVALID, "out is NULL; it needs a vn_device_info");
    if ((s = vn__handle_check(d, VN_DEVICE, "device")))
        return s;
    *out = d->info;
    return VN_OK;
}

/* ---- finding one by its spec ------------------------------------------------ */

static int matches(const vn_device_info *info, const char *spec)
{
    if (!strcasecmp(spec, "cpu"))
        return info->is_cpu;
    if (!strcasecmp(spec, "gpu"))
        return !info->is_cpu;
    return !strcasecmp(spec, info->spec) || strcasestr(info->name, spec) || strcasestr(info->platform, spec);
}

/* The fastest device that matches, or -1. */
static int find(const char *spec)
{
    const struct vn_backend *backend;
    const int count = device_count();
    struct vn_listing l;
    double best = -1;
    int found = -1, local;

    for (int i = 0; i < count; i++) {
        if (listing(&l, &backend, &local, i) || (spec && !matches(&l.info, spec)))
            continue;
        if (spec && !strcasecmp(spec, l.info.spec))
            return i;
        if (l.rank > best) {
            best = l.rank;
            found = i;
        }
    }
    return found;
}

/* A backend, other than the first, that the spec names ("cuda:0") and that has no device. */
static const struct vn_backend *idle_backend(const char *spec)
{
    for (const struct vn_backend *const *b = vn__backends + 1; spec && *b; b++)
        if (!strncasecmp(spec, (*b)->name, strlen((*b)->name)) && (*b)->count() == 0)
            return *b;
    return NULL;
}

vn_status vn_device_open(vn_device **out, const char *spec)
{
    const struct vn_backend *backend;
    struct vn_listing l;
    int index, local;
    vn_status s;

    if ((s = vn__enter("vn_device_open")))
        return s;
    if (!out)
        return vn__fail(VN_INVALID, "out is NULL; it needs the address of a vn_device *");
    *out = NULL;
    if (!spec || !*spec)
        spec = secure_getenv("VERNIER_DEVICE");
    if (spec && !*spec)
        spec = NULL;
    if ((backend = idle_backend(spec)))         /* its open says why */
        return vn__leave(vn__device_open(out, backend, 0, NULL, spec));
    if (device_count() == 0)                    /* likewise */
        return vn__leave(vn__device_open(out, vn__backends[0], 0, NULL, "none"));
    if ((index = find(spec)) < 0)
        return vn__fail(VN_NO_DEVICE, "spec is \"%.64s%s\", which no device matches; it needs \"cpu\", "
                        "\"gpu\", %s\"opencl:%d\", or a word of a device's or platform's name",
                        spec ? spec : "", spec && strlen(spec) > 64 ? "..." : "",
                        device_count() > 1 ? "\"opencl:0\" to " : "", device_count() - 1);
    if ((s = listing(&l, &backend, &local, index)))
        return s;
    return vn__leave(vn__device_open(out, backend, local, NULL, l.info.spec));
}

/* ---- open and close ---------------------------------------------------------- */

vn_status vn__device_open(vn_device **out, const struct vn_backend *b, int index, void *const native[2],
                          const char *spec)
{
    vn_device *d = vn__handle_open(VN_DEVICE, sizeof *d);
    vn_status s;

    if (!d)
        return VN_NO_MEMORY;
    d->backend = b;
    d->uses = 1;
    if ((s = b->open(d, index, native))) {
        vn__handle_close(d);
        return s;
    }
    snprintf(d->facts.backend, sizeof d->facts.backend, "%s", b->name);
    snprintf(d->info.spec, sizeof d->info.spec, "%s", spec);
    *out = d;
    return VN_OK;
}

void vn__device_keep(vn_device *d)
{
    __atomic_add_fetch(&d->uses, 1, __ATOMIC_RELAXED);
}

void vn__device_drop(vn_device *d)
{
    if (__atomic_sub_fetch(&d->uses, 1, __ATOMIC_ACQ_REL))
        return;
    vn__choices_close(d);
    d->backend->close(d);
    vn__handle_close(d);
}

void vn_device_close(vn_device *d)
{
    if (vn__enter("vn_device_close") || !d || vn__handle_check(d, VN_DEVICE, "device"))
        return;
    vn__handle_mark(d);
    vn__device_drop(d);
}

/* ---- buffers ------------------------------------------------------------------ */

vn_status vn__buffer_open(vn_buffer **out, vn_device *d, size_t bytes, void *native)
{
    vn_buffer *b = vn__handle_open(VN_BUFFER, sizeof *b);
    vn_status s;

    if (!b)
        return VN_NO_MEMORY;
    b->device = d;
    b->bytes = bytes;
    if ((s = d->backend->buffer_open(b, bytes, native))) {
        vn__handle_close(b);
        return s;
    }
    vn__device_keep(d);
    *out = b;
    return VN_OK;
}

vn_status vn_buffer_open(vn_buffer **out, vn_device *d, size_t bytes)
{
    vn_status s;

    if ((s = vn__enter("vn_buffer_open")))
        return s;
    if (!out)
        return vn__fail(VN_INVALID, "out is NULL; it needs the address of a vn_buffer *");
    *out = NULL;
    if ((s = vn__handle_check(d, VN_DEVICE, "device")))
        return s;
    if (bytes > d->facts.buffer_bytes)
        return vn__fail(VN_NO_MEMORY, "bytes is %zu; %s has buffers of at most %zu", bytes, d->facts.name,
                        d->facts.buffer_bytes);
    return vn__leave(vn__buffer_open(out, d, bytes, NULL));
}

vn_status vn_buffer_open_host(vn_buffer **out, vn_device *d, void *memory, size_t bytes)
{
    vn_buffer *b;
    vn_status s;

    if ((s = vn__enter("vn_buffer_open_host")))
        return s;
    if (!out)
        return vn__fail(VN_INVALID, "out is NULL; it needs the address of a vn_buffer *");
    *out = NULL;
    if ((s = vn__handle_check(d, VN_DEVICE, "device")))
        return s;
    if (!memory || (uintptr_t)memory % VN_HOST_ALIGN)
        return vn__fail(VN_INVALID, "memory is %p; it needs a multiple of %d, such as the one below, "
                        "from which views start later", memory, VN_HOST_ALIGN);
    if (!bytes)
        return vn__fail(VN_INVALID, "bytes is 0; it needs 1 or more");
    if (bytes > d->facts.buffer_bytes)
        return vn__fail(VN_NO_MEMORY, "bytes is %zu; %s has buffers of at most %zu", bytes, d->facts.name,
                        d->facts.buffer_bytes);
    if (!(b = vn__handle_open(VN_BUFFER, sizeof *b)))
        return VN_NO_MEMORY;
    b->device = d;
    b->bytes = bytes;
    if ((s = d->backend->buffer_host(b, memory, bytes))) {
        vn__handle_close(b);
        return s;
    }
    vn__device_keep(d);
    *out = b;
    return vn__leave(VN_OK);
}

void vn__buffer_close(vn_buffer *b)
{
    if (b) {
        vn_device *d = b->device;

        d->backend->buffer_close(b);
        vn__handle_close(b);
        vn__device_drop(d);
    }
}

void vn_buffer_close(vn_buffer *b)
{
    if (vn__enter("vn_buffer_close") == VN_OK && b && vn__handle_check(b, VN_BUFFER, "buffer") == VN_OK)
        vn__buffer_close(b);
}

/* A device that was opened twice is two devices of one name. */
vn_status vn__check_device(const vn_device *d, const char *name, const vn_device *with,
                           const char *with_name)
{
    if (d == with)
        return VN_OK;
    if (!strcmp(d->info.spec, with->info.spec))
        return vn__fail(VN_INVALID, "%s and %s are of two opened vn_device of %s; they need to be of the "
                        "same vn_device, opened once", name, with_name, d->info.spec);
    return vn__fail(VN_INVALID, "%s is of %s and %s of %s; they need to be of one device", name, d->info.spec,
                    with_name, with->info.spec);
}
