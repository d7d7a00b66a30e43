/* cl/tile/matrix.h - the waves of a tile by AMD's and Intel's matrix instructions, and their products
 *
 * All engines take adjacent elements of K together.  What is read along M or N is loaded in squares of
 * QUAD x QUAD elements, QUAD vectors of BITS, which kernels transpose on the way to local memory.
 *
 * Takes  MATRIX_* matrix_offset() matrix_load_a() matrix_load_b() of cl/atoms; MATRIX_BLOCKS_M
 *        MATRIX_BLOCKS_N of store_matrix.h; BLK_M BLK_N BLK_K WAVE_M WAVE_N LANES
 * Gives  WAVES_N; QUAD BITS QUADS; MULTIPLY_SLICE()
 */
#define WAVES_N (BLK_N / WAVE_N)

#if TYPE == 0
#define QUAD    2
#define BITS    float
#define QUADS   float2
#elif TYPE == 3
#define QUAD    2
#define BITS    double
#define QUADS   double2
#else
#define QUAD    4
#define BITS    UINT16
#define QUADS   ushort4
#endif

#if LANES != MATRIX_LANES
#error "LANES is not what the engine has"
#endif
#if BLK_M % WAVE_M || BLK_N % WAVE_N || WAVE_M % MATRIX_M || WAVE_N % MATRIX_N || BLK_K % MATRIX_K
#error "the engine's block must divide a wave's tile, and that the work-group's"
#endif

/* rC += the products of a wave with a slice; m1, n1: where its rows and columns begin in the tile. */
#define MULTIPLY_SLICE(sA, sB)                                                  \
    UNROLL for (int k = 0; k < BLK_K; k += MATRIX_K) {                          \
        matrix_fragment_a rA[MATRIX_BLOCKS_M];                                  \
        matrix_fragment_b rB[MATRIX_BLOCKS_N];                                  \
                                                                                \
        UNROLL for (int i = 0; i < MATRIX_BLOCKS_M; i++)                        \
            rA[i] = matrix_load_a(sA, BLK_M, m1 + i * MATRIX_M, k, lane);       \
        UNROLL for (int j = 0; j < MATRIX_BLOCKS_N; j++)                        \
            rB[j] = matrix_load_b(sB, BLK_N, n1 + j * MATRIX_N, k, lane);       \
        UNROLL for (int i = 0; i < MATRIX_BLOCKS_M; i++)                        \
        UNROLL for (int j = 0; j < MATRIX_BLOCKS_N; j++)                        \
            MATRIX_MULTIPLY(rC[i][j], rA[i], rB[j]);                            \
    }
