/* bf16x3.cl - C := act(alpha A B + beta C + bias), f32 by bf16 matrix engines, for NVIDIA's sm_90
 *
 * A number of 24 bits is the sum of three of 8: a = a0 + a1 + a2, each the nearest bf16 to what
 * the ones before leave.  Of the nine products of parts six matter:
 *
 *     a b  =  a0 b0  +  (a0 b1 + a1 b0)  +  (a0 b2 + a1 b1 + a2 b0)  +  below 2^-24 of it
 *
 * `split` writes the parts as the engine reads them, whatever way a matrix lies:
 *
 *     a panel: PER lines of A (columns of B), all of K        16 of k, part by part:
 *     +----+----+----+--                                      +-----+-----+-----+
 *     | 16 | 16 | 16 | ...                                    |  0  |  1  |  2  |   each 2 columns of
 *     +----+----+----+--                                      +-----+-----+-----+   8 k x PER lines
 *
 * `gemm_split` is gemm_wgmma.cl, with two sets of sums.  The engine cuts off instead of rounding
 * when it adds to its sums, so a long chain of products would drift.  Here a chain is BLK_K long,
 * begins at 0, goes from the small products to the large ones, and is then added, rounded to
 * nearest, to the second set.  The products a0 b0 have 16 bits: the engine loses none of them
 * where they are of like size, which tf32 parts, with their 22, could not say.
 *
 * What is split is 2^16 a: then the parts of the smallest numbers are no smaller than bf16 has
 * them.  Numbers from 2^111 up, infinities and NaNs make sums that are not finite; those are
 * computed again, by fused multiply-adds along K, from A and B.
 *
 * Measured: the root mean square of the error is 0.44 of gemm_async's at K = 64 and 0.18 at 16384 for
 * numbers in [-1, 1), 0.55 and 0.18 in [0, 1).  Chains of 16 cost 15 % of the speed, of 64 gain none.
 *
 * A pack of B (vn_pack) leaves A to be split.  On an H100 at K = 4096, N = 4096 and 14336: with 128
 * rows it takes 0.084 and 0.163 ms instead of 0.144 and 0.369, with 512 rows 0.157 and 0.559 instead
 * of 0.216 and 0.741, with 2048 rows 7 and 17 % less.  Below 64 rows it is bound by reading 6 bytes for
 * each number of B.
 *
 * Parameters, from gemm.tune: BLK_N (128 or 192), BLK_K, STAGES, WARPGROUPS.
 * Method: G. Henry, P. Tang, A. Heinecke, "Leveraging the bfloat16 Artificial Intelligence
 * Datatype For Higher-Precision Computations", 2019; the two sets of sums as in DeepSeek-V3.
 */
#define BLK_M   (64 * WARPGROUPS)
#define STEP_A  (BLK_M * 32 * PARTS)            /* bytes of 16 of k */
#define STEP_B  (BLK_N * 32 * PARTS)
#define BYTES_A (BLK_K / 16 * STEP_A)
#define BYTES_B (BLK_K / 16 * STEP_B)
#define STAGE   (BYTES_A + BYTES_B)
#define ITEMS   (128 * WARPGROUPS + 128)
#define SUMS    (BLK_N / 2)                     /* of an item */
#define BAND    16
#define SPLIT_K 64                              /* of a work-group that splits */

/* Those that copy need few registers; with one warpgroup there are enough for all. */
#if WARPGROUPS == 1
#define FEW_REGISTERS()
#define MANY_REGISTERS()
#else
#define FEW_REGISTERS()  REGISTERS_DROP(40)
#define MANY_REGISTERS() REGISTERS_TAKE(232)
#endif

#if BLK_N == 192
#define WGMMA(d, a, b, add)  WGMMA_BF16_N192(d, a, b, add)
#define WGMMA_WAIT(d, open)  WGMMA_WAIT_N192(d, open)
#elif BLK_N == 128
#define WGMMA(d, a, b, add)  WGMMA_BF16_N128(d, a, b, add)
#define WGMMA_WAIT(d, open)  WGMMA_WAIT_N128(d, open)
#else
#error "BLK_N must be 128 or 192"
#endif

LARGE_LOCAL(gemm_split, STAGES * STAGE)

KERNEL(256) void
split(int lines, int K, int per, VIEW e, GLOBAL const T *RESTRICT g, VIEW v,
      GLOBAL uint4 *RESTRICT parts, VIEW p)
{
    split_lines(GROUP_ID(0), SPLIT_K, lines, K, BLK_K, per, e, g, v, parts, p);
}

#define PRODUCT(k, i, j, add) \
    WGMMA(d, wgmma_columns(a + (k) * STEP_A + (i) * (BLK_M * 32), BLK_M), \
             wgmma_columns(b + (k) * STEP_B + (j) * (BLK_N * 32), BLK_N), add)

KERNEL(ITEMS) void
gemm_split(int M, int N, int K, VIEW eC, R alpha,
           GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const T *RESTRICT gB, VIEW vB,
           GLOBAL const uint4 *parts_a, VIEW pA, GLOBAL const uint4 *parts_b, VIEW pB, R beta,
           GLOBAL T *RESTRICT gC, VIEW vC,
           int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    LARGE_LOCAL_ARRAY(sAB, STAGES * STAGE);
    LOCAL_ARRAY(unsigned INT64, barriers, 2 * STAGES);
    LOCAL_ARRAY(int, odd, 1);                   /* some sum is not finite */
    LOCAL float *sums = (LOCAL float *)sAB;     /* when all slices are read */

    const int tiles_m = (M + BLK_M - 1) / BLK_M, tiles_n = (N + BLK_N - 1) / BLK_N;
    const int batch = GROUP_ID(0) / (tiles_m * tiles_n);
    const int tile = GROUP_ID(0) % (tiles_m * tiles_n);
    const int band = tile / (BAND * tiles_n);
    const int band_rows = tiles_m - band * BAND < BAND ? tiles_m - band * BAND : BAND;
    const int tile_m = band * BAND + tile % (BAND * tiles_n) % band_rows, m0 = tile_m * BLK_M;
    const int tile_n = tile % (BAND * tiles_n) / band_rows, n0 = tile_n * BLK_N;
    const int me = LOCAL_ID(), warp = this_warp(), group = warp / 4, slices = (K + BLK_K - 1) / BLK_K;
    const int simple = beta == 0.0f && !has_bias && act == 0;
    const INDEX c0 = batch_offset(vC, eC, batch);
    const unsigned int stages = same_in_warp(LOCAL_ADDRESS(sAB)), full = same_in_warp(LOCAL_ADDRESS(barriers));
    const unsigned int empty = full + 8 * STAGES;

    if (me == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, WARPGROUPS);
        }
        barrier_init_done();
        odd[0] = 0;
    }
    BARRIER();

    if (group == WARPGROUPS) {                  /* the items that copy; one of them does */
        const INT64 panel_a = batch_offset(pA, eC, batch) + tile_m;
        const INT64 panel_b = batch_offset(pB, eC, batch) + tile_n;
        GLOBAL const uint4 *a = parts_a + pA.s7 + panel_a * slices * (BYTES_A / 16);
        GLOBAL const uint4 *b = parts_b + pB.s7 + panel_b * slices * (BYTES_B / 16);

        FEW_REGISTERS();
        if (warp == 4 * WARPGROUPS && is_elected())
            for (int i = 0; i < slices; i++) {
                const int s = i % STAGES;
                const unsigned int to = stages + s * STAGE;

                if (i >= STAGES)
                    barrier_wait(empty + 8 * s, (i / STAGES - 1) & 1);
                barrier_arrive_expect(full + 8 * s, STAGE);
                copy_bytes(to, a + (INT64)i * (BYTES_A / 16), BYTES_A, full + 8 * s);
                copy_bytes(to + BYTES_A, b + (INT64)i * (BYTES_B / 16), BYTES_B, full + 8 * s);
            }
        return;
    } else {
        const int r = group * 64 + me % 128 / 32 * 16 + me % 32 / 4, c = me % 4 * 2;
        float d[SUMS], sum[SUMS];
        int finite = 1;

        MANY_REGISTERS();
        UNROLL for (int i = 0; i < SUMS; i++)
            d[i] = sum[i] = 0.0f;
        for (int i = 0; i < slices; i++) {
            const int s = i % STAGES;
            const unsigned int a = stages + s * STAGE + group * 1024, b = stages + s * STAGE + BYTES_A;

            barrier_wait(full + 8 * s, i / STAGES & 1);
            wgmma_begin();
            CHAIN();
            wgmma_commit();
            WGMMA_WAIT(d, "0");
            if (me % 128 == 0)
                barrier_arrive(empty + 8 * s);
            UNROLL for (int j = 0; j < SUMS; j++)
                sum[j] += d[j];
        }
        UNROLL for (int i = 0; i < SUMS; i++)
            finite &= ABS(sum[i]) <= LARGEST;
        if (!finite)
            odd[0] = 1;
        items_meet(128 * WARPGROUPS);           /* all slices are read */

        /* An item's sums are pairs of columns: of row r and r + 8, 8 columns apart. */
        if (simple && !odd[0]) {
            const int in_pairs = vC.s6 == 1 && (c0 | (INDEX)vC.s5) % 2 == 0;

            UNROLL for (int i = 0; i < SUMS; i += 2) {
                const int m = m0 + r + i / 2 % 2 * 8, n = n0 + c + i / 4 * 8;
                const INDEX at = c0 + m * (INDEX)vC.s5 + n * (INDEX)vC.s6;

                if (m < M && n + 1 < N && in_pairs) {
                    STORE_PAIR(gC + at, alpha * (sum[i] * UNSCALE), alpha * (sum[i + 1] * UNSCALE));
                } else if (m < M && n < N) {
                    gC[at] = alpha * (sum[i] * UNSCALE);
                    if (n + 1 < N)
                        gC[at + (INDEX)vC.s6] = alpha * (sum[i + 1] * UNSCALE);
                }
            }
        } else {
            UNROLL for (int i = 0; i < SUMS; i++)
                sums[(r + i / 2 % 2 * 8) * BLK_N + c + i / 4 * 8 + i % 2] = sum[i];
        }
    }
    if (simple && !odd[0])
        return;
    items_meet(128 * WARPGROUPS);

    const INDEX bias0 = batch_offset(vBias, eC, batch);

    gA += batch_offset(vA, eC, batch);
    gB += batch_offset(vB, eC, batch);
    for (int i = me; i < BLK_M * BLK_N; i += 128 * WARPGROUPS) {
        const int m = m0 + i / BLK_N, n = n0 + i % BLK_N;

        if (m < M && n < N) {
            const INDEX at = c0 + m * (INDEX)vC.s5 + n * (INDEX)vC.s6;
            R s = sums[i] * UNSCALE;

            if (!(ABS(sums[i]) <= LARGEST))
                s = plain_sum(gA + m * (INDEX)vA.s5, (INDEX)vA.s6, gB + n * (INDEX)vB.s6, (INDEX)vB.s5, K);
            STORE(gC, at, epilogue(s, alpha, beta, gC, at, has_bias, gBias,
                                   bias0 + m * (INDEX)vBias.s5 + n * (INDEX)vBias.s6, act));
        }
    }
}
