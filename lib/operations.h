/* SPDX-License-Identifier: Apache-2.0
 *
 * operations.h - the operations, each with a folder of lib/ and of cl/: its struct vn_operation is vn__NAME.
 * Read several times, with another OPERATION() each.
 */
OPERATION(gemm)
OPERATION(conv)
OPERATION(softmax)
OPERATION(attention)
OPERATION(cross_entropy)
