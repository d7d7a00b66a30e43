/* cuda/words.h - the words that kernels are written in, as CUDA C++.
 *
 * cl/words.h gives the same words, in the same order, as OpenCL C:
 * `diff -y cl/words.h cuda/words.h` is the whole difference between the two.
 * tests/words.sh fails when one has a word that the other lacks.
 *
 * It is built with --fmad=false: a multiply-add is fused only where FMA() is written, as in OpenCL C.
 */

/* functions */
#define KERNEL(items)        extern "C" __global__ __launch_bounds__(items)
#define KERNEL_ALONE(items)  extern "C" __global__ __launch_bounds__(items, 1)
#define KERNEL_ROOM(items, n) extern "C" __global__ __launch_bounds__(items, n)
#define ROOM_FOR(n)
#define DEVICE               static __device__ __forceinline__

/* address spaces */
#define GLOBAL
#define LOCAL
#define LOCAL_ARRAY(T, v, n) __shared__ __align__(64) T v[n]
#define CONSTANT             static __device__ const
#define LOCAL_ADDRESS(p)     ((unsigned int)__cvta_generic_to_shared(p))

/* more local memory than the device reports: LARGE_LOCAL once in a file, for the kernel of that name, and
 * LARGE_LOCAL_ARRAY in that kernel */
#define LARGE_LOCAL(kernel, n) extern "C" __device__ const int vn_large_local_##kernel = n; \
                             extern __shared__ __align__(1024) unsigned char vn_large[];
#define LARGE_LOCAL_ARRAY(v, n) unsigned char *v = vn_large

/* prefixes inline assembly that needs the exact architecture */
#define ARCH_ONLY            ""

/* work-group and work-item ids */
#define GROUP_ID(d)          ((int)((d) == 0 ? blockIdx.x : (d) == 1 ? blockIdx.y : blockIdx.z))
#define LOCAL_ID()           ((int)threadIdx.x)

/* a barrier of the work-group; stores to local memory before it are visible after it */
#define BARRIER()            __syncthreads()

/* on an int in global memory; both return its old value */
#define ATOMIC_ADD(p, x)     atomicAdd(p, x)
#define ATOMIC_CAS(p, old, x) atomicCAS(p, old, x)

/* hints */
#define UNROLL               _Pragma("unroll")
#define NO_UNROLL            _Pragma("unroll 1")
#define PREFETCH(p)          ((void)(p))
#define RESTRICT             __restrict__

/* integers of a given width; a view of a tensor: s0 its start, s6 its last stride, s5 the last but one */
#define INT64                long long
#define UINT16               unsigned short
#define UINT32               unsigned int
#define UINT64               unsigned long long
#define VIEW                 view8

/* reinterpret a scalar as its bits, and back */
#define FLOAT_BITS(x)        __float_as_uint(x)
#define BITS_FLOAT(u)        __uint_as_float(u)
#define DOUBLE_BITS(x)       ((unsigned long long)__double_as_longlong(x))
#define BITS_DOUBLE(u)       __longlong_as_double((long long)(u))

/* binary16 in memory, float in registers */
#define HALF                 unsigned short
#define HALF_LOAD(p, i)      half_load((p) + (i))
#define HALF_STORE(p, i, x)  half_store((p) + (i), x)

/* vectors of n elements: float or double; binary16 or bfloat16 in memory, float in registers */
#define VECTOR_(T, n)        vec<T, n>
#define VECTOR(T, n)         VECTOR_(T, n)
#define VLOAD_(n, p)         vec_load<n>(p)
#define VLOAD(n, p)          VLOAD_(n, p)
#define VSTORE_(n, p, v)     vec_store(p, v)
#define VSTORE(n, p, v)      vec_store(p, v)
#define VHALF_LOAD_(n, p)    vec_half_load<n>(p)
#define VHALF_LOAD(n, p)     VHALF_LOAD_(n, p)
#define VHALF_STORE_(n, p, v) vec_half_store(p, v)
#define VHALF_STORE(n, p, v) vec_half_store(p, v)
#define VBF16_LOAD_(n, p)    vec_bf16_load<n>(p)
#define VBF16_LOAD(n, p)     VBF16_LOAD_(n, p)

/* the same as one access to global memory: p is aligned to the vector's size */
#define VLOAD_ALIGNED(V, p)      (*(GLOBAL const V *)(p))
#define VSTORE_ALIGNED(V, p, v)  (*(GLOBAL V *)(p) = (v))
#define VHALF_LOAD_ALIGNED_(n, p) vec_half_load_aligned<n>(p)
#define VHALF_LOAD_ALIGNED(n, p) VHALF_LOAD_ALIGNED_(n, p)
#define VHALF_STORE_ALIGNED_(n, p, v) vec_half_store_aligned(p, v)
#define VHALF_STORE_ALIGNED(n, p, v) VHALF_STORE_ALIGNED_(n, p, v)
/* likewise past the caches of a CPU: for results that none of them holds until they are read */
#define VSTORE_STREAM(V, p, v)   (*(GLOBAL V *)(p) = (v))
/* declares a vector type like V that is aligned to `bytes` only */
#define UNALIGNED(V, name, bytes) typedef V name

/* interleaves a and b: low and high become the halves of a0 b0 a1 b1 ... */
#define ZIP(low, high, a, b) zip(low, high, a, b)

/* a vector as another vector type: CONVERT its values, AS reinterprets its bits */
#define CONVERT_(V, v)       convert_to<V>(v)
#define CONVERT(V, v)        convert_to<V>(v)
#define AS_(V, v)            bits_as<V>(v)
#define AS(V, v)             bits_as<V>(v)

/* arithmetic that the two languages spell differently, on scalars or vectors */
#define MAX(a, b)            max_of(a, b)
#define MIN(a, b)            min_of(a, b)
#define ABS(a)               abs_of(a)
#define RINT(a)              rint_of(a)
#define FMA(a, b, c)         fma_of(a, b, c)
#define LOG(a)               log_of(a)

/* the device's own instructions for 2^a and 1 / a, on floats: fast, and off by few units in the last place */
#define NATIVE_EXP2(a)       exp2f(a)
#define NATIVE_RECIP(a)      __frcp_rn(a)

/* a < b ? x : y, so y where a or b is NaN; on scalars, or elementwise on vectors */
#define PICK(a, b, x, y)     pick(a, b, x, y)

/* ---- what OpenCL C has built in and CUDA C++ lacks -------------------------------- */

struct __align__(64) view8 { long long s0, s1, s2, s3, s4, s5, s6, s7; };

DEVICE float half_float(unsigned short h)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
    return x;
}

DEVICE unsigned short float_half(float x)
{
    unsigned short h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}

DEVICE float half_load(const unsigned short *p)         { return half_float(*p); }
DEVICE void  half_store(unsigned short *p, float x)      { *p = float_half(x); }

DEVICE float  max_of(float a, float b)             { return fmaxf(a, b); }
DEVICE double max_of(double a, double b)           { return fmax(a, b); }
DEVICE float  min_of(float a, float b)             { return fminf(a, b); }
DEVICE double min_of(double a, double b)           { return fmin(a, b); }
DEVICE float  abs_of(float a)                      { return fabsf(a); }
DEVICE double abs_of(double a)                     { return fabs(a); }
DEVICE float  rint_of(float a)                     { return rintf(a); }
DEVICE double rint_of(double a)                    { return rint(a); }
DEVICE float  fma_of(float a, float b, float c)    { return fmaf(a, b, c); }
DEVICE double fma_of(double a, double b, double c) { return fma(a, b, c); }
DEVICE float  log_of(float a)                      { return logf(a); }
DEVICE double log_of(double a)                     { return log(a); }
template <class A, class E> DEVICE E pick(A a, A b, E x, E y) { return a < b ? x : y; }

template <class E, int n> struct __align__(sizeof(E) * n < 16 ? sizeof(E) * n : 16) vec {
    typedef E element;
    E e[n];
    __device__ vec() {}
    __device__ vec(E x) { UNROLL for (int i = 0; i < n; i++) e[i] = x; }
};
#define EACH template <class E, int n> DEVICE
#define ELEMENTWISE UNROLL for (int i = 0; i < n; i++)
EACH vec<E, n> operator+(vec<E, n> a, vec<E, n> b) { ELEMENTWISE a.e[i] += b.e[i]; return a; }
EACH vec<E, n> &operator+=(vec<E, n> &a, vec<E, n> b) { return a = a + b; }
EACH vec<E, n> operator-(vec<E, n> a, vec<E, n> b) { ELEMENTWISE a.e[i] -= b.e[i]; return a; }
EACH vec<E, n> operator*(vec<E, n> a, vec<E, n> b) { ELEMENTWISE a.e[i] *= b.e[i]; return a; }
EACH vec<E, n> operator/(vec<E, n> a, vec<E, n> b) { ELEMENTWISE a.e[i] /= b.e[i]; return a; }
EACH vec<E, n> operator&(vec<E, n> a, vec<E, n> b) { ELEMENTWISE a.e[i] &= b.e[i]; return a; }
EACH vec<E, n> operator|(vec<E, n> a, vec<E, n> b) { ELEMENTWISE a.e[i] |= b.e[i]; return a; }
EACH vec<E, n> operator<<(vec<E, n> a, int bits)   { ELEMENTWISE a.e[i] <<= bits; return a; }
EACH vec<E, n> operator>>(vec<E, n> a, int bits)   { ELEMENTWISE a.e[i] >>= bits; return a; }
EACH vec<E, n> max_of(vec<E, n> a, vec<E, n> b)    { ELEMENTWISE a.e[i] = max_of(a.e[i], b.e[i]); return a; }
EACH vec<E, n> abs_of(vec<E, n> a)                 { ELEMENTWISE a.e[i] = abs_of(a.e[i]); return a; }
EACH vec<E, n> rint_of(vec<E, n> a)                { ELEMENTWISE a.e[i] = rint_of(a.e[i]); return a; }
EACH vec<E, n> fma_of(vec<E, n> a, vec<E, n> b, vec<E, n> c)
{
    ELEMENTWISE c.e[i] = fma_of(a.e[i], b.e[i], c.e[i]);
    return c;
}
EACH void zip(vec<E, n> &low, vec<E, n> &high, vec<E, n> a, vec<E, n> b)
{
    ELEMENTWISE (i < n / 2 ? low : high).e[2 * i % n] = a.e[i],
          (i < n / 2 ? low : high).e[2 * i % n + 1] = b.e[i];
}
EACH void vec_store(E *p, vec<E, n> v)             { ELEMENTWISE p[i] = v.e[i]; }
template <int n, class E> DEVICE vec<E, n> vec_load(const E *p)
{
    vec<E, n> v;
    ELEMENTWISE v.e[i] = p[i];
    return v;
}
template <int n> DEVICE vec<float, n> vec_half_load(const unsigned short *p)
{
    vec<float, n> v;
    ELEMENTWISE v.e[i] = half_load(p + i);
    return v;
}
template <int n> DEVICE vec<float, n> vec_bf16_load(const unsigned short *p)
{
    vec<float, n> v;
    ELEMENTWISE v.e[i] = __uint_as_float((unsigned int)p[i] << 16);
    return v;
}
template <int n> DEVICE void vec_half_store(unsigned short *p, vec<float, n> v)
{
    ELEMENTWISE half_store(p + i, v.e[i]);
}
template <int n> DEVICE vec<float, n> vec_half_load_aligned(const unsigned short *p)
{
    const vec<unsigned short, n> h = *(const vec<unsigned short, n> *)p;
    vec<float, n> v;
    ELEMENTWISE v.e[i] = half_float(h.e[i]);
    return v;
}
template <int n> DEVICE void vec_half_store_aligned(unsigned short *p, vec<float, n> v)
{
    vec<unsigned short, n> h;
    ELEMENTWISE h.e[i] = float_half(v.e[i]);
    *(vec<unsigned short, n> *)p = h;
}
template <class A, class E, int n> DEVICE vec<E, n> pick(vec<A, n> a, vec<A, n> b, vec<E, n> x, vec<E, n> y)
{
    ELEMENTWISE y.e[i] = a.e[i] < b.e[i] ? x.e[i] : y.e[i];
    return y;
}
template <class V, class E, int n> DEVICE V convert_to(vec<E, n> v)
{
    V w;
    ELEMENTWISE w.e[i] = (typename V::element)v.e[i];
    return w;
}
template <class V, class E, int n> DEVICE V bits_as(vec<E, n> v)
{
    V w;
    static_assert(sizeof w == sizeof v, "as many bits");
    ELEMENTWISE memcpy(&w.e[i], &v.e[i], sizeof(E));
    return w;
}
#undef EACH
#undef ELEMENTWISE
