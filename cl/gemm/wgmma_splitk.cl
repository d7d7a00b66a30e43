/* cl/gemm/wgmma_splitk.cl - gemm_wgmma with split-K, for a C of few tiles, for NVIDIA's sm_90
 *
 * K is cut into parts of `span` slices, of which the last may have fewer.  Each tile of each part is a tile
 * of its own, whose partial sums go to the workspace in f32, [part][batch][m][n] from element `start` on;
 * gemm_sum adds them, always in the same order (cl/gemm/splitk_sum.cl).
 *
 * Parameters and method: cl/gemm/wgmma.cl.
 */
#define ITEMS (128 * WARPGROUPS + 32)

LARGE_LOCAL(gemm_wgmma_splitk, STAGES * STAGE)

/* Slices of K of a part. */
DEVICE int slices_of(int part, int span, int slices)
{
    const int left = slices - part * span;

    return left < span ? left : span;
}

KERNEL(ITEMS) void
gemm_wgmma_splitk(int M, int N, int K, VIEW eC, R alpha, int groups, int tiles, VIEW vTiles,
                  GLOBAL const T *gA, VIEW vA, GLOBAL const T *gB, VIEW vB, GLOBAL unsigned INT64 *gMaps,
                  int span, GLOBAL float *RESTRICT gSums, int start)
{
    LARGE_LOCAL_ARRAY(sAB, STAGES * STAGE);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(STAGES));
    LOCAL_ARRAY(unsigned INT64, room, 2 * MAP_WORDS);

    const int me = LOCAL_ID(), lane = me % 32, warp = this_warp(), slices = (K + BLK_K - 1) / BLK_K;
    const int batches = (int)(eC.s1 * eC.s2 * eC.s3 * eC.s4);
    const UINT32 stages = warp_uniform(LOCAL_ADDRESS(sAB));
    const struct schedule schedule = schedule_by(M, N, BLK_M, BLK_N, RASTER, vTiles);
    GLOBAL unsigned INT64 *maps = gMaps + GROUP_ID(0) * (2 * MAP_WORDS);
    struct pipeline p = pipe_at(barriers, STAGES);
    struct tile t = { 0, 0, 0, 0 };

    if (warp == 0)                              /* what must be done first, by a warp each */
        gemm_describe(maps, room, me, M, N, K, batches, gA, vA, gB, vB);
    else if (me == 32)
        pipe_init(p, STAGES, WARPGROUPS);
    else if (warp == ROLE_WARPS)
        t = tile_of_split(schedule, GROUP_ID(0), batches);
    BARRIER();

    if (warp == ROLE_WARPS) {
        if (is_elected()) {
            gemm_acquire_maps(maps);
            for (int at = GROUP_ID(0); at < tiles; at += groups) {
                p = gemm_load(p, stages, maps, t, t.part * span, slices_of(t.part, span, slices),
                              vA.s4 != 0, vB.s4 != 0);
                t = tile_of_split(schedule, at + groups, batches);
            }
        }
    } else {
        const UINT32 a = gemm_a(stages, warp), b = gemm_b(stages);
        const int r = acc_first_row(warp, lane), c = acc_first_col(lane);

        for (int at = GROUP_ID(0); at < tiles; at += groups) {
            float d[ACCUMULATORS];

            gemm_issue(d, p, a, b, 1);
            t = tile_of_split(schedule, at, batches);       /* while the tensor cores are busy */
            p = gemm_multiply(d, p, a, b, slices_of(t.part, span, slices));
            store_pairs(gSums, start + (INDEX)(t.part * batches + t.batch) * M * N, N, 1, d, ACCUMULATORS,
                        t.m0 + r, t.m0 + r + 8, t.n0 + c, M, N);
        }
    }
}
