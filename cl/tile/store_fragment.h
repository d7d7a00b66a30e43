/* cl/tile/store_fragment.h - the accumulators of mma.sync to C
 *
 * A lane has, of each 8 x 8 block (i, j) of its warp, two adjacent columns of a row (fragment.h).
 *
 * Takes  fragment.h, split.h, epilogue.h, STORE_PAIR_* (cl/atoms/nvidia)
 * Gives  store_fragment_row(), store_fragments(); FRAGMENT_ROOM store_by_rows()
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

/* The OWN_M blocks of rows that a set of warps has.  m, n: where they begin; rows before m_from and columns
 * before n_from are another tile's; kept: of which pairs (split.h). */
DEVICE void store_fragments(const struct output *o, int m, int n, int m_from, int n_from, UINT32 kept,
                            R d[BLOCKS_M][BLOCKS_N][2])
{
    const int in_pairs = n % 2 == 0 && o->col == 1 && o->row % 2 == 0 && (UINT64)o->c % (2 * C_BYTES) == 0;
    const int last_m = o->M - 1, last_n = o->N - 1;

    m += (int)(ITEM % 32 / 4);
    n += (int)(ITEM % 4) * 2;
    UNROLL for (int i = 0; i < OWN_M; i++)
    UNROLL for (int j = 0; j < BLOCKS_N; j++)
    UNROLL for (int e = 0; e < 2; e++) {
        const int row = m + 8 * i, column = n + 8 * j + e;

        d[i][j][e] = epilogue(o, row < last_m ? row : last_m, column < last_n ? column : last_n, d[i][j][e]);
    }
    UNROLL for (int i = 0; i < OWN_M; i++) {
        const int row = m + 8 * i;
        const INDEX at = row * o->row;

        if (row >= m_from && row < o->M)
            store_fragment_row(o, at, n, n_from, in_pairs, KEPT_ROW(kept, i), d[i]);
    }
}

/* ---- through local memory -------------------------------------------------------------------------- */

#define FRAGMENT_PITCH (BLK_N + 8)              /* lanes write to different banks */
#define FRAGMENT_ROOM  (R_BYTES * BLK_M * FRAGMENT_PITCH)       /* bytes */
#define ROW_LANES      (BLK_N < 64 ? BLK_N / 2 : 32)    /* that store a row */
#define ROWS_AT_ONCE   (ITEMS / ROW_LANES)
#define ROWS_IN_FLIGHT (BLK_M / ROWS_AT_ONCE < 4 ? BLK_M / ROWS_AT_ONCE : 4)    /* of a work-item */
#if BLK_M % (ROWS_AT_ONCE * ROWS_IN_FLIGHT)
#error "a tile must have whole turns of rows"
#endif

/* A pair of adjacent columns of a row, of which the first may be -1 and both may be past the end. */
struct row_pair { R x, y; int first, second; };

/* The row m, which is row `row` of the tile: finished, from places inside where the pair is not. */
DEVICE struct row_pair finished_pair(const struct output *o, LOCAL const R *sums, int m, int row, int n0,
                                     int column)
{
    const int left = (BLK_N < o->N - n0 ? BLK_N : o->N - n0) - 1, inside = m + row < o->M;
    const int at = inside ? row : 0, x = column < 0 ? 0 : column < left ? column : left;
    const int y = column < left ? column + 1 : left;
    LOCAL const R *const from = sums + at * FRAGMENT_PITCH;
    const struct row_pair pair = { epilogue(o, m + at, n0 + x, from[x]), epilogue(o, m + at, n0 + y, from[y]),
                                   inside && column >= 0 && column <= left, inside && column < left };

    return pair;
}

/* The same as store_fragments(), by a work-group that has all sums, and to contiguous rows of any
 * alignment: lanes store adjacent pairs, at even addresses.  Pairs of several rows are in flight together.
 * m, n: where the set's blocks begin in the tile at (m0, n0); sums: anything may have been there. */
DEVICE void store_by_rows(const struct output *o, LOCAL R *sums, int m0, int n0, int m, int n,
                          R d[BLOCKS_M][BLOCKS_N][2])
{
    const int lane = (int)(ITEM % ROW_LANES), first = (int)(ITEM / ROW_LANES);

    m += (int)(ITEM % 32 / 4);
    n += (int)(ITEM % 4) * 2;
    BARRIER();
    UNROLL for (int i = 0; i < OWN_M; i++)
    UNROLL for (int j = 0; j < BLOCKS_N; j++)
    UNROLL for (int e = 0; e < 2; e++)
        sums[(m + 8 * i) * FRAGMENT_PITCH + n + 8 * j + e] = d[i][j][e];
    BARRIER();
    NO_UNROLL for (int at = 0; at < BLK_M / ROWS_AT_ONCE && m0 + at * ROWS_AT_ONCE < o->M;
                   at += ROWS_IN_FLIGHT)
        UNROLL for (int i = 0; i < BLK_N / 2; i += ROW_LANES) {
            struct row_pair pair[ROWS_IN_FLIGHT];
            GLOBAL TC *to[ROWS_IN_FLIGHT];

            UNROLL for (int j = 0; j < ROWS_IN_FLIGHT; j++) {
                const int row = (at + j) * ROWS_AT_ONCE + first;
                GLOBAL TC *const begin = o->c + ((m0 + row) * o->row + n0);
                const int column = 2 * (i + lane) - (int)((UINT64)begin / C_BYTES % 2);

                to[j] = begin + column;
                pair[j] = finished_pair(o, sums, m0, row, n0, column);
            }
            UNROLL for (int j = 0; j < ROWS_IN_FLIGHT; j++) {
                if (pair[j].first && pair[j].second)
                    OF(STORE_PAIR, TYPE_C)(to[j], pair[j].x, pair[j].y);
                if (pair[j].first && !pair[j].second)
                    STORE_C(to[j], 0, pair[j].x);
                if (!pair[j].first && pair[j].second)
                    STORE_C(to[j], 1, pair[j].y);
            }
        }
    for (int row = (int)ITEM; row < BLK_M && m0 + row < o->M && n0 + BLK_N <= o->N; row += ITEMS) {
        GLOBAL TC *const begin = o->c + ((m0 + row) * o->row + n0);     /* the last column may have no pair */

        if ((UINT64)begin / C_BYTES % 2)
            STORE_C(begin, BLK_N - 1,
                    epilogue(o, m0 + row, n0 + BLK_N - 1, sums[row * FRAGMENT_PITCH + BLK_N - 1]));
    }
}
