/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16x3_filter.c - the variant conv_bf16x3_filter: the gradient of a filter in f32, by the bf16 matrix
 * engine of NVIDIA's sm_90: dy in three parts, x split into its parts on the way to the engine.
 */
#include "filter.h"
#include "gemm/bf16x3.h"

enum { BLK_M, STAGES };                         /* its parameters */
enum { EFF, FIXED_NS, TILE_NS, MOVE };          /* and costs */
enum { PARTS };                                 /* of a plan */
enum { REPACK, SPLIT, MULTIPLY, ADD };          /* its kernels */
enum { BLK_N = 128, BLK_K = 32, PAIR = 2 * BLK_K, BLOCK = 32, SPLIT_SPAN = 16, ITEMS = 3 * 128 };

/* From pixel to pixel of dy, all of which follow each other; 0 where they do not. */
static int64_t pixel_step(const vn_tensor *y)
{
    int64_t step = 0, next = 0;

    for (int i = 0; i < 4; i++) {
        const int d = (int[]){ 4, 3, 2, 0 }[i];

        if (y->extent[d] == 1)
            continue;
        if (step && y->stride[d] != next)
            return 0;
        if (!step)
            step = y->stride[d];
        next = y->stride[d] * y->extent[d];
    }
    return step ? step : y->extent[1];
}

/* With a dy whose pixels follow each other. */
static const char *view_of(struct filter_view *v, const struct conv *c)
{
    const char *const why = vn__filter_view(v, c, BLOCK);

    return why ? why : v->copies_y || pixel_step(&c->y)
         ? NULL : "the pixels of dy must follow each other, or be no NHWC image";
}

/* dy, transposed: filters x pixels. */
static int parts_of(struct vn_bf16x3_side *out, const struct conv *c, const int *p)
{
    vn_tensor t = c->y;

    t.rank = 2;
    t.extent[0] = c->y.extent[1];
    t.extent[1] = vn__conv_pixels(&c->y);
    t.stride[0] = 1;
    t.stride[1] = pixel_step(&c->y);
    return vn__bf16x3_panels(out, &t, p[BLK_M], PAIR);
}

const char *vn__fits_conv_bf16x3_filter(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;
    struct filter_view v;
    const char *why;

    why = vn__fits_filter(c, f, c->p.type == VN_F32 && c->y.type == VN_F32 && c->w.type == VN_F32
                                ? NULL : "it needs f32");
    return why ? why : view_of(&v, c);
}

void vn__constants_conv_bf16x3_filter(int *c, const void *problem)
{
    c[0] = vn__im2col_rank(problem);
}

/* ---- the plan ------------------------------------------------------------------------- */

static const char *tiles_of(struct filter_cut *out, const struct conv *c, const int *p)
{
    return vn__filter_tiles(out, c, p[BLK_M], BLK_N, BLOCK, PAIR);
}

/* Where things are in the workspace, in bytes: partial sums, then copies of images, parts of dy. */
struct room { size_t copies, parts, bytes; };

static int lay_out(struct room *r, struct vn_bf16x3_side *side, const struct filter_view *v,
                   const struct filter_cut *cut, const int *p)
{
    if (!parts_of(side, &v->as, p) || vn__bf16x3_bytes(side) > SIZE_MAX / 4)
        return 0;
    r->copies = (size_t)vn__filter_sums(cut) * sizeof(float);
    r->parts = r->copies + v->bytes_x + v->bytes_y;
    r->bytes = r->parts + vn__bf16x3_bytes(side);
    side->view[7] = (int64_t)(r->parts / VN_BF16X3_UNIT);
    return 1;
}

const char *vn__plan_conv_bf16x3_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                        const struct vn_site *site)
{
    const struct conv *c = problem;
    const int *const cost = row->cost;
    const double split = vn__move_seconds((double)vn__elements(&c->y) * (4.0 + 6.0), cost[MOVE], site);
    const double x = (double)vn__elements(&c->x) * 4.0, dy = (double)vn__elements(&c->y) * 6.0;
    const double store = cost[TILE_NS] * 1e-9;
    const double slice = 2.0 * row->p[BLK_M] * BLK_N * PAIR / (vn__bf16x3_peak(site) * 1e6 * cost[EFF]);
    struct vn_bf16x3_side side;
    struct filter_view v;
    struct filter_cut cut;
    struct room room;
    double seconds;
    const char *why = view_of(&v, c);

    if (!why && !(why = tiles_of(&cut, &v.as, row->p)) &&
        !(why = vn__filter_share(&cut, &seconds, 1, slice, store, site)) &&
        !lay_out(&room, &side, &v, &cut, row->p))
        why = "dy has more than 2^31 vectors";
    if (why) {
        out->seconds = -1;
        return why;
    }
    out->v[PARTS] = cut.parts;
    out->workspace = room.bytes;
    out->seconds = vn__filter_copy_seconds(&v, c, cost[MOVE], site) + split + cost[FIXED_NS] * 1e-9 +
                   vn__together(seconds, vn__move_seconds(dy + x, 1000, site));
    return NULL;
}

/* ---- launches ----------------------------------------------------------------------- */

vn_status vn__run_conv_bf16x3_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                     const struct vn_plan *plan)
{
    const struct conv *c = problem;
    struct vn_bf16x3_side side;
    struct filter_cut cut;
    struct room room;
    struct filter_view v;
    struct vn_launch l = { .nargs = 0 };
    vn_buffer *buffer;
    vn_status s = vn__workspace(&buffer, q, plan->workspace);

    if (s)
        return s;
    view_of(&v, c);
    tiles_of(&cut, &v.as, it->p);
    cut.parts = plan->v[PARTS];
    lay_out(&room, &side, &v, &cut, it->p);
    if ((s = vn__filter_copy(&v, q, it, REPACK, REPACK, c, buffer, room.copies)))
        return s;
    side.t.buffer = v.as.y.buffer;
    side.t.start = v.as.y.start;
    if ((s = vn__bf16x3_launch_split(&l, &side, buffer, SPLIT_SPAN)) || (s = vn__launch(q, it, SPLIT, &l)))
        return s;
    l = (struct vn_launch){ .groups = { cut.tiles * cut.parts, 1, 1 }, .items = ITEMS };
    vn__filter_arg_x(&l, &v, c);
    vn__arg_buffer(&l, v.as.y.buffer);
    vn__arg_view(&l, (int64_t[8]){ v.as.y.start, side.view[7], v.as.y.stride[0], v.as.y.stride[1],
                                   v.as.y.stride[2], v.as.y.stride[3], v.as.y.stride[4],
                                   vn__conv_pixels(&c->y) });
    vn__arg_buffer(&l, buffer);
    vn__arg_int(&l, cut.tiles);
    vn__arg_int(&l, cut.slices);
    vn__arg_int(&l, cut.parts);
    if ((s = vn__arg_maps(&l, q)))
        return s;
    vn__arg_buffer(&l, buffer);
    return (s = vn__launch(q, it, MULTIPLY, &l)) ? s : vn__filter_sum(q, it, ADD, c, &v, &cut, buffer);
}
