/* SPDX-License-Identifier: Apache-2.0
 *
 * spot.h - is a result right?  The oracle, asked about a small part of a large problem.
 */
#ifndef VERNIER_SPOT_H
#define VERNIER_SPOT_H

#include "problem/values.h"

/* result: the outputs' buffers after one run (results_read).  0, or -1 with a sentence in why[]. */
int spot_check(const struct problem *p, const struct values *v, const struct results *result,
               char *why, size_t why_size);
/* Do two results of one problem agree to rounding?  If not, 0 and a sentence that names the other.  in: NULL;
 * or, where the other library rounds on the way (op->rounded), the operands on the host.                  */
int results_agree(const struct problem *p, const struct operands *o, const struct results *ours,
                  const struct results *theirs, void *const *in, char *why, size_t why_size,
                  const char *name);
#endif
