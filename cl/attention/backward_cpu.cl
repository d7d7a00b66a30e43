/* cl/attention/backward_cpu.cl - the gradients of attention on CPUs, by the register tile of cl/tile/cpu.h
 *
 *     P = exp(s - lse), dS = P (dO V^T - sum dO O) (1 - tanh^2),  of pairs of a query and a key that it sees
 *     dV = P^T dO,  dK = scale dS^T Q,  dQ = scale dS K
 *
 * A work-group, which is one work-item, has each `splits`th block of BLK_N keys of one head.  For each it
 * takes the queries of all heads that read it, in blocks of BLK_M, and computes five products, each once:
 *
 *               BLK_N keys
 *             +------------+   s = Q K^T and dO V^T, strips of THR_M queries by panels of THR_N keys
 *     BLK_M   |   P, dS    |   dQ += dS K, a strip after the other
 *     queries +------------+
 *               dV += P^T dO, dK += dS^T Q, strips of THR_M keys
 *
 * dK and dV of the block stay in local memory.  dQ is added to sums in the workspace that are the
 * work-group's own; `gather` adds those of all splits.  All sums run in one order.  Causal, tiles of which no
 * query sees a key are left out; neighbouring blocks are in different splits, which balances them.
 *
 * Parameters, from attention.tune: THR_M THR_V VEC BLK_M BLK_N.  The second-level cache holds 5 BLK_N
 * + 2 BLK_M rows of HEAD elements, and 2 BLK_M BLK_N.  Method: Dao et al., "FlashAttention", 2022.
 */
#if BLK_M % THR_M || BLK_N % THR_M || BLK_N % THR_N || HEAD % THR_N
#error "a register tile must divide the work-group's"
#endif

#define PITCH   (HEAD + VEC)                    /* of rows in local memory: no power of 2 */
#define TILE    (THR_M * THR_V)                 /* vectors of a tile */
#define STRIP   (CHUNKS * TILE)
#define PANELS  (BLK_N / THR_N)

enum { WANTS_Q = 1, WANTS_K = 2, WANTS_V = 4 }; /* bits of `wanted` */

/* A, for CPU_TILE: columns of weights, whose rows are BLK_N apart. */
#define WEIGHT_COLUMNS(a, a_row, i) (a)[i]
#define WEIGHT_COLUMNS_NEXT(a)      a += BLK_N

/* A target in local memory, of sums so deep. */
#define TO_DEPTH(depth) ((struct target){ 0, 0, 0, depth, 0, (R)1, 0 })

CPU_PACK(pack_local, LOCAL)
CPU_TILE(tile_rows, LOCAL, R, CPU_LOCAL_ROWS, LOCAL)
CPU_TILE(tile_columns, LOCAL, R, WEIGHT_COLUMNS, LOCAL)

/* The rows of a matrix, `row` and `col` apart, with zeros behind their `width` elements and behind them. */
DEVICE void load_rows(LOCAL R *to, GLOBAL const T *g, INDEX row, INDEX col, int rows, int width)
{
    pack_local(to, PITCH, (width + THR_N - 1) / THR_N * THR_N, width, g, col, row, rows);
    for (int i = rows; i % THR_M; i++)
        for (int n = 0; n < HEAD; n++)
            to[i * PITCH + n] = ZERO;
}

/* Panels of THR_N rows, along their elements. */
DEVICE void load_panels(LOCAL RV *to, GLOBAL const T *g, INDEX row, INDEX col, int rows, int width)
{
    for (int n = 0; n < rows; n += THR_N)
        pack_local((LOCAL R *)(to + n / THR_N * HEAD * THR_V), THR_N, THR_N,
                   rows - n < THR_N ? rows - n : THR_N, g + n * row, row, col, width);
}

DEVICE void clear(LOCAL RV *to, int count)
{
    for (int i = 0; i < count; i++)
        to[i] = (RV)(ZERO);
}

/* The sum of dO O of one row; d is dO. */
DEVICE R sum_row(LOCAL const R *d, GLOBAL const T *o, INDEX col, int width)
{
    const int whole = col == 1 ? width / VEC * VEC : 0;
    RV sums = (RV)(ZERO);
    R sum;

    for (int n = 0; n < whole; n += VEC)
        sums = FMA(LOAD_VECTOR(VEC, o + n), VLOAD(VEC, d + n), sums);
    sum = lanes_sum(sums);
    for (int n = whole; n < width; n++)
        sum = FMA(LOAD(o, n * col), d[n], sum);
    return sum;
}

/* What the scores of a row become P and dS by; of its keys those from `first` to before `end` are seen. */
struct row { int first, end; R scale, softcap, shift, delta; GLOBAL const T *mask; INDEX mask_col; };

/* s and d: a row of Q K^T and of dO V^T, of which the vectors of each panel are TILE apart; they go to P and
 * dS.  is_plain, a constant: without softcap and mask.                                                    */
DEVICE void weigh(LOCAL RV *P, LOCAL RV *dS, LOCAL const RV *s, LOCAL const RV *d, int vectors,
                  struct row it, const int is_plain)
{
    const RV count = count_lanes(), none = (RV)(ZERO);

    for (int v = 0; v < vectors; v++) {
        const int at = v / THR_V * TILE + v % THR_V;
        RV z = (RV)(it.scale) * s[at], slope = (RV)((R)1), p;

        if (!is_plain && it.softcap > ZERO) {
            const RV t = tanh_lanes(z / (RV)(it.softcap));

            slope = FMA((RV)(ZERO) - t, t, slope);
            z = (RV)(it.softcap) * t;
        }
        if (!is_plain && it.mask_col >= 0) {
            R lane[VEC];

            for (int i = 0; i < VEC; i++)
                lane[i] = v * VEC + i < it.end ? LOAD(it.mask, (v * VEC + i) * it.mask_col) : ZERO;
            z = z + VLOAD(VEC, lane);
        }
        z = z - (RV)(it.shift);
        p = exp_below_lanes(PICK((RV)((R)88), z, (RV)((R)88), z));
        slope = slope * p * (d[at] - (RV)(it.delta));
        if (v * VEC < it.first || (v + 1) * VEC > it.end) {
            const RV lanes = count + (RV)((R)(v * VEC));

            p = seen_lanes(lanes, it.first, it.end, p, none);
            slope = seen_lanes(lanes, it.first, it.end, slope, none);
        }
        P[v] = p;
        dS[v] = slope;
    }
}

/* The queries of a block, of which `rows` are there, at their first: rows of out, lse, and of the mask. */
struct queries_of {
    GLOBAL const T *o;
    INDEX o_row, o_col;
    GLOBAL const R *lse;
    INDEX lse_row;
    GLOBAL const T *mask;
    INDEX mask_row, mask_col;
    int has_mask, rows, DV;
    R scale, softcap;
};

/* The same of row i of the block, whose gradient is g; the weights of further keys are 0. */
DEVICE void weigh_row(LOCAL RV *P, LOCAL RV *dS, LOCAL const RV *s, LOCAL const RV *d, LOCAL const R *g,
                      const struct queries_of *it, int i, int vectors, int first, int end)
{
    struct row row = { first, 0, it->scale, it->softcap, INFINITE, ZERO, it->mask + i * it->mask_row,
                       it->has_mask ? it->mask_col : -1 };

    if (i < it->rows) {
        const R lse = it->lse[i * it->lse_row];

        row.end = end;
        row.shift = lse == ZERO - INFINITE ? INFINITE : lse;
        row.delta = sum_row(g, it->o + i * it->o_row, it->o_col, it->DV);
    }
    if (it->has_mask || it->softcap > ZERO)
        weigh(P, dS, s, d, vectors, row, 0);
    else
        weigh(P, dS, s, d, vectors, row, 1);
    clear(P + vectors, BLK_N / VEC - vectors);
    clear(dS + vectors, BLK_N / VEC - vectors);
}

/* out += A^T B, by the rows between of the weights A and of B, and THR_M columns of A. */
DEVICE void add_columns(LOCAL RV *out, LOCAL R *weights, LOCAL R *b, int from, int until, int width,
                        struct stream nothing)
{
    for (int c = 0; from < until && c * THR_N < width; c++)
        tile_columns(THR_M, THR_V, B_PANEL, out + c * TILE, weights + from * BLK_N, 0,
                     (LOCAL RV *)(b + from * PITCH + c * THR_N), PITCH / VEC, nothing, until - from,
                     FROM_PARTIAL, TO_DEPTH(until - from));
}

#define HEAD_OF(v, batch, h) ((INDEX)(v).s0 + (batch) * (INDEX)(v).s3 + (h) * (INDEX)(v).s4)

/* gSums: for each head of a batch those of each split, a block of queries after the other. */
KERNEL(1) void
attention_gradients(int queries, int keys, int D, int DV, int group, int causal, int offset, int window,
                    R scale, R softcap,
                    GLOBAL const T *RESTRICT gQ, VIEW vQ, GLOBAL const T *RESTRICT gK, VIEW vK,
                    GLOBAL const T *RESTRICT gV, VIEW vV, GLOBAL const T *RESTRICT gO, VIEW vO,
                    GLOBAL const T *RESTRICT gMask, VIEW vMask, GLOBAL const R *RESTRICT gLse, VIEW vLse,
                    int has_lse, int has_mask, int wanted, int splits, int heads,
                    GLOBAL const T *RESTRICT gG, VIEW vG, GLOBAL T *RESTRICT gDK, VIEW vDK,
                    GLOBAL T *RESTRICT gDV, VIEW vDV, GLOBAL RV *RESTRICT gSums)
{
    LOCAL_ARRAY(R, sK, BLK_N * PITCH);
    LOCAL_ARRAY(R, sQ, BLK_M * PITCH);
    LOCAL_ARRAY(R, sG, BLK_M * PITCH);
    LOCAL_ARRAY(RV, sKeys, PANELS * HEAD * THR_V);
    LOCAL_ARRAY(RV, sValues, PANELS * HEAD * THR_V);
    LOCAL_ARRAY(RV, sDK, BLK_N / THR_M * STRIP);
    LOCAL_ARRAY(RV, sDV, BLK_N / THR_M * STRIP);
    LOCAL_ARRAY(RV, sP, BLK_M * BLK_N / VEC);
    LOCAL_ARRAY(RV, sS, BLK_M * BLK_N / VEC);
    LOCAL_ARRAY(RV, sScores, PANELS * TILE);
    LOCAL_ARRAY(RV, sGV, PANELS * TILE);
    LOCAL_ARRAY(RV, sDQ, STRIP);

    const int hk = GROUP_ID(1), batch = GROUP_ID(2), blocks = (queries + BLK_M - 1) / BLK_M;
    const struct sight sight = { keys, causal, offset, window };
    const struct stream nothing = { gQ, 0, 0 };

    for (int h = hk * group; h < (hk + 1) * group; h++)
        for (INT64 i = 0, all = (INT64)blocks * (BLK_M / THR_M * STRIP); i < all; i++)
            gSums[(((INT64)batch * heads + h) * splits + GROUP_ID(0)) * all + i] = (RV)(ZERO);
    clear(sP, BLK_M * BLK_N / VEC);
    clear(sS, BLK_M * BLK_N / VEC);
    for (int n0 = GROUP_ID(0) * BLK_N; n0 < keys; n0 += splits * BLK_N) {
        const int here = keys - n0 < BLK_N ? keys - n0 : BLK_N;
        const int begin = sight_first(&sight, n0), end = sight_behind(&sight, n0 + here - 1, queries);
        GLOBAL const T *const k = gK + HEAD_OF(vK, batch, hk) + n0 * (INDEX)vK.s5;

        load_rows(sK, k, (INDEX)vK.s5, (INDEX)vK.s6, here, D);
        load_panels(sKeys, k, (INDEX)vK.s5, (INDEX)vK.s6, here, D);
        load_panels(sValues, gV + HEAD_OF(vV, batch, hk) + n0 * (INDEX)vV.s5, (INDEX)vV.s5, (INDEX)vV.s6,
                    here, DV);
        clear(sDK, BLK_N / THR_M * STRIP);
        clear(sDV, BLK_N / THR_M * STRIP);
        for (int h = hk * group; h < (hk + 1) * group; h++)
            for (int m0 = begin / BLK_M * BLK_M; begin < end && m0 < end; m0 += BLK_M) {
                const int rows = end - m0 < BLK_M ? end - m0 : BLK_M;
                const INT64 split = ((INT64)batch * heads + h) * splits + GROUP_ID(0);
                GLOBAL RV *const to = gSums + (split * blocks + m0 / BLK_M) * (BLK_M / THR_M * STRIP);
                const struct queries_of it = {
                    gO + HEAD_OF(vO, batch, h) + m0 * (INDEX)vO.s5, (INDEX)vO.s5, (INDEX)vO.s6,
                    gLse + (INDEX)vLse.s0 + batch * (INDEX)vLse.s4 + h * (INDEX)vLse.s5 + m0 * (INDEX)vLse.s6,
                    (INDEX)vLse.s6,
                    gMask + HEAD_OF(vMask, batch, h) + m0 * (INDEX)vMask.s5 + n0 * (INDEX)vMask.s6,
                    (INDEX)vMask.s5, (INDEX)vMask.s6, has_mask, rows, DV, scale, softcap };

                load_rows(sQ, gQ + HEAD_OF(vQ, batch, h) + m0 * (INDEX)vQ.s5, (INDEX)vQ.s5, (INDEX)vQ.s6,
                          rows, D);
                load_rows(sG, gG + HEAD_OF(vG, batch, h) + m0 * (INDEX)vG.s5, (INDEX)vG.s5, (INDEX)vG.s6,
                          rows, DV);
                for (int m = begin > m0 ? (begin - m0) / THR_M * THR_M : 0; m < rows; m += THR_M) {
                    const int last = m + THR_M < rows ? m + THR_M - 1 : rows - 1;
                    const int seen = sight_end(&sight, m0 + last) - n0, count = seen < here ? seen : here;
                    const int panels = (count + THR_N - 1) / THR_N;

                    for (int i = 0; i < panels; i++) {
                        tile_rows(THR_M, THR_V, B_PANEL, sScores + i * TILE, sQ + m * PITCH, PITCH,
                                  sKeys + i * HEAD * THR_V, THR_V, nothing, D, FROM_ZERO, TO_DEPTH(D));
                        tile_rows(THR_M, THR_V, B_PANEL, sGV + i * TILE, sG + m * PITCH, PITCH,
                                  sValues + i * HEAD * THR_V, THR_V, nothing, DV, FROM_ZERO, TO_DEPTH(DV));
                    }
                    for (int i = m; i < m + THR_M; i++) {
                        const int behind = sight_end(&sight, m0 + i) - n0;

                        weigh_row(sP + i * (BLK_N / VEC), sS + i * (BLK_N / VEC), sScores + (i - m) * THR_V,
                                  sGV + (i - m) * THR_V, sG + i * PITCH, &it, i, panels * THR_V,
                                  sight_begin(&sight, m0 + i) - n0, behind < count ? behind : count);
                    }
                    for (int i = 0; wanted & WANTS_Q && i * THR_N < D; i++) {
                        GLOBAL RV *const sums = to + m / THR_M * STRIP + i * TILE;

                        tile_rows(THR_M, THR_V, B_PANEL, sDQ, (LOCAL R *)sS + m * BLK_N, BLK_N,
                                  (LOCAL RV *)(sK + i * THR_N), PITCH / VEC, nothing, count, FROM_ZERO,
                                  TO_DEPTH(count));
                        for (int v = 0; v < TILE; v++)
                            sums[v] = sums[v] + sDQ[v];
                    }
                }
                for (int j = 0; j * THR_M < here; j++) {
                    const int n = n0 + j * THR_M, behind_n = n + THR_M < n0 + here ? n + THR_M : n0 + here;
                    const int first = sight_first(&sight, n) - m0, from = first > 0 ? first : 0;
                    const int behind = sight_behind(&sight, behind_n - 1, queries) - m0;
                    const int until = behind < rows ? behind : rows;

                    if (wanted & WANTS_K)
                        add_columns(sDK + j * STRIP, (LOCAL R *)sS + j * THR_M, sQ, from, until, D, nothing);
                    if (wanted & WANTS_V)
                        add_columns(sDV + j * STRIP, (LOCAL R *)sP + j * THR_M, sG, from, until, DV, nothing);
                }
            }
        for (int i = 0; i < here; i++) {
            const int at = i / THR_M * STRIP + i % THR_M * THR_V;

            if (wanted & WANTS_K)
                store_strip_row(sDK + at, scale, gDK + HEAD_OF(vDK, batch, hk) + (n0 + i) * (INDEX)vDK.s5,
                                (INDEX)vDK.s6, D);
            if (wanted & WANTS_V)
                store_strip_row(sDV + at, (R)1, gDV + HEAD_OF(vDV, batch, hk) + (n0 + i) * (INDEX)vDV.s5,
                                (INDEX)vDV.s6, DV);
        }
    }
}

/* dQ of BLK_M queries of one head: scale times the sums of all splits. */
KERNEL(1) void
gather(int queries, int D, int heads, int splits, R scale, GLOBAL const RV *RESTRICT gSums,
       GLOBAL T *RESTRICT gDQ, VIEW vDQ)
{
    LOCAL_ARRAY(RV, sStrip, STRIP);

    const int m0 = GROUP_ID(0) * BLK_M, h = GROUP_ID(1), batch = GROUP_ID(2);
    const int blocks = (queries + BLK_M - 1) / BLK_M, rows = queries - m0 < BLK_M ? queries - m0 : BLK_M;

    for (int m = 0; m < rows; m += THR_M) {
        clear(sStrip, STRIP);
        for (int split = 0; split < splits; split++) {
            const INT64 at = (((INT64)batch * heads + h) * splits + split) * blocks + GROUP_ID(0);

            for (int i = 0; i < STRIP; i++)
                sStrip[i] = sStrip[i] + gSums[(at * (BLK_M / THR_M) + m / THR_M) * STRIP + i];
        }
        for (int i = 0; i < THR_M && m + i < rows; i++)
            store_strip_row(sStrip + i * THR_V, scale,
                            gDQ + HEAD_OF(vDQ, batch, h) + (m0 + m + i) * (INDEX)vDQ.s5, (INDEX)vDQ.s6, D);
    }
}
