/* cl/atoms/amd/chained.h - accumulators of one product as operand B of the next, on AMD's matrix engines
 *
 * A lane has accumulators of one column of C, and operand B of the next product wants elements of that very
 * column, along K.  So they stay in the lane; the rows of A are stored in such an order, matrix_place(), that
 * a lane's accumulators are those of consecutive rows,
 *
 *     row  lane / MATRIX_M * MATRIX_ACCUMULATORS + i  of accumulator i,
 *
 * and the operand A of the next product has its elements along K in the order matrix_slot(), in which lanes
 * hold them.
 *
 *     ENGINE     a block's accumulators, one column              as operand B
 *     908, 90    of 32 rows, 16 in each of lanes l and l + 32    two fragments of 8 elements in each lane
 *     11         of 16 rows,  8 in each of lanes l and l + 16    one of 16 in both: lanes exchange
 *     12         of 16 rows,  8 in each of lanes l and l + 16    one of 8 in each lane
 *
 * Takes  matrix.h; pair_of() (cl/tile/pair.h)
 * Gives  MATRIX_KERNEL_ROOM() matrix_place() matrix_slot() matrix_block_a() MATRIX_OPERAND() MATRIX_OTHER()
 *        MATRIX_COLUMN_MAX() MATRIX_COLUMN_SUM()
 */
/* A kernel of whose waves each SIMD unit has registers for n. */
#define MATRIX_KERNEL_ROOM(items, n) MATRIX_KERNEL(items) __attribute__((amdgpu_waves_per_eu(n)))

#if ENGINE == 908 || ENGINE == 90
/* Rows 16 h + 4 a + b, of lanes from 32 h on, lie at 8 a + 4 h + b (matrix_row()). */
DEVICE int matrix_place(int x)
{
    return (x & ~28) | (x & 12) << 1 | (x & 16) >> 2;
}

/* Elements 16 h + 8 j + i are those of lanes from 32 h on in fragment j. */
DEVICE int matrix_slot(int k)
{
    return (k & ~24) | (k & 8) << 1 | (k & 16) >> 1;
}

/* What the lane with the other rows of the same column has, of 32 bits. */
#define MATRIX_OTHER(u, lane) ((UINT32)__builtin_amdgcn_ds_bpermute(((lane) ^ 32) * 4, (int)(u)))
#else
#if ENGINE == 11
DEVICE int matrix_place(int x) { return (x & ~15) | (x & 7) << 1 | (x & 8) >> 3; }
#else
DEVICE int matrix_place(int x) { return x; }
#endif
DEVICE int matrix_slot(int k) { return k; }

#define MATRIX_OTHER(u, lane) \
    ((UINT32)__builtin_amdgcn_permlanex16((int)(u), (int)(u), 0x76543210, 0xfedcba98, 0, 0))
#endif

/* matrix_load() of rows that begin at x, a constant and a multiple of MATRIX_M.  The offset is a constant
 * plus one of MATRIX_VECTORS values of the lane, which registers hold, since the swizzle of x + i is the
 * exclusive or of those of x and i.                                                                     */
#define MATRIX_SWIZZLE(x) (((x) * MATRIX_VECTORS / 8 ^ (x) * MATRIX_VECTORS / 32) & (MATRIX_VECTORS - 1))

DEVICE uint4 matrix_vector(LOCAL const T *s, const int x, const int vector, int lane)
{
    const int i = lane % MATRIX_M, mine = i * BLK_K + (vector ^ MATRIX_SWIZZLE(i)) * MATRIX_VECTOR;

    return *(LOCAL const uint4 *)(s + mine + x * BLK_K);
}

#if ENGINE == 11
DEVICE matrix_fragment matrix_block(LOCAL const T *s, const int x, const int k, int lane)
{
    const int vector = k / MATRIX_VECTOR ^ MATRIX_SWIZZLE(x);

    return (matrix_fragment)(matrix_vector(s, x, vector, lane), matrix_vector(s, x, vector ^ 1, lane));
}
#else
DEVICE matrix_fragment matrix_block(LOCAL const T *s, const int x, const int k, int lane)
{
    return matrix_vector(s, x, (k / MATRIX_VECTOR ^ MATRIX_SWIZZLE(x)) ^ lane / MATRIX_M, lane);
}
#endif
#define matrix_block_a(s, width, x, k, lane) matrix_block(s, x, k, lane)

DEVICE uint4 matrix_pairs(matrix_accumulators s, const int i)
{
    return (uint4)(pair_of(s[i], s[i + 1]), pair_of(s[i + 2], s[i + 3]), pair_of(s[i + 4], s[i + 5]),
                   pair_of(s[i + 6], s[i + 7]));
}

/* b: fragment f of operand B, of the accumulators s of blocks of rows in one column. */
#if ENGINE == 908 || ENGINE == 90
#define MATRIX_OPERAND(b, s, f, lane) b = matrix_pairs((s)[(f) / 2], (f) % 2 * 8)
#elif ENGINE == 12
#define MATRIX_OPERAND(b, s, f, lane) b = matrix_pairs((s)[f], 0)
#else
#define MATRIX_OPERAND(b, s, f, lane)                                                       \
    do {                                                                                    \
        const uint4 own = matrix_pairs((s)[f], 0);                                          \
        uint4 other;                                                                        \
                                                                                            \
        other.x = MATRIX_OTHER(own.x, lane);                                                \
        other.y = MATRIX_OTHER(own.y, lane);                                                \
        other.z = MATRIX_OTHER(own.z, lane);                                                \
        other.w = MATRIX_OTHER(own.w, lane);                                                \
        b = (lane) < 16 ? (uint8)(own, other) : (uint8)(other, own);                        \
    } while (0)
#endif

/* Of what the two lanes of a column have. */
#define MATRIX_COLUMN_MAX(x, lane) x = MAX(x, BITS_FLOAT(MATRIX_OTHER(FLOAT_BITS(x), lane)))
#define MATRIX_COLUMN_SUM(x, lane) x = (x) + BITS_FLOAT(MATRIX_OTHER(FLOAT_BITS(x), lane))
