/* fma.h - a tile of C = A B in registers, for devices with local memory
 *
 * One work-group makes BLK_M x BLK_N of C, walking down K a BLK_K slice at a time; one
 * work-item makes THR_M x THR_N of that.  While a slice is multiplied out of local
 * memory, the next one is on its way to registers.
 *
 *               N                 Letters before a matrix tell where it lives:
 *           +-------+               gA  device memory    (the whole matrix)
 *         K |   B   |               sA  local memory     (BLK_K x BLK_M)
 *           +-------+               rA  registers        (THR_M)
 *       K
 *     +---+ +-------+             A work-item's rows are THR_M apart by ITEMS_M, so that
 *   M | A | |   C   |             neighbours read neighbouring words of local memory.
 *     +---+ +-------+
 *
 * What A and B are is said by the kernel that comes after: a matrix, or the patches of
 * an image.  It defines the two operands and how one element of each is loaded (0 past
 * the edge), and which of the two indices runs along memory.
 *
 * Sums run along K in order, one fused multiply-add each: the same bits everywhere.
 */
#define ITEMS_M (BLK_M / THR_M)
#define ITEMS_N (BLK_N / THR_N)
#define ITEMS   (ITEMS_M * ITEMS_N)
#define EACH_A  (BLK_M * BLK_K / ITEMS)         /* elements of a slice that an item brings */
#define EACH_B  (BLK_N * BLK_K / ITEMS)
#define PITCH_A (BLK_M + 1)                     /* one more: columns then lie in other banks */
#define PITCH_B (BLK_N + 1)

#if BLK_M % THR_M || BLK_N % THR_N
#error "a work-item's tile must divide its work-group's"
#endif
#if BLK_M * BLK_K % ITEMS || BLK_N * BLK_K % ITEMS
#error "the items must share a slice evenly"
#endif

struct operand_a;
struct operand_b;
DEVICE int load_along_k_a(const struct operand_a *a);
DEVICE int load_along_k_b(const struct operand_b *b);
DEVICE R   load_a(const struct operand_a *a, int m, int k);
DEVICE R   load_b(const struct operand_b *b, int k, int n);

#define ITEM ((unsigned int)LOCAL_ID())         /* no sign: dividing by a power of two is then a shift */

/* Row and column, in C, of element (i, j) of this item's tile. */
#define TILE_ROW(m0, i) ((m0) + (int)(ITEM / ITEMS_N) + (i) * ITEMS_M)
#define TILE_COL(n0, j) ((n0) + (int)(ITEM % ITEMS_N) + (j) * ITEMS_N)

/* The place in a slice of the i-th element that this item brings: along k, or across. */
#define SLICE_K(i, along, width) ((int)((along) ? (ITEM + (i) * ITEMS) % BLK_K : (ITEM + (i) * ITEMS) / (width)))
#define SLICE_X(i, along, width) ((int)((along) ? (ITEM + (i) * ITEMS) / BLK_K : (ITEM + (i) * ITEMS) % (width)))

DEVICE void
tile_multiply(R rC[THR_M][THR_N], LOCAL R *sA, LOCAL R *sB,
              const struct operand_a *a, const struct operand_b *b, int m0, int n0, int K)
{
    const int along_a = load_along_k_a(a), along_b = load_along_k_b(b);
    R nextA[EACH_A], nextB[EACH_B];

    UNROLL for (int i = 0; i < THR_M; i++)
    UNROLL for (int j = 0; j < THR_N; j++)
        rC[i][j] = ZERO;

    UNROLL for (int i = 0; i < EACH_A; i++)
        nextA[i] = load_a(a, m0 + SLICE_X(i, along_a, BLK_M), SLICE_K(i, along_a, BLK_M));
    UNROLL for (int i = 0; i < EACH_B; i++)
        nextB[i] = load_b(b, SLICE_K(i, along_b, BLK_N), n0 + SLICE_X(i, along_b, BLK_N));

    for (int k0 = 0; k0 < K; k0 += BLK_K) {
        UNROLL for (int i = 0; i < EACH_A; i++)
            sA[SLICE_K(i, along_a, BLK_M) * PITCH_A + SLICE_X(i, along_a, BLK_M)] = nextA[i];
        UNROLL for (int i = 0; i < EACH_B; i++)
            sB[SLICE_K(i, along_b, BLK_N) * PITCH_B + SLICE_X(i, along_b, BLK_N)] = nextB[i];
        BARRIER();

        if (k0 + BLK_K < K) {
            UNROLL for (int i = 0; i < EACH_A; i++)
                nextA[i] = load_a(a, m0 + SLICE_X(i, along_a, BLK_M), k0 + BLK_K + SLICE_K(i, along_a, BLK_M));
            UNROLL for (int i = 0; i < EACH_B; i++)
                nextB[i] = load_b(b, k0 + BLK_K + SLICE_K(i, along_b, BLK_N), n0 + SLICE_X(i, along_b, BLK_N));
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
