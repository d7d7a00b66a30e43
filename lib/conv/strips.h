/* SPDX-License-Identifier: Apache-2.0
 *
 * strips.h - depthwise convolution, forward and backward data, as cl/conv/strip.h has it.
 */
#ifndef VN_CONV_STRIPS_H
#define VN_CONV_STRIPS_H

#include "conv.h"

/* Backward data with a stride of 1 is forward with the filter reversed. */
struct strips {
    const vn_tensor *in, *out;
    int64_t first, row, col;            /* of a filter: from its start to tap 0, and the steps to the next */
    int64_t pad[DIMS];
    int     spread;                     /* DIRECTION of the kernel: backward data with a stride of 2 */
};

/* The first costs of the variants here: thousandths of the memory's rate, of the three kinds of problem: with
 * a stride of 1; of more; and backward data with a stride of more. */
enum { VN_STRIPS_FIXED_NS, VN_STRIPS_SHARE, VN_STRIPS_STRIDED, VN_STRIPS_SPREAD, VN_STRIPS_COSTS };

/* How planes are divided among work-groups and work-items (cl/conv/planes.cl). */
struct planes { int64_t planes, rows, strips, down, across, out; };

/* NULL, or what the problem has that strips cannot do: of images, of the gradient of a filter; and planes. */
const char   *vn__fits_strips(const struct conv *c);
const char   *vn__fits_depthwise_filter(const struct conv *c);
const char   *vn__fits_planes(const struct conv *c, const struct vn_facts *f);
/* Whether channels are vectors of 16 bytes. */
int           vn__strips_channels_last(const vn_tensor *t);
/* Whether the filters of channels follow each other. */
int           vn__strips_are_dense(const vn_tensor *w);
/* At most so many planes in strips of so many rows and columns, by so many work-items and KiB.
 * 0: there is no room. */
int           vn__planes_cut(struct planes *out, const struct strips *s, const struct conv *c, int64_t rows,
                             int64_t cols, int64_t items, int64_t room, int64_t most);
struct strips vn__strips_of(const struct conv *c);
/* Rows or columns of the source that n of the output read: STRIP_WIDE() of cl/conv/strip.h. */
int64_t       vn__strips_source(const struct conv *c, const struct strips *s, int64_t n);
/* Whether strips of so many rows and columns can be EXACT. */
int           vn__strips_are_exact(const struct conv *c, int64_t rows, int64_t cols);
/* Seconds that a row takes which moves so many bytes, its shares from cost `first` on; 0 if it has none. */
double        vn__strips_seconds(const struct conv *c, double bytes, const struct vn_row *row, int first,
                                 const struct vn_site *site);
/* The filter's buffer and its view, of taps as s5 and s6, as kernels take it. */
void          vn__strips_arg_filter(struct vn_launch *l, const struct conv *c, const struct strips *s);
#endif
