/* cl/tile/fma_operand.h - operands of multiply-adds: their tiles in local memory, loads and products
 *
 * A tile of an operand is rows of 16-byte vectors, K-major or MN-major as it lies in device memory.  A warp
 * has 4 x 8 work-items; each has blocks of 4 x 4 elements of C, interleaved with those of the others:
 *
 *      0  1  2  3  4  5  6  7      row BLOCK_AT(i, 16), column BLOCK_AT(j, 32) from the
 *      8  9 10 11 12 13 14 15      work-item's first one (store_blocks.h)
 *     16 17 ...
 *
 * Of a K-major operand, vector v of row r is stored at v ^ r / 4, so that the vectors of rows that are four
 * apart lie in different banks.
 *
 * Takes  ITEM VEC; BLK_M BLK_N BLK_K, the tile of a work-group; THR_M THR_N, that of a work-item; PARTS_K: so
 *        many work-items share its sums, each with its part of every slice
 * Gives  swizzle(), FMA_TILE FMA_ROW FMA_COLUMN fma_at() LOAD_K() MULTIPLY_K()
 */
#define FMA_TILE    (BLK_M / THR_M * (BLK_N / THR_N))           /* work-items that share a tile */
#define FMA_WARPS_N (BLK_N / THR_N / 8)

#if TYPE != TYPE_F32 || THR_M % 4 || THR_N % 4 || BLK_N / THR_N % 8 || FMA_TILE % 32 || \
    BLK_K % (4 * PARTS_K)
#error "a work-item's tile is made of 4 x 4 blocks of f32, a warp of 4 x 8 work-items"
#endif

/* The work-item's first row and column in the tile. */
#define FMA_ROW    ((int)(ITEM % FMA_TILE / 32 / FMA_WARPS_N * (4 * THR_M) + ITEM % 32 / 8 * 4))
#define FMA_COLUMN ((int)(ITEM / 32 % FMA_WARPS_N * (8 * THR_N) + ITEM % 8 * 4))

/* vecs: how many vectors a row has. */
DEVICE unsigned int swizzle(int mn_major, int vecs, unsigned int row)
{
    return mn_major ? 0 : row >> 2 & (vecs < 8 ? vecs - 1 : 7);
}

/* The byte of a tile at which 4 elements of the work-item begin.  Of a K-major operand they are elements k to
 * k + 3 of row (column) `first` + x, with k a multiple of 4; of an MN-major one element k of the rows
 * (columns) `first` + x to `first` + x + 3.  first: FMA_ROW or FMA_COLUMN; x: BLOCK_AT(). */
DEVICE unsigned int fma_at(int mn_major, int vecs, int first, int x, int k)
{
    const unsigned int row = mn_major ? k : first + x, vector = (mn_major ? first + x : k) / VEC;

    return (row * vecs + (vector ^ swizzle(mn_major, vecs, row))) * 16;
}

/* Of four k's of an operand, from k on, to x[4][width] or x[width][4]: a K-major one's before the first of
 * them, an MN-major one's k + h.  FMA_OF() finds an element. */
#define FMA_OF(mn_major, width, i, h) ((mn_major) ? (h) * (width) + (i) : (i) * 4 + (h))
#define LOAD_K(x, mn_major, vecs, width, tile, first, k, h, apart)                                          \
    do {                                                                                                    \
        if (mn_major) {                                                                                     \
            UNROLL for (int i_ = 0; i_ < (width); i_ += 4)                                                  \
                LOAD_F32X4((x) + (h) * (width) + i_,                                                        \
                           (tile) + fma_at(1, vecs, first, BLOCK_AT(i_, apart), (k) + (h)));                \
        } else if ((h) == 0) {                                                                              \
            UNROLL for (int i_ = 0; i_ < (width); i_++)                                                     \
                LOAD_F32X4((x) + i_ * 4, (tile) + fma_at(0, vecs, first, BLOCK_AT(i_, apart), k));          \
        }                                                                                                   \
    } while (0)

/* d[THR_M][THR_N] += a b of k + h. */
#define MULTIPLY_K(d, a, major_a, b, major_b, h)                                                            \
    UNROLL for (int i_ = 0; i_ < THR_M; i_++)                                                               \
    UNROLL for (int j_ = 0; j_ < THR_N; j_++)                                                               \
        d[i_][j_] = FMA((a)[FMA_OF(major_a, THR_M, i_, h)], (b)[FMA_OF(major_b, THR_N, j_, h)], d[i_][j_])
