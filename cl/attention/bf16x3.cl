/* cl/attention/bf16x3.cl - attention in f32 by tensor cores for bf16, for NVIDIA's sm_90
 *
 * attention_split: keys and values in three bf16 parts (cl/gemm/bf16x3.cl), by blocks, to the workspace.
 *
 * attention_bf16x3: one lane loads blocks, from the last to the first.  Each of WARPGROUPS warpgroups has 64
 * queries, which it splits itself.  The scores of a block become weights in its own registers, there in three
 * parts too, which the second product takes.  Warpgroups take turns in handing over products: while those of
 * one run, the others are busy with exponentials.
 *
 *     warpgroup 0   scores | weights | sums  | join    | scores of the next block ...
 *     warpgroup 1   join   | scores  | weights | sums  | join ...
 *
 * As many work-groups as the device holds take tiles from a counter, which the last to leave sets back to 0.
 *
 * Parameters, from attention.tune: HEAD, the size of a head at most; BLK_N keys in a block; STAGES blocks of
 * keys and as many of values; WARPGROUPS; Q_REGISTERS parts of queries that are kept in registers.
 */
#define ITEMS       (128 * WARPGROUPS + 128)
#define LOCAL_BYTES (WARPGROUPS * BYTES_Q + 2 * STAGES * BYTES_K)
#define JOBS        2
#define TURN_ITEMS  256                         /* of the warpgroups that give a turn and wait for it */
#define SCORE_UNIT  (1.0f / 4294967296.0f)      /* of a product of two elements in parts */
#define VALUE_UNIT  (1.0f / BF16X3_SCALE)

LARGE_LOCAL(attention_bf16x3, LOCAL_BYTES)

KERNEL(256) void
attention_split(int keys, int D, int DV, int batches, int heads, int blocks, GLOBAL const T *gK, VIEW vK,
                GLOBAL const T *gV, VIEW vV, MORE_PARAMS, GLOBAL uint4 *parts)
{
    const int is_value = GROUP_ID(0) % 2, block = GROUP_ID(0) / 2 % blocks, at = GROUP_ID(0) / 2 / blocks;
    const int batch = quotient(at, heads), head = at - batch * heads, n = KEYS_OF(batch);
    const INT64 to_block = ((INT64)is_value * batches * heads + at) * blocks + block;
    GLOBAL uint4 *const to = parts + to_block * (BYTES_K / 16);
    const VIEW v = is_value ? vV : vK;
    GLOBAL const T *g = is_value ? gV : gK;

    g += (INDEX)v.s0 + batch * (INDEX)v.s3 + head * (INDEX)v.s4;
    block_in_parts(to, g, (INDEX)v.s5, (INDEX)v.s6, block * BLK_N, n, is_value ? DV : D);
}

KERNEL(ITEMS) void
attention_bf16x3(int queries, int keys, int D, int DV, int group, int causal, int offset, int window,
                 R scale, R softcap,
                 GLOBAL const T *gQ, VIEW vQ, GLOBAL const T *gK, VIEW vK, GLOBAL const T *gV, VIEW vV,
                 GLOBAL T *gO, VIEW vO, GLOBAL const T *gMask, VIEW vMask, GLOBAL R *gLse, VIEW vLse,
                 int has_lse, MORE_PARAMS, int batches, int heads, int section, int groups, int tiles,
                 int blocks, GLOBAL const uint4 *parts, GLOBAL int *counters)
{
    LARGE_LOCAL_ARRAY(room, LOCAL_BYTES);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(JOBS + 2 * STAGES));
    LOCAL_ARRAY(struct posted_job, posted, JOBS);

    const int me = LOCAL_ID(), lane = me % 32, warp = this_warp(), all_heads = batches * heads;
    const UINT32 tile_q = warp_uniform(LOCAL_ADDRESS(room));
    const UINT32 stage_k = tile_q + WARPGROUPS * BYTES_Q, stage_v = stage_k + STAGES * BYTES_K;
    struct pipeline jobs = pipe_at(barriers, JOBS);
    struct pipeline k = pipe_at(barriers + PIPE_BARRIERS(JOBS), STAGES);
    struct pipeline v = pipe_at(barriers + PIPE_BARRIERS(JOBS + STAGES), STAGES);

    if (me == 0) {
        pipe_init(jobs, JOBS, 4 * WARPGROUPS);
        pipe_init(k, STAGES, WARPGROUPS);
        pipe_init(v, STAGES, WARPGROUPS);
    }
    BARRIER();

    if (warp >= ROLE_WARPS) {
        const INT64 all_values = (INT64)(all_heads / group) * blocks;

        role_give_registers(1);
        if (warp != ROLE_WARPS || !is_elected())
            return;
        for (int at = GROUP_ID(0), next; ; at = next) {
            jobs = producer_acquire(jobs);
            if (at >= tiles) {
                posted[jobs.stage].job.blocks = 0;
                barrier_arrive(pipe_full(jobs));
                break;
            }
            next = groups + ATOMIC_ADD(counters, 1);

            ATTENTION_JOB(t, at);
            const struct posted_job it = { t, keys_here, queries_here };

            posted[jobs.stage] = it;
            barrier_arrive(pipe_full(jobs));
            jobs = pipe_next(jobs, JOBS);

            const INT64 first = ((INT64)t.batch * (heads / group) + t.head / group) * blocks + t.block;

            for (int j = t.blocks - 1; j >= 0; j--) {
                k = producer_acquire(k);
                producer_expect(k, BYTES_K);
                copy_bytes(stage_k + k.stage * BYTES_K, parts + (first + j) * (BYTES_K / 16), BYTES_K,
                           pipe_full(k));
                k = pipe_next(k, STAGES);
                v = producer_acquire(v);
                producer_expect(v, BYTES_K);
                copy_bytes(stage_v + v.stage * BYTES_K, parts + (all_values + first + j) * (BYTES_K / 16),
                           BYTES_K, pipe_full(v));
                v = pipe_next(v, STAGES);
            }
        }
        if (ATOMIC_ADD(counters + 1, 1) == groups - 1)
            counters[0] = counters[1] = 0;
        return;
    }
    role_take_registers(1);

    const int team = warp / 4, turn = 1 + team, next_turn = team == WARPGROUPS - 1 ? 1 : 2 + team;
    const int own_bar = 1 + WARPGROUPS + team;
    const float unit = scale * SCORE_UNIT, factor = unit * 1.44269504f;         /* 1 / log 2 */
    const UINT32 own_q = tile_q + team * BYTES_Q, queries_at = wgmma_descriptor(own_q, 0);
    const UINT32 keys_at = wgmma_descriptor(stage_k, 0), values_at = wgmma_descriptor(stage_v, BLK_N * 128);
    float sums[SUMS], max[2], sum[2], rescale[2];

    if (team == 0)                              /* the first turn */
        bar_arrive(1, TURN_ITEMS);
    for (;;) {
        consumer_wait(jobs);
        ATTENTION_POSTED(t, &posted[jobs.stage]);
        warp_meet();
        if (lane == 0)
            consumer_release(jobs);
        jobs = pipe_next(jobs, JOBS);
        if (t.blocks == 0)
            break;

        const int row0 = t.m0 + team * 64, row = t.m0 + acc_first_row(warp, lane), n = acc_first_col(lane);
        GLOBAL const T *const q = gQ + ((INDEX)vQ.s0 + t.batch * (INDEX)vQ.s3 + t.head * (INDEX)vQ.s4);

        bar_sync(own_bar, 128);                 /* the queries before have been read */
        queries_in_parts(own_q, q, (INDEX)vQ.s5, (INDEX)vQ.s6, row0, queries, D, me % 128);
        bar_sync(own_bar, 128);
        UNROLL for (int i = 0; i < SUMS; i++)
            sums[i] = 0.0f;
        max[0] = max[1] = -INFINITE;
        sum[0] = sum[1] = 0.0f;
        for (int j = t.blocks - 1; j >= 0; j--) {
            const int n0 = (t.block + j) * BLK_N;
            UINT32 fragments[Q_REGISTERS * (HEAD / 4) + 1], weights[BF16X3_PARTS * (BLK_N / 4)];
            float s[SCORES], d[SUMS];

            attention_fragments(fragments, own_q, warp, lane);
            consumer_wait(k);
            bar_sync(turn, TURN_ITEMS);
            attention_scores(s, fragments, queries_at, keys_at + k.stage * (BYTES_K / 16));
            bar_arrive(next_turn, TURN_ITEMS);
            WGMMA_WAIT(BLK_N, s, "0");
            if (me % 128 == 0)
                consumer_release(k);
            k = pipe_next(k, STAGES);
            if (online_hides(&sight, row0, n0, BLK_N))
                online_hide(s, SCORES, &sight, row, n0 + n);
            online_update(s, SCORES, max, sum, rescale, factor, 0);
            attention_weights(weights, s);
            consumer_wait(v);
            bar_sync(turn, TURN_ITEMS);
            attention_sums(d, weights, values_at + v.stage * (BYTES_K / 16));
            bar_arrive(next_turn, TURN_ITEMS);
            WGMMA_WAIT(HEAD, d, "0");
            if (me % 128 == 0)
                consumer_release(v);
            v = pipe_next(v, STAGES);
            attention_join(sums, d, rescale);
        }

        const INDEX o = (INDEX)vO.s0 + t.batch * (INDEX)vO.s3 + t.head * (INDEX)vO.s4;
        const INDEX lse = (INDEX)vLse.s0 + t.batch * (INDEX)vLse.s4 + t.head * (INDEX)vLse.s5;
        const int has_sink = MORE && given & GIVEN_SINKS;
        const float sink = has_sink ? gSinks[(INDEX)vMore.s6 + t.head * (INDEX)vMore.s7] : 0.0f;
        int odd = 0;                            /* some row is not finite */
        float share[2];

        UNROLL for (int below = 0; below < 2; below++) {
            const int m = row + 8 * below, seen = m < queries_here;
            float all = acc_quad_sum(sum[below]), joined = 1.0f;
            float top = max[below] == -INFINITE ? LOWEST : max[below] * unit;

            odd |= seen && sight_end(&sight, m) > sight_begin(&sight, m) &&
                   !(all > 0.0f && all <= BF16X3_LARGEST && attention_all_finite(sums, below));
            all = seen ? all : 0.0f;
            if (has_sink && seen)
                joined = join_sink(&top, &all, sink);
            if (has_lse && m < queries && lane % 4 == 0)
                gLse[lse + m * (INDEX)vLse.s6] = logarithm_of(top, all);
            share[below] = seen ? joined * attention_share(all) * VALUE_UNIT : 0.0f;
        }
        UNROLL for (int i = 0; i < SUMS; i++)
            sums[i] = share[ACC_BELOW(i)] == 0.0f ? 0.0f : sums[i] * share[ACC_BELOW(i)];
        store_pairs(gO, o, (INDEX)vO.s5, (INDEX)vO.s6, sums, SUMS, row, row + 8, n, queries, DV);
        if (!any_in_warp(odd))
            continue;

        const int head = t.head / group, m0 = t.m0 + warp * 16;
        struct plain p = { q, gK + ((INDEX)vK.s0 + t.batch * (INDEX)vK.s3 + head * (INDEX)vK.s4),
                           gV + ((INDEX)vV.s0 + t.batch * (INDEX)vV.s3 + head * (INDEX)vV.s4), gO + o,
                           (INDEX)vQ.s6, (INDEX)vK.s5, (INDEX)vK.s6, (INDEX)vV.s5, (INDEX)vV.s6,
                           (INDEX)vO.s6, D, DV, scale };

        NO_UNROLL for (int m = m0; m < m0 + 16 && m < queries_here; m++) {
            float logarithm;

            warp_meet();                        /* what was stored is replaced */
            p.q = q + m * (INDEX)vQ.s5;
            p.o = gO + o + m * (INDEX)vO.s5;
            logarithm = plain_row(&p, sight_begin(&sight, m), sight_end(&sight, m), has_sink, sink, lane);
            if (has_lse && lane == 0)
                gLse[lse + m * (INDEX)vLse.s6] = logarithm;
        }
    }
    if (team == 0)                              /* the turn that nobody took */
        bar_sync(1, TURN_ITEMS);
}
