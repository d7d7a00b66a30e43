/* cl/gemm/cpu_dot.cl - C := act(alpha A B + beta C + bias), for CPUs, where A and B are K-major
 * and M is small
 *
 * The decode step of a language model: each weight is read from memory once, in order, and
 * nothing is copied. Each element of C is a dot product, of which a vector of partial sums is kept:
 * THR_M x THR_N of them in registers, over a block of K. Between blocks of K the partial sums of
 * the whole work-group stay in local memory; a block of A stays in the cache for all columns.
 *
 *             k0    BLK_K                  k0    BLK_K
 *     A    =========|=======    B^T  ----------|-------  column n     C[m][n] = sum over the vector
 *          =========|=======         ----------|-------
 *
 * Parameters, from gemm.tune: THR_M THR_N VEC BLK_M BLK_N BLK_K. THR_M * THR_N + THR_N + 1 vectors
 * must fit the registers, BLK_M * BLK_N + (BLK_M + THR_N) * BLK_K / VEC vectors the second-level
 * cache.
 */
typedef VECTOR(R, VEC) RV;

#if BLK_N % THR_N || BLK_M % THR_M || BLK_K % VEC
#error "a register tile must divide the work-group's"
#endif

DEVICE R sum_of(RV v)
{
#if VEC == 16
    const VECTOR(R, 8) v8 = v.lo + v.hi;
    const VECTOR(R, 4) v4 = v8.lo + v8.hi;
#elif VEC == 8
    const VECTOR(R, 4) v4 = v.lo + v.hi;
#elif VEC == 4
    const RV v4 = v;
#else
#error "VEC must be 4, 8 or 16"
#endif
    R s[4];

    VSTORE(4, s, v4);
    return (s[0] + s[2]) + (s[1] + s[3]);
}

/* partial[i][j] += row i of A times column j of B, for `rows` x THR_N, over `depth` of k in whole vectors.
 * Past the edge the last row or column is read again. `rows` is constant at each call.             */
DEVICE void dots(const int rows, LOCAL R *RESTRICT partial,
                 GLOBAL const T *RESTRICT gA, INDEX row, int height,
                 GLOBAL const T *RESTRICT gB, INDEX col, int width, int depth, int is_first)
{
    GLOBAL const T *a[THR_M], *b[THR_N];
    RV rC[THR_M][THR_N];

    UNROLL for (int i = 0; i < THR_M; i++)
        if (i < rows)
            a[i] = gA + (i < height ? i : height - 1) * row;
    UNROLL for (int j = 0; j < THR_N; j++)
        b[j] = gB + (j < width ? j : width - 1) * col;
    UNROLL for (int i = 0; i < THR_M; i++)
    UNROLL for (int j = 0; j < THR_N; j++)
        if (i < rows)
            rC[i][j] = is_first ? (RV)(ZERO) : VLOAD(VEC, partial + (i * BLK_N + j) * VEC);

    for (int k = 0; k < depth; k += VEC) {
        RV rB[THR_N];

        UNROLL for (int j = 0; j < THR_N; j++)
            rB[j] = LOAD_VECTOR(VEC, b[j] + k);
        UNROLL for (int i = 0; i < THR_M; i++)
            if (i < rows) {
                const RV rA = LOAD_VECTOR(VEC, a[i] + k);

                UNROLL for (int j = 0; j < THR_N; j++)
                    rC[i][j] = FMA(rA, rB[j], rC[i][j]);
            }
    }
    UNROLL for (int i = 0; i < THR_M; i++)
    UNROLL for (int j = 0; j < THR_N; j++)
        if (i < rows)
            VSTORE(VEC, partial + (i * BLK_N + j) * VEC, rC[i][j]);
}

KERNEL(1) void
gemm_cpu_dot(int M, int N, int K, int cols, VIEW eC, R alpha,
         GLOBAL const T *RESTRICT gA, VIEW vA,
         GLOBAL const T *RESTRICT gB, VIEW vB, OUTPUT_PARAMS)
{
    LOCAL_ARRAY(R, sC, BLK_M * BLK_N * VEC);
    const int batch = GROUP_ID(2), n0 = GROUP_ID(0) * cols, m0 = GROUP_ID(1) * BLK_M;
    const int width = N - n0 < cols ? N - n0 : cols, height = M - m0 < BLK_M ? M - m0 : BLK_M;
    const INDEX a0 = batch_offset(vA, eC, batch) + m0 * (INDEX)vA.s5;
    const INDEX b0 = batch_offset(vB, eC, batch) + n0 * (INDEX)vB.s6;
    const struct output c = OUTPUT(batch);
    const int whole = K / VEC * VEC,
              block = height < 16 ? 16 / height * BLK_K : BLK_K;        /* of K; longer for few rows */
    int k0 = 0;

    do {                                        /* once also when K is less than a vector */
        const int depth = whole - k0 < block ? whole - k0 : block;

        for (int n = 0; n < width; n += THR_N)
            for (int m = 0; m < height; m += THR_M) {
                LOCAL R *partial = sC + (m * BLK_N + n) * VEC;
                GLOBAL const T *a = gA + a0 + m * (INDEX)vA.s5 + k0, *b = gB + b0 + n * (INDEX)vB.s6 + k0;
                const int rows = height - m, columns = width - n;

                if (rows > THR_M / 2)
                    dots(THR_M, partial, a, (INDEX)vA.s5, rows, b, (INDEX)vB.s6, columns, depth, k0 == 0);
                else if (rows > THR_M / 4)
                    dots(THR_M / 2, partial, a, (INDEX)vA.s5, rows, b, (INDEX)vB.s6, columns, depth, k0 == 0);
                else if (rows > 1)
                    dots(2, partial, a, (INDEX)vA.s5, rows, b, (INDEX)vB.s6, columns, depth, k0 == 0);
                else
                    dots(1, partial, a, (INDEX)vA.s5, rows, b, (INDEX)vB.s6, columns, depth, k0 == 0);
            }
        k0 += block;
    } while (k0 < whole);

    for (int m = 0; m < height; m++)
        for (int n = 0; n < width; n++) {
            R sum = sum_of(VLOAD(VEC, sC + (m * BLK_N + n) * VEC));

            for (int k = whole; k < K; k++)
                sum = FMA(LOAD(gA, a0 + m * (INDEX)vA.s5 + k), LOAD(gB, b0 + n * (INDEX)vB.s6 + k), sum);
            store_element(&c, m0 + m, n0 + n, sum);
        }
}
