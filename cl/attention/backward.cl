/* cl/attention/backward.cl - what the gradients of attention need of each row of queries, once for all keys
 *
 *     shift := factor lse, or +infinity where the row sees nothing, so that exp(score - shift) is 0
 *     delta := sum of dO O
 *
 * A head has `pitch` shifts, then `pitch` deltas; rows behind the last query have +infinity and 0.  A
 * work-group has 8 rows of one head, each of 16 work-items, whose sums are added in order.
 *
 * Rows have 16-bit elements, in whole vectors of 16 bytes.
 *
 * Takes  INFINITE (cl/tile/activation.h); atoms/nvidia/memory.h
 * Gives  attention_statistics
 */
#define STATISTICS_ITEMS 128                    /* of a work-group */
#define STATISTICS_EACH  16                     /* of a row */

/* The share of work-item i of the sum of products of two rows. */
DEVICE float share_of(GLOBAL const T *a, GLOBAL const T *b, int length, int i)
{
    float even = 0.0f, odd = 0.0f;

    for (int n = 8 * i; n < length; n += 8 * STATISTICS_EACH) {
        UINT32 u[4], v[4];

        load16(u, a + n, 1);
        load16(v, b + n, 1);
        UNROLL for (int j = 0; j < 4; j++) {
            even = FMA(OF(LOWER, TYPE)(u[j]), OF(LOWER, TYPE)(v[j]), even);
            odd = FMA(OF(UPPER, TYPE)(u[j]), OF(UPPER, TYPE)(v[j]), odd);
        }
    }
    return even + odd;
}

KERNEL(STATISTICS_ITEMS) void
attention_statistics(int queries, int DV, GLOBAL const T *RESTRICT gO, VIEW vO, GLOBAL const T *RESTRICT gDO,
                     VIEW vDO, GLOBAL const R *RESTRICT gLse, VIEW vLse, R factor, GLOBAL R *RESTRICT gS,
                     int start, int pitch, int heads)
{
    LOCAL_ARRAY(R, sums, STATISTICS_ITEMS);

    const int me = LOCAL_ID(), i = me % STATISTICS_EACH, h = GROUP_ID(1), batch = GROUP_ID(2);
    const int m = GROUP_ID(0) * (STATISTICS_ITEMS / STATISTICS_EACH) + me / STATISTICS_EACH;
    const INDEX o = (INDEX)vO.s0 + batch * (INDEX)vO.s3 + h * (INDEX)vO.s4 + m * (INDEX)vO.s5;
    const INDEX d = (INDEX)vDO.s0 + batch * (INDEX)vDO.s3 + h * (INDEX)vDO.s4 + m * (INDEX)vDO.s5;
    GLOBAL R *const shift = gS + start + ((INDEX)batch * heads + h) * 2 * pitch;
    R sum = ZERO;

    if (m < queries)
        sum = share_of(gO + o, gDO + d, DV, i);
    sums[me] = sum;
    BARRIER();
    if (i == 0 && m < pitch) {
        const INDEX at = (INDEX)vLse.s0 + batch * (INDEX)vLse.s4 + h * (INDEX)vLse.s5 + m * (INDEX)vLse.s6;
        R lse = ZERO - INFINITE;

        if (m < queries)
            lse = gLse[at];
        for (int j = 1; j < STATISTICS_EACH; j++)
            sum = sum + sums[me + j];
        shift[m] = lse == ZERO - INFINITE ? INFINITE : factor * lse;
        shift[pitch + m] = sum;
    }
}
