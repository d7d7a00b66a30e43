/* cl/atoms/intel/chained.h - accumulators of one product as operand B of the next, on Intel's matrix engines
 *
 * cl/atoms/amd/chained.h says what for.  Here a lane has all rows of its column: accumulator i of a block is
 * row i, and two blocks are the 16 elements along K of a fragment of B, in order.
 *
 * Takes  matrix.h; pair_of() (cl/tile/pair.h)
 * Gives  as amd/chained.h, without MATRIX_OTHER()
 */
#define MATRIX_KERNEL_ROOM(items, n) MATRIX_KERNEL(items)

DEVICE int matrix_place(int x) { return x; }
DEVICE int matrix_slot(int k) { return k; }
#define matrix_block_a(s, width, x, k, lane) matrix_load_a(s, width, x, k, lane)

/* b: fragment f of operand B, of the accumulators s of blocks of rows in one column. */
#define MATRIX_PAIR(s, i) (int)pair_of((s)[i], (s)[(i) + 1])
#define MATRIX_PAIRS(s)   MATRIX_PAIR(s, 0), MATRIX_PAIR(s, 2), MATRIX_PAIR(s, 4), MATRIX_PAIR(s, 6)
#define MATRIX_OPERAND(b, s, f, lane) b = (int8)(MATRIX_PAIRS((s)[2 * (f)]), MATRIX_PAIRS((s)[2 * (f) + 1]))

/* Of what the lanes of a column have: one. */
#define MATRIX_COLUMN_MAX(x, lane)
#define MATRIX_COLUMN_SUM(x, lane)
