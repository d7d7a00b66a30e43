# SPDX-License-Identifier: Apache-2.0
texts += \
	%D%/batched.cl \
	%D%/batched.h \
	%D%/batched_fma.cl \
	%D%/bf16x3.cl \
	%D%/bf16x3.h \
	%D%/bf16x3_rows.cl \
	%D%/bf16x3_rows.h \
	%D%/cpu.cl \
	%D%/cpu_dot.cl \
	%D%/cpu_rank.cl \
	%D%/cpu_strip.cl \
	%D%/gemm.tune \
	%D%/matrix.cl \
	%D%/mma.cl \
	%D%/mma_splitk.cl \
	%D%/padded.cl \
	%D%/pipelined.cl \
	%D%/repack.h \
	%D%/skinny.cl \
	%D%/skinny.h \
	%D%/skinny_mma.cl \
	%D%/skinny_rows.cl \
	%D%/splitk_sum.cl \
	%D%/tf32.cl \
	%D%/tf32.h \
	%D%/tf32_pack.cl \
	%D%/tiled.cl \
	%D%/wgmma.cl \
	%D%/wgmma.h \
	%D%/wgmma_repack.cl \
	%D%/wgmma_splitk.cl
