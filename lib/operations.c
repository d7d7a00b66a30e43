/* SPDX-License-Identifier: Apache-2.0
 *
 * operations.c - the operations, each with the table of its variants.
 */
#include "core.h"

const struct vn_operation *const vn__operations[] = { &vn__gemm, &vn__conv, &vn__softmax, NULL };
