/* cl/tile/fma.h - a tile of C = A B by fused multiply-adds, for devices with local memory
 *
 * A work-group computes BLK_M x BLK_N of C, in slices of BLK_K along K; a work-item computes
 * THR_M x THR_N of that. While a slice is multiplied out of local memory, the loads of the
 * next one to registers are in flight.
 *
 *               N                 The letter before a matrix says where it lies:
 *           +-------+               gA  global memory    (the whole matrix)
 *         K |   B   |               sA  local memory     (BLK_K x BLK_M)
 *           +-------+               rA  registers        (THR_M)
 *       K
 *     +---+ +-------+             A work-item's rows are BLK_M / THR_M apart, so that
 *   M | A | |   C   |             neighbouring work-items read neighbouring words of local
 *     +---+ +-------+             memory.
 *
 * The kernel that includes this says what A and B are: a matrix, or the patches of an image.
 * It defines struct operand_a and operand_b, load_a() and load_b(), which load one element
 * (0 outside the operand), and is_k_major_a() and is_k_major_b().
 *
 * Sums run in order of k, one fused multiply-add each: bit-identical on every device.
 *
 * Takes  BLK_M BLK_N BLK_K THR_M THR_N (a row of parameters); T R ZERO (cl/types.h)
 * Gives  FMA_ITEMS (work-items per work-group), PITCH_A PITCH_B (row pitch of sA and sB),
 *        TILE_ROW TILE_COL, tile_multiply(); for itself FMA_*
 */
#define FMA_ITEMS_M (BLK_M / THR_M)
#define FMA_ITEMS_N (BLK_N / THR_N)
#define FMA_ITEMS   (FMA_ITEMS_M * FMA_ITEMS_N)
#define FMA_LOADS_A (BLK_M * BLK_K / FMA_ITEMS) /* elements of a slice that a work-item loads */
#define FMA_LOADS_B (BLK_N * BLK_K / FMA_ITEMS)
#define PITCH_A (BLK_M + 1)                     /* padded by 1: elements of a column differ in bank */
#define PITCH_B (BLK_N + 1)

#if BLK_M % THR_M || BLK_N % THR_N
#error "a work-item's tile must divide its work-group's"
#endif
#if BLK_M * BLK_K % FMA_ITEMS || BLK_N * BLK_K % FMA_ITEMS
#error "each work-item must load an equal number of elements of a slice"
#endif

struct operand_a;
struct operand_b;
DEVICE int is_k_major_a(const struct operand_a *a);
DEVICE int is_k_major_b(const struct operand_b *b);
DEVICE R   load_a(const struct operand_a *a, int m, int k);
DEVICE R   load_b(const struct operand_b *b, int k, int n);

#define FMA_ITEM ((unsigned int)LOCAL_ID())     /* unsigned: a division by a power of two is one shift */

/* The row and the column of C of element (i, j) of this work-item's tile. */
#define TILE_ROW(m0, i) ((m0) + (int)(FMA_ITEM / FMA_ITEMS_N) + (i) * FMA_ITEMS_M)
#define TILE_COL(n0, j) ((n0) + (int)(FMA_ITEM % FMA_ITEMS_N) + (j) * FMA_ITEMS_N)

/* The position in a slice, along K and across it, of the i-th element that this work-item loads:
 * consecutive work-items load consecutive elements in memory.                                  */
#define FMA_SLICE_K(i, k_major, width) \
    ((int)((k_major) ? (FMA_ITEM + (i) * FMA_ITEMS) % BLK_K : (FMA_ITEM + (i) * FMA_ITEMS) / (width)))
#define FMA_SLICE_X(i, k_major, width) \
    ((int)((k_major) ? (FMA_ITEM + (i) * FMA_ITEMS) / BLK_K : (FMA_ITEM + (i) * FMA_ITEMS) % (width)))

/* rC := A B for the tile at (m0, n0), over all of K. */
DEVICE void
tile_multiply(R rC[THR_M][THR_N], LOCAL R *sA, LOCAL R *sB,
              const struct operand_a *a, const struct operand_b *b, int m0, int n0, int K)
{
    const int k_major_a = is_k_major_a(a), k_major_b = is_k_major_b(b);
    R nextA[FMA_LOADS_A], nextB[FMA_LOADS_B];

    UNROLL for (int i = 0; i < THR_M; i++)
    UNROLL for (int j = 0; j < THR_N; j++)
        rC[i][j] = ZERO;

    UNROLL for (int i = 0; i < FMA_LOADS_A; i++)
        nextA[i] = load_a(a, m0 + FMA_SLICE_X(i, k_major_a, BLK_M), FMA_SLICE_K(i, k_major_a, BLK_M));
    UNROLL for (int i = 0; i < FMA_LOADS_B; i++)
        nextB[i] = load_b(b, FMA_SLICE_K(i, k_major_b, BLK_N), n0 + FMA_SLICE_X(i, k_major_b, BLK_N));

    for (int k0 = 0; k0 < K; k0 += BLK_K) {
        UNROLL for (int i = 0; i < FMA_LOADS_A; i++)
            sA[FMA_SLICE_K(i, k_major_a, BLK_M) * PITCH_A + FMA_SLICE_X(i, k_major_a, BLK_M)] = nextA[i];
        UNROLL for (int i = 0; i < FMA_LOADS_B; i++)
            sB[FMA_SLICE_K(i, k_major_b, BLK_N) * PITCH_B + FMA_SLICE_X(i, k_major_b, BLK_N)] = nextB[i];
        BARRIER();

        if (k0 + BLK_K < K) {
            UNROLL for (int i = 0; i < FMA_LOADS_A; i++)
                nextA[i] = load_a(a, m0 + FMA_SLICE_X(i, k_major_a, BLK_M),
                                  k0 + BLK_K + FMA_SLICE_K(i, k_major_a, BLK_M));
            UNROLL for (int i = 0; i < FMA_LOADS_B; i++)
                nextB[i] = load_b(b, k0 + BLK_K + FMA_SLICE_K(i, k_major_b, BLK_N),
                                  n0 + FMA_SLICE_X(i, k_major_b, BLK_N));
        }
        UNROLL for (int k = 0; k < BLK_K; k++) {
            R rA[THR_M], rB[THR_N];

            UNROLL for (int i = 0; i < THR_M; i++) rA[i] = sA[k * PITCH_A + TILE_ROW(0, i)];
            UNROLL for (int j = 0; j < THR_N; j++) rB[j] = sB[k * PITCH_B + TILE_COL(0, j)];
            UNROLL for (int i = 0; i < THR_M; i++)
            UNROLL for (int j = 0; j < THR_N; j++)
                rC[i][j] = FMA(rA[i], rB[j], rC[i][j]);
        }
        BARRIER();                              /* before sA and sB are refilled */
    }
}
