/* SPDX-License-Identifier: Apache-2.0
 *
 * slab.c - the variant conv_slab: CPUs, out of a slab that holds the source with its padding.
 */
#include <limits.h>

#include "slab.h"

/* What a task is: a box of pixels, of some panels of channels, summed over blocks of channels. */
struct cut {
    struct vn_boxes pixels;
    int64_t panels, ranges, channels;   /* of a task; of all panels; of a block */
    int     ranges_first;               /* else all boxes of a range: what is read again is the smaller */
    int64_t tasks;
};

struct vn_reach vn__slab_reach(const struct conv *c, int d)
{
    const vn_tensor *out = c->direction == BACKWARD_DATA ? &c->x : &c->y;
    const int64_t step = vn__conv_tap_step(c, d), taps = VN_CEIL_DIV(c->w.extent[2 + d], step);
    const int64_t phases = c->direction == BACKWARD_DATA ? min_of(c->stride[d], c->x.extent[2 + d]) : 1;
    struct vn_reach r = { 0, 1, VN_CEIL_DIV(out->extent[2 + d], phases) };

    if (taps > 1)
        r.beyond = (taps - 1) * (c->direction == BACKWARD_DATA ? c->dilation[d] * step / c->stride[d]
                                                               : c->dilation[d]);
    if (c->direction != BACKWARD_DATA && (taps > 1 || (d == DIMS - 1 && c->stride[d] <= VN_ROW_STEP_MOST &&
                                                       c->x.stride[RANK - 1] == 1)))
        r.pixel = c->stride[d];
    return r;
}

const char *vn__slab_fits(const struct conv *c, const int *p, const struct vn_facts *f)
{
    enum { ROW_BYTES = 4 + 3 * 8, STEP_BYTES = 4 + 8 };     /* of lists of places and offsets */
    const size_t vec = (size_t)p[VN_SLAB_VEC], panel = (size_t)(p[VN_SLAB_BLK_K] * p[VN_SLAB_THR_V]) * vec;
    const size_t elements = (size_t)p[VN_SLAB_BLK_S] + vec + panel + (size_t)p[VN_SLAB_BLK_C];
    const size_t bytes = elements * (c->p.type == VN_F64 ? 8 : 4) +
                         (size_t)p[VN_SLAB_BLK_C] / vec * ROW_BYTES + VN_STEPS_MOST * STEP_BYTES;

    return bytes > f->local_bytes ? "its slab and sums need more local memory than there is" : NULL;
}

double vn__slab_elements(const struct vn_reach r[DIMS], const int64_t box[4])
{
    double n = (double)box[0];

    for (int d = 0; d < DIMS; d++)
        n *= (double)(box[1 + d] - 1) * (double)r[d].pixel + (double)r[d].beyond + 1;
    return n;
}

int64_t vn__even_part(int64_t extent, int64_t most)
{
    return VN_CEIL_DIV(extent, VN_CEIL_DIV(extent, max_of(1, min_of(extent, most))));
}

void vn__cut_box(struct vn_boxes *out, int64_t images, const struct vn_reach r[DIMS], int64_t most)
{
    for (int d = DIMS - 1; d >= 0; d--) {
        out->box[1 + d] = vn__even_part(r[d].extent, most);
        most /= out->box[1 + d];
    }
    out->box[0] = vn__even_part(images, most);
    out->count[0] = VN_CEIL_DIV(images, out->box[0]);
    for (int d = 0; d < DIMS; d++)
        out->count[1 + d] = VN_CEIL_DIV(r[d].extent, out->box[1 + d]);
}

static double count_tasks(const struct cut *cut, const struct conv *c)
{
    double n = (double)cut->ranges * (double)vn__conv_phases(c) * (double)c->groups;

    for (int i = 0; i < 4; i++)
        n *= (double)cut->pixels.count[i];
    return n;
}

/* Whether reading the filter for each box moves less than reading the source for each range of panels. */
static int reads_source_less(const struct cut *cut, const struct conv *c)
{
    const double source = (double)vn__elements(c->direction == BACKWARD_DATA ? &c->y : &c->x);
    double boxes = 1;

    for (int i = 0; i < 4; i++)
        boxes *= (double)cut->pixels.count[i];
    return (double)vn__elements(&c->w) * boxes < source * (double)cut->ranges;
}

/* That are summed over. */
static int64_t channels_of(const struct conv *c)
{
    return c->direction == BACKWARD_DATA ? c->w.extent[0] / c->groups : c->w.extent[1];
}

/* Pixels repay packing of the filter, panels copying into the slab: with many taps a slab element is used
 * often as it is. Both are less where there are too few tasks.                                          */
static const char *cut_up(struct cut *cut, const struct conv *c, const int *p, int units)
{
    enum { WIDE_TASK = 2, LEAST_PIXELS = 32, LEAST_CHANNELS = 8 };
    const int64_t images = vn__conv_output(c)->extent[0], rows = vn__conv_rows(c);
    const int64_t vectors = VN_CEIL_DIV(rows, p[VN_SLAB_VEC]);
    const int64_t panels = VN_CEIL_DIV(vectors, p[VN_SLAB_THR_V]);
    const int64_t channels = channels_of(c);
    const struct vn_reach r[DIMS] = VN_REACHES(c);
    const int64_t sums = p[VN_SLAB_BLK_C] / p[VN_SLAB_VEC];
    int64_t taps = 1, pixels = images, each;
    const double room = p[VN_SLAB_BLK_S];

    for (int d = 0; d < DIMS; d++) {
        taps *= VN_CEIL_DIV(c->w.extent[2 + d], vn__conv_tap_step(c, d));
        pixels *= r[d].extent;
    }
    each = min_of(panels, max_of(taps > 1 ? 1 : WIDE_TASK, sums / p[VN_SLAB_THR_V] / pixels));
    if (taps > VN_STEPS_MOST)
        return "a filter has more than 2048 taps";
    if (panels <= 2)                            /* all of few channels */
        each = panels;
    for (;;) {
        cut->panels = vn__even_part(panels, each);
        cut->ranges = VN_CEIL_DIV(panels, cut->panels);
        pixels = sums / min_of(vectors, cut->panels * p[VN_SLAB_THR_V]);
        vn__cut_box(&cut->pixels, images, r, pixels);
        if (each == 1 || count_tasks(cut, c) >= VN_TASKS_PER_UNIT * units)
            break;
        each /= 2;
    }
    while (pixels > LEAST_PIXELS && (count_tasks(cut, c) < VN_TASKS_PER_UNIT * units ||
                                     vn__slab_elements(r, cut->pixels.box) *
                                     (double)min_of(channels, LEAST_CHANNELS) > room))
        vn__cut_box(&cut->pixels, images, r, pixels = pixels * 3 / 4);
    if (vn__slab_elements(r, cut->pixels.box) > room)
        return "the source of a box of pixels does not fit the slab";
    if (count_tasks(cut, c) > INT_MAX / 2)
        return "it has more than 2^30 tasks";
    cut->tasks = (int64_t)count_tasks(cut, c);
    cut->ranges_first = reads_source_less(cut, c);
    cut->channels = vn__even_part(max_of(1, channels),
                                  min_of((int64_t)(room / (vn__slab_elements(r, cut->pixels.box) + 16)),
                                         VN_STEPS_MOST / taps));
    if (cut->channels > p[VN_SLAB_VEC])                 /* whole vectors, if they fit */
        cut->channels = cut->channels / p[VN_SLAB_VEC] * p[VN_SLAB_VEC];
    return NULL;
}

/* Vectors of a packed filter, of one group. */
static int64_t packed_vectors(const struct conv *c, const int *p)
{
    return VN_CEIL_DIV(vn__conv_rows(c), p[VN_SLAB_VEC]) * channels_of(c) * vn__conv_taps(c);
}

const char *vn__plan_conv_slab(struct vn_plan *out, const void *problem, const struct vn_row *row,
                               const struct vn_site *site)
{
    const struct conv *c = problem;
    struct cut cut;
    const char *why = vn__slab_fits(c, row->p, site->facts);

    (void)out;
    if (why || (why = cut_up(&cut, c, row->p, site->facts->units)))
        return why;
    return vn__conv_rows(c) < row->p[VN_SLAB_VEC] / 2
         ? "vectors of channels would be empty for the most part" : NULL;
}

/* The filter is packed for all tasks where several read the same part of it: boxes of pixels, or phases, of
 * which each touches most cache lines of it. Else it is packed by who reads it, while it is in the cache. */
const char *vn__plan_conv_slab_packed(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                      const struct vn_site *site)
{
    enum { READERS = 3 };
    const struct conv *c = problem;
    const int *p = row->p;
    const char *why = vn__plan_conv_slab(out, problem, row, site);
    const struct vn_layout l = vn__layout_conv_slab(c, p);
    int64_t readers = vn__conv_phases(c);
    struct cut cut;

    if (why || (why = cut_up(&cut, c, p, site->facts->units)))
        return why;
    for (int i = 0; i <= DIMS; i++)
        readers *= cut.pixels.count[i];
    if (c->is_empty || (readers < READERS && !vn__conv_is_packed(c, &l)) ||
        (vn__conv_phases(c) > 1 && vn__conv_taps(c) == 1))
        return "few tasks read the same part of the filter";
    if (packed_vectors(c, p) > VN_CONV_MOST / c->groups)
        return "a packed filter must stay below 2^31 vectors";
    out->workspace = vn__conv_is_packed(c, &l) ? 0 : l.bytes;
    return NULL;
}

static void arg_packed(struct vn_launch *l, const struct conv *c, int64_t vectors)
{
    const int64_t channels = channels_of(c), *taps = c->w.extent + 2;

    vn__arg_view(l, (int64_t[8]){ 0, vectors, vn__conv_taps(c) * channels, 1, taps[1] * taps[2] * channels,
                                  taps[2] * channels, channels });
}

static vn_status run_pack(vn_queue *q, const struct vn_choice *it, const void *problem, vn_buffer *packed,
                          size_t at)
{
    enum { SOME = 64 };
    const struct conv *const c = problem;
    struct vn_launch l = { .items = 1 };
    const int64_t vectors = VN_CEIL_DIV(vn__conv_rows(c), it->p[VN_SLAB_VEC]);

    (void)at;                                   /* 0 */
    l.groups[0] = VN_CEIL_DIV(channels_of(c), SOME);
    l.groups[1] = VN_CEIL_DIV(vectors, it->p[VN_SLAB_THR_V]);
    l.groups[2] = c->groups;
    vn__conv_arg_filter(&l, c);
    vn__arg_int(&l, SOME);
    vn__arg_int(&l, packed_vectors(c, it->p));
    vn__arg_buffer(&l, packed);
    return vn__launch(q, it, 1, &l);
}

/* Its order follows from the panels, the direction and the groups. */
struct vn_layout vn__layout_conv_slab(const void *problem, const int *p)
{
    const struct conv *const c = problem;
    const int64_t each = (c->p.type == VN_F64 ? 8 : 4) * p[VN_SLAB_VEC];
    const int64_t order = (c->groups * 2 + (c->direction == BACKWARD_DATA)) * 1024 +
                          p[VN_SLAB_THR_V] * 32 + p[VN_SLAB_VEC];

    return (struct vn_layout){ run_pack, order, (size_t)(each * packed_vectors(c, p) * c->groups) };
}

vn_status vn__run_conv_slab(vn_queue *q, const struct vn_choice *it, const void *problem,
                            const struct vn_plan *plan)
{
    const struct conv *c = problem;
    const int units = q->device->facts.units;
    const int is_packed = it->variant->layout != NULL;
    struct vn_launch l;
    vn_buffer *taken, *packed = vn__conv_output(c)->buffer;
    struct vn_layout layout;
    struct cut cut;
    const struct vn_boxes *const at = &cut.pixels;
    const char *why = cut_up(&cut, c, it->p, units);
    vn_status s;

    if (why)
        return vn__fail(VN_UNSUPPORTED, "%s", why);
    if ((s = vn__counters(&taken, q)))
        return s;
    if (is_packed && (layout = vn__layout_conv_slab(c, it->p), vn__conv_is_packed(c, &layout))) {
        packed = c->pack;
        q->packed_used = layout.bytes;
    } else if (is_packed &&
               ((s = vn__workspace(&packed, q, plan->workspace)) || (s = run_pack(q, it, c, packed, 0)))) {
        return s;
    }
    l.groups[0] = min_of(units, cut.tasks);
    l.groups[1] = l.groups[2] = 1;
    l.items = 1;
    vn__conv_arg_problem(&l, c);
    vn__arg_view(&l, (int64_t[8]){ 0, 0, at->box[0], cut.panels, at->box[1], at->box[2], at->box[3] });
    vn__arg_view(&l, (int64_t[8]){ cut.ranges_first, 0, at->count[0], cut.ranges, at->count[1], at->count[2],
                                   at->count[3] });
    vn__arg_int(&l, cut.channels);
    vn__arg_int(&l, cut.tasks);
    vn__arg_int(&l, l.groups[0]);
    vn__arg_buffer(&l, taken);
    arg_packed(&l, c, is_packed ? packed_vectors(c, it->p) : 0);
    vn__arg_buffer(&l, packed);
    return vn__launch(q, it, 0, &l);
}
