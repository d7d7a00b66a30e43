/* cl/attention/backward_wgmma.cl - the gradients of attention in 16-bit types, for NVIDIA's sm_90
 *
 *     by keys      A work-group has a tile of keys and of values, and takes the queries of all heads that
 *                  read it in blocks: P^T = exp(K Q^T - shift), dV += P^T dO, dS^T = P^T (V dO^T - delta),
 *                  dK += dS^T Q.
 *     by queries   A work-group has a tile of queries and of d_out, which go to registers, and takes keys and
 *                  values in blocks: P = exp(Q K^T - shift), dS = P (dO V^T - delta), dQ += dS K.
 *
 * P and dS stay in registers, where they come out of one product and go into the next.  Nothing is added in
 * memory, so that sums run in one order.  The scores of the next block are handed to the tensor cores
 * together with the sums of this one, so that they have work while a warpgroup is busy with exponentials.
 *
 * One lane loads by TMA.  As many work-groups as the device holds take tiles from a counter, which the last
 * to leave sets back to 0; the producer takes them, and leaves the number beside the tile.
 *
 * Parameters, from attention.tune: HEAD, the size of a head at most; KEYS_N queries in a block by keys, of
 * which KEYS_STAGES are in local memory; QUERIES_N keys in a block by queries, QUERIES_STAGES; WARPGROUPS;
 * TURNS, 1 where these take turns.
 * Method: Dao et al., "FlashAttention", 2022; Shah et al., "FlashAttention-3", 2024, which add dQ in memory.
 */
#define ITEMS            (128 * WARPGROUPS + 128)
#define BLOCK_KEYS       (BYTES_ROWS(KEYS_N) / 16)      /* steps of descriptors */
#define BLOCK_QUERIES    (BYTES_ROWS(QUERIES_N) / 16)
#define STATISTICS_BYTES (8 * KEYS_N)           /* shifts and deltas of a block */
#define STATISTICS_AT    (2 * BYTES_TILE + 2 * KEYS_STAGES * BYTES_ROWS(KEYS_N))
#define KEYS_MAPS_AT     (STATISTICS_AT + KEYS_STAGES * STATISTICS_BYTES)
#define QUERIES_MAPS_AT  (2 * BYTES_TILE + 2 * QUERIES_STAGES * BYTES_ROWS(QUERIES_N))
#define KEYS_BYTES       (KEYS_MAPS_AT + 4 * MAP_BYTES)
#define QUERIES_BYTES    (QUERIES_MAPS_AT + 4 * MAP_BYTES)

LARGE_LOCAL(attention_by_keys, KEYS_BYTES)

KERNEL_ALONE(ITEMS) void
attention_by_keys(int queries, int keys, int D, int DV, int group, int offset, int window, R scale,
                  GLOBAL const float *gS, int start, int pitch, int heads,
                  GLOBAL const T *gK, VIEW vK, GLOBAL const T *gV, VIEW vV, GLOBAL const T *gQ, VIEW vQ,
                  GLOBAL const T *gDO, VIEW vDO, GLOBAL T *gDK, VIEW vDK, GLOBAL T *gDV, VIEW vDV,
                  int wanted, int batches, int section, int groups, int tiles,
                  GLOBAL unsigned INT64 *gMaps, int first_map, int kept, GLOBAL int *counters)
{
    LARGE_LOCAL_ARRAY(room, KEYS_BYTES);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(1 + KEYS_STAGES));
    LOCAL_ARRAY(int, tile_at, 1);               /* the tile, or -1: no more */
    LOCAL UINT32 *const described = (LOCAL UINT32 *)(room + KEYS_MAPS_AT);

    const int me = LOCAL_ID(), lane = me % 32, warp = this_warp(), shared = heads / group;
    const struct sight sight = { keys, CAUSAL, offset, window };
    const UINT32 tile_k = warp_uniform(LOCAL_ADDRESS(room)), tile_v = tile_k + BYTES_TILE;
    const UINT32 stage_q = tile_v + BYTES_TILE, stage_g = stage_q + KEYS_STAGES * BYTES_ROWS(KEYS_N);
    const UINT32 stage_s = tile_k + STATISTICS_AT;
    GLOBAL unsigned INT64 *const maps = gMaps + first_map * MAP_WORDS;
    struct pipeline x = pipe_at(barriers, 1), y = pipe_at(barriers + PIPE_BARRIERS(1), KEYS_STAGES);

    if (!kept && warp == 0) {                   /* a map each */
        attention_map(maps, described, lane, gK, vK, batches, shared, keys, D, BLK_M);
    } else if (!kept && warp == 1) {
        attention_map(maps + MAP_WORDS, described + MAP_BYTES / 4, lane, gV, vV, batches, shared, keys, DV,
                      BLK_M);
    } else if (!kept && warp == 2) {
        attention_map(maps + 2 * MAP_WORDS, described + 2 * (MAP_BYTES / 4), lane, gQ, vQ, batches, heads,
                      queries, D, KEYS_N);
    } else if (!kept && warp == 3) {
        attention_map(maps + 3 * MAP_WORDS, described + 3 * (MAP_BYTES / 4), lane, gDO, vDO, batches,
                      heads, queries, DV, KEYS_N);
    } else if (me == 128) {
        pipe_init(x, 1, WARPGROUPS);
        pipe_init(y, KEYS_STAGES, WARPGROUPS);
    }
    BARRIER();

    if (warp >= ROLE_WARPS) {
        role_give_registers(1);
        if (warp != ROLE_WARPS || !is_elected())
            return;
        for (int i = 0; i < 4; i++)
            map_acquire(maps + i * MAP_WORDS);
        for (int at = GROUP_ID(0), next; at < tiles; at = next) {
            const struct backward_tile t = tile_by_keys(at, &sight, queries, shared, batches, section);

            x = producer_acquire(x);
            tile_at[0] = at;
            producer_expect(x, 2 * BYTES_TILE);
            attention_load(tile_k, maps, BLK_M, t.x0, vK.s4 ? t.head : 0, vK.s3 ? t.batch : 0, pipe_full(x));
            attention_load(tile_v, maps + MAP_WORDS, BLK_M, t.x0, vV.s4 ? t.head : 0, vV.s3 ? t.batch : 0,
                           pipe_full(x));
            x = pipe_next(x, 1);
            next = groups + ATOMIC_ADD(counters, 1);
            for (int h = t.head * group; h < (t.head + 1) * group; h++) {
                GLOBAL const float *const shift = gS + start + ((INDEX)t.batch * heads + h) * 2 * pitch;

                for (int m0 = t.block * KEYS_N; m0 < (t.block + t.blocks) * KEYS_N; m0 += KEYS_N) {
                    const UINT32 here = y.stage * BYTES_ROWS(KEYS_N);
                    const UINT32 s = stage_s + y.stage * STATISTICS_BYTES;

                    y = producer_acquire(y);
                    producer_expect(y, 2 * BYTES_ROWS(KEYS_N) + STATISTICS_BYTES);
                    attention_load(stage_q + here, maps + 2 * MAP_WORDS, KEYS_N, m0, vQ.s4 ? h : 0,
                                   vQ.s3 ? t.batch : 0, pipe_full(y));
                    copy_bytes(s, shift + m0, 4 * KEYS_N, pipe_full(y));
                    attention_load(stage_g + here, maps + 3 * MAP_WORDS, KEYS_N, m0, vDO.s4 ? h : 0,
                                   vDO.s3 ? t.batch : 0, pipe_full(y));
                    copy_bytes(s + 4 * KEYS_N, shift + pitch + m0, 4 * KEYS_N, pipe_full(y));
                    y = pipe_next(y, KEYS_STAGES);
                }
            }
        }
        attention_no_more(x, tile_at, counters, groups);
        return;
    }
    role_take_registers(1);

    const int team = warp / 4, releases = me % 128 == 0;
    const float factor = scale * 1.44269504f;   /* 1 / log 2 */
    const UINT32 keys_at = operand_descriptor(tile_k + team * 8192, BLK_M);
    const UINT32 values_at = operand_descriptor(tile_v + team * 8192, BLK_M);
    const UINT32 queries_at = operand_descriptor(stage_q, KEYS_N);
    const UINT32 douts_at = operand_descriptor(stage_g, KEYS_N);
    LOCAL const float *const shift = (LOCAL const float *)(room + STATISTICS_AT) + acc_first_col(lane);
    float dk[SUMS], dv[SUMS], s[KEYS_N / 2], d[KEYS_N / 2];
    UINT32 p[KEYS_N / 4], ds[KEYS_N / 4];

    if (team == WARPGROUPS - 1)
        give_turn(team);
    for (;;) {
        consumer_wait(x);

        const int at = (int)warp_uniform((UINT32)tile_at[0]);

        if (at < 0)
            break;

        const struct backward_tile t = tile_by_keys(at, &sight, queries, shared, batches, section);
        const int n = t.x0 + acc_first_row(warp, lane);

        clear_sums(dk);
        clear_sums(dv);
        consumer_wait(y);
        scores_by_keys(s, keys_at, queries_at + y.stage * BLOCK_KEYS);
        scores_by_keys(d, values_at, douts_at + y.stage * BLOCK_KEYS);
        WGMMA_WAIT(KEYS_N, s, "1");
        weigh_by_keys(s, shift + y.stage * (2 * KEYS_N), factor, &sight, n, t.block * KEYS_N);
        WGMMA_WAIT(KEYS_N, d, "0");
        differ_by_keys(d, s, shift + y.stage * (2 * KEYS_N) + KEYS_N);
        weights_of(p, s, KEYS_N);
        weights_of(ds, d, KEYS_N);
        for (int i = t.blocks * group - 1, left = t.blocks; i > 0; i--) {
            const UINT32 here = y.stage * BLOCK_KEYS;

            left = left == 1 ? t.blocks : left - 1;             /* of the head, this block among them */
            y = pipe_next(y, KEYS_STAGES);
            consumer_wait(y);
            take_turn(team);
            scores_by_keys(s, keys_at, queries_at + y.stage * BLOCK_KEYS);
            sums_by_keys(dv, p, douts_at + here);
            sums_by_keys(dk, ds, queries_at + here);
            give_turn(team);
            WGMMA_WAIT(KEYS_N, s, "2");
            weigh_by_keys(s, shift + y.stage * (2 * KEYS_N), factor, &sight, n,
                          (t.block + t.blocks - left) * KEYS_N);
            WGMMA_WAIT(HEAD, dv, "1");
            scores_by_keys(d, values_at, douts_at + y.stage * BLOCK_KEYS);
            weights_of(p, s, KEYS_N);
            WGMMA_WAIT(HEAD, dk, "1");
            if (releases)
                consumer_release(pipe_before(y, KEYS_STAGES));
            WGMMA_WAIT(KEYS_N, d, "0");
            differ_by_keys(d, s, shift + y.stage * (2 * KEYS_N) + KEYS_N);
            weights_of(ds, d, KEYS_N);
        }
        if (releases)
            consumer_release(x);
        sums_by_keys(dv, p, douts_at + y.stage * BLOCK_KEYS);
        sums_by_keys(dk, ds, queries_at + y.stage * BLOCK_KEYS);
        WGMMA_WAIT(HEAD, dv, "1");
        WGMMA_WAIT(HEAD, dk, "0");
        if (releases)
            consumer_release(y);
        y = pipe_next(y, KEYS_STAGES);
        x = pipe_next(x, 1);
        if (wanted & 1)
            store_gradient(gDK, vDK, t.batch, t.head, n, keys, D, scale, dk, lane);
        if (wanted & 2)
            store_gradient(gDV, vDV, t.batch, t.head, n, keys, DV, 1.0f, dv, lane);
    }
    if (team == 0)
        take_turn(team);
}

LARGE_LOCAL(attention_by_queries, QUERIES_BYTES)

KERNEL_ALONE(ITEMS) void
attention_by_queries(int queries, int keys, int D, int DV, int group, int offset, int window, R scale,
                     GLOBAL const float *gS, int start, int pitch, int heads,
                     GLOBAL const T *gQ, VIEW vQ, GLOBAL const T *gDO, VIEW vDO, GLOBAL const T *gK, VIEW vK,
                     GLOBAL const T *gV, VIEW vV, GLOBAL T *gDQ, VIEW vDQ, int batches, int section,
                     int groups, int tiles, GLOBAL unsigned INT64 *gMaps, int first_map, int kept,
                     GLOBAL int *counters)
{
    LARGE_LOCAL_ARRAY(room, QUERIES_BYTES);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(1 + QUERIES_STAGES));
    LOCAL_ARRAY(int, tile_at, 1);               /* the tile, or -1: no more */
    LOCAL UINT32 *const described = (LOCAL UINT32 *)(room + QUERIES_MAPS_AT);

    const int me = LOCAL_ID(), lane = me % 32, warp = this_warp(), shared = heads / group;
    const struct sight sight = { keys, CAUSAL, offset, window };
    const UINT32 tile_q = warp_uniform(LOCAL_ADDRESS(room)), tile_g = tile_q + BYTES_TILE;
    const UINT32 stage_k = tile_g + BYTES_TILE, stage_v = stage_k + QUERIES_STAGES * BYTES_ROWS(QUERIES_N);
    GLOBAL unsigned INT64 *const maps = gMaps + first_map * MAP_WORDS;
    struct pipeline x = pipe_at(barriers, 1), y = pipe_at(barriers + PIPE_BARRIERS(1), QUERIES_STAGES);

    if (!kept && warp == 0) {                   /* a map each */
        attention_map(maps, described, lane, gQ, vQ, batches, heads, queries, D, BLK_M);
    } else if (!kept && warp == 1) {
        attention_map(maps + MAP_WORDS, described + MAP_BYTES / 4, lane, gDO, vDO, batches, heads, queries,
                      DV, BLK_M);
    } else if (!kept && warp == 2) {
        attention_map(maps + 2 * MAP_WORDS, described + 2 * (MAP_BYTES / 4), lane, gK, vK, batches, shared,
                      keys, D, QUERIES_N);
    } else if (!kept && warp == 3) {
        attention_map(maps + 3 * MAP_WORDS, described + 3 * (MAP_BYTES / 4), lane, gV, vV, batches, shared,
                      keys, DV, QUERIES_N);
    } else if (me == 128) {
        pipe_init(x, 1, 4 * WARPGROUPS);
        pipe_init(y, QUERIES_STAGES, WARPGROUPS);
    }
    BARRIER();

    if (warp >= ROLE_WARPS) {
        role_give_registers(1);
        if (warp != ROLE_WARPS || !is_elected())
            return;
        for (int i = 0; i < 4; i++)
            map_acquire(maps + i * MAP_WORDS);
        for (int at = GROUP_ID(0), next; at < tiles; at = next) {
            const struct backward_tile t = tile_by_queries(at, &sight, queries, heads, batches, section);
            const int head = t.head / group;

            x = producer_acquire(x);
            tile_at[0] = at;
            producer_expect(x, 2 * BYTES_TILE);
            attention_load(tile_q, maps, BLK_M, t.x0, vQ.s4 ? t.head : 0, vQ.s3 ? t.batch : 0, pipe_full(x));
            attention_load(tile_g, maps + MAP_WORDS, BLK_M, t.x0, vDO.s4 ? t.head : 0, vDO.s3 ? t.batch : 0,
                           pipe_full(x));
            x = pipe_next(x, 1);
            next = groups + ATOMIC_ADD(counters, 1);
            for (int n0 = t.block * QUERIES_N; n0 < (t.block + t.blocks) * QUERIES_N; n0 += QUERIES_N) {
                const UINT32 here = y.stage * BYTES_ROWS(QUERIES_N);

                y = producer_acquire(y);
                producer_expect(y, 2 * BYTES_ROWS(QUERIES_N));
                attention_load(stage_k + here, maps + 2 * MAP_WORDS, QUERIES_N, n0, vK.s4 ? head : 0,
                               vK.s3 ? t.batch : 0, pipe_full(y));
                attention_load(stage_v + here, maps + 3 * MAP_WORDS, QUERIES_N, n0, vV.s4 ? head : 0,
                               vV.s3 ? t.batch : 0, pipe_full(y));
                y = pipe_next(y, QUERIES_STAGES);
            }
        }
        attention_no_more(x, tile_at, counters, groups);
        return;
    }
    role_take_registers(1);

    const int team = warp / 4, releases = me % 128 == 0;
    const float factor = scale * 1.44269504f;   /* 1 / log 2 */
    const UINT32 keys_at = operand_descriptor(stage_k, QUERIES_N);
    const UINT32 values_at = operand_descriptor(stage_v, QUERIES_N);
    UINT32 q[HEAD / 4], g[HEAD / 4];
    float dq[SUMS], s[QUERIES_N / 2], d[QUERIES_N / 2];
    UINT32 ds[QUERIES_N / 4];

    if (team == WARPGROUPS - 1)
        give_turn(team);
    for (;;) {
        consumer_wait(x);

        const int at = (int)warp_uniform((UINT32)tile_at[0]);

        if (at < 0)
            break;

        const struct backward_tile t = tile_by_queries(at, &sight, queries, heads, batches, section);
        const int m = t.x0 + acc_first_row(warp, lane);
        GLOBAL const float *const row = gS + start + ((INDEX)t.batch * heads + t.head) * 2 * pitch + m;
        const float shift[2] = { row[0], row[8] }, delta[2] = { row[pitch], row[pitch + 8] };

        attention_fragments(q, tile_q, warp, lane);
        attention_fragments(g, tile_g, warp, lane);
        fence_async_proxy();
        warp_meet();
        if (lane == 0)
            consumer_release(x);
        x = pipe_next(x, 1);
        clear_sums(dq);
        consumer_wait(y);
        scores_of_by_queries(s, q, keys_at + y.stage * BLOCK_QUERIES);
        scores_of_by_queries(d, g, values_at + y.stage * BLOCK_QUERIES);
        WGMMA_WAIT(QUERIES_N, s, "1");
        weigh_by_queries(s, shift, factor, &sight, m, t.block * QUERIES_N);
        WGMMA_WAIT(QUERIES_N, d, "0");
        differ_by_queries(d, s, delta);
        for (int i = 1; i < t.blocks; i++) {
            const UINT32 here = y.stage * BLOCK_QUERIES;

            weights_of(ds, d, QUERIES_N);
            y = pipe_next(y, QUERIES_STAGES);
            consumer_wait(y);
            take_turn(team);
            scores_of_by_queries(s, q, keys_at + y.stage * BLOCK_QUERIES);
            scores_of_by_queries(d, g, values_at + y.stage * BLOCK_QUERIES);
            sums_by_queries(dq, ds, keys_at + here);
            give_turn(team);
            WGMMA_WAIT(QUERIES_N, s, "2");
            weigh_by_queries(s, shift, factor, &sight, m, (t.block + i) * QUERIES_N);
            WGMMA_WAIT(QUERIES_N, d, "1");
            differ_by_queries(d, s, delta);
            WGMMA_WAIT(HEAD, dq, "0");
            if (releases)
                consumer_release(pipe_before(y, QUERIES_STAGES));
        }
        weights_of(ds, d, QUERIES_N);
        sums_by_queries(dq, ds, keys_at + y.stage * BLOCK_QUERIES);
        WGMMA_WAIT(HEAD, dq, "0");
        if (releases)
            consumer_release(y);
        y = pipe_next(y, QUERIES_STAGES);
        store_gradient(gDQ, vDQ, t.batch, t.head, m, queries, D, scale, dq, lane);
    }
    if (team == 0)
        take_turn(team);
}
