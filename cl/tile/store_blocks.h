/* cl/tile/store_blocks.h - accumulators in blocks of 4 x 4 to C, in vectors of 4 elements
 *
 * Takes  result.h
 * Gives  BLOCK_AT(), store_blocks()
 */

/* d[i * columns + j] is of row m + BLOCK_AT(i, row_step) and column n + BLOCK_AT(j, column_step).  Stores
 * vectors of 4 elements along rows, or along columns, and returns 1, if C is plain, and contiguous and
 * aligned in that direction; else returns 0.  rows, columns and steps are constant. */
#define BLOCK_AT(i, step) ((i) / 4 * (step) + (i) % 4)

DEVICE int store_blocks(const struct result *o, int m, int n, const R *d, const int rows, const int columns,
                        const int row_step, const int column_step)
{
    const int along_rows = o->col == 1 && ((o->row | o->c0 | o->N) & 3) == 0;

    if (!o->plain || (!along_rows && (o->row != 1 || ((o->col | o->c0 | o->M) & 3) != 0)))
        return 0;
    if (along_rows)
        UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < columns; j += 4) {
            const int to_m = m + BLOCK_AT(i, row_step), to_n = n + BLOCK_AT(j, column_step);
            const R *s = d + i * columns + j;
            const R x[4] = { o->alpha * s[0], o->alpha * s[1], o->alpha * s[2], o->alpha * s[3] };

            if (to_m < o->M && to_n < o->N)
                STORE_ALIGNED(4, o->c + (o->c0 + to_m * o->row + to_n), VLOAD(4, x));
        }
    else
        UNROLL for (int j = 0; j < columns; j++)
        UNROLL for (int i = 0; i < rows; i += 4) {
            const int to_m = m + BLOCK_AT(i, row_step), to_n = n + BLOCK_AT(j, column_step);
            const R *s = d + i * columns + j;
            const R x[4] = { o->alpha * s[0], o->alpha * s[columns], o->alpha * s[2 * columns],
                             o->alpha * s[3 * columns] };

            if (to_m < o->M && to_n < o->N)
                STORE_ALIGNED(4, o->c + (o->c0 + to_m + to_n * o->col), VLOAD(4, x));
        }
    return 1;
}
