/* cl/types.h - one kernel text for every element type.
 *
 * TYPE is a vn_type. Elements in memory are of type T; arithmetic is done in type R.
 *
 *            f32     f16    bf16            f64
 *   T        float   half   unsigned short  double
 *   R        float   float  float           double
 *
 * R_IS_T is 1 where T and R are the same type. WIDE is 1 where an offset of the problem needs 64 bits.
 */
#define TYPE_F32  0                             /* the values of vn_type */
#define TYPE_F16  1
#define TYPE_BF16 2
#define TYPE_F64  3

#define FAST_PTX  2                             /* a value of FAST_ACT: by NVIDIA's instructions */

#if WIDE
#define INDEX       INT64
#define BYTE_OFFSET INT64
#else
#define INDEX       int
#define BYTE_OFFSET UINT32                      /* without a sign: the shortest addresses */
#endif

/* bfloat16 from the bits u of a binary32, rounded to nearest even; NaN stays NaN. U is the type of u. */
#define BF16_BITS(U, u)                                                             \
    PICK((U)0x7f800000u, (u) & (U)0x7fffffffu, ((u) >> 16) | (U)0x40u,              \
         ((u) + (U)0x7fffu + (((u) >> 16) & (U)1u)) >> 16)

DEVICE unsigned short bf16_bits(float x)
{
    const UINT32 u = FLOAT_BITS(x);

    return (unsigned short)BF16_BITS(UINT32, u);
}

/* The words of each type, by its number: what an element is in memory, and how it is read and written. */
#define T_OF_0                 float
#define BYTES_0                4
#define BITS_OF_0              UINT32
#define LOAD_0(p, i)           ((p)[i])
#define STORE_0(p, i, x)       ((p)[i] = (x))
#define LOAD_VECTOR_0(n, p)    VLOAD(n, p)
#define STORE_VECTOR_0(n, p, v)  VSTORE(n, p, v)
#define LOAD_ALIGNED_0(n, p)     VLOAD_ALIGNED(VECTOR(float, n), p)
#define STORE_ALIGNED_0(n, p, v) VSTORE_ALIGNED(VECTOR(float, n), p, v)
#define STORE_STREAM_0(n, p, v)  VSTORE_STREAM(VECTOR(float, n), p, v)

#define T_OF_1                 HALF
#define BYTES_1                2
#define BITS_OF_1              UINT16
#define LOAD_1(p, i)           HALF_LOAD(p, i)
#define STORE_1(p, i, x)       HALF_STORE(p, i, x)
#define LOAD_VECTOR_1(n, p)    VHALF_LOAD(n, p)
#define STORE_VECTOR_1(n, p, v)  VHALF_STORE(n, p, v)
#define LOAD_ALIGNED_1(n, p)     VHALF_LOAD_ALIGNED(n, p)
#define STORE_ALIGNED_1(n, p, v) VHALF_STORE_ALIGNED(n, p, v)
#define STORE_STREAM_1(n, p, v)  VHALF_STORE_ALIGNED(n, p, v)

#define T_OF_2                 unsigned short
#define BYTES_2                2
#define BITS_OF_2              UINT16
#define LOAD_2(p, i)           BITS_FLOAT((unsigned int)(p)[i] << 16)
#define STORE_2(p, i, x)       ((p)[i] = bf16_bits(x))
#define LOAD_VECTOR_2(n, p)    VBF16_LOAD(n, p)
#define BF16_VECTOR(n, v) \
    CONVERT(VECTOR(UINT16, n), BF16_BITS(VECTOR(UINT32, n), AS(VECTOR(UINT32, n), v)))
#define STORE_VECTOR_2(n, p, v)  VSTORE(n, p, BF16_VECTOR(n, v))
#define LOAD_ALIGNED_2(n, p) \
    AS(VECTOR(float, n), CONVERT(VECTOR(UINT32, n), VLOAD_ALIGNED(VECTOR(UINT16, n), p)) << 16)
#define STORE_ALIGNED_2(n, p, v) VSTORE_ALIGNED(VECTOR(UINT16, n), p, BF16_VECTOR(n, v))
#define STORE_STREAM_2(n, p, v)  VSTORE_STREAM(VECTOR(UINT16, n), p, BF16_VECTOR(n, v))

#define T_OF_3                 double
#define BYTES_3                8
#define BITS_OF_3              UINT64
#define LOAD_3(p, i)           ((p)[i])
#define STORE_3(p, i, x)       ((p)[i] = (x))
#define LOAD_VECTOR_3(n, p)    VLOAD(n, p)
#define STORE_VECTOR_3(n, p, v)  VSTORE(n, p, v)
#define LOAD_ALIGNED_3(n, p)     VLOAD_ALIGNED(VECTOR(double, n), p)
#define STORE_ALIGNED_3(n, p, v) VSTORE_ALIGNED(VECTOR(double, n), p, v)
#define STORE_STREAM_3(n, p, v)  VSTORE_STREAM(VECTOR(double, n), p, v)

/* OF(LOAD, TYPE) is the word LOAD of that type, whose number is a literal. */
#define OF_(word, type)        word##_##type
#define OF(word, type)         OF_(word, type)

#define T                      OF(T_OF, TYPE)
#define T_BYTES                OF(BYTES, TYPE)
#define T_BITS                 OF(BITS_OF, TYPE)    /* as many bits, to be copied */
#define LOAD(p, i)             OF(LOAD, TYPE)(p, i)
#define STORE(p, i, x)         OF(STORE, TYPE)(p, i, x)
#define LOAD_VECTOR(n, p)      OF(LOAD_VECTOR, TYPE)(n, p)
#define STORE_VECTOR(n, p, v)  OF(STORE_VECTOR, TYPE)(n, p, v)
#define LOAD_ALIGNED(n, p)     OF(LOAD_ALIGNED, TYPE)(n, p)
#define STORE_ALIGNED(n, p, v) OF(STORE_ALIGNED, TYPE)(n, p, v)
#define STORE_STREAM(n, p, v)  OF(STORE_STREAM, TYPE)(n, p, v)

#if TYPE == TYPE_F64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define R                      double
#elif TYPE == TYPE_F32 || TYPE == TYPE_F16 || TYPE == TYPE_BF16
#define R                      float
#else
#error "TYPE must be a vn_type"
#endif
#define R_IS_T                 (TYPE == TYPE_F32 || TYPE == TYPE_F64)

#define ZERO ((R)0)

/* a / b, without the division where a < b, the usual case: GPUs have no integer divider. */
DEVICE int quotient(int a, int b)
{
    return a < b ? 0 : a / b;
}

/* a / b, both below 2^31, b above 0; by: b as a prepared divisor (vn__divisor()), a factor and a shift. */
DEVICE int divided(int a, INT64 by)
{
    return (int)((UINT64)(UINT32)a * (UINT32)by >> (int)(by >> 32));
}

/* The offset at which batch z of a tensor begins; v is its VIEW, e the extents, s1 to s4 batch dimensions. */
DEVICE INDEX batch_offset(VIEW v, VIEW e, int z)
{
    if (z == 0)                                 /* the usual case */
        return (INDEX)v.s0;

    const int z4 = z / (int)e.s4, z3 = z4 / (int)e.s3, z2 = z3 / (int)e.s2;

    return (INDEX)v.s0 + (z - z4 * (int)e.s4) * (INDEX)v.s4 + (z4 - z3 * (int)e.s3) * (INDEX)v.s3
         + (z3 - z2 * (int)e.s2) * (INDEX)v.s2 + z2 * (INDEX)v.s1;
}

/* The same for kernels that ask for each tile: without divisions where there is one batch dimension. */
DEVICE INDEX batch_offset_of_one(VIEW v, VIEW e, int z)
{
    return z < (int)e.s4 ? (INDEX)v.s0 + z * (INDEX)v.s4 : batch_offset(v, e, z);
}
