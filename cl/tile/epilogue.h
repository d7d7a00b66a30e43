/* cl/tile/epilogue.h - what happens to an accumulator on its way to memory:
 *
 *     y := act(alpha sum + beta y + bias)
 *
 * The exponential and the hyperbolic tangent are written in fused multiply-adds, so that they
 * are bit-identical on every device. Method and coefficients: Cephes Mathematical Library
 * (S. L. Moshier), expf/exp and tanhf/tanh; the error is below 2 units in the last place.
 *
 * Takes  TYPE T R LOAD STORE ZERO (cl/types.h)
 * Gives  EXP_FUNCTION (below); exp_of() tanh_of() silu_of() activate(), epilogue(), store_neighbours()
 */

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
EXP_FUNCTION(exp_of, R, BITS_DOUBLE, DOUBLE_BITS)

DEVICE R tanh_of(R x)
{
    const R a = ABS(x), s = x * x;

    if (a < 0.625) {
        const R p = FMA(FMA(-9.64399179425052238628e-1, s, -9.92877231001918586564e1), s,
                        -1.61468768441708447952e3);
        const R q = FMA(FMA(s + 1.12811678491632931402e2, s, 2.23548839060100448583e3), s,
                        4.84406305325125486048e3);

        return FMA(x * s, p / q, x);
    }
    const R t = 1.0 - 2.0 / (exp_of(2.0 * a) + 1.0);
    return x < 0.0 ? -t : t;
}
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
EXP_FUNCTION(exp_of, R, BITS_FLOAT, FLOAT_BITS)

DEVICE R tanh_of(R x)
{
    const R a = ABS(x), s = x * x;

    if (a < 0.625f) {
        R p = -5.70498872745e-3f;

        p = FMA(p, s, 2.06390887954e-2f);
        p = FMA(p, s, -5.37397155531e-2f);
        p = FMA(p, s, 1.33314422036e-1f);
        p = FMA(p, s, -3.33332819422e-1f);
        return FMA(x * s, p, x);
    }
    const R t = 1.0f - 2.0f / (exp_of(2.0f * a) + 1.0f);
    return x < 0.0f ? -t : t;
}
#endif

/* x / (1 + exp(-x)); 0 for large negative x, -infinity included */
DEVICE R silu_of(R x)
{
    return x < (R)-1000 ? ZERO : x / ((R)1 + exp_of(-x));
}

/* act is a vn_activation. NaN stays NaN. */
DEVICE R activate(int act, R x)
{
    switch (act) {
    case 1: return x < ZERO ? ZERO : x;         /* relu */
    case 2: {                                   /* gelu: x sigmoid(2u) = x (1 + tanh u) / 2 */
        const R u = (R)1.5957691216057308 * FMA((R)0.044715 * x * x, x, x);

        return x < (R)-1000 ? ZERO : x / ((R)1 + exp_of(-u));
    }
    case 3: return silu_of(x);                  /* silu */
    case 4: return (R)1 / ((R)1 + exp_of(-x));  /* sigmoid */
    case 5: return tanh_of(x);                  /* tanh */
    }
    return x;
}

/* The value to store at y[at]. With beta 0, y is not read: it may hold NaN. */
DEVICE R epilogue(R sum, R alpha, R beta, GLOBAL const T *y, INDEX at,
                  int has_bias, GLOBAL const T *bias, INDEX bias_at, int act)
{
    R v = alpha * sum;

    if (beta != ZERO)
        v = FMA(beta, LOAD(y, at), v);
    if (has_bias)
        v = v + LOAD(bias, bias_at);
    return activate(act, v);
}

/* Stores `count` elements, at most 4, of row m of C from column n on. `one`: the batch is 0, so that
 * its offset takes no division.                                                              */
DEVICE void store_neighbours(const R sum[4], int count, int one, int batch, INDEX m, INDEX n,
                             VIEW eC, R alpha, R beta, GLOBAL T *gC, VIEW vC,
                             int has_bias, GLOBAL const T *gBias, VIEW vBias, int act)
{
    const INDEX at = (one ? (INDEX)vC.s0 : batch_offset(vC, eC, batch)) + m * (INDEX)vC.s5 + n * (INDEX)vC.s6;

    if (beta == ZERO && !has_bias && act == 0) {
        UNROLL for (int i = 0; i < 4; i++)
            if (i < count)
                STORE(gC, at + i * (INDEX)vC.s6, alpha * sum[i]);
        return;
    }

    const INDEX bias_at = (one ? (INDEX)vBias.s0 : batch_offset(vBias, eC, batch)) + m * (INDEX)vBias.s5 +
                          n * (INDEX)vBias.s6;

    NO_UNROLL for (int i = 0; i < count; i++) {
        const R x = i == 0 ? sum[0] : i == 1 ? sum[1] : i == 2 ? sum[2] : sum[3];
        const INDEX to = at + i * (INDEX)vC.s6;

        STORE(gC, to, epilogue(x, alpha, beta, gC, to, has_bias, gBias, bias_at + i * (INDEX)vBias.s6, act));
    }
}
