/* SPDX-License-Identifier: Apache-2.0
 *
 * transfer.c - bytes on their way: from the host to a buffer, back, from buffer to buffer; and patterns.
 */
#include "core.h"

/* `what` and `at_name`: the arguments that name the buffer and where in it. */
static vn_status check_range(const vn_queue *q, const vn_buffer *b, const char *what, size_t at,
                             const char *at_name, size_t bytes)
{
    vn_status s;

    if ((s = vn__handle_check(b, VN_BUFFER, what)) ||
        (s = vn__check_device(b->device, what, q->device, "the queue")))
        return s;
    if (at > b->bytes || bytes > b->bytes - at)
        return vn__fail(VN_INVALID, "%s is %zu and bytes is %zu; together they need to stay inside the %zu "
                        "of %s", at_name, at, bytes, b->bytes, what);
    return VN_OK;
}

static vn_status check_writable(const vn_buffer *b, const char *what)
{
    if (!b->read_only)
        return VN_OK;
    return vn__fail(VN_INVALID, "%s is a buffer that kernels may only read (CL_MEM_READ_ONLY); "
                    "it needs one that they may write to", what);
}

/* ---- the host and a buffer ----------------------------------------------------- */

static vn_status check_host(vn_queue *q, const vn_buffer *b, const char *b_name, size_t at, const void *host,
                            const char *host_name, size_t bytes)
{
    vn_status s;

    if ((s = vn__handle_check(q, VN_QUEUE, "queue")) || (s = check_range(q, b, b_name, at, "at", bytes)))
        return s;
    if (!host && bytes)
        return vn__fail(VN_INVALID, "%s is NULL; it needs %zu bytes of host memory", host_name, bytes);
    return VN_OK;
}

static vn_status write_host(const char *function, vn_queue *q, vn_buffer *to, size_t at, const void *from,
                            size_t bytes, int waits)
{
    vn_status s;

    if ((s = vn__enter(function)) || (s = check_host(q, to, "to", at, from, "from", bytes)) || !bytes)
        return s;
    return vn__leave(q->device->backend->write(q, to, at, from, bytes, waits));
}

static vn_status read_host(const char *function, vn_queue *q, void *to, const vn_buffer *from, size_t at,
                           size_t bytes, int waits)
{
    vn_status s;

    if ((s = vn__enter(function)) || (s = check_host(q, from, "from", at, to, "to", bytes)) || !bytes)
        return s;
    if ((s = q->device->backend->read(q, to, from, at, bytes, waits)) == VN_OK && waits)
        vn__cache_settle(q->device);
    return vn__leave(s);
}

vn_status vn_write(vn_queue *q, vn_buffer *to, size_t at, const void *from, size_t bytes)
{
    return write_host("vn_write", q, to, at, from, bytes, 1);
}

vn_status vn_read(vn_queue *q, void *to, const vn_buffer *from, size_t at, size_t bytes)
{
    return read_host("vn_read", q, to, from, at, bytes, 1);
}

vn_status vn_write_async(vn_queue *q, vn_buffer *to, size_t at, const void *from, size_t bytes)
{
    return write_host("vn_write_async", q, to, at, from, bytes, 0);
}

vn_status vn_read_async(vn_queue *q, void *to, const vn_buffer *from, size_t at, size_t bytes)
{
    return read_host("vn_read_async", q, to, from, at, bytes, 0);
}

/* ---- inside the device ----------------------------------------------------------- */

/* Drivers may refuse a copy onto itself, or do it in any order. */
static vn_status check_apart(const vn_buffer *to, size_t to_at, const vn_buffer *from, size_t from_at,
                             size_t bytes)
{
    const int is_one = to == from || (to->memory && to->memory == from->memory);
    const int64_t a = to->at + (int64_t)to_at, b = from->at + (int64_t)from_at, n = (int64_t)bytes;

    if (!is_one || a + n <= b || b + n <= a)
        return VN_OK;
    return vn__fail(VN_INVALID, "to_at is %zu, from_at %zu and bytes %zu, so that both ranges share memory; "
                    "they need to be apart", to_at, from_at, bytes);
}

vn_status vn_copy(vn_queue *q, vn_buffer *to, size_t to_at, const vn_buffer *from, size_t from_at,
                  size_t bytes)
{
    vn_status s;

    if ((s = vn__enter("vn_copy")) || (s = vn__handle_check(q, VN_QUEUE, "queue")) ||
        (s = check_range(q, to, "to", to_at, "to_at", bytes)) || (s = check_writable(to, "to")) ||
        (s = check_range(q, from, "from", from_at, "from_at", bytes)) || !bytes ||
        (s = check_apart(to, to_at, from, from_at, bytes)))
        return s;
    return vn__leave(q->device->backend->copy(q, to, to_at, from, from_at, bytes));
}

vn_status vn_fill(vn_queue *q, vn_buffer *to, size_t at, size_t bytes, const void *pattern, size_t size)
{
    vn_status s;

    if ((s = vn__enter("vn_fill")) || (s = vn__handle_check(q, VN_QUEUE, "queue")) ||
        (s = check_range(q, to, "to", at, "at", bytes)) || (s = check_writable(to, "to")))
        return s;
    if (!pattern)
        return vn__fail(VN_INVALID, "pattern is NULL; it needs the address of what is to be repeated");
    if (size != 1 && size != 2 && size != 4 && size != 8)
        return vn__fail(VN_INVALID, "size is %zu; a pattern needs 1, 2, 4 or 8 bytes", size);
    if (at % size || bytes % size)
        return vn__fail(VN_INVALID, "at is %zu and bytes is %zu; they need to be multiples of size, %zu", at,
                        bytes, size);
    return bytes ? vn__leave(q->device->backend->fill(q, to, at, bytes, pattern, size)) : VN_OK;
}
