/* tiled.cl - C := act(alpha A B + beta C + bias), for devices with local memory
 *
 * Every matrix has a row stride and a column stride, so that a transpose needs no kernel of
 * its own.
 *
 * Parameters, from gemm.tune: BLK_M BLK_N BLK_K THR_M THR_N (see cl/tile/fma.h).
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

#define RASTER 8

KERNEL(FMA_ITEMS) void
gemm(int M, int N, int K, VIEW eC, R alpha,
     GLOBAL const T *RESTRICT gA, VIEW vA,
     GLOBAL const T *RESTRICT gB, VIEW vB, OUTPUT_PARAMS)
{
    LOCAL_ARRAY(R, sA, BLK_K * PITCH_A);
    LOCAL_ARRAY(R, sB, BLK_K * PITCH_B);

    const struct schedule s = { (M + BLK_M - 1) / BLK_M, (N + BLK_N - 1) / BLK_N, BLK_M, BLK_N, RASTER };
    struct tile t;

    find_tile(&t, &s, GROUP_ID(0));

    const struct operand_a a = { gA, batch_offset(vA, eC, t.batch), (INDEX)vA.s5, (INDEX)vA.s6, M, K };
    const struct operand_b b = { gB, batch_offset(vB, eC, t.batch), (INDEX)vB.s5, (INDEX)vB.s6, K, N };
    R rC[THR_M][THR_N];

    tile_multiply(rC, sA, sB, &a, &b, t.m0, t.n0, K);

    const struct output c = OUTPUT(t.batch);

    UNROLL for (int i = 0; i < THR_M; i++) {
        const int m = TILE_ROW(t.m0, i);

        UNROLL for (int j = 0; j < THR_N; j++) {
            const int n = TILE_COL(t.n0, j);

            if (m < M && n < N)
                store_element(&c, m, n, rC[i][j]);
        }
    }
}
