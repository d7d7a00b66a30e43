/* cl/conv/wgmma.cl - y := act(alpha conv(x, w) + beta R + bias) and its gradient for x, in 16-bit types, or
 * in f32 rounded to tf32, for NVIDIA's sm_90
 *
 * An implicit matrix product of pixels and filters: one lane loads pixels by TMA in im2col mode, and filters
 * (cl/conv/im2col.h), STAGES ahead; WARPGROUPS warpgroups multiply 64 pixels of the tile each by all its
 * BLK_N channels with wgmma (cl/gemm/wgmma.h).
 *
 *                                 BLK_N channels of the output
 *                              +------+
 *      a tap, BLK_K channels   |filter|
 *                              +------+
 *                     +-----+  +------+  64 pixels: warpgroup 0
 *                     |im2col  |output|
 *                     +-----+  +------+
 *                     |     |  |      |  64 pixels: warpgroup 1
 *                     +-----+  +------+
 *
 * As many work-groups as the device holds run through all tiles, so that a tile's loads go on while the one
 * before it is stored.  With several TEAMS of warpgroups, each has tiles of its own, and they take turns with
 * the tensor cores: one multiplies while the others store.  A team waits for its turn before it waits for its
 * first slice, since a barrier tells only one pass through the stages from the next.
 *
 * A residual goes through the same stages, behind a tile's slices (cl/tile/staged_residual.h), where pixels
 * of the output follow each other: not in phases, nor in NCHW.
 *
 * With split-K, the slices of a tile are cut into parts of `span`, of which the last may have fewer.  Each is
 * a tile of its own, whose partial sums go to the workspace in f32, [part][pixel][channel]; gemm_sum adds
 * them, always in the same order (cl/gemm/splitk_sum.cl).
 *
 * TMA rounds f32 to tf32 on the way, to nearest: wgmma alone would cut off the lower 13 bits.
 *
 * Parameters, from conv.tune: BLK_N, STAGES, WARPGROUPS of a tile, RASTER, TEAMS.  Constants: DIRECTION;
 * IMAGE_RANK; BIAS_OF_CHANNELS, 1 where the bias is the same for all pixels; TWINS; SPLITK; VECTORS, as in
 * cl/gemm/wgmma.cl.
 * Method: implicit GEMM with TMA in im2col mode, as in NVIDIA's CUTLASS for Hopper.
 */
#define MAPS_AT (STAGES * STAGE)
/* As in cl/gemm/wgmma.cl; lib/conv/wgmma.c has it, too. */
#define MOVES   (ACCUMULATORS * WARPGROUPS * TEAMS == 256 && ROLE_EPILOGUE && !SPLITK)
#define ITEMS   (128 * WARPGROUPS * TEAMS + (MOVES ? 128 : 32))

/* Tiles of phases that meet no tap have no products: they come last, and each is stored behind another tile,
 * while the next one is loaded and multiplied.  In 16-bit types they have one slice of zeros. */
#define SKIPS   (TYPE == TYPE_F32 && DIRECTION == 1)

#define THROUGH (STORES_THROUGH && !ACROSS && !SPLITK)

LARGE_LOCAL(conv_wgmma, MAPS_AT + MAPS_ROOM)

/* What the epilogue of a tile needs: the rows of a work-item, and its part of the bias. */
struct own_rows { int m, m8; };

DEVICE struct own_rows conv_prepare(UINT32 *bias_row, const struct output *c, struct tile t, int r,
                                    int lane, LOCAL const struct phase *phases, struct window win,
                                    VIEW eOut, VIEW vStep, VIEW vC, VIEW eX)
{
    const struct own_rows own = { conv_row(t.m0 + r, &phases[t.batch], win, eOut, vStep, vC, eX, c->M),
                                  conv_row(t.m0 + r + 8, &phases[t.batch], win, eOut, vStep, vC, eX, c->M) };

    prepare_tile(bias_row, c, FINISHED, t.n0, lane);
    return own;
}

/* added: of finish_tile_added(). */
DEVICE void conv_store(const struct output *c, float *d, const UINT32 *bias_row, int added,
                       struct own_rows mine, int n0, int lane)
{
    if (ACROSS) {
        store_tile_across(c, d, bias_row, FINISHED, mine.m, mine.m8, n0, lane);
    } else {
        finish_tile_added(c, d, bias_row, 0, added, FINISHED, mine.m, mine.m8, n0, lane);
        store_finished_rows(c, d, FINISHED, mine.m, mine.m8, n0, lane);
    }
}

KERNEL(ITEMS) void
conv_wgmma(CONV_TILE_PARAMS, CONV_PARAMS)
{
    LARGE_LOCAL_ARRAY(room, MAPS_AT + MAPS_ROOM);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(STAGES) + TEAMS);
    LOCAL_ARRAY(struct phase, phases, MOST_PHASES);
    LOCAL UINT32 *const described = (LOCAL UINT32 *)(room + MAPS_AT);

    const int me = LOCAL_ID(), lane = me % 32, warp = this_warp();
    const int M = (int)(eGrid.s2 * eGrid.s4 * eGrid.s5 * eGrid.s6), count = (int)eGrid.s1;
    const int channels = (from_channels + BLK_K - 1) / BLK_K;       /* slices of them */
    const struct window win = window_of(eGrid, vFirst, vWindow);
    const struct schedule schedule = schedule_by(M, N, BLK_M, BLK_N, RASTER, vTiles);
    const UINT32 stages = warp_uniform(LOCAL_ADDRESS(room));
    GLOBAL unsigned INT64 *maps = gMaps + first_map * MAP_WORDS;
    struct pipeline p = pipe_at(barriers, STAGES);
    const UINT32 turns = p.full + 8 * PIPE_BARRIERS(STAGES);
    struct tile first = { 0, 0, 0, 0 };
    struct pixel at_first = { 0, 0, 0, 0 };
    const int is_staged =
        RESIDUAL_BYTES == 2 && !SPLITK && !SKIPS && !ACROSS && !PIXELS_MAJOR && (VECTORS || staged);

    if (!kept && warp == 0) {
        conv_source_map(maps, described, lane, gX + vX.s0, vX, eX, win);
    } else if (!kept && warp == 1) {
        filter_map(maps + MAP_WORDS, described + MAP_BYTES / 4, lane, OPERAND_TYPE, T_BYTES, gW + vW.s0, vW,
                   eTaps, MN_MAJOR_B ? BLK_K : BLK_N);
    } else if (warp == 2 && lane == 0) {
        pipe_init(p, STAGES, WARPGROUPS);
        turns_init(turns, TEAMS);
    } else if (warp == 3 && lane < count) {
        struct phase f;

        CONV_PHASE(&f, lane);
        phases[lane] = f;
    }
    if (!kept && warp == 3 && is_staged) {
        const struct staged residual = STAGED_PIXELS;

        residual_map(maps, described, lane, residual, conv_rows(eOut, vC), N, 1);
    } else if (warp == TEAMS * ROLE_WARPS) {
        first = tile_of_split(schedule, GROUP_ID(0), count);
        at_first = pixel_of(win, first.m0);
    }
    BARRIER();

    const int multiplied =
        SKIPS ? tiles_with_taps(phases, count, schedule.tiles_m * schedule.tiles_n) : tiles;

    if (warp >= TEAMS * ROLE_WARPS) {
        role_give_registers(MOVES);
        if (warp == TEAMS * ROLE_WARPS && is_elected()) {
            gemm_acquire_maps(maps);
            if (is_staged)
                residual_acquire(maps, conv_rows(eOut, vC));
            for (int at = GROUP_ID(0); at < multiplied; at += groups) {
                p = conv_load(p, stages, maps, first, at_first, &phases[first.batch], win, channels,
                              first.part * span, slices_of(first, phases, span, channels));
                if (is_staged)
                    p = residual_load(p, stages, maps, conv_rows(eOut, vC), N, first.m0, first.n0, 0);
                first = tile_of_split(schedule, at + groups, count);
                at_first = pixel_of(win, first.m0);
            }
        }
    } else {
        const int team = warp / ROLE_WARPS, own = warp - team * ROLE_WARPS, r = acc_first_row(own, lane);
        const UINT32 a = gemm_a(stages, own), b = gemm_b(stages);
        const UINT32 turn = TEAMS > 1 ? turns + 8 * (team + 1 < TEAMS ? team + 1 : 0) : 0;
        const int rows = conv_rows(eOut, vC);
        struct output c = CONV_TILE_OUTPUT(rows, N);
        int passed = GROUP_ID(0), turned = team == 0;
        struct tile t = tile_of_split(schedule, GROUP_ID(0) + team * groups, count);

        role_take_registers(MOVES);
        for (int at = GROUP_ID(0) + team * groups; at < multiplied; at += TEAMS * groups) {
            const int slices = slices_of(t, phases, span, channels), n0 = t.n0, part = t.part;
            float d[FINISHED];
            UINT32 bias_row[BIAS_ROW(FINISHED)];
            const int early = TEAMS > 1 || at < groups;     /* while the first slice is awaited */
            struct own_rows mine;

            for (; TEAMS > 1 && passed < at; passed += groups)          /* tiles of the other teams */
                p = pipe_skip(p, slices_of(tile_of_split(schedule, passed, count), phases, span, channels) +
                                 is_staged * RESIDUAL_STAGES, STAGES);
            passed += groups;
            c.N = TILE_END(N, n0);
            if (early)
                mine = conv_prepare(bias_row, &c, t, r, lane, phases, win, eOut, vStep, vC, eX);
            if (TEAMS > 1) {
                barrier_wait(turns + 8 * team, turned);
                turned ^= 1;
            }
            gemm_issue(d, p, a, b, 1);
            if (!early)                         /* while the tensor cores are busy */
                mine = conv_prepare(bias_row, &c, t, r, lane, phases, win, eOut, vStep, vC, eX);
            t = tile_of_split(schedule, at + TEAMS * groups, count);
            p = gemm_multiply_turn(d, p, a, b, slices, turn, is_staged * RESIDUAL_STAGES,
                                   THROUGH && !is_staged);
            UNROLL for (int i = ACCUMULATORS; i < FINISHED; i++)
                d[i] = 0.0f;
            if (is_staged)
                p = residual_add(d, p, stages, &c, mine.m, mine.m8, n0, own, lane, 1 + warp / 4, THROUGH);
            if (SPLITK) {
                store_pairs(gSums, (INDEX)part * rows * N, N, 1, d, ACCUMULATORS, mine.m, mine.m8,
                            n0 + acc_first_col(lane), rows, N);
            } else if (THROUGH) {
                finish_tile_added(&c, d, bias_row, 0, is_staged, FINISHED, mine.m, mine.m8, n0, lane);
                store_through_stage(p, stages, own, is_staged, at + groups < multiplied, &c, d, mine.m,
                                    mine.m8, n0, lane, 0);
            } else {
                conv_store(&c, d, bias_row, is_staged, mine, n0, lane);
            }
            for (int empty = at + multiplied; SKIPS && empty < tiles; empty += multiplied) {
                const struct tile e = tile_of_split(schedule, empty, count);

                c.N = TILE_END(N, e.n0);
                mine = conv_prepare(bias_row, &c, e, r, lane, phases, win, eOut, vStep, vC, eX);
                UNROLL for (int i = 0; i < FINISHED; i++)
                    d[i] = 0;
                conv_store(&c, d, bias_row, 0, mine, e.n0, lane);
            }
        }
    }
}
