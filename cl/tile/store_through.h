/* cl/tile/store_through.h - a warp's accumulators to rows of C, of 16-bit elements, through local memory
 *
 * A quad of lanes has 8 columns of a row (cl/tile/accumulator.h).  64 columns of a warp's 16 rows at a time
 * go to 2 KiB of local memory, of which each lane reads 16 bytes of a row: eight lanes store 128 contiguous
 * bytes, and no lane exchanges anything with another.
 *
 * The room is the warp's own rows of the stage that the work-group read last, which is released after the
 * store.
 *
 * Teams do not: their stores are hidden, and a stage is kept for none.  Nor do tiles of 128 columns and more
 * of which a compute unit has several work-groups: it takes more registers than leave room for them.
 *
 * Takes: BLK_N STAGES STAGE FINISHED TEAMS; store.h, pipeline.h; atoms/nvidia/mma.h, memory.h, warp.h,
 *        wgmma.h.
 * Gives: STORES_THROUGH, store_through_stage().
 */
#define STORES_THROUGH (C_BYTES == 2 && TEAMS == 1 && (BLK_N < 128 || 2 * STAGES * STAGE > 227 * 1024))

/* As store_finished().  room: the warp's. */
DEVICE void store_finished_through(UINT32 room, const struct output *o, const float *d, const int count,
                                   int m, int m8, int n0, int lane, const int unaligned)
{
#if !STORES_THROUGH
    store_finished(o, d, count, m, m8, n0, lane, unaligned);
#else
    if (C_IN_VECTORS(o)) {
        const UINT32 put = room + lane % 16 * 128, got = room + lane / 8 * 128;
        GLOBAL TC *to[4];
        int left[4];

        UNROLL for (int i = 0; i < 4; i++) {    /* the row of which this lane stores the i-th vector */
            const int r = (int)from_lane((UINT32)(i < 2 ? m : m8), i % 2 * 16 + lane / 8 * 4);

            to[i] = o->c + (r < o->M ? r : 0) * o->row + n0 + lane % 8 * 8;
            left[i] = r < o->M ? o->N - n0 - lane % 8 * 8 : 0;
        }
        UNROLL for (int at = 0; at < count; at += 32) {
            const int parts = count - at < 32 ? (count - at) / 8 : 4;   /* of 16 columns */

            if (at > 0)
                warp_meet();                    /* all have read */
            UNROLL for (int i = 0; i < parts; i++) {
                const float *const x = d + at + 8 * i;

                STORE_TILES(put + ((2 * i + lane / 16) ^ lane % 8) * 16, C_PAIR_OF(x[0], x[1]),
                            C_PAIR_OF(x[2], x[3]), C_PAIR_OF(x[4], x[5]), C_PAIR_OF(x[6], x[7]));
            }
            warp_meet();
            UNROLL for (int i = 0; i < 4; i++) {
                UINT32 u[4];

                LOAD_B32X4(u[0], u[1], u[2], u[3],
                           got + i * 512 + (lane % 8 ^ (i % 2 * 4 + lane / 8)) * 16);
                store16(to[i] + 2 * at, u, lane % 8 < 2 * parts && 2 * at < left[i]);
            }
        }
    } else {
        store_finished_odd(o, d, count, m, m8, n0, lane, unaligned);
    }
#endif
}

/* The same, by the warps of a warpgroup, of which this is number `own` of the tile: through the last stage
 * before p, which the warpgroup has kept.  added: it had the residual, of which a warp reads its own rows
 * alone.  more: the work-group has another tile. */
DEVICE void store_through_stage(struct pipeline p, UINT32 stages, int own, int added, int more,
                                const struct output *o, const float *d, int m, int m8, int n0, int lane,
                                const int unaligned)
{
    const struct pipeline kept = pipe_before(p, STAGES);
    const int barrier = 1 + own / 4;

    if (STORES_THROUGH && !added)
        bar_sync(barrier, 128);                 /* all have multiplied */
    store_finished_through(stages + kept.stage * STAGE + (UINT32)own * 2048, o, d, FINISHED, m, m8, n0, lane,
                           unaligned);
    if (STORES_THROUGH && more) {
        fence_async_proxy();
        bar_sync(barrier, 128);                 /* all have stored */
        if (LOCAL_ID() % 128 == 0)
            consumer_release(kept);
    }
}
