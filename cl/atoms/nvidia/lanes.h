/* cl/atoms/nvidia/lanes.h - what a row's kernel takes from the device: lanes of a warp, 16-byte vectors, 2^x
 *
 * The names of cl/tile/lanes.h, by instructions.  The compiler for OpenCL C splits a vector of eight 16-bit
 * elements into accesses of 8 bytes; these are of 16.  Results of 16 bits take the device's exponential,
 * which is off by 2^-22.
 *
 * Takes  T TYPE OF() (cl/types.h); load16_once() store16() store16_once() pair_of() LOWER_1 ... (memory.h);
 *        from_lane_xor() (warp.h); exp_below() (cl/tile/activation.h)
 * Gives  LANES VECTOR_RUN READ_VECTOR READ_VECTOR_ONCE power(), in 16-bit types LOG2_E power_of_2();
 *        WRITE_VECTOR, of what may leave the caches first; LANE_XOR(s, x, bits), the value of x in the lane
 *        whose number differs in these bits
 *
 * Source: the PTX ISA manual, section on ex2.
 */
#define LANES 32

#define IN_VECTOR_0 4
#define IN_VECTOR_1 8
#define IN_VECTOR_2 8
#define IN_VECTOR_3 2
#define VECTOR_RUN OF(IN_VECTOR, TYPE)

#if TYPE == TYPE_F64
DEVICE double f64_lane_xor(double x, int bits)
{
    asm volatile("{ .reg .b32 a, b; mov.b64 {a, b}, %0; shfl.sync.bfly.b32 a, a, %1, 31, 0xffffffff;"
                 " shfl.sync.bfly.b32 b, b, %1, 31, 0xffffffff; mov.b64 %0, {a, b}; }" : "+d"(x) : "r"(bits));
    return x;
}

#define LANE_XOR(s, x, bits) f64_lane_xor(x, bits)
DEVICE R power(R x) { return exp_below(x); }
#else
#define LANE_XOR(s, x, bits) from_lane_xor(x, bits)
#if TYPE == TYPE_F32
DEVICE R power(R x) { return exp_below(x); }
#else
#define LOG2_E 1.44269504f

DEVICE R power_of_2(R x)
{
    asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
    return x;
}

DEVICE R power(R x) { return power_of_2(x * LOG2_E); }
#endif
#endif

#if TYPE == TYPE_F64
DEVICE void read_vector(R *r, GLOBAL const T *p)
{
    asm volatile("ld.global.v2.f64 {%0, %1}, [%2];" : "=d"(r[0]), "=d"(r[1]) : "l"((unsigned INT64)p));
}

DEVICE void write_vector(GLOBAL T *p, const R *r)
{
    STORE_PAIR_3(p, r[0], r[1]);
}

#define READ_VECTOR_ONCE READ_VECTOR
#else
DEVICE void vector_of(R *r, const UINT32 *u)
{
    UNROLL for (int i = 0; i < 4; i++) {
#if TYPE == TYPE_F32
        r[i] = BITS_FLOAT(u[i]);
#else
        r[2 * i]     = OF(LOWER, TYPE)(u[i]);
        r[2 * i + 1] = OF(UPPER, TYPE)(u[i]);
#endif
    }
}

DEVICE void read_vector(R *r, GLOBAL const T *p)
{
    UINT32 u[4];

    asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(u[0]), "=r"(u[1]), "=r"(u[2]), "=r"(u[3]) : "l"((unsigned INT64)p));
    vector_of(r, u);
}

/* In 16 bits what is used once leaves the caches first; in f32, gradients would take longer. */
#if TYPE == TYPE_F32
DEVICE void write_vector(GLOBAL T *p, const R *r)
{
    UINT32 u[4];

    UNROLL for (int i = 0; i < 4; i++)
        u[i] = FLOAT_BITS(r[i]);
    store16(p, u, 1);
}

#define READ_VECTOR_ONCE READ_VECTOR
#else
DEVICE void read_vector_once(R *r, GLOBAL const T *p)
{
    UINT32 u[4];

    load16_once(u, p, 0, 1);
    vector_of(r, u);
}

DEVICE void write_vector(GLOBAL T *p, const R *r)
{
    UINT32 u[4];

    UNROLL for (int i = 0; i < 4; i++)
        u[i] = pair_of(r[2 * i], r[2 * i + 1]);
    store16_once(p, u);
}

#define READ_VECTOR_ONCE(r, p) read_vector_once(r, p)
#endif
#endif

#define READ_VECTOR(r, p)  read_vector(r, p)
#define WRITE_VECTOR(p, r) write_vector(p, r)
