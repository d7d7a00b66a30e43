/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16x3.c - the variant gemm_split: f32 by the bf16 matrix engines of NVIDIA's sm_90.
 */
#include <limits.h>
#include <string.h>

#include "gemm.h"
#include "bf16x3.h"

enum { BLK_N, BLK_K, STAGES, WARPGROUPS };      /* its parameters */
enum { SPLIT_K = 64 };                          /* of a work-group that splits */
enum { MOST_FEW = 16 };                         /* rows for which B is read quicker than its parts */

int vn__split_lay_out(struct vn_side *s, const vn_tensor *t, int64_t per, int64_t blk_k)
{
    const int batches = t->rank - 2;

    *s = (struct vn_side){ .t = *t, .lines = t->extent[t->rank - 2], .per = per };
    s->steps = VN_CEIL_DIV(t->extent[t->rank - 1], blk_k) * (blk_k / 16);
    s->panels = VN_CEIL_DIV(s->lines, per);
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

static int sides(struct vn_side *a, struct vn_side *b, const struct gemm *g, const int *p)
{
    const vn_tensor lines_of_b = vn_transpose(g->b);

    return vn__split_lay_out(a, &g->a, 64 * (int64_t)p[WARPGROUPS], p[BLK_K]) &&
           vn__split_lay_out(b, &lines_of_b, p[BLK_N], p[BLK_K]);
}

size_t vn__split_bytes(const struct vn_side *s)
{
    int64_t bytes;

    return vn__mul(&bytes, s->units, VN_SPLIT_UNIT) ? (size_t)bytes : SIZE_MAX;
}

const char *vn__fits_split(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    if (strcmp(f->family, "nvidia") || strcmp(f->arch, "sm_90"))
        return "it needs an NVIDIA GPU of sm_90, for wgmma";
    if (g->head.type != VN_F32)
        return "it needs f32";
    if (g->math == VN_MATH_BITWISE)
        return "it sums in another order than VN_MATH_BITWISE promises";
    if (g->k == 0)
        return "there is nothing to multiply";
    if (g->m > INT_MAX / 2 || g->n > INT_MAX / 2 || g->k > INT_MAX / 16 || g->batches > INT_MAX / 2)
        return "M, N and the batches must stay below 2^30, K below 2^27";
    return NULL;
}

vn_status vn__split_launch(struct vn_launch *l, const struct vn_side *s, vn_buffer *parts, int span)
{
    const int64_t pieces = VN_CEIL_DIV(s->steps * 16, span);

    *l = (struct vn_launch){ .groups = { 1, 1, 1 }, .items = 256 };
    if (!vn__mul(&l->groups[0], s->panels * s->matrices, pieces) || l->groups[0] >= INT_MAX)
        return vn__fail(VN_UNSUPPORTED, "an operand has %lld panels in %lld pieces; a launch holds %d",
                        (long long)(s->panels * s->matrices), (long long)pieces, INT_MAX);
    vn__arg_int(l, s->lines);
    vn__arg_int(l, s->t.extent[s->t.rank - 1]);
    vn__arg_int(l, s->per);
    vn__arg_extents(l, &s->t);
    vn__arg_tensor(l, &s->t);
    vn__arg_buffer(l, parts);
    vn__arg_view(l, s->view);
    return VN_OK;
}

static vn_status split(vn_queue *q, const struct vn_choice *it, const struct vn_side *s, vn_buffer *parts)
{
    struct vn_launch l;
    const vn_status status = vn__split_launch(&l, s, parts, SPLIT_K);

    return status ? status : vn__launch(q, it, 0, &l);
}

static vn_status split_b(vn_queue *q, const struct vn_choice *it, const void *problem, vn_buffer *to, size_t at)
{
    struct vn_side a, b;

    if (!sides(&a, &b, problem, it->p))
        return vn__fail(VN_UNSUPPORTED, "B has too many panels of %d columns", it->p[BLK_N]);
    b.view[7] = (int64_t)(at / VN_SPLIT_UNIT);
    return split(q, it, &b, to);
}

struct vn_layout vn__layout_split(const void *problem, const int *p)
{
    struct vn_side a, b;

    return (struct vn_layout){ split_b, p[BLK_N], sides(&a, &b, problem, p) ? vn__split_bytes(&b) : SIZE_MAX };
}

size_t vn__workspace_split(const void *problem, const int *p)
{
    const struct vn_layout l = vn__layout_split(problem, p);
    struct vn_side a, b;

    return sides(&a, &b, problem, p) ? vn__workspace_and_b(problem, vn__split_bytes(&a), &l) : SIZE_MAX;
}

/* The kernel's tiles, and what one of K takes in each, in microseconds on an H100.  A compute unit makes
 * one at a time, so the best is the one whose last round leaves few idle.                          */
enum tile { TILE_64, TILE_128, TILE_192, TILE_COUNT };
static const struct { int m, n; double one; } tiles[TILE_COUNT] = {
    [TILE_64] = { 64, 128, 0.0206 }, [TILE_128] = { 128, 128, 0.0338 }, [TILE_192] = { 128, 192, 0.0456 } };

static int64_t tiles_of(enum tile t, const struct gemm *g)
{
    return VN_CEIL_DIV(g->m, tiles[t].m) * VN_CEIL_DIV(g->n, tiles[t].n) * g->batches;
}

static double time_of(enum tile t, const struct gemm *g)
{
    return (double)VN_CEIL_DIV(tiles_of(t, g), g->units) * (double)g->k * tiles[t].one;
}

static const double MEMORY = 2.7e6;             /* bytes in a microsecond */

/* A number is read in 4 bytes and written in 6. */
static double time_to_split(const struct gemm *g)
{
    static const double launches = 8;
    const double lines = (double)g->m + (vn__is_packed_by(g, split_b) ? 0 : (double)g->n);

    return launches + lines * (double)g->k * (double)g->batches * (4 + 6) / MEMORY;
}

/* B as it is packed does for tiles of its width only. */
static int serves(enum tile t, const struct gemm *g)
{
    return !g->pack || g->packed.pack != split_b || g->packed.lines == tiles[t].n;
}

/* Parts are read at least once. */
double vn__time_split(const struct gemm *g)
{
    const double least = (double)(g->m + g->n) * (double)g->k * (double)g->batches * 6 / MEMORY;
    double best = time_of(TILE_64, g);

    for (int t = 0; t < TILE_COUNT; t++)
        if (time_of(t, g) < best)
            best = time_of(t, g);
    return (best > least ? best : least) + time_to_split(g);
}

/* Rows that gemm_skinny_mma takes, too; it is slower where tiles of 64 rows keep most units busy. */
int vn__gains_split_packed(const struct gemm *g)
{
    return vn__is_packed_by(g, split_b) && g->math == VN_MATH_DEFAULT && g->m > MOST_FEW &&
           4 * tiles_of(TILE_64, g) >= 3 * (int64_t)g->units;
}

/* Splitting costs as M K + K N, what it saves as M N K; a pack of B leaves M K. */
static const char *pays(const void *problem, const struct vn_facts *f, enum tile mine)
{
    const struct gemm *g = problem;
    const double sums = (double)g->m * (double)g->n * (double)g->batches;
    const int least = vn__is_packed_by(g, split_b) ? MOST_FEW + 1 : 128;

    (void)f;
    if (g->m < least || g->n < 128 || sums < 512 * 512 || g->k < 256)
        return "M or N is below 128, M N below 512 x 512, or K below 256: splitting costs more than it saves";
    if (!serves(mine, g))
        return "B is packed for tiles of another size";
    for (int t = 0; t < TILE_COUNT; t++)
        if (serves(t, g) && time_of(t, g) < time_of(mine, g))
            return "tiles of another size keep more of the device busy";
    if (vn__time_fma(g) < time_of(mine, g) + time_to_split(g))
        return "multiply-adds are done sooner, without splitting A and B first";
    return NULL;
}

const char *vn__pays_split_64 (const void *p, const struct vn_facts *f) { return pays(p, f, TILE_64); }
const char *vn__pays_split_128(const void *p, const struct vn_facts *f) { return pays(p, f, TILE_128); }
const char *vn__pays_split_192(const void *p, const struct vn_facts *f) { return pays(p, f, TILE_192); }

vn_status vn__run_split(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct gemm *g = problem;
    struct vn_launch l = { .groups = { 1, 1, 1 }, .items = 128 * it->p[WARPGROUPS] + 128 };
    struct vn_side a, b;
    vn_buffer *parts, *parts_b;
    size_t at;
    vn_status s;

    if (!sides(&a, &b, g, it->p) || !vn__mul(&l.groups[0], a.panels * b.panels, g->batches) ||
        l.groups[0] > INT_MAX)
        return vn__fail(VN_UNSUPPORTED, "C has too many tiles of %d x %d; a launch holds %d",
                        64 * it->p[WARPGROUPS], it->p[BLK_N], INT_MAX);
    if ((s = vn__lay_out_b(&parts_b, &at, &parts, q, it, g, vn__split_bytes(&a))) || (s = split(q, it, &a, parts)))
        return s;
    b.view[7] = (int64_t)(at / VN_SPLIT_UNIT);
    vn__arg_int(&l, g->m);
    vn__arg_int(&l, g->n);
    vn__arg_int(&l, g->k);
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
