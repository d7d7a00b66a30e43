/* SPDX-License-Identifier: Apache-2.0
 *
 * tf32_filter.c - the variant conv_tf32_filter: the gradient of a filter in f32 where 19 bits are enough, on
 * NVIDIA's sm_90: of a copy of dy in which the pixels of a filter are contiguous, or of dy itself.
 */
#include <limits.h>

#include "filter.h"
#include "gemm/gemm.h"

enum { BLK_M, STAGES, TRANSPOSE };              /* its parameters */
enum { EFF, L2, FIXED_NS, TILE_NS, MOVE };      /* and costs */
enum { PARTS };                                 /* of a plan */
enum { REPACK, PACK, MULTIPLY, ADD };           /* its kernels */
enum { BLK_N = 128, BLK_K = 32, PAIR = 2 * BLK_K, BLOCK = 32, VECTOR = 4, ALIGNED = 256 };

/* dy as matrices of filters and pixels: of each image, or of all. */
struct rows { int64_t matrices, pixels, step, image; };

static int has_rows(struct rows *r, const vn_tensor *y)
{
    int64_t pixels = 1, step = 0;

    for (int d = RANK - 1; d >= 2; d--) {
        if (y->extent[d] == 1)
            continue;
        if (pixels == 1)
            step = y->stride[d];
        else if (y->stride[d] != step * pixels)
            return 0;
        pixels *= y->extent[d];
    }
    *r = (struct rows){ y->extent[0], pixels, step, y->stride[0] };
    if (pixels == 1)
        r->step = r->image;
    if (r->image == r->step * pixels)
        *r = (struct rows){ 1, pixels * y->extent[0], r->step, 0 };
    return 1;
}

/* NULL, or why TMA cannot load dy as one matrix of pixels and filters; *step: from pixel to pixel. */
static const char *refuses_transposing(int64_t *step, const vn_tensor *y)
{
    struct rows r;

    if (!has_rows(&r, y) || r.matrices != 1)
        return "pixels of dy, of all images, must follow each other";
    *step = r.step;
    return (y->stride[1] == 1 || y->extent[1] == 1) && y->start % VECTOR == 0 && r.step % VECTOR == 0 &&
           r.step > 0 && r.step >> 36 == 0
         ? NULL : "filters of dy must be contiguous, and begin at multiples of 16 bytes";
}

/* From row to row of the copy. */
static int64_t pitch(const struct conv *c)
{
    return VN_CEIL_DIV(vn__conv_pixels(&c->y), VECTOR) * VECTOR;
}

/* With copies of x alone. */
static const char *view_of(struct filter_view *v, const struct conv *c)
{
    const char *const why = vn__filter_view(v, c, BLOCK);
    int64_t elements;
    struct rows r;

    v->copies_y = 0;
    v->bytes_y = 0;
    return why ? why : !has_rows(&r, &c->y) ? "the pixels of an image of dy must follow each other"
         : !vn__mul(&elements, pitch(c), c->y.extent[1]) || elements > INT64_MAX / 64
         ? "its copy of dy must stay below 2^57 elements" : NULL;
}

const char *vn__fits_conv_tf32_filter(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;
    const int is_f32 = c->x.type == VN_F32 && c->w.type == VN_F32 && c->y.type == VN_F32;
    struct filter_view v;
    const char *why;

    why = vn__fits_filter(c, f, is_f32 && c->math == VN_MATH_TF32 ? NULL : "it needs f32, and VN_MATH_TF32");
    return why ? why : view_of(&v, c);
}

/* ---- the plan ------------------------------------------------------------------------- */

static const char *tiles_of(struct filter_cut *out, const struct conv *c, const int *p)
{
    return vn__filter_tiles(out, c, p[BLK_M], BLK_N, BLOCK, PAIR);
}

/* Where things are in the workspace, in bytes: partial sums, then the copies of x and, if there is one, of
 * dy. */
struct room { size_t x, dy, bytes; };

static struct room lay_out(const struct filter_view *v, const struct conv *c, const struct filter_cut *cut,
                           int has_copy)
{
    struct room r;

    r.x = (size_t)vn__filter_sums(cut) * sizeof(float);
    r.dy = r.x + v->bytes_x;
    r.bytes = r.dy + (has_copy ? (size_t)(pitch(c) * c->y.extent[1]) * sizeof(float) : 0);
    return r;
}

const char *vn__plan_conv_tf32_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                      const struct vn_site *site)
{
    const struct conv *c = problem;
    const int *const p = row->p, *const cost = row->cost;
    const double bytes = sizeof(float), x = vn__conv_met(c), y = (double)vn__elements(&c->y);
    const double multiply = 2.0 * p[BLK_M] * BLK_N * PAIR / (site->rates->mma32 * 1e6 * cost[EFF]);
    const double read = site->facts->units * bytes * PAIR * (p[BLK_M] + BLK_N) /
                        (site->rates->l2_gbps * 1e6 * cost[L2]);
    struct filter_view v;
    struct filter_cut cut;
    double seconds;
    int64_t step;
    const char *why = view_of(&v, c);

    if (!why && p[TRANSPOSE])
        why = refuses_transposing(&step, &c->y);
    if (!why && !(why = tiles_of(&cut, &v.as, p)))
        why = vn__filter_share(&cut, &seconds, 1, multiply > read ? multiply : read, cost[TILE_NS] * 1e-9,
                               site);
    if (why) {
        out->seconds = -1;
        return why;
    }
    out->v[PARTS] = cut.parts;
    out->workspace = lay_out(&v, c, &cut, !p[TRANSPOSE]).bytes;
    out->seconds = vn__filter_copy_seconds(&v, c, cost[MOVE], site) + cost[FIXED_NS] * 1e-9 +
                   vn__together(seconds, vn__move_seconds(bytes * (x + y), 1000, site));
    if (!p[TRANSPOSE])
        out->seconds += vn__launch_seconds(site) + vn__move_seconds(2 * bytes * y, cost[MOVE], site);
    return NULL;
}

/* ---- launches ----------------------------------------------------------------------- */

/* dy, so that the pixels of a filter are contiguous. */
static vn_status pack(vn_queue *q, const struct vn_choice *it, const struct conv *c, vn_buffer *to, size_t at)
{
    struct vn_launch l = { .groups = { 1, 1, 1 }, .items = 256 };
    struct rows r;

    has_rows(&r, &c->y);
    if (!vn__mul(&l.groups[0], VN_CEIL_DIV(c->y.extent[1], 32) * VN_CEIL_DIV(r.pixels, 32), r.matrices) ||
        l.groups[0] > INT_MAX)
        return vn__fail(VN_UNSUPPORTED, "dy has more than %d tiles of 32 x 32", INT_MAX);
    vn__arg_int(&l, c->y.extent[1]);
    vn__arg_int(&l, r.pixels);
    vn__arg_buffer(&l, c->y.buffer);
    vn__arg_view(&l, (int64_t[8]){ c->y.start, 0, 0, 0, r.image, c->y.stride[1], r.step });
    vn__arg_buffer(&l, to);
    vn__arg_view(&l, (int64_t[8]){ (int64_t)(at / sizeof(float)), 0, 0, 0, r.pixels, pitch(c), 1 });
    return vn__launch(q, it, PACK, &l);
}

vn_status vn__run_conv_tf32_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                   const struct vn_plan *plan)
{
    enum { ITEMS = 3 * 128 };
    const struct conv *c = problem;
    struct filter_view v;
    struct filter_cut cut;
    struct room room;
    struct vn_launch l = { .nargs = 0 };
    vn_buffer *buffer;
    int64_t step;
    vn_status s = vn__workspace(&buffer, q, plan->workspace);

    if (s)
        return s;
    view_of(&v, c);
    tiles_of(&cut, &v.as, it->p);
    cut.parts = plan->v[PARTS];
    room = lay_out(&v, c, &cut, !it->p[TRANSPOSE]);
    if ((s = vn__filter_copy(&v, q, it, REPACK, REPACK, c, buffer, room.x)) ||
        (!it->p[TRANSPOSE] && (s = pack(q, it, c, buffer, room.dy))))
        return s;
    l = (struct vn_launch){ .groups = { cut.tiles * cut.parts, 1, 1 }, .items = ITEMS };
    vn__filter_arg_x(&l, &v, c);
    if (it->p[TRANSPOSE]) {
        refuses_transposing(&step, &c->y);
        vn__arg_buffer(&l, c->y.buffer);
        vn__arg_view(&l, (int64_t[8]){ c->y.start, 0, step, 0, 0, 0, 0, vn__conv_pixels(&c->y) });
    } else {
        vn__arg_buffer(&l, buffer);
        vn__arg_view(&l, (int64_t[8]){ (int64_t)(room.dy / sizeof(float)), 0, pitch(c), 0, 0, 0, 0,
                                       vn__conv_pixels(&c->y) });
    }
    vn__arg_int(&l, cut.tiles);
    vn__arg_int(&l, cut.slices);
    vn__arg_int(&l, cut.parts);
    if ((s = vn__arg_maps(&l, q)))
        return s;
    vn__arg_buffer(&l, buffer);
    return (s = vn__launch(q, it, MULTIPLY, &l)) ? s : vn__filter_sum(q, it, ADD, c, &v, &cut, buffer);
}
