/* SPDX-License-Identifier: Apache-2.0
 *
 * example.h - what the examples share: errors end the program, data are small numbers, results are compared.
 */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <vernier.h>

/* Ends the program with the library's sentence; with 77 where there is no device. */
static inline void must(vn_status s)
{
    if (s == VN_OK)
        return;
    fprintf(stderr, "%s\n", vn_last_error());
    exit(s == VN_NO_DEVICE ? 77 : 1);
}

/* `count` floats from -1 to 1, others for each seed. */
static inline float *numbers(size_t count, unsigned seed)
{
    float *const v = malloc(count * sizeof *v);

    if (!v)
        exit(1);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        v[i] = (float)(seed >> 8) / 8388608.0f - 1;
    }
    return v;
}

/* A buffer that holds them. */
static inline vn_buffer *buffer_of(vn_device *d, vn_queue *q, const float *v, size_t count)
{
    vn_buffer *b;

    must(vn_buffer_open(&b, d, count * sizeof *v));
    must(vn_write(q, b, 0, v, count * sizeof *v));
    return b;
}

/* Says how far the result is from what it should be, and returns the exit status.  An element is a sum of
 * `terms` products, whose absolute values add up to at most `largest`: that bounds what f32 rounds off.    */
static inline int compare(const char *what, const float *got, const double *wanted, size_t count, int terms,
                          double largest)
{
    const double bound = (terms + 4) * largest * 0x1p-24;
    double most = 0;

    for (size_t i = 0; i < count; i++) {
        const double off = fabs(got[i] - wanted[i]);

        most = off > most || isnan(off) ? off : most;
    }
    printf("%s: %zu elements, the largest error is %.2g, at most %.2g is right\n", what, count, most, bound);
    return !(most <= bound);
}
#endif
