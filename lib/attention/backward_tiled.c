/* SPDX-License-Identifier: Apache-2.0
 *
 * backward_tiled.c - the gradients of attention by fused multiply-adds, on devices with local memory.
 */
#include "backward.h"

/* Parameters by their place, as the table names them. */
enum { BLK_M, BLK_N, BLK_K, THR_M, THR_N };

/* Gradients by keys, of keys and values; or by queries, of those. */
static vn_status launch(vn_queue *q, const struct vn_choice *it, const struct attention *a, int by_keys)
{
    const vn_tensor *const pairs[2][2] = { { &a->t[Q], &a->gradient[D_OUT] }, { &a->t[K], &a->t[V] } };
    const int64_t rows = by_keys ? a->keys : a->queries, heads = by_keys ? a->t[K].extent[1] : a->heads;
    const int *const p = it->p;
    struct vn_launch l = {
        .groups = { VN_CEIL_DIV(rows, p[BLK_M]), heads, a->batches },
        .items = p[BLK_M] / p[THR_M] * (p[BLK_N] / p[THR_N]),
    };

    if (rows * heads == 0)
        return VN_OK;
    vn__arg_int(&l, a->queries);
    vn__arg_int(&l, a->keys);
    vn__arg_int(&l, a->d);
    vn__arg_int(&l, a->dv);
    vn__arg_int(&l, a->group);
    vn__arg_int(&l, a->causal);
    vn__arg_int(&l, a->offset);
    vn__arg_int(&l, a->window);
    vn__arg_real(&l, a->head.type, a->scale);
    vn__arg_real(&l, a->head.type, a->softcap);
    for (int i = 0; i < 4; i++)
        vn__arg_tensor(&l, pairs[i / 2 ^ by_keys][i % 2]);
    vn__arg_tensor(&l, &a->t[OUT]);
    vn__arg_tensor(&l, &a->t[LSE]);
    vn__arg_tensor(&l, &a->t[MASK]);
    vn__arg_int(&l, a->has_mask);
    vn__arg_int(&l, by_keys);
    for (int i = D_K; i <= D_V; i++) {
        const int gradient = by_keys ? i : D_Q;

        vn__arg_tensor(&l, &a->gradient[gradient]);
        vn__arg_int(&l, (by_keys || i == D_K) && a->wanted >> gradient & 1);
    }
    return vn__launch(q, it, 0, &l);
}

vn_status vn__run_attention_backward(vn_queue *q, const struct vn_choice *it, const void *problem,
                                     const struct vn_plan *plan)
{
    const struct attention *a = problem;
    const int of_keys = a->wanted & (1 << D_K | 1 << D_V);
    const vn_status s = of_keys ? launch(q, it, a, 1) : VN_OK;

    (void)plan;
    return s || !(a->wanted >> D_Q & 1) ? s : launch(q, it, a, 0);
}
