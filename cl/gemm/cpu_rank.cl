/* cl/gemm/cpu_rank.cl - C := act(alpha A B + beta C + bias), for CPUs, where B is N-major and M is small
 *
 * B is read once, row by row, in order, and nothing is copied. A work-group keeps its block of C in
 * the first-level cache and adds the products with THR_K rows of B at a time (a rank-THR_K update):
 * a vector of each row is loaded once and serves all rows of C.
 *
 *                +=====================+
 *     THR_K rows +=====================+  B       C[m] += A[m][k] B[k] + A[m][k + 1] B[k + 1] + ...
 *                +=====================+
 *       +-+      +---------------------+
 *     A | |    C |        cols         |          sums run in order of k, one fused multiply-add
 *       +-+      +---------------------+          each: bit-identical everywhere, save with split-K
 *
 * Long rows suit the prefetchers of memory and the TLB. So a large problem is split along K, not
 * along N: each split leaves its partial sums in the workspace, and `sum` adds them, always in the
 * same order. Columns are divided evenly. Long rows that come from memory are prefetched `ahead`
 * columns in advance; rows in the caches are not, for it would cost more than it gains.
 *
 * Where B is in the caches, rows a multiple of 4096 bytes apart share one set of the first level:
 * THR_K should not exceed its ways.
 *
 * Parameters, from gemm.tune: THR_K THR_V VEC BLK_M BLK_C BLK_K. THR_K * THR_V + THR_V + 1 vectors
 * must fit the registers, the BLK_C elements of C the first-level cache.
 */
#define SUM_N 1024                              /* columns for a work-group of `sum` */

#if THR_N > 32 || BLK_C < BLK_M * THR_N
#error "a panel of columns must be at most 32 wide, and BLK_C must hold one of BLK_M rows"
#endif
#if BLK_K % THR_K
#error "THR_K must divide BLK_K"
#endif

/* Packs rows of A in the order of use, [k / THR_K][m][k % THR_K]. */
DEVICE void pack_rows(LOCAL R *RESTRICT to, GLOBAL const T *RESTRICT g, INDEX row_step, INDEX k_step,
                      int height, int depth)
{
    const int whole = depth / THR_K * THR_K;
    int m = 0;

    if (k_step == 1)
        for (; m < height; m++)
            for (int k = 0; k < whole; k += THR_K)
                UNROLL for (int i = 0; i < THR_K; i++)
                    to[k * height + m * THR_K + i] = LOAD(g, m * row_step + k + i);
#if THR_K % 4 == 0
    if (row_step == 1)
        for (; m + VEC <= height; m += VEC)
            for (int k = 0; k < whole; k += 4) {
                LOCAL R *at = to + k / THR_K * THR_K * height + m * THR_K + k % THR_K;
                GLOBAL const T *from = g + m + k * k_step;
                R four[4 * VEC];

                transpose(four, LOAD_VECTOR(VEC, from), LOAD_VECTOR(VEC, from + k_step),
                          LOAD_VECTOR(VEC, from + 2 * k_step), LOAD_VECTOR(VEC, from + 3 * k_step));
                UNROLL for (int i = 0; i < VEC; i++)
                    VSTORE(4, at + i * THR_K, VLOAD(4, four + 4 * i));
            }
#endif
    for (int i = 0; i < height; i++)
        for (int k = i < m ? whole : 0; k < depth; k++)
            to[k / THR_K * THR_K * height + i * THR_K + k % THR_K] = LOAD(g, i * row_step + k * k_step);
}

/* C += A B for `height` rows and one panel of columns, over `ks` of k; with `prefetches`, the panel at
 * `later` is prefetched. `ks` and `prefetches` are constant at each call. A row of C is `pitch` vectors. */
DEVICE void update(const int ks, const int prefetches, LOCAL RV *RESTRICT c, int pitch, int height,
                   LOCAL const R *RESTRICT a, GLOBAL const T *RESTRICT b, INDEX row, GLOBAL const T *later)
{
    RV rB[THR_K][THR_V];

    UNROLL for (int k = 0; k < THR_K; k++)
    UNROLL for (int j = 0; j < THR_V; j++)
        if (prefetches)
            PREFETCH(later + k * row + j * VEC);

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

/* The first column of a panel. The last panel begins earlier where it would cross the edge; it overlaps
 * the one before, but has accumulators of its own.                                                 */
DEVICE int panel_at(int n, int width) { return n + THR_N <= width ? n : width - THR_N; }

/* gS[batch][split][m][n], in rows of N elements */
KERNEL(1) void
gemm_cpu_rank(int M, int N, int K, int cols, int splits, int ahead, VIEW eC, R alpha,
          GLOBAL const T *RESTRICT gA, VIEW vA,
          GLOBAL const T *RESTRICT gB, VIEW vB, GLOBAL R *RESTRICT gS, OUTPUT_PARAMS)
{
    LOCAL_ARRAY(R, sA, BLK_K * BLK_M);
    LOCAL_ARRAY(RV, sC, BLK_C / VEC);
    const int batch = GROUP_ID(2), n0 = GROUP_ID(0) * cols;
    const int split = GROUP_ID(1) % splits, m0 = GROUP_ID(1) / splits * BLK_M;
    const int width = N - n0 < cols ? N - n0 : cols, height = M - m0 < BLK_M ? M - m0 : BLK_M;
    const int pitch = cols / VEC;
    const int split_k = (K + splits - 1) / splits, first = split * split_k < K ? split * split_k : K;
    const int last = K - first < split_k ? K : first + split_k;
    const INDEX row = (INDEX)vB.s5;
    const INDEX a0 = batch_offset(vA, eC, batch) + m0 * (INDEX)vA.s5;
    const INDEX b0 = batch_offset(vB, eC, batch) + n0;
    const struct output c = OUTPUT(batch);

    for (int i = 0; i < height * pitch; i++)
        sC[i] = (RV)(ZERO);
    for (int k0 = first; k0 < last; k0 += BLK_K) {
        const int depth = last - k0 < BLK_K ? last - k0 : BLK_K;
        int k = 0;

        pack_rows(sA, gA + a0 + k0 * (INDEX)vA.s6, (INDEX)vA.s5, (INDEX)vA.s6, height, depth);
        for (; k + THR_K <= depth; k += THR_K)
            for (int n = 0; n < width; n += THR_N) {
                GLOBAL const T *const b = gB + b0 + (k0 + k) * row;
                const int later = n + ahead;     /* in these rows of B, or in the next */

                if (ahead)
                    update(THR_K, 1, sC + n / VEC, pitch, height, sA + k * height,
                           b + panel_at(n, width), row,
                           b + (later < width ? later : THR_K * row + later - width));
                else
                    update(THR_K, 0, sC + n / VEC, pitch, height, sA + k * height,
                           b + panel_at(n, width), row, b);
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

            if (splits == 1)
                tile_store_row(sum, skip, THR_N, &c, m0 + m, at, 0);
            else
                for (int i = skip; i < THR_N; i++)
                    gS[((INDEX)(batch * splits + split) * M + m0 + m) * N + at + i] =
                        ((LOCAL const R *)sum)[i];
        }
}

KERNEL(1) void
sum(int M, int N, int splits, VIEW eC, R alpha, GLOBAL const R *RESTRICT gS, OUTPUT_PARAMS)
{
    LOCAL_ARRAY(RV, total, THR_V);
    const int batch = GROUP_ID(2), m = GROUP_ID(1), n0 = GROUP_ID(0) * SUM_N;
    const struct output c = OUTPUT(batch);

    for (int n = n0; n < n0 + SUM_N && n < N; n += THR_N) {
        const int at = panel_at(n, N), skip = n - at;
        GLOBAL const R *from = gS + ((INDEX)batch * splits * M + m) * N + at;
        UNROLL for (int j = 0; j < THR_V; j++) {
            RV s = VLOAD(VEC, from + j * VEC);

            for (int split = 1; split < splits; split++)
                s += VLOAD(VEC, from + (INDEX)split * M * N + j * VEC);
            total[j] = s;
        }
        tile_store_row(total, skip, THR_N, &c, m, at, 0);
    }
}
