/* cpu_rank.cl - C := act(alpha A B + beta C + bias), for CPUs, where rows of B run along memory
 * and M is small
 *
 * B is read once, row by row, in the order in which it lies; nothing is copied.  A work-group
 * keeps its part of C in the first-level cache and adds THR_K rows of B at a time: a vector
 * of each is loaded, and serves all rows of C.
 *
 *                +=====================+
 *     THR_K rows +=====================+  B       C[m] += A[m][k] B[k] + A[m][k + 1] B[k + 1] + ...
 *                +=====================+
 *       +-+      +---------------------+
 *     A | |    C |        cols         |          sums run along K in order, one fused multiply-add
 *       +-+      +---------------------+          each: the same bits everywhere, unless K is split
 *
 * Long rows are what memory likes best, and their pages are found once.  So a large problem is
 * split along K, not N: each part leaves its sums in the workspace, and `sum` adds them, always
 * in the same order.
 *
 * Columns are cut evenly (blocks of 4096 and 512 cost 10 to 15 %), and long rows that come from memory asked
 * for 8 panels ahead: 2 and 4 x 4608 x 1536, 565 and 750 us became 480 and 550; out of the caches it costs.
 *
 * Where B is in the caches, THR_K rows a multiple of 4096 bytes apart share one set of the first
 * level: 16 of them read half as quickly as 8 (1 x 1024 x 512, 2 MiB: 57 and 85 GB/s a core).
 *
 * Parameters, from gemm.tune: THR_K THR_V VEC BLK_M BLK_C BLK_K.  THR_K * THR_V + THR_V + 1
 * vectors must fit the registers, BLK_C, the numbers of C, the first-level cache.
 */
#define SUM_N 1024                              /* columns for a work-group of `sum` */

#if THR_N > 32 || BLK_C < BLK_M * THR_N
#error "a panel of columns must be 32 wide at most, and BLK_C hold one of BLK_M rows"
#endif
#if BLK_K % THR_K
#error "a stretch of A must be whole steps of THR_K"
#endif

/* A's rows in the order of use, [k / THR_K][m][k % THR_K]; `across` is the step from row to row. */
DEVICE void pack_rows(LOCAL R *RESTRICT to, GLOBAL const T *RESTRICT g, INDEX across, INDEX along, int height, int depth)
{
    const int whole = depth / THR_K * THR_K;
    int m = 0;

    if (along == 1)
        for (; m < height; m++)
            for (int k = 0; k < whole; k += THR_K)
                UNROLL for (int i = 0; i < THR_K; i++)
                    to[k * height + m * THR_K + i] = LOAD(g, m * across + k + i);
#if THR_K % 4 == 0
    if (across == 1)
        for (; m + VEC <= height; m += VEC)
            for (int k = 0; k < whole; k += 4) {
                LOCAL R *at = to + k / THR_K * THR_K * height + m * THR_K + k % THR_K;
                GLOBAL const T *from = g + m + k * along;
                R four[4 * VEC];

                transpose(four, LOAD_VECTOR(VEC, from), LOAD_VECTOR(VEC, from + along), LOAD_VECTOR(VEC, from + 2 * along),
                          LOAD_VECTOR(VEC, from + 3 * along));
                UNROLL for (int i = 0; i < VEC; i++)
                    VSTORE(4, at + i * THR_K, VLOAD(4, four + 4 * i));
            }
#endif
    for (int i = 0; i < height; i++)
        for (int k = i < m ? whole : 0; k < depth; k++)
            to[k / THR_K * THR_K * height + i * THR_K + k % THR_K] = LOAD(g, i * across + k * along);
}

/* C += A B for `height` rows and one panel of columns, over `ks` of k, and asks for a panel that comes
 * soon; `ks` and `asks` are constants where this is expanded.  A row of C is `pitch` vectors.       */
DEVICE void update(const int ks, const int asks, LOCAL RV *RESTRICT c, int pitch, int height, LOCAL const R *RESTRICT a,
                   GLOBAL const T *RESTRICT b, INDEX row, GLOBAL const T *soon)
{
    RV rB[THR_K][THR_V];

    UNROLL for (int k = 0; k < THR_K; k++)
    UNROLL for (int j = 0; j < THR_V; j++)
        if (asks)
            PREFETCH(soon + k * row + j * VEC);

    UNROLL for (int k = 0; k < THR_K; k++)
    UNROLL for (int j = 0; j < THR_V; j++)
        if (k < ks)
            rB[k][j] = LOAD_VECTOR(VEC, b + k * row + j * VEC);
    for (int i = 0; i < height; i++) {
        UNROLL for (int j = 0; j < THR_V; j++) {
            RV sum = c[j];

            UNROLL for (int k = 0; k < THR_K; k++)
                if (k < ks)
                    sum = FMA((RV)(a[k]), rB[k][j], sum);
            c[j] = sum;
        }
        c += pitch;
        a += THR_K;
    }
}

/* The last panel of columns begins earlier where it would run over the edge; its sums have a place
 * of their own.                                                                             */
DEVICE int panel_at(int n, int width) { return n + THR_N <= width ? n : width - THR_N; }

/* gS[batch][part][m][n], a row N numbers */
KERNEL(1) void
gemm_rank(int M, int N, int K, int cols, int parts, int ahead, VIEW eC, R alpha,
          GLOBAL const T *RESTRICT gA, VIEW vA,
          GLOBAL const T *RESTRICT gB, VIEW vB, GLOBAL R *RESTRICT gS, R beta,
          GLOBAL T *RESTRICT gC, VIEW vC,
          int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    LOCAL_ARRAY(R, sA, BLK_K * BLK_M);
    LOCAL_ARRAY(RV, sC, BLK_C / VEC);
    const int batch = GROUP_ID(2), n0 = GROUP_ID(0) * cols;
    const int part = GROUP_ID(1) % parts, m0 = GROUP_ID(1) / parts * BLK_M;
    const int width = N - n0 < cols ? N - n0 : cols, height = M - m0 < BLK_M ? M - m0 : BLK_M;
    const int pitch = cols / VEC;
    const int share = (K + parts - 1) / parts, first = part * share < K ? part * share : K;
    const int last = K - first < share ? K : first + share;
    const INDEX row = (INDEX)vB.s5;
    const INDEX a0 = batch_offset(vA, eC, batch) + m0 * (INDEX)vA.s5;
    const INDEX b0 = batch_offset(vB, eC, batch) + n0;
    const INDEX c0 = batch_offset(vC, eC, batch) + m0 * (INDEX)vC.s5;
    const INDEX bias0 = batch_offset(vBias, eC, batch) + m0 * (INDEX)vBias.s5;

    for (int i = 0; i < height * pitch; i++)
        sC[i] = (RV)(ZERO);
    for (int k0 = first; k0 < last; k0 += BLK_K) {
        const int depth = last - k0 < BLK_K ? last - k0 : BLK_K;
        int k = 0;

        pack_rows(sA, gA + a0 + k0 * (INDEX)vA.s6, (INDEX)vA.s5, (INDEX)vA.s6, height, depth);
        for (; k + THR_K <= depth; k += THR_K)
            for (int n = 0; n < width; n += THR_N) {
                GLOBAL const T *const b = gB + b0 + (k0 + k) * row;
                const int soon = n + ahead;     /* if not in these rows of B, in the next */

                if (ahead)
                    update(THR_K, 1, sC + n / VEC, pitch, height, sA + k * height, b + panel_at(n, width), row,
                           b + (soon < width ? soon : THR_K * row + soon - width));
                else
                    update(THR_K, 0, sC + n / VEC, pitch, height, sA + k * height, b + panel_at(n, width), row, b);
            }
        for (; k < depth; k++)
            for (int n = 0; n < width; n += THR_N)
                update(1, 0, sC + n / VEC, pitch, height, sA + k / THR_K * THR_K * height + k % THR_K,
                       gB + b0 + (k0 + k) * row + panel_at(n, width), row, gB);
    }
    for (int m = 0; m < height; m++)
        for (int n = 0; n < width; n += THR_N) {
            const int at = n0 + panel_at(n, width), skip = n0 + n - at;
            LOCAL const RV *sum = sC + m * pitch + n / VEC;

            if (parts == 1)
                tile_store_row(sum, skip, THR_N, gC, c0 + m * (INDEX)vC.s5 + at * (INDEX)vC.s6, (INDEX)vC.s6, alpha,
                               beta, has_bias, gBias, bias0 + m * (INDEX)vBias.s5 + at * (INDEX)vBias.s6,
                               (INDEX)vBias.s6, act);
            else
                for (int i = skip; i < THR_N; i++)
                    gS[((INDEX)(batch * parts + part) * M + m0 + m) * N + at + i] = ((LOCAL const R *)sum)[i];
        }
}

KERNEL(1) void
sum(int M, int N, int parts, VIEW eC, R alpha, GLOBAL const R *RESTRICT gS, R beta,
    GLOBAL T *RESTRICT gC, VIEW vC,
    int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    LOCAL_ARRAY(RV, total, THR_V);
    const int batch = GROUP_ID(2), m = GROUP_ID(1), n0 = GROUP_ID(0) * SUM_N;
    const INDEX c0 = batch_offset(vC, eC, batch) + m * (INDEX)vC.s5;
    const INDEX bias0 = batch_offset(vBias, eC, batch) + m * (INDEX)vBias.s5;

    for (int n = n0; n < n0 + SUM_N && n < N; n += THR_N) {
        const int at = panel_at(n, N), skip = n - at;
        GLOBAL const R *from = gS + ((INDEX)batch * parts * M + m) * N + at;
        UNROLL for (int j = 0; j < THR_V; j++) {
            RV s = VLOAD(VEC, from + j * VEC);

            for (int part = 1; part < parts; part++)
                s += VLOAD(VEC, from + (INDEX)part * M * N + j * VEC);
            total[j] = s;
        }
        tile_store_row(total, skip, THR_N, gC, c0 + at * (INDEX)vC.s6, (INDEX)vC.s6, alpha, beta,
                       has_bias, gBias, bias0 + at * (INDEX)vBias.s6, (INDEX)vBias.s6, act);
    }
}
