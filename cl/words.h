/* cl/words.h - the words that kernels are written in, as OpenCL C.
 *
 * cuda/words.h gives the same words, in the same order, as CUDA C++:
 * `diff -y cl/words.h cuda/words.h` is the whole difference between the two.
 * tests/words.sh fails when one has a word that the other lacks.
 *
 * Contraction is off: a multiply-add is fused only where FMA() is written, so that results are
 * bit-identical on every device.
 */
#pragma OPENCL FP_CONTRACT OFF

/* functions */
#define KERNEL(items)        __kernel __attribute__((reqd_work_group_size(items, 1, 1)))
#define KERNEL_ALONE(items)  KERNEL(items)         /* a compute unit holds one work-group of it */
#define KERNEL_ROOM(items, n) KERNEL(items)        /* ... has room for n; begins with ROOM_FOR(n) */
#define ROOM_FOR(n)          asm volatile("//@room %0" :: "n"(n))
#define DEVICE               static inline __attribute__((always_inline))

/* address spaces */
#define GLOBAL               __global
#define LOCAL                __local
#define LOCAL_ARRAY(T, v, n) __local T v[n] __attribute__((aligned(64)))
#define CONSTANT             __constant
#define LOCAL_ADDRESS(p)     ((unsigned int)(ulong)(p))

/* more local memory than the device reports: LARGE_LOCAL once in a file, for the kernel of that name, and
 * LARGE_LOCAL_ARRAY in that kernel */
#define LARGE_LOCAL(kernel, n)
#define LARGE_LOCAL_ARRAY(v, n) __local uchar v[n] __attribute__((aligned(1024)))

/* prefixes inline assembly that needs the exact architecture */
#define ARCH_ONLY            "//@ "

/* work-group and work-item ids */
#define GROUP_ID(d)          ((int)get_group_id(d))
#define LOCAL_ID()           ((int)get_local_id(0))

#ifdef GRID_IN_LINE          /* all groups lie along the third dimension: backends/opencl/grid.c says why */
DEVICE uint group_in_line(int d)
{
    const uint at = get_group_id(2), high = get_global_offset(2);
    const uint columns = (uint)get_global_offset(0) | (high < 0x8000 ? high << 16 : 0);
    const uint rows = (uint)get_global_offset(1) | (high < 0x8000 ? 0 : (high - 0x8000) << 16);
    /* volatile: as opaque to the compiler as get_group_id(), else some kernels spill more registers */
    const volatile uint id = d == 0 ? at % columns : d == 1 ? at / columns % rows : at / columns / rows;

    return id;
}
#  define get_group_id         group_in_line
#  define reqd_work_group_size work_group_size_hint
#endif

/* a barrier of the work-group; stores to local memory before it are visible after it */
#define BARRIER()            barrier(CLK_LOCAL_MEM_FENCE)

/* on an int in global memory; both return its old value */
#define ATOMIC_ADD(p, x)     atomic_add(p, x)
#define ATOMIC_CAS(p, old, x) atomic_cmpxchg(p, old, x)

/* hints */
#define UNROLL               _Pragma("unroll")
#define NO_UNROLL            _Pragma("unroll 1")
#define PREFETCH(p)          __builtin_prefetch((const void *)(UINT64)(p), 0, 3)
#define RESTRICT             restrict

/* integers of a given width; a view of a tensor: s0 its start, s6 its last stride, s5 the last but one */
#define INT64                long
#define UINT16               ushort
#define UINT32               uint
#define UINT64               ulong
#define VIEW                 long8

/* reinterpret a scalar as its bits, and back */
#define FLOAT_BITS(x)        as_uint(x)
#define BITS_FLOAT(u)        as_float(u)
#define DOUBLE_BITS(x)       as_ulong(x)
#define BITS_DOUBLE(u)       as_double(u)

/* binary16 in memory, float in registers */
#define HALF                 half
#ifdef __F16C__              /* PoCL converts single elements bit by bit, and vectors by instructions */
#  define HALF_LOAD(p, i)      half_load((p) + (i))
#  define HALF_STORE(p, i, x)  half_store((p) + (i), x)
#  define HALF_IN(SPACE)                                                 \
DEVICE float __attribute__((overloadable)) half_load(SPACE const half *p) \
{                                                                        \
    const ushort4 u = (ushort4)(*(SPACE const ushort *)p, 0, 0, 0);      \
    return vload_half4(0, (const half *)&u).x;                           \
}                                                                        \
DEVICE void __attribute__((overloadable)) half_store(SPACE half *p, float x) \
{                                                                        \
    ushort4 u;                                                           \
    vstore_half4_rte((float4)(x), 0, (half *)&u);                        \
    *(SPACE ushort *)p = u.x;                                            \
}
HALF_IN(__global)
HALF_IN(__local)
HALF_IN(__private)
#else
#define HALF_LOAD(p, i)      vload_half(i, p)
#define HALF_STORE(p, i, x)  vstore_half_rte(x, i, p)
#endif

/* vectors of n elements: float or double; binary16 or bfloat16 in memory, float in registers */
#define VECTOR_(T, n)        T##n
#define VECTOR(T, n)         VECTOR_(T, n)
#define VLOAD_(n, p)         vload##n(0, p)
#define VLOAD(n, p)          VLOAD_(n, p)
#define VSTORE_(n, p, v)     vstore##n(v, 0, p)
#define VSTORE(n, p, v)      VSTORE_(n, p, v)
#define VHALF_LOAD_(n, p)    vload_half##n(0, p)
#define VHALF_LOAD(n, p)     VHALF_LOAD_(n, p)
#define VHALF_STORE_(n, p, v) vstore_half##n##_rte(v, 0, p)
#define VHALF_STORE(n, p, v) VHALF_STORE_(n, p, v)
#define VBF16_LOAD_(n, p)    as_float##n(convert_uint##n(vload##n(0, p)) << 16)
#define VBF16_LOAD(n, p)     VBF16_LOAD_(n, p)

/* the same as one access to global memory: p is aligned to the vector's size */
#define VLOAD_ALIGNED(V, p)      (*(GLOBAL const V *)(p))
#define VSTORE_ALIGNED(V, p, v)  (*(GLOBAL V *)(p) = (v))
#define VHALF_LOAD_ALIGNED_(n, p) vloada_half##n(0, p)
#define VHALF_LOAD_ALIGNED(n, p) VHALF_LOAD_ALIGNED_(n, p)
#define VHALF_STORE_ALIGNED_(n, p, v) vstorea_half##n##_rte(v, 0, p)
#define VHALF_STORE_ALIGNED(n, p, v) VHALF_STORE_ALIGNED_(n, p, v)
/* likewise past the caches of a CPU: for results that none of them holds until they are read */
#define VSTORE_STREAM(V, p, v)   __builtin_nontemporal_store(v, (GLOBAL V *)(p))
/* declares a vector type like V that is aligned to `bytes` only */
#define UNALIGNED(V, name, bytes) typedef V name __attribute__((aligned(bytes)))

/* interleaves a and b: low and high become the halves of a0 b0 a1 b1 ... */
#define ZIP(low, high, a, b) ((low).even = (a).lo, (low).odd = (b).lo, \
                             (high).even = (a).hi, (high).odd = (b).hi)

/* a vector as another vector type: CONVERT its values, AS reinterprets its bits */
#define CONVERT_(V, v)       convert_##V(v)
#define CONVERT(V, v)        CONVERT_(V, v)
#define AS_(V, v)            as_##V(v)
#define AS(V, v)             AS_(V, v)

/* arithmetic that the two languages spell differently, on scalars or vectors */
#define MAX(a, b)            fmax(a, b)
#define MIN(a, b)            fmin(a, b)
#define ABS(a)               fabs(a)
#define RINT(a)              rint(a)
#define FMA(a, b, c)         fma(a, b, c)
#define LOG(a)               log(a)

/* the device's own instructions for 2^a and 1 / a, on floats: fast, and off by few units in the last place */
#define NATIVE_EXP2(a)       native_exp2(a)
#define NATIVE_RECIP(a)      native_recip(a)

/* a < b ? x : y, so y where a or b is NaN; on scalars, or elementwise on vectors */
#define PICK(a, b, x, y)     ((a) < (b) ? (x) : (y))
