/* SPDX-License-Identifier: Apache-2.0
 *
 * roofline.h - what the device can do, measured: fused multiply-adds and bandwidth.
 *
 * No run can take less than the larger of flops / peak and bytes / bandwidth, unless its
 * data stays in a cache (then its share of the roofline may pass 1) or a matrix engine
 * computes it.
 */
#ifndef VERNIER_ROOFLINE_H
#define VERNIER_ROOFLINE_H

#include "vernier.h"

struct roofline {
    double    peak[2];                /* FLOP/s in f32 and in f64; 0: not measured yet */
    double    bandwidth;              /* bytes read and written per second */
};

/* Measures what is not measured yet for arithmetic of this type (0.3 s). */
vn_status roofline_measure(struct roofline *r, vn_queue *q, vn_type type);

double    roofline_peak   (const struct roofline *r, vn_type type);
/* The least time on this device. */
double    roofline_seconds(const struct roofline *r, vn_type type, double flops, double bytes);

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
