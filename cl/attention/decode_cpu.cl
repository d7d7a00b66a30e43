/* cl/attention/decode_cpu.cl - attention where few queries read many keys, on CPUs
 *
 * As in decode.cl the queries of all heads that share a head of keys are packed into rows, of which a
 * work-group, here one work-item, has ROWS, and a split of the keys; attention_merge adds up the splits in
 * order.  Keys and values are read where they are, once, in blocks of BLK_N: the scores of all rows with a
 * few keys at a time, VEC products that are vectors, added up as they are transposed to one vector.  While
 * scores are computed, the values of the same keys are prefetched; while values are added, the next keys.
 *
 * Parameters, from attention.tune: VEC BLK_N.  Constants: HEAD ROWS.
 * Method: Dao et al., "Flash-Decoding for long-context inference", 2023.
 */
#if BLK_N % VEC
#error "vectors must divide a block of keys"
#endif

#define VECTORS (HEAD / VEC)
#define SCORES  (BLK_N / VEC)                   /* vectors of scores of a row */
#define AT_ONCE (ROWS == 8 ? 2 : 4)             /* vectors of each row of sums in registers */
#define TOGETHER (ROWS < VEC ? ROWS : VEC)      /* rows whose products with KEYS keys make a vector */
#define KEYS     (VEC / TOGETHER)

EXP_BELOW_FUNCTION(exp_lanes, vector, BITS_LANES, LANES_BITS)

/* Rows to prefetch, `count` of them, while others are read: evenly, for a core has few misses in flight, and
 * as many vectors of each as are read.  Where they are longer, the rest is left to the core; where shorter,
 * what lies behind them is prefetched, which does no harm. */
struct ahead { GLOBAL const T *from; const INDEX *at; int count; };

#define PER_LINE (VEC * T_BYTES < 64 ? 64 / (VEC * T_BYTES) : 1)       /* vectors in a line of the cache */

/* Vector d of row i. */
DEVICE void prefetch_vector(const struct ahead *a, int i, int d)
{
    if (d % PER_LINE == 0 && i < a->count)
        PREFETCH(a->from + a->at[i] + d * VEC);
}

/* The offsets of keys n0 to n0 + count - 1 of a batch, of the last one in the lanes behind them. */
#define OFFSETS(out, v, n0, count)                                                             \
    for (int i = 0; i < BLK_N; i++) {                                                          \
        const int n = (n0) + (i < (count) ? i : (count) - 1);                                  \
        struct place place = { 0, n };                                                         \
                                                                                               \
        if (page)                                                                              \
            place = PLACE_OF(batch, n);                                                        \
        out[i] = place.page * (INDEX)v.s3 + place.key * (INDEX)v.s5;                           \
    }

/* A level of the tree that adds the lanes of VEC vectors and transposes them: of x[i] and x[i + apart].  The
 * distance is a constant of the text: else the compiler keeps x in memory. */
#define ADD_APART(x, apart)                                                                    \
    UNROLL for (int i = 0; i < (VEC > apart ? apart : 0); i++) {                               \
        vector low, high;                                                                      \
                                                                                               \
        ZIP(low, high, x[i], x[i + apart]);                                                    \
        x[i] = low + high;                                                                     \
    }

/* The products of TOGETHER queries with KEYS keys, whose vectors are read once for all of them. */
DEVICE void products(LOCAL R *scores, LOCAL const vector *q, GLOBAL const T *keys, const INDEX *at,
                     int vectors, const struct ahead *values)
{
    vector x[VEC];
    R lane[VEC];

    UNROLL for (int i = 0; i < VEC; i++)
        x[i] = (vector)ZERO;
    for (int d = 0; d < vectors; d++)
        UNROLL for (int i = 0; i < KEYS; i++) {
            const vector key = LOAD_VECTOR(VEC, keys + at[i] + d * VEC);

            prefetch_vector(values, i, d);
            UNROLL for (int r = 0; r < TOGETHER; r++)
                x[r * KEYS + i] = FMA(q[r * VECTORS + d], key, x[r * KEYS + i]);
        }
    ADD_APART(x, 8);
    ADD_APART(x, 4);
    ADD_APART(x, 2);
    ADD_APART(x, 1);
    VSTORE(VEC, lane, x[0]);
    UNROLL for (int r = 0; r < TOGETHER; r++)
    UNROLL for (int i = 0; i < KEYS; i++)
        scores[r * BLK_N + i] = lane[r * KEYS + i];
}

/* What is to be done with the scores of a row. */
struct scored { int first, end; R scale, softcap; GLOBAL const T *mask; INDEX mask_col; int has_mask; };

/* The products of a row and `vectors` vectors of keys become weights.  Gives the factor of older sums. */
DEVICE R weigh(LOCAL vector *s, int vectors, const struct scored *it, R *max, R *sum)
{
    vector largest = (vector)*max, total = (vector)ZERO, count;
    R lane[VEC], top, factor;

    for (int i = 0; i < VEC; i++)
        lane[i] = (R)i;
    count = VLOAD(VEC, lane);
    for (int v = 0; v < vectors; v++) {
        vector z = (vector)it->scale * s[v];

        if (it->softcap > ZERO || it->has_mask) {
            VSTORE(VEC, lane, z);
            for (int i = 0; i < VEC; i++) {
                lane[i] = it->softcap > ZERO ? capped(lane[i], it->softcap) : lane[i];
                if (it->has_mask && v * VEC + i >= it->first && v * VEC + i < it->end)
                    lane[i] = lane[i] + LOAD(it->mask, (v * VEC + i) * it->mask_col);
            }
            z = VLOAD(VEC, lane);
        }
        if (v * VEC < it->first || (v + 1) * VEC > it->end) {
            const vector at = count + (vector)((R)(v * VEC)), none = (vector)(ZERO - INFINITE);

            z = PICK(at, (vector)((R)it->first), none, PICK(at, (vector)((R)it->end), z, none));
        }
        s[v] = z;
        largest = MAX_LANES(largest, z);
    }
    top = lanes_max(largest);
    for (int v = 0; v < vectors; v++) {
        s[v] = exp_lanes(s[v] - (vector)top);
        total = total + s[v];
    }
    factor = power(*max - top);
    *sum = *sum * factor + lanes_sum(total);
    *max = top;
    return factor;
}

/* sums += weights times `wide` vectors, from the d-th on, of the values of `count` keys. */
DEVICE void add_values(LOCAL vector *sums, LOCAL const R *weights, GLOBAL const T *values, const INDEX *at,
                       int count, int d, const int wide, const struct ahead *keys)
{
    vector x[ROWS][AT_ONCE];

    UNROLL for (int r = 0; r < ROWS; r++)
        UNROLL for (int w = 0; w < wide; w++)
            x[r][w] = sums[r * VECTORS + d + w];
    for (int i = 0; i < count; i++)
        UNROLL for (int w = 0; w < wide; w++) {
            const vector v = LOAD_VECTOR(VEC, values + at[i] + (d + w) * VEC);

            prefetch_vector(keys, i, d + w);
            UNROLL for (int r = 0; r < ROWS; r++)
                x[r][w] = FMA((vector)weights[r * BLK_N + i], v, x[r][w]);
        }
    UNROLL for (int r = 0; r < ROWS; r++)
        UNROLL for (int w = 0; w < wide; w++)
            sums[r * VECTORS + d + w] = x[r][w];
}

KERNEL(1) void
attention_decode_cpu(DECODE_PARAMS)
{
    LOCAL_ARRAY(vector, sQ, ROWS * VECTORS);
    LOCAL_ARRAY(vector, sOut, ROWS * VECTORS);
    LOCAL_ARRAY(vector, sScores, ROWS * SCORES);

    SPLIT_HERE;
    GLOBAL const T *const k0 = gK + (INDEX)vK.s0 + (page ? 0 : batch) * (INDEX)vK.s3 + shared * (INDEX)vK.s4;
    GLOBAL const T *const v0 = gV + (INDEX)vV.s0 + (page ? 0 : batch) * (INDEX)vV.s3 + shared * (INDEX)vV.s4;
    GLOBAL R *const own_split = SPLIT_OF(split);
    R max[ROWS], sum[ROWS];
    INDEX k_at[BLK_N], v_at[BLK_N];

    for (int r = 0; r < ROWS; r++) {
        const int row = row0 + r < rows ? row0 + r : 0, i = row / group, h = shared * group + row - i * group;
        GLOBAL const T *const q = gQ + (INDEX)vQ.s0 + batch * (INDEX)vQ.s3 + h * (INDEX)vQ.s4
                                + i * (INDEX)vQ.s5;

        for (int d = 0; d < VECTORS; d++) {
            sQ[r * VECTORS + d] = rows <= 0 || d * VEC >= D ? (vector)ZERO
                                : read_lanes(q + d * VEC * (INDEX)vQ.s6, (INDEX)vQ.s6, VEC);
            sOut[r * VECTORS + d] = (vector)ZERO;
        }
        max[r] = LOWEST;
        sum[r] = ZERO;
    }
    if (from < to)
        OFFSETS(k_at, vK, from, to - from);
    for (int n0 = from; n0 < to; n0 += BLK_N) {
        const int count = to - n0 < BLK_N ? to - n0 : BLK_N, vectors = (count + VEC - 1) / VEC;
        const int next = n0 + BLK_N < to ? to - n0 - BLK_N : 0;

        OFFSETS(v_at, vV, n0, count);
        for (int i = 0; i < vectors * VEC; i += KEYS)
            for (int r = 0; r < ROWS; r += TOGETHER) {
                const struct ahead values = { v0, v_at + i, r == 0 ? KEYS : 0 };

                products((LOCAL R *)sScores + r * BLK_N + i, sQ + r * VECTORS, k0, k_at + i, D / VEC,
                         &values);
            }
        for (int r = 0; r < ROWS; r++) {
            const int row = row0 + r < rows ? row0 + r : 0, i = row / group;
            const int behind = sight_end(&sight, i) - n0, h = shared * group + row - i * group;
            const struct scored it = {
                sight_begin(&sight, i) - n0, behind < count ? behind : count, scale, softcap,
                gMask + (INDEX)vMask.s0 + batch * (INDEX)vMask.s3 + h * (INDEX)vMask.s4 + i * (INDEX)vMask.s5
                    + n0 * (INDEX)vMask.s6, (INDEX)vMask.s6, given & GIVEN_MASK };
            const R factor = weigh(sScores + r * SCORES, vectors, &it, &max[r], &sum[r]);

            if (factor != (R)1)
                for (int d = 0; d < VECTORS; d++)
                    sOut[r * VECTORS + d] = (vector)factor * sOut[r * VECTORS + d];
        }
        if (next > 0)
            OFFSETS(k_at, vK, n0 + BLK_N, next);

        const struct ahead keys = { k0, k_at, next };

        for (int d = 0; d < DV / VEC;) {
            if (d + AT_ONCE <= DV / VEC) {
                add_values(sOut, (LOCAL const R *)sScores, v0, v_at, count, d, AT_ONCE, &keys);
                d += AT_ONCE;
            } else {
                add_values(sOut, (LOCAL const R *)sScores, v0, v_at, count, d, 1, &keys);
                d++;
            }
        }
    }
    for (int r = 0; r < ROWS; r++) {
        for (int d = 0; d < DV / VEC; d++)
            VSTORE(VEC, own_split + r * DV + d * VEC, sOut[r * VECTORS + d]);
        own_split[ROWS * DV + r] = max[r];
        own_split[ROWS * (DV + 1) + r] = sum[r];
    }
}
