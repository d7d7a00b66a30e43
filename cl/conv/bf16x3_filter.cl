/* cl/conv/bf16x3_filter.cl - dW := alpha dy^T x + beta dW, f32 by tensor cores for bf16, for NVIDIA's sm_90
 *
 * A product of (tap, channel), as rows of wgmma, and filters, as its columns, summed over pixels: slices of
 * 32.  TMA in im2col mode brings the pixels of x as they are, f32, once for each column block, shifted by its
 * tap (cl/conv/im2col.h); their three bf16 parts are made on the way to the tensor cores, and multiplied by
 * those of dy, which `split` made before (cl/gemm/bf16x3_rows.h).
 *
 *                   BLK_M filters:
 *                   dy, in parts
 *                 +-------------+
 *      32 pixels  |             |
 *        +-----+  +-------------+
 *        | x^T |  |             |   4 column blocks of 32 channels
 *        +-----+  +-------------+
 *
 * A work-group has every so many-th pair of slices of a tile (cl/conv/filter_tiles.h), and stores partial
 * sums; conv_filter_sum adds them, always in the same order.
 *
 * Parameters, from conv.tune: BLK_M, STAGES.
 * Method: cl/gemm/bf16x3_rows.cl, cl/conv/wgmma_filter.cl.
 */
#define CONSUMERS  (128 * WARPGROUPS)           /* work-items */
#define SPLIT_SPAN 16                           /* of pixels, of a work-group that splits */
#define BLOCK      (BLK_K * 128)                /* bytes of a column block */
#define PAIR       (2 * BLK_K)                  /* pixels */

LARGE_LOCAL(conv_bf16x3_filter, STAGES * STAGE)

/* The parts of dy: rows are filters. */
KERNEL(256) void
split(int rows, int K, int per, VIEW e, GLOBAL const T *RESTRICT g, VIEW v,
      GLOBAL uint4 *RESTRICT parts, VIEW p)
{
    bf16x3_split(GROUP_ID(0), SPLIT_SPAN, rows, K, 2 * BLK_K, per, e, g, v, parts, p);
}

/* eGrid, vFirst, vWindow: the window of x; eW the extents of the filter; vDilation: s4 to s6; vY: also s1
 * where the parts of dy begin, s7 its pixels.  pairs: of a tile. */
KERNEL(CONSUMERS + 128) void
conv_bf16x3_filter(GLOBAL const T *gX, VIEW vX, VIEW eX, VIEW eGrid, VIEW vFirst, VIEW vWindow, VIEW eW,
                   VIEW vDilation, GLOBAL const T *gY, VIEW vY, GLOBAL const uint4 *parts_y, int tiles,
                   int pairs, int parts, GLOBAL unsigned INT64 *gMaps, int first_map, int kept,
                   GLOBAL float *gSums)
{
    LARGE_LOCAL_ARRAY(sAB, STAGES * STAGE);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(STAGES));

    const int me = LOCAL_ID(), warp = this_warp(), last = filter_column_blocks(eW) - 1;
    const UINT32 stages = warp_uniform(LOCAL_ADDRESS(sAB));
    const struct window x = window_of(eGrid, vFirst, vWindow);
    GLOBAL unsigned INT64 *const map = gMaps + first_map * (MAP_BYTES / 8);
    struct pipeline p = pipe_at(barriers, STAGES);
    struct share share;

    filter_share(&share, GROUP_ID(0), tiles, pairs, parts);
    if (!kept && warp == 0)
        im2col_map(map, (LOCAL UINT32 *)sAB, me, MAP_TYPE_F32, 4, gX + vX.s0, vX, eX, x, BLK_K);
    else if (me == 32)
        pipe_init(p, STAGES, ROLE_WARPS);
    BARRIER();

    const int first = block_of_tile(share.tile, 0, eW), k0 = filter_of_tile(share.tile, eW);

    if (warp >= ROLE_WARPS) {
        role_give_registers(MOVES);
        if (warp == ROLE_WARPS && is_elected()) {
            GLOBAL const uint4 *const a = parts_y + vY.s1 + (INT64)(k0 / BLK_M) * pairs * (2 * BYTES_A / 16);
            struct column_block block[BLOCKS_N];

            /* Outside of dW, any block of it: nothing reads those sums. */
            UNROLL for (int j = 0; j < BLOCKS_N; j++)
                filter_column_block(&block[j], first + j < last ? first + j : last, eW);
            map_acquire(map);
            for (int i = 0; i < 2 * share.count; i++) {
                const int slice = 2 * (share.first + i / 2 * parts) + i % 2;
                const struct pixel in = filter_source(x, pixel_of(filter_plain(x), slice * BLK_K));
                const UINT32 to = stages + p.stage * STAGE;

                p = producer_acquire(p);
                producer_expect(p, STAGE);
                UNROLL for (int j = 0; j < BLOCKS_N; j++)
                    im2col_load(to + j * BLOCK, map, block[j].c, in, block[j].s * (int)vDilation.s6,
                                block[j].r * (int)vDilation.s5, block[j].t * (int)vDilation.s4, pipe_full(p));
                copy_bytes(to + BYTES_B, a + (INT64)slice * (BYTES_A / 16), BYTES_A, pipe_full(p));
                p = pipe_next(p, STAGES);
            }
        }
    } else {
        role_take_registers(MOVES);

        const int n = row_of_b(me), m = acc_first_col(me % 32);
        UINT32 even[PARTS_OF_B], odd[PARTS_OF_B];
        float d[ACCUMULATORS], sum[ACCUMULATORS], copy[ACCUMULATORS];

        UNROLL for (int i = 0; i < ACCUMULATORS; i++)
            d[i] = sum[i] = 0.0f;
        load_parts(even, p, sAB, me);
        for (int i = 0; i < share.count; i++) {
            const struct pipeline other = pipe_next(p, STAGES);
            const int ends = i + 1 == share.count;      /* then `other` is read again */

            multiply(sum, d, p, even, other, odd, stages, sAB, me);
            p = pipe_next(other, STAGES);
            multiply(sum, d, other, odd, ends ? other : p, even, stages, sAB, me);
        }
        if (bf16x3_all_finite(sum, ACCUMULATORS)) {
            UNROLL for (int i = 0; i < ACCUMULATORS; i++)
                sum[i] *= BF16X3_UNSCALE;
        } else {
            UNROLL for (int i = 0; i < ACCUMULATORS; i++)
                copy[i] = sum[i];               /* where a loop can index them: what follows is long */
            NO_UNROLL for (int i = 0; i < ACCUMULATORS; i++) {
                const int k = k0 + m + ACC_COL(i), in_tile = n + ACC_BELOW(i);
                struct column_block b;

                if (!filter_column(&b, share.tile, in_tile, eW) || k >= (int)eW.s2 ||
                    ABS(copy[i]) <= BF16X3_LARGEST) {
                    copy[i] *= BF16X3_UNSCALE;
                    continue;
                }
                copy[i] = ZERO;
                for (int j = share.first; j < pairs; j += parts) {
                    const int end = (j + 1) * PAIR < (int)vY.s7 ? (j + 1) * PAIR : (int)vY.s7;

                    copy[i] = filter_pixels(copy[i], j * PAIR, end, k, b, x, vDilation, gX, vX, eX, gY, vY);
                }
            }
            UNROLL for (int i = 0; i < ACCUMULATORS; i++)
                sum[i] = copy[i];
        }
        store_pairs_across(gSums, (INDEX)GROUP_ID(0) * SLOT, BLK_N, 1, sum, ACCUMULATORS, m, n, BLK_M,
                           BLK_N);
    }
}
