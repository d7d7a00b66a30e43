/* tiled.cl - attention for devices with local memory, by the tile of cl/tile/fma.h
 *
 * A work-group has BLK_M queries of one head.  For each block of BLK_N keys it multiplies Q K^T, turns the
 * scores into weights, exp(s - maximum), which it keeps in local memory, and adds weights V to the output, of
 * which each work-item keeps HEAD / BLK_N tiles of THR_M x THR_N in registers.
 *
 * Parameters, from attention.tune: BLK_M BLK_N BLK_K THR_M THR_N (see cl/tile/fma.h).
 */
/* Of each of this item's rows the largest (or the sum) of what the items of that row have. */
DEVICE void merge_maxima(R all[THR_M], LOCAL R *shared, const R mine[THR_M])
{
    UNROLL for (int i = 0; i < THR_M; i++)
        shared[TILE_ROW(0, i) * FMA_ITEMS_N + (int)(FMA_ITEM % FMA_ITEMS_N)] = mine[i];
    BARRIER();
    UNROLL for (int i = 0; i < THR_M; i++) {
        all[i] = shared[TILE_ROW(0, i) * FMA_ITEMS_N];
        for (int j = 1; j < FMA_ITEMS_N; j++)
            all[i] = MAX(all[i], shared[TILE_ROW(0, i) * FMA_ITEMS_N + j]);
    }
    BARRIER();                                  /* before it is filled again */
}

DEVICE void merge_sums(R all[THR_M], LOCAL R *shared, const R mine[THR_M])
{
    UNROLL for (int i = 0; i < THR_M; i++)
        shared[TILE_ROW(0, i) * FMA_ITEMS_N + (int)(FMA_ITEM % FMA_ITEMS_N)] = mine[i];
    BARRIER();
    UNROLL for (int i = 0; i < THR_M; i++) {
        all[i] = ZERO;
        for (int j = 0; j < FMA_ITEMS_N; j++)
            all[i] = all[i] + shared[TILE_ROW(0, i) * FMA_ITEMS_N + j];
    }
}

KERNEL(FMA_ITEMS) void
attention(int queries, int keys, int D, int DV, int group, int causal, int offset, int window,
          R scale, R softcap,
          GLOBAL const T *RESTRICT gQ, VIEW vQ, GLOBAL const T *RESTRICT gK, VIEW vK,
          GLOBAL const T *RESTRICT gV, VIEW vV, GLOBAL T *RESTRICT gO, VIEW vO,
          GLOBAL const T *RESTRICT gMask, VIEW vMask, GLOBAL R *RESTRICT gLse, VIEW vLse, int has_lse,
          MORE_PARAMS)
{
    LOCAL_ARRAY(R, sA, BLK_K * PITCH_A);
    LOCAL_ARRAY(R, sB, BLK_K * PITCH_B);
    LOCAL_ARRAY(R, sP, BLK_N * PITCH_A);
    LOCAL_ARRAY(R, sRow, BLK_M * FMA_ITEMS_N);

    const int blocks = (queries + BLK_M - 1) / BLK_M, h = GROUP_ID(1), batch = GROUP_ID(2);
    const int m0 = (blocks - 1 - GROUP_ID(0)) * BLK_M;          /* causal: the longest first */
    const int keys_here = KEYS_OF(batch), queries_here = QUERIES_OF(batch);
    const struct sight sight = { keys_here, causal, OFFSET_OF(keys_here, queries_here), window };
    const int last = m0 + BLK_M < queries_here ? m0 + BLK_M - 1 : queries_here - 1;
    const int from = sight_begin(&sight, m0) / BLK_N * BLK_N, end = m0 <= last ? sight_end(&sight, last) : 0;
    const int stored = page ? 0 : batch, shared = h / group;
    GLOBAL const T *const k0 = gK + (INDEX)vK.s0 + stored * (INDEX)vK.s3 + shared * (INDEX)vK.s4;
    GLOBAL const T *const v0 = gV + (INDEX)vV.s0 + stored * (INDEX)vV.s3 + shared * (INDEX)vV.s4;
    const INDEX first = page ? (INDEX)vMore.s4 + (INDEX)batch * (keys / page) * (INDEX)vMore.s5 : 0;
    const INDEX mask0 = (INDEX)vMask.s0 + batch * (INDEX)vMask.s3 + h * (INDEX)vMask.s4;
    const struct operand_a q = { gQ + (INDEX)vQ.s0 + batch * (INDEX)vQ.s3 + h * (INDEX)vQ.s4, 0,
                                 (INDEX)vQ.s5, (INDEX)vQ.s6, queries, D };
    const struct operand_a weights = { 0, sP, 0, 0, BLK_M, BLK_N };
    R out[TILES][THR_M][THR_N], max[THR_M], sum[THR_M], all[THR_M];

    UNROLL for (int t = 0; t < TILES; t++)
    UNROLL for (int i = 0; i < THR_M; i++)
    UNROLL for (int j = 0; j < THR_N; j++)
        out[t][i][j] = ZERO;
    UNROLL for (int i = 0; i < THR_M; i++) {
        max[i] = LOWEST;
        sum[i] = ZERO;
    }
    for (int n0 = from; n0 < end; n0 += BLK_N) {
        const struct operand_b kt = { k0 + (page ? 0 : n0) * (INDEX)vK.s5, (INDEX)vK.s6, (INDEX)vK.s5, D,
                                      keys_here - n0, page, pages, n0, 1, (INDEX)vK.s3, first,
                                      (INDEX)vMore.s5, gPages };
        const struct operand_b v = { v0 + (page ? 0 : n0) * (INDEX)vV.s5, (INDEX)vV.s5, (INDEX)vV.s6,
                                     keys_here - n0, DV, page, pages, n0, 0, (INDEX)vV.s3, first,
                                     (INDEX)vMore.s5, gPages };
        R s[THR_M][THR_N];

        tile_multiply(s, sA, sB, &q, &kt, m0, 0, D);
        UNROLL for (int i = 0; i < THR_M; i++) {
            const int m = TILE_ROW(m0, i), begin_m = sight_begin(&sight, m), end_m = sight_end(&sight, m);

            all[i] = max[i];
            UNROLL for (int j = 0; j < THR_N; j++) {
                const int n = TILE_COL(n0, j), seen = m < queries_here && n >= begin_m && n < end_m;
                R z = capped(scale * s[i][j], softcap);
#if HAS_MASK
                if (seen)
                    z = z + LOAD(gMask, mask0 + m * (INDEX)vMask.s5 + n * (INDEX)vMask.s6);
#endif
                s[i][j] = seen ? z : ZERO - INFINITE;
                all[i] = MAX(all[i], s[i][j]);
            }
        }

        R largest[THR_M];

        merge_maxima(largest, sRow, all);
        UNROLL for (int i = 0; i < THR_M; i++) {
            const R factor = exp_of(max[i] - largest[i]);

            max[i] = largest[i];
            sum[i] = sum[i] * factor;
            UNROLL for (int t = 0; t < TILES; t++)
            UNROLL for (int j = 0; j < THR_N; j++)
                out[t][i][j] = out[t][i][j] * factor;
            UNROLL for (int j = 0; j < THR_N; j++) {
                const R p = exp_of(s[i][j] - max[i]);

                sum[i] = sum[i] + p;
                sP[TILE_COL(0, j) * PITCH_A + TILE_ROW(0, i)] = p;
            }
        }
        BARRIER();
        UNROLL for (int t = 0; t < TILES; t++) {
            tile_multiply(s, sA, sB, &weights, &v, 0, t * BLK_N, BLK_N);
            UNROLL for (int i = 0; i < THR_M; i++)
            UNROLL for (int j = 0; j < THR_N; j++)
                out[t][i][j] = out[t][i][j] + s[i][j];
        }
    }

    merge_sums(all, sRow, sum);
    GLOBAL T *const o = gO + (INDEX)vO.s0 + batch * (INDEX)vO.s3 + h * (INDEX)vO.s4;
    UNROLL for (int i = 0; i < THR_M; i++) {
        const int m = TILE_ROW(m0, i);
        R inverse = inverse_of(all[i]);

        if (given & GIVEN_SINKS && m < queries_here) {
            const R factor = join_sink(&max[i], &all[i], gSinks[(INDEX)vMore.s6 + h * (INDEX)vMore.s7]);

            inverse = factor * inverse_of(all[i]);
        }

        UNROLL for (int t = 0; t < TILES; t++)
        UNROLL for (int j = 0; j < THR_N; j++) {
            const int n = TILE_COL(t * BLK_N, j);

            if (m < queries && n < DV)
                STORE(o, m * (INDEX)vO.s5 + n * (INDEX)vO.s6,
                      inverse == ZERO ? ZERO : out[t][i][j] * inverse);
        }
        if (has_lse && m < queries && FMA_ITEM % FMA_ITEMS_N == 0)
            gLse[(INDEX)vLse.s0 + batch * (INDEX)vLse.s4 + h * (INDEX)vLse.s5 + m * (INDEX)vLse.s6] =
                logarithm_of(max[i], all[i]);
    }
}
