/* cl/tile/store_across.h - accumulators to a C whose columns are contiguous, of 16-bit elements
 *
 * m and m8 are offsets of the item's rows in a column, of which a warp's 16 mostly follow each other.  Each
 * 8 x 8 block is transposed; a lane then has 8 rows of one column, two lanes 16:
 *
 *     lane 4 g + c    column g of block c / 2, of two; rows 0 to 7 of the warp's 16, or 8 to 15: c % 2
 *
 * Takes: store.h; atoms/nvidia/warp.h, memory.h.
 * Gives: store_tile_across().
 */
#if C_BYTES == 2
/* Rows that do not follow each other, or are none, one by one; at[i]: the offset of the i-th. */
DEVICE void store_rows_apart(const struct output *o, GLOBAL UINT16 *to, const unsigned int *u, const int *at)
{
    UNROLL for (int i = 0; i < 8; i++)
        if (at[i] < o->M)
            to[at[i]] = (UINT16)(u[i / 2] >> i % 2 * 16);
}

DEVICE void store_across(const struct output *o, const float *d, const int count, int m, int m8, int n0,
                         int lane)
{
    const int below = lane % 2, last = (int)from_lane((UINT32)m, 28), last8 = (int)from_lane((UINT32)m8, 28);
    const int top = (int)from_lane((UINT32)m, 0), top8 = (int)from_lane((UINT32)m8, 0);
    const int first = below ? top8 : top, end = below ? last8 : last;
    const int apart = any_in_warp(end >= o->M || end != first + 7);
    int at[8];

    UNROLL for (int i = 0; i < 8; i++)
        at[i] = first + i;
    if (apart)
        UNROLL for (int i = 0; i < 8; i++) {
            const int upper = (int)from_lane((UINT32)m, 4 * i), lower = (int)from_lane((UINT32)m8, 4 * i);

            at[i] = below ? lower : upper;
        }
    UNROLL for (int i = 0; i < count; i += 8) {
        const int n = n0 + ACC_COL(i) + lane % 4 / 2 * 8 + lane / 4;
        GLOBAL UINT16 *const to = (GLOBAL UINT16 *)o->c + n * o->col;
        unsigned int u[4];

        UNROLL for (int j = 0; j < 4; j++)
            u[j] = transpose8(C_PAIR_OF(d[i + 2 * j], d[i + 2 * j + 1]));
        transpose4(u, 1, lane, 1);
        if (apart) {
            if (n < o->N)
                store_rows_apart(o, to, u, at);
        } else if ((UINT64)(to + first) % 16 == 0) {
            store16(to + first, u, n < o->N);
        } else if (n < o->N) {
            if ((UINT64)(to + first) % 8 == 0) {
                UNROLL for (int j = 0; j < 2; j++)
                    *(GLOBAL UINT64 *)(to + first + 4 * j) = (UINT64)u[2 * j + 1] << 32 | u[2 * j];
            } else {
                store_rows_apart(o, to, u, at);
            }
        }
    }
}
#endif

DEVICE void store_tile_across(const struct output *o, float *d, const UINT32 *bias_row, const int count,
                              int m, int m8, int n0, int lane)
{
    finish_tile(o, d, bias_row, count, m, m8, n0, lane);
#if C_BYTES == 2
    if (o->col != 1) {
        store_across(o, d, count, m, m8, n0, lane);
        return;
    }
#endif
    store_finished(o, d, count, m, m8, n0, lane, 0);
}
