/* cl/conv/window_blocks.cl - as cl/conv/window.cl, for more than 64 channels: a stage has the window of a
 * block of 64 channels, and the filter's taps of that block
 *
 * Few pixels are few tiles, each of which sums over many slices, and what a compute unit loads from L2 sets
 * the pace: all taps share what a slice of each would load again, and tiles may be narrow.
 *
 * Parameters, from conv.tune: BLK_N; WARPGROUPS, of 64 places each; STAGES of TAPS taps at most, and a window
 * of ROOM KiB.  Constants: as cl/conv/window.cl, without PHASES.
 */
#define ITEMS       (128 * WARPGROUPS + 32)
#define WINDOW_AT   (TAPS * BYTES_B)
#define BLOCK_STAGE (WINDOW_AT + 1024 * ROOM)
#define MAPS_AT     (STAGES * BLOCK_STAGE)
#define HOLDS       (RESIDUAL_BYTES == 2 && ACCUMULATORS <= 32)

LARGE_LOCAL(conv_window_blocks, MAPS_AT + 2 * MAP_BYTES)

KERNEL(ITEMS) void
conv_window_blocks(CONV_TILE_PARAMS, CONV_PARAMS)
{
    LARGE_LOCAL_ARRAY(room, MAPS_AT + 2 * MAP_BYTES);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(STAGES));
    LOCAL UINT32 *const described = (LOCAL UINT32 *)(room + MAPS_AT);

    const int me = LOCAL_ID(), lane = me % 32, warp = this_warp();
    const int pixels = (int)(eOut.s2 * eOut.s4 * eOut.s5 * eOut.s6);
    const int blocks = (from_channels + BLK_K - 1) / BLK_K;
    const struct window win = window_of(eGrid, vFirst, vWindow);
    const int pitch = (int)(eX.s6 + vFirst.s3), rows = (int)(eX.s5 + vFirst.s2);   /* and zeros */
    const int across = (N + BLK_N - 1) / BLK_N;
    const UINT32 stages = warp_uniform(LOCAL_ADDRESS(room));
    GLOBAL unsigned INT64 *maps = gMaps + first_map * MAP_WORDS;
    struct pipeline p = pipe_at(barriers, STAGES);
    struct phase f;

    CONV_PHASE(&f, 0);
    if (!kept && warp == 0) {
        box_map(maps, described, lane, OPERAND_TYPE, T_BYTES, gX + vX.s0, vX, eX, 1, pitch);
    } else if (!kept && warp == 1) {
        filter_map(maps + MAP_WORDS, described + MAP_BYTES / 4, lane, OPERAND_TYPE, T_BYTES, gW + vW.s0, vW,
                   eTaps, MN_MAJOR_B ? BLK_K : BLK_N);
    } else if (warp == 2 && lane == 0) {
        pipe_init(p, STAGES, WARPGROUPS);
    }
    BARRIER();

    const struct window_taps taps = window_taps(&f, win, pitch);
    const int all = taps.count_r * taps.count_s;

    if (warp == ROLE_WARPS) {
        if (is_elected()) {
            gemm_acquire_maps(maps);
            for (int at = GROUP_ID(0); at < tiles * across; at += groups) {
                const int n0 = at % across * BLK_N;
                const struct window_rows w = window_rows(at / across * BLK_M, pitch, rows, taps.reach);

                for (int c = 0; c < blocks; c++) {
                    const UINT32 to = stages + p.stage * BLOCK_STAGE;

                    p = producer_acquire(p);
                    producer_expect(p, all * BYTES_B + w.count * pitch * 128);
                    window_load(to + WINDOW_AT, maps, w, pitch, rows, c * BLK_K, win, pipe_full(p));
                    window_load_filter(to, maps + MAP_WORDS, n0, c * BLK_K, &f, taps, pipe_full(p));
                    p = pipe_next(p, STAGES);
                }
            }
        }
    } else {
        const UINT32 a = operand_descriptor(stages + WINDOW_AT, 64), b = operand_descriptor(stages, 64);
        const int m = acc_first_row(warp, lane), place = warp / 4 * 64 + taps.first, releases = me % 128 == 0;
        const struct output c = CONV_TILE_OUTPUT(pixels, N);

        for (int at = GROUP_ID(0); at < tiles * across; at += groups) {
            const int m0 = at / across * BLK_M, n0 = at % across * BLK_N;
            const UINT32 first = warp_uniform((UINT32)((m0 % pitch + place) * (128 / 16)));
            float d[ACCUMULATORS];
            UINT32 bias_row[BIAS_ROW(ACCUMULATORS)];
            unsigned int held[HOLDS ? HELD(ACCUMULATORS) : 1];
            int to[2];

            UNROLL for (int i = 0; i < 2; i++)
                to[i] = row_of_place(m0 + m + 8 * i, pitch, rows, eGrid, pixels);
            prepare_tile(bias_row, &c, ACCUMULATORS, n0, lane);
            if (HOLDS)
                hold_tile(held, &c, ACCUMULATORS, to[0], to[1], n0, lane);
            UNROLL for (int i = 0; i < ACCUMULATORS; i++)
                d[i] = 0.0f;
            for (int block = 0; block < blocks; block++) {
                const UINT32 stage = p.stage * (BLOCK_STAGE / 16);

                consumer_wait(p);
                for (int i = 0, r = 0, s = 0; i < all; i++) {
                    window_tap(d, a + stage + first +
                                  (UINT32)((r * taps.step_r + s * taps.step_s) * (128 / 16)),
                               b + stage + (UINT32)(i * (BYTES_B / 16)), 0);
                    if (++s == taps.count_s) {
                        s = 0;
                        r++;
                    }
                }
                WGMMA_WAIT(BLK_N, d, "0");
                if (releases)
                    consumer_release(p);
                p = pipe_next(p, STAGES);
            }
            finish_tile_held(&c, d, bias_row, HOLDS ? held : 0, ACCUMULATORS, to[0], to[1], n0, lane);
            store_finished(&c, d, ACCUMULATORS, to[0], to[1], n0, lane, 0);
        }
    }
}
