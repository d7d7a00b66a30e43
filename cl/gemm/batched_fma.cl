/* cl/gemm/batched_fma.cl - C := act(alpha A B + beta C + bias) for batches of small matrices of f32, by fused
 * multiply-adds, for NVIDIA's sm_80 and up
 *
 * As batched.cl; a work-item multiplies THR_M x THR_N of the tile, out of local memory, where operands lie as
 * they do in device memory (cl/tile/fma_operand.h).
 *
 * Where tiles are few, PARTS_K sets of work-items multiply one, each a part of every slice of K, and the
 * first set adds their sums, in local memory.
 *
 * Parameters, from gemm.tune: BLK_M BLK_N BLK_K THR_M THR_N STAGES GROUPS PARTS_K.
 * Constants: MN_MAJOR_A MN_MAJOR_B.
 */
#define PART_K (BLK_K / PARTS_K)
#define SUMS   ((PARTS_K - 1) * BLK_M * BLK_N * 4)      /* bytes */

LARGE_LOCAL(gemm_batched_fma, STAGES * STAGE + SUMS)

KERNEL(ITEMS) void
gemm_batched_fma(int M, int N, int K, VIEW eC, R alpha, int groups, int tiles,
                 GLOBAL const T *RESTRICT gA, VIEW vA,
                 GLOBAL const T *RESTRICT gB, VIEW vB, OUTPUT_PARAMS)
{
    LARGE_LOCAL_ARRAY(sAB, STAGES * STAGE + SUMS);

    const int m1 = FMA_ROW, n1 = FMA_COLUMN, part = (int)(ITEM / FMA_TILE), mine = (int)(ITEM % FMA_TILE);
    LOCAL float *const sums = (LOCAL float *)(sAB + STAGES * STAGE) + mine;
    const unsigned int stages = LOCAL_ADDRESS(sAB);
    unsigned int here = stages;                 /* the stage that is read */
    struct ahead ahead;

    copies_begin(&ahead, stages, M, N, K, groups, tiles, gA, vA, gB, vB);
    NO_UNROLL for (int at = GROUP_ID(0); at < tiles; at += groups) {
        struct tile t;

        find_next(&t, &ahead.schedule, at);

        const struct output c = OUTPUT_BY(batch_offset_of_one, t.batch);
        const int m = t.m0 + m1, n = t.n0 + n1;
        R d[THR_M][THR_N];

        UNROLL for (int i = 0; i < THR_M; i++)
        UNROLL for (int j = 0; j < THR_N; j++)
            d[i][j] = ZERO;
        NO_UNROLL for (int slice = 0; slice < ahead.slices; slice++) {
            const int left = K - slice * BLK_K < BLK_K ? K - slice * BLK_K : BLK_K;

            slice_arrives(&ahead, M, N);
            NO_UNROLL for (int k = part * PART_K; k < left && k < (part + 1) * PART_K; k += 4) {
                R a[4 * THR_M], b[4 * THR_N];

                UNROLL for (int h = 0; h < 4; h++) {
                    LOAD_K(a, MN_MAJOR_A, VECS_A, THR_M, here, m1, k, h, 16);
                    LOAD_K(b, MN_MAJOR_B, VECS_B, THR_N, here + BYTES_A, n1, k, h, 32);
                    MULTIPLY_K(d, a, MN_MAJOR_A, b, MN_MAJOR_B, h);
                }
            }
            here = stage_after(stages, here);
        }
        if (PARTS_K > 1) {                      /* a slice's barrier precedes the next tile's sums */
            if (part > 0)
                UNROLL for (int i = 0; i < THR_M * THR_N; i++)
                    sums[((part - 1) * THR_M * THR_N + i) * FMA_TILE] = d[i / THR_N][i % THR_N];
            BARRIER();
            if (part > 0)
                continue;
            UNROLL for (int p = 1; p < PARTS_K; p++)
            UNROLL for (int i = 0; i < THR_M * THR_N; i++)
                d[i / THR_N][i % THR_N] += sums[((p - 1) * THR_M * THR_N + i) * FMA_TILE];
        }
        UNROLL for (int i = 0; i < THR_M; i++)
        UNROLL for (int j = 0; j < THR_N; j++) {
            const int r = m + BLOCK_AT(i, 16), s = n + BLOCK_AT(j, 32);

            d[i][j] = epilogue(&c, r < M ? r : M - 1, s < N ? s : N - 1, d[i][j]);
        }
        store_blocks(&c, m, n, &d[0][0], THR_M, THR_N, 16, 32);
    }
}
