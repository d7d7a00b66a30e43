/* SPDX-License-Identifier: Apache-2.0
 *
 * oracle.c - numbers of each type, views, and rounding bounds; oracle/ has the operations.
 *
 * The bounds are worst cases, by the usual counting (Higham, Accuracy and Stability of
 * Numerical Algorithms, chapters 2 to 4).  u is half an ulp of 1 in the type that sums.
 *
 *   sums         K products added in any order, fused or not, are off by at most
 *                gamma(K) sum |a||b|, with gamma(n) = n u / (1 - n u).  Scaling by alpha
 *                (itself rounded), beta y and the bias are four roundings more.
 *   activation   a function with |f'| <= L hands on L times that, and adds its own: an
 *                exponential within 2 ulp, a division within 2.5, an addition.
 *   store        half an ulp of the type stored.
 *   denormals    a device may take them for 0 in f32 and f64.
 */
#include "oracle.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- numbers -------------------------------------------------------------- */

/* digits of the significand, and the power of two of the smallest normal */
static const struct format { int digits, low; } formats[VN_TYPE_COUNT] = {
    [VN_F32]  = { 24, -126 },
    [VN_F16]  = { 11, -14 },
    [VN_BF16] = { 8, -126 },
    [VN_F64]  = { 53, -1022 },
};

double oracle_largest(vn_type t)
{
    static const double largest[VN_TYPE_COUNT] = {
        [VN_F32] = FLT_MAX, [VN_F16] = 65504, [VN_BF16] = 0x1.fep127, [VN_F64] = DBL_MAX };

    return largest[t];
}

/* 2^e, of a normal number.  Cases are mostly conversions: ldexp() and frexp() are slow. */
static double power(int e)
{
    const uint64_t bits = (uint64_t)(e + 1023) << 52;
    double p;

    memcpy(&p, &bits, sizeof p);
    return p;
}

/* Of a normal number: |v| lies in [2^e, 2^(e + 1)).  Of 0 and denormals: -1023. */
static int exponent(double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof bits);
    return (int)(bits >> 52 & 0x7ff) - 1023;
}

double oracle_round(vn_type t, double v)
{
    const struct format f = formats[t];
    const int e = exponent(v), last = (e < f.low ? f.low : e) - (f.digits - 1);       /* of its last digit */
    double r;

    if (t == VN_F32)
        return (float)v;
    if (t == VN_F64 || v == 0 || !isfinite(v))
        return v;
    r = rint(v * power(-last)) * power(last);
    return fabs(r) > oracle_largest(t) ? copysign(INFINITY, v) : r;
}

static uint16_t half_bits(double v)
{
    const uint16_t sign = signbit(v) ? 0x8000 : 0;
    const double   a = fabs(oracle_round(VN_F16, v));
    const int      e = exponent(a);

    if (isnan(v))
        return sign | 0x7e00;
    if (isinf(a))
        return sign | 0x7c00;
    if (a < 0x1p-14)                                            /* the digits count 2^-24 */
        return (uint16_t)(sign | (uint16_t)(a * 0x1p24));
    return (uint16_t)(sign | (e + 15) << 10 | ((int)(a * power(10 - e)) & 0x3ff));
}

static double half_value(uint16_t h)
{
    const int    e = h >> 10 & 31, digits = h & 0x3ff;
    const double a = e == 31 ? (digits ? NAN : INFINITY)
                   : e == 0  ? digits * 0x1p-24 : (digits | 0x400) * power(e - 25);

    return h & 0x8000 ? -a : a;
}

double oracle_load(vn_type t, const void *base, int64_t at)
{
    uint32_t bits;
    float    f;

    switch (t) {
    case VN_F16:
        return half_value(((const uint16_t *)base)[at]);
    case VN_BF16:
        bits = (uint32_t)((const uint16_t *)base)[at] << 16;
        memcpy(&f, &bits, sizeof f);
        return f;
    case VN_F64:
        return ((const double *)base)[at];
    default:
        return ((const float *)base)[at];
    }
}

void oracle_store(vn_type t, void *base, int64_t at, double v)
{
    uint32_t bits;
    float    f;

    switch (t) {
    case VN_F16:
        ((uint16_t *)base)[at] = half_bits(v);
        break;
    case VN_BF16:
        f = (float)oracle_round(VN_BF16, v);
        memcpy(&bits, &f, sizeof bits);
        ((uint16_t *)base)[at] = (uint16_t)(bits >> 16);
        break;
    case VN_F64:
        ((double *)base)[at] = v;
        break;
    default:
        ((float *)base)[at] = (float)v;
    }
}

void oracle_store_canary(vn_type t, void *base, int64_t at)
{
    const uint64_t i = (uint64_t)at;

    switch (t) {
    case VN_F16:  ((uint16_t *)base)[at] = (uint16_t)(0x7e00 | (i & 0x1ff));                   break;
    case VN_BF16: ((uint16_t *)base)[at] = (uint16_t)(0x7fc0 | (i & 0x3f));                    break;
    case VN_F64:  ((uint64_t *)base)[at] = 0x7ff8000000000000u | (i & 0x7ffffffffffffu);       break;
    default:      ((uint32_t *)base)[at] = 0x7fc00000u | (uint32_t)(i & 0x3fffff);
    }
}

/* ---- views ---------------------------------------------------------------- */

void oracle_each(const vn_tensor *t, oracle_visit *visit, void *context)
{
    int64_t place[VN_RANK] = { 0 }, offset = t->start;
    int     d;

    for (d = 0; d < t->rank; d++)
        if (t->extent[d] == 0)
            return;
    for (;;) {
        visit(context, offset, place);
        for (d = t->rank - 1; d >= 0; d--) {                    /* as an odometer counts */
            offset += t->stride[d];
            if (++place[d] < t->extent[d])
                break;
            offset -= t->extent[d] * t->stride[d];
            place[d] = 0;
        }
        if (d < 0)
            return;
    }
}

int64_t oracle_offset(const vn_tensor *t, const int64_t *place)
{
    int64_t at = t->start;

    for (int d = 0; d < t->rank; d++)
        at += (t->extent[d] == 1 ? 0 : place[d]) * t->stride[d];
    return at;
}

/* ---- rounding -------------------------------------------------------------- */

long double oracle_unit(vn_type t)
{
    return t == VN_F64 ? 0x1p-53L : 0x1p-24L;
}

long double oracle_tiny(vn_type t)
{
    return t == VN_F64 ? 0x1p-1022L : 0x1p-126L;
}

long double oracle_gamma(vn_type t, long double n)
{
    return n * oracle_unit(t) / (1 - n * oracle_unit(t));
}

long double oracle_stored(vn_type t, long double value, long double computed)
{
    const struct format f = formats[t];

    if (t == VN_F32 || t == VN_F64)
        return computed;
    return computed + ldexpl(fabsl(value) + computed, -f.digits) + ldexpl(1, f.low - f.digits);
}

void oracle_run(const struct oracle *c)
{
    c->p->op->oracle(c);
}
