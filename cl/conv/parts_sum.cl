/* cl/conv/parts_sum.cl - dW := alpha (P0 + P1 + ...) + beta dW, of a depthwise filter
 *
 * vParts: s0 where the parts begin; s1 how many; s2 channels.  A part has all taps of all channels.  A
 * work-group has SUM_ELEMENTS of them; SUM_WAYS work-items share the parts of one: each adds every
 * SUM_WAYS-th of them, in order, and their sums are then added in order, so that the result is deterministic.
 */
#define SUM_ITEMS    256
#define SUM_ELEMENTS 16
#define SUM_WAYS     (SUM_ITEMS / SUM_ELEMENTS)
#define SUM_LOADS    8                          /* in flight at a time */

KERNEL(SUM_ITEMS) void
conv_parts_sum(GLOBAL const R *RESTRICT gParts, VIEW vParts, R alpha, CONV_PARAMS)
{
    LOCAL_ARRAY(R, sParts, SUM_ITEMS);

    const struct output output = CONV_OUTPUT;
    const int me = LOCAL_ID(), in = me % SUM_ELEMENTS, parts = (int)vParts.s1;
    const INDEX e = GROUP_ID(0) * SUM_ELEMENTS + in, elements = (INDEX)vParts.s2 * (TAPS * TAPS);
    R all = ZERO;

    for (int i = me / SUM_ELEMENTS; i < parts && e < elements; i += SUM_WAYS * SUM_LOADS) {
        GLOBAL const R *const from = gParts + (INDEX)vParts.s0 + e;
        R v[SUM_LOADS];

        UNROLL for (int j = 0; j < SUM_LOADS; j++)
            v[j] = from[(i + j * SUM_WAYS < parts ? i + j * SUM_WAYS : i) * elements];
        UNROLL for (int j = 0; j < SUM_LOADS; j++)
            all = i + j * SUM_WAYS < parts ? all + v[j] : all;
    }
    sParts[me] = all;
    BARRIER();
    if (me >= SUM_ELEMENTS || e >= elements)
        return;
    for (int i = 1; i < SUM_WAYS; i++)
        all = all + sParts[i * SUM_ELEMENTS + in];

    const INDEX c = e / (TAPS * TAPS), r = e / TAPS % TAPS, s = e % TAPS;

    STORE_C(gC, OFFSET(vC, 0, c, 0, 0, r, s),
            epilogue_at(&output, OFFSET(vR, 0, c, 0, 0, r, s), OFFSET(vBias, 0, c, 0, 0, r, s), alpha * all));
}
