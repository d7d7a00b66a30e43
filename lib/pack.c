/* SPDX-License-Identifier: Apache-2.0
 *
 * pack.c - an operand in the layout that a variant wants, kept for many calls: what operations that have
 * packs share.
 */
#include "core.h"

vn_status vn__pack_check(const vn_pack *p, const vn_queue *q, const char *argument)
{
    const vn_status s = vn__handle_check(p, VN_PACK, argument);

    return s ? s : vn__check_device(p->device, argument, q->device, "the queue");
}

static void pack_close(vn_pack *p)
{
    vn_device *d = p->device;

    vn__buffer_close(p->buffer);                /* work already queued keeps it alive */
    vn__handle_close(p);
    vn__device_drop(d);
}

/* Its buffer and what is in it. */
static vn_status fill(vn_pack *p, vn_queue *q, const struct vn_choice *it, const void *problem,
                      const char *name)
{
    const vn_device *d = q->device;
    const size_t bytes = p->layout.bytes;
    const int preparing = q->preparing;
    vn_status s;

    if (bytes > d->facts.buffer_bytes)
        return vn__fail(VN_NO_MEMORY, "%s takes %zu bytes as %s wants it; %s has buffers of at most %zu",
                        name, bytes, it->variant->name, d->facts.name, d->facts.buffer_bytes);
    if ((s = vn__buffer_open(&p->buffer, q->device, bytes, NULL)))
        return s;
    q->packed_used = bytes;
    q->preparing = 0;                           /* what it holds is read later */
    s = p->layout.pack(q, it, problem, p->buffer, 0);
    q->preparing = preparing;
    return s;
}

vn_status vn__pack_open(vn_pack **out, vn_queue *q, const vn_tensor *of, const char *name,
                        const struct vn_choice *it, const void *problem)
{
    vn_pack *const p = vn__handle_open(VN_PACK, sizeof *p);
    vn_status s;

    if (!p)
        return VN_NO_MEMORY;
    p->device = q->device;
    p->of = *of;
    vn__device_keep(p->device);
    if (it && it->variant->layout)
        p->layout = it->variant->layout(problem, it->p);
    if (p->layout.bytes && (s = fill(p, q, it, problem, name))) {
        pack_close(p);
        return s;
    }
    *out = p;
    return VN_OK;
}

void vn_pack_close(vn_pack *p)
{
    if (vn__enter("vn_pack_close") == VN_OK && p && vn__handle_check(p, VN_PACK, "pack") == VN_OK)
        pack_close(p);
}

size_t vn_pack_bytes(const vn_pack *p)
{
    return vn__enter("vn_pack_bytes") || vn__handle_check(p, VN_PACK, "pack") || !p->buffer
         ? 0 : p->layout.bytes;
}
