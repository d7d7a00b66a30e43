/* cl/conv/conv.h - what all convolution kernels share: how taps and pixels meet.
 *
 * DIRECTION 0 is forward, 1 backward data, 2 backward filter.  Every kernel takes views of
 * its operands (s0 the start, s1 one group further, then the five strides)
 *
 *              DIRECTION 0, 1                  DIRECTION 2
 *      vA      filter: row, channel, tap       x:  image, channel, pixel
 *      vB      source: image, channel, pixel   dy: image, column, pixel
 *      vC      output: image, row, pixel       dw: column, channel, tap
 *
 * and extents: eTaps of the filter (s3 its channels), eIn of the tensor that taps are looked
 * up in, eOut of the pixels that are gone through (s2 images, s3 rows or columns), vStep
 * (s1 to s3 the dilation, s4 to s6 the stride) and vPad.
 */

/* Pixel q of a phase lies at phase + q * PIXEL_STEP; a tap finds its source at
 * q * SOURCE_STEP + shift.                                                      */
#if DIRECTION == 1
#define PIXEL_STEP(stride)  (stride)
#define SOURCE_STEP(stride) 1
#else
#define PIXEL_STEP(stride)  1
#define SOURCE_STEP(stride) (stride)
#endif

/* The last place of a number whose last place counts to n; the others stay in *x. */
DEVICE INDEX take(INDEX *x, INDEX n)
{
    const INDEX others = *x / n, last = *x - others * n;

    *x = others;
    return last;
}

/* Pixels of a phase along one dimension. */
DEVICE INDEX pixels_along(INDEX extent, INDEX stride, INDEX phase)
{
    return (extent - phase + PIXEL_STEP(stride) - 1) / PIXEL_STEP(stride);
}

/* Phases along one dimension: a stride past the end makes no more of them. */
DEVICE INDEX phases_along(INDEX extent, INDEX stride)
{
    return PIXEL_STEP(stride) < extent ? PIXEL_STEP(stride) : extent;
}

/* Along one dimension, the taps that meet a phase are first, first + every, ... (count of
 * them), and the shifts of their sources shift, shift + slide, ...                       */
struct meeting { INDEX first, every, count, shift, slide; };

DEVICE void meet(struct meeting *m, INDEX taps, INDEX dilation, INDEX stride, INDEX pad, INDEX phase)
{
#if DIRECTION == 1
    for (m->first = 0; m->first < taps && (phase + pad - m->first * dilation) % stride; m->first++)
        ;
    for (m->every = 1; m->every < stride && m->every * dilation % stride; m->every++)
        ;
    m->count = (taps - m->first + m->every - 1) / m->every;
    m->shift = (phase + pad - m->first * dilation) / stride;
    m->slide = -(m->every * dilation / stride);
#else
    m->first = 0;
    m->every = 1;
    m->count = taps;
    m->shift = -pad;
    m->slide = dilation;
#endif
}

/* An element of a view, by group and place. */
#define OFFSET(v, group, i0, i1, d, h, w) \
    ((INDEX)(v).s0 + (group) * (INDEX)(v).s1 + (i0) * (INDEX)(v).s2 + (i1) * (INDEX)(v).s3 + \
     (d) * (INDEX)(v).s4 + (h) * (INDEX)(v).s5 + (w) * (INDEX)(v).s6)
