/* cl/attention/cpu.cl - attention on CPUs, by the register tile of cl/tile/cpu.h
 *
 * `pack` copies the keys of a head into panels of THR_N keys, D-major, and the values into panels of THR_N
 * columns, key by key, once for all of its queries.  A work-group, which is one work-item, has BLK_M queries
 * of one head, in strips of THR_M.  For each block of BLK_N keys and each strip it multiplies Q K^T, makes
 * weights of the scores, and adds weights V to the output, which stays in local memory.
 *
 * Parameters, from attention.tune: THR_M THR_V VEC BLK_M BLK_N.  The second-level cache holds a block of keys
 * and one of values, beside BLK_M rows of queries and of the output.
 */
#if BLK_M % THR_M || BLK_N % THR_N
#error "a register tile must divide the work-group's"
#endif

#define STRIPS  (BLK_M / THR_M)
#define VECTORS (BLK_N / VEC)

CPU_PACK(pack_global, GLOBAL)
CPU_PACK(pack_local, LOCAL)
CPU_TILE(tile_scores, LOCAL, R, CPU_PANEL, GLOBAL)
CPU_TILE(tile_values, LOCAL, R, CPU_LOCAL_ROWS, GLOBAL)

/* Panels THR_N wide of a matrix, `width` elements across them and `depth` along; of v, s5 is the step across
 * the panels and s6 that along them, s4 and s3 those from head to head and batch to batch; of vP, s5 is the
 * step from panel to panel, s4 that from head to head.                                                    */
KERNEL(1) void
pack(int width, int depth, int block, int heads, GLOBAL const T *RESTRICT g, VIEW v, GLOBAL R *RESTRICT gP,
     VIEW vP)
{
    const int x0 = GROUP_ID(0) * THR_N, k0 = GROUP_ID(1) * block, z = GROUP_ID(2);
    const INDEX from = (INDEX)v.s0 + z / heads * (INDEX)v.s3 + z % heads * (INDEX)v.s4 + x0 * (INDEX)v.s5
                     + k0 * (INDEX)v.s6;
    const INDEX to = (INDEX)vP.s0 + z * (INDEX)vP.s4 + GROUP_ID(0) * (INDEX)vP.s5 + (INDEX)k0 * THR_N;

    pack_global(gP + to, THR_N, THR_N, width - x0 < THR_N ? width - x0 : THR_N, g + from, (INDEX)v.s5,
                (INDEX)v.s6, depth - k0 < block ? depth - k0 : block);
}

/* The scores of one row of a strip, of which the keys from `first` to before `end` are seen, become weights.
 * S: the row of each panel, THR_V vectors, step apart; P: the row of weights.  Gives the factor of what was
 * summed so far.                                                                                        */
DEVICE R weigh(LOCAL RV *S, int step, LOCAL RV *P, LOCAL R *max, LOCAL R *sum, int vectors, int first,
               int end, R scale, R softcap, GLOBAL const T *mask, INDEX mask_col)
{
    const RV count = count_lanes();
    RV largest = (RV)(*max), total = (RV)(ZERO);
    R top, factor;

    for (int v = 0; v < vectors; v++) {
        LOCAL RV *const s = S + v / THR_V * step + v % THR_V;
        RV z = (RV)(scale) * *s;

#if HAS_SOFTCAP
        z = (RV)(softcap) * tanh_lanes(z / (RV)(softcap));
#endif
#if HAS_MASK
        R lane[VEC];

        for (int i = 0; i < VEC; i++)
            lane[i] = v * VEC + i < end ? LOAD(mask, (v * VEC + i) * mask_col) : ZERO;
        z = z + VLOAD(VEC, lane);
#endif
        if (v * VEC < first || (v + 1) * VEC > end)
            z = seen_lanes(count + (RV)((R)(v * VEC)), first, end, z, (RV)(ZERO - INFINITE));
        *s = z;
        largest = MAX_LANES(largest, z);
    }
    top = lanes_max(largest);
    for (int v = 0; v < vectors; v++) {
        const RV p = exp_below_lanes(S[v / THR_V * step + v % THR_V] - (RV)(top));

        total = total + p;
        P[v] = p;
    }
    factor = exp_below(*max - top);
    *sum = *sum * factor + lanes_sum(total);
    *max = top;
    return factor;
}

KERNEL(1) void
attention_cpu(int queries, int keys, int D, int DV, int group, int causal, int offset, int window,
              R scale, R softcap,
              GLOBAL const T *RESTRICT gQ, VIEW vQ, GLOBAL const T *RESTRICT gK, VIEW vK,
              GLOBAL const T *RESTRICT gV, VIEW vV, GLOBAL T *RESTRICT gO, VIEW vO,
              GLOBAL const T *RESTRICT gMask, VIEW vMask, GLOBAL R *RESTRICT gLse, VIEW vLse, int has_lse,
              MORE_PARAMS, int shared, GLOBAL R *RESTRICT gP, VIEW vKP, VIEW vVP)
{
    LOCAL_ARRAY(R, sQ, BLK_M * HEAD);
    LOCAL_ARRAY(RV, sO, STRIPS * CHUNKS * THR_M * THR_V);
    LOCAL_ARRAY(RV, sS, THR_M * VECTORS);
    LOCAL_ARRAY(RV, sP, THR_M * VECTORS);
    LOCAL_ARRAY(R, sMax, BLK_M);
    LOCAL_ARRAY(R, sSum, BLK_M);

    const int blocks = (queries + BLK_M - 1) / BLK_M, h = GROUP_ID(1), batch = GROUP_ID(2);
    const int m0 = (blocks - 1 - GROUP_ID(0)) * BLK_M;          /* causal: the longest first */
    const int keys_here = KEYS_OF(batch), queries_here = QUERIES_OF(batch);
    const int m_all = m0 + BLK_M < queries ? m0 + BLK_M : queries;
    const int m_end = m_all < queries_here ? m_all : queries_here;
    const struct sight sight = { keys_here, causal, OFFSET_OF(keys_here, queries_here), window };
    const int from = sight_begin(&sight, m0) / BLK_N * BLK_N;
    const int end = m0 < m_end ? sight_end(&sight, m_end - 1) : 0;
    const INDEX z = (INDEX)batch * shared + h / group;
    GLOBAL const T *const q = gQ + (INDEX)vQ.s0 + batch * (INDEX)vQ.s3 + h * (INDEX)vQ.s4;
    GLOBAL const T *const mask = gMask + (INDEX)vMask.s0 + batch * (INDEX)vMask.s3 + h * (INDEX)vMask.s4;
    GLOBAL R *const head_k = gP + (INDEX)vKP.s0 + z * (INDEX)vKP.s4;
    GLOBAL R *const head_v = gP + (INDEX)vVP.s0 + z * (INDEX)vVP.s4;
    const struct stream nothing = { gQ, 0, 0 };

    for (int m = m0; m < m_end; m += THR_M)
        pack_local(sQ + (m - m0) * D, THR_M, THR_M, m_end - m < THR_M ? m_end - m : THR_M,
                   q + m * (INDEX)vQ.s5, (INDEX)vQ.s5, (INDEX)vQ.s6, D);
    for (int i = 0; i < STRIPS * CHUNKS * THR_M * THR_V; i++)
        sO[i] = (RV)(ZERO);
    for (int i = 0; i < BLK_M; i++) {
        sMax[i] = LOWEST;
        sSum[i] = ZERO;
    }
    for (int n0 = from; n0 < end; n0 += BLK_N)
        for (int m = m0; m < m_end; m += THR_M) {
            const int last = m + THR_M < m_end ? m + THR_M - 1 : m_end - 1;
            const int seen = sight_end(&sight, last) - n0;
            const int count = seen < BLK_N ? seen : BLK_N, panels = (count + THR_N - 1) / THR_N;
            LOCAL RV *const strip = sO + (m - m0) / THR_M * CHUNKS * THR_M * THR_V;
            const struct target scores = { gO, gO, 0, D, 0, (R)1, 0 };
            const struct target sums = { gO, gO, 0, count, 0, (R)1, 0 };

            if (count <= 0)
                continue;
            for (int i = 0; i < panels; i++)
                tile_scores(THR_M, THR_V, B_PANEL, sS + i * THR_M * THR_V, sQ + (m - m0) * D, 0,
                            (GLOBAL RV *)(head_k + (n0 / THR_N + i) * (INDEX)vKP.s5), THR_V, nothing, D,
                            FROM_ZERO, scores);
            for (int i = 0; i < THR_M; i++) {
                const int begin_i = sight_begin(&sight, m + i) - n0, end_i = sight_end(&sight, m + i) - n0;
                const int shown = m + i >= m_end ? 0 : end_i < count ? end_i : count;
                const R factor = weigh(sS + i * THR_V, THR_M * THR_V, sP + i * VECTORS, &sMax[m - m0 + i],
                                       &sSum[m - m0 + i], panels * THR_V, begin_i, shown, scale, softcap,
                                       mask + (m + i) * (INDEX)vMask.s5 + n0 * (INDEX)vMask.s6,
                                       (INDEX)vMask.s6);

                if (factor != (R)1)
                    for (int c = 0; c < CHUNKS; c++)
                        UNROLL for (int j = 0; j < THR_V; j++) {
                            LOCAL RV *const o = strip + (c * THR_M + i) * THR_V + j;

                            *o = (RV)(factor) * *o;
                        }
            }
            for (int c = 0; c * THR_N < DV; c++)
                tile_values(THR_M, THR_V, B_PANEL, strip + c * THR_M * THR_V, (LOCAL R *)sP, BLK_N,
                            (GLOBAL RV *)(head_v + c * (INDEX)vVP.s5 + (INDEX)n0 * THR_N), THR_V, nothing,
                            count, FROM_PARTIAL, sums);
        }
    for (int m = m0; m < m_all; m++) {
        LOCAL R *const max = &sMax[m - m0], *const sum = &sSum[m - m0];
        R factor = (R)1;
        LOCAL RV *const strip = sO + (m - m0) / THR_M * CHUNKS * THR_M * THR_V + (m - m0) % THR_M * THR_V;

        if (given & GIVEN_SINKS && m < queries_here) {
            R top = *max, all = *sum;

            factor = join_sink(&top, &all, gSinks[(INDEX)vMore.s6 + h * (INDEX)vMore.s7]);
            *max = top;
            *sum = all;
        }
        store_strip_row(strip, factor * inverse_of(*sum),
                        gO + (INDEX)vO.s0 + batch * (INDEX)vO.s3 + h * (INDEX)vO.s4 + m * (INDEX)vO.s5,
                        (INDEX)vO.s6, DV);
        if (has_lse)
            gLse[(INDEX)vLse.s0 + batch * (INDEX)vLse.s4 + h * (INDEX)vLse.s5 + m * (INDEX)vLse.s6] =
                logarithm_of(*max, *sum);
    }
}
