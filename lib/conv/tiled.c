/* SPDX-License-Identifier: Apache-2.0
 *
 * tiled.c - convolution by tiles of local memory, on any device.
 */
#include "conv.h"

vn_status vn__run_conv_tiled(vn_queue *q, const struct vn_choice *it, const void *problem,
                             const struct vn_plan *plan)
{
    enum { BLK_M, BLK_N, BLK_K, THR_M, THR_N };
    const struct conv *c = problem;
    const int *p = it->p;
    const int64_t panels = VN_CEIL_DIV(vn__conv_columns(c), p[BLK_N]);
    struct vn_launch l = { .nargs = 0 };

    (void)plan;
    l.groups[0] = panels * vn__conv_phases(c);
    l.groups[1] = VN_CEIL_DIV(vn__conv_rows(c), p[BLK_M]);
    l.groups[2] = c->groups;
    l.items = p[BLK_M] / p[THR_M] * (p[BLK_N] / p[THR_N]);
    vn__conv_arg_problem(&l, c);
    vn__arg_int(&l, panels);
    return vn__launch(q, it, 0, &l);
}
