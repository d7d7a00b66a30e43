/* cl/conv/window.cl - as cl/conv/wgmma.cl, for steps of 1 and at most 64 channels: the pixels of a tile and
 * around it are loaded once, and each tap's operand is a shifted view of them
 *
 * Rows of the source lie in local memory `pitch` pixels long, first the zeros before its first pixel; they
 * are also those behind the last pixel of the row before, and as many as either needs.  So do images, with
 * rows of zeros.  Numbered like that, place G of the output needs place G + r pitch + s for tap r, s:
 *
 *     0 x x x x x         tap 0, 0 of 64 places      0 [x x x x x
 *     0 x x x x x                                    0  x x x]x x
 *     0 x x x x x         tap 1, 1                   0  x[x x x x
 *                                                    0  x x x x]x
 *
 * A wgmma operand may begin at any row of 128 bytes, since the swizzle goes by the address.  Places that are
 * no pixels are computed, too, and not stored.  The filter stays in local memory; a work-group has the same
 * BLK_N channels of the output for all of its tiles.
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

/* Hands the products of a tap to the tensor cores; first: of a tile, so that d begins with them. */
DEVICE void window_tap(float *d, UINT32 a, UINT32 b, const int first)
{
    wgmma_begin();
    UNROLL for (int k = 0; k < 4; k++)
        MULTIPLY(d, operand_product(a, 0, 64, k), operand_product(b, MN_MAJOR_B, BLK_N, k), !first || k > 0);
    wgmma_commit();
}

/* The row of the output that has place g; `none` where it is no pixel. */
DEVICE int row_of_place(int g, int pitch, int rows, VIEW eGrid, int none)
{
    const int row = g / pitch, q = g - row * pitch, n = row / rows, h = row - n * rows;

    return n < (int)eGrid.s2 && h < (int)eGrid.s5 && q < (int)eGrid.s6
         ? (n * (int)eGrid.s5 + h) * (int)eGrid.s6 + q : none;
}

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

    /* of taps: their first, in places of the window, and the steps */
    const int first = (int)(f.r.shift - win.first[1]) * pitch + (int)f.s.shift - win.first[0];
    const int step_r = (int)f.r.delta * pitch, step_s = (int)f.s.delta;
    const int taps_r = (int)f.r.count, taps_s = (int)f.s.count;
    const int reach_r = step_r > 0 ? first + (taps_r - 1) * step_r : first;
    const int reach = reach_r + (step_s > 0 ? (taps_s - 1) * step_s : 0);

    if (warp == ROLE_WARPS) {
        if (is_elected()) {
            gemm_acquire_maps(maps);
            producer_expect(filled, taps_r * taps_s * BYTES_B);
            for (int i = 0; i < taps_r * taps_s; i++)
                conv_load_filter(filter + i * BYTES_B, maps + MAP_WORDS, n0, 0,
                                 (int)(f.s.first + i % taps_s * f.s.step),
                                 (int)(f.r.first + i / taps_s * f.r.step), 0, pipe_full(filled));
            for (int at = GROUP_ID(0) / across; at < tiles; at += groups / across) {
                const int m0 = at * BLK_M, row = m0 / pitch;
                const int count = (m0 - row * pitch + BLK_M - 1 + reach) / pitch + 1;
                int n = row / rows, h = row - n * rows;

                p = producer_acquire(p);
                producer_expect(p, count * pitch * 128);
                for (int i = 0; i < count; i++) {
                    copy_box_4d(windows + p.stage * WINDOW + i * pitch * 128, maps, 0, win.first[0],
                                h + win.first[1], n, pipe_full(p));
                    if (++h == rows) {
                        h = 0;
                        n++;
                    }
                }
                p = pipe_next(p, STAGES);
            }
        }
    } else {
        const UINT32 a = operand_descriptor(windows, 64), b = operand_descriptor(filter, 64);
        const int m = acc_first_row(warp, lane), place = warp / 4 * 64 + first, releases = me % 128 == 0;
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
            for (int i = 1, r = 0, s = 0; i < taps_r * taps_s; i++) {
                if (++s == taps_s) {
                    s = 0;
                    r++;
                }
                window_tap(d, from + (UINT32)((r * step_r + s * step_s) * (128 / 16)),
                           b + (UINT32)(i * (BYTES_B / 16)), 0);
                WGMMA_WAIT(BLK_N, d, "1");
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
