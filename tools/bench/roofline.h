/* SPDX-License-Identifier: Apache-2.0
 *
 * roofline.h - what the device can do, measured: multiply-adds, its matrix engine, bandwidth.
 *
 * No run can take less than the larger of flops / peak and the time to move its bytes, unless its data stays
 * in a cache (then its share of the roofline may pass 1): what is read beside as much that is written goes at
 * the rate of a copy, the rest at that of reading.  The peak is that of the engine that the type may use:
 * f32 may be computed as six products of bf16 parts, so its peak is a sixth of bf16's where that is more than
 * that of multiply-adds.
 */
#ifndef VERNIER_ROOFLINE_H
#define VERNIER_ROOFLINE_H

#include "core.h"
#include "problem/problem.h"

#define ROOFLINE_CACHED 512e6         /* bytes: no cache holds more */

struct matrix_roof { int known; char engine[VN_ENGINE]; double flops, sustained; };

struct roofline {
    double    peak[2];                /* FLOP/s by multiply-adds in f32 and in f64; 0: not measured yet */
    double    bandwidth;              /* bytes per second, of which half are read, and half written */
    double    reading;                /* ... where all are read; 0: not measured */
    struct matrix_roof matrix[VN_TYPE_COUNT];     /* of f32: tf32; 0: there is none */
    char      disturbed[3][80];       /* "", or why a peak, or the bandwidth, may be too low */
};

/* Measures what is not measured yet for problems of this type (0.6 s on a CPU, a second or two else). */
vn_status roofline_measure(struct roofline *r, vn_queue *q, vn_type type, vn_math math);
/* Measures multiply-adds and bandwidth, again: what is higher holds. */
vn_status roofline_measure_fma(struct roofline *r, vn_queue *q, vn_type type);

/* kind: "FMA f32", "HGMMA f16", "HGMMA bf16 / 6" */
struct roof { char kind[VN_ENGINE + 8]; double flops; };
struct roof roofline_of  (const struct roofline *r, vn_type type, vn_math math);
double    roofline_peak  (const struct roofline *r, vn_type type, vn_math math);
/* The least time on this device. */
double    roofline_seconds(const struct roofline *r, vn_type type, vn_math math, const struct amount *w);
/* ... to move the bytes alone. */
double    roofline_moving (const struct roofline *r, const struct amount *w);

/* Nothing passes a roof but what a cache holds: where a run of so many seconds did, the roof was measured
 * while something disturbed it, and is measured again, or marked.                                        */
vn_status roofline_raise  (struct roofline *r, vn_queue *q, vn_type type, vn_math math,
                           const struct amount *w, double seconds);

/* What a copy that stays in no cache reads and writes: 512 MiB, if that is a small part of the device. */
double    bytes_beyond_caches(const vn_device *d);

/* A copy of so many bytes, half of them read and half written: what a run that moves as many takes at
 * least, with the caches and the launches as they are.                                              */
struct copier;

vn_status copier_open (struct copier **out, vn_queue *q, double bytes);
vn_status copier_run  (const struct copier *c);
void      copier_close(struct copier *c);        /* takes NULL */

/* Something for a device to do while the host queues what is to be measured: a work-group of arithmetic. */
struct hold;

vn_status hold_open (struct hold **out, vn_queue *q);
vn_status hold_run  (const struct hold *h, double seconds);
void      hold_close(struct hold *h);            /* takes NULL */
#endif
