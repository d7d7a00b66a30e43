/* cl/gemm/wgmma.cl - C := act(alpha A B + beta C + bias) in 16-bit types, for NVIDIA's sm_90
 *
 * One warp loads slices of A and B by TMA, STAGES ahead; WARPGROUPS warpgroups multiply 64 rows of the tile
 * each by all its BLK_N columns with wgmma, which reads local memory and accumulates in f32
 * (cl/gemm/wgmma.h).
 *
 * As many work-groups as the device holds run through all tiles, so that a tile's loads go on while the one
 * before it is stored.  A residual goes through the same stages (cl/tile/staged_residual.h).  With several
 * TEAMS of warpgroups, each has tiles of its own, and they take turns with the tensor cores, as in
 * cl/conv/wgmma.cl: one multiplies while the others compute an activation and store.
 *
 * Whatever goes into an address or a descriptor is warp-uniform, and known to be (warp_uniform(),
 * is_elected(), no division by STAGES): otherwise it is moved to uniform registers before each product.
 *
 * Parameters, from gemm.tune: BLK_N, STAGES, WARPGROUPS of a tile, RASTER, TEAMS.  Constants: MN_MAJOR_A,
 * MN_MAJOR_B; VECTORS, 1 where rows of C, and of a residual, are whole 16-byte vectors.  A residual of 16
 * bits is staged then.
 * Method: warp-specialised producer and consumers, persistent grid, as in NVIDIA's CUTLASS for Hopper.
 */
/* Beside so many accumulators a residual or an activation needs the registers of the producer (roles.h).
 * lib/gemm/wgmma.c has it, too. */
#define MOVES   (ACCUMULATORS * WARPGROUPS * TEAMS == 256 && ROLE_EPILOGUE)
#define ITEMS   (128 * WARPGROUPS * TEAMS + (MOVES ? 128 : 32))
#define HOLDS   0                               /* a residual, in registers */
#define MAPS_AT (STAGES * STAGE)

LARGE_LOCAL(gemm_wgmma, MAPS_AT + MAPS_ROOM)

KERNEL(ITEMS) void
gemm_wgmma(GEMM_PARAMS, OUTPUT_PARAMS)
{
    LARGE_LOCAL_ARRAY(sAB, MAPS_AT + MAPS_ROOM);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(STAGES) + TEAMS);
    LOCAL UINT32 *const room = (LOCAL UINT32 *)(sAB + MAPS_AT);

    const int me = LOCAL_ID(), lane = me % 32, warp = this_warp(), slices = (K + BLK_K - 1) / BLK_K;
    const UINT32 stages = warp_uniform(LOCAL_ADDRESS(sAB));
    const struct schedule schedule = schedule_by(M, N, BLK_M, BLK_N, RASTER, vTiles);
    GLOBAL unsigned INT64 *maps = gMaps + first_map * MAP_WORDS;
    struct pipeline p = pipe_at(barriers, STAGES);
    const UINT32 turns = p.full + 8 * PIPE_BARRIERS(STAGES);
    struct tile t = { 0, 0, 0, 0 };
    struct boxes boxes = { 0, 0, 0, 0 };
    const int is_staged = RESIDUAL_BYTES == 2 && (VECTORS || staged);

    if (warp == TEAMS * ROLE_WARPS) {           /* what must be done first, by a warp each */
        t = tile_at(schedule, GROUP_ID(0));
        GEMM_BOXES(boxes, t);
    } else if (!kept && warp < 2) {
        GEMM_KEEP_MAPS(maps, room, warp, lane);
    } else if (!kept && warp == 2 && is_staged) {
        const struct staged residual = STAGED_MATRIX;

        residual_map(maps, room, lane, residual, M, N, batches);
    } else if (me == 96) {
        pipe_init(p, STAGES, WARPGROUPS);
        if (TEAMS > 1)
            turns_init(turns, TEAMS);
    }
    BARRIER();

    if (warp >= TEAMS * ROLE_WARPS) {
        role_give_registers(MOVES);
        if (warp == TEAMS * ROLE_WARPS && is_elected()) {
            gemm_acquire_maps(maps);
            if (is_staged)
                residual_acquire(maps, M);
            for (int at = GROUP_ID(0); at < tiles; at += groups) {
                p = gemm_load(p, stages, maps, boxes, t, 0, slices, vA.s4 != 0, vB.s4 != 0);
                if (is_staged)
                    p = residual_load(p, stages, maps, M, N, t.m0, t.n0, t.batch * RESIDUAL_STEP);
                t = tile_at(schedule, at + groups);
                GEMM_BOXES(boxes, t);
            }
        }
    } else {
        const int team = TEAMS > 1 ? warp / ROLE_WARPS : 0, own = warp - team * ROLE_WARPS;
        const UINT32 a = gemm_a(stages, own), b = gemm_b(stages);
        const UINT32 turn = TEAMS > 1 ? turns + 8 * (team + 1 < TEAMS ? team + 1 : 0) : 0;
        const int r = acc_first_row(own, lane), in_tile = slices + is_staged * RESIDUAL_STAGES;
        int turned = team == 0;

        role_take_registers(MOVES);
        if (TEAMS > 1)                          /* past the first tiles of the teams before */
            p = pipe_skip(p, team * in_tile, STAGES);
        for (int at = GROUP_ID(0) + team * groups; at < tiles; at += TEAMS * groups) {
            const int early = TEAMS > 1 || (GEMM_EARLY && at < groups);
            float d[FINISHED];
            UINT32 bias_row[BIAS_ROW(FINISHED)];
            unsigned int held[1];
            struct output c;
            int m;

            if (early)                          /* while the first slice is awaited */
                GEMM_PREPARE(8)
            if (TEAMS > 1) {
                barrier_wait(turns + 8 * team, turned);
                turned ^= 1;
            }
            gemm_issue(d, p, a, b, 1);
            if (!early)                         /* while the tensor cores are busy */
                GEMM_PREPARE(8)
            p = gemm_multiply_turn(d, p, a, b, slices, turn, is_staged * RESIDUAL_STAGES,
                                   STORES_THROUGH && !is_staged);
            UNROLL for (int i = ACCUMULATORS; i < FINISHED; i++)
                d[i] = 0.0f;
            if (is_staged)
                p = residual_add(d, p, stages, &c, m, m + 8, t.n0, own, lane, 1 + warp / 4, STORES_THROUGH);
            finish_tile_added(&c, d, bias_row, 0, is_staged, FINISHED, m, m + 8, t.n0, lane);
            store_through_stage(p, stages, own, is_staged, at + groups < tiles, &c, d, m, m + 8, t.n0, lane,
                                UNALIGNED_C);
            if (TEAMS > 1)
                p = pipe_skip(p, (TEAMS - 1) * in_tile, STAGES);
        }
    }
}
