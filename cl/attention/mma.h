/* cl/attention/mma.h - tiles of queries, keys and values for the mma.sync of sm_80 and up
 *
 * A tile has BLK_M queries of one head, WARP_M for each warp; a block has BLK_N keys, or values, of the head
 * that it shares.  All are rows of VECTORS 16-byte vectors in local memory (cl/tile/fragment.h), of which the
 * first HEAD elements are multiplied.
 *
 * LAYOUT, a constant of the problem: VECTOR_ROWS, where all rows are whole vectors that begin at multiples of
 * 16 bytes; ANY_ROWS, contiguous; PAGED_ROWS, as VECTOR_ROWS, with keys and values in pages.
 *
 * Takes: HEAD BLK_N FORM, before fragment.h and online.h.
 * Gives: VECTORS, what fragment.h and async_operand.h take, EXACT_WEIGHTS for online.h, the values of LAYOUT.
 */
#define VECTORS     (HEAD <= 64 ? 8 : HEAD <= 128 ? 16 : 32)    /* a power of two */
#define BLK_K       (8 * VECTORS)
#define WARP_N      BLK_N
#define MMA_M       16
#define MMA_K       16

/* With a mask scores may be large; and rows that are not whole vectors may have any number of elements. */
#define EXACT_WEIGHTS (FORM > 1 || LAYOUT == ANY_ROWS)

#define VECTOR_ROWS 0
#define ANY_ROWS    1
#define PAGED_ROWS  2
