/* matrix.cl - convolution and backward data, on the matrix engines of AMD's and Intel's GPUs
 *
 *     y[pixel][filter]   := act(alpha sum over taps and channels of x[...][channel] w[filter][tap][channel]
 *                               + beta residual + bias)
 *     dx[pixel][channel] := likewise, summed over taps and filters: dy[...][filter] w[filter][tap][channel]
 *
 * It is gemm_matrix (cl/gemm/matrix.cl), whose rows of A are gathered: a row is a pixel of the output, and
 * its elements are what the taps meet there (gather.h).  Backward data takes the pixels of one phase at a
 * time, so that nothing is multiplied by zeros of a stride.
 *
 *                     BLK_N channels     a slice is BLK_K elements of the sum: vectors of 8 channels, each
 *                  +-----------+         of one tap; where channels are few, of several taps
 *            BLK_K |     B     |
 *                  +-----------+         a wave computes WAVE_M x WAVE_N of the tile, in blocks of
 *         +-----+  +-----+-----+         MATRIX_M x MATRIX_N, the size of an instruction
 *         |     |  | wave| wave|
 *   BLK_M |  A  |  +-----+-----+         slices go from device memory to registers to local memory, one
 *  pixels |     |  | wave| wave|         slice ahead of the one that is multiplied; there are two of them
 *         +-----+  +-----+-----+         there, so that a slice needs one barrier
 *
 * Local memory holds the tile's pixels, too: their sources where the second slice will be, until each
 * work-item has read its own; and after the last product, the offsets of their outputs.
 *
 * Dimensions of the grid: the tiles of the largest phase, phases, groups.
 *
 * Parameters, from conv.tune: BLK_M BLK_N BLK_K WAVE_M WAVE_N, ENGINE (see the atoms), LANES of a wave.
 * Constants: DIRECTION; IMAGE_RANK (gather.h); TAIL (matrix.h).
 * Method: implicit GEMM, as in NVIDIA's CUTLASS and AMD's Composable Kernel.
 */
#define RASTER 8

#if BLK_K < 16                                  /* a table has up to 24 bytes for each of BLK_M rows */
#error "the tables of pixels must fit a slice"
#endif

MATRIX_KERNEL(ITEMS) void
conv_matrix(GLOBAL const T *RESTRICT gW, VIEW vW, GLOBAL const T *RESTRICT gX, VIEW vX, CONV_PARAMS,
            VIEW eTaps, VIEW eIn, VIEW eOut, VIEW vStep, VIEW vPad, VIEW vMeet, R alpha)
{
    LOCAL_ARRAY(UINT16, slices_of_both, 2 * SLICE);
    LOCAL T *s = (LOCAL T *)slices_of_both;

    const INDEX group = GROUP_ID(2);
    const int N = (int)eOut.s3, channels = (int)eTaps.s3;
    struct gather_grid grid;
    struct gather_sum sum;

    gather_grid(&grid, GROUP_ID(1), eOut, vStep);

    const int M = gather_pixels(&grid, eOut);
    const struct schedule schedule = schedule_of(M, N, BLK_M, BLK_N, RASTER);

    if (GROUP_ID(0) >= schedule.tiles_m * schedule.tiles_n)    /* a later phase may have fewer pixels */
        return;
    find_sum(&sum, (LOCAL struct taps *)slices_of_both, &grid,
             (channels + VECTOR_K - 1) / VECTOR_K * VECTOR_K, eTaps, vStep, vPad, vMeet);

    const struct tile t = tile_at(schedule, GROUP_ID(0));
    const int wave = LOCAL_ID() / LANES, lane = LOCAL_ID() % LANES;
    const int m1 = wave / WAVES_N * WAVE_M, n1 = wave % WAVES_N * WAVE_N;      /* of this wave, in the tile */
    const int slices = (gather_length(&sum) + BLK_K - 1) / BLK_K;
    LOCAL struct gather_row *const rows = (LOCAL struct gather_row *)(slices_of_both + SLICE);
    matrix_accumulators rC[MATRIX_BLOCKS_M][MATRIX_BLOCKS_N];
    struct places places;
    struct pieces next;
    struct gather_pixel pixel;
    struct gather_k k;

    for (int x = LOCAL_ID(); x < BLK_M; x += ITEMS) {
        struct gather_row row;

        gather_pixel(&pixel, t.m0 + x < M ? t.m0 + x : M - 1, &grid);
        gather_row(&row, &pixel, &sum, vX, vStep, 1);
        rows[x] = row;
    }
    BARRIER();
    UNROLL for (int i = 0; i < EACH_A; i++)
        places.row[i] = rows[OWN_ROW(i)];
    find_filters(&places, t.n0, N, vW);
    places.first_a = (INDEX)vX.s0 + group * (INDEX)vX.s1;
    places.first_b = (INDEX)vW.s0 + group * (INDEX)vW.s1;
    gather_k(&k, &sum, OWN_K);

    UNROLL for (int i = 0; i < MATRIX_BLOCKS_M; i++)
    UNROLL for (int j = 0; j < MATRIX_BLOCKS_N; j++)
        rC[i][j] = (matrix_accumulators)(ZERO);

#define LOAD_SLICE() load_slice(&next, (GLOBAL const UINT16 *)gX, (GLOBAL const UINT16 *)gW, &places, &k, \
                                &sum, channels, vX, vW, eIn)
    LOAD_SLICE();
    store_slice(slices_of_both, &next);
    BARRIER();

    NO_UNROLL for (int slice = 0; slice < slices; slice++) {
        LOCAL const T *now = s + slice % 2 * SLICE;

        gather_advance(&k, &sum, BLK_K);
        LOAD_SLICE();                           /* after the last, nothing of it is there: no branch */
        MATRIX_FENCE();
        MULTIPLY_SLICE(now, now + SLICE_A)
        MATRIX_FENCE();
        store_slice(slices_of_both + (slice + 1) % 2 * SLICE, &next);
        BARRIER();                              /* the next slice has arrived, and this one is read */
    }

    /* Before the table: a stride that its branch reads, too, would be kept with all of its view. */
    LOCAL INDEX *const at = (LOCAL INDEX *)slices_of_both;      /* of C; of the residual; of the bias */
    INDEX c_column[MATRIX_BLOCKS_N], r_column[MATRIX_BLOCKS_N], bias_column[MATRIX_BLOCKS_N];

    UNROLL for (int j = 0; j < MATRIX_BLOCKS_N; j++) {
        const INDEX n = t.n0 + n1 + j * MATRIX_N + matrix_column(lane);

        c_column[j] = n * (INDEX)vC.s3;
        r_column[j] = n * (INDEX)vR.s3;
        bias_column[j] = n * (INDEX)vBias.s3;
    }

#define PIXEL_AT(v) ((INDEX)(v).s0 + group * (INDEX)(v).s1 + gather_output(&pixel, &grid, v, vStep))
    for (int x = LOCAL_ID(); x < BLK_M; x += ITEMS) {
        gather_pixel(&pixel, t.m0 + x < M ? t.m0 + x : M - 1, &grid);
        at[x] = PIXEL_AT(vC);
        at[x + BLK_M] = PIXEL_AT(vR);
        at[x + 2 * BLK_M] = PIXEL_AT(vBias);
    }
    BARRIER();

    const struct output c = CONV_OUTPUT;

    UNROLL for (int i = 0; i < MATRIX_BLOCKS_M; i++)
    UNROLL for (int j = 0; j < MATRIX_BLOCKS_N; j++)
    UNROLL for (int e = 0; e < MATRIX_ACCUMULATORS; e++) {
        const int x = m1 + i * MATRIX_M + matrix_row(e, lane);

        if (t.m0 + x < M && t.n0 + n1 + j * MATRIX_N + matrix_column(lane) < N)
            STORE_C(gC, at[x] + c_column[j],
                    epilogue_at(&c, RESIDUAL ? at[x + BLK_M] + r_column[j] : 0,
                                BIAS ? at[x + 2 * BLK_M] + bias_column[j] : 0, alpha * rC[i][j][e]));
    }
}
