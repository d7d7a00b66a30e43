/* cl/tile/stages.h - steps of k of the slices that warps multiply by mma.sync
 *
 * While the slices of one stage (slices.h) are multiplied, STAGES - 1 others are copied to.
 *
 * Takes  fragment.h, slices.h; STAGES; VEC_PARTS, into how many copies a vector may be cut
 * Gives  STEPS, of a warp in a slice; LOADED_A LOADED_B, blocks of one load; LOADS_N; BUFFERS_A, steps of A
 *        that registers hold
 */
#define STEPS     (BLK_K / PARTS_K / STEP_K)
#define LOADED_A  BLOCKS_LOADED(MN_MAJOR_A)
#define LOADED_B  BLOCKS_LOADED(MN_MAJOR_B)
#define LOADS_N   (BLOCKS_N / LOADED_B)
#define BUFFERS_A (FRAGMENT_REGS == 2 ? 2 : 1)

#if STEPS % BUFFERS_A || BLK_K % (PARTS_K * STEP_K)
#error "BLK_K must hold an even number of steps of k"
#endif
#if WARP_M % (8 * LOADED_A) || WARP_N % (8 * LOADED_B) || WARP_M % MMA_M
#error "a warp's tile must be made of whole loads"
#endif
#if ITEMS % (VECS_A * VEC_PARTS) || ITEMS % (VECS_B * VEC_PARTS) || \
    BLK_M * BLK_K / VEC % ITEMS || BLK_N * BLK_K / VEC % ITEMS
#error "the work-items must share a slice evenly"
#endif
