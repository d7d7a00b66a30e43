/* SPDX-License-Identifier: Apache-2.0
 *
 * slab_filter.c - the variant conv_slab_filter: the gradient of a filter on CPUs, out of a slab.
 */
#include <limits.h>

#include "slab.h"

enum { LEAST_PIXELS = 64, MOST_PIXELS = 512 };  /* of a box */
enum { SPLIT_PIXELS = 384 };                    /* that repay storing and adding sums of their own */
enum { NARROW_TAPS = 4 };                       /* with more, one panel repays filling the slab */

/* What a task is: a block of channels by some panels of filters, summed over a part of the boxes. */
struct cut {
    struct vn_boxes pixels;
    int64_t channels, blocks, panels, ranges, splits;
    int64_t cells, vectors;             /* tasks without splits; of sums, of each */
};

/* The block of channels and the panels whose sums fit: both about as wide, as packing dy costs one what
 * filling the slab costs the other; a slab element is used by each tap.                               */
static void cut_cell(struct cut *cut, int64_t channels, int64_t taps, int64_t panels, int64_t width,
                     int64_t room)
{
    cut->panels = 1;
    while (cut->panels < panels && taps * channels * cut->panels * width * 2 <= room)
        cut->panels *= 2;
    while (taps <= NARROW_TAPS && cut->panels < panels &&
           min_of(channels, room / (cut->panels * width) / 2 / taps) * taps >= cut->panels * 2 * width)
        cut->panels *= 2;
    cut->panels = vn__even_part(panels, cut->panels);
    cut->channels = vn__even_part(channels, room / (cut->panels * width) / taps);
}

static const char *cut_up(struct cut *cut, const struct conv *c, const int *p, int units)
{
    const int64_t vectors = VN_CEIL_DIV(c->w.extent[0] / c->groups, p[VN_SLAB_VEC]);
    const int64_t panels = VN_CEIL_DIV(vectors, p[VN_SLAB_THR_V]), channels = c->w.extent[1];
    const int64_t width = min_of(vectors, p[VN_SLAB_THR_V]) * p[VN_SLAB_VEC];
    const int64_t taps = vn__conv_taps(c), images = c->is_empty ? 1 : c->y.extent[0];
    const struct vn_reach r[DIMS] = VN_REACHES(c);
    const int64_t wanted = VN_TASKS_PER_UNIT * (int64_t)units;
    int64_t room = p[VN_SLAB_BLK_C], most = MOST_PIXELS, boxes = 1;

    if (taps > room / width)
        return "the sums of all taps do not fit the local memory";
    for (;; room /= 2) {
        cut_cell(cut, channels, taps, panels, width, room);
        cut->blocks = VN_CEIL_DIV(channels, cut->channels);
        cut->ranges = VN_CEIL_DIV(panels, cut->panels);
        if ((double)cut->blocks * (double)cut->ranges * (double)c->groups > INT_MAX / 2 / wanted)
            return "it has too many tasks";
        cut->cells = cut->blocks * cut->ranges * c->groups;
        cut->splits = max_of(1, min_of(VN_CEIL_DIV(wanted, cut->cells),
                                       vn__conv_pixels(&c->y) / SPLIT_PIXELS));
        if (cut->cells * cut->splits >= wanted || room / 2 < taps * width || cut->cells >= channels * panels)
            break;
    }
    do {
        vn__cut_box(&cut->pixels, images, r, most);
        most = most * 3 / 4;
    } while (most > LEAST_PIXELS && (vn__slab_elements(r, cut->pixels.box) + 16) * (double)cut->channels >
                                    p[VN_SLAB_BLK_S]);
    if (vn__slab_elements(r, cut->pixels.box) + 16 > p[VN_SLAB_BLK_S])
        return "the source of a box of pixels does not fit the slab";
    cut->channels = min_of(cut->channels, (int64_t)(p[VN_SLAB_BLK_S] /
                                                    (vn__slab_elements(r, cut->pixels.box) + 16)));
    if (cut->channels > p[VN_SLAB_VEC])         /* whole vectors */
        cut->channels = cut->channels / p[VN_SLAB_VEC] * p[VN_SLAB_VEC];
    cut->blocks = VN_CEIL_DIV(channels, cut->channels);
    cut->cells = cut->blocks * cut->ranges * c->groups;
    cut->vectors = taps * cut->channels * min_of(vectors, cut->panels * p[VN_SLAB_THR_V]);
    for (int i = 0; i <= DIMS; i++)
        boxes *= cut->pixels.count[i];
    if (boxes > INT_MAX / 2)
        return "it has more than 2^30 boxes of pixels";
    cut->splits = c->is_empty ? 1 : min_of(cut->splits, boxes);
    return cut->cells > INT_MAX / 2 / cut->splits ? "it has more than 2^30 tasks" : NULL;
}

const char *vn__plan_conv_slab_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                      const struct vn_site *site)
{
    const struct conv *c = problem;
    struct cut cut;
    const char *why = vn__slab_fits(c, row->p, site->facts);
    int64_t bytes = (c->p.type == VN_F64 ? 8 : 4) * row->p[VN_SLAB_VEC];

    if (why || (why = cut_up(&cut, c, row->p, site->facts->units)))
        return why;
    if (cut.splits > 1 && vn__mul(&bytes, bytes, cut.vectors) && vn__mul(&bytes, bytes, cut.cells) &&
        vn__mul(&bytes, bytes, cut.splits) && (uint64_t)bytes <= site->queue->workspace_limit)
        out->workspace = (size_t)bytes;         /* else pixels are not divided */
    return c->w.extent[0] / c->groups < row->p[VN_SLAB_VEC] / 2
         ? "vectors of filters would be empty for the most part" : NULL;
}

static void arg_cut(struct vn_launch *l, const struct conv *c, const struct cut *cut)
{
    const struct vn_boxes *const p = &cut->pixels;
    const int64_t limit = c->is_empty ? 0 : (int64_t)(c->y.buffer->bytes / vn_type_bytes(c->y.type));

    vn__arg_view(l, (int64_t[8]){ limit, cut->splits, p->box[0], cut->panels, p->box[1], p->box[2],
                                  p->box[3] });
    vn__arg_view(l, (int64_t[8]){ cut->channels, cut->vectors, p->count[0], cut->ranges, p->count[1],
                                  p->count[2], p->count[3] });
}

static vn_status run_add(vn_queue *q, const struct vn_choice *it, const struct conv *c, const struct cut *cut,
                         vn_buffer *sums)
{
    struct vn_launch l = { .groups = { cut->cells, cut->panels, 1 }, .items = 1 };

    vn__conv_arg_output(&l, c);
    vn__conv_arg_taps(&l, c);
    vn__conv_arg_steps(&l, c);
    vn__conv_arg_alpha(&l, c);
    arg_cut(&l, c, cut);
    vn__arg_buffer(&l, sums);
    return vn__launch(q, it, 1, &l);
}

vn_status vn__run_conv_slab_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                   const struct vn_plan *plan)
{
    const struct conv *c = problem;
    const int units = q->device->facts.units;
    struct vn_launch l = { .items = 1 };
    vn_buffer *taken, *sums = c->w.buffer;
    struct cut cut;
    const char *why = cut_up(&cut, c, it->p, units);
    vn_status s;

    if (why)
        return vn__fail(VN_UNSUPPORTED, "%s", why);
    if (!plan->workspace)
        cut.splits = 1;
    if ((s = vn__counters(&taken, q)) || (plan->workspace && (s = vn__workspace(&sums, q, plan->workspace))))
        return s;
    l.groups[0] = min_of(units, cut.cells * cut.splits);
    l.groups[1] = l.groups[2] = 1;
    vn__conv_arg_problem(&l, c);
    arg_cut(&l, c, &cut);
    vn__arg_int(&l, cut.cells * cut.splits);
    vn__arg_int(&l, l.groups[0]);
    vn__arg_buffer(&l, taken);
    vn__arg_buffer(&l, sums);
    if ((s = vn__launch(q, it, 0, &l)) || cut.splits == 1)
        return s;
    return run_add(q, it, c, &cut, sums);
}
