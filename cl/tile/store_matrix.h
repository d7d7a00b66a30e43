/* cl/tile/store_matrix.h - the accumulators of AMD's and Intel's matrix instructions to C
 *
 * A lane has MATRIX_ACCUMULATORS elements of one column of each MATRIX_M x MATRIX_N block of its wave.
 *
 * Takes  epilogue.h; MATRIX_* matrix_row() matrix_column() matrix_accumulators of cl/atoms; WAVE_M WAVE_N
 * Gives  MATRIX_BLOCKS_M MATRIX_BLOCKS_N, store_matrix()
 */
#define MATRIX_BLOCKS_M (WAVE_M / MATRIX_M)
#define MATRIX_BLOCKS_N (WAVE_N / MATRIX_N)

/* m, n: where the wave's tile begins; rows before m_from and columns before n_from are another tile's. */
DEVICE void store_matrix(const struct output *c,
                         const matrix_accumulators d[MATRIX_BLOCKS_M][MATRIX_BLOCKS_N],
                         int m, int n, int m_from, int n_from, int lane)
{
    n += matrix_column(lane);
    UNROLL for (int i = 0; i < MATRIX_BLOCKS_M; i++)
    UNROLL for (int j = 0; j < MATRIX_BLOCKS_N; j++)
    UNROLL for (int e = 0; e < MATRIX_ACCUMULATORS; e++) {
        const int row = m + i * MATRIX_M + matrix_row(e, lane), column = n + j * MATRIX_N;

        if (row >= m_from && row < c->M && column >= n_from && column < c->N)
            store_element(c, row, column, d[i][j][e]);
    }
}
