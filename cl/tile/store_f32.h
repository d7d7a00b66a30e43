/* cl/tile/store_f32.h - accumulators to f32 elements of any strides, in pairs or 16-byte vectors
 *
 * d holds the `count` accumulators of a work-item (cl/tile/accumulator.h).  A matrix begins at to[first]; its
 * rows and columns are `row` and `col` apart.
 *
 * Takes: atoms/nvidia/warp.h, memory.h; accumulator.h.
 * Gives: store_pair(), store_pairs(), store_pairs_across(), store_columns(); row_vector(), exchange_pairs(),
 *        store_rows().
 */

/* Whether two adjacent elements may be stored at once. */
DEVICE int store_in_pairs(GLOBAL const float *to, INDEX first, INDEX row, INDEX col)
{
    return col == 1 && (first | row) % 2 == 0 && (UINT64)to % 8 == 0;
}

/* Two adjacent elements of a row, of which `left` are in the matrix. */
DEVICE void store_pair(GLOBAL float *at, INDEX col, int in_pairs, int left, R x, R y)
{
    if (left > 1 && in_pairs) {
        STORE_F32_PAIR(at, x, y);
    } else if (left > 0) {
        at[0] = x;
        if (left > 1)
            at[col] = y;
    }
}

/* An M x N matrix; the item's rows are m and m8, its first column is n. */
DEVICE void store_pairs(GLOBAL float *to, INDEX first, INDEX row, INDEX col, const float *d,
                        const int count, int m, int m8, int n, int M, int N)
{
    const int in_pairs = store_in_pairs(to, first, row, col);

    UNROLL for (int i = 0; i < count; i += 2) {
        const int r = ACC_BELOW(i) ? m8 : m, c = n + ACC_COL(i);

        store_pair(to + (first + r * row + c * col), col, in_pairs, r < M ? N - c : 0, d[i], d[i + 1]);
    }
}

/* ... of which d is the transposed: the item's columns are n and the next one, its first row is m. */
DEVICE void store_pairs_across(GLOBAL float *to, INDEX first, INDEX row, INDEX col, const float *d,
                               const int count, int m, int n, int M, int N)
{
    const int in_pairs = store_in_pairs(to, first, row, col);

    UNROLL for (int i = 0; i < count; i += 4)
        UNROLL for (int j = 0; j < 2; j++) {
            const int r = m + ACC_COL(i + j);

            store_pair(to + (first + r * row + n * col), col, in_pairs, r < M ? N - n : 0, d[i + j],
                       d[i + j + 2]);
        }
}

/* A column-major M x N matrix whose columns begin at multiples of 16 bytes, M a multiple of 4.  Here rows
 * m to m + 3 of four quads, and m8 = m + 4, follow each other: they have 8 rows of two columns, each lane
 * gets 4 of a column, and two lanes store 32 bytes. */
DEVICE void store_columns(GLOBAL float *to, INDEX first, INDEX col, const float *d, const int count,
                          int m, int n, int lane, int M, int N)
{
    const int mine = lane / 4 % 4, row = m - mine + mine % 2 * 4;

    UNROLL for (int i = 0; i < count; i += 4) {
        const int c = n + ACC_COL(i) + mine / 2;
        unsigned int u[4] = { FLOAT_BITS(d[i]),     FLOAT_BITS(d[i + 2]),
                              FLOAT_BITS(d[i + 1]), FLOAT_BITS(d[i + 3]) };

        transpose4(u, 1, lane, 4);
        if (row < M && c < N)
            store16(to + (first + row + c * col), u, 1);
    }
}

/* ---- whole vectors of rows ----------------------------------------------------------------------- */

/* 16 columns of a row are four vectors, of which a quad has pairs: lanes 0 to 3 have these in two blocks of 8
 * columns, and store the vectors below, so that a quad stores 64 bytes.
 *
 *     lane      0 1 2 3  0 1 2 3
 *     columns   0 2 4 6  8 ...
 *     vector    --- ---  --- ---
 *     of lane    0   2    1   3
 */
DEVICE int row_vector(int lane)
{
    return lane % 2 * 2 + lane / 2 % 2;
}

/* From a lane's pairs of both blocks to its vector, and back: even lanes exchange the second pair for the
 * first one of the next lane.  As in transpose4(), both are read before one is chosen. */
DEVICE void exchange_pairs(unsigned int u[4], int lane)
{
    UNROLL for (int i = 0; i < 2; i++) {
        const unsigned int a = u[i], b = u[i + 2];
        const unsigned int there = FLOAT_BITS(from_lane_xor(BITS_FLOAT(lane % 2 ? a : b), 1));

        u[i]     = lane % 2 ? there : a;
        u[i + 2] = lane % 2 ? b : there;
    }
}

/* An M x N matrix whose rows begin at multiples of 16 bytes, N a multiple of 4; count is a multiple of 8. */
DEVICE void store_rows(GLOBAL float *to, INDEX row, const float *d, const int count, int m, int m8, int n0,
                       int lane, int M, int N)
{
    UNROLL for (int i = 0; i < count; i += 8)
        UNROLL for (int below = 0; below < 2; below++) {
            const int r = below ? m8 : m, c = n0 + ACC_COL(i) + row_vector(lane) * 4, j = i + 2 * below;
            unsigned int u[4] = { FLOAT_BITS(d[j]),     FLOAT_BITS(d[j + 1]),
                                  FLOAT_BITS(d[j + 4]), FLOAT_BITS(d[j + 5]) };

            exchange_pairs(u, lane);
            store16(to + ((r < M ? r : 0) * row + c), u, r < M && c < N);
        }
}
