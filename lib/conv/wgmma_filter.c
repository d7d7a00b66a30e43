/* SPDX-License-Identifier: Apache-2.0
 *
 * wgmma_filter.c - the variants conv_wgmma_filter and conv_wgmma_filter_splitk: the gradient of a filter in
 * 16-bit types, on NVIDIA's sm_90.
 *
 * A gradient has few tiles and sums over many pixels.  Where tiles are fewer than compute units, the second
 * divides the pixels into parts, and adds the sums of parts.
 */
#include <string.h>

#include "filter.h"
#include "gemm/gemm.h"

enum { SUB_M, SUB_N, WARPGROUPS_M, WARPGROUPS_N, BLK_K, STAGES };       /* their parameters */
enum { EFF, L2, FIXED_NS, TILE_NS, MOVE };      /* and costs */
enum { PARTS };                                 /* of a plan */
enum { REPACK, MULTIPLY, ADD, ROWS };           /* their kernels */
enum { BLOCK = 64 };                            /* channels */

static const char *fits(const struct conv *c, const struct vn_facts *f, int64_t block)
{
    struct filter_view v;
    const char *why;

    why = vn__fits_filter(c, f, c->p.type == VN_F16 || c->p.type == VN_BF16 ? NULL : "it needs f16 or bf16");
    return why ? why : vn__filter_view(&v, c, block);
}

const char *vn__fits_conv_wgmma_filter(const void *problem, const struct vn_facts *f)
{
    return fits(problem, f, 0);
}

const char *vn__fits_conv_wgmma_filter_splitk(const void *problem, const struct vn_facts *f)
{
    return fits(problem, f, BLOCK);
}

void vn__constants_conv_wgmma_filter(int *c, const void *problem)
{
    c[0] = vn__im2col_rank(problem);
}

/* VECTORS: whether rows of dW, of the channels of a tap, are whole 16-byte vectors, and nothing is added. */
void vn__constants_conv_wgmma_filter_tiles(int *constants, const void *problem)
{
    const struct conv *c = problem;
    const int64_t *const s = c->w.stride;

    vn__constants_conv_wgmma_filter(constants, problem);
    constants[1] = c->p.epilogue.residual <= VN_SAME_COLUMNS &&
                   vn__in_vectors(&c->w, 0, 1, s[2] | s[3] | s[4], c->w.extent[1]);
}

/* ---- plans ---------------------------------------------------------------------------- */

static int64_t blk_m(const int *p) { return p[SUB_M] * p[WARPGROUPS_M]; }
static int64_t blk_n(const int *p) { return p[SUB_N] * p[WARPGROUPS_N]; }

static const char *tiles_of(struct filter_cut *out, const struct conv *c, const int *p)
{
    return vn__filter_tiles(out, c, blk_m(p), blk_n(p), BLOCK, p[BLK_K]);
}

static double stage_bytes(const int *p)
{
    return 2.0 * p[BLK_K] * (double)(blk_m(p) + blk_n(p));
}

/* Pixels that are met, of both images. */
static double memory_seconds(const struct conv *c, const struct vn_site *site)
{
    const double x = (double)vn__elements(&c->x);
    const double met = (double)vn__conv_pixels(&c->y) * (double)(c->x.extent[1] * vn__conv_taps(c));

    return 2.0 * ((double)vn__elements(&c->y) + (x < met ? x : met)) / (site->rates->gbps * 1e9);
}

/* block: 0 where all taps are apart; fewest: parts, as of vn__filter_share(). */
static const char *plan(struct vn_plan *out, const struct conv *c, const struct vn_row *row,
                        const struct vn_site *site, int64_t block, int fewest)
{
    enum { OTHER = 2 };                         /* KiB of local memory beside stages */
    const int *const p = row->p, *const cost = row->cost;
    const double flops = 2.0 * (double)(blk_m(p) * blk_n(p)) * p[BLK_K];
    const double multiply = flops / (site->rates->mma16 * 1e6 * cost[EFF]);
    const double read = site->facts->units * stage_bytes(p) / (site->rates->l2_gbps * 1e6 * cost[L2]);
    struct filter_view v;
    struct filter_cut cut;
    double seconds = -1;
    const int64_t resident = (int64_t)(site->rates->local_kib / (p[STAGES] * stage_bytes(p) / 1024 + OTHER));
    const char *why = vn__filter_view(&v, c, block);

    if (!why && !(why = tiles_of(&cut, &v.as, p))) {
        cut.resident = resident < 2 ? 1 : 2;
        why = resident < 1 ? "this row takes more local memory than there is"
                           : vn__filter_share(&cut, &seconds, fewest, multiply > read ? multiply : read,
                                              cost[TILE_NS] * 1e-9, site);
    }
    if (why) {
        out->seconds = -1;
        return why;
    }
    out->v[PARTS] = cut.parts;
    out->workspace = v.bytes_x + v.bytes_y + (fewest ? (size_t)vn__filter_sums(&cut) * sizeof(float) : 0);
    out->seconds = vn__filter_copy_seconds(&v, c, cost[MOVE], site) + cost[FIXED_NS] * 1e-9 +
                   vn__together(seconds, memory_seconds(c, site));
    return NULL;
}

const char *vn__plan_conv_wgmma_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                       const struct vn_site *site)
{
    return plan(out, problem, row, site, 0, 0);
}

const char *vn__plan_conv_wgmma_filter_splitk(struct vn_plan *out, const void *problem,
                                              const struct vn_row *row, const struct vn_site *site)
{
    return plan(out, problem, row, site, BLOCK, 2);
}

/* ---- launches ----------------------------------------------------------------------- */

/* All up to the number of slices. */
static struct vn_launch launch_of(const struct filter_view *v, const struct conv *c,
                                  const struct filter_cut *cut, const int *p)
{
    const int moves = p[SUB_M] * p[SUB_N] > 64 * 192;           /* as in cl/conv/wgmma_filter.h */
    struct vn_launch l = { .groups = { cut->tiles * cut->parts, 1, 1 },
                           .items = 128 * p[WARPGROUPS_M] * p[WARPGROUPS_N] + (moves ? 128 : 32) };

    vn__arg_im2col_source(&l, &v->x);
    vn__arg_im2col_source(&l, &v->y);
    vn__arg_im2col_window(&l, &v->x, (int64_t[DIMS]){ 0 }, 0);
    vn__arg_extents(&l, &v->as.w);
    vn__arg_view(&l, (int64_t[8]){ 0, 0, 0, 0, c->dilation[0], c->dilation[1], c->dilation[2] });
    vn__arg_int(&l, cut->tiles);
    vn__arg_int(&l, cut->slices);
    return l;
}

static vn_status prepare(struct filter_view *v, struct filter_cut *cut, vn_buffer **room, vn_queue *q,
                         const struct vn_choice *it, const struct conv *c, const struct vn_plan *plan,
                         int64_t block)
{
    vn_status s = plan->workspace ? vn__workspace(room, q, plan->workspace) : VN_OK;

    if (s)
        return s;
    vn__filter_view(v, c, block);
    tiles_of(cut, &v->as, it->p);
    cut->parts = plan->v[PARTS];
    return vn__filter_copy(v, q, it, REPACK, ROWS, c, *room, plan->workspace - v->bytes_x - v->bytes_y);
}

vn_status vn__run_conv_wgmma_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                    const struct vn_plan *plan)
{
    const struct conv *c = problem;
    struct filter_view v;
    struct filter_cut cut;
    struct vn_launch l = { .nargs = 0 };
    vn_buffer *room = NULL;
    vn_status s = prepare(&v, &cut, &room, q, it, c, plan, 0);

    if (s)
        return s;
    l = launch_of(&v, c, &cut, it->p);
    if ((s = vn__arg_maps(&l, q)))
        return s;
    vn__conv_arg_alpha(&l, c);
    vn__conv_arg_output(&l, c);
    return vn__launch(q, it, MULTIPLY, &l);
}

vn_status vn__run_conv_wgmma_filter_splitk(vn_queue *q, const struct vn_choice *it, const void *problem,
                                           const struct vn_plan *plan)
{
    const struct conv *c = problem;
    struct filter_view v;
    struct filter_cut cut;
    struct vn_launch l = { .nargs = 0 };
    vn_buffer *room;
    vn_status s = prepare(&v, &cut, &room, q, it, c, plan, BLOCK);

    if (s)
        return s;
    l = launch_of(&v, c, &cut, it->p);
    vn__arg_int(&l, cut.parts);
    if ((s = vn__arg_maps(&l, q)))
        return s;
    vn__arg_buffer(&l, room);
    return (s = vn__launch(q, it, MULTIPLY, &l)) ? s : vn__filter_sum(q, it, ADD, c, &v, &cut, room);
}
