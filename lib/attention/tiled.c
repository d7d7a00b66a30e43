/* SPDX-License-Identifier: Apache-2.0
 *
 * tiled.c - attention by fused multiply-adds, on devices with local memory.
 */
#include "attention.h"

/* Parameters by their place, as the table names them. */
enum { BLK_M, BLK_N, BLK_K, THR_M, THR_N };

vn_status vn__run_attention(vn_queue *q, const struct vn_choice *it, const void *problem,
                            const struct vn_plan *plan)
{
    const struct attention *a = problem;
    const int *p = it->p;
    struct vn_launch l = {
        .groups = { VN_CEIL_DIV(a->queries, p[BLK_M]), a->heads, a->batches },
        .items = p[BLK_M] / p[THR_M] * (p[BLK_N] / p[THR_N]),
    };

    (void)plan;
    vn__attention_begin(&l, a);
    vn__attention_more(&l, a);
    return vn__launch(q, it, 0, &l);
}
