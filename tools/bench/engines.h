/* SPDX-License-Identifier: Apache-2.0
 *
 * engines.h - which kernel measures the roof of which matrix engine.
 */
#ifndef VERNIER_ENGINES_H
#define VERNIER_ENGINES_H

#include "core.h"

struct matrix_engine {
    struct vn_variant kernel;             /* not an operation's, but text and parameters of one; its entry
                                             is matrix_peak(GLOBAL R *y, int rounds) */
    const char       *devices;            /* patterns of FAMILY/ARCH */
    unsigned          types;              /* 1 << vn_type; f32: as tf32 where its engine_f32 says so */
    int               p[VN_PARAMS];
    int               items;              /* of a work-group, each of which stores an R */
    double            flops;              /* of a work-group in a round */
};
extern const struct matrix_engine matrix_engines[];     /* ends with NULL devices; the fastest first */

/* The first one from `it` on that a device has for a type; NULL: there is none. */
const struct matrix_engine *matrix_engine_for(const struct matrix_engine *it, const struct vn_facts *f,
                                              vn_type type);
#endif
