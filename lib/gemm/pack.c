/* SPDX-License-Identifier: Apache-2.0
 *
 * pack.c - B in the layout that a variant wants: in its workspace for once, in a vn_pack for good.
 *
 * A variant says its layout, and how to make it (struct vn_layout).  vn_pack_open() lets the library
 * choose as if B lay in whatever layout is wanted, and makes that one.  A product that is given the
 * pack is chosen for as every other is, save that variants which want B so may pay sooner; where the
 * one chosen wants it in another layout, or as it lies, the pack is left alone.
 */
#include "gemm.h"

enum { ALIGNED = 64 };                          /* bytes: any vector */

/* ---- where B lies ------------------------------------------------------------------ */

int vn__is_packed_as(const struct gemm *g, const struct vn_layout *l)
{
    return g->to_pack || (g->pack && vn__same_layout(&g->packed, l));
}

static size_t after(size_t own)
{
    return own > SIZE_MAX - ALIGNED ? SIZE_MAX : (own + ALIGNED - 1) / ALIGNED * ALIGNED;
}

size_t vn__workspace_and_b(const struct gemm *g, size_t own, const struct vn_layout *l)
{
    if (vn__is_packed_as(g, l))
        return own;
    return after(own) > SIZE_MAX - l->bytes ? SIZE_MAX : after(own) + l->bytes;
}

vn_status vn__lay_out_b(vn_buffer **b, size_t *at, vn_buffer **workspace, vn_queue *q,
                        const struct vn_choice *it, const struct gemm *g, size_t own)
{
    const struct vn_layout l = it->variant->layout(g, it->p);
    const vn_status s = vn__workspace(workspace, q, vn__workspace_and_b(g, own, &l));

    if (s)
        return s;
    if (!l.bytes || vn__is_packed_as(g, &l)) {
        q->packed_used = l.bytes;
        *b = g->pack;
        *at = 0;
        return VN_OK;
    }
    *b = *workspace;
    *at = after(own);
    return l.pack(q, it, g, *b, *at);
}

/* ---- given to a product ------------------------------------------------------------- */

vn_status vn__gemm_take(struct gemm *g, const vn_queue *q, const vn_pack *pack)
{
    const vn_status s = vn__pack_check(pack, q, "options.packed_b");
    vn_tensor b;

    if (s)
        return s;
    b = pack->of;
    if (b.rank != g->b.rank || vn__gemm_batches(&b, "options.packed_b", &g->c) || !vn__same_view(&b, &g->b))
        return vn__fail(VN_INVALID,
                        "options.packed_b was made of another view than B; it needs the buffer, start, "
                        "extents and strides of B, as vn_pack_open() got them");
    g->pack = pack->buffer;
    g->packed = pack->layout;
    return VN_OK;
}

/* ---- made ---------------------------------------------------------------------------- */

/* Row-major rows x cols, with the batches of `like`; its buffer is not there yet. */
static int in_rows(vn_tensor *t, const vn_tensor *like, int64_t rows, int64_t cols)
{
    int64_t step = 1;

    *t = *like;
    t->buffer = NULL;
    t->start = 0;
    t->extent[t->rank - 2] = rows;
    t->extent[t->rank - 1] = cols;
    for (int i = t->rank - 1; i >= 0; i--) {
        t->stride[i] = step;
        if (!vn__mul(&step, step, t->extent[i]))
            return 0;
    }
    return vn__mul(&step, step, (int64_t)vn_type_bytes(t->type));
}

/* The product that is expected. */
static vn_status expect(struct gemm *g, const vn_queue *q, int64_t m, const vn_gemm_options *o)
{
    vn_status s;

    if ((s = vn__handle_check(q, VN_QUEUE, "queue")) ||
        (s = vn__check_tensor(&g->b, "B", q, 2, VN_RANK, 0)) ||
        (s = vn__check_enum((int)o->math, VN_MATH_COUNT, "options.math")))
        return s;
    if (m < 0)
        return vn__fail(VN_INVALID, "m is %lld; it needs the rows that A will have, 0 or more", (long long)m);
    g->head.type = g->b.type;
    g->math = o->math;
    g->m = m;
    g->n = g->b.extent[g->b.rank - 1];
    g->k = g->b.extent[g->b.rank - 2];
    g->batches = 1;
    if (!in_rows(&g->a, &g->b, g->m, g->k) || !in_rows(&g->c, &g->b, g->m, g->n))
        return vn__fail(VN_INVALID, "m is %lld; A or C would overflow 63 bits", (long long)m);
    for (int i = 0; i < g->b.rank - 2; i++)
        g->batches *= g->b.extent[i];           /* cannot wrap: nor did C */
    vn__gemm_size_up(g);
    return VN_OK;
}

static vn_status pack_open(vn_pack **out, vn_queue *q, const vn_tensor *b, int64_t m,
                           const vn_gemm_options *o)
{
    struct gemm g = { .head = { .op = "gemm" }, .alpha = 1, .b = *b, .to_pack = 1 };
    const struct vn_choice *it = NULL;
    const struct vn_plan *plan;
    vn_status s = expect(&g, q, m, o);

    if (s == VN_OK && g.m && g.n && g.k && g.batches)
        s = vn__choose(&it, &plan, q, vn__gemm_variants, &g, sizeof g, o->variant);
    return s ? s : vn__pack_open(out, q, b, "B", it, &g);
}

vn_status vn_pack_open(vn_pack **out, vn_queue *q, vn_tensor b, int64_t m, const vn_gemm_options *o)
{
    static const vn_gemm_options usual;
    vn_status s;

    if ((s = vn__enter("vn_pack_open")))
        return s;
    if (!out)
        return vn__fail(VN_INVALID, "out is NULL; it needs the address of a vn_pack *");
    *out = NULL;
    return vn__leave(pack_open(out, q, &b, m, o ? o : &usual));
}
