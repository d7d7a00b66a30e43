/* cl/attention/wgmma.cl - attention in 16-bit types, for NVIDIA's sm_90
 *
 * One lane loads by TMA: a tile of queries, then its blocks of keys and of values, from the last to the
 * first, so that what causal attention hides comes first.  Each of WARPGROUPS warpgroups has 64 queries.  It
 * hands the scores of a block and the weighted values of the block before to the tensor cores together, and
 * turns the scores into weights while the second product is still running, in its own registers.  Warpgroups
 * take turns in handing over: while the products of one run, the others are busy with exponentials.
 *
 * With JOINED, the scores of the next tile's first block are handed over with a tile's last values, before
 * the tile is stored.
 *
 * As many work-groups as the device holds take tiles from a counter, which the last to leave sets back to 0.
 * The producer takes them, and posts what they are beside the queries.
 *
 * Parameters, from attention.tune: HEAD, the size of a head at most; BLK_N keys in a block; STAGES blocks of
 * keys and as many of values; WARPGROUPS; Q_BUFFERS tiles of queries; Q_REGISTERS, 1 where queries are kept
 * in registers; LAZY (cl/attention/online.h); JOINED, for queries in registers or in two buffers; TENANTS,
 * work-groups of a compute unit, of which one begins and ends tiles while the others multiply.
 * Method: Shah et al., "FlashAttention-3: Fast and Accurate Attention with Asynchrony and Low-precision",
 * 2024.
 */
#define ITEMS       (128 * WARPGROUPS + 128)
#define MAPS_AT     (Q_BUFFERS * BYTES_Q + 2 * STAGES * BYTES_K)
#define LOCAL_BYTES (MAPS_AT + 3 * MAP_BYTES)
#define TURN_ITEMS  256                         /* of the warpgroups that give a turn and wait for it */

LARGE_LOCAL(attention_wgmma, LOCAL_BYTES)

KERNEL_ROOM(ITEMS, TENANTS) void
attention_wgmma(GLOBAL unsigned INT64 *gMaps, int first_map, int kept, GLOBAL int *counters, int batches,
                int heads, int section, int groups, int tiles, int queries, int keys, int D, int DV,
                int group, int causal, int offset, int window, R scale, R softcap,
                GLOBAL const T *gQ, VIEW vQ, GLOBAL const T *gK, VIEW vK, GLOBAL const T *gV, VIEW vV,
                GLOBAL T *gO, VIEW vO, GLOBAL const T *gMask, VIEW vMask, GLOBAL R *gLse, VIEW vLse,
                int has_lse, MORE_PARAMS)
{
    ROOM_FOR(TENANTS);
    LARGE_LOCAL_ARRAY(room, LOCAL_BYTES);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(Q_BUFFERS + 2 * STAGES));
    LOCAL_ARRAY(struct posted_job, jobs, Q_BUFFERS);            /* the tile of each buffer */
    LOCAL UINT32 *const described = (LOCAL UINT32 *)(room + MAPS_AT);

    const int me = LOCAL_ID(), lane = me % 32, warp = this_warp(), all_heads = batches * heads;
    const UINT32 tile_q = warp_uniform(LOCAL_ADDRESS(room));
    const UINT32 stage_k = tile_q + Q_BUFFERS * BYTES_Q, stage_v = stage_k + STAGES * BYTES_K;
    GLOBAL unsigned INT64 *maps = gMaps + first_map * MAP_WORDS;
    struct pipeline q = pipe_at(barriers, Q_BUFFERS);
    struct pipeline k = pipe_at(barriers + PIPE_BARRIERS(Q_BUFFERS), STAGES);
    struct pipeline v = pipe_at(barriers + PIPE_BARRIERS(Q_BUFFERS + STAGES), STAGES);

    if (!kept && warp == 0) {                   /* a map each */
        attention_map(maps, described, lane, gQ, vQ, batches, heads, queries, D, BLK_M);
    } else if (!kept && warp == 1) {
        attention_map(maps + MAP_WORDS, described + MAP_BYTES / 4, lane, gK, vK, batches, heads / group,
                      keys, D, BLK_N);
    } else if (!kept && warp == 2) {
        attention_map(maps + 2 * MAP_WORDS, described + 2 * (MAP_BYTES / 4), lane, gV, vV, batches,
                      heads / group, keys, DV, BLK_N);
    } else if (warp == 3 && lane == 0) {
        pipe_init(q, Q_BUFFERS, Q_REGISTERS ? 4 * WARPGROUPS : WARPGROUPS);
        pipe_init(k, STAGES, WARPGROUPS);
        pipe_init(v, STAGES, WARPGROUPS);
    }
    BARRIER();

    if (warp >= ROLE_WARPS) {
        role_give_registers(1);
        if (warp != ROLE_WARPS || !is_elected())
            return;
        for (int i = 0; i < 3; i++)
            map_acquire(maps + i * MAP_WORDS);

        struct job t = { 0, 0, 0, 0, 0 };       /* one without blocks stands before the first */
        int next = GROUP_ID(0);

        do {
            const int head_k = vK.s4 ? t.head / group : 0, head_v = vV.s4 ? t.head / group : 0;
            const int batch_k = vK.s3 ? t.batch : 0, batch_v = vV.s3 ? t.batch : 0;
            const int ahead = QUERIES_AHEAD && t.blocks > STAGES ? t.blocks - STAGES : 0;
            struct job after = { 0, 0, 0, 0, 0 };

            for (int j = t.blocks; j >= 0; j--) {       /* keys are a block ahead of values */
                if (j > 0) {
                    k = producer_acquire(k);
                    producer_expect(k, BYTES_K);
                    attention_load(stage_k + k.stage * BYTES_K, maps + MAP_WORDS, BLK_N,
                                   (t.block + j - 1) * BLK_N, head_k, batch_k, pipe_full(k));
                    k = pipe_next(k, STAGES);
                }
                if (j < t.blocks) {
                    v = producer_acquire(v);
                    producer_expect(v, BYTES_K);
                    attention_load(stage_v + v.stage * BYTES_K, maps + 2 * MAP_WORDS, BLK_N,
                                   (t.block + j) * BLK_N, head_v, batch_v, pipe_full(v));
                    v = pipe_next(v, STAGES);
                }
                if (j == ahead) {                       /* the stages are full: the next queries */
                    q = producer_acquire(q);
                    if (next < tiles) {
                        ATTENTION_JOB(u, next);
                        const struct posted_job it = { u, keys_here, queries_here };

                        jobs[q.stage] = it;
                        producer_expect(q, BYTES_Q);
                        attention_load(tile_q + q.stage * BYTES_Q, maps, BLK_M, u.m0, vQ.s4 ? u.head : 0,
                                       vQ.s3 ? u.batch : 0, pipe_full(q));
                        after = u;
                    } else {
                        jobs[q.stage].job.blocks = 0;
                        barrier_arrive(pipe_full(q));
                    }
                    q = pipe_next(q, Q_BUFFERS);
                }
            }
            t = after;
            if (t.blocks > 0)
                next = groups + ATOMIC_ADD(counters, 1);
        } while (t.blocks > 0);
        attention_leave(counters, groups);
        return;
    }
    role_take_registers(1);

    const int team = warp / 4, turn = 1 + team, next_turn = team == WARPGROUPS - 1 ? 1 : 2 + team;
    const int releases = me % 128 == 0, n = acc_first_col(lane);
    const float unit = GENERAL ? 1.0f : scale, factor = unit * LOG2_E;
    const UINT32 queries_at = operand_descriptor(tile_q + team * 8192, BLK_M);
    const UINT32 keys_at = operand_descriptor(stage_k, BLK_N), values_at = operand_descriptor(stage_v, BLK_N);
    UINT32 fragments[HEAD / 4], weights[BLK_N / 4];
    float s[SCORES], sums[SUMS], max[2], sum[2], rescale[2], old_max[2], old_sum[2];
    struct posted_job posted;

    if (WARPGROUPS > 1 && team == 0)            /* the first turn */
        bar_arrive(1, TURN_ITEMS);
    if (ARE_JOINED) {
        consumer_wait(q);
        posted = jobs[q.stage];
        ATTENTION_BEGIN();
    }
    for (;;) {
        if (!ARE_JOINED) {
            consumer_wait(q);
            posted = jobs[q.stage];
            if (posted.job.blocks == 0)
                break;
            ATTENTION_BEGIN();
        }

        ATTENTION_POSTED(t, &posted);
        const int row0 = t.m0 + team * 64, row = t.m0 + acc_first_row(warp, lane);

        UNROLL for (int i = 0; i < SUMS; i++)
            sums[i] = 0.0f;
        for (int j = t.blocks - 2; j >= 0; j--) {
            const int n0 = (t.block + j) * BLK_N;
            int grows;

            ATTENTION_PRODUCTS();
            ATTENTION_GENERAL(s, row, n0 + n);
            if (CAUSAL && online_hides(&sight, row0, n0, BLK_N))
                online_hide(s, SCORES, &sight, row, n0 + n);
            grows = online_update(s, SCORES, max, sum, rescale, factor, 0);
            ATTENTION_SUMMED();
            attention_weights(weights, s);
            online_rescale(sums, SUMS, rescale, grows);
        }
        if (!Q_REGISTERS && releases)
            consumer_release(q);
        q = pipe_next(q, Q_BUFFERS);
        UNROLL for (int below = 0; below < 2; below++) {
            old_max[below] = max[below];
            old_sum[below] = sum[below];
        }

        const INDEX o = (INDEX)vO.s0 + t.batch * (INDEX)vO.s3 + t.head * (INDEX)vO.s4;
        const INDEX lse = (INDEX)vLse.s0 + t.batch * (INDEX)vLse.s4 + t.head * (INDEX)vLse.s5;
        float share[2];

        if (ARE_JOINED) {
            consumer_wait(q);
            posted = jobs[q.stage];
        }
        if (ARE_JOINED && posted.job.blocks > 0) {              /* the next tile's first block */
            ATTENTION_FIRST_BLOCK();
            ATTENTION_FRAGMENTS();
            ATTENTION_PRODUCTS();
            ATTENTION_FIRST_WEIGHTS();
            ATTENTION_SUMMED();
            attention_weights(weights, s);
            ATTENTION_CLEAR();
        } else {
            consumer_wait(v);
            attention_sums(sums, weights, values_at + v.stage * (BYTES_K / 16));
            if (!ARE_JOINED) {
                ATTENTION_SHARES(share, old_max, old_sum, row);
            }
            ATTENTION_SUMMED();
        }
        if (ARE_JOINED) {
            ATTENTION_SHARES(share, old_max, old_sum, row);
        }
        attention_store(gO + o, (INDEX)vO.s5, sums, 0, lane, row, row < queries ? DV : 0, share[0]);
        attention_store(gO + o, (INDEX)vO.s5, sums, 1, lane, row + 8, row + 8 < queries ? DV : 0, share[1]);
        if (ARE_JOINED && posted.job.blocks == 0)
            break;
    }
    if (WARPGROUPS > 1 && team == 0)            /* the turn that nobody took */
        bar_sync(1, TURN_ITEMS);
}
