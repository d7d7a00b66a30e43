/* SPDX-License-Identifier: Apache-2.0
 *
 * choices.h - what a device keeps of choosing: kernels built, rows found, its rates.
 */
#ifndef VN_CHOICES_H
#define VN_CHOICES_H

#include <pthread.h>

#include "core.h"

struct entry;                                   /* choose.c: a variant's kernels, built */

/* The rows that the tune files have for a variant, a type and a bucket. */
struct vn_rows {
    struct vn_rows          *next;
    const struct vn_variant *variant;
    int                      type, bucket, count;
    struct vn_row            row[];
};

struct vn_choices {
    pthread_mutex_t lock;                       /* of the table and the rows; held for a moment */
    pthread_mutex_t building;                   /* held while a driver compiles */
    struct entry  **slots;
    size_t          size, used;                 /* size: a power of two */
    struct vn_rows *rows;
    struct vn_rates rates;
};

/* Made at the first operation: a device that only holds buffers needs none. */
vn_status vn__choices_of(struct vn_choices **out, vn_device *d);
#endif
