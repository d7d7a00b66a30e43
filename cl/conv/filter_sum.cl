/* cl/conv/filter_sum.cl - dW := alpha (P0 + P1 + ...) + beta dW, from the slots of cl/conv/filter_tiles.h
 *
 * A work-item has four adjacent columns of a tile.  `ways` work-items share the parts of a tile: each adds
 * every ways-th of them, in order, and their sums are then added in order, so that the result is
 * deterministic.
 *
 * eW has the extents of the filter as the tiles have them: a tap's channels may be those of several taps of a
 * row, `pixel` of each, of which dW has `channels`.
 */
#define SUM_ITEMS 256
#define LOADS     8                             /* in flight at a time */
#define R4        VECTOR(R, 4)

KERNEL(SUM_ITEMS) void
conv_filter_sum(VIEW eW, int channels, int pixel, int tiles, int parts, int ways,
                GLOBAL const R *RESTRICT gSums, R alpha, CONV_PARAMS)
{
    LOCAL_ARRAY(R, sSums, SUM_ITEMS * 4);

    const int each = SUM_ITEMS / ways, me = LOCAL_ID(), way = me / each;
    const int vector = GROUP_ID(0) * each + me - way * each;
    const int tile = vector / (SLOT / 4), in_tile = (vector - tile * (SLOT / 4)) * 4;
    const INDEX step = (INDEX)tiles * SLOT;
    GLOBAL const R *const p = gSums + (INDEX)tile * SLOT + in_tile;
    R4 all = (R4)(ZERO);
    R sum[4];

    for (int i = way; i < parts; i += LOADS * ways) {
        R4 r[LOADS];

        UNROLL for (int j = 0; j < LOADS; j++)
            r[j] = VLOAD_ALIGNED(R4, p + (i + j * ways < parts ? i + j * ways : i) * step);
        UNROLL for (int j = 0; j < LOADS; j++)
            all = i + j * ways < parts ? all + r[j] : all;
    }
    VSTORE(4, sSums + me * 4, all);
    BARRIER();
    if (way > 0)
        return;
    for (int i = 1; i < ways; i++)
        all = all + VLOAD(4, sSums + (i * each + me) * 4);
    VSTORE(4, sum, all);

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
