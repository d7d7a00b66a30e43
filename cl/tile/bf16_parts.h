/* cl/tile/bf16_parts.h - f32 elements in three parts of bf16 (cl/gemm/bf16x3.cl says why)
 *
 * Takes: bf16_pair_of() of atoms/nvidia.
 * Gives: BF16X3_PARTS; BF16X3_SCALE, of an element that is split; BF16X3_UNSCALE, of a sum of products, and
 *        BF16X3_LARGEST, the largest that is one; bf16x3_part() bf16x3_all_finite()
 */
#define BF16X3_PARTS   3
#define BF16X3_SCALE   65536.0f
#define BF16X3_UNSCALE (1.0f / 4294967296.0f)   /* of a product */
#define BF16X3_LARGEST 3.40282347e38f

/* Two elements as bf16; what that leaves of them stays. */
DEVICE UINT32 bf16x3_part(float *x, float *y)
{
    const UINT32 u = bf16_pair_of(*x, *y);

    *x -= BITS_FLOAT(u << 16);
    *y -= BITS_FLOAT(u & 0xffff0000u);
    return u;
}

DEVICE int bf16x3_all_finite(const float *sum, const int count)
{
    int finite = 1;

    UNROLL for (int i = 0; i < count; i++)
        finite &= ABS(sum[i]) <= BF16X3_LARGEST;
    return finite;
}
