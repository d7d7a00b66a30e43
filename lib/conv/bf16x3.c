/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16x3.c - the variant conv_bf16x3: f32 forward and backward data by the bf16 matrix engine of NVIDIA's
 * sm_90, the filter in three parts, the source split into its parts on the way to the engine.
 *
 * A source that TMA cannot read is repacked first: to rows of contiguous channels; and with few channels, to
 * rows that hold all taps of a row of the filter, so that slices of a product are not mostly zeros.
 */
#include <limits.h>
#include <string.h>

#include "gemm/bf16x3.h"
#include "repack.h"

enum { BLK_M, STAGES, WARPGROUPS };             /* its parameters */
enum { EFF, TILE_NS, FIXED_NS, STORE_NS, MOVE, ODD_C };         /* its costs */
enum { SPLIT, REPACK, MULTIPLY, ADD };          /* its kernels */
enum { BLK_K = 32, PAIR = 2 * BLK_K, SPLIT_SPAN = 16, VECTOR = 4, WARPGROUP_N = 64, USUAL_N = 128, FEW = 512,
       ALIGNED = 256, MOST_PHASES = 9, MOST_STEP = 8 };

/* ---- a phase as a product ----------------------------------------------------------------- */

/* Pixels of the output, or of one of its phases, and the taps that contribute to them: cl/conv/bf16x3.cl has
 * what the kernel makes of them.                                                                         */
struct phase {
    struct conv c;                              /* its output is that of the phase */
    int64_t first[DIMS], step[DIMS];            /* of sources of pixels */
    int64_t fill, width;                        /* pixels of a row that are stored for one; all of a row */
    int64_t taps[DIMS], tap[DIMS], tap_step[DIMS], offset[DIMS], offset_step[DIMS];
};

/* The source as TMA reads it. */
struct source {
    vn_tensor t;
    int64_t   channels;                         /* of a slice's tap */
    int       repacked, folded, n_major;
    int64_t   pixel;                            /* channels of a pixel of the copy */
    int64_t   width;                            /* pixels of a row of the copy */
    int64_t   copy;                             /* elements of it; 0: too many */
};

static const vn_tensor *source_of(const struct conv *c)
{
    return c->direction == FORWARD ? &c->x : &c->y;
}

/* Backward data: whether the pixels of a row between those that the filter's one column meets are stored with
 * them, instead of in phases of their own.                                                                */
static int has_fills(const struct conv *c)
{
    return c->direction == BACKWARD_DATA && c->stride[2] > 1 && c->stride[2] <= c->x.extent[4] &&
           c->w.extent[4] == 1 && c->pad[2] == 0;
}

static int phases_along(const struct conv *c, int d)
{
    return c->direction == FORWARD || (d == DIMS - 1 && has_fills(c)) ? 1
         : (int)(c->stride[d] < c->x.extent[2 + d] ? c->stride[d] : c->x.extent[2 + d]);
}

/* Backward data: the taps that contribute to pixels of this phase, as find_taps() of cl/conv/conv.h. */
static void find_taps(struct phase *p, const struct conv *c, int d, int64_t phase)
{
    const int64_t g = vn__common_divisor(c->dilation[d], c->stride[d]), step = c->stride[d] / g;
    const int64_t at = phase + c->pad[d], taps = c->w.extent[2 + d];
    const int64_t first = step == 1 ? 0 : at / g % step * vn__inverse(c->dilation[d] / g, step) % step;
    const int64_t count = at % g || first >= taps ? 0 : (taps - 1 - first) / step + 1;
    const int64_t slide = c->dilation[d] / g;

    p->taps[d] = count;
    p->tap[d] = count ? first : 0;
    p->tap_step[d] = step;
    p->offset[d] = count ? (count - 1) * slide : 0;
    p->offset_step[d] = -slide;
    p->first[d] = count ? (at - first * c->dilation[d]) / c->stride[d] - p->offset[d] : 0;
    p->step[d] = 1;
}

/* The pixels phase, phase + step ... of dimension d of a view. */
static void take_phase(vn_tensor *t, int d, int64_t phase, int64_t step)
{
    t->start += phase * t->stride[2 + d];
    t->extent[2 + d] = (t->extent[2 + d] - phase + step - 1) / step;
    t->stride[2 + d] *= step;
}

static struct phase phase_at(const struct conv *c, int number)
{
    struct phase p = { .c = *c, .fill = has_fills(c) ? c->stride[2] : 1, .width = c->x.extent[4] };

    for (int d = DIMS - 1; d >= 0; d--) {
        const int along = phases_along(c, d), phase = number % along;

        number /= along;
        if (c->direction == FORWARD) {
            p.first[d] = -c->pad[d];
            p.step[d] = c->stride[d];
            p.taps[d] = c->w.extent[2 + d];
            p.tap_step[d] = 1;
            p.offset_step[d] = c->dilation[d];
            continue;
        }
        find_taps(&p, c, d, phase);
        take_phase(&p.c.x, d, phase, c->stride[d]);
        if (c->has_bias)
            take_phase(&p.c.bias, d, phase, c->stride[d]);
        if (c->beta != 0)
            take_phase(&p.c.residual, d, phase, c->stride[d]);
    }
    return p;
}

static int64_t phases_of(const struct conv *c)
{
    return (int64_t)phases_along(c, 0) * phases_along(c, 1) * phases_along(c, 2);
}

/* ---- the source ----------------------------------------------------------------------------- */

static int64_t whole(int64_t n, int64_t of) { return VN_CEIL_DIV(n, of) * of; }

/* One tap, pixels that TMA can read as rows, each of them of a pixel of the output, and tiles of one image
 * that are mostly full: what the others cost, filter by filter, is less than a copy of the source.       */
static int is_n_major(const struct conv *c)
{
    const vn_tensor *const t = source_of(c), *const out = vn__conv_output(c);
    int64_t pixels = 1;

    for (int d = DIMS - 1; d >= 0; d--) {
        const int64_t step = c->direction == FORWARD ? 1 : c->stride[d];

        if (c->w.extent[2 + d] != 1 || c->pad[d] != 0 || (c->direction == FORWARD && c->stride[d] != 1) ||
            VN_CEIL_DIV(out->extent[2 + d], step) != t->extent[2 + d] ||
            (t->extent[2 + d] > 1 && t->stride[2 + d] != pixels))
            return 0;
        pixels *= t->extent[2 + d];
    }
    for (int i = 0; i < 2; i++)
        if (t->extent[i] > 1 && (t->stride[i] % VECTOR || t->stride[i] <= 0 ||
                                 t->stride[i] >= (int64_t)1 << 37))
            return 0;
    return !vn__conv_is_rows(t) && t->start % VECTOR == 0 && pixels % VECTOR == 0 &&
           whole(pixels, USUAL_N) <= pixels + pixels / (vn__conv_rows(c) <= FEW ? 3 : 4);
}

static int is_foldable(const struct conv *c)
{
    return c->direction == FORWARD && c->x.extent[1] <= VECTOR && c->dilation[2] == 1 &&
           c->w.extent[4] > 1 && c->w.extent[4] * VECTOR <= BLK_K;
}

static struct source read_source(const struct conv *c)
{
    struct source s = { .t = *source_of(c), .folded = is_foldable(c) };

    s.n_major = is_n_major(c);
    s.repacked = s.folded || (!vn__conv_is_rows(&s.t) && !s.n_major);
    s.pixel = vn__conv_row_channels(&s.t);
    s.width = s.folded ? (c->y.extent[4] - 1) * c->stride[2] + c->w.extent[4] : s.t.extent[4];
    s.copy = vn__conv_row_elements(&s.t, s.width);
    if (s.repacked)
        vn__conv_lay_rows(&s.t, s.width);
    if (s.folded) {
        s.t.extent[1] = c->w.extent[4] * s.pixel;
        s.t.extent[4] = c->y.extent[4];
        s.t.stride[4] *= c->stride[2];
    }
    if (s.n_major) {                            /* an image is one row */
        s.t.extent[4] *= s.t.extent[3] * s.t.extent[2];
        s.t.extent[3] = s.t.extent[2] = s.t.stride[4] = 1;
    }
    s.channels = s.t.extent[1];
    for (int i = 0; i < RANK; i++)              /* TMA wants some stride, too, where there is no next one */
        if (s.t.extent[i] == 1 && s.t.stride[i] != 1)
            s.t.stride[i] = VECTOR;
    return s;
}

/* The taps of a phase, where a slice has all of a row. */
static void fold(struct phase *p, const struct source *s)
{
    if (!s->folded)
        return;
    p->first[2] = 0;
    p->step[2] = 1;
    p->taps[2] = 1;
    p->offset_step[2] = 0;
}

/* The filter as rows, for each tap; `dense`: as a copy of folded taps. */
static vn_tensor filter_of(const struct conv *c, const struct source *s)
{
    const int back = c->direction == BACKWARD_DATA;
    vn_tensor w = c->w;

    for (int d = 0; d < DIMS; d++) {
        w.extent[d] = c->w.extent[2 + d];
        w.stride[d] = c->w.stride[2 + d];
    }
    w.extent[3] = c->w.extent[back];
    w.stride[3] = c->w.stride[back];
    w.extent[4] = c->w.extent[!back];
    w.stride[4] = c->w.stride[!back];
    if (s->folded) {
        w.extent[2] = 1;
        w.extent[4] = s->channels;
        w.stride[4] = 1;
        w.stride[2] = 0;
        w.stride[1] = s->channels;
        w.stride[0] = w.stride[1] * w.extent[1];
        w.stride[3] = w.stride[0] * w.extent[0];
    }
    return w;
}

/* ---- fits ------------------------------------------------------------------------------------- */

static int is_volume(const struct conv *c)
{
    return c->x.extent[2] > 1 || c->y.extent[2] > 1 || c->w.extent[2] > 1;
}

/* A corner is a number of 8 bits, of 5 in volumes. */
static int fits_corners(const struct phase *p, const struct source *s)
{
    const vn_tensor *const out = vn__conv_output(&p->c);
    const int64_t most = is_volume(&p->c) ? 16 : 128;

    if (s->n_major)
        return 1;
    for (int d = 0; d < DIMS; d++) {
        const int64_t last = p->first[d] + (out->extent[2 + d] - 1) * p->step[d];
        const int64_t above = last - (s->t.extent[2 + d] - 1);
        const int64_t offset = p->offset[d] > 0 ? p->offset[d] : (p->taps[d] - 1) * p->offset_step[d];

        if (p->first[d] < -most || p->first[d] >= most || above < -most || above >= most ||
            offset >= 2 * most || p->step[d] > MOST_STEP)
            return 0;
    }
    return 1;
}

const char *vn__fits_conv_bf16x3(const void *problem, const struct vn_facts *f)
{
    const struct conv *const given = problem, without = vn__conv_without_jumps(given), *const c = &without;
    const struct source s = read_source(c);
    const vn_tensor *const out = vn__conv_output(c);

    if (vn__sm(f) != 90)
        return "it needs an NVIDIA GPU of sm_90, for wgmma";
    if (c->direction == BACKWARD_FILTER)
        return "it is for outputs that are images";
    if (source_of(c)->type != VN_F32 || c->w.type != VN_F32 || out->type != VN_F32)
        return "it needs f32";
    if (c->math == VN_MATH_BITWISE)
        return "bitwise mathematics needs the order of sums of conv";
    if (c->is_empty)
        return "there is nothing to multiply";
    if (c->groups != 1)
        return "it has one group";
    if (phases_of(c) > MOST_PHASES)
        return "the pixels have more than 9 phases";
    if (vn__conv_pixels(out) > VN_CONV_MOST || vn__conv_pixels(source_of(c)) > VN_CONV_MOST ||
        vn__conv_depth(c) > VN_CONV_MOST / PAIR || vn__conv_rows(c) > VN_CONV_MOST || !s.copy)
        return "its pixels and sums must stay below 2^31";
    for (int i = 0; i < phases_of(c); i++) {
        struct phase p = phase_at(c, i);

        fold(&p, &s);
        if (!fits_corners(&p, &s))
            return "padding, filter and stride are too large for TMA's im2col mode";
    }
    return NULL;
}

void vn__constants_conv_bf16x3(int *c, const void *problem)
{
    const struct conv without = vn__conv_without_jumps(problem);

    c[0] = is_volume(problem) ? 5 : 4;
    c[1] = is_n_major(&without);
    c[2] = has_fills(&without);
}

/* ---- the plan ------------------------------------------------------------------------------------ */

static int64_t blk_n(const int *p) { return WARPGROUP_N * p[WARPGROUPS]; }

/* Work-items that multiply, and those that load: a warpgroup where it gives up registers. */
static int items_of(const int *p)
{
    return 128 * p[WARPGROUPS] + (p[BLK_M] > 64 && p[WARPGROUPS] > 1 ? 128 : 32);
}

/* Work-groups that a compute unit holds: what their local memory leaves room for. */
static int64_t resident(const int *p, const struct vn_site *site)
{
    enum { OTHER = 2048 };
    const int64_t stage = BLK_K / 16 * 96 * p[BLK_M] + 128 * blk_n(p);
    const int64_t each = (int64_t)(site->rates->local_kib * 1024) / (p[STAGES] * stage + OTHER);

    return each > 1 ? each : 1;
}

/* Pairs of slices of all tiles, and how many units they are divided among, for each panel of filters: pair by
 * pair, or whole tiles.                                                                                   */
struct cut { int64_t panels, tiles, pairs, units; int whole; };

static struct cut cut_in(const struct phase *p, const struct source *s, const int *params, int64_t units,
                         int whole_tiles)
{
    const int64_t slices = p->taps[0] * p->taps[1] * p->taps[2] * VN_CEIL_DIV(s->channels, BLK_K);
    const int64_t pixels = vn__conv_pixels(vn__conv_output(&p->c));
    struct cut c = { .panels = VN_CEIL_DIV(vn__conv_rows(&p->c), params[BLK_M]),
                     .tiles = s->n_major
                            ? VN_CEIL_DIV(pixels / s->t.extent[0], blk_n(params)) * s->t.extent[0]
                            : VN_CEIL_DIV(pixels, blk_n(params)),
                     .pairs = slices ? VN_CEIL_DIV(slices, 2) : 1 };
    const int64_t all = whole_tiles ? c.tiles : c.tiles * c.pairs;

    c.units = units < 1 ? 1 : units < all ? units : all;
    c.whole = whole_tiles || c.tiles % c.units == 0;
    return c;
}

/* Pairs of the largest unit. */
static int64_t longest(const struct cut *c)
{
    return c->whole ? VN_CEIL_DIV(c->tiles, c->units) * c->pairs : VN_CEIL_DIV(c->tiles * c->pairs, c->units);
}

static double seconds_of(const struct phase *p, const struct source *s, const struct cut *c,
                         const struct vn_row *row, const struct vn_site *site)
{
    const int64_t most = site->facts->units * resident(row->p, site), all = c->units * c->panels;
    const double units = site->facts->units, groups = (double)all;
    const double sharing = (double)(all < most ? VN_CEIL_DIV(all, site->facts->units)
                                               : resident(row->p, site));
    const double pair = 2.0 * row->p[BLK_M] * (double)blk_n(row->p) * PAIR /
                        (vn__bf16x3_peak(site) * 1e6 * row->cost[EFF]);
    const double work = (double)VN_CEIL_DIV(all, most) *
                        ((double)longest(c) * pair * sharing +
                         (double)VN_CEIL_DIV(c->tiles, c->units) * row->cost[STORE_NS] * 1e-9 +
                         row->cost[TILE_NS] * 1e-9);
    const vn_tensor *const c_view = vn__conv_output(&p->c);
    const int is_odd = c_view->stride[1] != 1 && c_view->stride[4] != p->fill && c_view->extent[4] > 1;
    const double elements = (double)vn__elements(c_view) * (double)p->fill;
    const double out = elements * (p->c.beta != 0 ? 2 : 1);
    const double scattered = is_odd ? elements * sizeof(float) * row->cost[ODD_C] / 1000 : 0;
    const double in = p->taps[0] * p->taps[1] * p->taps[2] > 0 ? (double)vn__elements(&s->t) : 0;
    const double read = vn__move_seconds((in + out) * sizeof(float), 1000, site) *
                        larger(1, site->rates->readers * units / groups);
    const double sums = groups * row->p[BLK_M] * (double)blk_n(row->p) * 2 * sizeof(float);

    return larger(work, read) + vn__move_seconds(scattered, 1000, site) +
           (!c->whole ? vn__launch_seconds(site) + vn__move_seconds(sums, 1000, site) : 0);
}

/* As a plan keeps it: the units, below 0 of whole tiles. */
static struct cut units_of(const struct phase *p, const struct source *s, const int *params, int64_t units)
{
    return cut_in(p, s, params, units < 0 ? -units : units, units < 0);
}

/* As many units as run at the same time, of whole tiles or of pairs; or of pairs, as many for each tile; or
 * half as many.                                                                                          */
static struct cut cut_of(const struct phase *p, const struct source *s, const struct vn_row *row,
                         const struct vn_site *site)
{
    struct cut best = cut_in(p, s, row->p, 1, 1);
    const int64_t units = site->facts->units * resident(row->p, site) / best.panels, tiles = best.tiles;
    const int64_t wanted[] = { units, units / tiles * tiles, units / 2 };

    best = cut_in(p, s, row->p, units, 1);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        const struct cut c = cut_in(p, s, row->p, wanted[i], 0);

        if (wanted[i] > 0 && seconds_of(p, s, &c, row, site) < seconds_of(p, s, &best, row, site))
            best = c;
    }
    return best;
}

/* Numbers of a plan: the most work-groups of a phase whose tiles are in several, then the units of each
 * phase.                                                                                    */
enum { CUT, UNITS };

/* Where things are in the workspace, in bytes: partial sums, the copies of the source and of
 * the filter, the filter's parts, unless they are in a pack.                                           */
struct room { size_t source, filter, parts, bytes; int packed; };

/* The parts of the filter, and the bytes of its copy; 0: there are too many. */
static int parts_of(struct vn_bf16x3_side *side, size_t *copy, const struct conv *c, const struct source *s,
                    const int *params)
{
    const vn_tensor w = filter_of(c, s);
    int64_t filter;

    if (!vn__bf16x3_panels(side, &w, params[BLK_M], BLK_K) || vn__bf16x3_bytes(side) > SIZE_MAX / 4 ||
        !vn__mul(&filter, vn__conv_taps(c) * c->w.extent[0], s->pixel))
        return 0;
    *copy = s->folded ? (size_t)whole(filter * (int64_t)sizeof(float), ALIGNED) : 0;
    return 1;
}

/* The filter's parts, from byte r->parts of `to` on; where it is folded, of a copy from byte r->filter of
 * `room` on.                                                                                           */
static vn_status split(vn_queue *q, const struct vn_choice *it, const struct conv *c, const struct source *s,
                       struct vn_bf16x3_side *side, const struct room *r, vn_buffer *room, vn_buffer *to)
{
    struct vn_launch l = { .nargs = 0 };
    vn_status status = VN_OK;

    if (s->folded) {
        side->t.buffer = room;
        side->t.start = (int64_t)(r->filter / sizeof(float));
        status = vn__conv_repack(q, it, REPACK, &c->w, c->w.extent[4], 0, room, side->t.start);
    }
    side->view[7] = (int64_t)(r->parts / VN_BF16X3_UNIT);
    if (status || (status = vn__bf16x3_launch_split(&l, side, to, SPLIT_SPAN)))
        return status;
    return vn__launch(q, it, SPLIT, &l);
}

static vn_status pack_parts(vn_queue *q, const struct vn_choice *it, const void *problem, vn_buffer *to,
                            size_t at)
{
    const struct conv c = vn__conv_without_jumps(problem);
    const struct source s = read_source(&c);
    const struct room r = { .filter = 0, .parts = at };
    struct vn_bf16x3_side side;
    vn_buffer *room = NULL;
    size_t copy;
    vn_status status;

    if (!parts_of(&side, &copy, &c, &s, it->p))
        return vn__fail(VN_UNSUPPORTED, "w has more than 2^31 vectors");
    if (copy && (status = vn__workspace(&room, q, copy)))
        return status;
    return split(q, it, &c, &s, &side, &r, room, to);
}

/* Of the parts, as parts_of() has them; of SIZE_MAX bytes where there are too many. */
static struct vn_layout layout_of(struct vn_bf16x3_side *side, size_t *copy, const struct conv *c,
                                  const struct source *s, const int *p)
{
    const int fits = parts_of(side, copy, c, s, p);

    return (struct vn_layout){ pack_parts, p[BLK_M] * 4 + (c->direction == BACKWARD_DATA) * 2 + s->folded,
                               fits ? vn__bf16x3_bytes(side) : SIZE_MAX };
}

struct vn_layout vn__layout_conv_bf16x3(const void *problem, const int *p)
{
    const struct conv c = vn__conv_without_jumps(problem);
    const struct source s = read_source(&c);
    struct vn_bf16x3_side side;
    size_t copy;

    return layout_of(&side, &copy, &c, &s, p);
}

/* 0: the filter has too many parts. */
static int lay_out(struct room *r, struct vn_bf16x3_side *side, const struct conv *c, const struct source *s,
                   const int *params, const int64_t *v)
{
    size_t copy;
    const struct vn_layout l = layout_of(side, &copy, c, s, params);

    if (l.bytes == SIZE_MAX)
        return 0;
    r->packed = vn__conv_is_packed(c, &l);
    r->source = (size_t)v[CUT] * 2 * (size_t)(params[BLK_M] * blk_n(params)) * sizeof(float);
    r->filter = r->source + (s->repacked ? (size_t)whole(s->copy * (int64_t)sizeof(float), ALIGNED) : 0);
    r->parts = r->packed ? 0 : r->filter + copy;
    r->bytes = r->packed ? r->filter : r->parts + l.bytes;
    side->view[7] = (int64_t)(r->parts / VN_BF16X3_UNIT);
    return 1;
}

const char *vn__plan_conv_bf16x3(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                 const struct vn_site *site)
{
    const struct conv c = vn__conv_without_jumps(problem);
    const struct source s = read_source(&c);
    const double filter = (double)vn__elements(&c.w) * (4.0 + 6.0);
    const struct vn_layout l = vn__layout_conv_bf16x3(&c, row->p);
    struct vn_bf16x3_side side;
    struct room room;

    out->seconds = row->cost[FIXED_NS] * 1e-9 +
                   (vn__conv_is_packed(&c, &l) ? 0 : vn__move_seconds(filter, row->cost[MOVE], site));
    out->v[CUT] = 0;
    for (int i = 0; i < phases_of(&c); i++) {
        struct phase p = phase_at(&c, i);
        struct cut cut;
        int64_t all;

        fold(&p, &s);
        cut = cut_of(&p, &s, row, site);
        if (!vn__mul(&all, cut.tiles, cut.pairs) || all > INT_MAX / 4 ||
            cut.units * cut.panels > INT_MAX / 4) {
            out->seconds = -1;
            return "its tiles have more than 2^29 slices";
        }
        out->v[UNITS + i] = cut.whole ? -cut.units : cut.units;
        if (!cut.whole && cut.units * cut.panels > out->v[CUT])
            out->v[CUT] = cut.units * cut.panels;
        out->seconds += seconds_of(&p, &s, &cut, row, site) + (i ? vn__launch_seconds(site) : 0);
    }
    if (!lay_out(&room, &side, &c, &s, row->p, out->v)) {
        out->seconds = -1;
        return "its filter has more than 2^31 vectors";
    }
    out->workspace = room.bytes;
    if (s.repacked)
        out->seconds += vn__launch_seconds(site) * (s.folded ? 2 : 1) +
                        vn__move_seconds((double)(s.copy + vn__elements(source_of(&c))) * sizeof(float),
                                         row->cost[MOVE], site);
    if (row->cost[EFF] <= 0)
        out->seconds = 0;
    return NULL;
}

/* ---- launches --------------------------------------------------------------------------------------- */

/* Steps at s1 to s3, the first ones at s4 to s6. */
static void arg_walk(struct vn_launch *l, const int64_t first[DIMS], const int64_t step[DIMS])
{
    const int64_t v[8] = { 0, step[0], step[1], step[2], first[0], first[1], first[2] };

    vn__arg_view(l, v);
}

/* What is done once for all phases: the parts of the filter, and copies.  parts: where the former are. */
static vn_status prepare(vn_buffer **parts, vn_queue *q, const struct vn_choice *it, const struct conv *c,
                         const struct source *s, struct vn_bf16x3_side *side, const struct room *r,
                         vn_buffer *room)
{
    vn_status status = VN_OK;

    if (s->repacked)
        status = vn__conv_repack(q, it, REPACK, source_of(c), s->width, s->folded ? -c->pad[2] : 0, room,
                                 (int64_t)(r->source / sizeof(float)));
    *parts = r->packed ? c->pack : room;
    if (r->packed)
        q->packed_used = vn__bf16x3_bytes(side);
    return status || r->packed ? status : split(q, it, c, s, side, r, room, room);
}

static void arg_grid(struct vn_launch *l, const struct phase *p)
{
    const vn_tensor *const out = vn__conv_output(&p->c);

    vn__conv_arg_sizes(l, p->fill, p->width, out->extent[0], vn__conv_rows(&p->c), out->extent + 2);
}

/* And the extents of the grid as prepared divisors. */
static void arg_steps(struct vn_launch *l, const struct phase *p)
{
    const int64_t *const grid = vn__conv_output(&p->c)->extent + 2;

    vn__arg_view(l, (int64_t[8]){ vn__divisor(grid[0]), vn__divisor(grid[1]), vn__divisor(grid[2]), 0,
                                  p->step[0], p->step[1], p->step[2] });
}

static void arg_cut(struct vn_launch *l, const struct cut *c)
{
    const int64_t all = c->whole ? c->tiles : c->tiles * c->pairs;

    vn__arg_view(l, (int64_t[8]){ all / c->units, all % c->units, c->units, c->whole ? c->pairs : 1 });
}

static vn_status multiply(vn_queue *q, const struct vn_choice *it, const struct phase *p,
                          const struct source *s, const struct vn_bf16x3_side *side, const struct cut *cut,
                          const struct room *r, vn_buffer *room, vn_buffer *parts)
{
    const struct conv *const c = &p->c;
    const vn_tensor *const in = source_of(c);
    const int back = c->direction == BACKWARD_DATA;
    struct vn_launch l = { .groups = { cut->units * cut->panels, 1, 1 }, .items = items_of(it->p) };
    const int64_t start = s->repacked ? (int64_t)(r->source / sizeof(float)) : s->t.start;
    vn_status status;

    arg_grid(&l, p);
    arg_walk(&l, p->first, p->step);
    arg_steps(&l, p);
    vn__conv_arg_sizes(&l, 0, 0, 0, s->channels, p->taps);
    arg_walk(&l, p->tap, p->tap_step);
    arg_walk(&l, p->offset, p->offset_step);
    arg_cut(&l, cut);
    vn__conv_arg_image(&l, &s->t, s->repacked ? room : in->buffer, start);
    vn__conv_arg_sizes(&l, 0, 0, s->t.extent[0], s->t.extent[1], s->t.extent + 2);
    vn__arg_buffer(&l, parts);
    vn__arg_view(&l, side->view);
    if ((status = vn__arg_maps(&l, q)))
        return status;
    vn__arg_buffer(&l, room ? room : parts);    /* for partial sums, if there are any */
    vn__conv_arg_image(&l, in, in->buffer, in->start);
    vn__conv_arg_sizes(&l, s->folded ? -c->pad[2] : p->first[2], s->folded ? c->stride[2] : p->step[2],
                       in->extent[1], s->folded ? s->pixel : s->channels, in->extent + 2);
    vn__arg_buffer(&l, c->w.buffer);
    vn__arg_view(&l, (int64_t[8]){ c->w.start, 0, c->w.stride[back], c->w.stride[!back], c->w.stride[2],
                                   c->w.stride[3], c->w.stride[4] });
    vn__conv_arg_alpha(&l, c);
    vn__conv_arg_output(&l, c);
    return vn__launch(q, it, MULTIPLY, &l);
}

static vn_status add_units(vn_queue *q, const struct vn_choice *it, const struct phase *p,
                           const struct source *s, const struct cut *cut, vn_buffer *room)
{
    enum { PIECE = 16 };
    const int64_t pieces = it->p[BLK_M] / 2 / PIECE;
    struct vn_launch l = { .groups = { (cut->units - 1) * cut->panels * pieces, 1, 1 },
                           .items = 128 * it->p[WARPGROUPS] };

    arg_grid(&l, p);
    vn__conv_arg_sizes(&l, 0, 0, 0, s->channels, p->taps);
    arg_cut(&l, cut);
    vn__arg_buffer(&l, room);
    vn__conv_arg_alpha(&l, &p->c);
    vn__conv_arg_output(&l, &p->c);
    return vn__launch(q, it, ADD, &l);
}

vn_status vn__run_conv_bf16x3(vn_queue *q, const struct vn_choice *it, const void *problem,
                              const struct vn_plan *plan)
{
    const struct conv c = vn__conv_without_jumps(problem);
    const struct source s = read_source(&c);
    struct vn_bf16x3_side side;
    vn_buffer *buffer = NULL, *parts;
    struct room room;
    vn_status status;

    lay_out(&room, &side, &c, &s, it->p, plan->v);
    if ((room.bytes && (status = vn__workspace(&buffer, q, room.bytes))) ||
        (status = prepare(&parts, q, it, &c, &s, &side, &room, buffer)))
        return status;
    for (int i = 0; i < phases_of(&c) && !status; i++) {
        struct phase p = phase_at(&c, i);
        struct cut cut;

        fold(&p, &s);
        cut = units_of(&p, &s, it->p, plan->v[UNITS + i]);
        status = multiply(q, it, &p, &s, &side, &cut, &room, buffer, parts);
        if (!status && !cut.whole)
            status = add_units(q, it, &p, &s, &cut, buffer);
    }
    return status;
}
