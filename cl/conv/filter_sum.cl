/* cl/conv/filter_sum.cl - dW := alpha (P0 + P1 + ...) + beta dW, from the slots of cl/conv/filter_tiles.h
 *
 * A work-item has four adjacent columns of a tile; `ways` of them share its parts (cl/conv/parts.h).
 *
 * eW has the extents of the filter as the tiles have them: a tap's channels may be those of several taps of a
 * row, `pixel` of each, of which dW has `channels`.
 */
KERNEL(SUM_ITEMS) void
conv_filter_sum(VIEW eW, int channels, int pixel, int tiles, int parts, int ways,
                GLOBAL const R *RESTRICT gSums, R alpha, CONV_PARAMS)
{
    LOCAL_ARRAY(R, sSums, SUM_ITEMS * 4);

    const int each = SUM_ITEMS / ways, me = LOCAL_ID(), vector = GROUP_ID(0) * each + me % each;
    const int tile = vector / (SLOT / 4), in_tile = (vector - tile * (SLOT / 4)) * 4;
    const INDEX step = (INDEX)tiles * SLOT;
    GLOBAL const R *const p = gSums + (INDEX)tile * SLOT + in_tile;
    R sum[4];

    VSTORE(4, sum, sum_of_parts(sSums, p, step, parts, ways));
    if (me >= each)
        return;

    const int m = in_tile / BLK_N, k = filter_of_tile(tile, eW) + m, in_row = in_tile - m * BLK_N;
    const struct output c = CONV_OUTPUT;
    struct column_block b;

    if (!filter_column(&b, tile, in_row, eW) || k >= (int)eW.s2)
        return;
    b.s += quotient(b.c, pixel);
    b.c -= quotient(b.c, pixel) * pixel;

    const int left = channels - b.c;
    GLOBAL TC *const to = gC + OFFSET(vC, 0, k, b.c, b.t, b.r, b.s);

    UNROLL for (int i = 0; i < 4; i++)
        if (i < left)
            sum[i] = epilogue_at(&c, OFFSET(vR, 0, k, b.c + i, b.t, b.r, b.s),
                                 OFFSET(vBias, 0, k, b.c + i, b.t, b.r, b.s), alpha * sum[i]);
    if (left >= 4 && vC.s3 == 1 && (UINT64)to % (4 * C_BYTES) == 0) {
        OF(STORE_ALIGNED, TYPE_C)(4, to, VLOAD(4, sum));
        return;
    }
    UNROLL for (int i = 0; i < 4; i++)
        if (i < left)
            STORE_C(to, i * (INDEX)vC.s3, sum[i]);
}
