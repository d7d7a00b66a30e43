/* gemm_dot.cl - C := act(alpha A B + beta C + bias), for CPUs, where rows of A and columns of
 * B run along memory and one of M, N is small
 *
 * The decode step of a language model: each weight is read once, so nothing is copied.  Each
 * element of C is a dot product; a register tile of THR_M x THR_N of them keeps a vector of
 * partial sums each.
 *
 *          k -->                        k -->
 *     A   ======= row m           B^T  ======= column n        C[m][n] = sum over the vector
 *
 * Parameters, from gemm.tune: THR_M THR_N VEC.  THR_M * THR_N + THR_N + 1 vectors must fit
 * the registers.
 */
typedef VECTOR(R, VEC) RV;

DEVICE R sum_of(RV v)
{
    R e[VEC], s = ZERO;

    VSTORE(VEC, e, v);
    UNROLL for (int half_of = VEC / 2; half_of > 0; half_of /= 2)
        UNROLL for (int i = 0; i < half_of; i++)
            e[i] += e[i + half_of];
    s += e[0];
    return s;
}

KERNEL(1) void
gemm_dot(int M, int N, int K, int cols, VIEW eC, R alpha,
         GLOBAL const T *RESTRICT gA, VIEW vA,
         GLOBAL const T *RESTRICT gB, VIEW vB, R beta,
         GLOBAL T *RESTRICT gC, VIEW vC,
         int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    const int batch = GROUP_ID(2), first = GROUP_ID(0) * cols, last = first + cols < N ? first + cols : N;
    const int m0 = GROUP_ID(1) * THR_M;
    const INDEX a0 = batch_offset(vA, eC, batch), b0 = batch_offset(vB, eC, batch);
    const INDEX c0 = batch_offset(vC, eC, batch), bias0 = batch_offset(vBias, eC, batch);
    const int whole = K / VEC * VEC;

    for (int n0 = first; n0 < last; n0 += THR_N) {
        GLOBAL const T *a[THR_M], *b[THR_N];    /* past the edge, the last row or column again */
        RV rC[THR_M][THR_N];

        UNROLL for (int i = 0; i < THR_M; i++)
            a[i] = gA + a0 + (m0 + i < M ? m0 + i : M - 1) * (INDEX)vA.s5;
        UNROLL for (int j = 0; j < THR_N; j++)
            b[j] = gB + b0 + (n0 + j < N ? n0 + j : N - 1) * (INDEX)vB.s6;
        UNROLL for (int i = 0; i < THR_M; i++)
        UNROLL for (int j = 0; j < THR_N; j++)
            rC[i][j] = (RV)(ZERO);

        for (int k = 0; k < whole; k += VEC) {
            RV rB[THR_N];

            UNROLL for (int j = 0; j < THR_N; j++)
                rB[j] = LOAD_VECTOR(VEC, b[j] + k);
            UNROLL for (int i = 0; i < THR_M; i++) {
                const RV rA = LOAD_VECTOR(VEC, a[i] + k);

                UNROLL for (int j = 0; j < THR_N; j++)
                    rC[i][j] = FMA(rA, rB[j], rC[i][j]);
            }
        }
        UNROLL for (int i = 0; i < THR_M; i++)
        UNROLL for (int j = 0; j < THR_N; j++)
            if (m0 + i < M && n0 + j < last) {
                const int m = m0 + i, n = n0 + j;
                const INDEX at = c0 + m * (INDEX)vC.s5 + n * (INDEX)vC.s6;
                R sum = sum_of(rC[i][j]);

                for (int k = whole; k < K; k++)
                    sum = FMA(LOAD(a[i], k), LOAD(b[j], k), sum);
                STORE(gC, at, epilogue(sum, alpha, beta, gC, at, has_bias, gBias,
                                       bias0 + m * (INDEX)vBias.s5 + n * (INDEX)vBias.s6, act));
            }
    }
}
