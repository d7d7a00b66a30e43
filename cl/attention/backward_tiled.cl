/* cl/attention/backward_tiled.cl - the gradients of attention, by the tile of cl/tile/fma.h
 *
 *     P = exp(s - lse), dS = P (dO V^T - sum dO O) (1 - tanh^2),  of pairs of a query and a key that it sees
 *
 *     by keys      dV = P^T dO and dK = scale dS^T Q.  A work-group has BLK_M keys of one head, and takes the
 *                  queries of all heads that read it in blocks of BLK_N.
 *     by queries   dQ = scale dS K.  A work-group has BLK_M queries of one head, and takes keys in blocks of
 *                  BLK_N.
 *
 * So the rows are X = K and X2 = V, the columns Y = Q and Y2 = dO, and D, D2 the gradients of X and X2; or
 * the rows are X = Q and X2 = dO, the columns Y = K and Y2 = V, and D alone is wanted.
 *
 * Both compute P and dS anew, so that nothing is added in memory: sums run in one order.  P and dS are in
 * local memory, as first operands of the products that they are in.
 *
 * No barrier is conditional, since some compilers copy what follows one.
 *
 * Parameters, from attention.tune: BLK_M BLK_N BLK_K THR_M THR_N (see cl/tile/fma.h).
 * Method: Dao et al., "FlashAttention", 2022.
 */
#define PAIR (BLK_N * PITCH_A)                  /* elements of a tile of weights, in local memory */
#define QUERIES_MOST (BLK_M > BLK_N ? BLK_M : BLK_N)

/* What pairs of one head have in common. */
struct pairs {
    struct sight sight;
    int queries, has_mask, by_keys;             /* by_keys: rows are keys, columns are queries */
    R scale, softcap;
    GLOBAL const T *mask;
    INDEX mask_row, mask_col;
    LOCAL const R *shift, *delta;               /* of queries from m0 on */
    int m0;
};

/* Of query m and key n: s, a sum of products, becomes P, and d, one of dO V^T, becomes dS / scale. */
DEVICE void weigh_pair(LOCAL R *s, LOCAL R *d, int m, int n, const struct pairs *it)
{
    const int seen = m < it->queries && n >= sight_begin(&it->sight, m) && n < sight_end(&it->sight, m);
    R z = it->scale * *s, slope = (R)1, p = ZERO;

    if (it->softcap > ZERO) {
        const R t = tanh_of(z / it->softcap);

        slope = FMA(ZERO - t, t, slope);
        z = it->softcap * t;
    }
    if (seen) {
        if (it->has_mask)
            z = z + LOAD(it->mask, m * it->mask_row + n * it->mask_col);
        p = exp_of(z - it->shift[m - it->m0]);
        slope = slope * p * (*d - it->delta[m - it->m0]);
    }
    *s = p;
    *d = seen ? slope : ZERO;
}

/* Rows of out, of its gradient, and of lse, of one head. */
struct results {
    GLOBAL const T *out, *d_out;
    GLOBAL const R *lse;
    INDEX out_row, out_col, d_row, d_col, lse_row;
};

/* Of queries from m0 on: shift := lse, or +infinity where the query sees nothing; delta := sum of dO O. */
DEVICE void sum_rows(LOCAL R *shift, LOCAL R *delta, int m0, int count, int queries, int DV,
                     const struct results *it)
{
    BARRIER();                                  /* others may still read what was there */
    for (int i = LOCAL_ID(); i < count; i += FMA_ITEMS) {
        const int m = m0 + i;
        R sum = ZERO, lse = ZERO - INFINITE;

        if (m < queries) {
            for (int n = 0; n < DV; n++)
                sum = FMA(LOAD(it->out, m * it->out_row + n * it->out_col),
                          LOAD(it->d_out, m * it->d_row + n * it->d_col), sum);
            lse = it->lse[m * it->lse_row];
        }
        shift[i] = lse == ZERO - INFINITE ? INFINITE : lse;
        delta[i] = sum;
    }
    BARRIER();
}

/* Two products of rows from x0 on and columns, over K and K2, become weights, in local memory: P at sPair
 * and dS at sPair + PAIR, with element (m, n) at n PITCH_A + m, as load_a() wants it.                      */
DEVICE void weigh_tile(LOCAL R *sPair, LOCAL R *sA, LOCAL R *sB,
                       const struct operand_a a[2], const struct operand_b b[2], int x0, int y0,
                       const struct pairs *pairs)
{
    NO_UNROLL for (int w = 0; w < 2; w++) {
        R part[THR_M][THR_N];

        tile_multiply(part, sA, sB, &a[w], &b[w], x0, 0, a[w].K);
        UNROLL for (int i = 0; i < THR_M; i++)
        UNROLL for (int j = 0; j < THR_N; j++)
            sPair[w * PAIR + TILE_COL(0, j) * PITCH_A + TILE_ROW(0, i)] = part[i][j];
    }
    BARRIER();
    NO_UNROLL for (int i = LOCAL_ID(); i < BLK_M * BLK_N; i += FMA_ITEMS) {
        const int x = i % BLK_M, y = i / BLK_M, at = y * PITCH_A + x;

        weigh_pair(&sPair[at], &sPair[PAIR + at], pairs->by_keys ? y0 + y : x0 + x,
                   pairs->by_keys ? x0 + x : y0 + y, pairs);
    }
    BARRIER();
}

/* out += weights B, which all work-items of the work-group have a tile of; depth is BLK_N, or 0. */
DEVICE void add_product(R out[TILES][THR_M][THR_N], LOCAL R *sA, LOCAL R *sB, LOCAL R *weights,
                        const struct operand_b *b, int depth)
{
    const struct operand_a a = { 0, weights, 0, 0, BLK_M, BLK_N };

    UNROLL for (int t = 0; t < TILES; t++) {
        R part[THR_M][THR_N];

        tile_multiply(part, sA, sB, &a, b, 0, t * BLK_N, depth);
        UNROLL for (int i = 0; i < THR_M; i++)
        UNROLL for (int j = 0; j < THR_N; j++)
            out[t][i][j] = out[t][i][j] + part[i][j];
    }
}

DEVICE void clear_tiles(R out[TILES][THR_M][THR_N])
{
    UNROLL for (int t = 0; t < TILES; t++)
    UNROLL for (int i = 0; i < THR_M; i++)
    UNROLL for (int j = 0; j < THR_N; j++)
        out[t][i][j] = ZERO;
}

/* Rows from m0 on of g, which has M rows of N elements. */
DEVICE void store_tiles(GLOBAL T *g, INDEX row, INDEX col, int m0, int M, int N, R factor,
                        R out[TILES][THR_M][THR_N])
{
    UNROLL for (int t = 0; t < TILES; t++)
    UNROLL for (int i = 0; i < THR_M; i++)
    UNROLL for (int j = 0; j < THR_N; j++) {
        const int m = TILE_ROW(m0, i), n = TILE_COL(t * BLK_N, j);

        if (m < M && n < N)
            STORE(g, m * row + n * col, factor * out[t][i][j]);
    }
}

#define HEAD_OF(v, batch, h) ((INDEX)(v).s0 + (batch) * (INDEX)(v).s3 + (h) * (INDEX)(v).s4)

KERNEL(FMA_ITEMS) void
attention_gradients(int queries, int keys, int D, int DV, int group, int causal, int offset, int window,
                    R scale, R softcap,
                    GLOBAL const T *RESTRICT gX, VIEW vX, GLOBAL const T *RESTRICT gX2, VIEW vX2,
                    GLOBAL const T *RESTRICT gY, VIEW vY, GLOBAL const T *RESTRICT gY2, VIEW vY2,
                    GLOBAL const T *RESTRICT gO, VIEW vO, GLOBAL const R *RESTRICT gLse, VIEW vLse,
                    GLOBAL const T *RESTRICT gMask, VIEW vMask, int has_mask, int by_keys,
                    GLOBAL T *RESTRICT gD, VIEW vD, int wants_d, GLOBAL T *RESTRICT gD2, VIEW vD2,
                    int wants_d2)
{
    LOCAL_ARRAY(R, sA, BLK_K * PITCH_A);
    LOCAL_ARRAY(R, sB, BLK_K * PITCH_B);
    LOCAL_ARRAY(R, sPair, 2 * PAIR);
    LOCAL_ARRAY(R, sShift, QUERIES_MOST);
    LOCAL_ARRAY(R, sDelta, QUERIES_MOST);

    const int count = by_keys ? keys : queries, blocks = (count + BLK_M - 1) / BLK_M;
    /* causal: the longest first */
    const int x0 = (by_keys ? GROUP_ID(0) : blocks - 1 - GROUP_ID(0)) * BLK_M, batch = GROUP_ID(2);
    const int last = x0 + BLK_M < count ? x0 + BLK_M - 1 : count - 1, head = GROUP_ID(1);
    struct pairs pairs = { { keys, causal, offset, window }, queries, has_mask, by_keys, scale, softcap,
                           gMask, (INDEX)vMask.s5, (INDEX)vMask.s6, sShift, sDelta, x0 };
    struct results results = { gO, by_keys ? gY2 : gX2, gLse, (INDEX)vO.s5, (INDEX)vO.s6,
                               by_keys ? (INDEX)vY2.s5 : (INDEX)vX2.s5,
                               by_keys ? (INDEX)vY2.s6 : (INDEX)vX2.s6, (INDEX)vLse.s6 };
    const int first = by_keys ? sight_first(&pairs.sight, x0) : sight_begin(&pairs.sight, x0);
    const int from = first / BLK_N * BLK_N;
    const int end = by_keys ? sight_behind(&pairs.sight, last, queries) : sight_end(&pairs.sight, last);
    const struct operand_a rows[2] = {
        { gX + HEAD_OF(vX, batch, head), 0, (INDEX)vX.s5, (INDEX)vX.s6, count, D },
        { gX2 + HEAD_OF(vX2, batch, head), 0, (INDEX)vX2.s5, (INDEX)vX2.s6, count, DV } };
    R d[TILES][THR_M][THR_N], d2[TILES][THR_M][THR_N];

    clear_tiles(d);
    clear_tiles(d2);
    for (int i = 0; i < (by_keys ? group : 1); i++) {
        const int h = by_keys ? head * group + i : head, other = by_keys ? h : head / group;

        pairs.mask = gMask + HEAD_OF(vMask, batch, h);
        results.out = gO + HEAD_OF(vO, batch, h);
        results.d_out = by_keys ? gY2 + HEAD_OF(vY2, batch, h) : gX2 + HEAD_OF(vX2, batch, h);
        results.lse = gLse + (INDEX)vLse.s0 + batch * (INDEX)vLse.s4 + h * (INDEX)vLse.s5;
        for (int y0 = from; y0 < end; y0 += BLK_N) {
            const int left = (by_keys ? queries : keys) - y0;
            GLOBAL const T *const y = gY + HEAD_OF(vY, batch, other) + y0 * (INDEX)vY.s5;
            GLOBAL const T *const y2 = gY2 + HEAD_OF(vY2, batch, other) + y0 * (INDEX)vY2.s5;
            const struct operand_b columns[2] = { { y, (INDEX)vY.s6, (INDEX)vY.s5, D, left },
                                                  { y2, (INDEX)vY2.s6, (INDEX)vY2.s5, DV, left } };
            const struct operand_b b = { y, (INDEX)vY.s5, (INDEX)vY.s6, left, D };
            const struct operand_b b2 = { y2, (INDEX)vY2.s5, (INDEX)vY2.s6, left, DV };

            pairs.m0 = by_keys ? y0 : x0;
            sum_rows(sShift, sDelta, pairs.m0, by_keys ? BLK_N : y0 < from + BLK_N ? BLK_M : 0, queries, DV,
                     &results);
            weigh_tile(sPair, sA, sB, rows, columns, x0, y0, &pairs);
            add_product(d, sA, sB, sPair + PAIR, &b, wants_d ? BLK_N : 0);
            add_product(d2, sA, sB, sPair, &b2, wants_d2 ? BLK_N : 0);
        }
    }
    if (wants_d)
        store_tiles(gD + HEAD_OF(vD, batch, head), (INDEX)vD.s5, (INDEX)vD.s6, x0, count, D, scale, d);
    if (wants_d2)
        store_tiles(gD2 + HEAD_OF(vD2, batch, head), (INDEX)vD2.s5, (INDEX)vD2.s6, x0, count, DV, (R)1, d2);
}
