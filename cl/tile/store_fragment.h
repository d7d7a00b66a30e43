/* cl/tile/store_fragment.h - the accumulators of mma.sync to C
 *
 * A lane has, of each 8 x 8 block (i, j) of its warp, two adjacent columns of a row (fragment.h).
 *
 * Takes  fragment.h, result.h, STORE_PAIR() (cl/atoms/nvidia); WARP_N
 * Gives  ACCUMULATORS_N, store_fragments()
 */
#define ACCUMULATORS_N (WARP_N / 4)             /* of a lane, in a row */

#define FRAGMENT_COLUMN(v)  (n + (v) / 2 * 8 + (v) % 2)

/* m, n: where the warp's tile begins; rows before m_from and columns before n_from are another tile's. */
DEVICE void store_fragments(const struct result *o, int m, int n, int m_from, int n_from,
                            R d[BLOCKS_M][BLOCKS_N][2], LOCAL R *room)
{
    const int in_pairs = n % 2 == 0 && o->col == 1 && o->row % 2 == 0 &&
                         (UINT64)(o->c + o->c0) % (2 * T_BYTES) == 0;

    m += (int)(ITEM % 32 / 4);
    n += (int)(ITEM % 4) * 2;
    UNROLL for (int i = 0; i < BLOCKS_M; i++) {
        const int row = m + 8 * i;
        const INDEX at = o->c0 + row * o->row;

        if (row >= m_from && row < o->M && o->plain)
            UNROLL for (int j = 0; j < BLOCKS_N; j++) {
                const int column = n + 8 * j;

                if (column >= n_from && column + 1 < o->N && in_pairs) {
                    STORE_PAIR(o->c + at + column, o->alpha * d[i][j][0], o->alpha * d[i][j][1]);
                } else {
                    if (column >= n_from && column < o->N)
                        STORE(o->c, at + column * o->col, o->alpha * d[i][j][0]);
                    if (column + 1 >= n_from && column + 1 < o->N)
                        STORE(o->c, at + (column + 1) * o->col, o->alpha * d[i][j][1]);
                }
            }
        else if (row >= m_from && row < o->M)
            RESULT_STORE_ROW(o, row, n_from, &d[i][0][0], ACCUMULATORS_N, FRAGMENT_COLUMN, room);
    }
}
