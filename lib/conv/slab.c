/* SPDX-License-Identifier: Apache-2.0
 *
 * slab.c - the variant conv_slab: CPUs, out of a slab that holds the source with its padding.
 */
#include <limits.h>

#include "conv.h"

enum { THR_M, THR_V, VEC, BLK_K, BLK_S, BLK_C };
enum { STEPS_MOST = 2048, ROW_STEP_MOST = 3 };  /* of cl/conv/slab.cl */
enum { TASKS_PER_UNIT = 4 };            /* wanted, so that all finish at about the same time */

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }

/* What a task is: a box of pixels, of some panels of channels, summed over blocks of channels. */
struct cut {
    int64_t box[4], boxes[4];           /* images, then the dimensions */
    int64_t panels, ranges, channels;   /* of a task; of all panels; of a block */
    int     ranges_first;               /* else all boxes of a range: what is read again is the smaller */
    int64_t tasks;
};

/* How far the slab reaches beyond the pixels along a dimension, and its places from pixel to pixel; a filter
 * that has one tap there, in each phase, takes none of what lies between.                                  */
struct reach { int64_t beyond, pixel, extent; };

static struct reach reach_of(const struct conv *c, int d)
{
    const vn_tensor *out = vn__conv_output(c);
    const int64_t step = vn__conv_tap_step(c, d), taps = VN_CEIL_DIV(c->w.extent[2 + d], step);
    const int64_t phases = c->direction == BACKWARD_DATA ? min_of(c->stride[d], c->x.extent[2 + d]) : 1;
    struct reach r = { 0, 1, VN_CEIL_DIV(out->extent[2 + d], phases) };

    if (taps > 1)
        r.beyond = (taps - 1) * (c->direction == BACKWARD_DATA ? c->dilation[d] * step / c->stride[d]
                                                               : c->dilation[d]);
    if (c->direction != BACKWARD_DATA && (taps > 1 || (d == DIMS - 1 && c->stride[d] <= ROW_STEP_MOST &&
                                                       c->x.stride[RANK - 1] == 1)))
        r.pixel = c->stride[d];
    return r;
}

/* The elements of the slab for one channel. */
static double slab_of(const struct reach r[DIMS], const int64_t box[4])
{
    double n = (double)box[0];

    for (int d = 0; d < DIMS; d++)
        n *= (double)(box[1 + d] - 1) * (double)r[d].pixel + (double)r[d].beyond + 1;
    return n;
}

/* A part of `extent`, such that all parts are about as large, and at most `most`. */
static int64_t even_part(int64_t extent, int64_t most)
{
    return VN_CEIL_DIV(extent, VN_CEIL_DIV(extent, max_of(1, min_of(extent, most))));
}

/* The box of at most `most` pixels: whole rows first. */
static void cut_box(struct cut *cut, int64_t images, const struct reach r[DIMS], int64_t most)
{
    for (int d = DIMS - 1; d >= 0; d--) {
        cut->box[1 + d] = even_part(r[d].extent, most);
        most /= cut->box[1 + d];
    }
    cut->box[0] = even_part(images, most);
    cut->boxes[0] = VN_CEIL_DIV(images, cut->box[0]);
    for (int d = 0; d < DIMS; d++)
        cut->boxes[1 + d] = VN_CEIL_DIV(r[d].extent, cut->box[1 + d]);
}

static double count_tasks(const struct cut *cut, const struct conv *c)
{
    double n = (double)cut->ranges * (double)vn__conv_phases(c) * (double)c->groups;

    for (int i = 0; i < 4; i++)
        n *= (double)cut->boxes[i];
    return n;
}

/* Whether reading the filter for each box moves less than reading the source for each range of panels. */
static int reads_source_less(const struct cut *cut, const struct conv *c)
{
    const double source = (double)vn__elements(c->direction == BACKWARD_DATA ? &c->y : &c->x);
    double boxes = 1;

    for (int i = 0; i < 4; i++)
        boxes *= (double)cut->boxes[i];
    return (double)vn__elements(&c->w) * boxes < source * (double)cut->ranges;
}

/* Pixels repay packing of the filter, panels copying into the slab: with many taps a slab element is used
 * often as it is. Both are less where there are too few tasks.                                          */
static const char *cut_up(struct cut *cut, const struct conv *c, const int *p, int units)
{
    enum { WIDE_TASK = 2, LEAST_PIXELS = 32, LEAST_CHANNELS = 8 };
    const int64_t images = vn__conv_output(c)->extent[0], rows = vn__conv_rows(c);
    const int64_t vectors = VN_CEIL_DIV(rows, p[VEC]), panels = VN_CEIL_DIV(vectors, p[THR_V]);
    const int64_t channels = c->direction == BACKWARD_DATA ? c->w.extent[0] / c->groups : c->w.extent[1];
    const struct reach r[DIMS] = { reach_of(c, 0), reach_of(c, 1), reach_of(c, 2) };
    int64_t taps = 1, pixels = images, each;
    double room = p[BLK_S];

    for (int d = 0; d < DIMS; d++) {
        taps *= VN_CEIL_DIV(c->w.extent[2 + d], vn__conv_tap_step(c, d));
        pixels *= r[d].extent;
    }
    each = min_of(panels, max_of(taps > 1 ? 1 : WIDE_TASK, p[BLK_C] / p[VEC] / p[THR_V] / pixels));
    if (taps > STEPS_MOST)
        return "a filter has more than 2048 taps";
    if (panels <= 2)                            /* all of few channels */
        each = panels;
    for (;;) {
        cut->panels = even_part(panels, each);
        cut->ranges = VN_CEIL_DIV(panels, cut->panels);
        pixels = p[BLK_C] / p[VEC] / min_of(vectors, cut->panels * p[THR_V]);
        cut_box(cut, images, r, pixels);
        if (each == 1 || count_tasks(cut, c) >= TASKS_PER_UNIT * units)
            break;
        each /= 2;
    }
    while (pixels > LEAST_PIXELS && (count_tasks(cut, c) < TASKS_PER_UNIT * units ||
                                     slab_of(r, cut->box) * (double)min_of(channels, LEAST_CHANNELS) > room))
        cut_box(cut, images, r, pixels = pixels * 3 / 4);
    if (slab_of(r, cut->box) > room)
        return "the source of a box of pixels does not fit the slab";
    if (count_tasks(cut, c) > INT_MAX / 2)
        return "it has more than 2^30 tasks";
    cut->tasks = (int64_t)count_tasks(cut, c);
    cut->ranges_first = reads_source_less(cut, c);
    cut->channels = even_part(max_of(1, channels), min_of((int64_t)(room / (slab_of(r, cut->box) + 16)),
                                                          STEPS_MOST / taps));
    if (cut->channels > p[VEC])                 /* whole vectors, if they fit */
        cut->channels = cut->channels / p[VEC] * p[VEC];
    return NULL;
}

const char *vn__plan_conv_slab(struct vn_plan *out, const void *problem, const struct vn_row *row,
                               const struct vn_site *site)
{
    const struct conv *c = problem;
    struct cut cut;
    const char *why = cut_up(&cut, c, row->p, site->facts->units);

    (void)out;
    if (why)
        return why;
    return vn__conv_rows(c) < row->p[VEC] / 2 ? "vectors of channels would be empty for the most part" : NULL;
}

vn_status vn__run_conv_slab(vn_queue *q, const struct vn_choice *it, const void *problem,
                            const struct vn_plan *plan)
{
    const struct conv *c = problem;
    const int units = q->device->facts.units;
    struct vn_launch l;
    vn_buffer *taken;
    struct cut cut;
    const char *why = cut_up(&cut, c, it->p, units);
    vn_status s;

    (void)plan;
    if (why)
        return vn__fail(VN_UNSUPPORTED, "%s", why);
    if ((s = vn__counters(&taken, q)))
        return s;
    l.groups[0] = min_of(units, cut.tasks);
    l.groups[1] = l.groups[2] = 1;
    l.items = 1;
    vn__conv_arg_problem(&l, c);
    vn__arg_view(&l, (int64_t[8]){ 0, 0, cut.box[0], cut.panels, cut.box[1], cut.box[2], cut.box[3] });
    vn__arg_view(&l, (int64_t[8]){ cut.ranges_first, 0, cut.boxes[0], cut.ranges, cut.boxes[1], cut.boxes[2],
                                   cut.boxes[3] });
    vn__arg_int(&l, cut.channels);
    vn__arg_int(&l, cut.tasks);
    vn__arg_int(&l, l.groups[0]);
    vn__arg_buffer(&l, taken);
    return vn__launch(q, it, 0, &l);
}
