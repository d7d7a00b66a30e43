/* cl/attention/decode_mma.cl - attention where some queries read many keys, in 16-bit types, by the mma.sync
 * of NVIDIA's sm_80 and up
 *
 * As decode.cl, but for 16 rows at once: the queries of all heads that share a head of keys, 16 at a time,
 * are the first operand of products by a warp, which takes KEYS keys in a step:
 *
 *              k: elements              n: keys                  n: elements
 *            +-----------+            +--------+               +-----------+
 *    16 rows |  queries  |  keys^T -> | scores |  weights  x   |  values   |  -> 16 rows of sums
 *            +-----------+            +--------+               +-----------+
 *
 * Scores turn into weights in the registers that they are in.  Each warp copies its own keys and values with
 * cp.async, STAGES - 1 steps ahead; no barrier of the work-group is needed until its warps are merged, in
 * order.  Vector v (16 bytes) of row i lies at v ^ i % 8, so that vector v of eight rows covers all banks.
 *
 * Parameters, from attention.tune: ITEMS KEYS STAGES LAZY (cl/attention/online.h).  Constants: HEAD, a power
 * of two; GENERAL, whether there is a mask or a softcap; PAGED.
 * Method: Dao et al., "Flash-Decoding for long-context inference", 2023.
 */
#define WARPS       (ITEMS / 32)
#define STEP        (WARPS * KEYS)              /* keys of a work-group */
#define SCORES      (KEYS / 2)                  /* of a work-item */
#define SUMS        (HEAD / 2)
#define ROW_BYTES   (2 * HEAD)
#define ROW_VECTORS (HEAD / 8)
#define COPY_ROWS   (32 / ROW_VECTORS)          /* that a warp copies at once */
#define COPIES      (KEYS / COPY_ROWS)
#define VALUES_AT   (KEYS * ROW_BYTES)          /* in a stage */
#define STAGE_BYTES (2 * KEYS * ROW_BYTES)      /* of a warp */
#define RING_BYTES  (WARPS * STAGES * STAGE_BYTES)
#define PITCH       (HEAD + 8)                  /* of merged sums: lanes of four rows differ in banks */
#define MERGE_ROOM  (WARPS * ROWS * (PITCH + 2))
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define LOCAL_BYTES LARGER(RING_BYTES, 4 * MERGE_ROOM)
#define LOG2_E      1.44269504f

LARGE_LOCAL(attention_decode_mma, LOCAL_BYTES)

/* a: rows g and g + 8 of the first 8 of 16 columns, then of the others, as acc_to_fragment() has them. */
DEVICE void multiply(float *c, const UINT32 a[4], UINT32 b, UINT32 b8)
{
    const UINT32 upper[2] = { a[0], a[2] }, lower[2] = { a[1], a[3] }, both[2] = { b, b8 };

    MMA_F32(c, c + 2, upper, lower, both);
}

/* A warp: the scores of the KEYS keys at `from`; swizzle: lane % 8. */
DEVICE void decode_scores(float *s, const UINT32 *q, UINT32 from, int lane)
{
    UNROLL for (int i = 0; i < SCORES; i++)
        s[i] = 0.0f;
    UNROLL for (int j = 0; j < KEYS / 8; j++)
        UNROLL for (int k = 0; k < HEAD / 32; k++) {
            UINT32 b[4];

            LOAD_TILES("", b[0], b[1], b[2], b[3],
                       from + (j * 8 + lane % 8) * ROW_BYTES + ((4 * k + lane / 8) ^ lane % 8) * 16);
            multiply(s + 4 * j, q + 8 * k, b[0], b[1]);
            multiply(s + 4 * j, q + 8 * k + 4, b[2], b[3]);
        }
}

/* ... and the weighted values that are there. */
DEVICE void decode_sums(float *sums, const float *s, UINT32 from, int lane)
{
    UNROLL for (int k = 0; k < KEYS / 16; k++) {
        UINT32 p[4];

        acc_to_fragment(p, s, k);
        UNROLL for (int j = 0; j < HEAD / 16; j++) {
            UINT32 b[4];

            LOAD_TILES(".trans", b[0], b[1], b[2], b[3],
                       from + (k * 16 + lane % 16) * ROW_BYTES + ((2 * j + lane / 16) ^ lane % 8) * 16);
            multiply(sums + 8 * j, p, b[0], b[1]);
            multiply(sums + 8 * j + 4, p, b[2], b[3]);
        }
    }
}

KERNEL(ITEMS) void
attention_decode_mma(DECODE_PARAMS)
{
    LARGE_LOCAL_ARRAY(room, LOCAL_BYTES);
    LOCAL_ARRAY(int, before, 1);                /* splits that were done before */

    const int me = LOCAL_ID(), lane = me % 32, warp = this_warp();
    SPLIT_HERE;
    const int row_of = lane / ROW_VECTORS, vector = lane % ROW_VECTORS;
    const int in_pairs = vQ.s6 == 1 && (vQ.s0 | vQ.s3 | vQ.s4 | vQ.s5) % 2 == 0;         /* queries */
    const UINT32 ring = LOCAL_ADDRESS(room) + warp * (STAGES * STAGE_BYTES);
    GLOBAL const T *const k0 = gK + (INDEX)vK.s0 + (PAGED ? 0 : batch) * (INDEX)vK.s3 + shared * (INDEX)vK.s4
                             + (vector * 8 < D ? vector * 8 : 0);
    GLOBAL const T *const v0 = gV + (INDEX)vV.s0 + (PAGED ? 0 : batch) * (INDEX)vV.s3 + shared * (INDEX)vV.s4
                             + (vector * 8 < DV ? vector * 8 : 0);
    UINT32 q[HEAD / 4], stage = 0;
    struct place place = { 0, 0 };
    float sums[SUMS], max[2], sum[2], rescale[2];
    int lane_begin[2], lane_end[2];             /* that the lane's rows see */

/* Where the lane's key of the step from n0 on is: read a step before its use, for a copy that waited for the
 * table of pages would leave too few bytes in flight. */
#define LOOK_UP(n0)                                                                                       \
    do {                                                                                                  \
        const int n = (n0) + warp * KEYS + lane % KEYS;                                                   \
                                                                                                          \
        if (PAGED && n < to)                                                                              \
            place = PLACE_OF(batch, n);                                                                   \
    } while (0)

/* Fetches the warp's keys and values of the step from n0 on to stage `at`. */
#define FETCH(n0, at)                                                                                     \
    do {                                                                                                  \
        UNROLL for (int c = 0; c < COPIES; c++) {                                                         \
            const int key = c * COPY_ROWS + row_of, n = (n0) + warp * KEYS + key, is = n < to;            \
            const int p = PAGED ? (int)from_lane((UINT32)place.page, key) : 0;                            \
            const int in = PAGED ? (int)from_lane((UINT32)place.key, key) : is ? n : 0;                   \
            const UINT32 here = ring + (at) * STAGE_BYTES + key * ROW_BYTES                               \
                              + (vector ^ row_of ^ c * COPY_ROWS % 8) * 16;                               \
                                                                                                          \
            COPY_ASYNC16_ONCE(here, k0 + p * (INDEX)vK.s3 + in * (INDEX)vK.s5,                            \
                              is && vector * 8 < D ? 16 : 0);                                             \
            COPY_ASYNC16_ONCE(here + VALUES_AT, v0 + p * (INDEX)vV.s3 + in * (INDEX)vV.s5,                \
                              is && vector * 8 < DV ? 16 : 0);                                            \
        }                                                                                                 \
        copies_commit();                                                                                  \
    } while (0)

    UNROLL for (int i = 0; i < STAGES - 1; i++) {
        LOOK_UP(from + i * STEP);
        FETCH(from + i * STEP, i);
    }
    LOOK_UP(from + (STAGES - 1) * STEP);
    UNROLL for (int below = 0; below < 2; below++) {
        const int row = row0 + lane / 4 + 8 * below, there = row < rows, i = there ? row / group : 0;
        const int h = shared * group + (there ? row - i * group : 0);
        GLOBAL const T *const from_q = gQ + (INDEX)vQ.s0 + batch * (INDEX)vQ.s3 + h * (INDEX)vQ.s4
                                     + i * (INDEX)vQ.s5;

        lane_begin[below] = sight_begin(&sight, i);
        lane_end[below] = there ? sight_end(&sight, i) : 0;
        max[below] = -INFINITE;
        sum[below] = 0.0f;
        UNROLL for (int k = 0; k < HEAD / 8; k++) {
            const int d = k * 8 + lane % 4 * 2;

            q[k * 2 + below] = 0;
            if (there && d < D && in_pairs)
                q[k * 2 + below] = *(GLOBAL const UINT32 *)(from_q + d);
            else if (there && d < D)
                q[k * 2 + below] = pair_of(LOAD(from_q, d * (INDEX)vQ.s6),
                                           LOAD(from_q, (d + 1) * (INDEX)vQ.s6));
        }
    }
    UNROLL for (int i = 0; i < SUMS; i++)
        sums[i] = 0.0f;
    for (int n0 = from; n0 < to; n0 += STEP) {
        const UINT32 here = ring + stage * STAGE_BYTES;
        const int n1 = n0 + warp * KEYS;
        float s[SCORES];
        int grows;

        COPIES_WAIT(STAGES - 2);
        warp_meet();
        FETCH(n0 + (STAGES - 1) * STEP, stage == 0 ? STAGES - 1 : stage - 1);
        LOOK_UP(n0 + STAGES * STEP);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        decode_scores(s, q, here, lane);
        UNROLL for (int i = 0; i < SCORES; i++) {
            s[i] = scale * s[i];
#if GENERAL
            const int n = n1 + lane % 4 * 2 + ACC_COL(i), row = row0 + lane / 4 + ACC_ROW(i), m = row / group;

            s[i] = softcap > 0.0f ? capped(s[i], softcap) : s[i];
            if (given & GIVEN_MASK && n < to && row < rows)
                s[i] = s[i] + LOAD(gMask, (INDEX)vMask.s0 + batch * (INDEX)vMask.s3
                                          + (shared * group + row - m * group) * (INDEX)vMask.s4
                                          + m * (INDEX)vMask.s5 + n * (INDEX)vMask.s6);
#endif
        }
        if (n1 + KEYS > to || n1 < all_begin || n1 + KEYS > all_end || row0 + ROWS > rows)
            UNROLL for (int i = 0; i < SCORES; i++) {
                const int n = n1 + lane % 4 * 2 + ACC_COL(i), below = ACC_BELOW(i);

                if (n >= to || n < lane_begin[below] || n >= lane_end[below])
                    s[i] = -INFINITE;
            }
        grows = online_update(s, SCORES, max, sum, rescale, LOG2_E, 0);
        online_rescale(sums, SUMS, rescale, grows);
        decode_sums(sums, s, here + VALUES_AT, lane);
    }

    /* The warps are merged: the maximum of each row; sums relative to that; then all sums. */
    LOCAL float *const maxima = (LOCAL float *)room, *const totals = maxima + WARPS * ROWS;
    LOCAL float *const merged = totals + WARPS * ROWS;
    GLOBAL float *const own_split = SPLIT_OF(split);
    const int left = queries * group - row0, count = left < ROWS ? left : ROWS;

    COPIES_WAIT(0);
    BARRIER();
    UNROLL for (int below = 0; below < 2; below++)
        if (lane % 4 == 0)
            maxima[warp * ROWS + lane / 4 + 8 * below] = max[below];
    BARRIER();
    UNROLL for (int below = 0; below < 2; below++) {
        const int r = lane / 4 + 8 * below;
        const float own = max[below], all = acc_quad_sum(sum[below]);

        for (int w = 0; w < WARPS; w++)
            max[below] = MAX(max[below], maxima[w * ROWS + r]);

        const float factor = own == -INFINITE ? 0.0f : ptx_exp2((own - max[below]) * LOG2_E);

        if (lane % 4 == 0)
            totals[warp * ROWS + r] = all * factor;
        acc_scale_row(sums, SUMS, below, factor);
        if (r < count)
            UNROLL for (int i = 2 * below; i < SUMS; i += 4)
                UNROLL for (int e = i; e < i + 2; e++)
                    merged[(warp * ROWS + r) * PITCH + lane % 4 * 2 + ACC_COL(e)] = sums[e];
    }
    BARRIER();
    for (int at = me; at < count * HEAD; at += ITEMS) {
        const int r = at / HEAD, c = at % HEAD;
        float x = 0.0f;

        UNROLL for (int w = 0; w < WARPS; w++)
            x = x + merged[(w * ROWS + r) * PITCH + c];
        if (c < DV)
            own_split[r * DV + c] = x;
    }
    if (me < count) {
        float top = -INFINITE, all = 0.0f;

        for (int w = 0; w < WARPS; w++) {
            top = MAX(top, maxima[w * ROWS + me]);
            all = all + totals[w * ROWS + me];
        }
        own_split[ROWS * DV + me] = top;
        own_split[ROWS * (DV + 1) + me] = all;
    }
    if (merges && is_last_split(before, counters + (batch * shareds + shared) * blocks + block, splits)) {
        RESULT(result);
        merge_splits(SPLIT_OF(0), splits, &result);
    }
}
