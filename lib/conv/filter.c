/* SPDX-License-Identifier: Apache-2.0
 *
 * filter.c - what the variants for the gradient of a filter share that run on tensor cores.
 *
 * A gradient has few tiles and sums over many pixels: those of all tiles are shared among work-groups evenly,
 * and a second launch adds what they have summed of each tile.
 */
#include <limits.h>

#include "filter.h"
#include "gemm/gemm.h"
#include "repack.h"

enum { VECTOR = 16, REPACK_TILE = 2048, REPACK_WIDE = 32 };     /* bytes; elements: as of repack.cl */
enum { FEW = 4 };                               /* channels that copy_rows has a pixel of */

/* ---- as TMA reads it --------------------------------------------------------------------- */

static int64_t whole(int64_t n, int64_t of) { return VN_CEIL_DIV(n, of) * of; }

/* Strides of a dense copy with so many channels, `row` pixels to a row; its bytes, 0 if they overflow. */
static size_t lie_dense(vn_tensor *t, int64_t pixel, int64_t row)
{
    int64_t all = pixel;

    t->stride[1] = 1;
    t->stride[4] = pixel;
    t->start = 0;
    return vn__mul(&t->stride[3], pixel, row) && vn__mul(&t->stride[2], t->stride[3], t->extent[3]) &&
           vn__mul(&t->stride[0], t->stride[2], t->extent[2]) && vn__mul(&all, t->stride[0], t->extent[0]) &&
           all < INT64_MAX / 16 ? (size_t)whole(all * (int64_t)vn_type_bytes(t->type), 256) : 0;
}

/* dy as the source for a filter of one tap. */
static const char *image_of_y(struct im2col *y, const struct conv *c)
{
    struct conv plain = *c;

    plain.x = c->y;
    for (int d = 0; d < DIMS; d++) {
        plain.w.extent[2 + d] = plain.stride[d] = plain.dilation[d] = 1;
        plain.pad[d] = 0;
    }
    return vn__im2col_of(y, &plain);
}

const char *vn__fits_filter(const struct conv *c, const struct vn_facts *f, const char *types)
{
    if (vn__sm(f) != 90)
        return "it needs an NVIDIA GPU of sm_90, for wgmma";
    if (c->direction != BACKWARD_FILTER)
        return "it is for the gradient of the filter";
    if (types)
        return types;
    if (c->math == VN_MATH_BITWISE)
        return "it sums in another order than VN_MATH_BITWISE promises";
    if (c->groups != 1)
        return "it has one group";
    if (c->is_empty)
        return "there is nothing to multiply";
    if (vn__conv_pixels(&c->y) > VN_CONV_MOST || vn__conv_rows(c) > VN_CONV_MOST)
        return "its pixels and columns must stay below 2^31";
    return NULL;
}

const char *vn__filter_view(struct filter_view *out, const struct conv *c, int64_t block)
{
    const int64_t vector = VECTOR / (int64_t)vn_type_bytes(c->x.type), taps = c->w.extent[4];
    const char *why;

    *out = (struct filter_view){ .as = *c, .copied = c->x, .across = 1,
                                 .pixel = whole(c->x.extent[1], vector) };
    out->width = c->x.extent[4];
    if (taps > 1 && taps * out->pixel <= block && c->dilation[2] == 1) {
        struct conv *const as = &out->as;

        if (vector > FEW && c->x.extent[1] <= FEW && c->stride[2] * FEW % vector == 0 &&
            vn__im2col_rank(c) == 4 && vn__conv_pixels(&c->x) < INT_MAX / 64)
            out->pixel = FEW;
        out->across = taps;
        out->width = whole((c->y.extent[4] - 1) * c->stride[2] + taps, vector / FEW);
        out->copies_x = 1;
        out->bytes_x = lie_dense(&as->x, out->pixel, out->width);
        as->x.extent[1] = as->w.extent[1] = taps * out->pixel;
        as->x.extent[4] = c->y.extent[4];
        as->x.stride[4] *= c->stride[2];
        as->w.extent[4] = as->stride[2] = 1;
        as->pad[2] = 0;
    }
    if ((why = vn__im2col_of(&out->x, &out->as)) && !out->copies_x) {
        out->as = vn__conv_without_jumps(c);
        out->copied = out->as.x;
        out->width = out->copied.extent[4];
        out->copies_x = 1;
        out->bytes_x = lie_dense(&out->as.x, out->pixel, out->width);
        why = vn__im2col_of(&out->x, &out->as);
    }
    if (!why && (why = image_of_y(&out->y, &out->as))) {
        out->copies_y = 1;
        out->bytes_y = lie_dense(&out->as.y, whole(c->y.extent[1], vector), c->y.extent[4]);
        why = image_of_y(&out->y, &out->as);
    }
    return why ? why : (out->copies_x && !out->bytes_x) || (out->copies_y && !out->bytes_y)
         ? "a copy of its images has 2^60 or more elements" : NULL;
}

/* Copies a tensor to rows of contiguous channels; w0: the column of the tensor that is the copy's first. */
static vn_status repack(vn_queue *q, const struct vn_choice *it, int kernel, const vn_tensor *t,
                        int64_t pixel, int64_t width, int64_t w0, vn_buffer *to, size_t at)
{
    const int64_t bytes = (int64_t)vn_type_bytes(t->type);
    const int64_t wide = pixel * bytes > VECTOR ? REPACK_WIDE : pixel;
    const int64_t tiles = VN_CEIL_DIV(t->extent[2] * t->extent[3] * width, REPACK_TILE / wide);
    struct vn_launch l = { .groups = { 1, 1, 1 }, .items = 256 };
    vn_tensor from = *t;

    if (!vn__mul(&l.groups[0], t->extent[0], tiles) ||
        !vn__mul(&l.groups[0], l.groups[0], VN_CEIL_DIV(pixel, wide)) || l.groups[0] > INT_MAX)
        return vn__fail(VN_UNSUPPORTED, "a copy of %lld pixels takes more than %d work-groups",
                        (long long)vn__conv_pixels(t), INT_MAX);
    vn__arg_tensor(&l, &from);
    vn__arg_extents(&l, &from);
    vn__arg_buffer(&l, to);
    vn__arg_view(&l, (int64_t[8]){ (int64_t)at / bytes, w0, t->extent[0], pixel, t->extent[2], t->extent[3],
                                   width });
    return vn__launch(q, it, kernel, &l);
}

/* Copies x to pixels of FEW channels, with the kernel of cl/conv/few.cl. */
static vn_status copy_rows(const struct filter_view *v, vn_queue *q, const struct vn_choice *it, int kernel,
                           const struct conv *c, vn_buffer *to, size_t at)
{
    enum { ITEMS = 256, ELEMENTS = 8 };
    const int64_t row = v->width * FEW / ELEMENTS, height = c->x.extent[3];
    const int64_t vectors = c->x.extent[0] * height * row;
    struct vn_launch l = { .groups = { VN_CEIL_DIV(vectors, ITEMS), 1, 1 }, .items = ITEMS };

    for (int i = 0; i < 2; i++) {               /* there are no filters to copy */
        vn__arg_tensor(&l, &c->x);
        vn__arg_extents(&l, &c->x);
    }
    vn__arg_buffer(&l, to);
    vn__arg_int(&l, (int64_t)(at / VECTOR));
    vn__arg_int(&l, vectors);
    vn__arg_int(&l, vectors);
    vn__arg_int(&l, FEW);
    vn__arg_int(&l, 1);
    for (int i = 0; i < 2; i++) {
        vn__arg_int(&l, row);
        vn__arg_int(&l, height);
    }
    vn__arg_int(&l, c->pad[2]);
    vn__arg_int(&l, 0);
    vn__arg_int(&l, 0);                         /* no twins */
    return vn__launch(q, it, kernel, &l);
}

vn_status vn__filter_copy(struct filter_view *v, vn_queue *q, const struct vn_choice *it, int kernel,
                          int rows, const struct conv *c, vn_buffer *room, size_t at)
{
    const int64_t bytes = (int64_t)vn_type_bytes(c->x.type);
    vn_status s = VN_OK;

    if (v->copies_x) {
        s = bytes * v->pixel < VECTOR
          ? copy_rows(v, q, it, rows, c, room, at)
          : repack(q, it, kernel, &v->copied, v->pixel, v->width, v->across > 1 ? -c->pad[2] : 0, room, at);
        v->as.x.buffer = v->x.source.buffer = room;
        v->as.x.start = v->x.source.start = (int64_t)at / bytes;
        at += v->bytes_x;
    }
    if (v->copies_y && s == VN_OK) {
        s = repack(q, it, kernel, &c->y, v->as.y.stride[4], c->y.extent[4], 0, room, at);
        v->as.y.buffer = v->y.source.buffer = room;
        v->as.y.start = v->y.source.start = (int64_t)at / bytes;
    }
    return s;
}

double vn__filter_copy_seconds(const struct filter_view *v, const struct conv *c, int thousandths,
                               const struct vn_site *site)
{
    const double bytes = (double)vn_type_bytes(c->x.type), launch = vn__launch_seconds(site);
    const double jumps = (double)c->x.extent[4] / (double)v->copied.extent[4];      /* within a row */
    const double x = (double)vn__elements(&v->copied) * jumps * bytes + (double)v->bytes_x;
    const double y = (double)vn__elements(&c->y) * bytes + (double)v->bytes_y;

    return (v->copies_x ? launch + vn__move_seconds(x, thousandths, site) : 0) +
           (v->copies_y ? launch + vn__move_seconds(y, thousandths, site) : 0);
}

void vn__filter_arg_x(struct vn_launch *l, const struct filter_view *v, const struct conv *c)
{
    vn__arg_im2col_source(l, &v->x);
    vn__arg_im2col_window(l, &v->x, (int64_t[DIMS]){ 0 }, 0);
    vn__arg_extents(l, &v->as.w);
    vn__arg_view(l, (int64_t[8]){ 0, 0, 0, 0, c->dilation[0], c->dilation[1], c->dilation[2] });
}

/* ---- tiles and parts ----------------------------------------------------------------------- */

const char *vn__filter_tiles(struct filter_cut *out, const struct conv *c, int64_t blk_m, int64_t blk_n,
                             int64_t block, int64_t blk_k)
{
    const int64_t columns = VN_CEIL_DIV(c->w.extent[1], block) * vn__conv_taps(c) * block;

    *out = (struct filter_cut){ .elements = blk_m * blk_n, .parts = 1, .resident = 1,
                                .slices = VN_CEIL_DIV(vn__conv_pixels(&c->y), blk_k) };
    return vn__mul(&out->tiles, VN_CEIL_DIV(c->w.extent[0], blk_m), VN_CEIL_DIV(columns, blk_n)) &&
           out->tiles < INT_MAX / 2
         ? NULL : "dW has 2^30 or more tiles";
}

int64_t vn__filter_sums(const struct filter_cut *c)
{
    return c->tiles * c->parts * c->elements;
}

/* Work-groups run in rounds; those that share a compute unit take as much longer.  The partial sums are
 * written and read.                                                                                     */
static double seconds_of(const struct filter_cut *c, int sums_apart, double slice, double store,
                         const struct vn_site *site)
{
    const int64_t groups = c->tiles * c->parts, each = VN_CEIL_DIV(groups, site->facts->units);
    const double together = (double)(each < c->resident ? each : c->resident);
    const double rounds = (double)VN_CEIL_DIV(each, c->resident);
    const double bytes = 2 * sizeof(float) * (double)vn__filter_sums(c);
    const double sums = sums_apart ? vn__launch_seconds(site) + bytes / (site->rates->l2_gbps * 1e9) : 0;

    return rounds * ((double)VN_CEIL_DIV(c->slices, c->parts) * slice * together + store) + sums;
}

const char *vn__filter_share(struct filter_cut *out, double *seconds, int fewest, double slice, double store,
                             const struct vn_site *site)
{
    enum { ROUNDS = 4 };
    const int64_t units = site->facts->units, first = fewest ? fewest : 1;
    const int64_t most = fewest ? ROUNDS * units / out->tiles : 1;
    struct filter_cut c = *out;

    *seconds = -1;
    for (c.parts = first; c.parts <= c.slices && (c.parts == first || c.parts <= most); c.parts++) {
        const double s = seconds_of(&c, fewest > 0, slice, store, site);

        if (fewest && c.tiles * c.parts > INT_MAX / 4 / c.elements)
            break;
        if (*seconds < 0 || s < *seconds) {
            *out = c;
            *seconds = s;
        }
    }
    return *seconds >= 0 ? NULL : c.slices < fewest ? "there are too few pixels to divide them"
                                                    : "the partial sums must stay below 2^29 elements";
}

/* ---- their sum ------------------------------------------------------------------------------- */

enum { SUM_ITEMS = 256, SUM_VECTOR = 4 };      /* as in cl/conv/parts.h */

/* Work-items that share the parts of a vector: so many that all compute units are busy. */
static int64_t ways_of(int64_t vectors, int64_t parts, int units)
{
    enum { ITEMS_PER_UNIT = 2048, MOST = 32 };
    int64_t ways = 1;

    while (ways < MOST && 2 * ways <= parts && vectors * ways < (int64_t)units * ITEMS_PER_UNIT)
        ways *= 2;
    return ways;
}

vn_status vn__filter_sum(vn_queue *q, const struct vn_choice *it, int kernel, const struct conv *c,
                         const struct filter_view *v, const struct filter_cut *cut, vn_buffer *sums)
{
    const int64_t vectors = cut->tiles * (cut->elements / SUM_VECTOR);
    const int64_t ways = ways_of(vectors, cut->parts, q->device->facts.units);
    struct vn_launch l = { .groups = { vectors / (SUM_ITEMS / ways), 1, 1 }, .items = SUM_ITEMS };

    vn__arg_extents(&l, &v->as.w);
    vn__arg_int(&l, c->w.extent[1]);
    vn__arg_int(&l, v->across > 1 ? v->pixel : v->as.w.extent[1]);
    vn__arg_int(&l, cut->tiles);
    vn__arg_int(&l, cut->parts);
    vn__arg_int(&l, ways);
    vn__arg_buffer(&l, sums);
    vn__conv_arg_alpha(&l, c);
    vn__conv_arg_output(&l, c);
    return vn__launch(q, it, kernel, &l);
}

vn_status vn__filter_columns_sum(vn_queue *q, const struct vn_choice *it, int kernel, const struct conv *c,
                                 int64_t columns, int64_t parts, vn_buffer *sums)
{
    const int64_t vectors = c->w.extent[0] * columns / SUM_VECTOR;
    const int64_t ways = ways_of(vectors, parts, q->device->facts.units);
    struct vn_launch l = { .groups = { VN_CEIL_DIV(vectors, SUM_ITEMS / ways), 1, 1 }, .items = SUM_ITEMS };

    vn__conv_arg_taps(&l, c);
    vn__arg_int(&l, c->w.extent[0] / c->groups);
    vn__arg_int(&l, columns);
    vn__arg_int(&l, vectors);
    vn__arg_int(&l, parts);
    vn__arg_int(&l, ways);
    vn__arg_buffer(&l, sums);
    vn__conv_arg_alpha(&l, c);
    vn__conv_arg_output(&l, c);
    return vn__launch(q, it, kernel, &l);
}
