/* SPDX-License-Identifier: Apache-2.0
 *
 * operations.c - the operations of operations.h as a table.
 */
#include "core.h"

#define OPERATION(name) &vn__##name,
const struct vn_operation *const vn__operations[] = {
#include "operations.h"
    NULL
};
#undef OPERATION
