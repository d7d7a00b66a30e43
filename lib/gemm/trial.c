/* SPDX-License-Identifier: Apache-2.0
 *
 * trial.c - a variant that rests on more than the language promises proves itself once.
 *
 * A matrix engine is believed when a small product in integers comes out exactly, edges
 * included; not because of a name or an extension string.
 */
#include <stdlib.h>
#include <string.h>

#include "gemm.h"

enum { M = 136, N = 264, K = 104, MOST = 136 * 264 };   /* MOST: elements of the largest matrix */

static int entry(int i, int j) { return (7 * i + 3 * j + i * j % 5) % 5 - 2; }

/* Sums of up to K products of at most 4 need more bits than bf16 has: thin them out. */
static int a_of(int m, int k) { return k % 8 == m % 8 ? entry(m, k) : 0; }
static int b_of(int k, int n) { return entry(k + 1, n); }

static vn_status fill(vn_queue *q, vn_tensor *t, vn_type type, int (*of)(int, int))
{
    const size_t bytes = MOST * vn_type_bytes(type);
    void *room;
    vn_status s = vn__trial_room(&room, bytes);

    if (s)
        return s;
    for (int i = 0; i < t->extent[0]; i++)
        for (int j = 0; j < t->extent[1]; j++)
            vn__trial_encode(room, type, (size_t)(i * t->stride[0] + j * t->stride[1]), of(i, j));
    s = q->device->backend->write(q, t->buffer, 0, room, bytes, 1);
    free(room);
    return s;
}

/* What the epilogue reads: entries of a matrix of C's extents, or of one row or column of it. */
static int scale_of(int m, int n) { return 1 + (m + n) % 2; }

static double side(int (*of)(int, int), int which, int m, int n)
{
    return of(which == VN_SAME_ROWS ? 0 : m, which == VN_SAME_COLUMNS ? 0 : n);
}

/* Before the activation. */
static double expected(const struct gemm *g, int m, int n)
{
    const struct vn_epilogue *e = &g->head.epilogue;
    double x = 0;

    for (int k = m % 8; k < K; k += 8)
        x += a_of(m, k) * b_of(k, n);
    if (e->scale)
        x *= side(scale_of, e->scale, m, n);
    if (e->residual)
        x += g->beta * side(entry, e->residual, m, n);
    if (e->bias)
        x += side(entry, e->bias, m, n);
    return x;
}

static vn_status compare_elements(const struct gemm *g, const void *room)
{
    for (int m = 0; m < g->m; m++)
        for (int n = 0; n < N; n++) {
            const double x = vn__trial_decode(room, g->c.type, (size_t)(m * N + n));
            const double wanted = expected(g, m, n);

            if (!vn__trial_is_right(g->head.epilogue.act, x, wanted))
                return vn__fail(VN_UNSUPPORTED,
                                "a trial product came out wrong at row %d, column %d: %g of a sum of %g", m,
                                n, x, wanted);
        }
    return VN_OK;
}

static vn_status compare(vn_queue *q, const struct gemm *g)
{
    const size_t bytes = (size_t)g->m * N * vn_type_bytes(g->c.type);
    void *room;
    vn_status s = vn__trial_room(&room, bytes);

    if (s)
        return s;
    if ((s = q->device->backend->read(q, room, g->c.buffer, 0, bytes, 1)) == VN_OK)
        s = compare_elements(g, room);
    free(room);
    return s;
}

static int has_constants(const struct gemm *g, const struct vn_choice *it)
{
    int c[VN_CONSTANTS] = { 0 };

    if (it->variant->constants_of)
        it->variant->constants_of(c, g);
    return vn__constants_suit(it->variant, it->c, c);
}

/* Transposed or not; odd: with rows that end at no multiple of 16 bytes. */
static vn_tensor view_of(const vn_tensor *t, vn_type type, int rows, int cols, int transposed, int odd)
{
    vn_tensor v = transposed ? vn_matrix(t->buffer, type, cols, rows)
                             : vn_matrix(t->buffer, type, rows, cols);

    v.stride[0] += odd;
    return transposed ? vn_transpose(v) : v;
}

/* In the shape that this kernel takes: all of C, or fewer of its rows; A, B or both transposed; and
 * in its kind of math; with rows that end at multiples of 16 bytes, or not.                       */
static int lay_out(struct gemm *g, const struct vn_choice *it, const struct vn_facts *f)
{
    static const int rows[] = { M, 48, 40, 32, 24, 16, 8 };

    for (int which = 0; which < 32 * (int)(sizeof rows / sizeof *rows); which++) {
        const int m = rows[which / 32], odd_a = which / 8 & 1, odd_b = which / 16 & 1;

        g->math = which & 4 ? VN_MATH_TF32 : VN_MATH_DEFAULT;
        g->m = m;
        g->c = vn_matrix(g->c.buffer, g->c.type, m, N);
        g->a = view_of(&g->a, g->head.type, m, K, which & 2, odd_a);
        g->b = view_of(&g->b, g->head.type, K, N, which & 1, odd_b);
        g->head.epilogue = it->epilogue;
        g->head.epilogue = vn__epilogue_of(it->variant, g);     /* which turns back what is turned */
        g->residual = vn_matrix(NULL, (vn_type)g->head.epilogue.type_residual, m, N);
        if (!it->variant->fits(g, f) && has_constants(g, it))
            return 1;
    }
    return 0;
}

/* Gives the epilogue what it reads: a tensor with the extents of C, whose buffer the caller closes. */
static vn_status add_side(vn_queue *q, vn_tensor *t, int which, int type, const struct gemm *g,
                          int (*of)(int, int))
{
    vn_status s;

    if (!which)
        return VN_OK;
    *t = vn_matrix(NULL, (vn_type)type, g->m, N);
    if ((s = vn__buffer_open(&t->buffer, q->device, M * N * vn_type_bytes(t->type), NULL)) ||
        (s = fill(q, t, t->type, of)))
        return s;
    if (which != VN_FULL)
        t->stride[which == VN_SAME_ROWS ? 0 : 1] = 0;
    return VN_OK;
}

static vn_status add_sides(vn_queue *q, struct gemm *g)
{
    const struct vn_epilogue *e = &g->head.epilogue;
    vn_status s;

    g->activation = (vn_activation)e->act;
    g->beta = e->residual != 0;
    g->has_bias = e->bias != 0;
    g->has_scale = e->scale != 0;
    if ((s = add_side(q, &g->scale, e->scale, g->c.type == VN_F64 ? VN_F64 : VN_F32, g, scale_of)) ||
        (s = add_side(q, &g->residual, e->residual, e->type_residual, g, entry)))
        return s;
    return add_side(q, &g->bias, e->bias, e->type_bias, g, entry);
}

static vn_status run(vn_queue *q, const struct vn_choice *it, struct gemm *g)
{
    struct vn_plan plan;
    vn_status s;

    if (!lay_out(g, it, &q->device->facts))
        return vn__fail(VN_UNSUPPORTED, "no layout of the trial product fits the variant");
    if ((s = add_sides(q, g)) || (s = fill(q, &g->a, g->head.type, a_of)) ||
        (s = fill(q, &g->b, g->head.type, b_of)) ||
        (s = vn__plan(&plan, q, it, g)) || (s = it->variant->run(q, it, g, &plan)) ||
        (s = q->device->backend->finish(q)))
        return s;
    return compare(q, g);
}

vn_status vn__trial_gemm(vn_queue *q, const struct vn_choice *it, vn_type type)
{
    const size_t bytes = MOST * vn_type_bytes(type);
    struct gemm g = { .head = { .op = "gemm", .type = type }, .m = M, .n = N, .k = K, .batches = 1,
                      .alpha = 1 };
    vn_buffer *a = NULL, *b = NULL, *c = NULL;
    vn_status s;

    if ((s = vn__buffer_open(&a, q->device, bytes, NULL)) == VN_OK &&
        (s = vn__buffer_open(&b, q->device, bytes, NULL)) == VN_OK &&
        (s = vn__buffer_open(&c, q->device, M * N * sizeof(double), NULL)) == VN_OK) {
        g.a.buffer = a;
        g.b.buffer = b;
        g.c = vn_matrix(c, (vn_type)it->epilogue.type_c, M, N);
        s = run(q, it, &g);
    }
    vn__buffer_close(g.scale.buffer);
    vn__buffer_close(g.residual.buffer);
    vn__buffer_close(g.bias.buffer);
    vn__buffer_close(a);
    vn__buffer_close(b);
    vn__buffer_close(c);
    return s;
}
