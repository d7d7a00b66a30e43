/* SPDX-License-Identifier: Apache-2.0
 *
 * tf32.c - the variant conv_tf32: images and their gradients in f32 where 19 bits are enough, on NVIDIA's
 * sm_90.
 *
 * Both operands must be K-major: the channels that are summed are contiguous, which are those of NHWC images,
 * of the filter in forward, and never of the filter in backward data.  What lies otherwise is copied to such
 * rows first.  With few channels, a slice of 32 of them is mostly zeros: a copy then has all taps of a row of
 * the filter as the channels of a pixel.
 */
#include <limits.h>

#include "gemm/gemm.h"
#include "im2col.h"
#include "repack.h"
#include "wgmma.h"

enum { MOVE = VN_TILE_COSTS + 1 };              /* its cost behind those of conv_wgmma: of copies */
enum { REPACK, PACK, MULTIPLY };                /* its kernels */
enum { VECTOR = 4, BLK_K = 32, ALIGNED = 256 };             /* elements; ALIGNED: bytes */

/* The problem as the kernel takes it, of copies where `source` or `filter`, their elements, are not 0. */
struct view {
    struct conv c;
    struct conv from;                           /* the problem without what a filter of 1 jumps over */
    int     folded;                             /* taps of a row are channels */
    int64_t width;                              /* pixels of a row of the source's copy */
    int64_t source, filter;
};

static vn_tensor *source_of(struct conv *c)
{
    return c->direction == BACKWARD_DATA ? &c->y : &c->x;
}

/* The filter, the channels that are summed being the second dimension. */
static vn_tensor filter_of(const struct conv *c)
{
    return vn__im2col_turns_filter(c) ? vn__conv_turned(&c->w) : c->w;
}

static int is_foldable(const struct conv *c)
{
    return c->direction == FORWARD && c->x.extent[1] <= VECTOR && c->dilation[2] == 1 &&
           c->w.extent[4] > 1 && c->w.extent[4] * VECTOR <= BLK_K;
}

/* A copy as rows, of which each pixel has the channels of all taps of a row. */
static void fold(struct view *v)
{
    struct conv *const c = &v->c;
    const int64_t taps = c->w.extent[4];

    c->x.extent[1] = c->w.extent[1] = taps * VECTOR;
    c->x.extent[4] = c->y.extent[4];
    c->x.stride[4] = VECTOR * c->stride[2];
    c->w.extent[4] = 1;
    c->w.stride[4] = c->w.stride[3];
    c->stride[2] = 1;
    c->pad[2] = 0;
}

/* NULL, or why there is none. */
static const char *view_of(struct view *v, const struct conv *problem)
{
    vn_tensor *source, filter;

    *v = (struct view){ .from = vn__conv_without_jumps(problem), .folded = is_foldable(problem) };
    v->from.p.bytes -= (double)(vn__elements(&problem->x) - vn__elements(&v->from.x)) * sizeof(float);
    v->c = v->from;
    source = source_of(&v->c);
    v->width = v->folded ? (v->c.y.extent[4] - 1) * v->c.stride[2] + v->c.w.extent[4] : source->extent[4];
    if (v->folded || !vn__conv_is_rows(source)) {
        if (!(v->source = vn__conv_row_elements(source, v->width)))
            return "its copy of the source must stay below 2^57 elements";
        vn__conv_lay_rows(source, v->width);
        source->start = 0;
    }
    filter = filter_of(&v->c);
    if (v->folded || !vn__conv_is_rows(&filter)) {
        if (!(v->filter = vn__conv_row_elements(&filter, filter.extent[4])))
            return "its copy of the filter must stay below 2^57 elements";
        vn__conv_lay_rows(&filter, filter.extent[4]);
        filter.start = 0;
        v->c.w = vn__im2col_turns_filter(&v->c) ? vn__conv_turned(&filter) : filter;
    }
    if (v->folded)
        fold(v);
    return NULL;
}

const char *vn__fits_conv_tf32(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;
    const int is_f32 = c->x.type == VN_F32 && c->w.type == VN_F32 && c->y.type == VN_F32;
    const char *const types = is_f32 && c->math == VN_MATH_TF32 ? NULL : "it needs f32, and VN_MATH_TF32";
    const char *why = NULL;
    struct view v;

    if (!types && c->direction != BACKWARD_FILTER && !c->is_empty) {
        why = view_of(&v, c);
        c = &v.c;
    }
    return why ? why : vn__fits_conv_tiles(c, f, types);
}

void vn__constants_conv_tf32(int *out, const void *problem)
{
    struct view v;

    view_of(&v, problem);
    vn__constants_conv_wgmma(out, &v.c);
}

/* ---- the filter, packed ---------------------------------------------------------------------------- */

static size_t bytes_of(int64_t elements)
{
    return VN_CEIL_DIV((size_t)elements * sizeof(float), ALIGNED) * ALIGNED;
}

/* The elements from tap to tap of a filter in which those of the channels that are not summed are contiguous;
 * 0: it is none.                                                                                          */
static int64_t tap_step(const vn_tensor *filter)
{
    int64_t step = 0, taps = 1;

    if (filter->stride[0] != 1)
        return 0;
    for (int d = RANK - 1; d >= 2; d--) {
        if (filter->extent[d] == 1)
            continue;
        if (taps == 1)
            step = filter->stride[d];
        else if (filter->stride[d] != step * taps)
            return 0;
        taps *= filter->extent[d];
    }
    return taps == 1 ? 1 : step;
}

/* Such a filter is a matrix of each tap, which is transposed. */
static vn_status transpose_filter(vn_queue *q, const struct vn_choice *it, const vn_tensor *from,
                                  vn_buffer *to, int64_t start)
{
    const int64_t rows = from->extent[0], sums = from->extent[1], pitch = vn__conv_row_channels(from);
    const int64_t taps = from->extent[2] * from->extent[3] * from->extent[4];
    struct vn_launch l = { .groups = { 1, 1, 1 }, .items = 256 };

    if (!vn__mul(&l.groups[0], VN_CEIL_DIV(rows, 32) * VN_CEIL_DIV(sums, 32), taps) ||
        l.groups[0] > INT_MAX)
        return vn__fail(VN_UNSUPPORTED, "the filter has more than %d tiles of 32 x 32", INT_MAX);
    vn__arg_int(&l, rows);
    vn__arg_int(&l, sums);
    vn__arg_buffer(&l, from->buffer);
    vn__arg_view(&l, (int64_t[8]){ from->start, 0, 0, 0, tap_step(from), from->stride[0], from->stride[1] });
    vn__arg_buffer(&l, to);
    vn__arg_view(&l, (int64_t[8]){ start, 0, 0, 0, pitch, taps * pitch, 1 });
    return vn__launch(q, it, PACK, &l);
}

static vn_status copy_filter(vn_queue *q, const struct vn_choice *it, const struct view *v, vn_buffer *to,
                             size_t at)
{
    const vn_tensor from = filter_of(&v->from);

    if (!v->folded && tap_step(&from) > 0)
        return transpose_filter(q, it, &from, to, (int64_t)(at / sizeof(float)));
    return vn__conv_repack(q, it, REPACK, &from, from.extent[4], 0, to, (int64_t)(at / sizeof(float)));
}

static vn_status pack_filter(vn_queue *q, const struct vn_choice *it, const void *problem, vn_buffer *to,
                             size_t at)
{
    struct view v;

    view_of(&v, problem);
    return copy_filter(q, it, &v, to, at);
}

struct vn_layout vn__layout_conv_tf32(const void *problem, const int *unused)
{
    struct view v;
    const char *const why = view_of(&v, problem);

    (void)unused;
    return (struct vn_layout){ pack_filter, v.folded * 2 + vn__im2col_turns_filter(&v.c),
                               why ? SIZE_MAX : bytes_of(v.filter) };
}

/* ---- the plan and the launch ------------------------------------------------------------------------- */

/* Reads and writes. */
static double copy_seconds(const vn_tensor *from, int64_t to, const struct vn_row *row,
                           const struct vn_site *site)
{
    const double bytes = sizeof(float) * ((double)vn__elements(from) + (double)to);

    return to ? vn__launch_seconds(site) + vn__move_seconds(bytes, row->cost[MOVE], site) : 0;
}

const char *vn__plan_conv_tf32(struct vn_plan *out, const void *problem, const struct vn_row *row,
                               const struct vn_site *site)
{
    const struct vn_layout l = vn__layout_conv_tf32(problem, row->p);
    const int is_packed = vn__conv_is_packed(problem, &l);
    struct view v;
    const char *why = view_of(&v, problem);

    if (!why)
        why = vn__share_conv_tiles(out, &v.c, 1, row, site);
    if (why) {
        out->seconds = -1;
        return why;
    }
    if (v.source || (v.filter && !is_packed))
        out->workspace = bytes_of(v.source) + (is_packed ? 0 : l.bytes);
    if (out->seconds > 0)
        out->seconds += copy_seconds(source_of(&v.from), v.source, row, site) +
                        (is_packed ? 0 : copy_seconds(&v.from.w, v.filter, row, site));
    return NULL;
}

vn_status vn__run_conv_tf32(vn_queue *q, const struct vn_choice *it, const void *problem,
                            const struct vn_plan *plan)
{
    const struct conv *given = problem;
    const struct vn_layout l = vn__layout_conv_tf32(problem, it->p);
    size_t at = 0;
    vn_buffer *room = NULL;
    struct view v;
    vn_status s = plan->workspace ? vn__workspace(&room, q, plan->workspace) : VN_OK;

    view_of(&v, problem);
    if (v.source && s == VN_OK) {
        const vn_tensor *const from = source_of(&v.from);
        vn_tensor *const to = source_of(&v.c);

        to->buffer = room;
        to->start = (int64_t)(at / sizeof(float));
        s = vn__conv_repack(q, it, REPACK, from, v.width, v.folded ? -v.from.pad[2] : 0, room, to->start);
        at += bytes_of(v.source);
    }
    if (v.filter && vn__conv_is_packed(given, &l)) {
        v.c.w.buffer = given->pack;
        v.c.w.start = 0;
        q->packed_used = l.bytes;
    } else if (v.filter && s == VN_OK) {
        v.c.w.buffer = room;
        v.c.w.start = (int64_t)(at / sizeof(float));
        s = copy_filter(q, it, &v, room, at);
    }
    return s ? s : vn__launch_conv_tiles(q, it, MULTIPLY, &v.c, plan);
}
