# SPDX-License-Identifier: Apache-2.0
texts += \
	%D%/adjacent.h \
	%D%/bf16x3.cl \
	%D%/bf16x3_filter.cl \
	%D%/conv.h \
	%D%/conv.tune \
	%D%/cpu.cl \
	%D%/few.cl \
	%D%/filter_sum.cl \
	%D%/filter_tiles.h \
	%D%/gather.h \
	%D%/im2col.h \
	%D%/output.h \
	%D%/parts_sum.cl \
	%D%/phases.cl \
	%D%/phases.h \
	%D%/planes.cl \
	%D%/planes_filter.cl \
	%D%/repack.cl \
	%D%/sides.h \
	%D%/slab.cl \
	%D%/slab.h \
	%D%/slab_filter.cl \
	%D%/strip.h \
	%D%/strip_rows.h \
	%D%/strips.cl \
	%D%/strips_filter.cl \
	%D%/taps.cl \
	%D%/tiled.cl \
	%D%/unpack.cl \
	%D%/wgmma.cl \
	%D%/wgmma.h \
	%D%/wgmma_filter.cl \
	%D%/wgmma_filter.h \
	%D%/wgmma_filter_splitk.cl \
	%D%/window.cl \
	%D%/window_filter.cl
