/* cl/atoms/nvidia/math.h - NVIDIA's instructions for 2^a and 1 / a
 *
 * OpenCL's native functions handle subnormal numbers, too, which takes further instructions.
 *
 * Takes: FAST_ACT; PTX_MATH, 1 in kernels for NVIDIA's devices alone.
 * Source: the PTX ISA manual, sections on ex2 and rcp: relative errors of 2^-22.5 and 2^-23.
 */
#if FAST_ACT == FAST_PTX
#define FAST_EXP2(a)  ptx_exp2(a)
#define FAST_RECIP(a) ptx_recip(a)
#endif

#if FAST_ACT == FAST_PTX || PTX_MATH
DEVICE float ptx_exp2(float a)
{
    asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(a));
    return a;
}

DEVICE float ptx_recip(float a)
{
    asm("rcp.approx.ftz.f32 %0, %0;" : "+f"(a));
    return a;
}
#endif
