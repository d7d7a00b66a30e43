/* cl/attention/decode.cl - attention where few queries read many keys
 *
 * A step of a language model's decoding reads its whole cache of keys and values once: all that counts is
 * that every compute unit reads.  The queries of all heads that share a head of keys are packed into rows, of
 * which a work-group has ROWS, and a split of the keys.  Teams of TEAM work-items take KEYS keys each in a
 * step; each work-item has its vectors of 16 bytes of every one:
 *
 *               elements of a key, or value
 *            +---------+---------+-----
 *      key   | item 0  | item 1  | ...      scores are sums over a team; the weighted values of its own keys
 *            +---------+---------+-----     a work-item adds up for its own elements
 *
 * The vectors of STAGES steps are in flight where the device copies them by itself.  A team has a running
 * maximum of its own; at the end the teams of a work-group are merged, in order.  Each split leaves its
 * maximum, its sum and its weighted values in the workspace, and the last of them, or attention_merge, adds
 * them up, in order: the same bits each time.
 *
 * A key that no query of the call sees is not read, nor is its value.
 *
 * Parameters, from attention.tune: ITEMS; LANES_MOST, of a team; KEYS; STAGES.  Constants: HEAD
 * ROWS, a power of two each; GENERAL, whether there is a mask or a softcap; PAGED.
 * Method: Dao et al., "Flash-Decoding for long-context inference", 2023.
 */
#define SLOTS   (LANES > TEAM ? ITEMS / LANES : TEAMS)          /* sums that are merged in local memory */
#define PITCH   (HEAD + 1)                      /* weighted values, and the sum of the weights */

/* Elements of local memory, for one thing after the other. */
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define TEAMS_ROOM  (LANES > 1 ? 0 : SCORES * ITEMS)
#define GROUP_ROOM  (ROWS * TEAMS + 2 * SLOTS * PITCH)
#define ROOM        LARGER(TEAMS_ROOM, GROUP_ROOM)
#define LOCAL_BYTES LARGER(STREAM_BYTES, (TYPE == TYPE_F64 ? 8 : 4) * ROOM)

/* Of `count` values of a work-item the sums over its team, in the same order each time. */
DEVICE void team_sums(LOCAL R *room, R *x, const int count)
{
#if LANES > 1
    EACH for (int apart = TEAM / 2; apart > 0; apart /= 2)
        EACH for (int i = 0; i < count; i++)
            x[i] = x[i] + LANE_XOR(room, x[i], apart);
#else
    const int me = LOCAL_ID(), first = me / TEAM * TEAM;

    BARRIER();
    EACH for (int i = 0; i < count; i++)
        room[i * ITEMS + me] = x[i];
    BARRIER();
    EACH for (int i = 0; i < count; i++) {
        x[i] = ZERO;
        for (int j = 0; j < TEAM; j++)
            x[i] = x[i] + room[i * ITEMS + first + j];
    }
#endif
}

/* Vectors of a key, or a value. */
#define KEY_VECTOR(u, v)   ((u) * VECTORS + (v))
#define VALUE_VECTOR(u, v) ((KEYS + (u)) * VECTORS + (v))

LARGE_LOCAL(attention_decode, LOCAL_BYTES)

KERNEL(ITEMS) void
attention_decode(DECODE_PARAMS)
{
    LARGE_LOCAL_ARRAY(room, LOCAL_BYTES);
    LOCAL_ARRAY(int, before, 1);                /* splits that were done before */
    LOCAL R *const scratch = (LOCAL R *)room;

    const int me = LOCAL_ID(), team = me / TEAM, lane = me % TEAM;
    SPLIT_HERE;
    GLOBAL const T *const k0 = gK + (INDEX)vK.s0 + (PAGED ? 0 : batch) * (INDEX)vK.s3 + shared * (INDEX)vK.s4;
    GLOBAL const T *const v0 = gV + (INDEX)vV.s0 + (PAGED ? 0 : batch) * (INDEX)vV.s3 + shared * (INDEX)vV.s4;
    struct place place[KEYS] = { { 0, 0 } };    /* of the keys that are fetched next */
    struct stream stream;
    R q[ROWS][VECTORS * RUN], out[ROWS][VECTORS * RUN], max[ROWS], sum[ROWS];

/* Where the work-item's keys of the step from n0 on are: read a step before its use, as a copy would wait. */
#define LOOK_UP(n0)                                                                                \
    do {                                                                                           \
        EACH for (int u = 0; u < KEYS; u++) {                                                      \
            const int n = (n0) + u * TEAMS + team;                                                 \
                                                                                                   \
            if (PAGED && n < to)                                                                   \
                place[u] = PLACE_OF(batch, n);                                                     \
        }                                                                                          \
    } while (0)

/* Fetches the vectors of the work-item's keys and values of the step from n0 on. */
#define FETCH(n0)                                                                                  \
    do {                                                                                           \
        EACH for (int u = 0; u < KEYS; u++) {                                                    \
            const int n = (n0) + u * TEAMS + team, is = n < to;                                    \
            const int p = PAGED ? place[u].page : 0, in = PAGED ? place[u].key : is ? n : 0;       \
            GLOBAL const T *const k = k0 + p * (INDEX)vK.s3 + in * (INDEX)vK.s5;                   \
            GLOBAL const T *const v = v0 + p * (INDEX)vV.s3 + in * (INDEX)vV.s5;                   \
                                                                                                   \
            EACH for (int i = 0; i < VECTORS; i++) {                                             \
                const int e = (lane + i * TEAM) * RUN;                                             \
                                                                                                   \
                stream_fetch(&stream, KEY_VECTOR(u, i), k + (e < D ? e : 0), is && e < D);         \
                stream_fetch(&stream, VALUE_VECTOR(u, i), v + (e < DV ? e : 0), is && e < DV);     \
            }                                                                                      \
        }                                                                                          \
        stream_commit(&stream);                                                                    \
    } while (0)

    stream_begin(&stream, room);
    EACH for (int i = 0; i < STREAM_STAGES - 1; i++) {
        LOOK_UP(from + i * STEP);
        FETCH(from + i * STEP);
    }
    LOOK_UP(from + (STREAM_STAGES - 1) * STEP);
    EACH for (int r = 0; r < ROWS; r++) {
        const int row = row0 + r < rows ? row0 + r : 0, i = row / group, h = shared * group + row - i * group;
        GLOBAL const T *const from_q = gQ + (INDEX)vQ.s0 + batch * (INDEX)vQ.s3 + h * (INDEX)vQ.s4
                                     + i * (INDEX)vQ.s5;

        EACH for (int e = 0; e < VECTORS * RUN; e++) {
            const int d = (lane + e / RUN * TEAM) * RUN + e % RUN;

            q[r][e] = d < D && rows > 0 ? LOAD(from_q, d * (INDEX)vQ.s6) : ZERO;
            out[r][e] = ZERO;
        }
        max[r] = LOWEST;
        sum[r] = ZERO;
    }
    for (int n0 = from; n0 < to; n0 += STEP) {
        R s[SCORES];

        FETCH(n0 + (STREAM_STAGES - 1) * STEP);
        LOOK_UP(n0 + STREAM_STAGES * STEP);
        stream_wait(&stream);
        EACH for (int u = 0; u < KEYS; u++) {
            R k[VECTORS * RUN];

            EACH for (int i = 0; i < VECTORS; i++)
                stream_values(k + i * RUN, &stream, KEY_VECTOR(u, i));
            EACH for (int r = 0; r < ROWS; r++) {
                s[u * ROWS + r] = ZERO;
                EACH for (int e = 0; e < VECTORS * RUN; e++)
                    s[u * ROWS + r] = FMA(q[r][e], k[e], s[u * ROWS + r]);
            }
        }
        team_sums(scratch, s, SCORES);
        EACH for (int r = 0; r < ROWS; r++) {
            R top = max[r], factor;

            EACH for (int u = 0; u < KEYS; u++) {
                const int n = n0 + u * TEAMS + team;
                int seen = n < to;
                R z = scale * s[u * ROWS + r];

                if (n < all_begin || n >= all_end) {
                    const int i = (row0 + r) / group;

                    seen = seen && n >= sight_begin(&sight, i) && n < sight_end(&sight, i);
                }
#if GENERAL
                z = softcap > ZERO ? capped(z, softcap) : z;
                if (given & GIVEN_MASK && seen && row0 + r < rows) {
                    const int i = (row0 + r) / group, h = shared * group + row0 + r - i * group;

                    z = z + LOAD(gMask, (INDEX)vMask.s0 + batch * (INDEX)vMask.s3 + h * (INDEX)vMask.s4
                                        + i * (INDEX)vMask.s5 + n * (INDEX)vMask.s6);
                }
#endif
                z = seen ? z : ZERO - INFINITE;
                s[u * ROWS + r] = z;
                top = MAX(top, z);
            }
            factor = power(max[r] - top);
            max[r] = top;
            sum[r] = sum[r] * factor;
            EACH for (int e = 0; e < VECTORS * RUN; e++)
                out[r][e] = out[r][e] * factor;
            EACH for (int u = 0; u < KEYS; u++) {
                s[u * ROWS + r] = power(s[u * ROWS + r] - top);
                sum[r] = sum[r] + s[u * ROWS + r];
            }
        }
        EACH for (int u = 0; u < KEYS; u++) {
            R v[VECTORS * RUN];

            EACH for (int i = 0; i < VECTORS; i++)
                stream_values(v + i * RUN, &stream, VALUE_VECTOR(u, i));
            EACH for (int r = 0; r < ROWS; r++)
                EACH for (int e = 0; e < VECTORS * RUN; e++)
                    out[r][e] = FMA(s[u * ROWS + r], v[e], out[r][e]);
        }
        stream_next(&stream);
    }

    /* The maximum of each row over the teams; then sums relative to that. */
    LOCAL R *const maxima = scratch, *const merged = maxima + ROWS * TEAMS;

    stream_end(&stream);
    BARRIER();
    if (lane == 0)
        EACH for (int r = 0; r < ROWS; r++)
            maxima[r * TEAMS + team] = max[r];
    BARRIER();
    EACH for (int r = 0; r < ROWS; r++) {
        const R own = max[r];

        for (int t = 0; t < TEAMS; t++)
            max[r] = MAX(max[r], maxima[r * TEAMS + t]);

        const R factor = power(own - max[r]);

        sum[r] = sum[r] * factor;
        EACH for (int e = 0; e < VECTORS * RUN; e++)
            out[r][e] = out[r][e] * factor;
#if LANES > 1
        EACH for (int apart = TEAM; apart < LANES; apart *= 2) {
            sum[r] = sum[r] + LANE_XOR(scratch, sum[r], apart);
            EACH for (int e = 0; e < VECTORS * RUN; e++)
                out[r][e] = out[r][e] + LANE_XOR(scratch, out[r][e], apart);
        }
#endif
    }

    GLOBAL R *const own_split = SPLIT_OF(split);

    EACH for (int r = 0; r < ROWS; r++) {
        LOCAL R *const slots = merged + r % 2 * SLOTS * PITCH;
        LOCAL R *const mine = slots + me / (ITEMS / SLOTS) * PITCH;
        R all = ZERO;

        if (me % (ITEMS / SLOTS) < TEAM) {
            EACH for (int e = 0; e < VECTORS * RUN; e++)
                mine[(lane + e / RUN * TEAM) * RUN + e % RUN] = out[r][e];
            if (lane == 0)
                mine[HEAD] = sum[r];
        }
        BARRIER();
        for (int t = 0; t < SLOTS; t++)
            all = all + slots[t * PITCH + HEAD];
        for (int c = me; c < DV; c += ITEMS) {
            R x = ZERO;

            for (int t = 0; t < SLOTS; t++)
                x = x + slots[t * PITCH + c];
            own_split[r * DV + c] = x;
        }
        if (me == 0) {
            own_split[ROWS * DV + r] = max[r];
            own_split[ROWS * (DV + 1) + r] = all;
        }
    }
#if LANES > 1
    if (merges && is_last_split(before, counters + (batch * shareds + shared) * blocks + block, splits)) {
        RESULT(result);
        merge_splits(SPLIT_OF(0), splits, &result);
    }
#endif
}
