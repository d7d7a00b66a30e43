/* cl/tile/half.h - single elements of any type, binary16 converted by its bits
 *
 * Compilers vectorise these conversions, but not vload_half and vstore_half.
 *
 * Takes  T R TYPE (cl/types.h); TYPE_C STORE_C (cl/tile/epilogue.h)
 * Gives  LOAD_BITS, of type T; STORE_BITS, of type TC
 */
#if TYPE == TYPE_F16
DEVICE R half_of(unsigned short h)
{
    const unsigned int u = h & 0x7fffu;
    const R x = u < 0x7c00u ? BITS_FLOAT(u << 13) * 5.192296858534828e33f : BITS_FLOAT(u << 13 | 0x7f800000u);

    return BITS_FLOAT(FLOAT_BITS(x) | (h & 0x8000u) << 16);
}

/* Rounds to nearest even. Subnormals: the last place of 0.5 is that of theirs. */
DEVICE unsigned short half_bits(R x)
{
    const unsigned int u = FLOAT_BITS(x), a = u & 0x7fffffffu;
    const unsigned int normal = (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13;
    const unsigned int tiny = FLOAT_BITS(BITS_FLOAT(a) + 0.5f) - 0x3f000000u;
    const unsigned int large = a > 0x7f800000u ? 0x7e00u : 0x7c00u;

    return (unsigned short)((a < 0x38800000u ? tiny : a < 0x477ff000u ? normal : large) |
                            (u >> 16 & 0x8000u));
}
#define LOAD_BITS(p, i)  half_of(((GLOBAL const unsigned short *)(p))[i])
#else
#define LOAD_BITS(p, i)  LOAD(p, i)
#endif
#if TYPE_C == TYPE_F16
#define STORE_BITS(p, i, x) (((GLOBAL unsigned short *)(p))[i] = half_bits(x))
#else
#define STORE_BITS(p, i, x) STORE_C(p, i, x)
#endif
