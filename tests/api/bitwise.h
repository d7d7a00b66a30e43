/* SPDX-License-Identifier: Apache-2.0
 *
 * bitwise.h - VN_MATH_BITWISE as doc/bitwise.md says it, in plain C.
 *
 * It is included once for each type that is computed in: REAL, FMA(a, b, c), NAME(name), and IS_DOUBLE.  It
 * is to be compiled without contraction.
 */
#if IS_DOUBLE
static REAL NAME(scaled)(REAL e, REAL h, REAL rest)
{
    return e * ldexp(1.0, (int)h) * ldexp(1.0, (int)rest);
}

static REAL NAME(exponential)(REAL x)
{
    if (x < -746.0)
        x = -746.0;
    if (x > 710.0)
        x = 710.0;

    const REAL whole = 0x1.8p52;
    const REAL n = (x * 1.4426950408889634074 + whole) - whole;
    const REAL r = FMA(n, -1.42860682030941723212e-6, FMA(n, -6.93145751953125e-1, x));
    const REAL s = r * r;
    const REAL p = r * FMA(FMA(1.26177193074810590878e-4, s, 3.02994407707441961300e-2), s,
                           9.99999999999999999910e-1);
    const REAL q = FMA(FMA(FMA(3.00198505138664455042e-6, s, 2.52448340349684104192e-3), s,
                           2.27265548208155028766e-1), s, 2.0);
    const REAL e = FMA(2.0, p / (q - p), 1.0), h = (n * 0.5 + whole) - whole;

    return isnan(x) ? x : NAME(scaled)(e, h, n - h);
}

static REAL NAME(tangent)(REAL x)
{
    const REAL a = fabs(x), s = x * x;

    if (a < 0.625) {
        const REAL p = FMA(FMA(-9.64399179425052238628e-1, s, -9.92877231001918586564e1), s,
                           -1.61468768441708447952e3);
        const REAL q = FMA(FMA(s + 1.12811678491632931402e2, s, 2.23548839060100448583e3), s,
                           4.84406305325125486048e3);

        return FMA(x * s, p / q, x);
    }
    return copysign(1.0 - 2.0 / (NAME(exponential)(2.0 * a) + 1.0), x);
}
#else
static REAL NAME(scaled)(REAL e, REAL h, REAL rest)
{
    return e * ldexpf(1.0f, (int)h) * ldexpf(1.0f, (int)rest);
}

static REAL NAME(exponential)(REAL x)
{
    if (x < -105.0f)
        x = -105.0f;
    if (x > 89.0f)
        x = 89.0f;

    const REAL whole = 0x1.8p23f;
    const REAL n = (x * 1.44269504f + whole) - whole;
    const REAL r = FMA(n, 2.12194440e-4f, FMA(n, -0.693359375f, x)), h = (n * 0.5f + whole) - whole;
    REAL p = 1.9875691500e-4f;

    p = FMA(p, r, 1.3981999507e-3f);
    p = FMA(p, r, 8.3334519073e-3f);
    p = FMA(p, r, 4.1665795894e-2f);
    p = FMA(p, r, 1.6666665459e-1f);
    p = FMA(p, r, 5.0000001201e-1f);
    p = FMA(p, r * r, r) + 1.0f;
    return isnan(x) ? x : NAME(scaled)(p, h, n - h);
}

static REAL NAME(tangent)(REAL x)
{
    const REAL a = fabsf(x), s = x * x;
    REAL p = -5.70498872745e-3f;

    if (!(a < 0.625f))
        return copysignf(1.0f - 2.0f / (NAME(exponential)(2.0f * a) + 1.0f), x);
    p = FMA(p, s, 2.06390887954e-2f);
    p = FMA(p, s, -5.37397155531e-2f);
    p = FMA(p, s, 1.33314422036e-1f);
    p = FMA(p, s, -3.33332819422e-1f);
    return FMA(x * s, p, x);
}
#endif

static REAL NAME(activated)(vn_activation act, REAL x)
{
    const REAL one = 1, u = (REAL)1.5957691216057308 * FMA((REAL)0.044715 * x * x, x, x);

    switch (act) {
    case VN_RELU:    return x < 0 ? 0 : x;
    case VN_GELU:    return x < -1000 ? 0 : x / (one + NAME(exponential)(-u));
    case VN_SILU:    return x < -1000 ? 0 : x / (one + NAME(exponential)(-x));
    case VN_SIGMOID: return one / (one + NAME(exponential)(-x));
    case VN_TANH:    return NAME(tangent)(x);
    default:         return x;
    }
}

/* The pairs of factors of one sum, in the order of the text. */
static REAL NAME(sum)(const struct pairs *p)
{
    REAL sum = 0;

    for (int64_t i = 0; i < p->count; i++)
        sum = FMA((REAL)p->pair[i].a, (REAL)p->pair[i].b, sum);
    return sum;
}

static double NAME(finished)(const struct problem *p, const struct pairs *of, double old, int has_bias,
                             double bias)
{
    REAL v = (REAL)p->alpha * NAME(sum)(of);

    if (p->beta != 0)
        v = FMA((REAL)p->beta, (REAL)old, v);
    if (has_bias)
        v = v + (REAL)bias;
    return NAME(activated)(p->act, v);
}
