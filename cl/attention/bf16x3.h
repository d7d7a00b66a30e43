/* cl/attention/bf16x3.h - tiles of queries, and blocks of keys and values, in three bf16 parts
 *
 * cl/gemm/bf16x3.cl says what parts are.  A tile has 64 queries for each warpgroup, a block BLK_N keys or
 * values.  In local memory, and blocks in the workspace too, parts follow each other; each has rows of HEAD
 * elements, in boxes of 64: rows of 128 bytes, swizzled as wgmma reads them.  Rows and elements that a tensor
 * has not are zeros.
 *
 *     scores = queries keys^T           the first Q_REGISTERS parts of queries from registers
 *     sums   = weights values           the weights from registers: the scores' accumulators, in parts
 *
 * Both begin at 0 with each block, since tensor cores truncate when they accumulate.
 *
 * A row whose results are not finite is computed again, from the tensors: parts of infinities are NaN, and
 * scores of more than 2^96 are infinite.
 *
 * Takes: HEAD BLK_N WARPGROUPS Q_REGISTERS; cl/gemm/bf16x3.h; attention.h; accumulator.h;
 *        atoms/nvidia/wgmma.h, mma.h, memory.h, warp.h; exp_of().
 * Gives: BLK_M BYTES_* SCORES SUMS, *_in_parts(), attention_*(), struct plain, plain_row().
 */
#define BLK_M      (64 * WARPGROUPS)
#define BOXES      ((HEAD + 63) / 64)
#define VECTORS    (BOXES * 8)                  /* of 16 bytes, of a row */
#define PART(rows) (BOXES * (rows) * 128)       /* bytes */
#define BYTES_Q    (BF16X3_PARTS * PART(64))    /* of a warpgroup */
#define BYTES_K    (BF16X3_PARTS * PART(BLK_N)) /* and of values */
#define SCORES     (BLK_N / 2)                  /* of a work-item */
#define SUMS       (HEAD / 2)

/* ---- splitting ------------------------------------------------------------------------ */

/* Where a row has a vector, in bytes. */
DEVICE int vector_in_parts(const int rows, int row, int vector)
{
    return vector / 8 * (rows * 128) + row * 128 + (vector % 8 ^ row % 8) * 16;
}

/* Parts of eight elements. */
DEVICE uint4 vector_part(R x[8])
{
    uint4 packed;

    packed.x = bf16x3_part(x, x + 1);
    packed.y = bf16x3_part(x + 2, x + 3);
    packed.z = bf16x3_part(x + 4, x + 5);
    packed.w = bf16x3_part(x + 6, x + 7);
    return packed;
}

/* Whether rows are contiguous and of whole vectors, and begin at multiples of 16 bytes. */
DEVICE int rows_are_whole(GLOBAL const T *g, INDEX row_step, INDEX step, int D)
{
    return step == 1 && D % 8 == 0 && row_step % 4 == 0 && (UINT64)g % 16 == 0;
}

/* Vector i of a tile of 64 rows from m0 on: loads it from such rows, or from any; and stores its parts. */
#define QUERY_VECTOR(i) ((i) * 128 + me), row = at / VECTORS, vector = at % VECTORS
#define QUERY_ROW       (g + (m0 + row < queries ? m0 + row : 0) * row_step)

DEVICE void store_parts(UINT32 to, int row, int vector, R x[8])
{
    const UINT32 at = to + vector_in_parts(64, row, vector);

    UNROLL for (int part = 0; part < BF16X3_PARTS; part++) {
        const uint4 u = vector_part(x);

        STORE_B32X4(at + part * PART(64), u.x, u.y, u.z, u.w);
    }
}

/* A warpgroup: its 64 queries from m0 on, to local memory.  Products may read them after a barrier.  All
 * loads of whole rows are in flight together. */
DEVICE void queries_in_parts(UINT32 to, GLOBAL const T *g, INDEX row_step, INDEX step, int m0, int queries,
                             int D, int me)
{
    if (rows_are_whole(g, row_step, step, D)) {
        float4 u[VECTORS];

        UNROLL for (int i = 0; i < VECTORS / 2; i++) {
            const int at = QUERY_VECTOR(i);
            const int k = vector * 8 < D ? vector * 8 : 0;
            GLOBAL const float4 *const from = (GLOBAL const float4 *)(QUERY_ROW + k);

            u[2 * i] = from[0];
            u[2 * i + 1] = from[1];
        }
        UNROLL for (int i = 0; i < VECTORS / 2; i++) {
            const int at = QUERY_VECTOR(i), there = m0 + row < queries && vector * 8 < D;
            const float4 low = u[2 * i], high = u[2 * i + 1];
            R x[8] = { low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w };

            UNROLL for (int j = 0; j < 8; j++)
                x[j] = there ? x[j] * BF16X3_SCALE : 0.0f;
            store_parts(to, row, vector, x);
        }
    } else {
        NO_UNROLL for (int i = 0; i < VECTORS / 2; i++) {
            const int at = QUERY_VECTOR(i);
            R x[8];

            bf16x3_load(x, QUERY_ROW, step, vector * 8, D, m0 + row < queries);
            store_parts(to, row, vector, x);
        }
    }
    fence_async_proxy();
}

/* A work-group of 256: a block of keys, or values, from row n0 on, to the workspace. */
DEVICE void block_in_parts(GLOBAL uint4 *to, GLOBAL const T *g, INDEX row_step, INDEX step, int n0, int rows,
                           int D)
{
    NO_UNROLL for (int i = LOCAL_ID(); i < BLK_N * VECTORS; i += 256) {
        const int row = i / VECTORS, vector = i % VECTORS, there = n0 + row < rows;
        const int at = vector_in_parts(BLK_N, row, vector) / 16;
        R x[8];

        bf16x3_load(x, g + (there ? n0 + row : 0) * row_step, step, vector * 8, D, there);
        UNROLL for (int part = 0; part < BF16X3_PARTS; part++)
            to[at + part * (PART(BLK_N) / 16)] = vector_part(x);
    }
}

/* ---- products ------------------------------------------------------------------------- */

/* The k-th 16 of K of a part. */
DEVICE unsigned INT64 k_major_part(UINT32 descriptor, const int rows, const int part, const int k)
{
    return wgmma_at(descriptor + (part * PART(rows) + k / 4 * rows * 128 + k % 4 * 32) / 16);
}

DEVICE unsigned INT64 n_major_part(UINT32 descriptor, const int rows, const int part, const int k)
{
    return wgmma_at(descriptor + (part * PART(rows) + k * 16 * 128) / 16);
}

/* The parts of a warp's queries that products take from registers. */
DEVICE void attention_fragments(UINT32 *a, UINT32 queries, int warp, int lane)
{
    const UINT32 row = queries + (warp % 4 * 16 + lane % 16) * 128;

    UNROLL for (int part = 0; part < Q_REGISTERS; part++)
        UNROLL for (int k = 0; k < HEAD / 16; k++) {
            UINT32 *const u = a + (part * (HEAD / 16) + k) * 4;

            LOAD_TILES("", u[0], u[1], u[2], u[3],
                       row + part * PART(64) + k / 4 * (64 * 128) + (k % 4 * 2 + lane / 16 ^ lane % 8) * 16);
        }
}

#define SCORES_PRODUCT(k, i, j, add)                                                                  \
    do {                                                                                              \
        if (i < Q_REGISTERS)                                                                          \
            WGMMA_RS(BLK_N, WGMMA_BF16, WGMMA_MAJOR_B(0), s, fragments + (i * (HEAD / 16) + (k)) * 4, \
                     k_major_part(keys, BLK_N, j, k), add);                                           \
        else                                                                                          \
            WGMMA(BLK_N, WGMMA_BF16, WGMMA_MAJOR(0, 0), s, k_major_part(queries, 64, i, k),           \
                  k_major_part(keys, BLK_N, j, k), add);                                              \
    } while (0)

/* A warpgroup: hands the products of its queries and a block of keys to the tensor cores. */
DEVICE void attention_scores(float *s, const UINT32 *fragments, UINT32 queries, UINT32 keys)
{
    wgmma_begin();
    BF16X3_CHAIN_OF(HEAD / 16, SCORES_PRODUCT);
    wgmma_commit();
}

#define SUMS_PRODUCT(k, i, j, add)                                                                    \
    WGMMA_RS(HEAD, WGMMA_BF16, WGMMA_MAJOR_B(1), d, weights + (i * (BLK_N / 16) + (k)) * 4,           \
             n_major_part(values, BLK_N, j, k), add)

/* ... of its weights and a block of values. */
DEVICE void attention_sums(float *d, const UINT32 *weights, UINT32 values)
{
    wgmma_begin();
    BF16X3_CHAIN_OF(BLK_N / 16, SUMS_PRODUCT);
    wgmma_commit();
}

DEVICE void attention_weights(UINT32 *weights, const float *s)
{
    UNROLL for (int i = 0; i < BLK_N / 4; i++) {
        float x = s[2 * i], y = s[2 * i + 1];

        UNROLL for (int part = 0; part < BF16X3_PARTS; part++)
            weights[part * (BLK_N / 4) + i] = bf16x3_part(&x, &y);
    }
}

/* The products of a block join those of the blocks before. */
DEVICE void attention_join(float *sums, const float *d, const float *rescale)
{
    UNROLL for (int i = 0; i < SUMS; i++)
        sums[i] = FMA(sums[i], rescale[ACC_BELOW(i)], d[i]);
}

DEVICE int attention_all_finite(const float *sums, const int below)
{
    int finite = 1;

    UNROLL for (int i = 2 * below; i < SUMS; i += 4)
        finite &= ABS(sums[i]) <= BF16X3_LARGEST && ABS(sums[i + 1]) <= BF16X3_LARGEST;
    return finite;
}

/* The factor of a row of sums; of a sum of 0 it is 0. */
DEVICE float attention_share(float sum)
{
    return sum == 0.0f ? 0.0f : ptx_recip(sum);
}

/* ---- rows that are computed again ----------------------------------------------------- */

/* Of a head: a query, its keys and values, and its row of the output; steps of rows and elements. */
struct plain {
    GLOBAL const T *q, *k, *v;
    GLOBAL T *o;
    INDEX q_col, k_row, k_col, v_row, v_col, o_col;
    int D, DV;
    float scale;
};

DEVICE float plain_score(const struct plain *p, int n)
{
    float s = 0.0f;

    NO_UNROLL for (int d = 0; d < p->D; d++)
        s = FMA(p->q[d * p->q_col], p->k[n * p->k_row + d * p->k_col], s);
    return s * p->scale;
}

/* A warp: the row of a query that sees keys `begin` to `end` - 1.  Gives its log-sum-exp. */
DEVICE float plain_row(const struct plain *p, int begin, int end, int has_sink, float sink, int lane)
{
    float max = LOWEST, sum = 0.0f, factor = 1.0f, acc[HEAD / 32];

    UNROLL for (int i = 0; i < HEAD / 32; i++)
        acc[i] = 0.0f;
    NO_UNROLL for (int n = begin + lane; n < end; n += 32)
        max = MAX(max, plain_score(p, n));
    UNROLL for (int apart = 16; apart > 0; apart /= 2)
        max = MAX(max, from_lane_xor(max, apart));
    NO_UNROLL for (int n0 = begin; n0 < end; n0 += 32) {
        const float w = n0 + lane < end ? exp_of(plain_score(p, n0 + lane) - max) : 0.0f;

        sum += w;
        NO_UNROLL for (int n = n0; n < n0 + 32 && n < end; n++) {
            const float here = BITS_FLOAT(from_lane(FLOAT_BITS(w), n - n0));

            UNROLL for (int i = 0; i < HEAD / 32; i++)
                if (lane + 32 * i < p->DV)
                    acc[i] = FMA(here, p->v[n * p->v_row + (lane + 32 * i) * p->v_col], acc[i]);
        }
    }
    UNROLL for (int apart = 16; apart > 0; apart /= 2)
        sum += from_lane_xor(sum, apart);
    if (has_sink)
        factor = join_sink(&max, &sum, sink);
    factor *= attention_share(sum);
    UNROLL for (int i = 0; i < HEAD / 32; i++)
        if (lane + 32 * i < p->DV)
            p->o[(lane + 32 * i) * p->o_col] = factor == 0.0f ? 0.0f : acc[i] * factor;
    return logarithm_of(max, sum);
}
