/* cl/conv/wgmma_filter_splitk.cl - conv_wgmma_filter with pixels in parts, for a dW of few tiles
 *
 * Each work-group stores the partial sums of a tile and a part of the pixels, in f32; conv_filter_sum adds
 * them, always in the same order.
 *
 * Parameters and method: cl/conv/wgmma_filter.cl.
 */
LARGE_LOCAL(conv_wgmma_filter_splitk, LOCAL_BYTES)

KERNEL(ITEMS) void
conv_wgmma_filter_splitk(GLOBAL const T *gX, VIEW vX, VIEW eX, GLOBAL const T *gY, VIEW vY, VIEW eY,
                         VIEW eGrid, VIEW vFirst, VIEW vWindow, VIEW eW, VIEW vDilation, int tiles,
                         int slices, int parts, GLOBAL unsigned INT64 *gMaps, int first_map, int kept,
                         GLOBAL float *RESTRICT gSums)
{
    LARGE_LOCAL_ARRAY(room, LOCAL_BYTES);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(STAGES));

    const int lane = LOCAL_ID() % 32, warp = this_warp();
    const UINT32 stages = warp_uniform(LOCAL_ADDRESS(room));
    const struct window x = window_of(eGrid, vFirst, vWindow);
    GLOBAL unsigned INT64 *const maps = gMaps + first_map * MAP_WORDS;
    const struct pipeline p = pipe_at(barriers, STAGES);
    struct share share;

    filter_share(&share, GROUP_ID(0), tiles, slices, parts);
    wgmma_filter_prepare(maps, kept, room, p, gX, vX, eX, gY, vY, eY, x);
    BARRIER();

    if (warp >= ROLE_WARPS) {
        role_give_registers(MOVE);
        if (warp == ROLE_WARPS && is_elected())
            wgmma_filter_load(p, stages, maps, share, parts, x, eW, vDilation);
    } else {
        const int m = wgmma_filter_row(warp) + acc_first_row(warp % 4, lane);
        const int n = wgmma_filter_column(warp) + acc_first_col(lane);
        float d[ACCUMULATORS];

        role_take_registers(MOVE);
        wgmma_filter_multiply(d, p, stages, warp, share.count);
        UNROLL for (int j = 0; j < SUB_M / 64; j++)
            store_pairs(gSums, (INDEX)GROUP_ID(0) * SLOT, BLK_N, 1, d + j * (SUB_N / 2), SUB_N / 2,
                        m + j * 64, m + j * 64 + 8, n, BLK_M, BLK_N);
    }
}
