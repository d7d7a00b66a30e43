/* cl/conv/tf32_filter.cl - dW := alpha dy^T x + beta dW, f32 rounded to tf32, for NVIDIA's sm_90
 *
 * A product of (tap, channel), as rows of wgmma, and filters, as its columns, summed over pixels: slices of
 * 32.  TMA in im2col mode brings the pixels of x, once for each column block, shifted by its tap
 * (cl/conv/im2col.h): an M-major operand, which goes through registers (cl/gemm/tf32.h).  TMA rounds both to
 * tf32.
 *
 * dy must be K-major.  Either `pack` copies it before, to a row of all pixels for each filter; or, where its
 * filters are contiguous, it is loaded as it is, and three warps TRANSPOSE it in local memory, in blocks of
 * 32 x 32.  The former takes less of local memory's time, the latter less of the device memory's.
 *
 *                   BLK_M filters
 *                 +-------------+
 *      32 pixels  |     dy      |
 *        +-----+  +-------------+
 *        | x^T |  |             |   4 column blocks of 32 channels
 *        +-----+  +-------------+
 *
 * A work-group has every so many-th pair of slices of a tile (cl/conv/filter_tiles.h), and stores partial
 * sums; conv_filter_sum adds them, always in the same order.
 *
 * Parameters, from conv.tune: BLK_M, STAGES, TRANSPOSE.
 * Method: cl/gemm/tf32.cl, cl/conv/wgmma_filter.cl.
 */
#define CONSUMERS (128 * WARPGROUPS)            /* work-items */
#define BLOCK     (BLK_K * 128)                 /* bytes of a column block */
#define BYTES_A   (BLOCKS_N * BLOCK)
#define MAPS_AT   (STAGES * STAGE)
#define SPARE     3                             /* warps that transpose */

LARGE_LOCAL(conv_tf32_filter, MAPS_AT + 2 * MAP_BYTES)

/* The map of dy: pixels x filters; or of its copy: filters x pixels.  row: elements from row to row. */
DEVICE void rows_map(GLOBAL unsigned INT64 *map, LOCAL UINT32 *room, int lane, GLOBAL const T *y, int filters,
                     int pixels, INDEX row)
{
    struct tensor_map m;

    m.address = (UINT64)y;
    m.type = MAP_TYPE_TF32;
    m.rank = 2;
    m.pixels = 0;
    m.extent[0] = TRANSPOSE ? filters : pixels;
    m.extent[1] = TRANSPOSE ? pixels : filters;
    m.stride[0] = (UINT64)row * T_BYTES;
    m.box[0] = BLK_K;
    m.box[1] = TRANSPOSE ? BLK_K : BLK_M;
    m.step[0] = m.step[1] = 1;
    map_keep(map, room, lane, m);
}

/* The pixels of a slice of dy, of the filters of a tile. */
DEVICE void rows_load(UINT32 to, GLOBAL const unsigned INT64 *map, int k0, int pixel, UINT32 full)
{
    if (TRANSPOSE)
        UNROLL for (int j = 0; j < BLK_M / OPERAND_ROW; j++)
            copy_box_2d(to + j * BLOCK, map, k0 + j * OPERAND_ROW, pixel, full);
    else
        copy_box_2d(to, map, pixel, k0, full);
}

/* A warp's blocks of `count` slices of dy; done: the barriers that consumers wait at, one of a stage. */
DEVICE void rows_transpose(struct pipeline p, UINT32 done, UINT32 stages, int warp, int lane, int count)
{
    for (int i = 0; i < count; i++) {
        consumer_wait(p);
        UNROLL for (int j = 0; j < BLK_M / OPERAND_ROW; j += SPARE)
            if (j + warp < BLK_M / OPERAND_ROW)
                tf32_transpose(stages + p.stage * STAGE + BYTES_A + (j + warp) * BLOCK, lane);
        fence_async_proxy();
        warp_meet();
        if (lane == 0)
            barrier_arrive(done + 8 * p.stage);
        p = pipe_next(p, STAGES);
    }
}

/* eGrid, vFirst, vWindow: the window of x; eW the extents of the filter; vDilation: s4 to s6; vY, of dy
 * or its copy: s2 from row to row, s7 its pixels.  pairs: of a tile. */
KERNEL(CONSUMERS + 128) void
conv_tf32_filter(GLOBAL const T *gX, VIEW vX, VIEW eX, VIEW eGrid, VIEW vFirst, VIEW vWindow, VIEW eW,
                 VIEW vDilation, GLOBAL const T *gY, VIEW vY, int tiles, int pairs, int parts,
                 GLOBAL unsigned INT64 *gMaps, int first_map, int kept, GLOBAL float *gSums)
{
    LARGE_LOCAL_ARRAY(room, MAPS_AT + 2 * MAP_BYTES);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(STAGES) + STAGES * TRANSPOSE);
    LOCAL UINT32 *const described = (LOCAL UINT32 *)(room + MAPS_AT);

    const int me = LOCAL_ID(), lane = me % 32, warp = this_warp(), last = filter_column_blocks(eW) - 1;
    const UINT32 stages = warp_uniform(LOCAL_ADDRESS(room));
    const struct window x = window_of(eGrid, vFirst, vWindow);
    GLOBAL unsigned INT64 *const maps = gMaps + first_map * MAP_WORDS;
    struct pipeline p = pipe_at(barriers, STAGES);
    const UINT32 transposed = p.full + 8 * PIPE_BARRIERS(STAGES);
    struct share share;

    filter_share(&share, GROUP_ID(0), tiles, pairs, parts);
    if (!kept && warp == 0)
        im2col_map(maps, described, lane, MAP_TYPE_TF32, T_BYTES, gX + vX.s0, vX, eX, x, BLK_K);
    else if (!kept && warp == 1)
        rows_map(maps + MAP_WORDS, described + MAP_BYTES / 4, lane, gY + vY.s0, (int)eW.s2, (int)vY.s7,
                 (INDEX)vY.s2);
    else if (me == 64) {
        for (int i = 0; i < STAGES * TRANSPOSE; i++)
            barrier_init(transposed + 8 * i, SPARE);
        pipe_init(p, STAGES, ROLE_WARPS);
    }
    BARRIER();

    const int first = block_of_tile(share.tile, 0, eW), k0 = filter_of_tile(share.tile, eW);

    if (warp >= ROLE_WARPS) {
        role_give_registers(1);
        if (warp == ROLE_WARPS && is_elected()) {
            struct column_block block[BLOCKS_N];

            /* Outside of dW, any block of it: nothing reads those sums. */
            UNROLL for (int j = 0; j < BLOCKS_N; j++)
                filter_column_block(&block[j], first + j < last ? first + j : last, eW);
            map_acquire(maps);
            map_acquire(maps + MAP_WORDS);
            for (int i = 0; i < 2 * share.count; i++) {
                const int slice = 2 * (share.first + i / 2 * parts) + i % 2;
                const struct pixel in = filter_source(x, pixel_of(filter_plain(x), slice * BLK_K));
                const UINT32 to = stages + p.stage * STAGE;

                p = producer_acquire(p);
                producer_expect(p, STAGE);
                UNROLL for (int j = 0; j < BLOCKS_N; j++)
                    im2col_load(to + j * BLOCK, maps, block[j].c, in, block[j].s * (int)vDilation.s6,
                                block[j].r * (int)vDilation.s5, block[j].t * (int)vDilation.s4, pipe_full(p));
                rows_load(to + BYTES_A, maps + MAP_WORDS, k0, slice * BLK_K, pipe_full(p));
                p = pipe_next(p, STAGES);
            }
        } else if (TRANSPOSE && warp > ROLE_WARPS) {
            rows_transpose(p, transposed, stages, warp - ROLE_WARPS - 1, lane, 2 * share.count);
        }
    } else {
        role_take_registers(1);

        LOCAL const unsigned char *const s = room + warp / 4 * (64 / OPERAND_ROW * BLOCK);
        const UINT32 b = operand_descriptor(stages + BYTES_A, BLK_M);
        unsigned int even[BLK_K / 2], odd[BLK_K / 2];
        float d[BLK_M / 2];

        if (TRANSPOSE)                          /* what is transposed has arrived */
            p.full = transposed;
        tf32_issue(d, even, p, s, b, me, 1);
        tf32_multiply(d, even, odd, p, s, b, me, 2 * share.count);
        store_columns(gSums, (INDEX)GROUP_ID(0) * SLOT, BLK_N, d, BLK_M / 2,
                      warp / 4 * 64 + tf32_first_row(me), acc_first_col(lane), lane, BLK_N, BLK_M);
    }
}
