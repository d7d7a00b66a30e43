/* SPDX-License-Identifier: Apache-2.0
 *
 * narrow.c - the variant conv_narrow: CPUs, outputs of few channels, by vectors of pixels out of a slab.
 */
#include <math.h>

#include "slab.h"

enum { REGS, VEC, BLK_S, BLK_C };               /* its parameters */
enum { COPY, LIST, MOST };                      /* its costs */
enum { CHANNELS_MOST = 9 };
enum { TAPS_MOST = 256, PHASES_MOST = 16 };     /* of cl/conv/narrow.cl */
enum { ROWS, CHANNELS };                        /* the plan's numbers: of a band, of a block */
enum { H = 1, W = 2 };
enum { BEHIND = 16 };                           /* elements behind a channel of the slab, as of slab.h */

void vn__constants_conv_narrow(int *constants, const void *problem)
{
    const struct conv *c = problem;

    constants[0] = (int)c->direction;
    constants[1] = (int)vn__conv_rows(c);
}

static int64_t step_of(const struct conv *c, int d)
{
    return c->direction == BACKWARD_DATA ? c->stride[d] : 1;
}

const char *vn__fits_conv_narrow(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;
    const char *const why = vn__fits_vectors(problem, f);

    if (why)
        return why;
    if (c->direction == BACKWARD_FILTER)
        return "it is for outputs that are images";
    if (c->groups != 1 || vn__conv_rows(c) < 1 || vn__conv_rows(c) > CHANNELS_MOST)
        return "it is for outputs of 1 to 9 channels, and no groups";
    if (c->x.extent[2] != 1 || c->y.extent[2] != 1 || c->w.extent[2] != 1 || c->pad[0])
        return "it is for images of two dimensions";
    if (c->direction == FORWARD && (c->stride[H] != 1 || c->stride[W] != 1))
        return "it is for steps of 1, forward";
    if (step_of(c, H) > PHASES_MOST || step_of(c, W) > PHASES_MOST / step_of(c, H))
        return "there are more than 16 phases";
    if (c->w.extent[2 + H] > TAPS_MOST || c->w.extent[2 + W] > TAPS_MOST || vn__conv_taps(c) > TAPS_MOST)
        return "its filter has more than 256 taps";
    return vn__fits_elements(c);
}

/* Along a dimension: the source of the first pixel's farthest taps, how far all taps reach, and the pixels of
 * a phase. */
struct side { int64_t low, reach, pixels; };

static struct side side_of(const struct conv *c, int d)
{
    const int64_t step = step_of(c, d), extent = vn__conv_output(c)->extent[2 + d];
    int64_t low = INT64_MAX, high = INT64_MIN;

    for (int64_t phase = 0; phase < min_of(step, extent); phase++)
        for (int64_t tap = 0; tap < c->w.extent[2 + d]; tap++) {
            const int64_t at = c->direction == BACKWARD_DATA ? phase + c->pad[d] - tap * c->dilation[d]
                                                             : tap * c->dilation[d] - c->pad[d];

            if (at % step)
                continue;
            low  = min_of(low, at / step);
            high = max_of(high, at / step);
        }
    if (low > high)
        low = high = 0;                         /* no tap meets a pixel */
    return (struct side){ low, high - low, VN_CEIL_DIV(extent, step) };
}

/* What bands of so many rows take; 0: not even one channel fits. */
static int64_t channels_of(const struct conv *c, const struct side *h, const struct side *w, const int *p,
                           int64_t rows, int64_t all)
{
    const int64_t each = vn__conv_rows(c), tile = p[REGS] / (each + 1) * p[VEC];
    const int64_t pitch = w->pixels + w->reach, span = (rows - 1) * pitch + w->pixels;
    const int64_t phases = step_of(c, H) * step_of(c, W);
    const int64_t most = p[BLK_S] / ((rows + h->reach) * pitch + BEHIND);

    if (phases * each * VN_CEIL_DIV(span, tile) * tile > p[BLK_C])
        return 0;
    return most < all && most > p[VEC] ? most / p[VEC] * p[VEC] : min_of(most, all);
}

/* The time of all bands, in multiply-adds of one vector. */
static double time_of(const struct conv *c, const struct side *h, const struct side *w,
                      const struct vn_row *row, int64_t rows, int64_t all, int units)
{
    const int64_t each = vn__conv_rows(c), vec = row->p[VEC], vectors = row->p[REGS] / (each + 1);
    const int64_t pitch = w->pixels + w->reach, span = (rows - 1) * pitch + w->pixels;
    const int64_t bands = VN_CEIL_DIV(h->pixels, rows);
    const double taps = (double)(vn__conv_taps(c) * all);
    const double task = taps * (double)(each * VN_CEIL_DIV(span, vectors * vec) * vectors) +
                        (double)(all * (rows + h->reach) * pitch) * row->cost[COPY] / 100.0 +
                        (double)vn__conv_taps(c) * row->cost[LIST];

    return vn__slab_time(task, task * (double)h->pixels / (double)(bands * rows),
                         bands * vn__conv_output(c)->extent[0], units);
}

const char *vn__plan_conv_narrow(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                 const struct vn_site *site)
{
    const struct conv *c = problem;
    const struct side h = side_of(c, H), w = side_of(c, W);
    const int *const p = row->p;
    const int64_t all = c->direction == BACKWARD_DATA ? c->w.extent[0] : c->w.extent[1];
    const size_t each = c->p.type == VN_F64 ? 8 : 4;
    double least = INFINITY;

    out->seconds = -1;
    if (((size_t)p[BLK_S] + (size_t)p[BLK_C] + 3 * (size_t)(p[REGS] * p[VEC])) * each + TAPS_MOST * 16
        > site->facts->local_bytes)
        return "its slab and sums need more local memory than there is";
    if (vn__conv_rows(c) >= p[REGS])
        return "its tile has no vector of pixels";
    for (int64_t rows = 1; rows <= h.pixels; rows++) {
        const int64_t channels = channels_of(c, &h, &w, p, rows, all);
        double time;

        if (!channels)
            break;
        if ((time = time_of(c, &h, &w, row, rows, all, site->facts->units)) >= least)
            continue;
        least = time;
        out->v[ROWS] = rows;
        out->v[CHANNELS] = channels;
    }
    if (least == INFINITY)
        return "a row of the source does not fit the slab, or one of the output the sums";
    out->seconds = 0;                           /* nobody has a model of those of CPUs */
    return vn__conv_rows(c) > row->cost[MOST] ? "vectors of channels would be filled well" : NULL;
}

vn_status vn__run_conv_narrow(vn_queue *q, const struct vn_choice *it, const void *problem,
                              const struct vn_plan *plan)
{
    const struct conv *c = problem;
    const struct side h = side_of(c, H), w = side_of(c, W);
    const int64_t bands = VN_CEIL_DIV(h.pixels, plan->v[ROWS]);
    struct vn_launch l = { .nargs = 0 };

    l.groups[0] = bands * vn__conv_output(c)->extent[0];
    l.groups[1] = l.groups[2] = 1;
    l.items = 1;
    vn__conv_arg_problem(&l, c);
    vn__arg_view(&l, (int64_t[8]){ plan->v[ROWS], bands, plan->v[CHANNELS], 0, h.low, w.low, h.reach,
                                   w.reach });
    return vn__launch(q, it, 0, &l);
}
