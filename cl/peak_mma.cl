/* cl/peak_mma.cl - the roof of NVIDIA's matrix engines from sm_80 on: products by mma.sync out of registers
 *
 * A warp has A of 32 rows and B of 32 columns, all products of which are independent: eight, of 16 x 8, in
 * each round; of f64 8 x 8 at a time, of sm_90 16 x 8, as the kernels have them.
 *
 * MMA_M  8: of f64 the instruction of sm_80; 16: that of sm_90; else any
 *
 * Source of the method: that of cl/peak.cl; of the instruction: cl/atoms/nvidia/mma.h.
 */
#define ITEMS 256
#define ROWS  2                                 /* tiles of A */
#define COLS  4                                 /* tiles of B */

#if TYPE == TYPE_F64
#define OPERAND(i) BITS_DOUBLE((UINT64)random_bits(i) << 32)
#define ELEMENT    double
#else
#define OPERAND(i) random_bits(i)
#define ELEMENT    UINT32
#endif

KERNEL(ITEMS) void matrix_peak(GLOBAL R *y, int rounds)
{
    const UINT32 me = (UINT32)LOCAL_ID();
    ELEMENT a[ROWS][4], a8[ROWS][4], b[COLS][4];
    R c[ROWS][COLS][2], c8[ROWS][COLS][2];

    UNROLL for (int i = 0; i < 4; i++) {
        UNROLL for (int m = 0; m < ROWS; m++) {
            a[m][i]  = OPERAND(me * 64 + m * 8 + i);
            a8[m][i] = OPERAND(me * 64 + m * 8 + 4 + i);
        }
        UNROLL for (int n = 0; n < COLS; n++)
            b[n][i] = OPERAND(me * 64 + 32 + n * 4 + i);
    }
    UNROLL for (int m = 0; m < ROWS; m++)
        UNROLL for (int n = 0; n < COLS; n++)
            c[m][n][0] = c[m][n][1] = c8[m][n][0] = c8[m][n][1] = 0;
    for (int r = 0; r < rounds; r++)
        UNROLL for (int m = 0; m < ROWS; m++)
            UNROLL for (int n = 0; n < COLS; n++) {
#if TYPE != TYPE_F64
                MMA_F32(c[m][n], c8[m][n], a[m], a8[m], b[n]);
#elif MMA_M == 8
                MMA_F64_8x8x4(c[m][n], a[m][0], b[n][0]);
                MMA_F64_8x8x4(c8[m][n], a8[m][0], b[n][0]);
#else
                MMA_F64_16x8x16(c[m][n], c8[m][n], a[m], a8[m], b[n]);
#endif
            }
    UNROLL for (int m = 0; m < ROWS; m++)
        UNROLL for (int n = 0; n < COLS; n++)
            c[0][0][0] += (m + n ? c[m][n][0] : 0) + c[m][n][1] + c8[m][n][0] + c8[m][n][1];
    y[GROUP_ID(0) * ITEMS + (int)me] = c[0][0][0];
}
