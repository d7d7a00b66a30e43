/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu.c - attention on CPUs: keys and values are packed, once for all queries of their head.
 */
#include "attention.h"

/* Parameters by their place, as the table names them. */
enum { THR_M, THR_V, VEC, BLK_M, BLK_N };
enum { PACK, ATTENTION };                       /* kernels */

/* Panels of a head: `width` elements across, in panels of `each`, and `depth` along. */
struct panels { int64_t width, depth, panel, head, heads, start; };

/* 0 where they overflow. */
static int panels_of(struct panels *out, int64_t width, int64_t depth, int each, const struct attention *a)
{
    *out = (struct panels){ .width = width, .depth = depth, .panel = depth * each,
                            .heads = a->batches * (a->heads / a->group) };
    return vn__mul(&out->head, VN_CEIL_DIV(width, each), out->panel);
}

/* Those of keys, then those of values; their bytes, or 0 where they overflow. */
static size_t panels_of_both(struct panels out[2], const struct attention *a, const int *p)
{
    const int each = p[THR_V] * p[VEC];
    const int64_t real = a->head.type == VN_F64 ? 8 : 4;
    int64_t keys, values;

    if (!panels_of(&out[0], a->keys, a->d, each, a) || !panels_of(&out[1], a->dv, a->keys, each, a) ||
        !vn__mul(&keys, out[0].head, out[0].heads) || !vn__mul(&values, out[1].head, out[1].heads) ||
        keys > INT64_MAX / 64 || values > INT64_MAX / 64)
        return 0;
    out[1].start = keys;
    return (size_t)((keys + values) * real);
}

const char *vn__plan_attention_cpu(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                   const struct vn_site *site)
{
    const struct attention *a = problem;
    struct panels panels[2];

    (void)site;
    if ((out->workspace = panels_of_both(panels, a, row->p)) || !a->keys)
        return NULL;
    out->seconds = -1;
    return "its panels of keys and values overflow";
}

static void arg_panels(struct vn_launch *l, const struct panels *p)
{
    vn__arg_view(l, (int64_t[8]){ [0] = p->start, [4] = p->head, [5] = p->panel });
}

/* across: the dimension of the view across panels. */
static vn_status pack(vn_queue *q, const struct vn_choice *it, const vn_tensor *t, int across,
                      const struct panels *p, int each, vn_buffer *to)
{
    enum { BLOCK = 1024 };                      /* of the depth, in a work-group */
    struct vn_launch l = { .groups = { VN_CEIL_DIV(p->width, each), VN_CEIL_DIV(p->depth, BLOCK), p->heads },
                           .items = 1 };
    vn_tensor turned = *t;

    turned.stride[2] = t->stride[across];
    turned.stride[3] = t->stride[5 - across];
    vn__arg_int(&l, p->width);
    vn__arg_int(&l, p->depth);
    vn__arg_int(&l, BLOCK);
    vn__arg_int(&l, t->extent[1]);
    vn__arg_tensor(&l, &turned);
    vn__arg_buffer(&l, to);
    arg_panels(&l, p);
    return vn__launch(q, it, PACK, &l);
}

vn_status vn__run_attention_cpu(vn_queue *q, const struct vn_choice *it, const void *problem,
                                const struct vn_plan *plan)
{
    const struct attention *a = problem;
    const int each = it->p[THR_V] * it->p[VEC];
    struct vn_launch l = { .groups = { VN_CEIL_DIV(a->queries, it->p[BLK_M]), a->heads, a->batches },
                           .items = 1 };
    struct panels panels[2];
    vn_buffer *scratch;
    vn_status s;

    panels_of_both(panels, a, it->p);
    if ((s = vn__workspace(&scratch, q, plan->workspace ? plan->workspace : 1)))
        return s;
    if (a->keys && ((s = pack(q, it, &a->t[K], 2, &panels[0], each, scratch)) ||
                    (s = pack(q, it, &a->t[V], 3, &panels[1], each, scratch))))
        return s;
    vn__attention_begin(&l, a);
    vn__attention_more(&l, a);
    vn__arg_int(&l, a->heads / a->group);
    vn__arg_buffer(&l, scratch);
    arg_panels(&l, &panels[0]);
    arg_panels(&l, &panels[1]);
    return vn__launch(q, it, ATTENTION, &l);
}
