/* cl/peak_wgmma.cl - the roof of NVIDIA's sm_90: products by wgmma, both operands in local memory
 *
 * Each of the two warpgroups of a work-group multiplies 64 rows by 256 columns, a slice of 128 bytes of K in
 * each round: four products.  One slice is in flight while the next is issued.
 *
 * Source of the method: that of cl/peak.cl; of the instruction: cl/atoms/nvidia/wgmma.h.
 */
#define ITEMS  256
#define ROWS   (128 + 256)                      /* of A, then of B; 128 bytes each */

#if TYPE == TYPE_F32
#define MULTIPLY(d, a, b) WGMMA(256, WGMMA_TF32, "", d, a, b, 1)
#elif TYPE == TYPE_BF16
#define MULTIPLY(d, a, b) WGMMA(256, WGMMA_BF16, WGMMA_MAJOR(0, 0), d, a, b, 1)
#else
#define MULTIPLY(d, a, b) WGMMA(256, WGMMA_F16, WGMMA_MAJOR(0, 0), d, a, b, 1)
#endif

LARGE_LOCAL(matrix_peak, ROWS * 128)

KERNEL(ITEMS) void matrix_peak(GLOBAL float *y, int rounds)
{
    LARGE_LOCAL_ARRAY(s, ROWS * 128);

    LOCAL UINT32 *words = (LOCAL UINT32 *)s;
    const int me = LOCAL_ID();
    const UINT32 at = warp_uniform(LOCAL_ADDRESS(s));
    const UINT32 a = wgmma_descriptor(at + warp_uniform((UINT32)me / 128) * 8192, 64 * 128);
    const UINT32 b = wgmma_descriptor(at + 128 * 128, 256 * 128);
    float d[128];

    for (int i = me; i < ROWS * 32; i += ITEMS)
        words[i] = random_bits((UINT32)i);
    fence_async_proxy();
    BARRIER();
    UNROLL for (int i = 0; i < 128; i++)
        d[i] = 0;
    for (int r = 0; r < rounds; r++) {
        wgmma_begin();
        UNROLL for (int k = 0; k < 4; k++)
            MULTIPLY(d, wgmma_at(a + k * 2), wgmma_at(b + k * 2));
        wgmma_commit();
        WGMMA_WAIT(256, d, "1");
    }
    WGMMA_WAIT(256, d, "0");
    UNROLL for (int i = 1; i < 128; i++)
        d[0] += d[i];
    y[GROUP_ID(0) * ITEMS + me] = d[0];
}
