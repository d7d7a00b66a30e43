/* cl/tile/store_blocks_through.h - accumulators in blocks of 4 x 4 to a C that is not aligned
 *
 * They go through local memory, so that a warp stores rows of 32 contiguous elements, or 16 of each of two
 * columns.  From registers, it would store every fourth element, and touch four times as many sectors.
 *
 * Takes  store_blocks.h; warp.h of atoms/nvidia
 * Gives  BLOCKS_ROOM, store_blocks_through()
 */
#define ROOM_PITCH  36
#define BLOCKS_ROOM (16 * ROOM_PITCH)           /* elements, of a warp */

/* As store_blocks().  A warp's blocks are 4 below each other and 8 side by side, of which this lane's is the
 * one at (below, aside); m and n are the warp's first row and column.  room: the warp's own. */
DEVICE void store_blocks_through(const struct output *o, int m, int n, int below, int aside, int lane,
                                 LOCAL R *room, const R *d, const int rows, const int columns,
                                 const int row_step, const int column_step)
{
    const int across = o->col == 1, first_m = across ? 0 : lane % 16, first_n = across ? lane : lane / 16;
    const int step_m = across, step_n = across ? 0 : 2;

    UNROLL for (int i = 0; i < rows; i += 4)
    UNROLL for (int j = 0; j < columns; j += 4) {
        const int to_m = m + BLOCK_AT(i, row_step) + first_m, to_n = n + BLOCK_AT(j, column_step) + first_n;

        warp_meet();                            /* all have read */
        UNROLL for (int k = 0; k < 16; k++)
            room[(below * 4 + k / 4) * ROOM_PITCH + aside * 4 + k % 4] = d[(i + k / 4) * columns + j + k % 4];
        warp_meet();
        UNROLL for (int k = 0; k < 16; k++) {
            const int r = to_m + k * step_m, c = to_n + k * step_n;

            if (r < o->M && c < o->N)
                STORE_C(o->c, r * o->row + c * o->col,
                        room[(first_m + k * step_m) * ROOM_PITCH + first_n + k * step_n]);
        }
    }
}
