/* cl/tile/slices.h - slices of K of A and B in local memory, as async_operand.h copies them
 *
 * A stage has a slice of A, then one of B.  A slice is rows of 16-byte vectors, as the operand lies in device
 * memory.
 *
 * Takes  BLK_M BLK_N BLK_K; MN_MAJOR_A MN_MAJOR_B; VEC
 * Gives  ROWS_A ROWS_B, of a slice; VECS_A VECS_B, of a row; BYTES_A, of a slice; STAGE, bytes
 */
#define ROWS_OF(width, mn_major) ((mn_major) ? BLK_K : (width))
#define VECS_OF(width, mn_major) (((mn_major) ? (width) : BLK_K) / VEC)
#define ROWS_A  ROWS_OF(BLK_M, MN_MAJOR_A)
#define ROWS_B  ROWS_OF(BLK_N, MN_MAJOR_B)
#define VECS_A  VECS_OF(BLK_M, MN_MAJOR_A)
#define VECS_B  VECS_OF(BLK_N, MN_MAJOR_B)
#define BYTES_A (BLK_M * BLK_K * T_BYTES)
#define STAGE   (BYTES_A + BLK_N * BLK_K * T_BYTES)
