# SPDX-License-Identifier: Apache-2.0
texts += \
	%D%/bf16x3.cl \
	%D%/conv.h \
	%D%/conv.tune \
	%D%/cpu.cl \
	%D%/few.cl \
	%D%/im2col.h \
	%D%/repack.cl \
	%D%/sides.h \
	%D%/slab.cl \
	%D%/strips.cl \
	%D%/taps.cl \
	%D%/tiled.cl \
	%D%/unpack.cl \
	%D%/wgmma.cl \
	%D%/wgmma.h \
	%D%/window.cl
