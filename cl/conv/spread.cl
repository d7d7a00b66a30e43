/* cl/conv/spread.cl - backward data of filters of 1x1 that go in steps: spreads a product over its output
 *
 *     product    a b c          dx    a 0 b 0 c 0     A work-group is one work-item. It stores one channel of
 *                d e f                0 0 0 0 0 0     an image, or, where channels are contiguous, one row of
 *                                     d 0 e 0 f 0     pixels. The product is as lib/conv/spread.c has it: of
 *                                     0 0 0 0 0 0     dy's pixels, in the order of dx.
 *
 * DIRECTION is 1, without groups of channels. vStep, vPad as in cl/conv/conv.h.
 *
 * Parameters, from conv.tune: VEC.
 */

/* Element i is element (i + pad) / step of the product; zero if that leaves a remainder, or is_there is 0. */
struct source { GLOBAL const R *from; int is_there, step, pad; };

/* VEC elements from i on, of which there are `count`: the product has room for as many behind its last. */
DEVICE RV lanes_of(const struct source *s, int i, int count)
{
    const int at = s->step == 1 ? i + s->pad : s->step == 2 ? (i + s->pad) >> 1 : (i + s->pad) / s->step;
    R each[VEC];

    if (!s->is_there)
        return (RV)(ZERO);
    if (s->step == 1)
        return VLOAD(VEC, s->from + at);
    if (s->step == 2 && at * 2 == i + s->pad) {
        const RV v = VLOAD(VEC, s->from + at), zero = (RV)(ZERO);
        RV low, high;

        ZIP(low, high, v, zero);
        return low;
    }
    for (int j = 0; j < VEC; j++) {
        const int next = (i + s->pad + j) / s->step;

        each[j] = j < count && next * s->step == i + s->pad + j ? s->from[next] : ZERO;
    }
    return VLOAD(VEC, each);
}

/* The place of dx's pixel i in dy along one dimension, or -1. */
DEVICE INDEX place_of(INDEX i, INDEX step, INDEX pad)
{
    const INDEX at = (i + pad) / step;

    return at * step == i + pad ? at : -1;
}

/* vFrom: the product. by_channel: channels are contiguous in both. */
KERNEL(1) void
conv_spread(CONV_PARAMS, VIEW eOut, VIEW vStep, VIEW vPad, VIEW vMeet, R alpha,
            GLOBAL const R *RESTRICT gFrom, VIEW vFrom, int by_channel)
{
    const struct output output = CONV_OUTPUT;
    const INDEX n = GROUP_ID(1), channel = by_channel ? 0 : GROUP_ID(0);
    INDEX d0 = by_channel ? GROUP_ID(0) : 0;
    const INDEX h0 = by_channel ? divmod(&d0, (INDEX)eOut.s5) : 0, h1 = by_channel ? h0 + 1 : (INDEX)eOut.s5;
    const INDEX d1 = by_channel ? d0 + 1 : (INDEX)eOut.s4, w1 = by_channel ? (INDEX)eOut.s6 : 1;

    for (INDEX d = d0; d < d1; d++)
    for (INDEX h = h0; h < h1; h++)
    for (INDEX w = 0; w < w1; w++) {
        const INDEX from_d = place_of(d, (INDEX)vStep.s4, (INDEX)vPad.s4);
        const INDEX from_h = place_of(h, (INDEX)vStep.s5, (INDEX)vPad.s5);
        const INDEX from_w = by_channel ? place_of(w, (INDEX)vStep.s6, (INDEX)vPad.s6) : 0;
        const int is_there = from_d >= 0 && from_h >= 0 && from_w >= 0;
        const struct run run = { OFFSET(vC, 0, n, channel, d, h, w),
                                 OFFSET(vR, 0, n, channel, d, h, w), (INDEX)(by_channel ? vR.s3 : vR.s6),
                                 OFFSET(vBias, 0, n, channel, d, h, w),
                                 (INDEX)(by_channel ? vBias.s3 : vBias.s6),
                                 (int)(by_channel ? eOut.s3 : eOut.s6) };
        const INDEX from = is_there ? OFFSET(vFrom, 0, n, channel, from_d, from_h, from_w) : 0;
        const struct source source = { gFrom + from, is_there, by_channel ? 1 : (int)vStep.s6,
                                       by_channel ? 0 : (int)vPad.s6 };

        store_run(&output, &source, &run);
    }
}
