/* SPDX-License-Identifier: Apache-2.0
 *
 * scalar.h - the words of a kernel's text in f32 that is compiled as C, for one element at a time
 */
#ifndef VN_TESTS_SCALAR_H
#define VN_TESTS_SCALAR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define DEVICE              static
#define TYPE                0
#define TYPE_F64            3
#define R                   float
#define ZERO                0.0f
#define FMA(a, b, c)        fmaf(a, b, c)
#define ABS(a)              fabsf(a)
#define PICK(a, b, x, y)    ((a) < (b) ? (x) : (y))
#define FLOAT_BITS(x)       bits_of(x)
#define BITS_FLOAT(u)       float_of(u)

static uint32_t bits_of(float x)
{
    uint32_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float x;

    memcpy(&x, &u, sizeof x);
    return x;
}
#endif
