/* splitk_sum.cl - C := act(alpha (P0 + P1 + ...) + beta C + bias): the reduction of split-K
 *
 * gP[split][batch][m][n] holds the partial sums of each split.  Those of an element are added in the
 * order of the splits, so that the result is deterministic.  A work-item has four adjacent elements of a
 * row if N is a multiple of four: finding an element's place costs more than adding its partial sums.
 *
 * Parameter, from gemm.tune: ITEMS.
 */
#define LOADS 8                                 /* in flight at a time */
#define R4    VECTOR(R, 4)

KERNEL(ITEMS) void
gemm_sum(int M, int N, int batches, int splits, int start, VIEW eC, R alpha, GLOBAL const R *RESTRICT gP,
         OUTPUT_PARAMS)
{
    const int width = N % 4 ? 1 : 4;
    const INDEX elements = (INDEX)batches * M * N, o = ((INDEX)GROUP_ID(0) * ITEMS + LOCAL_ID()) * width;
    GLOBAL const R *p = gP + start + o;
    R sum[4] = { ZERO, ZERO, ZERO, ZERO };

    if (o >= elements)
        return;
    if (width == 4) {
        R4 all = (R4)(ZERO);

        for (int i = 0; i < splits; i += LOADS) {
            R4 r[LOADS];

            UNROLL for (int j = 0; j < LOADS; j++)
                r[j] = VLOAD_ALIGNED(R4, p + (i + j < splits ? i + j : i) * elements);
            UNROLL for (int j = 0; j < LOADS; j++)
                all = i + j < splits ? all + r[j] : all;
        }
        VSTORE(4, sum, all);
    } else {
        for (int i = 0; i < splits; i += LOADS) {
            R r[LOADS];

            UNROLL for (int j = 0; j < LOADS; j++)
                r[j] = p[(i + j < splits ? i + j : i) * elements];
            UNROLL for (int j = 0; j < LOADS; j++)
                sum[0] = i + j < splits ? sum[0] + r[j] : sum[0];
        }
    }

    /* The divisions follow the loads, which are already in flight. */
    const INDEX row = o / N, n = o - row * N;
    const int batch = batches == 1 ? 0 : (int)(row / M);
    const struct output c = OUTPUT(batch);

    store_vector(&c, (int)(row - (INDEX)batch * M), (int)n, sum, width);
}
