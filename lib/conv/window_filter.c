/* SPDX-License-Identifier: Apache-2.0
 *
 * window_filter.c - the variant conv_window_filter: the gradient of a 3x3 filter with steps of 1 in 16-bit
 * types, on NVIDIA's sm_90.
 */
#include <limits.h>

#include "filter.h"
#include "gemm/gemm.h"

enum { PLACES, WINDOW, STAGES };                /* its parameters */
enum { EFF, FIXED_NS, TILE_NS };                /* and costs */
enum { PARTS };                                 /* of a plan */
enum { BLK_M = 64, BLOCK = 64, TAPS = 9, ITEMS = 3 * 128 + 32, STEP = 16 };

const char *vn__fits_conv_window_filter(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;
    const char *const why = vn__fits_conv_wgmma_filter(problem, f);

    if (why)
        return why;
    if (vn__im2col_rank(c) != 4 || c->w.extent[3] != 3 || c->w.extent[4] != 3 || c->stride[1] != 1 ||
        c->stride[2] != 1)
        return "it needs a 3x3 filter and steps of 1";
    if (c->pad[1] > 2 * c->dilation[1] || c->pad[2] > 2 * c->dilation[2])
        return "there is more padding than the filter reaches over";
    return NULL;
}

/* ---- chunks ------------------------------------------------------------------------------- */

/* A chunk is rows of an image, or whole images. */
struct chunks { int64_t pitch, rows_x, rows_y, images, in_image, all; double steps; };

static int64_t ceil_of(int64_t n, int64_t of) { return VN_CEIL_DIV(n, of); }

/* Whether a stage has room for it. */
static int has_room(const struct chunks *k, const struct conv *c, const int *p)
{
    const int64_t places = ceil_of(k->images * k->rows_y * k->pitch, STEP) * STEP;

    return places <= p[PLACES] && k->images <= 256 && k->rows_x <= 256 &&
           k->images * k->rows_x * k->pitch <= p[WINDOW] &&
           places + 2 * c->dilation[1] * k->pitch + 2 * c->dilation[2] <= p[WINDOW];
}

/* Places from row to row, or rows from image to image, along dimension d: the source, and behind it as many
 * zeros as the first or the last tap reaches over.                                                         */
static int64_t pitch_of(const struct conv *c, int d)
{
    const int64_t before = c->x.extent[2 + d] + c->pad[d], out = c->y.extent[2 + d];
    const int64_t after = out + 2 * c->dilation[d] - c->pad[d], most = before > after ? before : after;

    return most > out ? most : out;
}

/* The chunks with the fewest products in all; 0 if there are none. */
static int find_chunks(struct chunks *out, const struct conv *c, const int *p)
{
    const int64_t images = c->x.extent[0], rows = c->y.extent[3];
    const int64_t pitch = pitch_of(c, 2), whole = pitch_of(c, 1);

    out->steps = 0;
    for (int i = 1; pitch <= 256 && i <= p[PLACES] / pitch; i++) {
        struct chunks k = { .pitch = pitch, .rows_x = i + 2 * c->dilation[1], .rows_y = i, .images = 1,
                            .in_image = ceil_of(rows, i) };

        k.all = images * k.in_image;
        for (int joined = 0; joined < 2; joined++) {
            if (joined)
                k = (struct chunks){ .pitch = pitch, .rows_x = whole, .rows_y = whole, .images = i,
                                     .in_image = 1, .all = ceil_of(images, i) };
            k.steps = (double)k.all * (double)ceil_of(k.images * k.rows_y * k.pitch, STEP);
            if (has_room(&k, c, p) && (out->steps == 0 || k.steps < out->steps))
                *out = k;
        }
    }
    return out->steps > 0;
}

static const char *cut_of(struct filter_cut *out, struct chunks *k, const struct conv *c, const int *p)
{
    if (!find_chunks(k, c, p))
        return "a row of the image does not fit local memory";
    *out = (struct filter_cut){ .elements = BLK_M * BLOCK * TAPS, .slices = k->all, .parts = 1,
                                .resident = 1 };
    return vn__mul(&out->tiles, ceil_of(c->w.extent[0], BLK_M), ceil_of(c->w.extent[1], BLOCK)) &&
           out->tiles < INT_MAX / 2
         ? NULL : "dW has 2^30 or more tiles";
}

const char *vn__plan_conv_window_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                        const struct vn_site *site)
{
    const struct conv *c = problem;
    const int *const cost = row->cost;
    const double bytes = 2.0 * ((double)vn__elements(&c->x) + (double)vn__elements(&c->y));
    struct filter_view v;
    struct filter_cut cut;
    struct chunks k;
    double seconds = -1;
    const char *why = vn__filter_view(&v, c, 0);

    if (!why && !(why = cut_of(&cut, &k, c, row->p))) {
        const double flops = 2.0 * (double)cut.elements * STEP * k.steps / (double)k.all;

        why = vn__filter_share(&cut, &seconds, 1, flops / (site->rates->mma16 * 1e6 * cost[EFF]),
                               cost[TILE_NS] * 1e-9, site);
    }
    if (why) {
        out->seconds = -1;
        return why;
    }
    out->v[PARTS] = cut.parts;
    out->workspace = (size_t)vn__filter_sums(&cut) * sizeof(float);
    out->seconds = cost[FIXED_NS] * 1e-9 + vn__together(seconds, bytes / (site->rates->gbps * 1e9));
    if (v.copies_x || v.copies_y) {
        out->seconds = -1;
        return "channels must be contiguous, and pixels must begin at multiples of 16 bytes";
    }
    return NULL;
}

/* ---- launches ----------------------------------------------------------------------- */

vn_status vn__run_conv_window_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                     const struct vn_plan *plan)
{
    const struct conv *c = problem;
    struct vn_launch l = { .groups = { 1, 1, 1 }, .items = ITEMS };
    struct filter_view v;
    struct filter_cut cut;
    struct chunks k;
    vn_buffer *room;
    vn_status s = vn__workspace(&room, q, plan->workspace);

    if (s)
        return s;
    vn__filter_view(&v, c, 0);
    cut_of(&cut, &k, c, it->p);
    cut.parts = plan->v[PARTS];
    l.groups[0] = cut.tiles * cut.parts;
    vn__arg_im2col_source(&l, &v.x);
    vn__arg_im2col_source(&l, &v.y);
    vn__arg_view(&l, (int64_t[8]){ 0, 0, k.images, k.in_image, k.rows_x, k.rows_y, k.pitch });
    vn__arg_view(&l, (int64_t[8]){ 0, vn__divisor(v.y.source.extent[3]), vn__divisor(v.y.source.extent[4]), 0,
                                   0, -c->pad[1], -c->pad[2] });
    vn__arg_extents(&l, &c->w);
    vn__arg_view(&l, (int64_t[8]){ 0, 0, 0, 0, 1, c->dilation[1], c->dilation[2] });
    vn__arg_int(&l, cut.tiles);
    vn__arg_int(&l, cut.slices);
    vn__arg_int(&l, cut.parts);
    if ((s = vn__arg_maps(&l, q)))
        return s;
    vn__arg_buffer(&l, room);
    return (s = vn__launch(q, it, 0, &l)) ? s : vn__filter_sum(q, it, 1, c, &v, &cut, room);
}
