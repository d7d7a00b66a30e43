/* cl/conv/conv.h - what all convolution kernels share: which taps and pixels contribute to which.
 *
 * DIRECTION 0 is forward, 1 backward data, 2 backward filter. Every kernel takes views of
 * its operands: s0 the start, s1 the step from group to group, then the five strides
 *
 *              DIRECTION 0, 1                  DIRECTION 2
 *      vA      filter: row, channel, tap       x:  image, channel, pixel
 *      vB      source: image, channel, pixel   dy: image, column, pixel
 *      vC      output: image, row, pixel       dw: column, channel, tap
 *      vR vBias  the residual and the bias likewise
 *
 * and extents: eTaps of the filter (s3 its channels), eIn of the source tensor, eOut of the
 * pixels that are iterated over (s2 images, s3 rows or columns), vStep (s1 to s3 the dilation,
 * s4 to s6 the stride), vPad (s4 to s6; s1 to s3 the steps of vMeet as
 * prepared divisors, cl/types.h), and vMeet (s0 the elements of
 * vA's buffer, s4 to s6 the step from tap to tap that contribute to one
 * phase, s1 to s3 the inverse of dilation / gcd(dilation, stride) modulo that step). A row is an
 * output channel.
 *
 * A phase, in backward data, is the set of pixels with one remainder modulo the stride: the same
 * taps contribute to all of them. Forward and backward filter have one phase.
 */

/* An operand that is not added has no parameters; its offsets are then those of C, and unused. */
#define CONV_PARAMS GLOBAL TC *C_RESTRICT gC, VIEW vC RESIDUAL_PARAMS BIAS_PARAMS
#if RESIDUAL
#define CONV_RESIDUAL beta, gR
#else
#define CONV_RESIDUAL ZERO, 0
#define vR            vC
#endif
#if BIAS
#define CONV_BIAS     gBias
#else
#define CONV_BIAS     0
#define vBias         vC
#endif
/* C, for epilogue_at(): residual and bias have an element for each of C. */
#define CONV_OUTPUT { 0, 0, alpha, gC, 0, 0, 0, 0, 0, CONV_RESIDUAL, 0, 0, CONV_BIAS, 0, 0 }

/* Pixel q of a phase lies at phase + q * PIXEL_STEP; its source for a tap, at q * SOURCE_STEP + shift. */
#if DIRECTION == 1
#define PIXEL_STEP(stride)  (stride)
#define SOURCE_STEP(stride) 1
#else
#define PIXEL_STEP(stride)  1
#define SOURCE_STEP(stride) (stride)
#endif

DEVICE INDEX imin(INDEX a, INDEX b) { return a < b ? a : b; }
DEVICE INDEX imax(INDEX a, INDEX b) { return a > b ? a : b; }

/* Returns *x modulo n, and leaves *x / n in *x: an index is taken apart from its innermost dimension on. */
DEVICE INDEX divmod(INDEX *x, INDEX n)
{
    const INDEX outer = *x / n, inner = *x - outer * n;

    *x = outer;
    return inner;
}

/* The number of pixels of a phase along one dimension. */
DEVICE INDEX pixels_along(INDEX extent, INDEX stride, INDEX phase)
{
    return (extent - phase + PIXEL_STEP(stride) - 1) / PIXEL_STEP(stride);
}

/* The number of phases along one dimension: no more than there are pixels. */
DEVICE INDEX phases_along(INDEX extent, INDEX stride)
{
    return PIXEL_STEP(stride) < extent ? PIXEL_STEP(stride) : extent;
}

/* Along one dimension, the `count` taps that contribute to a phase are first, first + step, ..., and the
 * shifts of their sources are shift, shift + delta, ...                                      */
struct taps { INDEX first, step, count, shift, delta; };

#if DIRECTION == 1
/* Tap m contributes where stride divides phase + pad - m dilation. With g their greatest common divisor,
 * these are the solutions of one congruence modulo step = stride / g, and inverse is that of dilation / g. */
DEVICE void find_taps(struct taps *m, INDEX taps, INDEX dilation, INDEX stride, INDEX pad, INDEX phase,
                      INDEX step, INDEX inverse)
{
    const INDEX g = stride / step, at = phase + pad;

    m->first = step == 1 ? 0 : (INDEX)((INT64)(at / g % step) * inverse % step);
    m->step = step;
    m->count = at % g || m->first >= taps ? 0 : (taps - 1 - m->first) / step + 1;
    m->shift = m->count ? (at - m->first * dilation) / stride : 0;
    m->delta = -(dilation / g);
}
#else
DEVICE void find_taps(struct taps *m, INDEX taps, INDEX dilation, INDEX stride, INDEX pad, INDEX phase,
                      INDEX step, INDEX inverse)
{
    m->first = 0;
    m->step = 1;
    m->count = taps;
    m->shift = -pad;
    m->delta = dilation;
}
#endif

/* The taps of all dimensions, for the phase (d, h, w). */
#define FIND_TAPS(t, r, s, d, h, w)                                                                       \
    do {                                                                                                  \
        find_taps(t, (INDEX)eTaps.s4, (INDEX)vStep.s1, (INDEX)vStep.s4, (INDEX)vPad.s4, d, (INDEX)vMeet.s4, \
                  (INDEX)vMeet.s1);                                                                       \
        find_taps(r, (INDEX)eTaps.s5, (INDEX)vStep.s2, (INDEX)vStep.s5, (INDEX)vPad.s5, h, (INDEX)vMeet.s5, \
                  (INDEX)vMeet.s2);                                                                       \
        find_taps(s, (INDEX)eTaps.s6, (INDEX)vStep.s3, (INDEX)vStep.s6, (INDEX)vPad.s6, w, (INDEX)vMeet.s6, \
                  (INDEX)vMeet.s3);                                                                       \
    } while (0)

#if DIRECTION == 1
/* As find_taps(), in 32 bits, and without divisions where g is 1: the first tile waits for it.  by:
 * step, as a prepared divisor. */
DEVICE void conv_taps(struct taps *m, int taps, int dilation, int stride, int pad, int phase, int step,
                      int inverse, INT64 by)
{
    const int g = step == stride ? 1 : stride / step, at = phase + pad, u = g == 1 ? at : at / g;
    const int rest = u - divided(u, by) * step;
    const int first = step == 1 || inverse == 1 ? rest : (int)((INT64)rest * inverse % step);
    const int count = u * g != at || first >= taps ? 0 : divided(taps - 1 - first, by) + 1;
    const int whole = at - first * dilation;            /* a multiple of the stride */

    m->first = first;
    m->step = step;
    m->count = count;
    m->shift = !count ? 0 : g > 1 ? whole / stride : whole < 0 ? -divided(-whole, by) : divided(whole, by);
    m->delta = g == 1 ? -dilation : -(dilation / g);
}
#else
#define conv_taps(m, taps, dilation, stride, pad, phase, step, inverse, by) \
    find_taps(m, taps, dilation, stride, pad, phase, step, inverse)
#endif

/* ... of one dimension, as CONV_TAPS(&s, s6, s3, w). */
#define CONV_TAPS(m, along, dilated, phase)                                                         \
    conv_taps(m, (int)eTaps.along, (int)vStep.dilated, (int)vStep.along, (int)vPad.along, phase,    \
              (int)vMeet.along, (int)vMeet.dilated, (INT64)vPad.dilated)

/* The offset of an element in a view, by group and index. */
#define OFFSET(v, group, i0, i1, d, h, w) \
    ((INDEX)(v).s0 + (group) * (INDEX)(v).s1 + (i0) * (INDEX)(v).s2 + (i1) * (INDEX)(v).s3 + \
     (d) * (INDEX)(v).s4 + (h) * (INDEX)(v).s5 + (w) * (INDEX)(v).s6)
