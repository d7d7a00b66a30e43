/* SPDX-License-Identifier: Apache-2.0
 *
 * backward_cpu.c - the gradients of attention on CPUs: blocks of keys of a head, in splits.
 */
#include "backward.h"

/* Parameters by their place, as the table names them. */
enum { THR_M, THR_V, VEC, BLK_M, BLK_N };
enum { GRADIENTS_OF_HEAD, GATHER };             /* kernels */
enum { SPLITS };                                /* of a plan: work-groups of a head of keys */

/* Bytes of local memory. */
static size_t local_bytes(const int *p, int64_t head, int64_t real)
{
    const int64_t rows = 3 * (int64_t)p[BLK_N] + 2 * (int64_t)p[BLK_M];

    return (size_t)(real * ((rows + p[BLK_N]) * (head + p[VEC]) + p[BLK_N] * head + p[THR_M] * head
                            + 2 * p[BLK_N] * (p[BLK_M] + p[THR_M])));
}

const char *vn__plan_attention_backward_cpu(struct vn_plan *out, const void *problem,
                                            const struct vn_row *row, const struct vn_site *site)
{
    const struct attention *a = problem;
    const int *const p = row->p;
    const int64_t head = vn__attention_head(a), real = a->head.type == VN_F64 ? 8 : 4;
    const int64_t groups = a->batches * a->t[K].extent[1], blocks = VN_CEIL_DIV(a->keys, p[BLK_N]);
    const int64_t most = groups ? VN_CEIL_DIV(4 * (int64_t)site->facts->units, groups) : 1;
    int64_t bytes;

    out->seconds = -1;
    if (local_bytes(p, head, real) > site->facts->local_bytes)
        return "its blocks do not fit into the local memory";
    out->v[SPLITS] = most < blocks ? most : blocks;
    if (!vn__mul(&bytes, VN_CEIL_DIV(a->queries, p[BLK_M]) * p[BLK_M], head * real) ||
        !vn__mul(&bytes, bytes, a->batches * a->heads) || !vn__mul(&bytes, bytes, out->v[SPLITS]))
        return "its sums of the gradient of queries overflow";
    out->seconds = 0;                           /* nobody has a model of it */
    out->workspace = (size_t)bytes;
    return NULL;
}

static vn_status by_keys(vn_queue *q, const struct vn_choice *it, const struct attention *a, int64_t splits,
                         vn_buffer *sums)
{
    struct vn_launch l = { .groups = { splits, a->t[K].extent[1], a->batches }, .items = 1 };

    vn__attention_begin(&l, a);
    vn__arg_int(&l, a->has_mask);
    vn__arg_int(&l, a->wanted >> D_Q);
    vn__arg_int(&l, splits);
    vn__arg_int(&l, a->heads);
    vn__arg_tensor(&l, &a->gradient[D_OUT]);
    vn__arg_tensor(&l, &a->gradient[D_K]);
    vn__arg_tensor(&l, &a->gradient[D_V]);
    vn__arg_buffer(&l, sums);
    return vn__launch(q, it, GRADIENTS_OF_HEAD, &l);
}

static vn_status gather(vn_queue *q, const struct vn_choice *it, const struct attention *a, int64_t splits,
                        vn_buffer *sums)
{
    struct vn_launch l = { .groups = { VN_CEIL_DIV(a->queries, it->p[BLK_M]), a->heads, a->batches },
                           .items = 1 };

    vn__arg_int(&l, a->queries);
    vn__arg_int(&l, a->d);
    vn__arg_int(&l, a->heads);
    vn__arg_int(&l, splits);
    vn__arg_real(&l, a->head.type, a->scale);
    vn__arg_buffer(&l, sums);
    vn__arg_tensor(&l, &a->gradient[D_Q]);
    return vn__launch(q, it, GATHER, &l);
}

vn_status vn__run_attention_backward_cpu(vn_queue *q, const struct vn_choice *it, const void *problem,
                                         const struct vn_plan *plan)
{
    const struct attention *a = problem;
    vn_buffer *sums;
    vn_status s = vn__workspace(&sums, q, plan->workspace ? plan->workspace : 1);

    if (s || (a->keys && a->t[K].extent[1] && a->batches && (s = by_keys(q, it, a, plan->v[SPLITS], sums))))
        return s;
    return a->wanted >> D_Q & 1 && a->queries && a->heads && a->batches
         ? gather(q, it, a, plan->v[SPLITS], sums) : VN_OK;
}
