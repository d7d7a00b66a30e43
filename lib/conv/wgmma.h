/* SPDX-License-Identifier: Apache-2.0
 *
 * wgmma.h - tiles of pixels and filters by wgmma: the host side of cl/conv/wgmma.cl, for each variant that
 * runs it.
 */
#ifndef VN_CONV_WGMMA_H
#define VN_CONV_WGMMA_H

#include "conv.h"
#include "im2col.h"

/* Whether pixels of images have strides of their own, as in NCHW; those of the residual are the same then. */
int         vn__conv_is_across(const struct conv *c);
/* NULL, or why such an output cannot be stored (cl/conv/output.h). */
const char *vn__fits_conv_across(const struct conv *c);
/* The problem, in which pixels of output, residual and bias that all follow each other are joined: their
 * stride is that of the last dimension. */
struct conv vn__conv_joined(const struct conv *c);

/* types: NULL, or why those of the problem are not its. */
const char *vn__fits_conv_tiles(const struct conv *c, const struct vn_facts *f, const char *types);
/* The plan, but for what a variant does before or after; wanted: into how many parts the longest sums are
 * split.                                                                                               */
const char *vn__share_conv_tiles(struct vn_plan *out, const struct conv *c, int64_t wanted,
                                 const struct vn_row *row, const struct vn_site *site);
/* CONV_TILE_PARAMS of cl/conv/wgmma.h, up to gW. */
vn_status   vn__conv_begin_tiles (struct vn_launch *l, vn_queue *q, const struct conv *c,
                                  const struct im2col *seen, int64_t groups, int64_t tiles);
vn_status   vn__launch_conv_tiles(vn_queue *q, const struct vn_choice *it, int kernel, const struct conv *c,
                                  const struct vn_plan *plan);
#endif
