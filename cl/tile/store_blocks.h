/* cl/tile/store_blocks.h - accumulators in blocks of 4 x 4 to C, in vectors of 4 elements
 *
 * Takes  epilogue.h
 * Gives  BLOCK_AT(), blocks_are_aligned() store_blocks()
 */

/* d[i * columns + j] is of row m + BLOCK_AT(i, row_step) and column n + BLOCK_AT(j, column_step), and
 * finished.  Stores vectors of 4 elements along rows, or along columns, where C is contiguous and aligned in
 * that direction.  rows, columns and steps are constant. */
#define BLOCK_AT(i, step) ((i) / 4 * (step) + (i) % 4)

DEVICE int blocks_are_aligned(const struct output *o)
{
    return (UINT64)o->c % (4 * C_BYTES) == 0 && ((o->col == 1 && ((o->row | o->N) & 3) == 0) ||
                                                 (o->row == 1 && ((o->col | o->M) & 3) == 0));
}

DEVICE void store_blocks(const struct output *o, int m, int n, const R *d, const int rows, const int columns,
                         const int row_step, const int column_step)
{
    const int aligned = (UINT64)o->c % (4 * C_BYTES) == 0;

    if (aligned && o->col == 1 && ((o->row | o->N) & 3) == 0)
        UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < columns; j += 4) {
            const int to_m = m + BLOCK_AT(i, row_step), to_n = n + BLOCK_AT(j, column_step);
            const R *s = d + i * columns + j;
            const R x[4] = { s[0], s[1], s[2], s[3] };

            if (to_m < o->M && to_n < o->N)
                OF(STORE_ALIGNED, TYPE_C)(4, o->c + (to_m * o->row + to_n), VLOAD(4, x));
        }
    else if (aligned && o->row == 1 && ((o->col | o->M) & 3) == 0)
        UNROLL for (int j = 0; j < columns; j++)
        UNROLL for (int i = 0; i < rows; i += 4) {
            const int to_m = m + BLOCK_AT(i, row_step), to_n = n + BLOCK_AT(j, column_step);
            const R *s = d + i * columns + j;
            const R x[4] = { s[0], s[columns], s[2 * columns], s[3 * columns] };

            if (to_m < o->M && to_n < o->N)
                OF(STORE_ALIGNED, TYPE_C)(4, o->c + (to_m + to_n * o->col), VLOAD(4, x));
        }
    else
        UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < columns; j++) {
            const int to_m = m + BLOCK_AT(i, row_step), to_n = n + BLOCK_AT(j, column_step);

            if (to_m < o->M && to_n < o->N)
                STORE_C(o->c, to_m * o->row + to_n * o->col, d[i * columns + j]);
        }
}
