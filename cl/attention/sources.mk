# SPDX-License-Identifier: Apache-2.0
texts += \
	%D%/attention.h \
	%D%/attention.tune \
	%D%/backward.cl \
	%D%/backward_cpu.cl \
	%D%/backward_tiled.cl \
	%D%/backward_wgmma.cl \
	%D%/backward_wgmma.h \
	%D%/bf16x3.cl \
	%D%/bf16x3.h \
	%D%/boxes.h \
	%D%/cpu.cl \
	%D%/cpu.h \
	%D%/decode.cl \
	%D%/decode_cpu.cl \
	%D%/decode.h \
	%D%/decode_mma.cl \
	%D%/jobs.h \
	%D%/matrix.cl \
	%D%/matrix.h \
	%D%/merge.cl \
	%D%/mma.cl \
	%D%/mma.h \
	%D%/online.h \
	%D%/scores.h \
	%D%/tiled.cl \
	%D%/tiled.h \
	%D%/wgmma.cl \
	%D%/wgmma.h
