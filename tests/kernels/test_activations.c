/* SPDX-License-Identifier: Apache-2.0
 *
 * test_activations.c - the error of activations of f32 results by a device's own 2^a and 1 / a, as
 * cl/tile/activation.h has them: its text, compiled as C, with instructions as bad as it lets them be.
 */
#include <stdio.h>

#include "tests/kernels/scalar.h"

#define TYPE_C              0
#define TYPE_F32            0
#define FAST_PTX            2
#define ACT                 act
#define FAST_ACT            1
#define NATIVE_EXP2(a)      off(exp2(flushed(a)), 2 * exp2_is)
#define NATIVE_RECIP(a)     off(1 / (double)flushed(a), recip_is)

enum { NAMES = 6, BELOW = -1, RIGHT, ABOVE, STEP = 61 };
static const char *const names[NAMES] = { "identity", "relu", "gelu", "silu", "sigmoid", "tanh" };
static const double unit = 0x1p-24, tiny = 0x1p-126;

static int act, exp2_is, recip_is, flushes, failures;

static float flushed(float x)
{
    return flushes && fabsf(x) < (float)tiny ? copysignf(0, x) : x;
}

/* The number farthest from `right` that is off by `most` units in the last place, and no more. */
static float off(double right, int most)
{
    int e;

    if (most == 0 || !isfinite(right) || right < tiny)
        return flushed((float)right);
    frexp(right, &e);

    const double edge = right + most * ldexp(1, e - 24);
    const float  x = (float)edge;

    if (most > 0)
        return flushed((double)x > edge ? nextafterf(x, 0) : x);
    return flushed((double)x < edge ? nextafterf(x, (float)INFINITY) : x);
}

#include "cl/tile/activation.h"

static void check(int right, const char *what)
{
    failures += !right;
    if (!right)
        printf("not ok - %s, %s\n", names[act], what);
}

/* ---- errors ---------------------------------------------------------------- */

static double gelu_argument(double x)
{
    return 1.5957691216057308 * (x + 0.044715 * x * x * x);
}

static double right_one(double x)
{
    switch (act) {
    case ACT_GELU:    return x / (1 + exp(-gelu_argument(x)));
    case ACT_SILU:    return x / (1 + exp(-x));
    case ACT_SIGMOID: return 1 / (1 + exp(-x));
    default:          return tanh(x);
    }
}

/* What is off, over what tools/check/oracle/products.c lets it be; a NaN is all wrong. */
static double share_of(float x, double right)
{
    const double units = act == ACT_GELU ? 10 + 6 * fabs(gelu_argument(x)) : 10;
    const double off_by = fabs((double)activate(x) - right);

    return isnan(off_by) ? INFINITY : off_by / (units * unit * fabs(right) + (1 + fabs(x)) * tiny);
}

/* Instructions that are right, and four kinds of bad ones, which flush subnormal numbers or keep them. */
static double worst_share_of(float x)
{
    const double right = right_one(x);
    double worst = 0;

    if (!isfinite(right))
        return 0;
    for (exp2_is = BELOW; exp2_is <= ABOVE; exp2_is++)
        for (recip_is = BELOW; recip_is <= ABOVE; recip_is++)
            if ((exp2_is == RIGHT) == (recip_is == RIGHT)) {
                flushes = exp2_is != ABOVE;

                const double share = share_of(x, right);

                if (share > worst)
                    worst = share;
            }
    return worst;
}

/* ---- NaN, the infinities, numbers far from 0 ------------------------------------ */

/* By instructions that are right where the result is a power of 2, as those of GPUs are. */
static void check_limits(void)
{
    const int is_gate = act == ACT_GELU || act == ACT_SILU;
    const float most = 3.402823466e38f, low = act == ACT_TANH ? -1 : 0;

    check(isnan(activate((float)NAN)), "NaN");
    check(activate(0.0f) == (act == ACT_SIGMOID ? 0.5f : 0), "0");
    check(activate((float)INFINITY) == (is_gate ? (float)INFINITY : 1), "infinity");
    check(activate(-(float)INFINITY) == low, "-infinity");
    check(activate(most) == (is_gate ? most : 1), "the largest number");
    check(activate(-most) == low, "the lowest number");
    check(activate(3e38f) == (is_gate ? 3e38f : 1), "3e38");
    check(activate(1e4f) == (is_gate ? 1e4f : 1), "1e4");
    check(activate(-1e4f) == low, "-1e4");
}

int main(void)
{
    const uint32_t from = bits_of(0x1p-14f), to = bits_of(1024);
    long count = 0;

    for (act = ACT_GELU; act <= ACT_TANH; act++) {
        double worst = 0;
        float at = 0;

        for (uint32_t u = 0; u < bits_of((float)INFINITY); u += u >= from && u < to ? STEP : 65521)
            for (int sign = 0; sign < 2; sign++, count++) {
                const float x = sign ? -float_of(u) : float_of(u);
                const double share = worst_share_of(x);

                if (share > worst) {
                    worst = share;
                    at = x;
                }
            }
        printf("%s: %.3f of the bound at most, at %.9g\n", names[act], worst, (double)at);
        check(worst <= 1, "the error is above the bound");
        check(worst > 0.3, "bad instructions are not seen");
        exp2_is = recip_is = RIGHT;
        for (flushes = 0; flushes < 2; flushes++)
            check_limits();
    }
    printf("COUNT activations %ld\n%d failures\n", count, failures);
    return failures != 0;
}
