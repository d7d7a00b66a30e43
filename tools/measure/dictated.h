/* SPDX-License-Identifier: Apache-2.0
 *
 * dictated.h - makes a device use what it did not choose.
 *
 * A toolchain can only be compared on one tile and one launch shape; where the rows of two
 * devices differ, the second is opened again and gets the row of the first.  And a tuner runs
 * rows that no file has.  The command is linked with --wrap, so this stands between choose.c
 * and tune.c, and before choose.c.
 */
#ifndef VERNIER_DICTATED_H
#define VERNIER_DICTATED_H

#include "core.h"

/* From now on `variant` of `it` has its row on d too; NULL d: no longer. */
void row_dictate(const vn_device *d, const struct vn_choice *it);

/* From now on operations on d are done by `it`, which stays the caller's; NULL d: no longer. */
void choice_dictate(const vn_device *d, const struct vn_choice *it);

/* The same row for whatever problem comes: `of` gives `it`, or those of its kernels that are built for the
 * problem's constants and epilogue; NULL: they do not build.                                            */
typedef const struct vn_choice *choice_of(void *state, const void *problem);
void choice_dictate_row(const vn_device *d, const struct vn_choice *it, choice_of *of, void *state);

/* The same; and a call that is made again only launches, as a program's second does.  A variant that chooses
 * for its parts takes longer to choose than a small product to run.                                        */
void choice_repeat(const vn_device *d, const struct vn_choice *it);

/* What the library would choose for a problem: the calls that come are chosen for, but not run,
 * and fail.  out->variant: NULL until then; NULL out: no longer.                             */
struct asked {
    const struct vn_variant *variant;
    struct vn_problem problem;
    int         p[VN_PARAMS], c[VN_CONSTANTS];
    struct vn_epilogue epilogue;
    const char *source;
};
void choice_ask(struct asked *out);
#endif
