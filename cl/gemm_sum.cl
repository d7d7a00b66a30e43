/* gemm_sum.cl - C := act(alpha (P0 + P1 + ...) + beta C + bias), where K was split into parts
 *
 * gP[part][batch][m][n] are sums over parts of K.  Each element's are added in their order, so the
 * result is the same each time.  Parameter: ITEMS.
 */
#define READS 8                                 /* under way together */

KERNEL(ITEMS) void
gemm_sum(int M, int N, int batches, int parts, int start, VIEW eC, R alpha, GLOBAL const R *RESTRICT gP, R beta,
         GLOBAL T *RESTRICT gC, VIEW vC,
         int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    const INDEX elements = (INDEX)batches * M * N, o = (INDEX)GROUP_ID(0) * ITEMS + LOCAL_ID();
    const INDEX line = o / N, n = o - line * N;
    const int batch = (int)(line / M);
    const INDEX m = line - (INDEX)batch * M;
    GLOBAL const R *p = gP + start + o;
    R sum = ZERO;
    int i = 0;

    if (o >= elements)
        return;
    for (; parts - i >= READS; i += READS) {
        R r[READS];

        UNROLL for (int j = 0; j < READS; j++)
            r[j] = p[(i + j) * elements];
        UNROLL for (int j = 0; j < READS; j++)
            sum = sum + r[j];
    }
    for (; i < parts; i++)
        sum = sum + p[i * elements];

    const INDEX at = batch_offset(vC, eC, batch) + m * (INDEX)vC.s5 + n * (INDEX)vC.s6;

    STORE(gC, at, epilogue(sum, alpha, beta, gC, at, has_bias, gBias,
                           batch_offset(vBias, eC, batch) + m * (INDEX)vBias.s5 + n * (INDEX)vBias.s6, act));
}
