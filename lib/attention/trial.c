/* SPDX-License-Identifier: Apache-2.0
 *
 * trial.c - a variant that rests on more than the language promises proves itself once.
 *
 * A key has the bits of its number as elements 1 and -1, over and over; a query has those of the key that it
 * is to find, twice as large.  All other scores are so much smaller that their weights are 0: the output is
 * the value of that key, exactly.  Causal, some queries see nothing, and the output is 0.
 */
#include <stdlib.h>
#include <string.h>

#include "attention.h"

enum { QUERIES = 200, KEYS = 168, HEADS = 4, SHARED = 2, BITS = 9, LARGEST = 256, SCALE = 4 };
enum { MOST = QUERIES * HEADS * LARGEST / 2 };  /* elements of the largest tensor */

/* The key that query i of a head finds; -1: it sees none. */
static int key_of(const struct attention *a, int head, int i)
{
    const int at = (int)(i + a->offset), seen = !a->causal || at >= KEYS ? KEYS : at + 1;

    return seen < 1 ? -1 : (37 * i + 11 * head + 5) % seen;
}

static int bit_of(int key, int e) { return key >> e % BITS & 1 ? 1 : -1; }

static int element(const struct attention *a, int view, int head, int i, int e)
{
    if (view == V)
        return (7 * head + 3 * i + 5 * e + i * e % 7) % 5 - 2;
    return view == K ? bit_of(i, e) : 2 * bit_of(key_of(a, head, i), e);
}

static size_t bytes_of(const struct attention *a) { return MOST * vn_type_bytes(a->head.type); }

static vn_status fill(vn_queue *q, const struct attention *a, int view)
{
    const vn_tensor *const t = &a->t[view];
    void *room;
    vn_status s = vn__trial_room(&room, bytes_of(a));

    if (s)
        return s;
    for (int h = 0; h < t->extent[1]; h++)
        for (int i = 0; i < t->extent[2]; i++)
            for (int e = 0; e < t->extent[3]; e++)
                vn__trial_encode(room, t->type, (size_t)(h * t->stride[1] + i * t->stride[2] + e),
                                 element(a, view, h, i, e));
    s = q->device->backend->write(q, t->buffer, 0, room, bytes_of(a), 1);
    free(room);
    return s;
}

static vn_status compare_elements(const struct attention *a, const void *room)
{
    const vn_tensor *const t = &a->t[OUT];

    for (int h = 0; h < a->heads; h++)
        for (int i = 0; i < QUERIES; i++)
            for (int e = 0; e < t->extent[3]; e++) {
                const double x = vn__trial_decode(room, t->type,
                                                  (size_t)(h * t->stride[1] + i * t->stride[2] + e));
                const int key = key_of(a, h, i);
                const int wanted = key < 0 ? 0 : element(a, V, (int)(h / a->group), key, e);

                if (x != wanted)
                    return vn__fail(VN_UNSUPPORTED, "a trial attention came out wrong at head %d, query %d, "
                                    "element %d: %g for %d", h, i, e, x, wanted);
            }
    return VN_OK;
}

static vn_status compare(vn_queue *q, const struct attention *a)
{
    const size_t bytes = bytes_of(a);
    void *room;
    vn_status s = vn__trial_room(&room, bytes);

    if (s)
        return s;
    if ((s = q->device->backend->read(q, room, a->t[OUT].buffer, 0, bytes, 1)) == VN_OK)
        s = compare_elements(a, room);
    free(room);
    return s;
}

/* As large as the kernel's heads.  Of the largest there are fewer. */
static void lay_out(struct attention *a, int size)
{
    const int64_t sizes[] = { [Q] = QUERIES, [K] = KEYS, [V] = KEYS, [OUT] = QUERIES };

    a->heads = size > LARGEST / 2 ? HEADS / 2 : HEADS;
    a->group = HEADS / SHARED;
    a->d = a->dv = size;
    for (int i = Q; i <= OUT; i++) {
        const int64_t heads = i == K || i == V ? a->heads / a->group : a->heads;
        vn_tensor *const t = &a->t[i];

        *t = (vn_tensor){ .buffer = t->buffer, .type = a->head.type, .rank = 4,
                          .extent = { 1, heads, sizes[i], size },
                          .stride = { sizes[i] * heads * size, size, heads * size, 1 } };
    }
    a->t[MASK] = a->t[Q];
    a->t[LSE] = a->t[OUT];
}

/* The constants that the kernels were built with. */
static int has_shape(const struct attention *a, const struct vn_choice *it, const struct vn_facts *f)
{
    int c[VN_CONSTANTS] = { 0 };

    it->variant->constants_of(c, a);
    return !it->variant->fits(a, f) && !memcmp(c, it->c, sizeof c);
}

/* Keys and values as pages of so many, which are in order. */
static void lay_out_pages(struct attention *a, int page)
{
    a->page = page;
    a->page_count = page ? KEYS / page : 0;
    a->pages.buffer = page ? a->sinks.buffer : NULL;
    for (int i = K; i <= V && page; i++) {
        a->t[i].extent[0] = KEYS / page;
        a->t[i].extent[2] = page;
        a->t[i].stride[0] = page * a->t[i].stride[2];
    }
}

/* What a call may ask for, by bits: causal, a softcap that no score comes near, sinks, pages. */
static void ask(struct attention *a, int size, int bits)
{
    enum { CAP = 1 << 16, PAGE = 8 };

    a->causal = a->last = bits & 1;
    a->offset = a->causal ? KEYS - QUERIES : 0;
    a->softcap = bits & 2 ? CAP : 0;
    a->has_sinks = (bits & 4) != 0;
    lay_out(a, size);
    lay_out_pages(a, bits & 8 ? PAGE : 0);
}

/* A plan says whether the row takes heads of that size. */
static vn_status run(vn_queue *q, const struct vn_choice *it, struct attention *a)
{
    enum { SIZES = 8, ASKED = 16 };
    static const int sizes[SIZES] = { LARGEST - 8, 120, 88, 56,
                                      LARGEST - 9, 119, 87, 55 };       /* rows that are no whole vectors */
    struct vn_plan plan;
    vn_status s = VN_UNSUPPORTED;
    int bits = 0;

    for (int i = 0; i < ASKED * SIZES && s == VN_UNSUPPORTED; i++) {
        bits = i % ASKED;
        ask(a, sizes[i / ASKED], bits);
        s = has_shape(a, it, &q->device->facts) ? vn__plan(&plan, q, it, a) : VN_UNSUPPORTED;
        if (s == VN_UNSUPPORTED)
            continue;
        lay_out(a, sizes[i / ASKED]);           /* as it is in memory */
        break;
    }
    if (s)
        return s == VN_UNSUPPORTED ? vn__fail(s, "no layout of the trial attention fits the variant") : s;
    for (int i = Q; i <= V; i++)
        if ((s = fill(q, a, i)))
            return s;
    ask(a, (int)a->d, bits);
    if ((s = it->variant->run(q, it, a, &plan)) || (s = q->device->backend->finish(q)))
        return s;
    return compare(q, a);
}

/* Behind the sinks, so low that they add nothing, the numbers of the pages. */
static vn_status fill_more(vn_queue *q, struct attention *a)
{
    struct { float sinks[HEADS]; int32_t pages[KEYS]; } data;

    for (int i = 0; i < HEADS; i++)
        data.sinks[i] = -30000;
    for (int i = 0; i < KEYS; i++)
        data.pages[i] = i;
    a->sinks.extent[0] = HEADS;
    a->sinks.stride[0] = 1;
    a->pages = (vn_ints){ NULL, HEADS, KEYS, 1, 4, 0 };
    return q->device->backend->write(q, a->sinks.buffer, 0, &data, sizeof data, 1);
}

vn_status vn__trial_attention(vn_queue *q, const struct vn_choice *it, vn_type type)
{
    struct attention a = { .head = { .op = "attention", .type = type }, .batches = 1, .heads = HEADS,
                           .group = HEADS / SHARED, .queries = QUERIES, .keys = KEYS,
                           .scale = type == VN_F32 ? 2 * SCALE : SCALE,    /* f32 has smaller weights */
                           .units = q->device->facts.units };
    vn_status s = VN_OK;

    for (int i = Q; i <= OUT && s == VN_OK; i++)
        s = vn__buffer_open(&a.t[i].buffer, q->device, bytes_of(&a), NULL);
    if (s == VN_OK)
        s = vn__buffer_open(&a.sinks.buffer, q->device, (HEADS + KEYS) * sizeof(float), NULL);
    if (s == VN_OK && (s = fill_more(q, &a)) == VN_OK)
        s = run(q, it, &a);
    vn__buffer_close(a.sinks.buffer);
    for (int i = Q; i <= OUT; i++)
        vn__buffer_close(a.t[i].buffer);
    return s;
}
