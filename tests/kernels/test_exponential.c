/* SPDX-License-Identifier: Apache-2.0
 *
 * test_exponential.c - the error of exp_below() in cl/tile/activation.h: its text, compiled as C.
 */
#include <stdio.h>

#include "tests/kernels/scalar.h"

#define ACT                 0
#define FAST_ACT            0

#include "cl/tile/activation.h"    /* exp_of() and tanh_of() go unused */

enum { STEP = 37 };                   /* of the bits of x: 60 million numbers */
static const double most = 1.25;      /* units in the last place, as activation.h says */
static const double normal = 1.1754943508222875e-38;

static int failures;

static void check(int right, const char *what)
{
    failures += !right;
    if (!right)
        printf("not ok - %s\n", what);
}

/* In units in the last place of the right one. */
static double error_of(float x)
{
    const double right = exp((double)x);
    int e;

    frexp(right, &e);
    return fabs((double)exp_below(x) - right) / ldexp(1, e - 24);
}

int main(void)
{
    const uint32_t one = bits_of(1.0f), last = bits_of(-200.0f);
    double worst = 0;
    float at = 0;
    long count = 0;

    for (uint32_t u = 0; u <= last; u += u < one || u >= 0x80000000u ? STEP : 0x80000000u - u) {
        const float x = float_of(u);
        const double right = exp((double)x);

        count++;
        if (right < normal) {
            check(exp_below(x) >= 0 && exp_below(x) <= 2 * normal, "a result below the normal ones");
            continue;
        }
        if (error_of(x) > worst) {
            worst = error_of(x);
            at = x;
        }
    }
    printf("at most %.3f units in the last place, of %.9g\n", worst, (double)at);
    check(worst <= most, "the error of exp_below() is larger than activation.h says");
    check(exp_below(0.0f) == 1, "exp(0)");
    check(exp_below(-88.0f) == 0 && exp_below(-3e38f) == 0 && exp_below(-INFINITY) == 0, "what is 0");
    check(isnan(exp_below(NAN)), "a NaN");
    printf("COUNT exponentials %ld\n%d failures\n", count, failures);
    return failures != 0;
}
