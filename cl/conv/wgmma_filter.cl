/* cl/conv/wgmma_filter.cl - dW := alpha dy^T x + beta dW, the gradient of a filter, for NVIDIA's sm_90
 *
 * A work-group has a tile, and all pixels (cl/conv/wgmma_filter.h).
 *
 * Parameters, from conv.tune: SUB_M SUB_N WARPGROUPS_M WARPGROUPS_N BLK_K STAGES.  Constants: IMAGE_RANK;
 * VECTORS, 1 where rows of dW, of the channels of a tap, are whole 16-byte vectors, and nothing is added.
 * Method: implicit GEMM, as in cuDNN and CUTLASS.
 */
LARGE_LOCAL(conv_wgmma_filter, LOCAL_BYTES)

/* dW of one tap, as a matrix of filters and channels. */
#if RESIDUAL
#define TAP_RESIDUAL(b) beta, gR + OFFSET(vR, 0, 0, 0, (b).t, (b).r, (b).s), (INDEX)vR.s2, (INDEX)vR.s3
#else
#define TAP_RESIDUAL(b) ZERO, 0, 0, 0
#endif
#if BIAS
#define TAP_BIAS(b)     gBias + OFFSET(vBias, 0, 0, 0, (b).t, (b).r, (b).s), (INDEX)vBias.s2, (INDEX)vBias.s3
#else
#define TAP_BIAS(b)     0, 0, 0
#endif
#define TAP_OUTPUT(b)                                                                       \
    { (int)eW.s2, (int)eW.s3, alpha, gC + OFFSET(vC, 0, 0, 0, (b).t, (b).r, (b).s),         \
      (INDEX)vC.s2, (INDEX)vC.s3, 0, 0, 0, TAP_RESIDUAL(b), TAP_BIAS(b) }

/* eGrid, vFirst, vWindow: the window of x (cl/conv/im2col.h); eW the extents of the filter; vDilation: s4 to
 * s6. */
KERNEL(ITEMS) void
conv_wgmma_filter(GLOBAL const T *gX, VIEW vX, VIEW eX, GLOBAL const T *gY, VIEW vY, VIEW eY, VIEW eGrid,
                  VIEW vFirst, VIEW vWindow, VIEW eW, VIEW vDilation, int tiles, int slices,
                  GLOBAL unsigned INT64 *gMaps, int first_map, int kept, R alpha, CONV_PARAMS)
{
    LARGE_LOCAL_ARRAY(room, LOCAL_BYTES);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(STAGES));

    const int lane = LOCAL_ID() % 32, warp = this_warp();
    const UINT32 stages = warp_uniform(LOCAL_ADDRESS(room));
    const struct window x = window_of(eGrid, vFirst, vWindow);
    GLOBAL unsigned INT64 *const maps = gMaps + first_map * MAP_WORDS;
    const struct pipeline p = pipe_at(barriers, STAGES);
    struct share share;

    filter_share(&share, GROUP_ID(0), tiles, slices, 1);
    wgmma_filter_prepare(maps, kept, room, p, gX, vX, eX, gY, vY, eY, x);
    BARRIER();

    if (warp >= ROLE_WARPS) {
        role_give_registers(MOVE);
        if (warp == ROLE_WARPS && is_elected())
            wgmma_filter_load(p, stages, maps, share, 1, x, eW, vDilation);
    } else {
        const int m = filter_of_tile(share.tile, eW) + wgmma_filter_row(warp) + acc_first_row(warp % 4, lane);
        const int first = block_of_tile(share.tile, 0, eW) + wgmma_filter_column(warp) / 64;
        float d[ACCUMULATORS];
        UINT32 no_bias[1];

        role_take_registers(MOVE);
        wgmma_filter_multiply(d, p, stages, warp, share.count);
        UNROLL for (int j = 0; j < SUB_N / 64; j++)
            if (first + j < filter_column_blocks(eW)) {
                struct column_block b;

                filter_column_block(&b, first + j, eW);

                const struct output c = TAP_OUTPUT(b);

                UNROLL for (int i = 0; i < SUB_M / 64; i++)
                    store_tile(&c, d + i * (SUB_N / 2) + j * 32, no_bias, 32, m + i * 64, m + i * 64 + 8, b.c,
                               lane, 0);
            }
    }
}
