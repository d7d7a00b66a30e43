/* cl/gemm/wgmma_splitk.cl - gemm_wgmma with split-K, for a C of few tiles, for NVIDIA's sm_90
 *
 * K is cut into parts of `span` slices, of which the last may have fewer.  Each tile of each part is a tile
 * of its own, whose partial sums go to the workspace in f32, [part][batch][m][n];
 * gemm_sum adds them, always in the same order (cl/gemm/splitk_sum.cl).
 *
 * Parameters and method: cl/gemm/wgmma.cl.
 */
#define ITEMS   (128 * WARPGROUPS + 32)
#define MAPS_AT (STAGES * STAGE)

LARGE_LOCAL(gemm_wgmma_splitk, MAPS_AT + MAPS_ROOM)

/* Slices of K of a part. */
DEVICE int slices_of(int part, int span, int slices)
{
    const int left = slices - part * span;

    return left < span ? left : span;
}

KERNEL(ITEMS) void
gemm_wgmma_splitk(GEMM_PARAMS, int span, GLOBAL float *RESTRICT gSums)
{
    LARGE_LOCAL_ARRAY(sAB, MAPS_AT + MAPS_ROOM);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(STAGES));
    LOCAL UINT32 *const room = (LOCAL UINT32 *)(sAB + MAPS_AT);

    const int me = LOCAL_ID(), lane = me % 32, warp = this_warp(), slices = (K + BLK_K - 1) / BLK_K;
    const UINT32 stages = warp_uniform(LOCAL_ADDRESS(sAB));
    const struct schedule schedule = schedule_by(M, N, BLK_M, BLK_N, RASTER, vTiles);
    GLOBAL unsigned INT64 *maps = gMaps + first_map * MAP_WORDS;
    struct pipeline p = pipe_at(barriers, STAGES);
    struct tile t = { 0, 0, 0, 0 };
    struct boxes boxes = { 0, 0, 0, 0 };

    if (warp == ROLE_WARPS) {                   /* what must be done first, by a warp each */
        t = tile_of_split(schedule, GROUP_ID(0), batches);
        GEMM_BOXES(boxes, t);
    } else if (!kept && warp < 2) {
        GEMM_KEEP_MAPS(maps, room, warp, lane);
    } else if (me == 96) {
        pipe_init(p, STAGES, WARPGROUPS);
    }
    BARRIER();

    if (warp == ROLE_WARPS) {
        if (is_elected()) {
            gemm_acquire_maps(maps);
            for (int at = GROUP_ID(0); at < tiles; at += groups) {
                p = gemm_load(p, stages, maps, boxes, t, t.part * span, slices_of(t.part, span, slices),
                              vA.s4 != 0, vB.s4 != 0);
                t = tile_of_split(schedule, at + groups, batches);
                GEMM_BOXES(boxes, t);
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
            store_pairs(gSums, (INDEX)(t.part * batches + t.batch) * M * N, N, 1, d, ACCUMULATORS,
                        t.m0 + r, t.m0 + r + 8, t.n0 + c, M, N);
        }
    }
}
