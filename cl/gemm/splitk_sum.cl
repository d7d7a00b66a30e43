/* splitk_sum.cl - C := act(alpha (P0 + P1 + ...) + beta C + bias), where K was split into parts
 *
 * gP[part][batch][m][n] are sums over parts of K.  Each element's are added in their order, so the
 * result is the same each time.  An item has four neighbours of a row, where N is a multiple of that:
 * finding out where an element lies takes longer than adding its parts.  Parameter: ITEMS.
 */
#define READS 8                                 /* under way together */
#define R4    VECTOR(R, 4)

KERNEL(ITEMS) void
gemm_sum(int M, int N, int batches, int parts, int start, VIEW eC, R alpha, GLOBAL const R *RESTRICT gP, R beta,
         GLOBAL T *RESTRICT gC, VIEW vC,
         int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    const int each = N % 4 ? 1 : 4;
    const INDEX elements = (INDEX)batches * M * N, o = ((INDEX)GROUP_ID(0) * ITEMS + LOCAL_ID()) * each;
    GLOBAL const R *p = gP + start + o;
    R sum[4] = { ZERO, ZERO, ZERO, ZERO };

    if (o >= elements)
        return;
    if (each == 4) {
        R4 all = (R4)(ZERO);

        for (int i = 0; i < parts; i += READS) {
            R4 r[READS];

            UNROLL for (int j = 0; j < READS; j++)
                r[j] = VLOAD_ALIGNED(R4, p + (i + j < parts ? i + j : i) * elements);
            UNROLL for (int j = 0; j < READS; j++)
                all = i + j < parts ? all + r[j] : all;
        }
        VSTORE(4, sum, all);
    } else {
        for (int i = 0; i < parts; i += READS) {
            R r[READS];

            UNROLL for (int j = 0; j < READS; j++)
                r[j] = p[(i + j < parts ? i + j : i) * elements];
            UNROLL for (int j = 0; j < READS; j++)
                sum[0] = i + j < parts ? sum[0] + r[j] : sum[0];
        }
    }

    /* where they lie: after the reads have begun */
    const INDEX line = o / N, n = o - line * N;
    const int batch = batches == 1 ? 0 : (int)(line / M);
    const INDEX m = line - (INDEX)batch * M;

    store_neighbours(sum, each, batches == 1, batch, m, n, eC, alpha, beta, gC, vC, has_bias, gBias, vBias, act);
}
