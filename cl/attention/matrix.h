/* cl/attention/matrix.h - tiles of queries, and blocks of keys and values, for engines of AMD and Intel
 *
 * All are 16-byte vectors of a head's rows, HEAD elements in local memory, of which those that a tensor has
 * not are zeros.  In local memory a tile lies in slices of BLK_K along K, as the engine's atoms have them:
 * queries as operand B; keys as operand A; values transposed as operand A, a row for each element.
 *
 * Keys and the values' elements are stored in the order matrix_place(), keys of values in the order
 * matrix_slot() (atoms' chained.h): then a lane has, of one query, scores of consecutive keys and sums of
 * consecutive elements.
 *
 * Takes  FORM HEAD BLK_N BLK_K WAVES COLUMNS LANES SPLIT_V; matrix.h, chained.h of the atoms; pair_of();
 *        LOWEST INFINITE; struct sight, sight_*() of attention.h
 * Gives  GENERAL BLK_M ITEMS KEY_BLOCKS SUM_BLOCKS LANE_ROW() SLICE_AT() tile_offset() struct rows, rows_*()
 *        keys_*() values_*() block_hides() struct mask, scores_*() sums_vector()
 */
#define GENERAL     (FORM > 1)                  /* a mask, a softcap, any scale */
#define BLK_M       (WAVES / SPLIT_V * COLUMNS * MATRIX_N)
#define ITEMS       (WAVES * LANES)
#define KEY_BLOCKS  (BLK_N / MATRIX_M)          /* of a wave's scores */
#define SUM_BLOCKS  (HEAD / SPLIT_V / MATRIX_M) /* of its sums */
#define ROW_VECTORS (HEAD / 8)
#define EACH_K      (BLK_N * ROW_VECTORS / ITEMS)       /* vectors of a block that a work-item loads */
#define EACH_V      (BLK_N * ROW_VECTORS / 4 / ITEMS)   /* and those of four keys */

#if LANES != MATRIX_LANES
#error "LANES is not what the engine has"
#endif
#if WAVES % SPLIT_V || HEAD % (SPLIT_V * 32) || HEAD % BLK_K || BLK_N % BLK_K || BLK_N % MATRIX_M
#error "waves, elements and keys must be shared evenly"
#endif
#if ITEMS % ROW_VECTORS || EACH_V * 4 * ITEMS != BLK_N * ROW_VECTORS
#error "the work-items must share a block evenly"
#endif

/* The first of the rows, of a block of C, that a lane has accumulators of. */
#define LANE_ROW(lane) ((lane) / MATRIX_N * MATRIX_ACCUMULATORS)

/* Where a tile of `width` rows (columns) has its slice of element k, and in it row x from k on. */
#define SLICE_AT(k, width) ((k) / BLK_K * ((width) * BLK_K))

DEVICE int tile_offset(int x, int k, const int width)
{
    return SLICE_AT(k, width) + matrix_offset(x, k % BLK_K, width);
}

/* Of a head: `count` rows of `size` elements. */
struct rows { GLOBAL const T *g; INDEX step; int count, size; };

/* Eight elements of a row, from element k on. */
DEVICE uint4 rows_vector(const struct rows *r, int row, int k)
{
    const int there = row < r->count && k < r->size;
    uint4 v = VLOAD_ALIGNED(uint4, r->g + (there ? row * r->step + k : 0));

    v.x = there ? v.x : 0;
    v.y = there ? v.y : 0;
    v.z = there ? v.z : 0;
    v.w = there ? v.w : 0;
    return v;
}

/* BLK_M queries from row m0 on, to local memory. */
DEVICE void rows_to_tile(LOCAL T *to, const struct rows *q, int m0)
{
    NO_UNROLL for (int at = LOCAL_ID(); at < BLK_M * ROW_VECTORS; at += ITEMS) {
        const int row = at / ROW_VECTORS, k = at % ROW_VECTORS * 8;

        *(LOCAL uint4 *)(to + tile_offset(row, k, BLK_M)) = rows_vector(q, m0 + row, k);
    }
}

/* A work-item loads the same elements of all of its rows. */
#define ITEM_ROW    ((int)((unsigned int)LOCAL_ID() / ROW_VECTORS))
#define ITEM_VECTOR ((int)((unsigned int)LOCAL_ID() % ROW_VECTORS))
#define ITEM_ROWS   (ITEMS / ROW_VECTORS)

/* A block of keys from n0 on, to registers, and from there to local memory. */
DEVICE void keys_load(uint4 *r, const struct rows *keys, int n0)
{
    UNROLL for (int i = 0; i < EACH_K; i++)
        r[i] = rows_vector(keys, n0 + ITEM_ROW + i * ITEM_ROWS, ITEM_VECTOR * 8);
}

DEVICE void keys_store(LOCAL T *to, const uint4 *r)
{
    UNROLL for (int i = 0; i < EACH_K; i++) {
        const int row = matrix_place(ITEM_ROW + i * ITEM_ROWS);

        *(LOCAL uint4 *)(to + tile_offset(row, ITEM_VECTOR * 8, BLK_N)) = r[i];
    }
}

/* ... of values: eight elements of four keys at a time, which are transposed in registers. */
DEVICE void values_load(uint4 *r, const struct rows *values, int n0)
{
    UNROLL for (int i = 0; i < EACH_V; i++)
    UNROLL for (int j = 0; j < 4; j++)
        r[4 * i + j] = rows_vector(values, n0 + 4 * (ITEM_ROW + i * ITEM_ROWS) + j, ITEM_VECTOR * 8);
}

/* Elements e and e + 1, together in a word, of four keys that begin at slot k. */
DEVICE void values_store_pair(LOCAL T *to, int e, int k, UINT32 a, UINT32 b, UINT32 c, UINT32 d)
{
    uint2 even, odd;

    even.x = (a & 0xffffu) | b << 16;
    even.y = (c & 0xffffu) | d << 16;
    odd.x = a >> 16 | (b & 0xffff0000u);
    odd.y = c >> 16 | (d & 0xffff0000u);
    *(LOCAL uint2 *)(to + tile_offset(matrix_place(e), k, HEAD)) = even;
    *(LOCAL uint2 *)(to + tile_offset(matrix_place(e + 1), k, HEAD)) = odd;
}

DEVICE void values_store(LOCAL T *to, const uint4 *r)
{
    UNROLL for (int i = 0; i < EACH_V; i++) {
        const int e = ITEM_VECTOR * 8, k = matrix_slot(4 * (ITEM_ROW + i * ITEM_ROWS));
        const uint4 a = r[4 * i], b = r[4 * i + 1], c = r[4 * i + 2], d = r[4 * i + 3];

        values_store_pair(to, e, k, a.x, b.x, c.x, d.x);
        values_store_pair(to, e + 2, k, a.y, b.y, c.y, d.y);
        values_store_pair(to, e + 4, k, a.z, b.z, c.z, d.z);
        values_store_pair(to, e + 6, k, a.w, b.w, c.w, d.w);
    }
}

/* ---- scores of a lane, of one query ------------------------------------------------------ */

/* Whether a block of keys from n0 on hides any from the wave's queries from m0 on. */
DEVICE int block_hides(const struct sight *sight, int m0, int n0)
{
    return n0 + BLK_N > sight_end(sight, m0) || n0 < sight_begin(sight, m0 + COLUMNS * MATRIX_N - 1);
}

/* m, n: query and key of the lane's first score. */
DEVICE void scores_hide(matrix_accumulators *s, const struct sight *sight, int m, int n)
{
    const int begin = sight_begin(sight, m), end = sight_end(sight, m);
    const unsigned int seen = end > begin ? end - begin : 0, first = (unsigned int)(n - begin);

    UNROLL for (int i = 0; i < KEY_BLOCKS; i++)
    UNROLL for (int e = 0; e < MATRIX_ACCUMULATORS; e++)
        s[i][e] = first + (i * MATRIX_M + e) < seen ? s[i][e] : -INFINITE;
}

DEVICE void scores_cap(matrix_accumulators *s, float softcap)
{
    UNROLL for (int i = 0; i < KEY_BLOCKS; i++)
    UNROLL for (int e = 0; e < MATRIX_ACCUMULATORS; e++)
        s[i][e] = capped(s[i][e], softcap);
}

/* The mask of a head.  For keys and queries that there are not, that of the last is added: their scores
 * are hidden, or are nobody's. */
struct mask { GLOBAL const T *g; INDEX row, column; int queries, keys; };

DEVICE void scores_mask(matrix_accumulators *s, const struct mask *mask, int m, int n)
{
    GLOBAL const T *const g = mask->g + (m < mask->queries ? m : mask->queries - 1) * mask->row;

    UNROLL for (int i = 0; i < KEY_BLOCKS; i++)
    UNROLL for (int e = 0; e < MATRIX_ACCUMULATORS; e++) {
        const int key = n + i * MATRIX_M + e;

        s[i][e] = s[i][e] + LOAD(g, (key < mask->keys ? key : mask->keys - 1) * mask->column);
    }
}

DEVICE float scores_max(const matrix_accumulators *s, float top)
{
    UNROLL for (int i = 0; i < KEY_BLOCKS; i++)
    UNROLL for (int e = 0; e < MATRIX_ACCUMULATORS; e++)
        top = MAX(top, s[i][e]);
    return top;
}

/* The exponent of a weight: as in cl/attention/online.h, where EXACT_WEIGHTS is GENERAL. */
#define EXPONENT(s, m, factor) (GENERAL ? ((s) - (m)) * (factor) : FMA(s, factor, -(m)))

/* Scores become weights, 2^(s factor - m), where m is the largest s factor; 0 as long as that is -infinity.
 * Gives what older sums are to be multiplied by.                                                         */
DEVICE float scores_weigh(matrix_accumulators *s, float *max, float *sum, float top, float factor)
{
    const float m = top == -INFINITE ? 0.0f : GENERAL ? top : top * factor;
    const float rescale = NATIVE_EXP2(GENERAL ? (*max - m) * factor : *max * factor - m);
    float even = 0.0f, odd = 0.0f;

    UNROLL for (int i = 0; i < KEY_BLOCKS; i++)
    UNROLL for (int e = 0; e < MATRIX_ACCUMULATORS; e += 2) {
        s[i][e] = NATIVE_EXP2(EXPONENT(s[i][e], m, factor));
        s[i][e + 1] = NATIVE_EXP2(EXPONENT(s[i][e + 1], m, factor));
        even = even + s[i][e];
        odd = odd + s[i][e + 1];
    }
    *max = top;
    *sum = FMA(*sum, rescale, even + odd);
    return rescale;
}

/* What weights relative to m are to be multiplied by, so that they are relative to max factor. */
DEVICE float scores_correction(float max, float factor)
{
    return GENERAL || max == -INFINITE ? 1.0f : NATIVE_EXP2(FMA(-max, factor, max * factor));
}

/* Eight sums, from i on, times their share, 0 where no key is seen, since a value may have been NaN. */
DEVICE uint4 sums_vector(matrix_accumulators d, const int i, float share)
{
    uint4 v;

    UNROLL for (int e = i; e < i + 8; e++)
        d[e] = share == 0.0f ? 0.0f : d[e] * share;
    v.x = pair_of(d[i], d[i + 1]);
    v.y = pair_of(d[i + 2], d[i + 3]);
    v.z = pair_of(d[i + 4], d[i + 5]);
    v.w = pair_of(d[i + 6], d[i + 7]);
    return v;
}
