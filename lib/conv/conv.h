/* SPDX-License-Identifier: Apache-2.0
 *
 * conv.h - the problem of conv.c, for the files that solve it in a way of their own.
 */
#ifndef VN_CONV_H
#define VN_CONV_H

#include "core.h"

enum direction { FORWARD, BACKWARD_DATA, BACKWARD_FILTER };
enum { DIMS = 3, RANK = 2 + DIMS };     /* each problem is seen with three spatial dimensions */

struct conv {                           /* the problem, as variants see it */
    struct vn_problem p;
    enum direction direction;
    vn_math    math;
    vn_activation activation;
    int        has_bias;
    int        is_empty;                /* alpha 0, or nothing to sum: no input is read */
    double     alpha, beta;
    int64_t    groups;
    int64_t    stride[DIMS], dilation[DIMS], pad[DIMS];     /* pad: before */
    int64_t    joined;                  /* rows of pixels that the last dimension was joined from */
    vn_tensor  x, w, y;                 /* rank 5, whichever of them is the output */
    vn_tensor  bias;                    /* a view of the output's shape */
};
#endif
