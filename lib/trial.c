/* SPDX-License-Identifier: Apache-2.0
 *
 * trial.c - the elements of trials (core.h): small integers, exact in each type.
 */
#include <stdlib.h>
#include <string.h>

#include "core.h"

vn_status vn__trial_room(void **out, size_t bytes)
{
    return (*out = calloc(1, bytes))
         ? VN_OK : vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes for a trial", bytes);
}

/* Small integers are exact in each type, and few enough bits to be written down by hand. */
void vn__trial_encode(void *to, vn_type type, size_t at, int v)
{
    static const uint16_t f16[] = { 0xc000, 0xbc00, 0, 0x3c00, 0x4000 };
    static const uint16_t bf16[] = { 0xc000, 0xbf80, 0, 0x3f80, 0x4000 };

    switch (type) {
    case VN_F16:  ((uint16_t *)to)[at] = f16[v + 2]; break;
    case VN_BF16: ((uint16_t *)to)[at] = bf16[v + 2]; break;
    case VN_F64:  ((double *)to)[at] = v; break;
    default:      ((float *)to)[at] = (float)v;
    }
}

double vn__trial_decode(const void *from, vn_type type, size_t at)
{
    uint32_t u;
    float f;

    if (type == VN_F32)
        return ((const float *)from)[at];
    if (type == VN_F64)
        return ((const double *)from)[at];
    u = ((const uint16_t *)from)[at];
    if (type == VN_BF16)
        u <<= 16;
    else                            /* no f16 here is denormal, infinite or NaN */
        u = (u & 0x8000) << 16 | ((u & 0x7fff) ? ((u & 0x7fff) << 13) + (112u << 23) : 0);
    memcpy(&f, &u, sizeof f);
    return f;
}

static int is_near(double x, double y, double tolerance) { return x - y <= tolerance && y - x <= tolerance; }

int vn__trial_is_right(int act, double y, double x)
{
    enum { FAR = 8 };
    const double positive = x < 0 ? 0 : x, rounded = 0x1p-7 * positive;
    const int is_far = x > FAR || x < -FAR;

    switch (act) {
    case VN_IDENTITY: return y == x;
    case VN_RELU:     return y == positive;
    case VN_GELU:
    case VN_SILU:     return is_near(y, positive, rounded + 0.3);
    case VN_SIGMOID:  return is_near(y, x > FAR ? 1 : x < -FAR ? 0 : 0.5, is_far ? 0x1p-7 : 0.51);
    default:          return is_near(y, x > FAR ? 1 : x < -FAR ? -1 : 0, is_far ? 0x1p-7 : 1.01);
    }
}
