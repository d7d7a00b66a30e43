/* cl/gemm/batched.cl - C := act(alpha A B + beta C + bias) for batches of small matrices of 16-bit types, by
 * the mma.sync of NVIDIA's sm_80 and up
 *
 * A matrix of C is one tile, or a few, whose products take less time than their bytes.  So work-groups are
 * small and persistent, GROUPS of them on a compute unit, and each has slices in flight while it multiplies
 * and stores others (cl/gemm/batched.h).
 *
 *             BLK_N
 *         +---+---+
 *   BLK_K |   |   |
 *         +---+---+
 *   +--+  +---+---+ WARP_M
 *   |  |  | w | a |
 *   +--+  +---+---+
 *   |  |  | r | p |
 *   +--+  +---+---+
 *
 * Parameters, from gemm.tune: BLK_M BLK_N BLK_K WARP_M WARP_N STAGES GROUPS, and the instruction's MMA_M
 * MMA_K (fragment.h).  Constants: MN_MAJOR_A MN_MAJOR_B.
 *
 * Method: multistage pipelines as in NVIDIA's CUTLASS for Ampere, across the tiles of a work-group.
 */
#define ACCUMULATORS (WARP_N / 2)               /* of a work-item, for 16 rows */

#if WARP_M % 16 || WARP_N % 32 || BLK_K % STEP_K
#error "a warp's tile must be made of whole loads, and its columns of pieces of the epilogue"
#endif

LARGE_LOCAL(gemm_batched, STAGES * STAGE)

KERNEL(ITEMS) void
gemm_batched(int M, int N, int K, VIEW eC, R alpha, int groups, int tiles,
             GLOBAL const T *RESTRICT gA, VIEW vA,
             GLOBAL const T *RESTRICT gB, VIEW vB, OUTPUT_PARAMS)
{
    LARGE_LOCAL_ARRAY(sAB, STAGES * STAGE);

    const int lane = (int)(ITEM % 32);
    const int m1 = (int)(ITEM / 32 / WARPS_N) * WARP_M, n1 = (int)(ITEM / 32 % WARPS_N) * WARP_N;
    const unsigned int stages = LOCAL_ADDRESS(sAB);
    const unsigned int start_a = fragment_start(MN_MAJOR_A, VECS_A, m1, 0);
    const unsigned int start_b = fragment_start(MN_MAJOR_B, VECS_B, n1, 1) + BYTES_A;
    unsigned int here = stages;                 /* the stage that is read */
    struct ahead ahead;

    copies_begin(&ahead, stages, M, N, K, groups, tiles, gA, vA, gB, vB);
    NO_UNROLL for (int at = GROUP_ID(0); at < tiles; at += groups) {
        struct tile t;

        find_next(&t, &ahead.schedule, at);

        const struct output c = OUTPUT_BY(batch_offset_of_one, t.batch);
        const int m = t.m0 + m1 + lane / 4, n = t.n0 + n1, is_inside = t.m0 + m1 < M && n < N;
        float d[WARP_M / 16][ACCUMULATORS];
        UINT32 bias_row[BIAS_ROW(ACCUMULATORS)];

        prepare_tile(bias_row, &c, ACCUMULATORS, n, lane);
        UNROLL for (int i = 0; i < WARP_M / 16; i++) {
            prefetch_tile(&c, ACCUMULATORS, m + 16 * i, m + 16 * i + 8, n, lane);
            UNROLL for (int j = 0; j < ACCUMULATORS; j++)
                d[i][j] = 0.0f;
        }
        NO_UNROLL for (int slice = 0; slice < ahead.slices; slice++) {
            slice_arrives(&ahead, M, N);
            if (is_inside)
                UNROLL for (int step = 0; step < BLK_K / STEP_K; step++) {
                    FRAGMENT rA[BLOCKS_M][FRAGMENT_REGS], rB[BLOCKS_N][FRAGMENT_REGS];

                    UNROLL for (int u = 0; u < BLOCKS_M / 2; u++)
                        LOAD_FRAGMENT(rA, MN_MAJOR_A, VECS_A, here + start_a, u, step, 0);
                    UNROLL for (int u = 0; u < BLOCKS_N / 2; u++)
                        LOAD_FRAGMENT(rB, MN_MAJOR_B, VECS_B, here + start_b, u, step, 1);
                    UNROLL for (int j = 0; j < BLOCKS_N; j++)
                    UNROLL for (int i = 0; i < BLOCKS_M; i += 2)
                        MMA_F32(d[i / 2] + 4 * j, d[i / 2] + 4 * j + 2, rA[i], rA[i + 1], rB[j]);
                }
            here = stage_after(stages, here);
        }
        if (is_inside)
            UNROLL for (int i = 0; i < WARP_M / 16; i++)
                store_tile(&c, d[i], bias_row, ACCUMULATORS, m + 16 * i, m + 16 * i + 8, n, lane, 0);
    }
}
