/* SPDX-License-Identifier: Apache-2.0
 *
 * cross_entropy.h - the problem of cross_entropy.c, for its variants.
 */
#ifndef VN_CROSS_ENTROPY_H
#define VN_CROSS_ENTROPY_H

#include "core.h"

enum { X, DX, LOSS, WEIGHTS, LSE, VIEWS };

struct cross_entropy {            /* the problem, as variants see it */
    struct vn_problem head;
    vn_tensor t[VIEWS];           /* one that is not there is another one, which is not looked at */
    vn_ints   targets;
    int64_t   rows, n, ignore;
    double    smoothing, z_loss;
    int       has_dx, has_weights, has_lse;
    int       whole;              /* rows begin at, and are, multiples of 16 bytes if their buffers do */
    int       units;              /* of the device */
};

extern const struct vn_variant vn__cross_entropy_variants[];
#endif
