/* gemm_cpu.cl - C := act(alpha A B + beta C + bias), for CPUs
 *
 * A work-group (one work-item) makes up to BLK_M x BLK_N of C.  B is copied, a stretch of
 * BLK_K rows at a time, into panels in local memory, which on a CPU is the cache; they are
 * used for all rows of the work-group.  With PACKED, A was put into panels for everyone by
 * `pack` beforehand; without, each panel is made in local memory just before it is used.
 *
 *              BLK_N              Panels of B, and the sums that wait while K is longer than
 *            +-+-+-+-+            BLK_K, must fit the second-level cache:
 *     BLK_K  | | | | |              (BLK_K + BLK_M) BLK_N numbers.
 *            +-+-+-+-+
 *     +---+  +-+-+-+-+
 *     +---+  +-+-+-+-+  THR_M     (see tile_cpu.h for the register tile)
 *     +---+  +-+-+-+-+
 *
 * Parameters, from gemm.tune: THR_M THR_V VEC BLK_M BLK_N BLK_K.
 */
#define PANELS_N (BLK_N / THR_N)
#define PACK_K   256                            /* of K, for one work-group of `pack` */

#if BLK_N % THR_N || BLK_M % THR_M
#error "a register tile must divide the work-group's"
#endif

/* gP[panel][k][m], s5 of vP being the step from panel to panel */
KERNEL(1) void
pack(int M, int K, VIEW eA, GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL R *RESTRICT gP, VIEW vP)
{
    const int k0 = GROUP_ID(0) * PACK_K, m0 = GROUP_ID(1) * THR_M;
    const int depth = K - k0 < PACK_K ? K - k0 : PACK_K;
    const INDEX row = (INDEX)vA.s5, col = (INDEX)vA.s6;
    const INDEX at = batch_offset(vA, eA, GROUP_ID(2)) + m0 * row + k0 * col;
    GLOBAL R *panel = gP + batch_offset(vP, eA, GROUP_ID(2)) + GROUP_ID(1) * (INDEX)vP.s5 + k0 * THR_M;

    PACK_PANEL(panel, THR_M, M - m0, gA, at, row, col, depth);
}

/* BLK_K x BLK_N of B from `at` on, as PANELS_N panels of k-major THR_N */
DEVICE void fill(LOCAL R *sB, GLOBAL const T *gB, INDEX at, INDEX row, INDEX col, int depth, int width)
{
    for (int j = 0; j < PANELS_N && j * THR_N < width; j++) {
        LOCAL R *panel = sB + j * BLK_K * THR_N;
        const int left = width - j * THR_N;
        const INDEX from = at + j * THR_N * col;

        if (col == 1 && left >= THR_N)
            for (int k = 0; k < depth; k++)
                UNROLL for (int v = 0; v < THR_V; v++)
                    VSTORE(VEC, panel + k * THR_N + v * VEC, LOAD_VECTOR(VEC, gB + from + k * row + v * VEC));
        else
            PACK_PANEL(panel, THR_N, left, gB, from, col, row, depth);
    }
}

KERNEL(1) void
gemm_cpu(int M, int N, int K, int rows, VIEW eC, R alpha,
         GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const R *RESTRICT gP, VIEW vP,
         GLOBAL const T *RESTRICT gB, VIEW vB, R beta,
         GLOBAL T *RESTRICT gC, VIEW vC,
         int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    LOCAL_ARRAY(R, sB, BLK_K * BLK_N);
    LOCAL_ARRAY(R, sC, BLK_M * BLK_N);          /* sums that wait */
#if !PACKED
    LOCAL_ARRAY(R, sA, BLK_K * THR_M);
#endif
    const int n0 = GROUP_ID(0) * BLK_N, batch = GROUP_ID(2);
    const int first = GROUP_ID(1) * rows, last = first + rows < M ? first + rows : M;
    const int width = N - n0 < BLK_N ? N - n0 : BLK_N;
    const INDEX b0 = batch_offset(vB, eC, batch) + n0 * (INDEX)vB.s6;
    const INDEX c0 = batch_offset(vC, eC, batch) + n0 * (INDEX)vC.s6;
    const INDEX bias0 = batch_offset(vBias, eC, batch) + n0 * (INDEX)vBias.s6;
#if PACKED
    GLOBAL const R *batch_panels = gP + batch_offset(vP, eC, batch);
#else
    const INDEX a0 = batch_offset(vA, eC, batch);
#endif
    int k0 = 0;

    do {                                        /* once also when K is 0 */
        const int depth = K - k0 < BLK_K ? K - k0 : BLK_K;
        const int is_last = k0 + depth >= K;

        fill(sB, gB, b0 + k0 * (INDEX)vB.s5, (INDEX)vB.s5, (INDEX)vB.s6, depth, width);
        for (int m0 = first; m0 < last; m0 += THR_M) {
            const int height = last - m0 < THR_M ? last - m0 : THR_M;
#if PACKED
            GLOBAL const R *panel = batch_panels + m0 / THR_M * (INDEX)vP.s5 + k0 * THR_M;
#else
            LOCAL R *panel = sA;

            PACK_PANEL(panel, THR_M, height, gA, a0 + m0 * (INDEX)vA.s5 + k0 * (INDEX)vA.s6,
                       (INDEX)vA.s5, (INDEX)vA.s6, depth);
#endif
            for (int j = 0; j < PANELS_N && j * THR_N < width; j++) {
                LOCAL R *waiting = sC + ((m0 - first) * PANELS_N + j * THR_M) * THR_N;
                const int count = width - j * THR_N < THR_N ? width - j * THR_N : THR_N;
                RV rC[THR_M][THR_V];

                if (k0)
                    tile_resume(rC, waiting);
                else
                    tile_clear(rC);
                tile_multiply(rC, panel, sB + j * BLK_K * THR_N, depth);
                if (!is_last)
                    tile_suspend(waiting, rC);
                else
                    UNROLL for (int i = 0; i < THR_M; i++)
                        if (i < height)
                            tile_store_row(rC[i], gC, c0 + (m0 + i) * (INDEX)vC.s5 + j * THR_N * (INDEX)vC.s6,
                                           (INDEX)vC.s6, count, alpha, beta, has_bias, gBias,
                                           bias0 + (m0 + i) * (INDEX)vBias.s5 + j * THR_N * (INDEX)vBias.s6,
                                           (INDEX)vBias.s6, act);
            }
        }
        k0 += depth;
    } while (k0 < K);
}
