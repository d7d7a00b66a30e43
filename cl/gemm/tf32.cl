/* cl/gemm/tf32.cl - C := act(alpha A B + beta C + bias), f32 rounded to tf32, for NVIDIA's sm_90
 *
 * As gemm_wgmma (cl/gemm/wgmma.cl).  But wgmma takes tf32 operands in local memory only where they are
 * K-major, so one operand that is, is the right one (B; or A, of C^T = B^T A^T), and the left one goes
 * through registers where it is M-major (cl/gemm/tf32.h).  cl/gemm/tf32_pack.cl is needed only where neither
 * is K-major, or rows do not begin at multiples of 16 bytes.
 *
 * TMA rounds to tf32 on the way, to nearest: wgmma alone would cut off the lower 13 bits.
 *
 * Parameters, from gemm.tune: BLK_N, STAGES, WARPGROUPS, RASTER.  Constants: MN_MAJOR_A; VECTORS, 1 where
 * rows of C, and of a residual, are whole 16-byte vectors.
 */
/* Registers of a consumer: accumulators, the residual that waits in them or a piece of it, and others.
 * SHARE: what each work-item has where one warp produces and as many work-groups run together as their local
 * memory leaves room for; MOST: what a consumer has where the producer, a warpgroup then, gives up its own,
 * as it does where A goes through registers.  lib/gemm/tf32.c has all this, too. */
#define NEEDED(held) (ACCUMULATORS + (held) + 40)
#define TWICE        (2 * STAGES * STAGE <= 224 * 1024)
#define SHARE        (WARPGROUPS == 1 ? (TWICE ? 200 : 255) : WARPGROUPS == 2 ? (TWICE ? 112 : 168) : 128)
#define MOST         (TWICE || WARPGROUPS == 1 ? SHARE : ROLE_MANY)
#define HOLDS        (RESIDUAL_BYTES > 0 && !MN_MAJOR_A && NEEDED(HELD(ACCUMULATORS)) <= MOST)
#define PIECE        (RESIDUAL_BYTES ? FINISH_PIECE : 0)
#define MOVES        (WARPGROUPS > 1 && !TWICE && \
                      (MN_MAJOR_A || NEEDED(HOLDS ? HELD(ACCUMULATORS) : PIECE) > SHARE))
#define ITEMS        (128 * WARPGROUPS + (MOVES ? 128 : 32))

#define MAPS_AT      (STAGES * STAGE)

LARGE_LOCAL(gemm_tf32, MAPS_AT + MAPS_ROOM)

KERNEL(ITEMS) void
gemm_tf32(GEMM_PARAMS, OUTPUT_PARAMS)
{
    LARGE_LOCAL_ARRAY(sAB, MAPS_AT + MAPS_ROOM);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(STAGES));
    LOCAL UINT32 *const room = (LOCAL UINT32 *)(sAB + MAPS_AT);

    const int me = LOCAL_ID(), lane = me % 32, warp = this_warp();
    const int slices = (K + 2 * BLK_K - 1) / (2 * BLK_K) * 2;   /* even: past the edge of K are zeros */
    const UINT32 stages = warp_uniform(LOCAL_ADDRESS(sAB));
    const struct schedule schedule = schedule_by(M, N, BLK_M, BLK_N, RASTER, vTiles);
    GLOBAL unsigned INT64 *maps = gMaps + first_map * MAP_WORDS;
    struct pipeline p = pipe_at(barriers, STAGES);
    struct tile t = { 0, 0, 0, 0 };
    struct boxes boxes = { 0, 0, 0, 0 };

    if (warp == ROLE_WARPS) {                   /* what must be done first, by a warp each */
        t = tile_at(schedule, GROUP_ID(0));
        GEMM_BOXES(boxes, t);
    } else if (!kept && warp < 2) {
        GEMM_KEEP_MAPS(maps, room, warp, lane);
    } else if (me == 96) {
        pipe_init(p, STAGES, MN_MAJOR_A ? ROLE_WARPS : WARPGROUPS);
    }
    BARRIER();

    if (warp >= ROLE_WARPS) {
        role_give_registers(MOVES);
        if (warp == ROLE_WARPS && is_elected()) {
            gemm_acquire_maps(maps);
            for (int at = GROUP_ID(0); at < tiles; at += groups) {
                p = gemm_load(p, stages, maps, boxes, t, 0, slices, vA.s4 != 0, vB.s4 != 0);
                t = tile_at(schedule, at + groups);
                GEMM_BOXES(boxes, t);
            }
        }
    } else {
        role_take_registers(MOVES);

        LOCAL const unsigned char *const s = sAB + warp / 4 * 8192;
        const UINT32 a = gemm_a(stages, warp), b = gemm_b(stages);
        const int r = MN_MAJOR_A ? warp / 4 * 64 + tf32_first_row(me) : acc_first_row(warp, lane);
        unsigned int even[BLK_K / 2], odd[BLK_K / 2];

        for (int at = GROUP_ID(0); at < tiles; at += groups) {
            const int early = GEMM_EARLY && at < groups, below = MN_MAJOR_A ? 4 : 8;
            float d[ACCUMULATORS];
            UINT32 bias_row[BIAS_ROW(ACCUMULATORS)];
            unsigned int held[HOLDS ? HELD(ACCUMULATORS) : 1];
            struct output c;
            int m;

            if (early)                          /* while the first slice is awaited */
                GEMM_PREPARE(below)
            if (MN_MAJOR_A)
                tf32_issue(d, even, p, s, b, me, 1);
            else
                gemm_issue(d, p, a, b, 1);
            if (!early)                         /* while the tensor cores are busy */
                GEMM_PREPARE(below)
            p = MN_MAJOR_A ? tf32_multiply(d, even, odd, p, s, b, me, slices)
                           : gemm_multiply(d, p, a, b, slices);

            finish_tile_held(&c, d, bias_row, HOLDS ? held : 0, ACCUMULATORS, m, m + below, t.n0, lane);
            if (MN_MAJOR_A && !VECTORS && c.row == 1 && (c.col | M) % 4 == 0 && (UINT64)c.c % 16 == 0)
                store_columns(c.c, 0, c.col, d, ACCUMULATORS, m, t.n0 + acc_first_col(lane), lane, M, N);
            else
                store_finished_rows(&c, d, ACCUMULATORS, m, m + below, t.n0, lane);
        }
    }
}
