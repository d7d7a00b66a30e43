/* SPDX-License-Identifier: Apache-2.0
 *
 * ops.h - the operations that the command knows, each a file NAME.c of this folder with its op_NAME.
 * Read several times, with another OP() each.
 */
OP(gemm)
OP(conv)
OP(softmax)
OP(attention)
OP(cross_entropy)
