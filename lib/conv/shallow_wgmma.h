/* SPDX-License-Identifier: Apache-2.0
 *
 * shallow_wgmma.h - images of few channels as units of 16 bytes: the host side of cl/conv/shallow_units.h.
 */
#ifndef VN_CONV_SHALLOW_WGMMA_H
#define VN_CONV_SHALLOW_WGMMA_H

#include "conv.h"

#define VN_MOST_OPEN 3                          /* MOST_OPEN */
enum { VN_UNIT = 8, VN_UNITS = 8 };             /* elements of a unit; units of a row of taps, at most */

/* What both directions ask for, but for the output; NULL, or what is not so. */
const char *vn__fits_shallow_units(const struct conv *c, const struct vn_facts *f);
/* WORDS; LAG; taps of zeros before the first of a row; units of a row of taps, an even number. */
int         vn__shallow_words(const struct conv *c);
int         vn__shallow_lag(const struct conv *c);
int64_t     vn__shallow_skipped(const struct conv *c);
int64_t     vn__shallow_units(const struct conv *c);

/* Bands across an image, of so many columns; rows of the output in all bands, which `groups` share: those of
 * each, and how many there are.  NULL, or why not.                                                         */
struct shallow_bands { int64_t across, rows, own, groups; };
const char *vn__shallow_bands(struct shallow_bands *out, const struct conv *c, int64_t columns,
                              int64_t groups);
/* Argument: vBands. */
void        vn__shallow_arg_bands(struct vn_launch *l, const struct conv *c, const struct shallow_bands *b);
#endif
