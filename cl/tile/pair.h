/* cl/tile/pair.h - two elements of 16 bits in a word of 32, the first in the low half
 *
 * Takes  T TYPE bf16_bits() (cl/types.h)
 * Gives  pair_of(): rounded to nearest even
 */
DEVICE UINT32 pair_of(float x, float y)
{
    UINT16 bits[2];

#if TYPE == TYPE_F16
    HALF_STORE((HALF *)bits, 0, x);
    HALF_STORE((HALF *)bits, 1, y);
#else
    bits[0] = bf16_bits(x);
    bits[1] = bf16_bits(y);
#endif
    return (UINT32)bits[0] | (UINT32)bits[1] << 16;
}
