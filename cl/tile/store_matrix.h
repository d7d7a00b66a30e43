/* cl/tile/store_matrix.h - the accumulators of AMD's and Intel's matrix instructions to C
 *
 * A lane has MATRIX_ACCUMULATORS elements of one column of each MATRIX_M x MATRIX_N block of its wave.
 *
 * Takes  result.h; MATRIX_* matrix_row() matrix_column() matrix_accumulators of cl/atoms; WAVE_M WAVE_N
 * Gives  MATRIX_BLOCKS_M MATRIX_BLOCKS_N, store_matrix()
 */
#define MATRIX_BLOCKS_M (WAVE_M / MATRIX_M)
#define MATRIX_BLOCKS_N (WAVE_N / MATRIX_N)

/* m, n: where the wave's tile begins; rows before m_from and columns before n_from are another tile's. */
DEVICE void store_matrix(const struct result *c,
                         const matrix_accumulators d[MATRIX_BLOCKS_M][MATRIX_BLOCKS_N],
                         int m, int n, int m_from, int n_from, int lane, LOCAL R *room)
{
    n += matrix_column(lane);
    if (c->plain) {
        UNROLL for (int i = 0; i < MATRIX_BLOCKS_M; i++)
        UNROLL for (int j = 0; j < MATRIX_BLOCKS_N; j++)
        UNROLL for (int e = 0; e < MATRIX_ACCUMULATORS; e++) {
            const int row = m + i * MATRIX_M + matrix_row(e, lane), column = n + j * MATRIX_N;

            if (row >= m_from && row < c->M && column >= n_from && column < c->N)
                STORE(c->c, c->c0 + row * c->row + column * c->col, c->alpha * d[i][j][e]);
        }
        return;
    }
    NO_UNROLL for (int block = 0; block < MATRIX_BLOCKS_M * MATRIX_BLOCKS_N; block++) {
        UNROLL for (int i = 0; i < MATRIX_BLOCKS_M; i++)
        UNROLL for (int j = 0; j < MATRIX_BLOCKS_N; j++)
            if (block == i * MATRIX_BLOCKS_N + j)
                UNROLL for (int e = 0; e < MATRIX_ACCUMULATORS; e++)
                    room[e] = d[i][j][e];
        NO_UNROLL for (int e = 0; e < MATRIX_ACCUMULATORS; e++) {
            const int row = m + block / MATRIX_BLOCKS_N * MATRIX_M + matrix_row(e, lane);
            const int column = n + block % MATRIX_BLOCKS_N * MATRIX_N;

            if (row >= m_from && row < c->M && column >= n_from && column < c->N)
                result_store(c, row, column, room[e]);
        }
    }
}
