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

/* Of a view that there is not: each operation refuses it, for its extent of -1. */
static vn_tensor none_of(vn_tensor t)
{
    t.rank = t.rank < 1 || t.rank > VN_RANK ? 1 : t.rank;
    t.extent[0] = -1;
    return t;
}

vn_tensor vn_matrix(vn_buffer *b, vn_type t, int64_t rows, int64_t cols)
{
    const int64_t extent[2] = { rows, cols };

    return vn_packed(b, t, 2, extent);
}

vn_tensor vn_matrix_ld(vn_buffer *b, vn_type t, int64_t rows, int64_t cols, int64_t ld)
{
    vn_tensor v = vn_matrix(b, t, rows, cols);

    v.stride[0] = ld;
    return ld < cols && rows > 1 ? none_of(v) : v;
}

vn_tensor vn_slice(vn_tensor t, int dim, int64_t from, int64_t count)
{
    int64_t end, step;

    if (dim < 0 || dim >= t.rank || t.rank > VN_RANK || from < 0 || count < 0 ||
        !vn__add(&end, from, count) || end > t.extent[dim] ||
        !vn__mul(&step, from, t.stride[dim]) || !vn__add(&t.start, t.start, step))
        return none_of(t);
    t.extent[dim] = count;
    return t;
}

vn_tensor vn_permute(vn_tensor t, const int *order)
{
    vn_tensor v = t;
    unsigned seen = 0;

    if (!order || t.rank < 0 || t.rank > VN_RANK)
        return none_of(t);
    for (int i = 0; i < t.rank; i++) {
        if (order[i] < 0 || order[i] >= t.rank || seen >> order[i] & 1)
            return none_of(t);
        seen |= 1u << order[i];
        v.extent[i] = t.extent[order[i]];
        v.stride[i] = t.stride[order[i]];
    }
    return v;
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

int64_t vn__common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t r = a % b;

        a = b;
        b = r;
    }
    return a;
}

int64_t vn__inverse(int64_t a, int64_t n)
{
    int64_t r = n, next_r = a % n, v = 0, next_v = 1;

    while (next_r) {
        const int64_t quotient = r / next_r, old_r = r, old_v = v;

        r = next_r;
        next_r = old_r - quotient * next_r;
        v = next_v;
        next_v = old_v - quotient * next_v;
    }
    return n == 1 ? 0 : v < 0 ? v + n : v;
}

/* ---- properties of views ---------------------------------------------------- */

int vn__given(const vn_tensor *t)
{
    return t->buffer && t->rank > 0;
}

int vn__in_vectors(const vn_tensor *t, int row, int col, int64_t step, int64_t columns)
{
    const int64_t vector = 16 / (int64_t)vn_type_bytes(t->type);

    return t->stride[col] == 1 && t->stride[row] > 0 && step >= 0 &&
           (t->stride[row] | step | t->start | columns) % vector == 0;
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

static int is_same_buffer(const vn_buffer *a, const vn_buffer *b)
{
    return a == b || (a && b && a->native && a->native == b->native);
}

int vn__same_view(const vn_tensor *a, const vn_tensor *b)
{
    if (!is_same_buffer(a->buffer, b->buffer) || a->type != b->type || a->rank != b->rank ||
        a->start != b->start)
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

/* It ends at byte `end`: what makes it do so. */
static vn_status outside(const vn_tensor *t, const char *name, int64_t end)
{
    const int64_t size = (int64_t)vn_type_bytes(t->type), room = (int64_t)(t->buffer->bytes / (size_t)size);
    const int64_t span = end / size - t->start;
    int widest = 0;

    if (span <= room)
        return vn__fail(VN_INVALID, "%s starts at element %lld, so that it ends at byte %lld of a buffer of "
                        "%zu bytes; it needs a start of at most %lld", name, (long long)t->start,
                        (long long)end, t->buffer->bytes, (long long)(room - span));
    for (int i = 1; i < t->rank; i++)
        if ((t->extent[i] - 1) * t->stride[i] > (t->extent[widest] - 1) * t->stride[widest])
            widest = i;
    return vn__fail(VN_INVALID, "%s has extent %lld and stride %lld along dimension %d, so that it ends at "
                    "byte %lld of a buffer of %zu bytes; it needs to end inside", name,
                    (long long)t->extent[widest], (long long)t->stride[widest], widest, (long long)end,
                    t->buffer->bytes);
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
    if ((s = vn__check_device(t->buffer->device, name, q->device, "the queue")))
        return s;
    if (q->lent && t->buffer == q->workspace)
        return vn__fail(VN_INVALID, "%s lies in the buffer that is the queue's workspace; it needs another",
                        name);
    if (!last_offset(&last, t) || !vn__add(&last, last, 1) ||
        !vn__mul(&bytes, last, (int64_t)vn_type_bytes(t->type)))
        return vn__fail(VN_INVALID, "%s has a start, extents and strides that overflow 63 bits; "
                        "it needs to end inside its buffer of %zu bytes", name, t->buffer->bytes);
    if ((uint64_t)bytes > t->buffer->bytes)
        return outside(t, name, bytes);
    if (output && t->buffer->read_only)
        return vn__fail(VN_INVALID, "%s lies in a buffer that kernels may only read (CL_MEM_READ_ONLY); "
                        "an output needs one that they may write to", name);
    return output ? vn__check_distinct(t, name) : VN_OK;
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

/* ---- integers ------------------------------------------------------------------------- */

vn_status vn__check_ints(const vn_ints *t, const char *name, const vn_queue *q, int64_t count,
                         const char *each, int wide)
{
    int64_t last, bytes;
    vn_status s;

    if (t->bytes != 4 && (t->bytes != 8 || !wide))
        return vn__fail(VN_INVALID, "%s has integers of %d bytes; it needs %s", name, t->bytes,
                        wide ? "4 or 8" : "4");
    if (t->count != count)
        return vn__fail(VN_INVALID, "%s has %lld integers; it needs one for each %s, %lld", name,
                        (long long)t->count, each, (long long)count);
    if (t->start < 0 || t->stride < 0)
        return vn__fail(VN_INVALID, "%s has start %lld and stride %lld; it needs 0 or more", name,
                        (long long)t->start, (long long)t->stride);
    if (count == 0)
        return VN_OK;
    if ((s = vn__handle_check(t->buffer, VN_BUFFER, name)) ||
        (s = vn__check_device(t->buffer->device, name, q->device, "the queue")))
        return s;
    if (!vn__mul(&last, t->count - 1, t->stride) || !vn__add(&last, last, t->start) ||
        !vn__add(&last, last, 1) || !vn__mul(&bytes, last, t->bytes) || (uint64_t)bytes > t->buffer->bytes)
        return vn__fail(VN_INVALID, "%s has %lld integers of %d bytes from %lld on, %lld apart; "
                        "it needs to end inside its buffer of %zu bytes", name, (long long)t->count, t->bytes,
                        (long long)t->start, (long long)t->stride, t->buffer->bytes);
    return VN_OK;
}

vn_tensor vn__ints_view(const vn_ints *t)
{
    const int64_t words = t->bytes / 4;

    return (vn_tensor){ t->buffer, VN_F32, 2, t->start * words, { t->count, words },
                        { t->stride * words, 1 } };
}
