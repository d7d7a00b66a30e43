/* cl/conv/columns_sum.cl - dW := alpha (P0 + P1 + ...) + beta R + bias, from parts that have all filters
 *
 * A filter has so many columns: of each tap, in a row, its channels and what makes them whole vectors.  A
 * work-item has four adjacent columns of a filter, which are of one tap; `ways` of them share its parts
 * (cl/conv/parts.h).
 */

/* vectors: of all filters; columns: elements of a filter there */
KERNEL(SUM_ITEMS) void
conv_columns_sum(VIEW eTaps, int filters, int columns, int vectors, int parts, int ways,
                 GLOBAL const R *RESTRICT gSums, R alpha, CONV_PARAMS)
{
    LOCAL_ARRAY(R, sSums, SUM_ITEMS * 4);

    const int each = SUM_ITEMS / ways, in = LOCAL_ID() % each, me = GROUP_ID(0) * each + in;
    const struct output output = CONV_OUTPUT;
    R sum[4];

    VSTORE(4, sum, sum_of_parts(sSums, gSums + (me < vectors ? me : 0) * (INDEX)4, (INDEX)vectors * 4, parts,
                                ways));
    if (LOCAL_ID() >= each || me >= vectors)
        return;

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
