/* cl/conv/gather_filter.cl - backward filter of filters of 1x1 that go in steps: gathers the pixels they meet
 *
 *     x    a . b . c          copy    a b c      A work-group is one work-item. It copies one channel of an
 *          . . . . .                  d e f      image, or, where channels are contiguous, one row of pixels.
 *          d . e . f                             Nothing is padded. DIRECTION is 2.
 *
 * Parameters, from conv.tune: VEC, elements that are copied together.
 */

/* Copies `count` elements `step` apart. */
DEVICE void copy_elements(GLOBAL T_BITS *to, GLOBAL const T_BITS *from, INDEX count, INDEX step)
{
    INDEX i = 0;

    if (step == 1)
        for (; i + VEC <= count; i += VEC)
            UNROLL for (int j = 0; j < VEC; j++)
                to[i + j] = from[i + j];
    else if (step == 2)
        for (; i + VEC <= count; i += VEC)
            UNROLL for (int j = 0; j < VEC; j++)
                to[i + j] = from[2 * (i + j)];
    for (; i < count; i++)
        to[i] = from[i * step];
}

/* vTo: the copy. by_channel: channels are contiguous in both. */
KERNEL(1) void
conv_gather_filter(GLOBAL const T *RESTRICT gA, VIEW vA, VIEW eTaps, VIEW eOut, VIEW vStep, VIEW vPad,
                   VIEW vMeet, GLOBAL T *gTo, VIEW vTo, int by_channel)
{
    GLOBAL const T_BITS *const from = (GLOBAL const T_BITS *)gA;
    GLOBAL T_BITS *const to = (GLOBAL T_BITS *)gTo;
    const INDEX n = GROUP_ID(1), channel = by_channel ? 0 : GROUP_ID(0), w1 = by_channel ? (INDEX)eOut.s6 : 1;
    INDEX d0 = by_channel ? GROUP_ID(0) : 0;
    const INDEX h0 = by_channel ? divmod(&d0, (INDEX)eOut.s5) : 0, h1 = by_channel ? h0 + 1 : (INDEX)eOut.s5;
    const INDEX d1 = by_channel ? d0 + 1 : (INDEX)eOut.s4;

    for (INDEX d = d0; d < d1; d++)
    for (INDEX h = h0; h < h1; h++)
    for (INDEX w = 0; w < w1; w++)
        copy_elements(to + OFFSET(vTo, 0, n, channel, d, h, w),
                      from + OFFSET(vA, 0, n, channel, d * (INDEX)vStep.s4, h * (INDEX)vStep.s5,
                                    w * (INDEX)vStep.s6),
                      (INDEX)(by_channel ? eTaps.s3 : eOut.s6),
                      by_channel ? 1 : (INDEX)vA.s6 * (INDEX)vStep.s6);
}
