/* SPDX-License-Identifier: Apache-2.0
 *
 * im2col.h - how TMA sees the images and the filter of a convolution: the host side of cl/conv/im2col.h.
 */
#ifndef VN_CONV_IM2COL_H
#define VN_CONV_IM2COL_H

#include "conv.h"

/* The pixels along one side of the product are those of the output, or of the largest phase of it; in
 * backward filter those of y.  Dimensions are d, h, w.                                              */
struct im2col {
    int       rank;                     /* IMAGE_RANK */
    vn_tensor source, filter;           /* x, or in backward data dy; both with strides that TMA takes */
    int64_t   images;                   /* of the product: source may have as many more, twins of them, after
                                           those (conv_wgmma_few) */
    int64_t   count[DIMS], first[DIMS], step[DIMS];
    int64_t   reach[DIMS];              /* the largest offset of a tap */
};

/* NULL, or why TMA cannot read the source, or the filter.  The latter is not looked at in backward filter. */
const char *vn__im2col_of(struct im2col *out, const struct conv *c);

/* NULL, or why TMA cannot read a tensor.  Strides of dimensions of extent 1 are replaced: TMA takes no 0. */
const char *vn__im2col_strides(vn_tensor *out, const vn_tensor *t);

/* Whether the filter is seen with its first two dimensions exchanged, so that the channels that are summed
 * are those which must be contiguous; and such a view of it.                                           */
int       vn__im2col_turns_filter(const struct conv *c);
vn_tensor vn__conv_turned(const vn_tensor *w);

/* Whether it has images of three dimensions: for a constant IMAGE_RANK 4 5. */
int vn__im2col_rank(const struct conv *c);

/* The taps that contribute to a phase of the output, along dimension d; 1 phase but in backward data. */
int64_t vn__conv_phases_along(const struct conv *c, int d);
int64_t vn__conv_taps_along  (const struct conv *c, int d, int64_t phase);

/* How many elements of x some tap reads: with a stride, a small filter jumps over pixels. */
double vn__conv_met(const struct conv *c);

/* The zeros that a row needs before its first pixel, or behind its last, or to be as long as the output's
 * row, whichever are most.                                                                              */
int64_t vn__im2col_zeros(const struct im2col *i, int d);
/* Arguments: the buffer, VIEW and extents of the source; the VIEW or the extents of any tensor of its rank;
 * eGrid, vFirst, vWindow, of window_of().  phase: what CONV_PHASE() of cl/conv/wgmma.h reads of each
 * dimension.                                                                                           */
void vn__arg_im2col_source (struct vn_launch *l, const struct im2col *i);
void vn__arg_im2col_strides(struct vn_launch *l, const vn_tensor *t);
void vn__arg_im2col_extents(struct vn_launch *l, const vn_tensor *t);
void vn__arg_im2col_window(struct vn_launch *l, const struct im2col *i, const int64_t phase[DIMS],
                           int64_t phases);
#endif
