/* SPDX-License-Identifier: Apache-2.0
 *
 * slab.h - how pixels are cut into boxes, the source under each of which fits a slab (cl/conv/slab.h).
 */
#ifndef VN_SLAB_H
#define VN_SLAB_H

#include "conv.h"

enum { VN_SLAB_THR_M, VN_SLAB_THR_V, VN_SLAB_VEC, VN_SLAB_BLK_K, VN_SLAB_BLK_S, VN_SLAB_BLK_C };
enum { VN_STEPS_MOST = 2048, VN_ROW_STEP_MOST = 3 };    /* of cl/conv/slab.h */
/* Of a plan of conv_slab, and of conv_slab_filter: what a task has at most. */
enum { VN_SLAB_PANELS, VN_SLAB_PIXELS, VN_SLAB_CHANNELS, VN_SLAB_SPLITS };

/* The extents of a box, and how many boxes there are: images, then the dimensions. */
struct vn_boxes { int64_t box[1 + DIMS], count[1 + DIMS]; };

/* How far the slab reaches beyond the pixels along a dimension, and its places from pixel to pixel; a filter
 * that has one tap there, in each phase, takes none of what lies between.                                  */
struct vn_reach { int64_t beyond, pixel, extent; };

#define VN_REACHES(c) { vn__slab_reach(c, 0), vn__slab_reach(c, 1), vn__slab_reach(c, 2) }

struct vn_reach vn__slab_reach(const struct conv *c, int d);

/* Why the arrays of a row do not fit the local memory, or NULL. */
const char *vn__slab_fits(const struct conv *c, const int *p, const struct vn_facts *f);

/* The elements of the slab for one channel. */
double vn__slab_elements(const struct vn_reach r[DIMS], const int64_t box[1 + DIMS]);

/* A part of `extent`, such that all parts are about as large, and at most `most`. */
int64_t vn__even_part(int64_t extent, int64_t most);

/* The time of `tasks` that `units` take one after the other: that of the largest one, or of as many as a unit
 * takes, which are `even` on average. With several units some end late, by a part of one. */
double vn__slab_time(double task, double even, int64_t tasks, int units);

/* Boxes of at most `most` pixels: whole rows first. */
void vn__cut_box(struct vn_boxes *out, int64_t images, const struct vn_reach r[DIMS], int64_t most);
#endif
