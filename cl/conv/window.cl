/* cl/conv/window.cl - as cl/conv/wgmma.cl, for steps of 1 and at most 64 channels: the pixels of a tile and
 * around it are loaded once, and each tap's operand is a shifted view of them (cl/conv/window.h)
 *
 * The filter stays in local memory; a work-group has the same BLK_N channels of the output for all of its
 * tiles.
 *
 * Parameters, from conv.tune: BLK_N; WARPGROUPS, of 64 places each; STAGES windows of ROOM KiB; TAPS at most.
 * Constants: as cl/conv/wgmma.cl; IMAGE_RANK is 4; VECTORS, as in cl/gemm/tf32.cl; PHASES, 1 where columns
 * are phases (cl/conv/phases.h).
 */
#define ITEMS      (128 * WARPGROUPS + 32)
#define WINDOW     (1024 * ROOM)
#define WINDOWS_AT (TAPS * BYTES_B)
#define MAPS_AT    (WINDOWS_AT + STAGES * WINDOW)
/* Where registers are enough, the residual waits in them while the tensor cores are busy. */
#define HOLDS      (RESIDUAL_BYTES == 2 && !PHASES && ACCUMULATORS <= 32 && WARPGROUPS < 4)

#define EXACT_SUM(n, p, q, to) \
    phase_sum(n, p, q, to, vStep, vPad, vMeet, win, eTaps, gX, vX, eX, gW, vW)

LARGE_LOCAL(conv_window, MAPS_AT + 2 * MAP_BYTES)

KERNEL(ITEMS) void
conv_window(CONV_TILE_PARAMS, CONV_PARAMS)
{
    LARGE_LOCAL_ARRAY(room, MAPS_AT + 2 * MAP_BYTES);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(STAGES + 1));
    LOCAL UINT32 *const described = (LOCAL UINT32 *)(room + MAPS_AT);

    const int me = LOCAL_ID(), lane = me % 32, warp = this_warp();
    const int pixels = (int)(eOut.s2 * eOut.s4 * eOut.s5 * eOut.s6);
    const struct window win = window_of(eGrid, vFirst, vWindow);
    const int pitch = (int)(eX.s6 + vFirst.s3), rows = (int)(eX.s5 + vFirst.s2);   /* and zeros */
    const int across = (N + BLK_N - 1) / BLK_N, n0 = GROUP_ID(0) % across * BLK_N;
    const UINT32 filter = warp_uniform(LOCAL_ADDRESS(room)), windows = filter + WINDOWS_AT;
    GLOBAL unsigned INT64 *maps = gMaps + first_map * MAP_WORDS;
    struct pipeline p = pipe_at(barriers, STAGES), filled = pipe_at(barriers + PIPE_BARRIERS(STAGES), 1);
    struct phase f;

    CONV_PHASE(&f, 0);
    if (!kept && warp == 0) {
        box_map(maps, described, lane, OPERAND_TYPE, T_BYTES, gX + vX.s0, vX, eX, 1, pitch);
    } else if (!kept && warp == 1) {
        filter_map(maps + MAP_WORDS, described + MAP_BYTES / 4, lane, OPERAND_TYPE, T_BYTES, gW + vW.s0, vW,
                   eTaps, MN_MAJOR_B ? BLK_K : BLK_N);
    } else if (warp == 2 && lane == 0) {
        pipe_init(p, STAGES, WARPGROUPS);
        pipe_init(filled, 1, WARPGROUPS);
    }
    BARRIER();

    const struct window_taps taps = window_taps(&f, win, pitch);
    const int all = taps.count_r * taps.count_s;

    if (warp == ROLE_WARPS) {
        if (is_elected()) {
            gemm_acquire_maps(maps);
            producer_expect(filled, all * BYTES_B);
            window_load_filter(filter, maps + MAP_WORDS, n0, 0, &f, taps, pipe_full(filled));
            for (int at = GROUP_ID(0) / across; at < tiles; at += groups / across) {
                const struct window_rows w = window_rows(at * BLK_M, pitch, rows, taps.reach);

                p = producer_acquire(p);
                producer_expect(p, w.count * pitch * 128);
                window_load(windows + p.stage * WINDOW, maps, w, pitch, rows, 0, win, pipe_full(p));
                p = pipe_next(p, STAGES);
            }
        }
    } else {
        const UINT32 a = operand_descriptor(windows, 64), b = operand_descriptor(filter, 64);
        const int m = acc_first_row(warp, lane), place = warp / 4 * 64 + taps.first, releases = me % 128 == 0;
        const struct output c = CONV_TILE_OUTPUT(pixels, N);
        const struct output any = CONV_OUTPUT;
        struct phase_column columns[ACCUMULATORS / 2];
        UINT32 bias_row[PHASES ? 1 : BIAS_ROW(ACCUMULATORS)];

        if (PHASES)
            phase_columns(columns, ACCUMULATORS, n0 + acc_first_col(lane), N, vStep, vMeet);
        else
            prepare_tile(bias_row, &c, ACCUMULATORS, n0, lane);
        consumer_wait(filled);
        for (int at = GROUP_ID(0) / across; at < tiles; at += groups / across) {
            const int m0 = at * BLK_M;
            const UINT32 from = a + p.stage * (WINDOW / 16) +
                                warp_uniform((UINT32)((m0 % pitch + place) * (128 / 16)));
            float d[ACCUMULATORS];
            unsigned int held[HOLDS ? HELD(ACCUMULATORS) : 1];
            int to[2];

            if (HOLDS) {
                UNROLL for (int i = 0; i < 2; i++)
                    to[i] = row_of_place(m0 + m + 8 * i, pitch, rows, eGrid, pixels);
                hold_tile(held, &c, ACCUMULATORS, to[0], to[1], n0, lane);
            }
            consumer_wait(p);
            window_tap(d, from, b, 1);
            for (int i = 1, r = 0, s = 0; i < all; i++) {
                if (++s == taps.count_s) {
                    s = 0;
                    r++;
                }
                window_tap(d, from + (UINT32)((r * taps.step_r + s * taps.step_s) * (128 / 16)),
                           b + (UINT32)(i * (BYTES_B / 16)), 0);
            }
            if (!HOLDS)                         /* while the tensor cores are busy */
                UNROLL for (int i = 0; i < 2; i++)
                    to[i] = row_of_place(m0 + m + 8 * i, pitch, rows, eGrid, pixels);
            WGMMA_WAIT(BLK_N, d, "0");
            if (releases)
                consumer_release(p);
            p = pipe_next(p, STAGES);
            if (!PHASES) {
                finish_tile_held(&c, d, bias_row, HOLDS ? held : 0, ACCUMULATORS, to[0], to[1], n0, lane);
                store_finished(&c, d, ACCUMULATORS, to[0], to[1], n0, lane, 0);
            } else {
                UNROLL for (int i = 0; i < 2; i++)
                    if (to[i] < pixels)
                        STORE_PHASES(any, d, columns, ACCUMULATORS, i, to[i], EXACT_SUM);
            }
        }
    }
}
