/* cl/tile/activation.h - exponential, hyperbolic tangent, and the activations
 *
 * The exponential and the hyperbolic tangent are written in fused multiply-adds, so that they
 * are bit-identical on every device. Method and coefficients: Cephes Mathematical Library
 * (S. L. Moshier), expf/exp and tanhf/tanh; the error is below 2 units in the last place.
 *
 * FAST_ACT, a constant of the problem, allows the device's own exponential and reciprocal instead, outside
 * VN_MATH_BITWISE: for results of 16 bits, on devices whose instructions are off by few units in the last
 * place of f32; for results of f32, where 2^a is off by 2 of them at most, and 1 / a by 1.
 *
 * Takes  TYPE R ZERO FAST_PTX (cl/types.h); atoms/nvidia/math.h; ACT FAST_ACT TYPE_C
 * Gives  INFINITE LOWEST EXP_FUNCTION EXP_BELOW_FUNCTION TANH_FUNCTION ACTIVATION_FUNCTION LANES_BITS
 *        BITS_LANES (below); exp_of() exp_below() tanh_of() activate()
 */

/* The infinity, and the lowest finite value. */
#define INFINITE ((R)BITS_FLOAT(0x7f800000u))

#if TYPE == TYPE_F64
#define LOWEST (-1.7976931348623157e308)
#else
#define LOWEST (-3.402823466e38f)
#endif

/* EXP_FUNCTION(name, V, FROM_BITS, BITS) defines `DEVICE V name(V x)`, where V is R or a vector
 * of R; BITS reinterprets a V as integers, FROM_BITS integers as a V.
 *
 * x = n log 2 + r with an integer n. Adding 1.5 * 2^23 (f64: 1.5 * 2^52) rounds to an integer and
 * leaves n in the low bits; with the exponent bias added and shifted up, they are 2^n. The result is
 * scaled by 2^n in two steps, since 2^n itself may be subnormal.                             */
#if TYPE == TYPE_F64
#define EXP_FUNCTION(name, V, FROM_BITS, BITS)                                              \
DEVICE V name(V x)                                                                          \
{                                                                                           \
    x = PICK(x, (V)-746.0, (V)-746.0, x);                         /* keeps NaN */           \
    x = PICK((V)710.0, x, (V)710.0, x);                                                     \
                                                                                            \
    const V whole = (V)6755399441055744.0;                                                  \
    const V n  = (x * (V)1.4426950408889634074 + whole) - whole;                            \
    const V r  = FMA(n, (V)-1.42860682030941723212e-6, FMA(n, (V)-6.93145751953125e-1, x)); \
    const V rr = r * r;                                                                     \
    const V p  = r * FMA(FMA((V)1.26177193074810590878e-4, rr, (V)3.02994407707441961300e-2), rr, \
                         (V)9.99999999999999999910e-1);                                     \
    const V q  = FMA(FMA(FMA((V)3.00198505138664455042e-6, rr, (V)2.52448340349684104192e-3), rr, \
                         (V)2.27265548208155028766e-1), rr, (V)2.0);                        \
    const V e  = FMA((V)2.0, p / (q - p), (V)1.0);                                          \
    const V h  = (n * (V)0.5 + whole) - whole;                                              \
    const V biased = whole + (V)1023.0;                                                     \
                                                                                            \
    return e * FROM_BITS(BITS(h + biased) << 52) * FROM_BITS(BITS((n - h) + biased) << 52); \
}

/* TANH_SMALL(V, x, s) is the hyperbolic tangent of an x below 0.625; s is x x. */
#define TANH_SMALL(V, x, s)                                                                       \
    FMA((x) * (s),                                                                                \
        FMA(FMA((V)-9.64399179425052238628e-1, s, (V)-9.92877231001918586564e1), s,               \
            (V)-1.61468768441708447952e3) /                                                       \
        FMA(FMA((s) + (V)1.12811678491632931402e2, s, (V)2.23548839060100448583e3), s,            \
            (V)4.84406305325125486048e3), x)
#else
#define EXP_FUNCTION(name, V, FROM_BITS, BITS)                                              \
DEVICE V name(V x)                                                                          \
{                                                                                           \
    x = PICK(x, (V)-105.0f, (V)-105.0f, x);                       /* keeps NaN */           \
    x = PICK((V)89.0f, x, (V)89.0f, x);                                                     \
                                                                                            \
    const V whole = (V)12582912.0f;                                                         \
    const V n = (x * (V)1.44269504f + whole) - whole;                                       \
    const V r = FMA(n, (V)2.12194440e-4f, FMA(n, (V)-0.693359375f, x));                     \
    V       p = (V)1.9875691500e-4f;                                                        \
                                                                                            \
    p = FMA(p, r, (V)1.3981999507e-3f);                                                     \
    p = FMA(p, r, (V)8.3334519073e-3f);                                                     \
    p = FMA(p, r, (V)4.1665795894e-2f);                                                     \
    p = FMA(p, r, (V)1.6666665459e-1f);                                                     \
    p = FMA(p, r, (V)5.0000001201e-1f);                                                     \
    p = FMA(p, r * r, r) + (V)1.0f;                                                         \
                                                                                            \
    const V h = (n * (V)0.5f + whole) - whole;                                              \
    const V biased = whole + (V)127.0f;                                                     \
                                                                                            \
    return p * FROM_BITS(BITS(h + biased) << 23) * FROM_BITS(BITS((n - h) + biased) << 23); \
}

#define TANH_SMALL(V, x, s)                                                                       \
    FMA((x) * (s),                                                                                \
        FMA(FMA(FMA(FMA((V)-5.70498872745e-3f, s, (V)2.06390887954e-2f), s,                       \
                    (V)-5.37397155531e-2f), s, (V)1.33314422036e-1f), s, (V)-3.33332819422e-1f), x)
#endif

/* EXP_BELOW_FUNCTION, with the same arguments, defines the exponential of an x below 1, which is what is left
 * of a logit when the largest of its row is subtracted: half the instructions.  With the exponent bias in the
 * number that rounds, its low bits are 2^n at once, and of -infinity and all below -87.7 they are 0, and so
 * is the result.  NaN stays NaN.  The polynomial is a minimax one of degree 6 for |r| <= log(2) / 2; the
 * error is below 1.25 units in the last place of f32 where the result is normal
 * (tests/kernels/test_exponential.c).                                                                     */
#if TYPE == TYPE_F64
#define EXP_BELOW_FUNCTION(name, V, FROM_BITS, BITS) EXP_FUNCTION(name, V, FROM_BITS, BITS)
#else
#define EXP_BELOW_FUNCTION(name, V, FROM_BITS, BITS)                                        \
DEVICE V name(V x)                                                                          \
{                                                                                           \
    x = PICK(x, (V)-88.0f, (V)-88.0f, x);                         /* keeps NaN */           \
                                                                                            \
    const V biased = (V)12583039.0f;                              /* 1.5 * 2^23 + 127 */    \
    const V t = FMA(x, (V)1.44269504f, biased), n = t - biased;                             \
    const V r = FMA(n, (V)-1.42860677e-6f, FMA(n, (V)-0.693145751953125f, x));              \
    V       p = (V)1.406168784e-3f;                                                         \
                                                                                            \
    p = FMA(p, r, (V)8.379129019e-3f);                                                      \
    p = FMA(p, r, (V)4.166476751e-2f);                                                      \
    p = FMA(p, r, (V)1.666636388e-1f);                                                      \
    p = FMA(p, r, (V)5.000000438e-1f);                                                      \
    p = FMA(p, r, (V)1.0f);                                                                 \
    p = FMA(p, r, (V)1.0f);                                                                 \
    return p * FROM_BITS(BITS(t) << 23);                                                    \
}
#endif

/* TANH_FUNCTION(name, V, EXP) defines `DEVICE V name(V x)`; EXP is the exponential of a V. */
#define TANH_FUNCTION(name, V, EXP)                                                         \
DEVICE V name(V x)                                                                          \
{                                                                                           \
    const V a = ABS(x), s = x * x, t = (V)1 - (V)2 / (EXP((V)2 * a) + (V)1);                \
                                                                                            \
    return PICK(a, (V)0.625f, TANH_SMALL(V, x, s), PICK(x, (V)ZERO, (V)ZERO - t, t));       \
}

#if TYPE == TYPE_F64
EXP_FUNCTION(exp_of, R, BITS_DOUBLE, DOUBLE_BITS)
EXP_BELOW_FUNCTION(exp_below, R, BITS_DOUBLE, DOUBLE_BITS)
#else
EXP_FUNCTION(exp_of, R, BITS_FLOAT, FLOAT_BITS)
EXP_BELOW_FUNCTION(exp_below, R, BITS_FLOAT, FLOAT_BITS)
#endif
TANH_FUNCTION(tanh_of, R, exp_of)

/* Vectors of VEC elements as their bits, and back: what EXP_FUNCTION wants. */
#if TYPE == TYPE_F64
#define LANES_BITS(v)  AS(VECTOR(UINT64, VEC), (v))
#define BITS_LANES(u)  AS(VECTOR(double, VEC), (u))
#else
#define LANES_BITS(v)  AS(VECTOR(UINT32, VEC), (v))
#define BITS_LANES(u)  AS(VECTOR(float, VEC), (u))
#endif

/* The values of vn_activation. */
#define ACT_RELU     1
#define ACT_GELU     2
#define ACT_SILU     3
#define ACT_SIGMOID  4
#define ACT_TANH     5

/* 1 + exp(-z).  Where z is above 80 the sum is 1 in any type, and an exponential that is subnormal would
 * cost some CPUs hundreds of cycles.                                                                     */
#define ONE_AND_EXP_MINUS(V, EXP, z) ((V)1 + EXP(PICK((V)80, z, (V)-80, (V)ZERO - (z))))

/* ACTIVATION_FUNCTION(name, V, EXP, TANH) defines `DEVICE V name(V x)`: the activation that ACT says.  NaN
 * stays NaN, and a gate of a large negative x, -infinity included, is 0.  GELU is
 * x sigmoid(2u) = x (1 + tanh u) / 2.                                                                     */
#define ACT_GATE(V, EXP, x, z) PICK(x, (V)-1000, (V)ZERO, (x) / ONE_AND_EXP_MINUS(V, EXP, z))
#define ACTIVATION_FUNCTION(name, V, EXP, TANH)                                             \
DEVICE V name(V x)                                                                          \
{                                                                                           \
    if (ACT == ACT_RELU)                                                                    \
        return PICK(x, (V)ZERO, (V)ZERO, x);                                                \
    if (ACT == ACT_GELU)                                                                    \
        return ACT_GATE(V, EXP, x, (V)1.5957691216057308 * FMA((V)0.044715 * x * x, x, x)); \
    if (ACT == ACT_SILU)                                                                    \
        return ACT_GATE(V, EXP, x, x);                                                      \
    if (ACT == ACT_SIGMOID)                                                                 \
        return (V)1 / ONE_AND_EXP_MINUS(V, EXP, x);                                         \
    if (ACT == ACT_TANH)                                                                    \
        return TANH(x);                                                                     \
    return x;                                                                               \
}

#if FAST_ACT
#if FAST_ACT != FAST_PTX
#define FAST_EXP2(a)  NATIVE_EXP2(a)
#define FAST_RECIP(a) NATIVE_RECIP(a)
#endif

/* NaN stays NaN.  The gate of -1000 is 0, and so is its product with -1000, as that with -infinity would not
 * be; to choose the result instead would make a compiler skip the gate, by as many predicates. */
#define NOT_BELOW(x)  PICK(x, -1000.0f, -1000.0f, x)

/* 1 / (1 + exp(-z)), of z log2(e) */
DEVICE R fast_sigmoid(R z)
{
    return FAST_RECIP(1.0f + FAST_EXP2(-z));
}

#if TYPE_C == TYPE_F32
/* The relative error of f32 results, in units of 2^-24: FAST_EXP2 has 4, FAST_RECIP 2, and each rounding 1.
 *
 *   GELU           4 |z| of the argument z = 2u, which is rounded four times; 4 of 2^a, 1 of the sum, 2 of
 *                  the reciprocal, 1 of the product with x: 8 + 4 |z|
 *   SiLU, sigmoid  5 of exp(-x), 1 of the sum, 2 of the reciprocal, and SiLU's product with x 1: 9, and 8
 *   tanh           from a = 0.625 on, where it is above 0.554: exp(-2a) = e <= 0.287 has 4, and 2.6 a of its
 *                  argument; 2 e / (1 + e), 0.8 of the result at most, then has 8; the difference 1: 8
 *
 * Below 2^-126 (1 + |x|) a result may be 0.  tests/kernels/test_activations.c tries instructions that are
 * off by as much, against the bound of tools/check/oracle/products.c.
 * Source: atoms/nvidia/math.h; the manuals of AMD's instructions, where V_EXP_F32 and V_RCP_F32 are off by 1
 * unit in the last place and flush subnormal numbers.                                                      */

/* exp(-x), of an x not below -88: it is 2^n exp(d), where n is -x log2(e), rounded, and d = -x - n log(2),
 * below 2^-17, by log(2) in two parts.  Above 88 it is that of 88, nothing beside 1.  NaN stays NaN.      */
DEVICE R exp_minus(R x)
{
    const R y = PICK(88.0f, x, 88.0f, x), n = -1.4426950f * y;
    const R d = FMA(n, 1.9046543e-9f, FMA(n, -0.69314718f, -y)), power = FAST_EXP2(n);

    return FMA(power, d, power);
}

DEVICE R sigmoid_of(R x)
{
    return FAST_RECIP(1.0f + exp_minus(x));
}

#define FAST_SILU(x)    PICK(x, -88.0f, ZERO, (x) * sigmoid_of(x))
#define FAST_SIGMOID(x) PICK(x, -88.0f, ZERO, sigmoid_of(x))

/* of an x whose absolute value a is not below 0.625 */
DEVICE R fast_tanh(R x, R a)
{
    const R e = FAST_EXP2(-2.8853901f * a), t = FMA(-2.0f * e, FAST_RECIP(1.0f + e), 1.0f);

    return PICK(x, ZERO, ZERO - t, t);
}
#else
#define FAST_SILU(x)    (NOT_BELOW(x) * fast_sigmoid(1.4426950f * NOT_BELOW(x)))
#define FAST_SIGMOID(x) fast_sigmoid(1.4426950f * (x))
#define fast_tanh(x, a) FMA(2.0f, fast_sigmoid(2.8853901f * (x)), -1.0f)
#endif

DEVICE R activate(R x)
{
    if (ACT == ACT_RELU)
        return PICK(x, ZERO, ZERO, x);
    if (ACT == ACT_GELU) {                      /* 2.3022082 is 2 sqrt(2 / pi) log2(e) */
        const R y = NOT_BELOW(x);

        return y * fast_sigmoid(y * FMA(0.10294324f * y, y, 2.3022082f));
    }
    if (ACT == ACT_SILU)
        return FAST_SILU(x);
    if (ACT == ACT_SIGMOID)
        return FAST_SIGMOID(x);
    if (ACT == ACT_TANH)
        return PICK(ABS(x), 0.625f, TANH_SMALL(R, x, x * x), fast_tanh(x, ABS(x)));
    return x;
}
#else
ACTIVATION_FUNCTION(activate, R, exp_of, tanh_of)
#endif
