/* mma_splitk.cl - C := act(alpha A B + beta C + bias) in f16 and bf16, where C has few tiles or rows of A and
 * B begin at any element, by the mma.sync of NVIDIA's sm_80 and up
 *
 * As gemm_mma; the sum of a tile is split among sets of warps and among work-groups, in one launch
 * (cl/tile/split.h), and slices are copied in words of two elements (cl/tile/word_operand.h), so that copies
 * run ahead whatever rows are aligned to.  A work-group that has all of a tile's sums stores them by rows.
 *
 * Parameters, from gemm.tune: BLK_M BLK_N BLK_K WARP_M WARP_N STAGES MMA_M MMA_K, as of gemm_mma, and
 * PARTS_K.
 * Constants: MN_MAJOR_A MN_MAJOR_B.
 */
#define RASTER  8                       /* lib/gemm/mma_splitk.c has it, too */
#define STEPS   (BLK_K / PARTS_K / STEP_K)
#define BYTES_A WORD_BYTES(BLK_M, MN_MAJOR_A)           /* of a slice */

#if FRAGMENT_ROOM > STAGES * STAGE
#error "the sums of a tile need more room than the stages"
#endif

LARGE_LOCAL(gemm_mma_splitk, STAGES * STAGE)

#if FRAGMENT_PARTS > 1
/* Sums of parts, which are scaled.  Where one is not finite, those of the lane are computed as other kernels
 * do; m, n: its warp's first row and column. */
DEVICE void whole_sums(R d[BLOCKS_M][BLOCKS_N][2], GLOBAL const T *a, INDEX a_row, INDEX a_col,
                       GLOBAL const T *b, INDEX b_row, INDEX b_col, int m, int n, int M, int N, int K)
{
    R again[OWN_M][BLOCKS_N][2];
    int finite = 1;

    UNROLL for (int i = 0; i < OWN_M; i++)
        finite &= bf16x3_all_finite(d[i][0], BLOCKS_N * 2);
    m += (int)(ITEM % 32 / 4);
    n += (int)(ITEM % 4) * 2;
    UNROLL for (int i = 0; i < OWN_M * BLOCKS_N * 2; i++)
        again[i / (BLOCKS_N * 2)][i / 2 % BLOCKS_N][i % 2] = ZERO;
    NO_UNROLL for (int k = 0; k < (finite ? 0 : K); k++)
        UNROLL for (int i = 0; i < OWN_M; i++) {
            const R x = a[(m + 8 * i < M ? m + 8 * i : M - 1) * a_row + k * a_col];

            UNROLL for (int j = 0; j < BLOCKS_N * 2; j++) {
                const int column = n + j / 2 * 8 + j % 2;

                again[i][j / 2][j % 2] = FMA(x, b[k * b_row + (column < N ? column : N - 1) * b_col],
                                             again[i][j / 2][j % 2]);
            }
        }
    UNROLL for (int i = 0; i < OWN_M * BLOCKS_N * 2; i++) {
        R *const sum = &d[i / (BLOCKS_N * 2)][i / 2 % BLOCKS_N][i % 2];

        *sum = ABS(*sum) <= BF16X3_LARGEST ? *sum * BF16X3_UNSCALE
                                           : again[i / (BLOCKS_N * 2)][i / 2 % BLOCKS_N][i % 2];
    }
}
#define WHOLE_SUMS(d, m, n) \
    whole_sums(d, a0, (INDEX)vA.s5, (INDEX)vA.s6, b0, (INDEX)vB.s5, (INDEX)vB.s6, m, n, M, N, K)
#else
#define WHOLE_SUMS(d, m, n) do { } while (0)
#endif

#define STAGE_AFTER(at) ((at) == stages + (STAGES - 1) * STAGE ? stages : (at) + STAGE)

KERNEL_ROOM(ITEMS, 2) void
gemm_mma_splitk(int M, int N, int K, VIEW eC, R alpha, VIEW vTiles, GLOBAL const T *RESTRICT gA, VIEW vA,
                GLOBAL const T *RESTRICT gB, VIEW vB SPLIT_PARAMS, OUTPUT_PARAMS)
{
    ROOM_FOR(2);
    LARGE_LOCAL_ARRAY(room, STAGES * STAGE);

    const struct tile tile = tile_at(schedule_by(M, N, BLK_M, BLK_N, RASTER, vTiles), GROUP_ID(0));
    const unsigned int warp = ITEM % SET_ITEMS / 32, stages = LOCAL_ADDRESS(room);
    const int m1 = (int)(warp / WARPS_N) * WARP_M, n1 = (int)(warp % WARPS_N) * WARP_N;
    const int k0 = SPLIT_FIRST * BLK_K, slices = SPLIT_SLICES((K + BLK_K - 1) / BLK_K);
    GLOBAL const T *const a0 = gA + batch_offset(vA, eC, tile.batch);
    GLOBAL const T *const b0 = gB + batch_offset(vB, eC, tile.batch);
    const INDEX pitch_a = (INDEX)(MN_MAJOR_A ? vA.s6 : vA.s5), pitch_b = (INDEX)(MN_MAJOR_B ? vB.s5 : vB.s6);
    struct word_operand a = word_operand(a0, pitch_a, tile.m0, k0, BLK_M, MN_MAJOR_A);
    struct word_operand b = word_operand(b0, pitch_b, tile.n0, k0, BLK_N, MN_MAJOR_B);
    const struct word_fragment lane_a = word_fragment(a0, pitch_a, tile.m0, k0, m1, BLK_M, MN_MAJOR_A);
    const struct word_fragment lane_b = word_fragment(b0, pitch_b, tile.n0, k0, n1, BLK_N, MN_MAJOR_B);
    unsigned int here = stages, there = stages;         /* the stages that are read and written */
    R d[BLOCKS_M][BLOCKS_N][2];

    UNROLL for (int i = 0; i < BLOCKS_M; i++)
    UNROLL for (int j = 0; j < BLOCKS_N; j++)
        d[i][j][0] = d[i][j][1] = ZERO;
    NO_UNROLL for (int slice = 1 - STAGES; slice < slices; slice++) {   /* one place for all copies */
        if (slice >= 0) {
            COPIES_WAIT(STAGES - 2);
            BARRIER();                          /* the slice has arrived for all; the one before is read */
        }
        if (slice + STAGES - 1 < slices) {
            const int m_left = M - tile.m0, n_left = N - tile.n0;
            const int k_left = K - k0 - (slice + STAGES - 1) * BLK_K;

            copy_word_slice(&a, there, BLK_M, MN_MAJOR_A, MN_MAJOR_A ? k_left : m_left,
                            MN_MAJOR_A ? m_left : k_left);
            copy_word_slice(&b, there + BYTES_A, BLK_N, MN_MAJOR_B, MN_MAJOR_B ? k_left : n_left,
                            MN_MAJOR_B ? n_left : k_left);
        }
        copies_commit();                        /* also when empty: groups are counted */
        there = STAGE_AFTER(there);
        if (slice < 0)
            continue;
        UNROLL for (int step = 0; step < STEPS; step++) {
            FRAGMENT x[BLOCKS_M][FRAGMENT_REGS], y[BLOCKS_N][FRAGMENT_REGS];

            UNROLL for (int h = 0; h < FRAGMENT_REGS / FRAGMENT_PARTS; h++) {
                UNROLL for (int i = 0; i < BLOCKS_M; i++)
                    load_words(x[i], &lane_a, here, i, step, h, BLK_M, MN_MAJOR_A);
                UNROLL for (int j = 0; j < BLOCKS_N; j++)
                    load_words(y[j], &lane_b, here + BYTES_A, j, step, h, BLK_N, MN_MAJOR_B);
            }
            UNROLL for (int j = 0; j < BLOCKS_N; j++)
                MULTIPLY_BLOCK(d, x, y, j, BLOCKS_M);
        }
        here = STAGE_AFTER(here);
    }

    const struct output c = OUTPUT(tile.batch);

    if (PARTS_K > 1)
        add_sets((LOCAL R *)room, d);

    const int m = m1 + OWN_ROW;

    if (splits == 1 && c.col == 1) {
        WHOLE_SUMS(d, tile.m0 + m, tile.n0 + n1);
        store_by_rows(&c, (LOCAL R *)room, tile.m0, tile.n0, m, n1, d);
        return;
    }

    const UINT32 kept = ADD_SPLITS(d);

    if (kept) {
        WHOLE_SUMS(d, tile.m0 + m, tile.n0 + n1);
        store_fragments(&c, tile.m0 + m, tile.n0 + n1, tile.m0, tile.n0, kept, d);
    }
}
