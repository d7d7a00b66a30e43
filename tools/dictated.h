/* SPDX-License-Identifier: Apache-2.0
 *
 * dictated.h - makes one device use the tune row that another one chose.
 *
 * A toolchain can only be compared on one tile and one launch shape; where the rows of two
 * devices differ, the second is opened again and gets the row of the first.  The command is
 * linked with --wrap, so this stands between choose.c and tune.c.
 */
#ifndef VERNIER_DICTATED_H
#define VERNIER_DICTATED_H

#include "core.h"

/* From now on `variant` of `it` has its row on d too; NULL d: no longer. */
void row_dictate(const vn_device *d, const struct vn_choice *it);
#endif
