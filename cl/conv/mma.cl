/* cl/conv/mma.cl - y := act(alpha conv(x, w) + beta R + bias) and its gradient for x, in 16-bit types, by
 * the mma.sync of NVIDIA's sm_80 and up
 *
 * An implicit product of pixels and filters (cl/conv/gather.h), in groups.  Slices of both go to local memory
 * by cp.async, STAGES - 1 ahead, a vector of 8 channels of a tap at a time; what lies in the padding, and
 * behind the last channel, are zeros that the copies write.  Each warp multiplies WARP_M pixels by WARP_N
 * channels of the output (cl/tile/slices.h).
 *
 *                               BLK_N channels of the output
 *                              +---+---+
 *      BLK_K of taps, channels |filter |
 *                              +---+---+
 *                      +----+  +---+---+  WARP_M
 *                      |    |  | w | a |
 *              BLK_M   +----+  +---+---+
 *             pixels   |    |  | r | p |
 *                      +----+  +---+---+
 *
 * The filter is K-major in forward, and N-major in backward data, which takes its pixels in phases: nothing
 * is multiplied by zeros of a stride.  All phases have the tiles of the largest; a tile without pixels ends
 * at once.  Tiles of all groups are beside each other, since pixels have the channels of all groups adjacent.
 *
 * Where tiles are few, their sums are split among work-groups and sets of warps (SPLITK, cl/tile/split.h).
 *
 * Parameters, from conv.tune: BLK_M BLK_N BLK_K WARP_M WARP_N STAGES MMA_M MMA_K, as of gemm_mma, and
 * PARTS_K.  Constants: DIRECTION, IMAGE_RANK, SPLITK.
 */
#define RASTER 8                        /* lib/conv/mma.c has it, too */

/* Of the output's group, as in OUTPUT() of cl/tile/epilogue.h. */
#if RESIDUAL
#define GROUP_RESIDUAL beta, gR + (INDEX)vR.s0 + group * (INDEX)vR.s1, 0, (INDEX)vR.s3
#else
#define GROUP_RESIDUAL ZERO, 0, 0, 0
#endif
#if BIAS
#define GROUP_BIAS gBias + (INDEX)vBias.s0 + group * (INDEX)vBias.s1, 0, (INDEX)vBias.s3
#else
#define GROUP_BIAS 0, 0, 0
#endif

LARGE_LOCAL(conv_mma, STAGES * STAGE)

/* A row of the tile: what its pixel reads, and offsets at which its output is written.  Rows past the last
 * have the output of the first pixel. */
struct place { struct gather_row source; INDEX c, residual, bias; };

/* The rows of a tile from m0 on, of M. */
DEVICE void find_places(LOCAL struct place *places, int m0, int M, const struct gather_grid *grid,
                        const struct gather_sum *sum, VIEW in, VIEW out, VIEW residual, VIEW bias, VIEW step)
{
    for (int row = (int)ITEM; row < BLK_M; row += ITEMS) {
        struct gather_pixel pixel;
        struct gather_row source;

        gather_pixel(&pixel, m0 + row < M ? m0 + row : 0, grid);
        gather_row(&source, &pixel, sum, in, step, m0 + row < M);
        places[row].source   = source;
        places[row].c        = gather_output(&pixel, grid, out, step);
        places[row].residual = gather_output(&pixel, grid, residual, step);
        places[row].bias     = gather_output(&pixel, grid, bias, step);
    }
}

/* The output that begins at a row's pixel. */
DEVICE void output_at(struct output *c, const struct output *o, LOCAL const struct place *place)
{
    *c = *o;
    c->c += place->c;
    if (RESIDUAL)
        c->residual += place->residual;
    if (BIAS)
        c->bias += place->bias;
}

/* Stores rows of a warp's tile, which begin at row m of the work-group's, and at column n; rows: of the
 * latter.  What is added to rows TOGETHER is read before any of them is written.  kept: of which pairs. */
DEVICE void store_pixels(const struct output *o, LOCAL const struct place *places, int m, int n, int rows,
                         UINT32 kept, R d[BLOCKS_M][BLOCKS_N][2])
{
    enum { TOGETHER = BLOCKS_M * BLOCKS_N > 32 || OWN_M % 2 ? 1 : 2 };  /* as registers allow */
    const int last = o->N - 1;
    struct output c;

    m += (int)(ITEM % 32 / 4);
    n += (int)(ITEM % 4) * 2;
    UNROLL for (int i0 = 0; i0 < OWN_M; i0 += TOGETHER) {
        if (m + 8 * i0 >= rows)
            break;
        UNROLL for (int i = i0; i < i0 + TOGETHER; i++) {
            output_at(&c, o, &places[m + 8 * i]);
            UNROLL for (int j = 0; j < BLOCKS_N; j++)
            UNROLL for (int e = 0; e < 2; e++) {
                const int column = n + 8 * j + e;

                d[i][j][e] = epilogue(&c, 0, column < last ? column : last, d[i][j][e]);
            }
        }
        UNROLL for (int i = i0; i < i0 + TOGETHER; i++) {
            output_at(&c, o, &places[m + 8 * i]);
            if (m + 8 * i < rows)
                store_fragment_row(&c, 0, n, 0, c.col == 1 && (UINT64)(c.c + n) % (2 * C_BYTES) == 0,
                                   KEPT_ROW(kept, i), d[i]);
        }
    }
}

KERNEL_ROOM(ITEMS, 2) void
conv_mma(GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const T *RESTRICT gB, VIEW vB, CONV_PARAMS,
         VIEW eTaps, VIEW eIn, VIEW eOut, VIEW vStep, VIEW vPad, VIEW vMeet, R alpha, int pixels,
         VIEW vTiles SPLIT_PARAMS)
{
    ROOM_FOR(2);
    LARGE_LOCAL_ARRAY(room, STAGES * STAGE);
    LOCAL_ARRAY(struct place, places, BLK_M);

    const int channels = (int)eTaps.s3, N = (int)eOut.s3, across = (N + BLK_N - 1) / BLK_N * BLK_N;
    const struct schedule schedule = schedule_by(pixels, (int)eTaps.s0 * across, BLK_M, BLK_N, RASTER,
                                                 vTiles);
    const struct tile tile = tile_at(schedule, GROUP_ID(0));
    const int group = quotient(tile.n0, across), m0 = tile.m0, n0 = tile.n0 - group * across;
    struct taps taps_t, taps_r, taps_s;
    struct gather_grid grid;
    struct gather_sum sum;

    gather_grid(&grid, tile.batch, eOut, vStep);
    if (m0 >= gather_pixels(&grid, eOut))
        return;
    CONV_TAPS(&taps_t, s4, s1, (int)grid.phase_d);
    CONV_TAPS(&taps_r, s5, s2, (int)grid.phase_h);
    CONV_TAPS(&taps_s, s6, s3, (int)grid.phase_w);
    gather_sum(&sum, &taps_t, &taps_r, &taps_s, (channels + VEC - 1) / VEC * VEC);
    find_places(places, m0, gather_pixels(&grid, eOut), &grid, &sum, vB, vC, vR, vBias, vStep);
    BARRIER();

    GLOBAL const T *const source = gB + (INDEX)vB.s0 + group * (INDEX)vB.s1;
    GLOBAL const T *const filter = gA + (INDEX)vA.s0 + group * (INDEX)vA.s1;
    const unsigned int warp = (PARTS_K > 1 ? ITEM % SET_ITEMS : ITEM) / 32;
    const int m1 = (int)(warp / WARPS_N) * WARP_M, n1 = (int)(warp % WARPS_N) * WARP_N;
    const int first = SPLIT_FIRST, slices = SPLIT_SLICES((gather_length(&sum) + BLK_K - 1) / BLK_K);
    const int row_b = (int)(ITEM / VECS_B), vec_b = (int)(ITEM % VECS_B) * VEC;
    struct gather_row rows[COPIES_A];
    struct gather_k k, k_b;             /* of the work-item's pixels; of its next row of an N-major filter */
    struct gather_step step_k;
    INDEX filter_at = 0;
    int bytes_k = 0, left = slices;
    R d[BLOCKS_M][BLOCKS_N][2];

    gather_k(&k, &sum, first * BLK_K + (int)(ITEM % VECS_A) * VEC);
    gather_k(&k_b, &sum, first * BLK_K + row_b);
    UNROLL for (int i = 0; i < COPIES_A; i++)
        rows[i] = places[ITEM / VECS_A + i * APART_A].source;

    /* Done once for all copies of a slice.  A slice behind those of a split is another's. */
#define IS_THERE(k) (gather_is_there(k, &sum) && (!SPLITK || left >= 0))
#define NEXT_SLICE()                                                                                    \
    do {                                                                                                \
        left--;                                                                                         \
        gather_step(&step_k, &k, &sum, vB);                                                             \
        bytes_k = IS_THERE(&k) ? bytes_left(channels - k.channel) : 0;                                  \
        if (!MN_MAJOR_B)                                                                                \
            filter_at = gather_filter(&k, &sum, vA);                                                    \
        gather_advance(&k, &sum, BLK_K);                                                                \
    } while (0)
#define COPY_A(i)                                                                                       \
    copy_vector(COPY_TO_A(i), source, rows[i].at + step_k.at,                                           \
                gather_is_inside(&rows[i], &step_k, eIn) ? bytes_k : 0)
#define COPY_B(i)                                                                                       \
    do {                                                                                                \
        const int n_ = n0 + row_b + (i) * APART_B;                                                      \
                                                                                                        \
        if (!MN_MAJOR_B) {                                                                              \
            copy_vector(COPY_TO_B(i), filter, n_ * (INDEX)vA.s2 + filter_at, n_ < N ? bytes_k : 0);     \
        } else {                                                                                        \
            copy_vector(COPY_TO_B(i), filter, n0 + vec_b + gather_filter(&k_b, &sum, vA),               \
                        IS_THERE(&k_b) && k_b.channel < channels                                        \
                        ? bytes_left(N - n0 - vec_b) : 0);                                              \
            gather_advance(&k_b, &sum, APART_B);                                                        \
        }                                                                                               \
    } while (0)
    MULTIPLY_SLICES(d, LOCAL_ADDRESS(room), m1, n1, slices);

    const struct output c = { pixels, N, alpha, gC + (INDEX)vC.s0 + group * (INDEX)vC.s1, 0, (INDEX)vC.s3, 0,
                              0, 0, GROUP_RESIDUAL, GROUP_BIAS };

    if (PARTS_K > 1)
        add_sets((LOCAL R *)room, d);

    const UINT32 kept = ADD_SPLITS(d);

    if (kept)
        store_pixels(&c, places, m1 + OWN_ROW, n0 + n1, gather_pixels(&grid, eOut) - m0, kept, d);
}
