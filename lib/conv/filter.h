/* SPDX-License-Identifier: Apache-2.0
 *
 * filter.h - the gradient of a filter in tiles whose pixels are shared among work-groups: the host side of
 * cl/conv/filter_tiles.h and filter_sum.cl.
 */
#ifndef VN_CONV_FILTER_H
#define VN_CONV_FILTER_H

#include "im2col.h"

/* The problem as TMA reads it: x and dy may be copies with contiguous channels.  Of a few channels, all taps
 * of a row of the filter are beside each other: x has `across` times as many, of `pixel` for each tap.    */
struct filter_view {
    struct conv as;                             /* its x, y and w are those that TMA sees */
    struct im2col x, y;
    vn_tensor copied;                           /* of x, what its copy has */
    int     copies_x, copies_y;
    int64_t across, pixel, width;               /* width: pixels of a row of x's copy; across: 1 or more */
    size_t  bytes_x, bytes_y;                   /* of the copies */
};

struct filter_cut {
    int64_t tiles, elements;                    /* elements: of a tile */
    int64_t slices, parts;                      /* slices of a tile, divided into so many parts */
    int64_t resident;                           /* work-groups that a compute unit runs together */
};

/* What all engine kernels of the gradient of a filter ask for; types: NULL, or what they lack. */
const char *vn__fits_filter(const struct conv *c, const struct vn_facts *f, const char *types);
/* With column blocks of so many channels.  NULL, or why TMA cannot read it. */
const char *vn__filter_view(struct filter_view *out, const struct conv *c, int64_t block);
/* Makes the copies, from byte `at` of `room` on, with the choice's `kernel`, or with `rows` where pixels are
 * no whole vectors; the view is of them then.                                                             */
vn_status   vn__filter_copy(struct filter_view *v, vn_queue *q, const struct vn_choice *it, int kernel,
                            int rows, const struct conv *c, vn_buffer *room, size_t at);
double      vn__filter_copy_seconds(const struct filter_view *v, const struct conv *c, int thousandths,
                                    const struct vn_site *site);
/* Tiles of blk_m filters and blk_n columns, of which so many channels of a tap are beside each other; slices
 * of blk_k pixels.  NULL, or why there are too many.                                                      */
const char *vn__filter_tiles(struct filter_cut *out, const struct conv *c, int64_t blk_m, int64_t blk_n,
                             int64_t block, int64_t blk_k);
/* The number of parts, from `fewest` on, that takes the least time, if a slice of a tile takes so long, and
 * storing the sums of one; fewest 0: one part, whose sums are not stored apart.  And that time, but for what
 * memory adds to it.  NULL, or why there is none.                                                          */
const char *vn__filter_share(struct filter_cut *out, double *seconds, int fewest, double slice, double store,
                             const struct vn_site *site);
/* Arguments: the source x and its window, the extents of the filter, the dilation. */
void        vn__filter_arg_x(struct vn_launch *l, const struct filter_view *v, const struct conv *c);
int64_t     vn__filter_sums(const struct filter_cut *c);        /* elements of partial sums */
/* The launch of conv_filter_sum. */
vn_status   vn__filter_sum(vn_queue *q, const struct vn_choice *it, int kernel, const struct conv *c,
                           const struct filter_view *v, const struct filter_cut *cut, vn_buffer *sums);
/* The launch of conv_columns_sum; columns: of a filter in a part. */
vn_status   vn__filter_columns_sum(vn_queue *q, const struct vn_choice *it, int kernel, const struct conv *c,
                                   int64_t columns, int64_t parts, vn_buffer *sums);
#endif
