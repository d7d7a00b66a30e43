/* SPDX-License-Identifier: Apache-2.0
 *
 * intel.h - what Intel's compiler declares by itself, for a compiler that does not know it
 */
#define BUILT_IN __attribute__((overloadable, convergent))
ushort8 BUILT_IN intel_sub_group_block_read_us8(const __local ushort *p);
uint8   BUILT_IN intel_sub_group_block_read8(const __local uint *p);
float8  BUILT_IN intel_sub_group_f16_f16_matrix_mad_k16(short8 a, int8 b, float8 c);
float8  BUILT_IN intel_sub_group_f16_f16_matrix_mad_k16(int8 a, int8 b, float8 c);
float8  BUILT_IN intel_sub_group_bf16_bf16_matrix_mad_k16(short8 a, int8 b, float8 c);
float8  BUILT_IN intel_sub_group_bf16_bf16_matrix_mad_k16(int8 a, int8 b, float8 c);
