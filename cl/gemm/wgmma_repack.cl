/* cl/gemm/wgmma_repack.cl - gemm_wgmma that repacks unaligned operands meanwhile, for NVIDIA's sm_90
 *
 * Three more warps repack the operands that TMA cannot load as they are (cl/gemm/repack.h): from_a and
 * from_b, to gA and gB, which are loaded once they are complete.
 *
 * Parameters and method: cl/gemm/wgmma.cl.
 */
#define ITEMS   (128 * WARPGROUPS + 32 + 32 * REPACK_WARPS)
#define MAPS_AT (STAGES * STAGE)

LARGE_LOCAL(gemm_wgmma_repack, MAPS_AT + MAPS_ROOM)

KERNEL(ITEMS) void
gemm_wgmma_repack(GEMM_PARAMS, GLOBAL const T *from_a, VIEW view_a, GLOBAL const T *from_b, VIEW view_b,
                  int strips_a, int strips_b, int first_a, int first_b, int chunk, GLOBAL int *counters,
                  OUTPUT_PARAMS)
{
    LARGE_LOCAL_ARRAY(sAB, MAPS_AT + MAPS_ROOM);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(STAGES));
    LOCAL_ARRAY(uint4, rows, REPACK_WARPS * REPACK_ROOM);

    const int me = LOCAL_ID(), lane = me % 32, warp = this_warp(), slices = (K + BLK_K - 1) / BLK_K;
    const UINT32 stages = warp_uniform(LOCAL_ADDRESS(sAB));
    const struct schedule schedule = schedule_by(M, N, BLK_M, BLK_N, RASTER, vTiles);
    const struct repack repack = { strips_a, strips_b, first_a, first_b, chunk, (K + chunk - 1) / chunk };
    GLOBAL unsigned INT64 *maps = gMaps + first_map * MAP_WORDS;
    struct pipeline p = pipe_at(barriers, STAGES);
    struct tile t = { 0, 0, 0, 0 };
    struct boxes boxes = { 0, 0, 0, 0 };

    if (warp == ROLE_WARPS) {                   /* what must be done first, by a warp each */
        t = tile_at(schedule, GROUP_ID(0));
        GEMM_BOXES(boxes, t);
    } else if (!kept && warp < 2) {
        GEMM_KEEP_MAPS(maps, (LOCAL UINT32 *)(sAB + MAPS_AT), warp, lane);
    } else if (me == 96) {
        pipe_init(p, STAGES, WARPGROUPS);
    }
    BARRIER();

    if (warp == ROLE_WARPS) {
        if (is_elected()) {
            const int in_chunk = chunk / BLK_K;
            int seen[2] = { 0, 0 };

            gemm_acquire_maps(maps);
            for (int at = GROUP_ID(0); at < tiles; at += groups) {
                for (int i = 0; i < slices; i += in_chunk) {
                    repack_wait(counters, repack, t.m0 + BLK_M, t.n0 + BLK_N, i * BLK_K, seen);
                    p = gemm_load(p, stages, maps, boxes, t, i, slices - i < in_chunk ? slices - i : in_chunk,
                                  0, 0);
                }
                t = tile_at(schedule, at + groups);
                GEMM_BOXES(boxes, t);
            }
        }
    } else if (warp < ROLE_WARPS) {
        const UINT32 a = gemm_a(stages, warp), b = gemm_b(stages);
        const int r = acc_first_row(warp, lane);

        for (int at = GROUP_ID(0); at < tiles; at += groups) {
            float d[ACCUMULATORS];

            gemm_issue(d, p, a, b, 1);
            t = tile_at(schedule, at);          /* while the tensor cores are busy */

            const struct output c = OUTPUT(0);
            UINT32 bias_row[BIAS_ROW(ACCUMULATORS)];

            prepare_tile(bias_row, &c, ACCUMULATORS, t.n0, lane);
            p = gemm_multiply(d, p, a, b, slices);
            store_tile(&c, d, bias_row, ACCUMULATORS, t.m0 + r, t.m0 + r + 8, t.n0, lane, UNALIGNED_C);
        }
    } else {
        const struct repacked a = { from_a + view_a.s0, MN_MAJOR_A ? (INDEX)view_a.s6 : (INDEX)view_a.s5,
                                    (GLOBAL T *)gA + vA.s0, MN_MAJOR_A ? (INDEX)vA.s6 : (INDEX)vA.s5 };
        const struct repacked b = { from_b + view_b.s0, MN_MAJOR_B ? (INDEX)view_b.s5 : (INDEX)view_b.s6,
                                    (GLOBAL T *)gB + vB.s0, MN_MAJOR_B ? (INDEX)vB.s5 : (INDEX)vB.s6 };

        repack_all(rows + (me / 32 - ROLE_WARPS - 1) * REPACK_ROOM, counters, repack, a, b, M, N, K, lane);
    }
    repack_end(counters, groups);
}
