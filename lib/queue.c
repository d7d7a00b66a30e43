/* SPDX-License-Identifier: Apache-2.0
 *
 * queue.c - queues, events, scratch memory, and launching kernels on them.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

/* ---- queues ---------------------------------------------------------------- */

vn_status vn__queue_open(vn_queue **out, vn_device *d, void *native)
{
    vn_queue *q = vn__handle_open(VN_QUEUE, sizeof *q);
    vn_status s;

    if (!q)
        return VN_NO_MEMORY;
    q->device = d;
    q->borrowed = native != NULL;
    q->workspace_limit = SIZE_MAX;
    if ((s = d->backend->queue_open(q, native))) {
        vn__handle_close(q);
        return s;
    }
    vn__device_keep(d);
    *out = q;
    return VN_OK;
}

vn_status vn_queue_open(vn_queue **out, vn_device *d)
{
    vn_status s;

    if ((s = vn__enter("vn_queue_open")))
        return s;
    if (!out)
        return vn__fail(VN_INVALID, "out is NULL; it needs the address of a vn_queue *");
    *out = NULL;
    if ((s = vn__handle_check(d, VN_DEVICE, "device")))
        return s;
    return vn__leave(vn__queue_open(out, d, NULL));
}

static void workspace_close(vn_queue *q)
{
    if (!q->lent)
        vn__buffer_close(q->workspace);
    q->lent = 0;
    q->workspace = NULL;
}

void vn__queue_close(vn_queue *q)
{
    vn_device *d = q->device;

    if (!q->borrowed)
        d->backend->finish(q);
    vn__trace_flush(q);
    for (struct vn_attachment *it = q->attached, *next; it; it = next) {
        next = it->next;
        it->close(q, it);
    }
    workspace_close(q);
    vn__buffer_close(q->counters);
    vn__buffer_close(q->slots);
    vn__buffer_close(q->maps);
    free(q->maps_keys);
    free(q->explain);
    vn__memos_forget(q);
    d->backend->queue_close(q);
    vn__handle_close(q);
    vn__device_drop(d);
}

void vn_queue_close(vn_queue *q)
{
    if (vn__enter("vn_queue_close") == VN_OK && q && vn__handle_check(q, VN_QUEUE, "queue") == VN_OK)
        vn__queue_close(q);
}

vn_status vn_queue_finish(vn_queue *q)
{
    vn_status s;

    if ((s = vn__enter("vn_queue_finish")) || (s = vn__handle_check(q, VN_QUEUE, "queue")))
        return s;
    s = q->device->backend->finish(q);
    vn__trace_flush(q);
    if (s == VN_OK)
        vn__cache_settle(q->device);
    return vn__leave(s);
}

/* ---- events ---------------------------------------------------------------- */

static vn_status event_record(vn_event **out, vn_queue *q)
{
    vn_event *e = vn__handle_open(VN_EVENT, sizeof *e);
    vn_status s;

    if (!e)
        return VN_NO_MEMORY;
    e->device = q->device;
    if ((s = q->device->backend->event_record(e, q))) {
        vn__handle_close(e);
        return s;
    }
    vn__device_keep(e->device);
    *out = e;
    return VN_OK;
}

vn_status vn_event_record(vn_event **out, vn_queue *q)
{
    vn_status s;

    if ((s = vn__enter("vn_event_record")))
        return s;
    if (!out)
        return vn__fail(VN_INVALID, "out is NULL; it needs the address of a vn_event *");
    *out = NULL;
    if ((s = vn__handle_check(q, VN_QUEUE, "queue")))
        return s;
    return vn__leave(event_record(out, q));
}

void vn__event_close(vn_event *e)
{
    vn_device *d = e->device;

    d->backend->event_close(e);
    vn__handle_close(e);
    vn__device_drop(d);
}

void vn_event_close(vn_event *e)
{
    if (vn__enter("vn_event_close") || !e || vn__handle_check(e, VN_EVENT, "event"))
        return;
    vn__event_close(e);
}

vn_status vn_event_finish(vn_event *e)
{
    vn_status s;

    if ((s = vn__enter("vn_event_finish")) || (s = vn__handle_check(e, VN_EVENT, "event")))
        return s;
    return vn__leave(e->device->backend->event_finish(e));
}

vn_status vn_queue_wait(vn_queue *q, vn_event *e)
{
    vn_status s;

    if ((s = vn__enter("vn_queue_wait")) || (s = vn__handle_check(q, VN_QUEUE, "queue")) ||
        (s = vn__handle_check(e, VN_EVENT, "event")))
        return s;
    if ((s = vn__check_device(e->device, "event", q->device, "the queue")))
        return s;
    return vn__leave(q->device->backend->event_wait(q, e));
}

vn_status vn_event_seconds(double *out, vn_event *from, vn_event *to)
{
    vn_status s;

    if ((s = vn__enter("vn_event_seconds")))
        return s;
    if (!out)
        return vn__fail(VN_INVALID, "out is NULL; it needs the address of a double");
    if ((s = vn__handle_check(from, VN_EVENT, "from")) || (s = vn__handle_check(to, VN_EVENT, "to")))
        return s;
    if ((s = vn__check_device(from->device, "from", to->device, "to")))
        return s;
    return vn__leave(from->device->backend->event_seconds(out, from, to));
}

/* ---- scratch memory --------------------------------------------------------- */

vn_status vn_queue_limit_workspace(vn_queue *q, size_t bytes)
{
    vn_status s;

    if ((s = vn__enter("vn_queue_limit_workspace")) || (s = vn__handle_check(q, VN_QUEUE, "queue")))
        return s;
    q->workspace_limit = q->lent && bytes > q->workspace->bytes ? q->workspace->bytes : bytes;
    vn__memos_forget(q);
    if (q->workspace && !q->lent && q->workspace->bytes > bytes)
        workspace_close(q);
    return vn__leave(VN_OK);
}

vn_status vn_queue_use_workspace(vn_queue *q, vn_buffer *b)
{
    vn_status s;

    if ((s = vn__enter("vn_queue_use_workspace")) || (s = vn__handle_check(q, VN_QUEUE, "queue")) ||
        (b && (s = vn__handle_check(b, VN_BUFFER, "buffer"))))
        return s;
    if (b && (s = vn__check_device(b->device, "buffer", q->device, "the queue")))
        return s;
    if (b && b->read_only)
        return vn__fail(VN_INVALID,
                        "buffer may only be read by kernels (CL_MEM_READ_ONLY); a workspace needs "
                        "one that they may write to");
    vn__memos_forget(q);
    workspace_close(q);
    q->workspace = b;
    q->lent = b != NULL;
    q->workspace_limit = b ? b->bytes : SIZE_MAX;
    return vn__leave(VN_OK);
}

vn_status vn_queue_prepare(vn_queue *q, int on)
{
    vn_status s;

    if ((s = vn__enter("vn_queue_prepare")) || (s = vn__handle_check(q, VN_QUEUE, "queue")))
        return s;
    q->preparing = on != 0;
    return VN_OK;
}

size_t vn_queue_workspace(const vn_queue *q)
{
    if (vn__enter("vn_queue_workspace") || vn__handle_check(q, VN_QUEUE, "queue") || !q->workspace)
        return 0;
    return q->workspace->bytes;
}

/* Rounds up to whole steps, where limit and device allow: a queue of small operations then allocates once. */
static size_t rounded_up(size_t bytes, const vn_queue *q)
{
    enum { STEP = 1 << 20 };
    const size_t rounded = bytes > SIZE_MAX - STEP ? bytes : (bytes + STEP - 1) / STEP * STEP;

    return rounded > q->workspace_limit || rounded > q->device->facts.buffer_bytes ? bytes : rounded;
}

vn_status vn__workspace(vn_buffer **out, vn_queue *q, size_t bytes)
{
    vn_status s;

    q->workspace_used = bytes;
    if (q->lent) {
        if ((s = vn__handle_check(q->workspace, VN_BUFFER, "the queue's workspace")))
            return s;
        if (q->workspace->bytes < bytes)
            return vn__fail(VN_NO_MEMORY, "it needs %zu bytes of workspace; the queue was given %zu", bytes,
                            q->workspace->bytes);
    }
    if (!q->workspace || q->workspace->bytes < bytes) {
        if (bytes > q->device->facts.buffer_bytes)
            return vn__fail(VN_NO_MEMORY, "it needs %zu bytes of workspace; %s has buffers of at most %zu",
                            bytes, q->device->facts.name, q->device->facts.buffer_bytes);
        workspace_close(q);                 /* queued work keeps the old one alive */
        if ((s = vn__buffer_open(&q->workspace, q->device, rounded_up(bytes, q), NULL)))
            return s;
    }
    *out = q->workspace;
    return VN_OK;
}

/* On a queue of its own, since the caller's may be waiting for an event. */
static vn_status write_zeros(vn_buffer *b)
{
    void *const zeros = calloc(1, b->bytes);
    vn_queue *q;
    vn_status s;

    if (!zeros)
        return vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes of zeros", b->bytes);
    if ((s = vn__queue_open(&q, b->device, NULL)) == VN_OK) {
        s = b->device->backend->write(q, b, 0, zeros, b->bytes, 1);
        q->borrowed = 1;                    /* the write has completed: there is nothing to finish */
        vn__queue_close(q);
    }
    free(zeros);
    return s;
}

/* Returns *kept, which is created, full of zeros, at the first use. */
static vn_status zeros(vn_buffer **out, vn_buffer **kept, vn_queue *q, size_t bytes)
{
    vn_status s;

    if (!*kept) {
        if ((s = vn__buffer_open(kept, q->device, bytes, NULL)))
            return s;
        if ((s = write_zeros(*kept))) {
            vn__buffer_close(*kept);
            *kept = NULL;
            return s;
        }
    }
    *out = *kept;
    return VN_OK;
}

vn_status vn__counters(vn_buffer **out, vn_queue *q)
{
    const size_t ints = VN_COUNTERS + (VN_SEAT_LINES + (size_t)q->device->facts.units) * VN_SEAT_LINE;

    return zeros(out, &q->counters, q, ints * sizeof(int32_t));
}

vn_status vn__slots(vn_buffer **out, vn_queue *q)
{
    return zeros(out, &q->slots, q, VN_SLOTS * sizeof(int64_t));
}

/* ---- launching --------------------------------------------------------------- */

/* The next argument. Excess arguments are counted, so that vn__launch refuses them, but not kept. */
static struct vn_arg *next_arg(struct vn_launch *l)
{
    const int at = l->nargs++;

    return &l->args[at < VN_ARGS ? at : VN_ARGS - 1];
}

void vn__arg_int(struct vn_launch *l, int64_t v)
{
    struct vn_arg *a = next_arg(l);

    a->size = sizeof a->value.i;
    a->value.i = (int32_t)v;
}

void vn__arg_real(struct vn_launch *l, vn_type t, double v)
{
    struct vn_arg *a = next_arg(l);

    if (t == VN_F64) {
        a->size = sizeof a->value.d;
        a->value.d = v;
    } else {
        a->size = sizeof a->value.f;
        a->value.f = (float)v;
    }
}

void vn__arg_buffer(struct vn_launch *l, vn_buffer *b)
{
    struct vn_arg *a = next_arg(l);

    a->size = 0;
    a->buffer = b;
}

static int64_t *add_view(struct vn_launch *l)
{
    struct vn_arg *a = next_arg(l);

    a->size = sizeof a->value.view;
    return a->value.view;
}

void vn__arg_view(struct vn_launch *l, const int64_t v[8])
{
    memcpy(add_view(l), v, sizeof l->args->value.view);
}

void vn__arg_strides(struct vn_launch *l, const vn_tensor *t)
{
    int64_t *const v = add_view(l);

    for (int i = 0; i < 8; i++)
        v[i] = 0;
    v[0] = t->start;
    for (int i = 0; i < t->rank; i++)
        v[7 - t->rank + i] = t->stride[i];
}

void vn__arg_tensor(struct vn_launch *l, const vn_tensor *t)
{
    vn__arg_buffer(l, t->buffer);
    vn__arg_strides(l, t);
}

void vn__arg_extents(struct vn_launch *l, const vn_tensor *t)
{
    int64_t *const v = add_view(l);

    for (int i = 0; i < 8; i++)
        v[i] = 1;
    for (int i = 0; i < t->rank; i++)
        v[7 - t->rank + i] = t->extent[i];
}

/* Granlund and Montgomery, "Division by invariant integers using multiplication", PLDI 1994. */
int64_t vn__divisor(int64_t d)
{
    int shift = 31;

    d = d > 1 ? d : 1;
    while ((int64_t)1 << (shift - 31) < d)
        shift++;
    return (int64_t)shift << 32 | (int64_t)((((uint64_t)1 << shift) + (uint64_t)d - 1) / (uint64_t)d);
}

void vn__arg_tiles(struct vn_launch *l, int64_t tiles_m, int64_t tiles_n, int64_t raster, int64_t batches)
{
    vn__arg_view(l, (int64_t[8]){ vn__divisor(tiles_m * tiles_n), vn__divisor(raster * tiles_n),
                                  vn__divisor(tiles_m % raster), vn__divisor(batches) });
}

static uint64_t mixed(uint64_t x, uint64_t more)
{
    const uint64_t golden = 0x9e3779b97f4a7c15u;

    x = (x ^ more) * golden;
    return x ^ x >> 32;
}

vn_status vn__arg_maps(struct vn_launch *l, vn_queue *q)
{
    vn_buffer *maps;
    const vn_status s = zeros(&maps, &q->maps, q, VN_MAPS * VN_MAP_BYTES);

    if (s)
        return s;
    if (!q->maps_keys && !q->borrowed)
        q->maps_keys = calloc(VN_MAPS / VN_MAPS_EACH, sizeof *q->maps_keys);
    vn__arg_buffer(l, maps);
    l->maps_at = l->nargs;
    vn__arg_int(l, 0);
    vn__arg_int(l, 0);
    return VN_OK;
}

/* Of a kernel and all its arguments, before those of its tensor maps are set. */
static uint64_t key_of(const struct vn_choice *it, int kernel, const struct vn_launch *l)
{
    uint64_t x = mixed((uint64_t)(uintptr_t)it, (uint64_t)kernel);

    for (int i = 0; i < l->nargs; i++) {
        const struct vn_arg *const a = &l->args[i];
        uint64_t word[sizeof a->value / sizeof(uint64_t)] = { a->size ? 0 : (uint64_t)(uintptr_t)a->buffer };

        memcpy(word, &a->value, a->size);
        for (size_t j = 0; 8 * j < (a->size ? a->size : sizeof *word); j++)
            x = mixed(x, word[j]);
    }
    return x ? x : 1;
}

/* Where a launch has its tensor maps, and whether they are there; from now on they are. */
static void place_maps(vn_queue *q, const struct vn_choice *it, int kernel, struct vn_launch *l)
{
    enum { PLACES = VN_MAPS / VN_MAPS_EACH };
    int32_t *const first = &l->args[l->maps_at].value.i, *const kept = &l->args[l->maps_at + 1].value.i;
    uint64_t key;

    if (!l->maps_key) {
        l->maps_key = key_of(it, kernel, l);
        *first = (int32_t)(l->maps_key % PLACES) * VN_MAPS_EACH;
        q->again = 0;
    }
    if (!q->maps_keys)
        return;
    key = mixed(l->maps_key, vn__handles_closed());
    if (*kept != (q->maps_keys[l->maps_key % PLACES] == key)) {
        *kept = !*kept;
        q->again = 0;                           /* other arguments than the last time */
    }
    q->maps_keys[l->maps_key % PLACES] = key;
}

/* With a trace, the events around a launch. */
static vn_event *span_begin(vn_queue *q)
{
    vn_event *from = NULL;

    if (vn__traces())
        event_record(&from, q);
    return from;
}

static void span_end(vn_queue *q, const char *variant, vn_event *from, vn_status s)
{
    vn_event *to = NULL;

    if (!from)
        return;
    if (s == VN_OK && event_record(&to, q) == VN_OK)
        vn__trace_launch(q, variant, from, to);
    else
        vn__event_close(from);
}

vn_status vn__launch(vn_queue *q, const struct vn_choice *it, int kernel, struct vn_launch *l)
{
    vn_event *from;
    vn_status s;

    if (l->nargs > VN_ARGS)
        return vn__fail(VN_FAILED, "%s has %d arguments; a launch holds %d", it->variant->name, l->nargs,
                        VN_ARGS);
    if (l->groups[0] < 1 || l->groups[1] < 1 || l->groups[2] < 1)
        return vn__fail(VN_FAILED, "%s would launch %lld x %lld x %lld work-groups; there must be one",
                        it->variant->name, (long long)l->groups[0], (long long)l->groups[1],
                        (long long)l->groups[2]);
    if (q->noting)
        vn__note_launch(q, it, kernel, l);
    if (q->preparing)
        return VN_OK;
    if (l->maps_at)
        place_maps(q, it, kernel, l);
    from = span_begin(q);
    s = q->device->backend->launch(q, it->kernel[kernel], l);
    if (s && l->maps_at && q->maps_keys)
        q->maps_keys[l->maps_key % (VN_MAPS / VN_MAPS_EACH)] = 0;
    span_end(q, it->variant->name, from, s);
    if (vn__logs(VN_LOG_LAUNCH))
        vn__log(VN_LOG_LAUNCH, "%s[%d] on %s: %lld x %lld x %lld groups of %d: %s", it->variant->name, kernel,
                q->device->info.spec, (long long)l->groups[0], (long long)l->groups[1],
                (long long)l->groups[2], l->items, vn_status_name(s));
    return s;
}

vn_status vn__launch_foreign(vn_queue *q, const struct vn_choice *it, const void *problem,
                             vn_status (*call)(vn_queue *q, const void *problem))
{
    vn_event *from;
    vn_status s;

    q->noting = NULL;                       /* the launches of a library cannot be noted */
    if (q->preparing)
        return VN_OK;
    from = span_begin(q);
    s = call(q, problem);
    span_end(q, it->variant->name, from, s);
    if (vn__logs(VN_LOG_LAUNCH))
        vn__log(VN_LOG_LAUNCH, "%s on %s: %s", it->variant->name, q->device->info.spec, vn_status_name(s));
    return s;
}

/* ---- attachments: what vendors' libraries keep on a queue ----------------------- */

struct vn_attachment *vn__attached(const vn_queue *q, const void *owner)
{
    struct vn_attachment *it = q->attached;

    while (it && it->owner != owner)
        it = it->next;
    return it;
}

void vn__attach(vn_queue *q, struct vn_attachment *it)
{
    it->next = q->attached;
    q->attached = it;
}
