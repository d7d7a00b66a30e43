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

/* What is cut up, and how far. */
struct whole {
    struct vn_reach reach[DIMS];
    int64_t images, vectors, panels, channels, taps, sums, wanted;  /* sums: vectors of them; wanted: tasks */
    double  room;                       /* of the slab */
};

static struct whole whole_of(const struct conv *c, const int *p, int units)
{
    const int64_t vectors = VN_CEIL_DIV(vn__conv_rows(c), p[VN_SLAB_VEC]);
    struct whole w = { VN_REACHES(c), vn__conv_output(c)->extent[0], vectors,
                       VN_CEIL_DIV(vectors, p[VN_SLAB_THR_V]), channels_of(c), 1,
                       p[VN_SLAB_BLK_C] / p[VN_SLAB_VEC], VN_TASKS_PER_UNIT * units, p[VN_SLAB_BLK_S] };

    for (int d = 0; d < DIMS; d++)
        w.taps *= VN_CEIL_DIV(c->w.extent[2 + d], vn__conv_tap_step(c, d));
    return w;
}

/* Tasks of at most `each` panels; the pixels whose sums fit. */
static int64_t cut_panels(struct cut *cut, const struct whole *w, const int *p, int64_t each)
{
    cut->panels = vn__even_part(w->panels, each);
    cut->ranges = VN_CEIL_DIV(w->panels, cut->panels);
    return w->sums / min_of(w->vectors, cut->panels * p[VN_SLAB_THR_V]);
}

/* Boxes of at most `pixels`, and of fewer where the tasks are too few or the slab is too small. */
static void cut_pixels(struct cut *cut, const struct conv *c, const struct whole *w, int64_t pixels)
{
    enum { LEAST_PIXELS = 32, LEAST_CHANNELS = 8 };

    vn__cut_box(&cut->pixels, w->images, w->reach, pixels);
    while (pixels > LEAST_PIXELS && (count_tasks(cut, c) < (double)w->wanted ||
                                     vn__slab_elements(w->reach, cut->pixels.box) *
                                     (double)min_of(w->channels, LEAST_CHANNELS) > w->room))
        vn__cut_box(&cut->pixels, w->images, w->reach, pixels = pixels * 3 / 4);
}

/* Pixels repay packing of the filter, panels copying into the slab: with many taps a slab element is used
 * often as it is. Both are less where there are too few tasks.                                          */
static void cut_to_pack(struct cut *cut, const struct conv *c, const struct whole *w, const int *p)
{
    enum { WIDE_TASK = 2 };
    int64_t all = w->images, each, pixels;

    for (int d = 0; d < DIMS; d++)
        all *= w->reach[d].extent;
    each = w->panels <= 2 ? w->panels           /* all of few channels */
         : min_of(w->panels, max_of(w->taps > 1 ? 1 : WIDE_TASK, w->sums / p[VN_SLAB_THR_V] / all));
    for (;; each /= 2) {
        pixels = cut_panels(cut, w, p, each);
        vn__cut_box(&cut->pixels, w->images, w->reach, pixels);
        if (each == 1 || count_tasks(cut, c) >= (double)w->wanted)
            break;
    }
    cut_pixels(cut, c, w, pixels);
}

/* The elements that all tasks read of a packed filter, and those that they copy into slabs, which costs
 * several times as much. */
static double count_moved(const struct cut *cut, const struct conv *c, const struct whole *w)
{
    enum { COPY = 4 };
    double boxes = 1;

    for (int i = 0; i < 4; i++)
        boxes *= (double)cut->pixels.count[i];
    return boxes * ((double)vn__elements(&c->w) + COPY * (double)cut->ranges * (double)vn__conv_phases(c) *
                    vn__slab_elements(w->reach, cut->pixels.box) * (double)w->channels * (double)c->groups);
}

/* A packed filter is cheap to read again, so that ranges of panels are as wide as pays. */
static void cut_packed(struct cut *best, const struct conv *c, const struct whole *w, const int *p)
{
    double least = 0;
    int enough = 0;

    for (int64_t each = max_of(1, w->panels); each; each /= 2) {
        struct cut cut;
        double moved;
        int is_enough;

        cut_pixels(&cut, c, w, cut_panels(&cut, w, p, each));
        moved = count_moved(&cut, c, w);
        is_enough = count_tasks(&cut, c) >= (double)w->wanted;
        if (each < w->panels && (is_enough < enough || (is_enough == enough && moved >= least)))
            continue;
        *best = cut;
        least = moved;
        enough = is_enough;
    }
}

static const char *cut_up(struct cut *cut, const struct conv *c, const int *p, int units, int is_packed)
{
    const struct whole w = whole_of(c, p, units);
    double elements;

    if (w.taps > VN_STEPS_MOST)
        return "a filter has more than 2048 taps";
    (is_packed ? cut_packed : cut_to_pack)(cut, c, &w, p);
    elements = vn__slab_elements(w.reach, cut->pixels.box);
    if (elements > w.room)
        return "the source of a box of pixels does not fit the slab";
    if (count_tasks(cut, c) > INT_MAX / 2)
        return "it has more than 2^30 tasks";
    cut->tasks = (int64_t)count_tasks(cut, c);
    cut->ranges_first = reads_source_less(cut, c);
    cut->channels = vn__even_part(max_of(1, w.channels),
                                  min_of((int64_t)(w.room / (elements + 16)), VN_STEPS_MOST / w.taps));
    if (cut->channels > p[VN_SLAB_VEC])                 /* whole vectors, if they fit */
        cut->channels = cut->channels / p[VN_SLAB_VEC] * p[VN_SLAB_VEC];
    return is_packed && cut->channels < w.channels && cut->channels < p[VN_SLAB_VEC]
         ? "a run of channels of a packed filter does not fit the slab" : NULL;
}

/* Vectors of a packed filter, of one group. */
static int64_t packed_vectors(const struct conv *c, const int *p)
{
    return VN_CEIL_DIV(vn__conv_rows(c), p[VN_SLAB_VEC]) * channels_of(c) * vn__conv_taps(c);
}

static const char *lacks_rows(const struct conv *c, const int *p)
{
    return vn__conv_rows(c) < p[VN_SLAB_VEC] / 2
         ? "vectors of channels would be empty for the most part" : NULL;
}

const char *vn__plan_conv_slab(struct vn_plan *out, const void *problem, const struct vn_row *row,
                               const struct vn_site *site)
{
    const struct conv *c = problem;
    struct cut cut;
    const char *why = vn__slab_fits(c, row->p, site->facts);

    (void)out;
    return why || (why = cut_up(&cut, c, row->p, site->facts->units, 0)) ? why : lacks_rows(c, row->p);
}

/* Whether several tasks read the same part of the filter: boxes of pixels, or phases, of which each touches
 * most cache lines of it. Else it is packed by who reads it, while it is in the cache. */
static int repays_packing(const struct conv *c, const int *p, int units)
{
    enum { READERS = 3 };
    int64_t readers = vn__conv_phases(c);
    struct cut cut;

    if (c->is_empty || (readers > 1 && vn__conv_taps(c) == 1) || cut_up(&cut, c, p, units, 0))
        return 0;
    for (int i = 0; i <= DIMS; i++)
        readers *= cut.pixels.count[i];
    return readers >= READERS;
}

const char *vn__plan_conv_slab_packed(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                      const struct vn_site *site)
{
    const struct conv *c = problem;
    const int *p = row->p;
    const struct vn_layout l = vn__layout_conv_slab(c, p);
    const int given = vn__conv_is_packed(c, &l), units = site->facts->units;
    const char *why = vn__slab_fits(c, p, site->facts);
    struct cut cut;

    if (why || (why = cut_up(&cut, c, p, units, 1)) || (why = lacks_rows(c, p)))
        return why;
    if (c->is_empty || (!given && !repays_packing(c, p, units)))
        return "few tasks read the same part of the filter";
    if (packed_vectors(c, p) > VN_CONV_MOST / c->groups)
        return "a packed filter must stay below 2^31 vectors";
    out->workspace = given ? 0 : l.bytes;
    return NULL;
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
    const char *why = cut_up(&cut, c, it->p, units, is_packed);
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
    vn__arg_buffer(&l, packed);
    return vn__launch(q, it, 0, &l);
}
