/* SPDX-License-Identifier: Apache-2.0
 *
 * wgmma.h - tiles of pixels and filters by wgmma: the host side of cl/conv/wgmma.cl, for each variant that
 * runs it.
 */
#ifndef VN_CONV_WGMMA_H
#define VN_CONV_WGMMA_H

#include "conv.h"

/* types: NULL, or why those of the problem are not its. */
const char *vn__fits_conv_tiles(const struct conv *c, const struct vn_facts *f, const char *types);
/* The plan, but for what a variant does before or after; wanted: into how many parts the longest sums are
 * split.                                                                                               */
const char *vn__share_conv_tiles(struct vn_plan *out, const struct conv *c, int64_t wanted,
                                 const struct vn_row *row, const struct vn_site *site);
vn_status   vn__launch_conv_tiles(vn_queue *q, const struct vn_choice *it, int kernel, const struct conv *c,
                                  const struct vn_plan *plan);
#endif
