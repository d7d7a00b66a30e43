/* cl/conv/mma_sum.cl - dW := alpha (P0 + P1 + ...) + beta R + bias, from the partial sums of mma_filter.cl
 *
 * A work-item has four adjacent columns of a filter, which are of one tap, and adds its parts in order.
 */
#define SUM_ITEMS 256
#define SUM_LOADS 8                             /* in flight at a time */
#define R4        VECTOR(R, 4)

/* vectors: of all filters; columns: elements of a filter there */
KERNEL(SUM_ITEMS) void
conv_mma_sum(VIEW eTaps, int filters, int columns, int vectors, int parts, GLOBAL const R *RESTRICT gSums,
             int start, R alpha, CONV_PARAMS)
{
    const int me = GROUP_ID(0) * SUM_ITEMS + LOCAL_ID();
    const INDEX step = (INDEX)vectors * 4;
    GLOBAL const R *const p = gSums + start + (INDEX)me * 4;
    const struct output output = CONV_OUTPUT;
    R4 all = (R4)(ZERO);
    R sum[4];

    if (me >= vectors)
        return;
    for (int i = 0; i < parts; i += SUM_LOADS) {
        R4 r[SUM_LOADS];

        UNROLL for (int j = 0; j < SUM_LOADS; j++)
            r[j] = VLOAD_ALIGNED(R4, p + (i + j < parts ? i + j : i) * step);
        UNROLL for (int j = 0; j < SUM_LOADS; j++)
            all = i + j < parts ? all + r[j] : all;
    }
    VSTORE(4, sum, all);

    const int channels = (int)eTaps.s3, taps = (int)(eTaps.s4 * eTaps.s5 * eTaps.s6);
    const int row = me / (columns / 4), group = row / filters, filter = row - group * filters;
    const int column = (me - row * (columns / 4)) * 4, of_tap = columns / taps;
    INDEX t = column / of_tap;
    const INDEX c = column - t * of_tap, s = divmod(&t, (INDEX)eTaps.s6), r = divmod(&t, (INDEX)eTaps.s5);

    UNROLL for (int i = 0; i < 4; i++)
        if (c + i < channels)
            STORE_C(gC, OFFSET(vC, group, filter, c + i, t, r, s),
                    epilogue_at(&output, OFFSET(vR, group, filter, c + i, t, r, s),
                                OFFSET(vBias, group, filter, c + i, t, r, s), alpha * sum[i]));
}
