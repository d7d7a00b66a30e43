/* cl/tile/fragment.h - operands of mma.sync: their tiles in local memory, loads and products by a warp
 *
 * A tile of an operand is rows of 16-byte vectors, K-major or MN-major as it lies in device memory:
 *
 *     row 0   | 0 1 2 3 4 5 6 7 |
 *     row 1   | 1 0 3 2 5 4 7 6 |    vector v of row r is stored at v ^ swizzle(r), so that what a warp
 *     row 2   | 2 3 0 1 6 7 4 5 |    loads at a time lies in different banks
 *       ...
 *
 * A warp multiplies blocks of 8 rows of A by blocks of 8 columns of B.  Lane (g, t) = (lane / 4, lane % 4)
 * holds row (column) g of each block, at k = t, t + 4 ... (16-bit types: pairs of k); and of the
 * accumulators row g, columns 2 t and 2 t + 1.
 *
 * Takes  BLK_M BLK_N, the tile of a work-group; WARP_M WARP_N, that of a warp; PARTS_K, where not 1: sets of
 *        warps that multiply the same tile, each a part of every slice of K; the instruction's MMA_M MMA_K:
 *        16 16 for 16-bit types, 16 8 for tf32, 16 16 for f32 in three bf16 parts, for f64 8 4 or, on sm_90
 *        and up, 16 4, 16 8, 16 16
 * Gives  ITEMS ITEM WARPS_M WARPS_N SET_ITEMS BLOCKS_M BLOCKS_N VEC STEP_K FRAGMENT FRAGMENT_REGS
 *        FRAGMENT_PARTS R_BYTES BLOCKS_LOADED(), swizzle() fragment_start() part_start() LOAD_FRAGMENT()
 *        ROUND_FRAGMENT() MULTIPLY_BLOCK()
 *
 * Source: the PTX ISA manual, "Matrix fragments for mma"; swizzles as in NVIDIA's CUTLASS for Ampere.
 */
#define WARPS_M       (BLK_M / WARP_M)
#define WARPS_N       (BLK_N / WARP_N)
#ifndef PARTS_K
#define PARTS_K       1
#endif
#define SET_ITEMS     (32 * WARPS_M * WARPS_N)
#define ITEMS         (SET_ITEMS * PARTS_K)
#define ITEM          ((unsigned int)LOCAL_ID())        /* unsigned: to divide by 2^n is a shift */
#define BLOCKS_M      (WARP_M / 8)
#define BLOCKS_N      (WARP_N / 8)
#define VEC           (16 / T_BYTES)            /* elements of a vector */
#define R_BYTES       (T_BYTES < 4 ? 4 : T_BYTES)       /* of an accumulator */
#define FRAGMENT_PARTS (TYPE == TYPE_F32 && MMA_K == 16 ? 3 : 1)        /* of an element */
#if TYPE == TYPE_F64
#define FRAGMENT      double
#define FRAGMENT_REGS (MMA_K == 16 ? 4 : 2)     /* of a block, for a step of k */
#define STEP_K        (4 * FRAGMENT_REGS)
#elif TYPE == TYPE_F32
#define FRAGMENT      UINT32
#define FRAGMENT_REGS (2 * FRAGMENT_PARTS)      /* part by part */
#define STEP_K        (FRAGMENT_PARTS > 1 ? 16 : 8)
#else
#define FRAGMENT      UINT32
#define FRAGMENT_REGS 2
#define STEP_K        16
#endif

#if TYPE == TYPE_F64 ? MMA_M * MMA_K % 32 || (MMA_M == 8 && MMA_K > 4) : MMA_M != 16 || MMA_K != STEP_K
#error "there is no such instruction"
#endif

/* ldmatrix moves 16 bits at a time when it transposes. */
#define HAS_LDMATRIX(mn_major)  (T_BYTES == 2 || (TYPE == TYPE_F32 && !(mn_major)))
#define BLOCKS_LOADED(mn_major) (HAS_LDMATRIX(mn_major) ? 2 : 1)        /* by one load */

/* ---- local memory ----------------------------------------------------------------------------- */

/* vecs: how many vectors a row has. */
DEVICE unsigned int swizzle(int mn_major, int vecs, unsigned int row)
{
    if (!HAS_LDMATRIX(mn_major))
        return (row & 3) << 1;                  /* a load: 32 bytes each of 4 rows */
    return vecs >= 8 ? row & 7 : vecs == 4 ? row >> 1 & 3 : row >> 2 & 1;       /* 16 bytes each of 8 */
}

/* `count` vectors further in the same row; count is constant.  Only the low bits are swizzled. */
#define FURTHER(at, count) (((at) ^ ((count) & 7) << 4) + ((count) & ~7) * 16)

/* The byte in a tile at which this lane's loads begin; `first` is the warp's first row (column).  Of the
 * matrices of ldmatrix, the second is 8 rows on, the third along k (A), or the other way round (B).      */
DEVICE unsigned int fragment_start(int mn_major, int vecs, unsigned int first, int is_b)
{
    const unsigned int lane = ITEM % 32, g = lane / 4, t = lane % 4;
    const unsigned int x = is_b ? lane / 16 : lane / 8 % 2, k = is_b ? lane / 8 % 2 : lane / 16;
    unsigned int row, column;

    if (HAS_LDMATRIX(mn_major)) {
        row    = mn_major ? k * 8 + lane % 8 : first + x * 8 + lane % 8;
        column = mn_major ? first + x * 8 : k * VEC;
    } else {
        row    = mn_major ? t : first + g;
        column = mn_major ? first + g : t;
    }
    return (row * vecs + (column / VEC ^ swizzle(mn_major, vecs, row))) * 16 + column % VEC * T_BYTES;
}

/* ... and at which its load of a block and of a k does, both constant. */
DEVICE unsigned int fragment_at(int mn_major, int vecs, unsigned int start, int block, int k)
{
    return FURTHER(start, (mn_major ? block * 8 : k) / VEC) + (mn_major ? k : block * 8) * vecs * 16;
}

/* fragment_start() of a set of warps, in its part of a slice. */
DEVICE unsigned int part_start(int mn_major, int vecs, unsigned int first, int is_b)
{
    const unsigned int start = fragment_start(mn_major, vecs, first, is_b);

    return PARTS_K > 1 ? fragment_at(mn_major, vecs, start, 0, (int)(ITEM / SET_ITEMS) * (BLK_K / PARTS_K))
                       : start;
}

/* Load u of an operand's blocks, for one step of k, to x[blocks][FRAGMENT_REGS]. */
#define LOAD_ELEMENTS(load, x, mn_major, vecs, start, u, step)                                          \
    UNROLL for (int h = 0; h < FRAGMENT_REGS; h++)                                                      \
        load(x[u][h], fragment_at(mn_major, vecs, start, u, (step) * STEP_K + 4 * h))
#define LOAD_MATRICES(how, x, mn_major, vecs, start, u, step, is_b)                                     \
    LOAD_TILES(how, x[2 * (u)][0], x[2 * (u) + !is_b][is_b], x[2 * (u) + is_b][!is_b], x[2 * (u) + 1][1], \
               fragment_at(mn_major, vecs, start, 2 * (u), (step) * STEP_K))
#if TYPE == TYPE_F64
#define LOAD_FRAGMENT(x, mn_major, vecs, start, u, step, is_b)                                          \
    LOAD_ELEMENTS(LOAD_F64, x, mn_major, vecs, start, u, step)
#else
#define LOAD_FRAGMENT(x, mn_major, vecs, start, u, step, is_b)                                          \
    do {                                                                                                \
        if (!HAS_LDMATRIX(mn_major))                                                                    \
            LOAD_ELEMENTS(LOAD_B32, x, mn_major, vecs, start, u, step);                                 \
        else if (mn_major)                                                                              \
            LOAD_MATRICES(".trans", x, mn_major, vecs, start, u, step, is_b);                           \
        else                                                                                            \
            LOAD_MATRICES("", x, mn_major, vecs, start, u, step, is_b);                                 \
    } while (0)
#endif

/* ---- registers ------------------------------------------------------------------------------------ */

/* Blocks [from, to) as the instruction takes them: f32 rounded to tf32. */
#if TYPE == TYPE_F32 && FRAGMENT_PARTS == 1
#define ROUND_FRAGMENT(x, from, to)                                                                     \
    UNROLL for (int i = from; i < to; i++)                                                              \
    UNROLL for (int h = 0; h < FRAGMENT_REGS; h++)                                                      \
        x[i][h] = tf32_bits(x[i][h])
#else
#define ROUND_FRAGMENT(x, from, to) do { } while (0)
#endif

/* d[i][j] += a[i] b[j] of one step of k, for all blocks i below `rows`. */
#if TYPE == TYPE_F64 && MMA_M == 8
#define MULTIPLY_BLOCK(d, a, b, j, rows)                                                                \
    UNROLL for (int h = 0; h < FRAGMENT_REGS; h++)                                                      \
    UNROLL for (int i = 0; i < BLOCKS_M; i++)                                                           \
        if (i < (rows)) MMA_F64_8x8x4(d[i][j], a[i][h], b[j][h])
#elif TYPE == TYPE_F64 && MMA_K == 4
#define MULTIPLY_BLOCK(d, a, b, j, rows)                                                                \
    UNROLL for (int h = 0; h < FRAGMENT_REGS; h++)                                                      \
    UNROLL for (int i = 0; i < BLOCKS_M; i += 2)                                                        \
        if (i < (rows)) MMA_F64_16x8x4(d[i][j], d[i + 1][j], a[i][h], a[i + 1][h], b[j][h])
#elif TYPE == TYPE_F64 && MMA_K == 8
#define MULTIPLY_BLOCK(d, a, b, j, rows)                                                                \
    UNROLL for (int i = 0; i < BLOCKS_M; i += 2)                                                        \
        if (i < (rows)) MMA_F64_16x8x8(d[i][j], d[i + 1][j], a[i], a[i + 1], b[j])
#elif TYPE == TYPE_F64
#define MULTIPLY_BLOCK(d, a, b, j, rows)                                                                \
    UNROLL for (int i = 0; i < BLOCKS_M; i += 2)                                                        \
        if (i < (rows)) MMA_F64_16x8x16(d[i][j], d[i + 1][j], a[i], a[i + 1], b[j])
#elif FRAGMENT_PARTS > 1
/* Of the nine products of parts the six larger ones, the small ones first, from zero: the instruction
 * truncates when it accumulates (cl/gemm/bf16x3.cl). */
#define MULTIPLY_BLOCK(d, a, b, j, rows)                                                                \
    do {                                                                                                \
        R of_parts[BLOCKS_M][2];                                                                        \
                                                                                                        \
        UNROLL for (int i = 0; i < BLOCKS_M; i++)                                                       \
            of_parts[i][0] = of_parts[i][1] = ZERO;                                                     \
        MULTIPLY_PARTS(of_parts, a, b[j], 1, 1, rows);                                                  \
        MULTIPLY_PARTS(of_parts, a, b[j], 0, 2, rows);                                                  \
        MULTIPLY_PARTS(of_parts, a, b[j], 2, 0, rows);                                                  \
        MULTIPLY_PARTS(of_parts, a, b[j], 0, 1, rows);                                                  \
        MULTIPLY_PARTS(of_parts, a, b[j], 1, 0, rows);                                                  \
        MULTIPLY_PARTS(of_parts, a, b[j], 0, 0, rows);                                                  \
        UNROLL for (int i = 0; i < BLOCKS_M; i++)                                                       \
        UNROLL for (int e = 0; e < 2; e++)                                                              \
            d[i][j][e] = d[i][j][e] + of_parts[i][e];                                                   \
    } while (0)
#define MULTIPLY_PARTS(sum, a, b, of_a, of_b, rows)                                                     \
    UNROLL for (int i = 0; i < BLOCKS_M; i += 2)                                                        \
        if (i < (rows)) MMA_BF16(sum[i], sum[i + 1], a[i] + 2 * (of_a), a[i + 1] + 2 * (of_a), b + 2 * (of_b))
#else
#define MULTIPLY_BLOCK(d, a, b, j, rows)                                                                \
    UNROLL for (int i = 0; i < BLOCKS_M; i += 2)                                                        \
        if (i < (rows)) MMA_F32(d[i][j], d[i + 1][j], a[i], a[i + 1], b[j])
#endif
