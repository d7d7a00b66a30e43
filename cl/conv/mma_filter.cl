/* cl/conv/mma_filter.cl - the gradient of a filter in 16-bit types, by the mma.sync of NVIDIA's sm_80 and up
 *
 * A product of filters x (tap, channel), summed over pixels, in groups.  Both operands lie in local memory
 * pixel by pixel, as in device memory.  A work-item copies the same filters, and the same channels of the
 * same tap, of some of the pixels of each slice (cl/conv/gather.h).
 *
 *                        BLK_N taps, channels
 *                           +---+---+
 *             BLK_K pixels  |x at   |
 *                           | a tap |
 *                           +---+---+
 *                   +----+  +---+---+  WARP_M
 *            BLK_M  |dy^T|  | w | a |
 *           filters +----+  +---+---+
 *                   |    |  | r | p |
 *                   +----+  +---+---+
 *
 * Pixels are cut into parts of `span` slices.  The partial sums of a part go to the workspace in f32,
 * [part][group][filter][tap, channel], with channels of a tap rounded up to whole
 * vectors; conv_columns_sum adds them, always in the same order.
 *
 * Parameters, from conv.tune: BLK_M BLK_N BLK_K WARP_M WARP_N STAGES MMA_M MMA_K, as of gemm_mma.
 * Constants: IMAGE_RANK.
 */
#define RASTER 8

LARGE_LOCAL(conv_mma_filter, STAGES * STAGE)

KERNEL_ROOM(ITEMS, 2) void
conv_mma_filter(GLOBAL const T *RESTRICT gX, VIEW vX, GLOBAL const T *RESTRICT gY, VIEW vY, VIEW eTaps,
                VIEW eIn, VIEW eOut, VIEW vStep, VIEW vPad, VIEW vMeet, int span,
                GLOBAL float *RESTRICT gSums)
{
    ROOM_FOR(2);
    LARGE_LOCAL_ARRAY(room, STAGES * STAGE);

    const int groups = (int)eTaps.s0, channels = (int)eTaps.s3, M = (int)eOut.s3;
    struct taps taps_t, taps_r, taps_s;
    struct gather_grid grid;
    struct gather_sum sum;

    gather_grid(&grid, 0, eOut, vStep);
    FIND_TAPS(&taps_t, &taps_r, &taps_s, 0, 0, 0);
    gather_sum(&sum, &taps_t, &taps_r, &taps_s, (channels + VEC - 1) / VEC * VEC);

    const int N = gather_length(&sum), pixels = gather_pixels(&grid, eOut);
    const struct tile t = tile_of_split(schedule_of(M, N, BLK_M, BLK_N, RASTER), GROUP_ID(0), groups);
    const int left = (pixels + BLK_K - 1) / BLK_K - t.part * span, slices = left < span ? left : span;
    const int m1 = (int)(ITEM / 32 / WARPS_N) * WARP_M, n1 = (int)(ITEM / 32 % WARPS_N) * WARP_N;
    const int m = t.m0 + (int)(ITEM % VECS_A) * VEC, bytes_a = bytes_left(M - m);
    GLOBAL const T *const x = gX + (INDEX)vX.s0 + t.batch * (INDEX)vX.s1;
    GLOBAL const T *const y = gY + (INDEX)vY.s0 + t.batch * (INDEX)vY.s1;
    struct gather_pixel of_a, of_b, by_a, by_b;         /* the next pixel to copy; from copy to copy */
    struct gather_k k;
    struct gather_step step;
    R d[BLOCKS_M][BLOCKS_N][2];

    gather_k(&k, &sum, t.n0 + (int)(ITEM % VECS_B) * VEC);
    gather_step(&step, &k, &sum, vX);
    gather_pixel(&of_a, t.part * span * BLK_K + (int)(ITEM / VECS_A), &grid);
    gather_pixel(&of_b, t.part * span * BLK_K + (int)(ITEM / VECS_B), &grid);
    gather_pixel(&by_a, APART_A, &grid);
    gather_pixel(&by_b, APART_B, &grid);

    const int bytes_b = gather_is_there(&k, &sum) ? bytes_left(channels - k.channel) : 0;

#define NEXT_SLICE() ((void)0)
#define COPY_A(i)                                                                                       \
    do {                                                                                                \
        copy_vector(COPY_TO_A(i), y, m + gather_output(&of_a, &grid, vY, vStep),                        \
                    of_a.image < (INDEX)eOut.s2 ? bytes_a : 0);                                         \
        gather_pixel_add(&of_a, &by_a, &grid);                                                          \
    } while (0)
#define COPY_B(i)                                                                                       \
    do {                                                                                                \
        struct gather_row row_;                                                                         \
                                                                                                        \
        gather_row(&row_, &of_b, &sum, vX, vStep, of_b.image < (INDEX)eOut.s2);                         \
        copy_vector(COPY_TO_B(i), x, row_.at + step.at,                                                 \
                    gather_is_inside(&row_, &step, eIn) ? bytes_b : 0);                                 \
        gather_pixel_add(&of_b, &by_b, &grid);                                                          \
    } while (0)
    MULTIPLY_SLICES(d, LOCAL_ADDRESS(room), m1, n1, slices);

    const int row = t.m0 + m1 + (int)(ITEM % 32 / 4), column = t.n0 + n1 + (int)(ITEM % 4) * 2;
    GLOBAL float *const to = gSums + (INDEX)(t.part * groups + t.batch) * M * N;

    UNROLL for (int i = 0; i < BLOCKS_M; i++)
    UNROLL for (int j = 0; j < BLOCKS_N; j++)
        if (row + 8 * i < M && column + 8 * j < N)      /* N is even */
            STORE_F32_PAIR(to + (row + 8 * i) * (INDEX)N + column + 8 * j, d[i][j][0], d[i][j][1]);
}
