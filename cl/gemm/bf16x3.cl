/* cl/gemm/bf16x3.cl - C := act(alpha A B + beta C + bias), f32 by tensor cores for bf16, for NVIDIA's sm_90
 *
 * An f32 element of 24 bits is the sum of three of 8: a = a0 + a1 + a2, each the nearest bf16 to what the
 * ones before leave.  Of the nine products of parts six matter:
 *
 *     a b  =  a0 b0  +  (a0 b1 + a1 b0)  +  (a0 b2 + a1 b1 + a2 b0)  +  below 2^-24 of it
 *
 * `split` writes the parts as wgmma reads them, whatever the layout of a matrix:
 *
 *     a panel: PER rows of A (columns of B), all of K         16 of k, part by part:
 *     +----+----+----+--                                      +-----+-----+-----+
 *     | 16 | 16 | 16 | ...                                    |  0  |  1  |  2  |   each 2 columns of
 *     +----+----+----+--                                      +-----+-----+-----+   8 k x PER rows
 *
 * Tensor cores truncate when they accumulate, so a long chain of products would drift.  Here a chain is BLK_K
 * long, begins at 0, goes from the small products to the large ones, and is then added, rounded to nearest,
 * to a second set of accumulators.  The products a0 b0 have 16 bits: none are lost where they are of like
 * size, which tf32 parts, with their 22, could not say.
 *
 * What is split is 2^16 a: then the parts of the smallest elements are no smaller than bf16 has them.
 * Elements from 2^111 up, infinities and NaNs make sums that are not finite; those are computed again, by
 * fused multiply-adds along K.
 *
 * Parameters, from gemm.tune: BLK_N, BLK_K, STAGES, WARPGROUPS.
 * Method: G. Henry, P. Tang, A. Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For
 * Higher-Precision Computations", 2019; the two sets of accumulators as in DeepSeek-V3.
 */
#define BLK_M        (64 * WARPGROUPS)
#define BYTES_A      (BLK_K / 16 * BF16X3_STEP(BLK_M))
#define BYTES_B      (BLK_K / 16 * BF16X3_STEP(BLK_N))
#define STAGE        (BYTES_A + BYTES_B)
#define CONSUMERS    (128 * WARPGROUPS)         /* work-items */
#define ACCUMULATORS (BLK_N / 2)                /* of a work-item, in each of the two sets */
#define RASTER       16
#define SPLIT_SPAN   64                         /* of K, of a work-group that splits */

LARGE_LOCAL(gemm_bf16x3, STAGES * STAGE)

KERNEL(256) void
split(int rows, int K, int per, VIEW e, GLOBAL const T *RESTRICT g, VIEW v,
      GLOBAL uint4 *RESTRICT parts, VIEW p)
{
    bf16x3_split(GROUP_ID(0), SPLIT_SPAN, rows, K, BLK_K, per, e, g, v, parts, p);
}

#define PRODUCT(k, i, j, add) \
    WGMMA(BLK_N, WGMMA_BF16, WGMMA_MAJOR(0, 0), d, \
          wgmma_columns(a + (k) * BF16X3_STEP(BLK_M) + (i) * BF16X3_PART(BLK_M), BLK_M), \
          wgmma_columns(b + (k) * BF16X3_STEP(BLK_N) + (j) * BF16X3_PART(BLK_N), BLK_N), add)

KERNEL(CONSUMERS + 128) void
gemm_bf16x3(int M, int N, int K, VIEW eC, R alpha,
            GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const T *RESTRICT gB, VIEW vB,
            GLOBAL const uint4 *parts_a, VIEW pA, GLOBAL const uint4 *parts_b, VIEW pB, OUTPUT_PARAMS)
{
    LARGE_LOCAL_ARRAY(sAB, STAGES * STAGE);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(STAGES));
    LOCAL_ARRAY(int, odd, 1);                   /* some sum is not finite */
    LOCAL float *sums = (LOCAL float *)sAB;     /* when all slices are read */

    const struct schedule schedule = schedule_of(M, N, BLK_M, BLK_N, RASTER);
    const struct tile t = tile_at(schedule, GROUP_ID(0));
    const int me = LOCAL_ID(), warp = this_warp(), slices = (K + BLK_K - 1) / BLK_K;
    const UINT32 stages = warp_uniform(LOCAL_ADDRESS(sAB));
    struct pipeline p = pipe_at(barriers, STAGES);
    float d[ACCUMULATORS], sum[ACCUMULATORS];

    if (me == 0) {
        pipe_init(p, STAGES, WARPGROUPS);
        odd[0] = 0;
    }
    BARRIER();

    if (warp >= ROLE_WARPS) {
        const INT64 panel_a = batch_offset(pA, eC, t.batch) + t.m0 / BLK_M;
        const INT64 panel_b = batch_offset(pB, eC, t.batch) + t.n0 / BLK_N;
        GLOBAL const uint4 *a = parts_a + pA.s7 + panel_a * slices * (BYTES_A / 16);
        GLOBAL const uint4 *b = parts_b + pB.s7 + panel_b * slices * (BYTES_B / 16);

        role_give_registers(WARPGROUPS > 1);
        if (warp == ROLE_WARPS && is_elected())
            for (int i = 0; i < slices; i++) {
                const UINT32 to = stages + p.stage * STAGE;

                p = producer_acquire(p);
                producer_expect(p, STAGE);
                copy_bytes(to, a + (INT64)i * (BYTES_A / 16), BYTES_A, pipe_full(p));
                copy_bytes(to + BYTES_A, b + (INT64)i * (BYTES_B / 16), BYTES_B, pipe_full(p));
                p = pipe_next(p, STAGES);
            }
        return;
    }
    role_take_registers(WARPGROUPS > 1);

    const int r = acc_first_row(warp, me % 32), c = acc_first_col(me % 32);
    const struct output output = OUTPUT(t.batch);
    UINT32 bias_row[BIAS_ROW(ACCUMULATORS)];

    prepare_tile(bias_row, &output, ACCUMULATORS, t.n0, me % 32);

    UNROLL for (int i = 0; i < ACCUMULATORS; i++)
        d[i] = sum[i] = 0.0f;
    for (int i = 0; i < slices; i++) {
        const UINT32 a = stages + p.stage * STAGE + warp / 4 * 1024, b = stages + p.stage * STAGE + BYTES_A;

        consumer_wait(p);
        wgmma_begin();
        BF16X3_CHAIN(PRODUCT);
        wgmma_commit();
        WGMMA_WAIT(BLK_N, d, "0");
        if (me % 128 == 0)
            consumer_release(p);
        p = pipe_next(p, STAGES);
        UNROLL for (int j = 0; j < ACCUMULATORS; j++)
            sum[j] += d[j];
    }
    if (!bf16x3_all_finite(sum, ACCUMULATORS))
        odd[0] = 1;
    bar_sync(1, CONSUMERS);                     /* all slices are read */

    if (!odd[0]) {
        UNROLL for (int i = 0; i < ACCUMULATORS; i++)
            sum[i] *= BF16X3_UNSCALE;
        store_tile(&output, sum, bias_row, ACCUMULATORS, t.m0 + r, t.m0 + r + 8, t.n0, me % 32, 0);
        return;
    }
    UNROLL for (int i = 0; i < ACCUMULATORS; i++)
        sums[(r + ACC_ROW(i)) * BLK_N + c + ACC_COL(i)] = sum[i];
    bar_sync(1, CONSUMERS);

    gA += batch_offset(vA, eC, t.batch);
    gB += batch_offset(vB, eC, t.batch);
    for (int i = me; i < BLK_M * BLK_N; i += CONSUMERS) {
        const int m = t.m0 + i / BLK_N, n = t.n0 + i % BLK_N;

        if (m < M && n < N)
            store_element(&output, m, n,
                          bf16x3_sum(sums[i], gA + m * (INDEX)vA.s5, (INDEX)vA.s6,
                                     gB + n * (INDEX)vB.s6, (INDEX)vB.s5, K));
    }
}
