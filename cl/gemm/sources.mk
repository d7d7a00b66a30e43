# SPDX-License-Identifier: Apache-2.0
texts += \
	%D%/bf16x3.cl \
	%D%/bf16x3.h \
	%D%/bf16x3_rows.cl \
	%D%/boxes.h \
	%D%/cpu.cl \
	%D%/cpu_dot.cl \
	%D%/cpu_rank.cl \
	%D%/cpu_strip.cl \
	%D%/gemm.tune \
	%D%/matrix.cl \
	%D%/mma.cl \
	%D%/pad.h \
	%D%/padded.cl \
	%D%/pipelined.cl \
	%D%/skinny.cl \
	%D%/skinny.h \
	%D%/skinny_lines.cl \
	%D%/skinny_mma.cl \
	%D%/splitk_sum.cl \
	%D%/tf32.cl \
	%D%/tiled.cl \
	%D%/wgmma.cl
