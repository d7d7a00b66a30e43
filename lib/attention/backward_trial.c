/* SPDX-License-Identifier: Apache-2.0
 *
 * backward_trial.c - a variant of the gradients that rests on more than the language promises proves itself.
 *
 * As in trial.c, a key has the bits of its number as elements 1 and -1, a query twice those of the key that
 * it is to find; its lse is that score, so that P is 1 there and 0 elsewhere.  out is not what attention
 * would give: that makes dS other than 0.  All elements of the gradients are then integers.
 */
#include <stdlib.h>
#include <string.h>

#include "backward.h"

enum { QUERIES = 200, KEYS = 168, HEADS = 4, SHARED = 2, BITS = 9, LARGEST = 128, SCALE = 4 };
enum { MOST = QUERIES * HEADS * LARGEST };      /* elements of the largest tensor */

/* The key that query i of a head finds; -1: it sees none. */
static int key_of(const struct attention *a, int head, int i)
{
    const int at = (int)(i + a->offset), seen = !a->causal || at >= KEYS ? KEYS : at + 1;

    return seen < 1 ? -1 : (37 * i + 11 * head + 5) % seen;
}

static int bit_of(int key, int e) { return key >> e % BITS & 1 ? 1 : -1; }

/* Of values and out; of d_out, which is 0 but for each eighth element. */
static int sign_of(int head, int i, int e)  { return (3 * head + i + e + i * e % 7) % 2 ? 1 : -1; }
static int d_out_of(int head, int i, int e) { return e % 8 == i % 8 ? sign_of(head + 1, i, e / 8) : 0; }

typedef int element(const struct attention *a, int head, int i, int e);

#define ELEMENT(name, formula)                                          \
    static int name(const struct attention *a, int head, int i, int e)  \
    {                                                                   \
        (void)a;                                                        \
        (void)head;                                                     \
        return formula;                                                 \
    }
ELEMENT(query, 2 * bit_of(key_of(a, head, i), e))
ELEMENT(key,   bit_of(i, e))
ELEMENT(value, sign_of(head, i, e))
ELEMENT(out,   sign_of(head, i, 2 * e))
ELEMENT(d_out, d_out_of(head, i, e))

static vn_status fill(vn_queue *q, const struct attention *a, const vn_tensor *t, element *of)
{
    void *room;
    vn_status s = vn__trial_room(&room, MOST * sizeof(uint16_t));

    if (s)
        return s;
    for (int h = 0; h < t->extent[1]; h++)
        for (int i = 0; i < t->extent[2]; i++)
            for (int e = 0; e < t->extent[3]; e++)
                vn__trial_encode(room, t->type, (size_t)(h * t->stride[1] + i * t->stride[2] + e),
                                 of(a, h, i, e));
    s = q->device->backend->write(q, t->buffer, 0, room, MOST * sizeof(uint16_t), 1);
    free(room);
    return s;
}

static vn_status fill_lse(vn_queue *q, const struct attention *a)
{
    float room[HEADS * QUERIES];

    for (int at = 0; at < HEADS * QUERIES; at++)
        room[at] = key_of(a, at / QUERIES, at % QUERIES) < 0 ? -__builtin_inff() : (float)(2 * SCALE * a->d);
    return q->device->backend->write(q, a->t[LSE].buffer, 0, room, sizeof room, 1);
}

/* What the gradients are, without the scale. */
struct right { int dq[HEADS][QUERIES][LARGEST], dk[SHARED][KEYS][LARGEST], dv[SHARED][KEYS][LARGEST]; };

static void solve(struct right *r, const struct attention *a)
{
    memset(r, 0, sizeof *r);
    for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < QUERIES; i++) {
            const int found = key_of(a, h, i), shared = (int)(h / a->group);
            int ds = 0;

            for (int e = 0; e < a->dv && found >= 0; e++)
                ds += d_out_of(h, i, e) * (value(a, shared, found, e) - out(a, h, i, e));
            for (int e = 0; e < a->d && found >= 0; e++) {
                r->dq[h][i][e] = ds * bit_of(found, e);
                r->dk[shared][found][e] += ds * query(a, h, i, e);
                r->dv[shared][found][e] += d_out_of(h, i, e);
            }
        }
}

static vn_status compare_elements(const struct attention *a, int which, const int *right, int factor,
                                  const void *room)
{
    static const char *const names[] = { [D_Q] = "queries", [D_K] = "keys", [D_V] = "values" };
    const vn_tensor *const t = &a->gradient[which];

    for (int h = 0; h < t->extent[1]; h++)
        for (int i = 0; i < t->extent[2]; i++)
            for (int e = 0; e < t->extent[3]; e++) {
                const double x = vn__trial_decode(room, t->type,
                                                  (size_t)(h * t->stride[1] + i * t->stride[2] + e));
                const int wanted = factor * right[(h * t->extent[2] + i) * LARGEST + e];

                if (x != wanted)
                    return vn__fail(VN_UNSUPPORTED, "a trial gradient of the %s came out wrong at head %d, "
                                    "row %d, element %d: %g for %d", names[which], h, i, e, x, wanted);
            }
    return VN_OK;
}

static vn_status compare(vn_queue *q, const struct attention *a, int which, const int *right, int factor)
{
    const size_t bytes = MOST * sizeof(uint16_t);
    void *room;
    vn_status s = vn__trial_room(&room, bytes);

    if (s)
        return s;
    if ((s = q->device->backend->read(q, room, a->gradient[which].buffer, 0, bytes, 1)) == VN_OK)
        s = compare_elements(a, which, right, factor, room);
    free(room);
    return s;
}

static void lay_out(vn_tensor *t, vn_type type, int64_t heads, int64_t rows, int64_t size)
{
    *t = (vn_tensor){ .buffer = t->buffer, .type = type, .rank = 4, .extent = { 1, heads, rows, size },
                      .stride = { rows * heads * size, size, heads * size, 1 } };
}

static void lay_out_all(struct attention *a, int size)
{
    const vn_type type = a->head.type;

    a->d = a->dv = size;
    for (int i = Q; i <= OUT; i++)
        lay_out(&a->t[i], type, i == K || i == V ? SHARED : HEADS, i == K || i == V ? KEYS : QUERIES, size);
    for (int i = D_OUT; i < GRADIENTS; i++)
        lay_out(&a->gradient[i], type, i == D_K || i == D_V ? SHARED : HEADS,
                i == D_K || i == D_V ? KEYS : QUERIES, size);
    a->t[MASK] = a->t[Q];
    a->t[LSE] = (vn_tensor){ .buffer = a->t[LSE].buffer, .type = VN_F32, .rank = 3,
                             .extent = { 1, HEADS, QUERIES }, .stride = { HEADS * QUERIES, QUERIES, 1 } };
}

/* A plan says whether the row takes heads of that size. */
static vn_status find_shape(struct vn_plan *plan, vn_queue *q, const struct vn_choice *it,
                            struct attention *a)
{
    static const int sizes[] = { LARGEST - 8, LARGEST / 2 - 8 };
    vn_status s = VN_UNSUPPORTED;

    for (int i = 0; i < 4 && s == VN_UNSUPPORTED; i++) {
        int c[VN_CONSTANTS] = { 0 };

        a->causal = i % 2;
        a->offset = a->causal ? KEYS - QUERIES : 0;
        lay_out_all(a, sizes[i / 2]);
        it->variant->constants_of(c, a);
        if (!it->variant->fits(a, &q->device->facts) && c[0] == it->c[0])
            s = vn__plan(plan, q, it, a);
    }
    return s == VN_UNSUPPORTED ? vn__fail(s, "no layout of the trial gradients fits the variant") : s;
}

static vn_status compare_all(vn_queue *q, const struct attention *a)
{
    struct right *r;
    void *room;
    vn_status s = vn__trial_room(&room, sizeof *r);

    if (s)
        return s;
    solve(r = room, a);
    if (!(s = compare(q, a, D_Q, r->dq[0][0], SCALE)) && !(s = compare(q, a, D_K, r->dk[0][0], SCALE)))
        s = compare(q, a, D_V, r->dv[0][0], 1);
    free(room);
    return s;
}

static vn_status run(vn_queue *q, const struct vn_choice *it, struct attention *a)
{
    struct vn_plan plan;
    vn_status s = find_shape(&plan, q, it, a);

    if (s ||
        (s = fill(q, a, &a->t[Q], query)) || (s = fill(q, a, &a->t[K], key)) ||
        (s = fill(q, a, &a->t[V], value)) || (s = fill(q, a, &a->t[OUT], out)) ||
        (s = fill(q, a, &a->gradient[D_OUT], d_out)) || (s = fill_lse(q, a)) ||
        (s = it->variant->run(q, it, a, &plan)) || (s = q->device->backend->finish(q)))
        return s;
    return compare_all(q, a);
}

vn_status vn__trial_attention_backward(vn_queue *q, const struct vn_choice *it, vn_type type)
{
    struct attention a = { .head = { .op = "attention", .type = type }, .batches = 1, .heads = HEADS,
                           .group = HEADS / SHARED, .queries = QUERIES, .keys = KEYS, .scale = SCALE,
                           .has_lse = 1, .units = q->device->facts.units, .backward = 1,
                           .wanted = 1 << D_Q | 1 << D_K | 1 << D_V };
    vn_buffer **const buffers[] = { &a.t[Q].buffer, &a.t[K].buffer, &a.t[V].buffer, &a.t[OUT].buffer,
                                    &a.t[LSE].buffer, &a.gradient[D_OUT].buffer, &a.gradient[D_Q].buffer,
                                    &a.gradient[D_K].buffer, &a.gradient[D_V].buffer };
    vn_status s = VN_OK;

    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0] && s == VN_OK; i++)
        s = vn__buffer_open(buffers[i], q->device, MOST * sizeof(uint16_t), NULL);
    if (s == VN_OK)
        s = run(q, it, &a);
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        vn__buffer_close(*buffers[i]);
    return s;
}
