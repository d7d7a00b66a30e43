/* matrix.cl - attention in 16-bit types, on the matrix engines of AMD's and Intel's GPUs
 *
 * A work-group has BLK_M queries of one head; a wave has COLUMNS blocks of MATRIX_N of them, and computes
 * both products transposed:
 *
 *              k: elements            n: queries               k: keys              n: queries
 *            +-----------+          +-----------+          +-------------+        +-----------+
 *     keys   |   keys    | queries^T|  scores   | elements | values^T    | weights|   sums    |
 *            +-----------+          +-----------+          +-------------+        +-----------+
 *
 * Then a lane has scores of one query, so that its maximum and sum are the lane's own, save where two lanes
 * share a column, and so is the factor of its sums; and the weights are operand B of the second product in
 * the lanes that they are in (chained.h of the atoms).
 *
 * Keys and values go from device memory to registers to local memory.  While the scores of a block are
 * computed, its values are in flight; while weights and sums are, the keys of the next block.
 *
 *     values -> registers | scores  | -> local, barrier
 *                             keys  -> registers  | weights | sums | -> local, barrier
 *
 * Tiles that see the most keys come first.  The conditions of the loop are the same for all work-items.
 *
 * Parameters, from attention.tune: HEAD, the size of a head at most; BLK_N keys in a block, in slices of
 * BLK_K; WAVES, of which SPLIT_V have the same queries, and each its share of the sums; COLUMNS; ENGINE (see
 * the atoms), LANES of a wave; Q_REGISTERS, 1 where queries are kept in registers; ROOM, waves that the
 * registers of a SIMD unit are to hold where there is no mask and no softcap.  Rows are modelled, not
 * measured.
 * Method: Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", 2023.
 */
#define IN_FLIGHT 4                             /* fragments of values, loaded ahead of their products */
#define TILE_Q   (BLK_M * HEAD)                 /* elements */
#define TILE_K   (BLK_N * HEAD)
#define KEYS_AT  (Q_REGISTERS ? 0 : TILE_Q)
#define ELEMENTS (KEYS_AT + 2 * TILE_K > TILE_Q ? KEYS_AT + 2 * TILE_K : TILE_Q)

/* Scores of which the first is that of query m and key n are scaled and capped, and the mask is added. */
#if GENERAL
#define ATTENTION_GENERAL(s, m, n)                                                                      \
    {                                                                                                   \
        UNROLL for (int i = 0; i < KEY_BLOCKS; i++)                                                     \
            (s)[i] = (s)[i] * scale;                                                                    \
        if (softcap > 0.0f)                                                                             \
            scores_cap(s, softcap);                                                                     \
        if (given & GIVEN_MASK)                                                                         \
            scores_mask(s, &mask, m, n);                                                                \
    }
#else
#define ATTENTION_GENERAL(s, m, n) { }
#endif

#if Q_REGISTERS
#define QUERIES(c, k) fragments[c][(k) / MATRIX_K]
#else
#define QUERIES(c, k) LOAD_QUERIES(c, k)
#endif
#define LOAD_QUERIES(c, k) \
    matrix_load_b(tile + SLICE_AT(k, BLK_M), BLK_M, wave_m + (c) * MATRIX_N, (k) % BLK_K, lane)

MATRIX_KERNEL_ROOM(ITEMS, GENERAL ? 1 : ROOM) void
attention_matrix(int queries, int keys, int D, int DV, int group, int causal, int offset, int window,
                 R scale, R softcap,
                 GLOBAL const T *RESTRICT gQ, VIEW vQ, GLOBAL const T *RESTRICT gK, VIEW vK,
                 GLOBAL const T *RESTRICT gV, VIEW vV, GLOBAL T *RESTRICT gO, VIEW vO,
                 GLOBAL const T *RESTRICT gMask, VIEW vMask, GLOBAL R *RESTRICT gLse, VIEW vLse, int has_lse,
                 MORE_PARAMS, int batches, int heads, int section)
{
    LOCAL_ARRAY(UINT16, room, ELEMENTS);
    LOCAL T *const tile = (LOCAL T *)room, *const tile_k = tile + KEYS_AT, *const tile_v = tile_k + TILE_K;

    const int all_heads = batches * heads, wave = LOCAL_ID() / LANES, lane = LOCAL_ID() % LANES;
    const int wave_m = wave / SPLIT_V * (COLUMNS * MATRIX_N);           /* its queries, in the tile */
    const int wave_e = wave % SPLIT_V * (HEAD / SPLIT_V);               /* and elements of its sums */

    ATTENTION_JOB(t, GROUP_ID(0));
    const int shared = t.head / group, m0 = t.m0 + wave_m, m_lane = m0 + matrix_column(lane);
    const struct rows q = { gQ + (INDEX)vQ.s0 + t.batch * (INDEX)vQ.s3 + t.head * (INDEX)vQ.s4,
                            (INDEX)vQ.s5, queries, D };
    const struct rows k = { gK + (INDEX)vK.s0 + t.batch * (INDEX)vK.s3 + shared * (INDEX)vK.s4,
                            (INDEX)vK.s5, keys_here, D };
    const struct rows v = { gV + (INDEX)vV.s0 + t.batch * (INDEX)vV.s3 + shared * (INDEX)vV.s4,
                            (INDEX)vV.s5, keys_here, DV };
    const float unit = GENERAL ? 1.0f : scale, factor = unit * 1.44269504f;     /* 1 / log 2 */
#if GENERAL
    const struct mask mask = { gMask + (INDEX)vMask.s0 + t.batch * (INDEX)vMask.s3
                               + t.head * (INDEX)vMask.s4, (INDEX)vMask.s5, (INDEX)vMask.s6, queries, keys };
#endif
    LOCAL const T *const sums_v = tile_v + matrix_offset(wave_e, 0, HEAD);
    uint4 next_k[EACH_K], next_v[4 * EACH_V];
    matrix_accumulators sums[COLUMNS][SUM_BLOCKS];
    float max[COLUMNS], sum[COLUMNS];

    keys_load(next_k, &k, t.block * BLK_N);
    rows_to_tile(tile, &q, t.m0);
    BARRIER();
#if Q_REGISTERS
    matrix_fragment_b fragments[COLUMNS][HEAD / MATRIX_K];

    UNROLL for (int c = 0; c < COLUMNS; c++)
    UNROLL for (int e = 0; e < HEAD; e += MATRIX_K)
        fragments[c][e / MATRIX_K] = LOAD_QUERIES(c, e);
    BARRIER();                                  /* before keys and values take its place */
#endif
    keys_store(tile_k, next_k);
    BARRIER();
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        max[c] = -INFINITE;
        sum[c] = 0.0f;
        UNROLL for (int i = 0; i < SUM_BLOCKS; i++)
            sums[c][i] = (matrix_accumulators)(ZERO);
    }

    NO_UNROLL for (int block = 0; block < t.blocks; block++) {
        const int n0 = (t.block + block) * BLK_N, n_lane = n0 + LANE_ROW(lane);
        const int hides = block_hides(&sight, m0, n0);
        matrix_accumulators s[COLUMNS][KEY_BLOCKS];

        values_load(next_v, &v, n0);
        MATRIX_FENCE();
        UNROLL for (int c = 0; c < COLUMNS; c++)
        UNROLL for (int i = 0; i < KEY_BLOCKS; i++)
            s[c][i] = (matrix_accumulators)(ZERO);
        UNROLL for (int e = 0; e < HEAD; e += MATRIX_K) {
            matrix_fragment_b b[COLUMNS];

            UNROLL for (int c = 0; c < COLUMNS; c++)
                b[c] = QUERIES(c, e);
            UNROLL for (int i = 0; i < KEY_BLOCKS; i++) {
                const matrix_fragment_a a = matrix_block_a(tile_k + SLICE_AT(e, BLK_N), BLK_N, i * MATRIX_M,
                                                           e % BLK_K, lane);

                UNROLL for (int c = 0; c < COLUMNS; c++)
                    MATRIX_MULTIPLY(s[c][i], a, b[c]);
            }
            MATRIX_FENCE();
        }
        values_store(tile_v, next_v);
        BARRIER();                              /* values have arrived, and keys are read */

        keys_load(next_k, &k, block + 1 < t.blocks ? n0 + BLK_N : n0);  /* after the last, any: no branch */
        MATRIX_FENCE();
        UNROLL for (int c = 0; c < COLUMNS; c++)
            ATTENTION_GENERAL(s[c], m_lane + c * MATRIX_N, n_lane)
        if (hides)
            UNROLL for (int c = 0; c < COLUMNS; c++)
                scores_hide(s[c], &sight, m_lane + c * MATRIX_N, n_lane);
        UNROLL for (int c = 0; c < COLUMNS; c++) {
            float top, rescale;

            top = scores_max(s[c], max[c]);
            MATRIX_COLUMN_MAX(top, lane);
            rescale = scores_weigh(s[c], &max[c], &sum[c], top, factor);
            if (rescale != 1.0f)                /* seldom, after the first blocks */
                UNROLL for (int i = 0; i < SUM_BLOCKS; i++)
                    sums[c][i] = sums[c][i] * rescale;
        }
        UNROLL for (int f = 0; f < BLK_N / MATRIX_K; f++) {
            matrix_fragment_b b[COLUMNS];

            UNROLL for (int c = 0; c < COLUMNS; c++)
                MATRIX_OPERAND(b[c], s[c], f, lane);
            UNROLL for (int i = 0; i < SUM_BLOCKS; i++) {
                const matrix_fragment_a a = matrix_block_a(sums_v + SLICE_AT(f * MATRIX_K, HEAD), HEAD,
                                                           i * MATRIX_M, f * MATRIX_K % BLK_K, lane);

                UNROLL for (int c = 0; c < COLUMNS; c++)
                    MATRIX_MULTIPLY(sums[c][i], a, b[c]);
                if (i % IN_FLIGHT == IN_FLIGHT - 1)
                    MATRIX_FENCE();
            }
        }
        keys_store(tile_k, next_k);
        BARRIER();                              /* keys have arrived, and values are read */
    }

    GLOBAL T *const o = gO + (INDEX)vO.s0 + t.batch * (INDEX)vO.s3 + t.head * (INDEX)vO.s4;
    GLOBAL R *const lse = gLse + (INDEX)vLse.s0 + t.batch * (INDEX)vLse.s4 + t.head * (INDEX)vLse.s5;

    UNROLL for (int c = 0; c < COLUMNS; c++) {
        const int m = m_lane + c * MATRIX_N, seen = m < queries_here;
        const float correction = scores_correction(max[c], factor);
        float top = max[c] == -INFINITE ? LOWEST : max[c] * unit, all, share;

        MATRIX_COLUMN_SUM(sum[c], lane);
        all = seen ? sum[c] * correction : 0.0f;
        share = seen ? inverse_of(sum[c]) : 0.0f;
        if (given & GIVEN_SINKS && seen) {
            const float joined = join_sink(&top, &all, gSinks[(INDEX)vMore.s6 + t.head * (INDEX)vMore.s7]);

            share = joined * correction * inverse_of(all);
        }
        if (has_lse && m < queries && lane < MATRIX_N && wave_e == 0)
            lse[m * (INDEX)vLse.s6] = logarithm_of(top, all);
        UNROLL for (int i = 0; i < SUM_BLOCKS; i++)
        UNROLL for (int e = 0; e < MATRIX_ACCUMULATORS; e += 8) {
            const int at = wave_e + i * MATRIX_M + LANE_ROW(lane) + e;

            if (m < queries && at < DV)
                VSTORE_ALIGNED(uint4, o + m * (INDEX)vO.s5 + at, sums_vector(sums[c][i], e, share));
        }
    }
}
