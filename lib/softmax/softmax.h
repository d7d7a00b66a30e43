/* SPDX-License-Identifier: Apache-2.0
 *
 * softmax.h - the problem of softmax.c, for the files that solve it in a way of their own.
 *
 * Every variant sees rows: the axis comes last, and before it as few row dimensions as the
 * views allow.  Forward and backward are one problem of three views:
 *
 *     forward    X is x     W is the mask (or x again, not looked at)    Y is y
 *     backward   X is y     W is dy                                      Y is dx
 */
#ifndef VN_SOFTMAX_H
#define VN_SOFTMAX_H

#include "core.h"

enum { X, W, Y, VIEWS };

struct softmax {                  /* the problem, as variants see it */
    struct vn_problem head;
    vn_tensor t[VIEWS];           /* axis last */
    int64_t   rows, n;
    double    scale;
    int       backward, log, causal, has_w;
    int       across;             /* rows lie side by side, and elements of a row do not */
    int       units;              /* of the device */
};
#endif
