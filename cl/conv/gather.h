/* cl/conv/gather.h - where a convolution's product finds its elements, without a division in its loop
 *
 * A convolution, or its gradient for x, is a product of pixels and filters.  Its sum runs over the taps that
 * contribute to a phase, and for each tap over the channels of the source.  Element k of the sum is channel
 * k % channels of tap k / channels; of the taps s advances first, then r, then t.
 *
 *     k         0 1 2 ...     channels ...      2 channels ...
 *     channel   0 1 2 ...     0 1 2 ...         0 1 2 ...
 *     tap       s = 0         s = 1             s = 2              of r = 0, t = 0
 *
 * `channels` is rounded up to whole vectors, so that a vector is of one tap.  The work-items of a tile share
 * its rows and its slices of k:
 *
 *     struct gather_grid grid;        the pixels of a phase
 *     struct gather_sum sum;          its taps, and the channels of each
 *     struct gather_pixel pixel;      the pixel of the output that a row has; once for a row
 *     struct gather_row row;          its source for the first tap; kept
 *     struct gather_k k;              a vector of the sum; it advances from slice to slice
 *     struct gather_step step;        from a row's source to that of k; once for all rows
 *
 *     if (gather_is_inside(&row, &step, eIn))
 *         ... the vector at source[row.at + step.at], else zeros
 *
 * Channels of the source are contiguous.  Offsets are those from where an operand of the group begins.  All
 * coordinates, also in the padding, stay below 2^30.
 *
 * In backward filter (DIRECTION 2) the pixels of y are summed instead, which advance, and the columns of the
 * filter's gradient are counted as k is.
 *
 * Takes: IMAGE_RANK, 5 where images have a dimension d, else 4; conv.h.
 * Gives: struct gather_grid, gather_grid(), gather_pixels(); struct gather_sum, gather_sum(),
 *        gather_length(); struct gather_pixel, gather_pixel(), gather_pixel_add(), gather_output(); struct
 *        gather_row, gather_row(); struct gather_k, gather_k(), gather_advance(), gather_is_there(); struct
 *        gather_step, gather_step(), gather_is_inside(), gather_filter().
 */

/* ---- a phase -------------------------------------------------------------------------------------- */

/* As divmod(), without the division where *x < n, the usual case: GPUs have no integer divider. */
DEVICE INDEX gather_divmod(INDEX *x, INDEX n)
{
    const INDEX inner = *x;

    if (inner >= n)
        return divmod(x, n);
    *x = 0;
    return inner;
}

/* Which phase it is along each dimension, and its pixels. */
struct gather_grid { INDEX phase_d, phase_h, phase_w, depth, height, width; };

/* phase: its number, of all. */
DEVICE void gather_grid(struct gather_grid *g, INDEX phase, VIEW eOut, VIEW vStep)
{
    g->phase_w = gather_divmod(&phase, phases_along((INDEX)eOut.s6, (INDEX)vStep.s6));
    g->phase_h = gather_divmod(&phase, phases_along((INDEX)eOut.s5, (INDEX)vStep.s5));
    g->phase_d = phase;
    g->width   = pixels_along((INDEX)eOut.s6, (INDEX)vStep.s6, g->phase_w);
    g->height  = pixels_along((INDEX)eOut.s5, (INDEX)vStep.s5, g->phase_h);
    g->depth   = pixels_along((INDEX)eOut.s4, (INDEX)vStep.s4, g->phase_d);
}

/* Those of all images. */
DEVICE int gather_pixels(const struct gather_grid *g, VIEW eOut)
{
    return (int)((INDEX)eOut.s2 * g->depth * g->height * g->width);
}

/* If a dimension has no taps, none has, and all are counted by t. */
struct gather_sum { struct taps t, r, s; int channels; };

DEVICE void gather_sum(struct gather_sum *sum, const struct taps *t, const struct taps *r,
                       const struct taps *s, int channels)
{
    const int none = t->count == 0 || r->count == 0 || s->count == 0;

    sum->t = *t;
    sum->r = *r;
    sum->s = *s;
    sum->channels = channels;
    if (none) {
        sum->t.count = 0;
        sum->r.count = sum->s.count = 1;
    }
}

/* How many elements it has. */
DEVICE int gather_length(const struct gather_sum *sum)
{
    return (int)(sum->t.count * sum->r.count * sum->s.count) * sum->channels;
}

/* ---- pixels --------------------------------------------------------------------------------------- */

/* A pixel of a phase, counted within the phase. */
struct gather_pixel { INDEX image; int d, h, w; };

DEVICE void gather_pixel(struct gather_pixel *p, int number, const struct gather_grid *g)
{
    INDEX image = number;

    p->w = (int)gather_divmod(&image, g->width);
    p->h = (int)gather_divmod(&image, g->height);
    p->d = IMAGE_RANK == 5 ? (int)gather_divmod(&image, g->depth) : 0;
    p->image = image;
}

/* p += by, both counted so: at most one pixel is carried from each dimension to the next. */
DEVICE void gather_pixel_add(struct gather_pixel *p, const struct gather_pixel *by,
                             const struct gather_grid *g)
{
    const int w = p->w + by->w, carry_w = w >= (int)g->width;
    const int h = p->h + by->h + carry_w, carry_h = h >= (int)g->height;
    const int d = p->d + by->d + carry_h, carry_d = d >= (int)g->depth;

    p->w = carry_w ? w - (int)g->width : w;
    p->h = carry_h ? h - (int)g->height : h;
    p->d = IMAGE_RANK == 5 ? (carry_d ? d - (int)g->depth : d) : 0;
    p->image += by->image + (IMAGE_RANK == 5 ? carry_d : carry_h);
}

/* Its offset in a tensor of the output's shape, of which v is the view. */
DEVICE INDEX gather_output(const struct gather_pixel *p, const struct gather_grid *g, VIEW v, VIEW vStep)
{
    return p->image * (INDEX)v.s2 + (g->phase_d + p->d * PIXEL_STEP((INDEX)vStep.s4)) * (INDEX)v.s4 +
           (g->phase_h + p->h * PIXEL_STEP((INDEX)vStep.s5)) * (INDEX)v.s5 +
           (g->phase_w + p->w * PIXEL_STEP((INDEX)vStep.s6)) * (INDEX)v.s6;
}

/* The source of a pixel for the first tap: its offset, and its coordinates, which may be in the padding. */
struct gather_row { INDEX at; int d, h, w; };

/* v: the source; vStep: see conv.h.  A row that has no pixel, there == 0, is outside for each tap. */
DEVICE void gather_row(struct gather_row *row, const struct gather_pixel *p, const struct gather_sum *sum,
                       VIEW v, VIEW vStep, int there)
{
    enum { OUTSIDE = -(1 << 30) };

    row->w = p->w * SOURCE_STEP((int)vStep.s6) + (int)sum->s.shift;
    row->h = p->h * SOURCE_STEP((int)vStep.s5) + (int)sum->r.shift;
    row->d = IMAGE_RANK == 5 ? p->d * SOURCE_STEP((int)vStep.s4) + (int)sum->t.shift : 0;
    row->at = p->image * (INDEX)v.s2 + row->d * (INDEX)v.s4 + row->h * (INDEX)v.s5 + row->w * (INDEX)v.s6;
    row->w = there ? row->w : OUTSIDE;
}

/* ---- elements of the sum ----------------------------------------------------------------------------- */

struct gather_k { int channel, s, r, t; };

DEVICE void gather_k(struct gather_k *k, const struct gather_sum *sum, int number)
{
    INDEX tap = number;

    k->channel = (int)gather_divmod(&tap, sum->channels);
    k->s = (int)gather_divmod(&tap, sum->s.count);
    k->r = (int)gather_divmod(&tap, sum->r.count);
    k->t = (int)tap;
}

/* `by` elements further: one step of the taps, if there are as many channels. */
DEVICE void gather_advance(struct gather_k *k, const struct gather_sum *sum, int by)
{
    k->channel += by;
    NO_UNROLL while (k->channel >= sum->channels) {
        k->channel -= sum->channels;
        if (++k->s == (int)sum->s.count) {
            k->s = 0;
            if (++k->r == (int)sum->r.count) {
                k->r = 0;
                k->t++;
            }
        }
    }
}

/* Past the end of the sum there is none. */
DEVICE int gather_is_there(const struct gather_k *k, const struct gather_sum *sum)
{
    return k->t < (int)sum->t.count;
}

/* From the source of the first tap to that of k. */
struct gather_step { INDEX at; int d, h, w; };

DEVICE void gather_step(struct gather_step *step, const struct gather_k *k, const struct gather_sum *sum,
                        VIEW v)
{
    step->w = k->s * (int)sum->s.delta;
    step->h = k->r * (int)sum->r.delta;
    step->d = IMAGE_RANK == 5 ? k->t * (int)sum->t.delta : 0;
    step->at = k->channel + step->w * (INDEX)v.s6 + step->h * (INDEX)v.s5 +
               (IMAGE_RANK == 5 ? step->d * (INDEX)v.s4 : 0);
}

/* eIn: the extents of the source. */
DEVICE int gather_is_inside(const struct gather_row *row, const struct gather_step *step, VIEW eIn)
{
    return ((UINT32)(row->w + step->w) < (UINT32)eIn.s6) & ((UINT32)(row->h + step->h) < (UINT32)eIn.s5) &
           (IMAGE_RANK < 5 || (UINT32)(row->d + step->d) < (UINT32)eIn.s4);
}

/* The offset of k in a filter, whose view v has the channels that are summed at s3. */
DEVICE INDEX gather_filter(const struct gather_k *k, const struct gather_sum *sum, VIEW v)
{
    return k->channel * (INDEX)v.s3 + (sum->r.first + k->r * sum->r.step) * (INDEX)v.s5 +
           (sum->s.first + k->s * sum->s.step) * (INDEX)v.s6 +
           (sum->t.first + k->t * sum->t.step) * (INDEX)v.s4;
}
