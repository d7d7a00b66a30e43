/* tiled.cl - C := act(alpha A B + beta C + bias), for devices with local memory
 *
 * Every matrix comes with a row and a column stride, so a transpose costs no second
 * kernel.  Work-groups are numbered along one dimension: a band of BAND tile rows is
 * walked column by column, so that neighbours in time share tiles of A and B in the
 * cache; then the next band; then the next batch.
 *
 * Parameters, from gemm.tune: BLK_M BLK_N BLK_K THR_M THR_N (see tile.h).
 */
struct operand_a { GLOBAL const T *g; INDEX start, row, col; int M, K; };
struct operand_b { GLOBAL const T *g; INDEX start, row, col; int K, N; };

DEVICE int is_k_major_a(const struct operand_a *a) { return a->col < a->row; }
DEVICE int is_k_major_b(const struct operand_b *b) { return b->row < b->col; }

DEVICE R load_a(const struct operand_a *a, int m, int k)
{
    return m < a->M && k < a->K ? LOAD(a->g, a->start + m * a->row + k * a->col) : ZERO;
}

DEVICE R load_b(const struct operand_b *b, int k, int n)
{
    return k < b->K && n < b->N ? LOAD(b->g, b->start + k * b->row + n * b->col) : ZERO;
}

#define BAND 8

KERNEL(FMA_ITEMS) void
gemm(int M, int N, int K, VIEW eC, R alpha,
     GLOBAL const T *RESTRICT gA, VIEW vA,
     GLOBAL const T *RESTRICT gB, VIEW vB, R beta,
     GLOBAL T *RESTRICT gC, VIEW vC,
     int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    LOCAL_ARRAY(R, sA, BLK_K * PITCH_A);
    LOCAL_ARRAY(R, sB, BLK_K * PITCH_B > FMA_ITEMS * THR_N ? BLK_K * PITCH_B : FMA_ITEMS * THR_N);

    const int tiles_m = (M + BLK_M - 1) / BLK_M, tiles_n = (N + BLK_N - 1) / BLK_N;
    const int batch = GROUP_ID(0) / (tiles_m * tiles_n);
    const int tile = GROUP_ID(0) - batch * (tiles_m * tiles_n);
    const int band = tile / (BAND * tiles_n);
    const int band_rows = tiles_m - band * BAND < BAND ? tiles_m - band * BAND : BAND;
    const int in_band = tile - band * (BAND * tiles_n), column = in_band / band_rows;
    const int m0 = (band * BAND + in_band - column * band_rows) * BLK_M;
    const int n0 = column * BLK_N;

    const struct operand_a a = { gA, batch_offset(vA, eC, batch), (INDEX)vA.s5, (INDEX)vA.s6, M, K };
    const struct operand_b b = { gB, batch_offset(vB, eC, batch), (INDEX)vB.s5, (INDEX)vB.s6, K, N };
    const INDEX c0 = batch_offset(vC, eC, batch), bias0 = batch_offset(vBias, eC, batch);
    R rC[THR_M][THR_N];

    tile_multiply(rC, sA, sB, &a, &b, m0, n0, K);

    LOCAL R *mine = sB + LOCAL_ID() * THR_N;    /* a row of sums, where a loop can index it */

    UNROLL for (int i = 0; i < THR_M; i++) {
        const int m = TILE_ROW(m0, i);
        const INDEX at = c0 + m * (INDEX)vC.s5, bias_at = bias0 + m * (INDEX)vBias.s5;

        UNROLL for (int j = 0; j < THR_N; j++)
            mine[j] = rC[i][j];
        NO_UNROLL for (int j = 0; j < THR_N; j++) {
            const int n = TILE_COL(n0, j);

            if (m < M && n < N)
                STORE(gC, at + n * (INDEX)vC.s6,
                      epilogue(mine[j], alpha, beta, gC, at + n * (INDEX)vC.s6,
                               has_bias, gBias, bias_at + n * (INDEX)vBias.s6, act));
        }
    }
}
