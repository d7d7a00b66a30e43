/* SPDX-License-Identifier: Apache-2.0
 *
 * slab_filter.c - the variant conv_slab_filter: the gradient of a filter on CPUs, out of a slab.
 */
#include <limits.h>
#include <math.h>

#include "slab.h"

enum { LEAST_PIXELS = 64, MOST_PIXELS = 512 };  /* of a box */
enum { MOST_SPLITS = 4 };                       /* for each unit */

/* What a task is: a block of channels by some panels of filters, summed over a part of the boxes. */
struct cut {
    struct vn_boxes pixels;
    int64_t channels, blocks, panels, ranges, splits, boxes;
    int64_t cells, vectors;             /* tasks without splits; of sums, of each */
};

/* What is cut up. */
struct whole {
    struct vn_reach reach[DIMS];
    int64_t images, channels, taps, vectors, panels;
};

static struct whole whole_of(const struct conv *c, const int *p)
{
    const int64_t vectors = VN_CEIL_DIV(c->w.extent[0] / c->groups, p[VN_SLAB_VEC]);

    return (struct whole){ VN_REACHES(c), c->y.extent[0], c->w.extent[1], vn__conv_taps(c), vectors,
                           VN_CEIL_DIV(vectors, p[VN_SLAB_THR_V]) };
}

/* Tasks of so many panels, and at most so many channels and splits; NULL, or why not. Boxes are smaller where
 * the slab is too small; then blocks of channels are. */
static const char *cut_up(struct cut *cut, const struct conv *c, const struct whole *w, const int *p,
                          int64_t panels, int64_t channels, int64_t splits)
{
    int64_t most = MOST_PIXELS;

    cut->panels = panels;
    cut->ranges = VN_CEIL_DIV(w->panels, panels);
    cut->channels = vn__even_part(w->channels, channels);
    most = max_of(LEAST_PIXELS, min_of(most, VN_CEIL_DIV(vn__conv_pixels(&c->y), splits)));
    do {
        vn__cut_box(&cut->pixels, w->images, w->reach, most);
        most = most * 3 / 4;
    } while (most > LEAST_PIXELS && (vn__slab_elements(w->reach, cut->pixels.box) + 16) *
                                    (double)cut->channels > p[VN_SLAB_BLK_S]);
    if (vn__slab_elements(w->reach, cut->pixels.box) + 16 > p[VN_SLAB_BLK_S])
        return "the source of a box of pixels does not fit the slab";
    cut->channels = min_of(cut->channels, (int64_t)(p[VN_SLAB_BLK_S] /
                                                    (vn__slab_elements(w->reach, cut->pixels.box) + 16)));
    if (cut->channels > p[VN_SLAB_VEC])         /* whole vectors */
        cut->channels = cut->channels / p[VN_SLAB_VEC] * p[VN_SLAB_VEC];
    cut->blocks = VN_CEIL_DIV(w->channels, cut->channels);
    if ((double)cut->blocks * (double)cut->ranges * (double)c->groups > INT_MAX / 2)
        return "it has more than 2^30 tasks";
    cut->cells = cut->blocks * cut->ranges * c->groups;
    cut->vectors = w->taps * cut->channels * min_of(w->vectors, cut->panels * p[VN_SLAB_THR_V]);
    cut->boxes = 1;
    for (int i = 0; i <= DIMS; i++)
        cut->boxes *= cut->pixels.count[i];
    if (cut->boxes > INT_MAX / 2)
        return "it has more than 2^30 boxes of pixels";
    cut->splits = min_of(splits, cut->boxes);
    return cut->cells > INT_MAX / 2 / cut->splits ? "it has more than 2^30 tasks" : NULL;
}

/* Costs, each in multiply-adds of one vector: a vector of dy that is packed; an element that is copied into
 * the slab; a vector of sums, loaded and stored for each panel; a run of contiguous elements that is stored;
 * a vector of sums that is stored and added for a split; a thousandth of a launch of the kernel that adds. */
enum { PACK, COPY, SUM, RUN, ADD, LAUNCH };

/* The time of all tasks, in multiply-adds of one vector. */
static double time_of(const struct cut *cut, const struct conv *c, const struct whole *w,
                      const struct vn_row *row, int units)
{
    const int *const p = row->p;
    const double vectors = (double)min_of(w->vectors, cut->panels * p[VN_SLAB_THR_V]);
    const int64_t rows = w->taps * cut->channels, tiles = VN_CEIL_DIV(rows, p[VN_SLAB_THR_M]);
    const double filled = (double)max_of(rows, tiles * (p[VN_SLAB_THR_M] - 1));
    const double runs = vectors * p[VN_SLAB_VEC] * (double)(c->w.stride[1] == 1 ? w->taps : 1);
    double box = 1, boxes, task, even, sums = 0;

    for (int i = 0; i <= DIMS; i++)
        box *= (double)cut->pixels.box[i];
    boxes = (double)VN_CEIL_DIV(cut->boxes, cut->splits);
    task = boxes * (box * vectors * (filled + row->cost[PACK]) +
                    vn__slab_elements(w->reach, cut->pixels.box) * (double)cut->channels * row->cost[COPY] +
                    (double)(rows * VN_CEIL_DIV((int64_t)box, p[VN_SLAB_BLK_K])) * vectors * row->cost[SUM]) +
           runs * row->cost[RUN];
    if (cut->splits > 1)
        sums = (double)vn__elements(&c->w) / p[VN_SLAB_VEC] * (double)cut->splits * row->cost[ADD] / units +
               1000.0 * row->cost[LAUNCH];
    even = task * ((double)vn__conv_pixels(&c->y) / ((double)cut->splits * boxes * box)) *
           ((double)w->vectors / ((double)cut->ranges * vectors)) *
           ((double)w->channels / (double)(cut->blocks * cut->channels));
    return vn__slab_time(task, even, cut->cells * cut->splits, units) + sums;
}

/* The cut of the least time: packing dy costs a block of channels what filling the slab costs a range of
 * panels, and splits keep all units at work.                                                           */
static const char *find_cut(struct vn_plan *out, const struct conv *c, const struct vn_row *row,
                            const struct vn_site *site, int64_t most_splits)
{
    const int *const p = row->p;
    const struct whole w = whole_of(c, p);
    const int64_t width = min_of(w.vectors, p[VN_SLAB_THR_V]) * p[VN_SLAB_VEC];
    const int64_t most = min_of(most_splits, max_of(1, vn__conv_pixels(&c->y) / LEAST_PIXELS));
    const char *why = c->is_empty ? "there is nothing to multiply" : vn__slab_fits(c, p, site->facts);
    double least = INFINITY;

    out->seconds = -1;                          /* until there is one */
    if (why)
        return why;
    why = "the sums of all taps do not fit the local memory";
    for (int64_t each = w.panels, next; each; each = next) {
        for (int64_t channels = min_of(w.channels, p[VN_SLAB_BLK_C] / (each * width) / w.taps); channels;
             channels /= 2)
            for (int64_t splits = 1; splits <= most; splits += VN_CEIL_DIV(splits, 2)) {
                struct cut cut;
                const char *const no = cut_up(&cut, c, &w, p, each, channels, splits);
                double time;

                if (no) {
                    why = no;
                    continue;
                }
                time = time_of(&cut, c, &w, row, site->facts->units);
                if (time < least) {
                    least = time;
                    out->v[VN_SLAB_PANELS] = each;
                    out->v[VN_SLAB_CHANNELS] = channels;
                    out->v[VN_SLAB_SPLITS] = splits;
                }
            }
        next = each > 1 ? vn__even_part(w.panels, each - 1) : 0;
    }
    if (least == INFINITY)
        return why;
    out->seconds = 0;                           /* nobody has a model of them */
    return NULL;
}

const char *vn__plan_conv_slab_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                      const struct vn_site *site)
{
    const struct conv *c = problem;
    const struct whole w = whole_of(c, row->p);
    const char *const why = find_cut(out, c, row, site, MOST_SPLITS * (int64_t)site->facts->units);
    int64_t bytes = (c->p.type == VN_F64 ? 8 : 4) * row->p[VN_SLAB_VEC];
    struct cut cut;

    if (why)
        return why;
    cut_up(&cut, c, &w, row->p, out->v[VN_SLAB_PANELS], out->v[VN_SLAB_CHANNELS],
           out->v[VN_SLAB_SPLITS]);
    if (cut.splits > 1 && vn__mul(&bytes, bytes, cut.vectors) && vn__mul(&bytes, bytes, cut.cells) &&
        vn__mul(&bytes, bytes, cut.splits) && (uint64_t)bytes <= site->queue->workspace_limit)
        out->workspace = (size_t)bytes;
    else if (cut.splits > 1)                    /* pixels are not divided */
        find_cut(out, c, row, site, 1);
    return c->w.extent[0] / c->groups < row->p[VN_SLAB_VEC] / 2
         ? "vectors of filters would be empty for the most part" : NULL;
}

/* A dw that no second-level cache holds is stored past the caches, or each line of it would be read first. */
static void arg_cut(struct vn_launch *l, const struct conv *c, const struct cut *cut, const vn_queue *q)
{
    const struct vn_boxes *const p = &cut->pixels;
    const size_t bytes = (size_t)vn__elements(&c->w) * vn_type_bytes(c->w.type);
    const int streams = c->beta == 0 && bytes > q->device->facts.local_bytes;
    const int64_t limit = (int64_t)(c->y.buffer->bytes / vn_type_bytes(c->y.type));

    vn__arg_view(l, (int64_t[8]){ limit, cut->splits, p->box[0], cut->panels, p->box[1], p->box[2],
                                  p->box[3], streams });
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
    arg_cut(&l, c, cut, q);
    vn__arg_buffer(&l, sums);
    return vn__launch(q, it, 1, &l);
}

vn_status vn__run_conv_slab_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                   const struct vn_plan *plan)
{
    const struct conv *c = problem;
    const struct whole w = whole_of(c, it->p);
    struct vn_launch l = { .items = 1 };
    vn_buffer *taken, *sums = c->w.buffer;
    struct cut cut;
    vn_status s;

    cut_up(&cut, c, &w, it->p, plan->v[VN_SLAB_PANELS], plan->v[VN_SLAB_CHANNELS],
           plan->v[VN_SLAB_SPLITS]);
    if ((s = vn__counters(&taken, q)) || (plan->workspace && (s = vn__workspace(&sums, q, plan->workspace))))
        return s;
    l.groups[0] = min_of(q->device->facts.units, cut.cells * cut.splits);
    l.groups[1] = l.groups[2] = 1;
    vn__conv_arg_problem(&l, c);
    arg_cut(&l, c, &cut, q);
    vn__arg_int(&l, cut.cells * cut.splits);
    vn__arg_int(&l, l.groups[0]);
    vn__arg_buffer(&l, taken);
    vn__arg_buffer(&l, sums);
    if ((s = vn__launch(q, it, 0, &l)) || cut.splits == 1)
        return s;
    return run_add(q, it, c, &cut, sums);
}
