/* SPDX-License-Identifier: Apache-2.0
 *
 * amdgcn.h - those functions of OpenCL C that kernels call, for AMD's GPUs without a library
 *
 * clang compiles for them by itself, but what would be AMD's (or libclc's) library is calls into
 * nowhere, which cost registers and a stack.  Said here in clang's own built-in functions, what
 * comes out is what such a library gives.
 */
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

#define get_local_id(d) __builtin_amdgcn_workitem_id_x()
#define get_group_id(d) __builtin_amdgcn_workgroup_id_x()
#define barrier(flags)                                          \
    do {                                                        \
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");  \
        __builtin_amdgcn_s_barrier();                           \
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");  \
    } while (0)

#define vload_half(i, p)         ((float)(p)[i])
#define vstore_half_rte(x, i, p) ((p)[i] = (half)(x))
#define vstorea_half4_rte(v, i, p) (*(__global half4 *)(p) = __builtin_convertvector(v, half4))

/* Vectors in memory lie as their elements do. */
typedef ushort4 vector_u16 __attribute__((aligned(2)));
typedef float2  vector_f32 __attribute__((aligned(4)));
typedef double2 vector_f64 __attribute__((aligned(8)));
typedef float4  vector_private_f32 __attribute__((aligned(4)));
typedef double2 vector_private_f64 __attribute__((aligned(8)));

#define FUNCTION static inline __attribute__((overloadable, always_inline))
FUNCTION ushort4 at_vector(__global const ushort *p) { return *(__global const vector_u16 *)p; }
FUNCTION float2  at_vector(__global const float *p)  { return *(__global const vector_f32 *)p; }
FUNCTION double2 at_vector(__global const double *p) { return *(__global const vector_f64 *)p; }
FUNCTION float4  at_vector(__private const float *p) { return (float4)(p[0], p[1], p[2], p[3]); }
FUNCTION double4 at_vector(__private const double *p) { return (double4)(p[0], p[1], p[2], p[3]); }
FUNCTION uint4   at_vector(__private const uint *p)   { return (uint4)(p[0], p[1], p[2], p[3]); }
#define vload4(i, p) at_vector(p)
FUNCTION float2  at_pair(__global const float *p)    { return *(__global const vector_f32 *)p; }
FUNCTION double2 at_pair(__global const double *p)   { return *(__global const vector_f64 *)p; }
FUNCTION double2 at_pair(__private const double *p)  { return (double2)(p[0], p[1]); }
#define vload2(i, p) at_pair(p)
#define vloada_half4(i, p) __builtin_convertvector(*(__global const half4 *)(p), float4)
#ifndef vstore4
#define vstore4(v, i, p) (*(vector_private_f32 *)(p) = (v))
#define vstore2(v, i, p) (*(vector_private_f64 *)(p) = (v))
#endif

FUNCTION float  fma_of_(float a, float b, float c)    { return __builtin_fmaf(a, b, c); }
FUNCTION double fma_of_(double a, double b, double c) { return __builtin_fma(a, b, c); }
FUNCTION float4 fma_of_(float4 a, float4 b, float4 c)
{
    return (float4)(fma_of_(a.x, b.x, c.x), fma_of_(a.y, b.y, c.y), fma_of_(a.z, b.z, c.z),
                    fma_of_(a.w, b.w, c.w));
}
FUNCTION double2 fma_of_(double2 a, double2 b, double2 c)
{
    return (double2)(fma_of_(a.x, b.x, c.x), fma_of_(a.y, b.y, c.y));
}
FUNCTION float  fabs_(float a)                        { return __builtin_fabsf(a); }
FUNCTION double fabs_(double a)                       { return __builtin_fabs(a); }
FUNCTION float  fmax_(float a, float b)               { return __builtin_fmaxf(a, b); }
FUNCTION double fmax_(double a, double b)             { return __builtin_fmax(a, b); }
#define fmax(a, b)   fmax_(a, b)
#define native_exp2(a) __builtin_amdgcn_exp2f(a)
#define log(a)       (__builtin_amdgcn_logf(a) * 0.693147180559945f)
#define fma(a, b, c) fma_of_(a, b, c)
#define fabs(a)      fabs_(a)
