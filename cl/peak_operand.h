/* cl/peak_operand.h - operands for the roofs of matrix engines: bits of random numbers
 *
 * Zeros would draw less power than data does, and under a power cap the clocks would rise.  The magnitudes
 * lie in [0.5, 1), the signs differ, so that sums stay finite for as long as a roof is measured.
 *
 * Takes: TYPE.
 * Gives: random_bits(), the 32 bits of one or two elements, or the upper 32 bits of one of f64.
 */
#if TYPE == TYPE_F16
#define RANDOM_MASK 0x83ff83ffu                 /* the sign and the mantissa of two elements */
#define RANDOM_HALF 0x38003800u                 /* 0.5, of both */
#elif TYPE == TYPE_BF16
#define RANDOM_MASK 0x807f807fu
#define RANDOM_HALF 0x3f003f00u
#elif TYPE == TYPE_F64
#define RANDOM_MASK 0x800fffffu
#define RANDOM_HALF 0x3fe00000u
#else
#define RANDOM_MASK 0x807fffffu
#define RANDOM_HALF 0x3f000000u
#endif

/* Of different i different: the finaliser of MurmurHash3. */
DEVICE UINT32 random_bits(UINT32 i)
{
    i = (i ^ i >> 16) * 0x85ebca6bu;
    i = (i ^ i >> 13) * 0xc2b2ae35u;
    return ((i ^ i >> 16) & RANDOM_MASK) | RANDOM_HALF;
}
