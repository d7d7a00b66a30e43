/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor.c - views of buffers: how they are made, and how they are checked.
 */
#include <limits.h>
#include <string.h>

#include "core.h"

/* ---- types ----------------------------------------------------------------- */

static const struct { const char *name; size_t bytes; } types[VN_TYPE_COUNT] = {
    [VN_F32] = { "f32", 4 }, [VN_F16] = { "f16", 2 }, [VN_BF16] = { "bf16", 2 }, [VN_F64] = { "f64", 8 },
};

size_t vn_type_bytes(vn_type t)
{
    return (unsigned)t < VN_TYPE_COUNT ? types[t].bytes : 0;
}

const char *vn_type_name(vn_type t)
{
    return (unsigned)t < VN_TYPE_COUNT ? types[t].name : "no vn_type";
}

/* ---- making views ---------------------------------------------------------- */

vn_tensor vn_packed(vn_buffer *b, vn_type t, int rank, const int64_t *extent)
{
    vn_tensor v = { b, t, rank, 0, { 0 }, { 0 } };
    int64_t step = 1;

    if (!extent || rank < 0 || rank > VN_RANK)
        return v;                           /* the operation that takes it reports what is wrong */
    for (int i = rank - 1; i >= 0; i--) {
        v.extent[i] = extent[i];
        v.stride[i] = step;
        if (extent[i] > 0 && !vn__mul(&step, step, extent[i]))
            step = INT64_MAX;               /* the check of the view reports it */
    }
    return v;
}

vn_tensor vn_matrix(vn_buffer *b, vn_type t, int64_t rows, int64_t cols)
{
    const int64_t extent[2] = { rows, cols };

    return vn_packed(b, t, 2, extent);
}

vn_tensor vn_transpose(vn_tensor t)
{
    const int i = t.rank - 2, j = t.rank - 1;

    if (i < 0 || j >= VN_RANK)
        return t;

    const int64_t extent = t.extent[i], stride = t.stride[i];

    t.extent[i] = t.extent[j];
    t.stride[i] = t.stride[j];
    t.extent[j] = extent;
    t.stride[j] = stride;
    return t;
}

/* ---- arithmetic with overflow checks ---------------------------------------- */

int vn__mul(int64_t *out, int64_t a, int64_t b)
{
    return !__builtin_mul_overflow(a, b, out);
}

int vn__add(int64_t *out, int64_t a, int64_t b)
{
    return !__builtin_add_overflow(a, b, out);
}

/* ---- properties of views ---------------------------------------------------- */

int vn__given(const vn_tensor *t)
{
    return t->buffer && t->rank > 0;
}

int64_t vn__elements(const vn_tensor *t)
{
    int64_t n = 1;

    for (int i = 0; i < t->rank; i++)
        if (t->extent[i] == 0)
            return 0;
    for (int i = 0; i < t->rank; i++)
        if (!vn__mul(&n, n, t->extent[i]))
            return INT64_MAX;
    return n;
}

/* *out: the offset of the view's last element, in elements. Returns 0 on overflow. */
static int last_offset(int64_t *out, const vn_tensor *t)
{
    *out = t->start;
    for (int i = 0; i < t->rank; i++) {
        int64_t span;

        if (!vn__mul(&span, t->extent[i] - 1, t->stride[i]) || !vn__add(out, *out, span))
            return 0;
    }
    return 1;
}

int vn__is_wide(const vn_tensor *t)
{
    int64_t last = 0;

    if (vn__elements(t) > INT_MAX)
        return 1;
    return vn__elements(t) && (!last_offset(&last, t) || last > INT_MAX);
}

int vn__same_view(const vn_tensor *a, const vn_tensor *b)
{
    if (a->buffer != b->buffer || a->type != b->type || a->rank != b->rank || a->start != b->start)
        return 0;
    for (int i = 0; i < a->rank; i++)
        if (a->extent[i] != b->extent[i] || (a->extent[i] > 1 && a->stride[i] != b->stride[i]))
            return 0;
    return 1;
}

/* ---- checks ----------------------------------------------------------------- */

vn_status vn__check_enum(int v, int count, const char *name)
{
    if (v >= 0 && v < count)
        return VN_OK;
    return vn__fail(VN_INVALID, "%s is %d; it needs one of its %d values, 0 to %d", name, v, count,
                    count - 1);
}

/* The elements of an output must not overlap: sorted by stride, each stride must exceed what the smaller ones
 * span. Layouts that interleave in other ways are refused, though some would be valid.  */
static vn_status check_distinct(const vn_tensor *t, const char *name)
{
    int order[VN_RANK], n = 0;
    int64_t reach = 0;

    for (int i = 0; i < t->rank; i++) {
        if (t->extent[i] == 1)
            continue;

        int at = n++;

        for (; at > 0 && t->stride[order[at - 1]] > t->stride[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (int j = 0; j < n; j++) {
        const int i = order[j];

        if (t->stride[i] <= reach)
            return vn__fail(VN_INVALID, "%s has stride %lld along dimension %d, so that its elements "
                            "overlap; an output needs a stride above %lld there", name,
                            (long long)t->stride[i], i, (long long)reach);
        reach += (t->extent[i] - 1) * t->stride[i];     /* no overflow: the view is inside its buffer */
    }
    return VN_OK;
}

vn_status vn__check_tensor(const vn_tensor *t, const char *name, const vn_queue *q,
                           int low, int high, int output)
{
    int64_t last = 0, bytes = 0;
    vn_status s;

    if ((unsigned)t->type >= VN_TYPE_COUNT)
        return vn__fail(VN_INVALID, "%s has type %d; it needs one of the vn_type, 0 to %d", name,
                        (int)t->type, VN_TYPE_COUNT - 1);
    if (t->rank < low || t->rank > high)
        return vn__fail(VN_INVALID, "%s has rank %d; it needs %d to %d", name, t->rank, low, high);
    for (int i = 0; i < t->rank; i++) {
        if (t->extent[i] < 0)
            return vn__fail(VN_INVALID, "%s has extent %lld along dimension %d; it needs 0 or more", name,
                            (long long)t->extent[i], i);
        if (t->stride[i] < 0)
            return vn__fail(VN_INVALID, "%s has stride %lld along dimension %d; it needs 0 or more", name,
                            (long long)t->stride[i], i);
    }
    if (t->start < 0)
        return vn__fail(VN_INVALID, "%s starts at %lld; it needs 0 or more", name, (long long)t->start);
    if (vn__elements(t) == INT64_MAX)
        return vn__fail(VN_INVALID, "%s has extents whose product overflows 63 bits; it needs fewer elements",
                        name);
    if (!(q->device->facts.types >> t->type & 1))
        return vn__fail(VN_UNSUPPORTED, "%s has type %s, in which %s cannot compute; "
                        "it needs another type or device", name, vn_type_name(t->type),
                        q->device->facts.name);
    if (vn__elements(t) == 0)
        return VN_OK;                       /* an empty view needs no buffer */

    if ((s = vn__handle_check(t->buffer, VN_BUFFER, name)))
        return s;
    if (t->buffer->device != q->device)
        return vn__fail(VN_INVALID, "%s lies in a buffer of another device (%s); "
                        "it needs one of the queue's (%s)", name, t->buffer->device->info.spec,
                        q->device->info.spec);
    if (!last_offset(&last, t) || !vn__add(&last, last, 1) ||
        !vn__mul(&bytes, last, (int64_t)vn_type_bytes(t->type)))
        return vn__fail(VN_INVALID, "%s has a start, extents and strides that overflow 63 bits; "
                        "it needs to end inside its buffer of %zu bytes", name, t->buffer->bytes);
    if ((uint64_t)bytes > t->buffer->bytes)
        return vn__fail(VN_INVALID, "%s ends at byte %lld of a buffer of %zu bytes; it needs to end inside",
                        name, (long long)bytes, t->buffer->bytes);
    return output ? check_distinct(t, name) : VN_OK;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t r = a % b;

        a = b;
        b = r;
    }
    return a;
}

vn_status vn__check_overlap(const vn_tensor *a, const char *a_name, const vn_tensor *b, const char *b_name)
{
    int64_t a_last = 0, b_last = 0, step = 0;

    if (!a->buffer || a->buffer != b->buffer || !vn__elements(a) || !vn__elements(b))
        return VN_OK;
    last_offset(&a_last, a);
    last_offset(&b_last, b);
    if (a_last < b->start || b_last < a->start)
        return VN_OK;

    /* Interleaved views (two columns of one matrix) do not overlap if the difference of their starts is no
     * multiple of the common divisor of their strides.                                */
    for (int i = 0; i < a->rank; i++)
        if (a->extent[i] > 1)
            step = common_divisor(a->stride[i], step);
    for (int i = 0; i < b->rank; i++)
        if (b->extent[i] > 1)
            step = common_divisor(b->stride[i], step);
    if (step && (a->start - b->start) % step)
        return VN_OK;

    /* The same for blocks: views that stay inside [start, start + width) of every `pitch` elements, such as
     * the left and right halves of a matrix.                                           */
    int64_t pitch = 0, a_width = 0, b_width = 0;

    for (int i = 0; i < a->rank; i++)
        if (a->extent[i] > 1 && a->stride[i] > pitch)
            pitch = a->stride[i];
    for (int i = 0; i < a->rank; i++)
        if (a->extent[i] > 1 && a->stride[i] % (pitch ? pitch : 1))
            a_width += (a->extent[i] - 1) * a->stride[i];
    for (int i = 0; i < b->rank; i++)
        if (b->extent[i] > 1 && pitch && b->stride[i] % pitch)
            b_width += (b->extent[i] - 1) * b->stride[i];
    if (pitch) {
        const int64_t d = ((b->start - a->start) % pitch + pitch) % pitch;

        if (d > a_width && d + b_width < pitch)
            return VN_OK;
    }
    return vn__fail(VN_INVALID, "%s overlaps %s; it needs memory of its own", a_name, b_name);
}

vn_status vn__broadcast(vn_tensor *t, const char *name, const vn_tensor *like, const char *like_name)
{
    if (t->rank != like->rank)
        return vn__fail(VN_INVALID, "%s has rank %d; it needs that of %s, %d", name, t->rank, like_name,
                        like->rank);
    for (int i = 0; i < t->rank; i++) {
        if (t->extent[i] == like->extent[i])
            continue;
        if (t->extent[i] != 1)
            return vn__fail(VN_INVALID, "%s has extent %lld along dimension %d; "
                            "it needs 1, or that of %s, %lld", name, (long long)t->extent[i], i, like_name,
                            (long long)like->extent[i]);
        t->extent[i] = like->extent[i];
        t->stride[i] = 0;
    }
    return VN_OK;
}
