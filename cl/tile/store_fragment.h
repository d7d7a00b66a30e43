/* cl/tile/store_fragment.h - the accumulators of mma.sync to C
 *
 * A lane has, of each 8 x 8 block (i, j) of its warp, two adjacent columns of a row (fragment.h).
 *
 * Takes  fragment.h, epilogue.h, STORE_PAIR_* (cl/atoms/nvidia)
 * Gives  store_fragment_row(), store_fragments()
 */

/* Of a row that begins at `at`, what a lane has of it, from its column n on; columns before n_from are
 * another tile's.  in_pairs: its pairs are aligned to their size.  kept: bit j, whether pair j is stored. */
DEVICE void store_fragment_row(const struct output *o, INDEX at, int n, int n_from, int in_pairs,
                               UINT32 kept, R d[BLOCKS_N][2])
{
    UNROLL for (int j = 0; j < BLOCKS_N; j++) {
        const int column = n + 8 * j;

        if (!(kept >> j & 1))
            continue;
        if (column >= n_from && column + 1 < o->N && in_pairs) {
            OF(STORE_PAIR, TYPE_C)(o->c + at + column, d[j][0], d[j][1]);
        } else {
            if (column >= n_from && column < o->N)
                STORE_C(o->c, at + column * o->col, d[j][0]);
            if (column + 1 >= n_from && column + 1 < o->N)
                STORE_C(o->c, at + (column + 1) * o->col, d[j][1]);
        }
    }
}

/* m, n: where the warp's tile begins; rows before m_from and columns before n_from are another tile's. */
DEVICE void store_fragments(const struct output *o, int m, int n, int m_from, int n_from,
                            R d[BLOCKS_M][BLOCKS_N][2])
{
    const int in_pairs = n % 2 == 0 && o->col == 1 && o->row % 2 == 0 && (UINT64)o->c % (2 * C_BYTES) == 0;
    const int last_m = o->M - 1, last_n = o->N - 1;

    m += (int)(ITEM % 32 / 4);
    n += (int)(ITEM % 4) * 2;
    UNROLL for (int i = 0; i < BLOCKS_M; i++)
    UNROLL for (int j = 0; j < BLOCKS_N; j++)
    UNROLL for (int e = 0; e < 2; e++) {
        const int row = m + 8 * i, column = n + 8 * j + e;

        d[i][j][e] = epilogue(o, row < last_m ? row : last_m, column < last_n ? column : last_n, d[i][j][e]);
    }
    UNROLL for (int i = 0; i < BLOCKS_M; i++) {
        const int row = m + 8 * i;
        const INDEX at = row * o->row;

        if (row >= m_from && row < o->M)
            store_fragment_row(o, at, n, n_from, in_pairs, ~(UINT32)0, d[i]);
    }
}
