/* SPDX-License-Identifier: Apache-2.0
 *
 * slab.c - the variant conv_slab: CPUs, out of a slab that holds the source with its padding.
 */
#include <limits.h>
#include <math.h>

#include "slab.h"

/* What a task is: a box of pixels, of some panels of channels, summed over blocks of channels. */
struct cut {
    struct vn_boxes pixels;
    int64_t panels, ranges, channels;   /* of a task; of all panels; of a block */
    int     ranges_first;               /* else all boxes of a range: what is read again is the smaller */
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
    enum { ROW_BYTES = 4 + 3 * 8, STEP_BYTES = 4 + 8, PART_BYTES = 3 * 4 };     /* of what is listed */
    const size_t vec = (size_t)p[VN_SLAB_VEC], rows = (size_t)p[VN_SLAB_BLK_C] / vec;
    const size_t parts = rows / (size_t)(p[VN_SLAB_THR_M] - 1) + 2;
    const size_t panel = (size_t)((p[VN_SLAB_BLK_K] + 3) * p[VN_SLAB_THR_V]) * vec;
    const size_t elements = (size_t)p[VN_SLAB_BLK_S] + vec + panel + (size_t)p[VN_SLAB_BLK_C];
    const size_t bytes = elements * (c->p.type == VN_F64 ? 8 : 4) +
                         rows * ROW_BYTES + parts * PART_BYTES + VN_STEPS_MOST * STEP_BYTES;

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

static double count_boxes(const struct cut *cut)
{
    double n = 1;

    for (int i = 0; i <= DIMS; i++)
        n *= (double)cut->pixels.count[i];
    return n;
}

static double count_tasks(const struct cut *cut, const struct conv *c)
{
    return count_boxes(cut) * (double)cut->ranges * (double)vn__conv_phases(c) * (double)c->groups;
}

/* Whether reading the filter for each box moves less than reading the source for each range of panels. */
static int reads_source_less(const struct cut *cut, const struct conv *c)
{
    const double source = (double)vn__elements(c->direction == BACKWARD_DATA ? &c->y : &c->x);

    return (double)vn__elements(&c->w) * count_boxes(cut) < source * (double)cut->ranges;
}

/* That are summed over. */
static int64_t channels_of(const struct conv *c)
{
    return c->direction == BACKWARD_DATA ? c->w.extent[0] / c->groups : c->w.extent[1];
}

/* Whether kernels read the source itself, IN_PLACE: one tap, which meets a pixel everywhere, and elements in
 * the type of arithmetic.  Channels that are apart by a power of two share a set of the cache, and those that
 * are further apart than a page take an entry of the TLB each: they are copied, to other distances. */
static int is_in_place(const struct conv *c)
{
    enum { ALIKE = 128, FAR = 1024 };           /* elements */
    const int back = c->direction == BACKWARD_DATA;
    const vn_tensor *const in = back ? &c->y : &c->x, *const out = back ? &c->x : &c->y;
    int64_t reach = 0;

    if ((in->type != VN_F32 && in->type != VN_F64) || c->is_empty || in->stride[1] % ALIKE == 0 ||
        in->stride[1] > FAR)
        return 0;
    for (int d = 0; d < DIMS; d++)
        if (c->w.extent[2 + d] != 1 || c->pad[d] != 0 || (back && c->stride[d] != 1) ||
            (out->extent[2 + d] - 1) * (back ? 1 : c->stride[d]) >= in->extent[2 + d])
            return 0;
    for (int i = 0; i < RANK; i++) {
        if (in->stride[i] < 0 || in->stride[i] > VN_CONV_MOST / 2)
            return 0;
        reach += (in->extent[i] - 1) * in->stride[i];
    }
    return reach < VN_CONV_MOST / 2;
}

void vn__constants_conv_slab(int *constants, const void *problem)
{
    const struct conv *c = problem;

    constants[0] = (int)c->direction;
    constants[1] = is_in_place(c);
}

/* What is cut up. */
struct whole {
    struct vn_reach reach[DIMS];
    int64_t images, vectors, panels, channels;
    int64_t taps;                       /* of the phase that has most */
    double  phases, steps;              /* that have taps; of all of them together */
    double  pixels;                     /* of a phase */
    int     in_place;
};

static struct whole whole_of(const struct conv *c, const int *p)
{
    const int64_t vectors = VN_CEIL_DIV(vn__conv_rows(c), p[VN_SLAB_VEC]);
    struct whole w = { VN_REACHES(c), vn__conv_output(c)->extent[0], vectors,
                       VN_CEIL_DIV(vectors, p[VN_SLAB_THR_V]), channels_of(c), 1, 1, 0, 0, is_in_place(c) };

    w.pixels = (double)w.images;
    w.steps = (double)(w.channels * vn__conv_taps(c));
    for (int d = 0; d < DIMS; d++) {
        const int64_t step = vn__conv_tap_step(c, d);

        w.taps *= VN_CEIL_DIV(c->w.extent[2 + d], step);
        w.phases *= (double)min_of(c->w.extent[2 + d], step);
        w.pixels *= (double)w.reach[d].extent;
    }
    return w;
}

/* Tasks of `panels` panels and boxes of at most `pixels`; 0: a channel of a box does not fit the slab. */
static int cut_up(struct cut *cut, const struct conv *c, const struct whole *w, const int *p, int64_t panels,
                  int64_t pixels)
{
    double elements;

    cut->panels = panels;
    cut->ranges = VN_CEIL_DIV(w->panels, panels);
    vn__cut_box(&cut->pixels, w->images, w->reach, pixels);
    elements = vn__slab_elements(w->reach, cut->pixels.box);
    if (elements > p[VN_SLAB_BLK_S])                    /* read in place they stay in the cache likewise */
        return 0;
    cut->ranges_first = reads_source_less(cut, c);
    cut->channels = vn__even_part(max_of(1, w->channels),
                                  min_of((int64_t)(p[VN_SLAB_BLK_S] / (elements + 16)),
                                         VN_STEPS_MOST / w->taps));
    if (cut->channels > p[VN_SLAB_VEC])                 /* whole vectors, if they fit */
        cut->channels = cut->channels / p[VN_SLAB_VEC] * p[VN_SLAB_VEC];
    return 1;
}

/* What a task costs besides its multiply-adds, each in multiply-adds of one vector: a vector of the filter,
 * which is read for each box, and packed, where nothing has packed it; an element that is copied into the
 * slab; a step of a list; and a vector of sums, loaded and stored for each block of channels. */
enum { READ, PACK, COPY, LIST, SUM };           /* costs of a row */

double vn__slab_time(double task, double even, int64_t tasks, int units)
{
    enum { LATE = 3 };                          /* a third of a task */
    const double waves = even * (double)VN_CEIL_DIV(tasks, units);

    return (waves > task ? waves : task) + (units > 1 ? task / LATE : 0);
}

/* The time of all tasks that sum, in multiply-adds of one vector. */
static double time_of(const struct cut *cut, const struct conv *c, const struct whole *w,
                      const struct vn_row *row, int units, int is_packed)
{
    const int *const p = row->p;
    const double each = count_boxes(cut) * (double)cut->ranges * w->phases;     /* tasks of a group */
    const double steps = (double)(w->channels * w->taps), sum = steps * w->phases;
    const double vectors = (double)min_of(w->vectors, cut->panels * p[VN_SLAB_THR_V]);
    const double blocks = (double)VN_CEIL_DIV(max_of(1, w->channels), cut->channels);
    const double copied = w->in_place
                        ? 0 : vn__slab_elements(w->reach, cut->pixels.box) * (double)w->channels;
    int64_t pixels = 1, tiles;
    double rows, task, even;

    for (int i = 0; i <= DIMS; i++)
        pixels *= cut->pixels.box[i];
    tiles = VN_CEIL_DIV(pixels, p[VN_SLAB_THR_M]);      /* of THR_M or THR_M - 1 rows */
    rows = (double)max_of(pixels, tiles * (p[VN_SLAB_THR_M] - 1));
    task = vectors * (steps * (rows + row->cost[is_packed ? READ : PACK]) +
                      blocks * (double)pixels * row->cost[SUM]) +
           copied * row->cost[COPY] + (steps < VN_STEPS_MOST ? steps : VN_STEPS_MOST) * row->cost[LIST];
    even = task * (w->pixels / (count_boxes(cut) * (double)pixels)) *
           ((double)w->vectors / ((double)cut->ranges * vectors)) * (sum > 0 ? w->steps / sum : 1);
    return vn__slab_time(task, even, (int64_t)each * c->groups, units);
}

/* The cut of the least time: panels repay copying into the slab, pixels reading or packing the filter, and
 * small tasks keep all units at work. Of the plan, its own numbers; NULL, or why no cut will do.        */
static const char *find_cut(struct vn_plan *out, const struct conv *c, const struct vn_row *row,
                            const struct vn_site *site, int is_packed)
{
    const int *const p = row->p;
    const struct whole w = whole_of(c, p);
    const int64_t sums = p[VN_SLAB_BLK_C] / p[VN_SLAB_VEC];
    const char *why = vn__slab_fits(c, p, site->facts);
    double least = INFINITY;

    out->seconds = -1;                          /* until there is one */
    if (why)
        return why;
    why = "the source of a box of pixels does not fit the slab";
    if (w.taps > VN_STEPS_MOST)
        return "a filter has more than 2048 taps";
    for (int64_t each = max_of(1, w.panels), next; each; each = next) {
        const int64_t most = sums / min_of(max_of(1, w.vectors), each * p[VN_SLAB_THR_V]);

        for (int64_t box = most; box >= 1; box = box * 3 / 4) {
            struct cut cut;
            double time;

            if (!cut_up(&cut, c, &w, p, each, box))
                continue;
            if (is_packed && cut.channels < w.channels && cut.channels < p[VN_SLAB_VEC]) {
                why = "a run of channels of a packed filter does not fit the slab";
                continue;
            }
            if (count_tasks(&cut, c) > INT_MAX / 2) {
                why = "it has more than 2^30 tasks";
                continue;
            }
            time = time_of(&cut, c, &w, row, site->facts->units, is_packed);
            if (time < least) {
                least = time;
                out->v[VN_SLAB_PANELS] = each;
                out->v[VN_SLAB_PIXELS] = box;
            }
        }
        next = each > 1 ? vn__even_part(w.panels, each - 1) : 0;
    }
    if (least == INFINITY)
        return why;
    out->seconds = 0;                           /* nobody has a model of them */
    return NULL;
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
    const char *why = find_cut(out, c, row, site, 0);

    return why ? why : lacks_rows(c, row->p);
}

/* Whether several tasks read the same part of the filter: boxes of pixels, or phases, of which each touches
 * most cache lines of it. Else it is packed by who reads it, while it is in the cache. */
static int repays_packing(const struct conv *c, const struct vn_row *row, const struct vn_site *site)
{
    enum { READERS = 3 };
    const struct whole w = whole_of(c, row->p);
    const int64_t phases = vn__conv_phases(c);
    struct vn_plan plan;
    struct cut cut;

    if (c->is_empty || (phases > 1 && vn__conv_taps(c) == 1) || find_cut(&plan, c, row, site, 0))
        return 0;
    cut_up(&cut, c, &w, row->p, plan.v[VN_SLAB_PANELS], plan.v[VN_SLAB_PIXELS]);
    return (double)phases * count_boxes(&cut) >= READERS;
}

const char *vn__plan_conv_slab_packed(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                      const struct vn_site *site)
{
    const struct conv *c = problem;
    const int *p = row->p;
    const struct vn_layout l = vn__layout_conv_slab(c, p);
    const int given = vn__conv_is_packed(c, &l);
    const char *why = find_cut(out, c, row, site, 1);

    if (why)
        return why;
    if (packed_vectors(c, p) > VN_CONV_MOST / c->groups) {
        out->seconds = -1;
        return "a packed filter must stay below 2^31 vectors";
    }
    out->workspace = given ? 0 : l.bytes;
    return (why = lacks_rows(c, p)) ? why
         : c->is_empty || (!given && !repays_packing(c, row, site))
         ? "few tasks read the same part of the filter" : NULL;
}

static vn_status run_pack(vn_queue *q, const struct vn_choice *it, const void *problem, vn_buffer *packed,
                          size_t at)
{
    enum { SOME = 64 };
    const struct conv *const c = problem;
    struct vn_launch l = { .items = 1 };
    const int64_t vectors = VN_CEIL_DIV(vn__conv_rows(c), it->p[VN_SLAB_VEC]);
    const struct vn_layout layout = vn__layout_conv_slab(c, it->p);

    (void)at;                                   /* 0 */
    if (!channels_of(c))
        return VN_OK;                           /* the filter is empty */
    l.groups[0] = VN_CEIL_DIV(channels_of(c), SOME);
    l.groups[1] = VN_CEIL_DIV(vectors, it->p[VN_SLAB_THR_V]);
    l.groups[2] = c->groups;
    vn__conv_arg_filter(&l, c);
    vn__arg_int(&l, SOME);
    vn__arg_int(&l, layout.bytes > q->device->facts.local_bytes);   /* no second-level cache holds it */
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
    const int is_packed = it->variant->layout != NULL;
    const struct whole w = whole_of(c, it->p);
    struct vn_launch l = { .nargs = 0 };
    vn_buffer *taken, *packed = vn__conv_output(c)->buffer;
    struct vn_layout layout;
    struct cut cut;
    const struct vn_boxes *const at = &cut.pixels;
    int64_t tasks;
    vn_status s;

    cut_up(&cut, c, &w, it->p, plan->v[VN_SLAB_PANELS], plan->v[VN_SLAB_PIXELS]);
    tasks = (int64_t)count_tasks(&cut, c);
    if ((s = vn__counters(&taken, q)))
        return s;
    if (is_packed && (layout = vn__layout_conv_slab(c, it->p), vn__conv_is_packed(c, &layout))) {
        packed = c->pack;
        q->packed_used = layout.bytes;
    } else if (is_packed &&
               ((s = vn__workspace(&packed, q, plan->workspace)) || (s = run_pack(q, it, c, packed, 0)))) {
        return s;
    }
    l.groups[0] = min_of(q->device->facts.units, tasks);
    l.groups[1] = l.groups[2] = 1;
    l.items = 1;
    vn__conv_arg_problem(&l, c);
    vn__arg_view(&l, (int64_t[8]){ 0, c->beta == 0 && vn__is_past_caches(q, vn__conv_output(c)), at->box[0],
                                   cut.panels, at->box[1], at->box[2], at->box[3] });
    vn__arg_view(&l, (int64_t[8]){ cut.ranges_first, 0, at->count[0], cut.ranges, at->count[1], at->count[2],
                                   at->count[3] });
    vn__arg_int(&l, cut.channels);
    vn__arg_int(&l, tasks);
    vn__arg_int(&l, l.groups[0]);
    vn__arg_buffer(&l, taken);
    vn__arg_buffer(&l, packed);
    return vn__launch(q, it, 0, &l);
}
