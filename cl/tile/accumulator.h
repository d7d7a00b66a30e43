/* cl/tile/accumulator.h - where the accumulators of wgmma and mma are in a tile, and what is done to its rows
 *
 * A warp has 16 rows.  A lane has pairs of columns, 8 apart, of a row and of the row 8 below:
 *
 *     column     0 1  2 3  4 5  6 7   8 9
 *     row g      0 1  0 1  0 1  0 1   4 5       lane 4 g + c has the columns 2 c and 2 c + 1, and so on;
 *     row g + 8  2 3  2 3  2 3  2 3   6 7       four lanes, a quad, have a row
 *
 * Takes: atoms/nvidia/warp.h, memory.h.
 * Gives: ACC_BELOW, ACC_ROW, ACC_COL, ACC_LARGEST, acc_*().
 */

/* Of accumulator i: 0 if it is of the lane's first row, 1 of the one below; its row and column from those
 * of i = 0. */
#define ACC_BELOW(i) ((i) / 2 % 2)
#define ACC_ROW(i)   (ACC_BELOW(i) * 8)
#define ACC_COL(i)   ((i) / 4 * 8 + (i) % 2)

/* Row and column of the lane's first accumulator. */
DEVICE int acc_first_row(int warp, int lane)
{
    return warp * 16 + lane / 4;
}

DEVICE int acc_first_col(int lane)
{
    return lane % 4 * 2;
}

/* The sum, or the maximum, over a quad. */
DEVICE float acc_quad_sum(float x)
{
    x = x + from_lane_xor(x, 1);
    return x + from_lane_xor(x, 2);
}

DEVICE float acc_quad_max(float x)
{
    x = MAX(x, from_lane_xor(x, 1));
    return MAX(x, from_lane_xor(x, 2));
}

/* The sum, or the maximum, of a row of `count` accumulators of each lane, below 0 or 1; all lanes of the
 * quad get it. */
DEVICE float acc_row_sum(const float *d, const int count, const int below)
{
    float x = d[2 * below], y = d[2 * below + 1];

    UNROLL for (int i = 4; i < count; i += 4) {
        x = x + d[i + 2 * below];
        y = y + d[i + 2 * below + 1];
    }
    return acc_quad_sum(x + y);
}

DEVICE float acc_row_max(const float *d, const int count, const int below)
{
    float x = d[2 * below], y = d[2 * below + 1];

    UNROLL for (int i = 4; i < count; i += 4) {
        x = MAX(x, d[i + 2 * below]);
        y = MAX(y, d[i + 2 * below + 1]);
    }
    return acc_quad_max(MAX(x, y));
}

DEVICE void acc_scale_row(float *d, const int count, const int below, float x)
{
    UNROLL for (int i = 2 * below; i < count; i += 4) {
        d[i] *= x;
        d[i + 1] *= x;
    }
}

DEVICE void acc_clear_row(float *d, const int count, const int below)
{
    UNROLL for (int i = 2 * below; i < count; i += 4)
        d[i] = d[i + 1] = 0.0f;
}

#define ACC_LARGEST 3.40282347e38f

DEVICE int acc_finite(const float *d, const int count)
{
    int finite = 1;

    UNROLL for (int i = 0; i < count; i++)
        finite &= ABS(d[i]) <= ACC_LARGEST;
    return finite;
}

#if T_BYTES == 2
/* Columns 16 k to 16 k + 15 as an A operand in registers, of the type. */
DEVICE void acc_to_fragment(UINT32 a[4], const float *d, const int k)
{
    UNROLL for (int i = 0; i < 4; i++)
        a[i] = pair_of(d[8 * k + 2 * i], d[8 * k + 2 * i + 1]);
}
#endif
