/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16x3.c - the variant gemm_bf16x3: f32 by the bf16 matrix engine of NVIDIA's sm_90.
 *
 * A pass over each operand splits it into three bf16 parts, in panels; the product adds six products
 * of parts.
 */
#include <limits.h>
#include <string.h>

#include "bf16x3.h"
#include "gemm.h"

enum { BLK_N, BLK_K, STAGES, WARPGROUPS };      /* its parameters */
enum { MOVE = VN_TILE_COSTS };                  /* its cost column after the tiles': of
                                                   splitting an operand */
enum { SPLIT_SPAN = 64, WARPGROUP_M = 64 };     /* SPLIT_SPAN: of K, for a work-group that splits */

int vn__bf16x3_panels(struct vn_bf16x3_side *s, const vn_tensor *t, int64_t per, int64_t blk_k)
{
    const int batches = t->rank - 2;

    *s = (struct vn_bf16x3_side){ .t = *t, .rows = t->extent[t->rank - 2], .per = per };
    s->steps = VN_CEIL_DIV(t->extent[t->rank - 1], blk_k) * (blk_k / 16);
    s->panels = VN_CEIL_DIV(s->rows, per);
    s->matrices = 1;
    for (int i = batches - 1; i >= 0; i--) {
        if (!s->t.stride[i])
            s->t.extent[i] = 1;
        s->view[7 - s->t.rank + i] = s->t.extent[i] > 1 ? s->matrices * s->panels : 0;
        if (!vn__mul(&s->matrices, s->matrices, s->t.extent[i]))
            return 0;
    }
    return vn__mul(&s->units, s->matrices, s->panels) && s->units <= INT_MAX &&
           vn__mul(&s->units, s->units, s->steps * 6) && vn__mul(&s->units, s->units, per);
}

static int sides(struct vn_bf16x3_side *a, struct vn_bf16x3_side *b, const struct gemm *g, const int *p)
{
    const vn_tensor columns_of_b = vn_transpose(g->b);

    return vn__bf16x3_panels(a, &g->a, WARPGROUP_M * (int64_t)p[WARPGROUPS], p[BLK_K]) &&
           vn__bf16x3_panels(b, &columns_of_b, p[BLK_N], p[BLK_K]);
}

size_t vn__bf16x3_bytes(const struct vn_bf16x3_side *s)
{
    int64_t bytes;

    return vn__mul(&bytes, s->units, VN_BF16X3_UNIT) ? (size_t)bytes : SIZE_MAX;
}

const char *vn__fits_bf16x3(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;
    const char *why;

    if (vn__sm(f) != 90)
        return "it needs an NVIDIA GPU of sm_90, for wgmma";
    if (g->head.type != VN_F32)
        return "it needs f32";
    if (g->k == 0)
        return "there is nothing to multiply";
    if ((why = vn__fits_order(g)) || (why = vn__fits_half_sizes(g)))
        return why;
    return g->k > INT_MAX / 16 ? "K must stay below 2^27" : NULL;
}

vn_status vn__bf16x3_launch_split(struct vn_launch *l, const struct vn_bf16x3_side *s, vn_buffer *parts,
                                  int span)
{
    const int64_t pieces = VN_CEIL_DIV(s->steps * 16, span);

    *l = (struct vn_launch){ .groups = { 1, 1, 1 }, .items = 256 };
    if (!vn__mul(&l->groups[0], s->panels * s->matrices, pieces) || l->groups[0] >= INT_MAX)
        return vn__fail(VN_UNSUPPORTED, "an operand has %lld panels in %lld pieces; a launch holds %d",
                        (long long)(s->panels * s->matrices), (long long)pieces, INT_MAX);
    vn__arg_int(l, s->rows);
    vn__arg_int(l, s->t.extent[s->t.rank - 1]);
    vn__arg_int(l, s->per);
    vn__arg_extents(l, &s->t);
    vn__arg_tensor(l, &s->t);
    vn__arg_buffer(l, parts);
    vn__arg_view(l, s->view);
    return VN_OK;
}

static vn_status split(vn_queue *q, const struct vn_choice *it, const struct vn_bf16x3_side *s,
                       vn_buffer *parts)
{
    struct vn_launch l = { .nargs = 0 };
    const vn_status status = vn__bf16x3_launch_split(&l, s, parts, SPLIT_SPAN);

    return status ? status : vn__launch(q, it, 0, &l);
}

static vn_status split_b(vn_queue *q, const struct vn_choice *it, const void *problem, vn_buffer *to,
                         size_t at)
{
    struct vn_bf16x3_side a, b;

    if (!sides(&a, &b, problem, it->p))
        return vn__fail(VN_UNSUPPORTED, "B has too many panels of %d columns", it->p[BLK_N]);
    b.view[7] = (int64_t)(at / VN_BF16X3_UNIT);
    return split(q, it, &b, to);
}

struct vn_layout vn__layout_bf16x3(const void *problem, const int *p)
{
    struct vn_bf16x3_side a, b;

    return (struct vn_layout){ split_b, p[BLK_N],
                               sides(&a, &b, problem, p) ? vn__bf16x3_bytes(&b) : SIZE_MAX };
}

/* ---- the plan --------------------------------------------------------------------------- */

double vn__bf16x3_peak(const struct vn_site *site)
{
    return site->rates->mma16 / 6;              /* products of parts */
}

/* An element is read in 4 bytes and written in 6. */
static double split_seconds(const struct gemm *g, int64_t rows, const struct vn_row *row,
                            const struct vn_site *site)
{
    return vn__launch_seconds(site) +
           vn__move_seconds((4.0 + 6.0) * (double)rows * (double)g->k * (double)g->batches,
                            row->cost[MOVE], site);
}

const char *vn__plan_bf16x3(struct vn_plan *out, const void *problem, const struct vn_row *row,
                            const struct vn_site *site)
{
    const struct vn_layout l = vn__layout_bf16x3(problem, row->p);
    const struct gemm *g = problem;
    const int *p = row->p;
    struct gemm parts = *g;
    struct vn_bf16x3_side a, b;

    if (!sides(&a, &b, g, p)) {
        out->seconds = -1;
        return "its panels have more than 2^31 vectors";
    }
    out->workspace = vn__workspace_and_b(g, vn__bf16x3_bytes(&a), &l);
    parts.head.bytes = 6.0 * (double)(g->m + g->n) * (double)g->k * (double)g->batches;
    out->seconds = vn__gemm_seconds(&parts, WARPGROUP_M * p[WARPGROUPS], p[BLK_N],
                                    VN_CEIL_DIV(g->k, p[BLK_K]) * p[BLK_K], (double)g->batches,
                                    vn__bf16x3_peak(site), 1, row, site);
    if (out->seconds > 0)
        out->seconds += split_seconds(g, g->m, row, site) +
                        (vn__is_packed_as(g, &l) ? 0 : split_seconds(g, g->n, row, site));
    return NULL;
}

/* ---- launches ---------------------------------------------------------------------------- */

vn_status vn__run_bf16x3(vn_queue *q, const struct vn_choice *it, const void *problem,
                         const struct vn_plan *plan)
{
    const struct gemm *g = problem;
    struct vn_launch l = { .groups = { 1, 1, 1 }, .items = 128 * it->p[WARPGROUPS] + 128 };
    struct vn_bf16x3_side a, b;
    vn_buffer *parts, *parts_b;
    size_t at;
    vn_status s;

    (void)plan;
    if (!sides(&a, &b, g, it->p) || !vn__mul(&l.groups[0], a.panels * b.panels, g->batches) ||
        l.groups[0] > INT_MAX)
        return vn__gemm_too_many(it, a.panels * b.panels, WARPGROUP_M * it->p[WARPGROUPS], it->p[BLK_N],
                                 INT_MAX);
    if ((s = vn__lay_out_b(&parts_b, &at, &parts, q, it, g, vn__bf16x3_bytes(&a))) ||
        (s = split(q, it, &a, parts)))
        return s;
    b.view[7] = (int64_t)(at / VN_BF16X3_UNIT);
    vn__gemm_sizes(&l, g);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__arg_tensor(&l, &g->a);
    vn__arg_tensor(&l, &g->b);
    vn__arg_buffer(&l, parts);
    vn__arg_view(&l, a.view);
    vn__arg_buffer(&l, parts_b);
    vn__arg_view(&l, b.view);
    vn__gemm_output(&l, g);
    return vn__launch(q, it, 1, &l);
}
