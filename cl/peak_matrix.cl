/* cl/peak_matrix.cl - the roofs of AMD's and Intel's matrix engines, operands in registers
 *
 * A wave has two blocks of A and two of B, and in each round computes their four products, which are
 * independent.
 *
 * ENGINE  as in the atoms; LANES of a wave; BLK_K of a slice in local memory
 *
 * Source of the method: that of cl/peak.cl; of the instructions: cl/atoms/amd/matrix.h, intel/matrix.h.
 */
#define ITEMS (4 * LANES)
#define WORDS (BLK_M * BLK_K * T_BYTES / 4)     /* of a slice */

#if LANES != MATRIX_LANES
#error "LANES is not what the engine has"
#endif

MATRIX_KERNEL(ITEMS) void matrix_peak(GLOBAL R *y, int rounds)
{
    LOCAL_ARRAY(T, s, BLK_M * BLK_K);

    LOCAL UINT32 *words = (LOCAL UINT32 *)s;
    const int me = LOCAL_ID(), lane = me % LANES;
    matrix_accumulators c[2][2];
    R sum = 0;

    for (int i = me; i < WORDS; i += ITEMS)
        words[i] = random_bits((UINT32)i);
    BARRIER();

    matrix_fragment_a a[2];
    matrix_fragment_b b[2];

    UNROLL for (int i = 0; i < 2; i++) {
        a[i] = matrix_load_a(s, BLK_M, i * MATRIX_M, 0, lane);
        b[i] = matrix_load_b(s, BLK_N, i * MATRIX_N, 0, lane);
        UNROLL for (int j = 0; j < 2; j++)
            c[i][j] = (matrix_accumulators)(0);
    }
    for (int r = 0; r < rounds; r++)
        UNROLL for (int i = 0; i < 2; i++)
            UNROLL for (int j = 0; j < 2; j++)
                MATRIX_MULTIPLY(c[i][j], a[i], b[j]);
    UNROLL for (int i = 0; i < 2; i++)
        UNROLL for (int j = 0; j < 2; j++)
            sum += c[i][j].s0 + c[i][j].s1 + c[i][j].s2 + c[i][j].s3;
    y[GROUP_ID(0) * ITEMS + me] = sum;
}
