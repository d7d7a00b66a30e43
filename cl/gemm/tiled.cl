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
     GLOBAL const T *RESTRICT gB, VIEW vB, R beta,
     GLOBAL T *RESTRICT gC, VIEW vC,
     int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    LOCAL_ARRAY(R, sA, BLK_K * PITCH_A);
    LOCAL_ARRAY(R, sB, BLK_K * PITCH_B > FMA_ITEMS * THR_N ? BLK_K * PITCH_B : FMA_ITEMS * THR_N);

    const struct schedule s = { (M + BLK_M - 1) / BLK_M, (N + BLK_N - 1) / BLK_N, BLK_M, BLK_N, RASTER };
    struct tile t;

    find_tile(&t, &s, GROUP_ID(0));

    const struct operand_a a = { gA, batch_offset(vA, eC, t.batch), (INDEX)vA.s5, (INDEX)vA.s6, M, K };
    const struct operand_b b = { gB, batch_offset(vB, eC, t.batch), (INDEX)vB.s5, (INDEX)vB.s6, K, N };
    const INDEX c0 = batch_offset(vC, eC, t.batch), bias0 = batch_offset(vBias, eC, t.batch);
    R rC[THR_M][THR_N];

    tile_multiply(rC, sA, sB, &a, &b, t.m0, t.n0, K);

    const struct result c = RESULT(c0, bias0);

    LOCAL R *room = sB + LOCAL_ID() * THR_N;
#define COLUMN(j) TILE_COL(t.n0, j)

    UNROLL for (int i = 0; i < THR_M; i++) {
        const int m = TILE_ROW(t.m0, i);

        RESULT_STORE_ROW(&c, m, -1, rC[i], THR_N, COLUMN, room);
    }
}
