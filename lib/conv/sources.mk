# SPDX-License-Identifier: Apache-2.0
libcore_la_SOURCES += \
	%D%/bf16x3.c \
	%D%/bf16x3_filter.c \
	%D%/checks.c \
	%D%/conv.c \
	%D%/conv.h \
	%D%/cpu.c \
	%D%/filter.c \
	%D%/filter.h \
	%D%/im2col.c \
	%D%/im2col.h \
	%D%/matrix.c \
	%D%/mma.c \
	%D%/mma_filter.c \
	%D%/pack.c \
	%D%/phases.c \
	%D%/planes.c \
	%D%/product.c \
	%D%/repack.c \
	%D%/repack.h \
	%D%/slab.c \
	%D%/slab.h \
	%D%/slab_filter.c \
	%D%/spread.c \
	%D%/strips.c \
	%D%/strips.h \
	%D%/strips_filter.c \
	%D%/taps.c \
	%D%/tf32.c \
	%D%/tf32_filter.c \
	%D%/tiled.c \
	%D%/trial.c \
	%D%/variants.c \
	%D%/wgmma.c \
	%D%/wgmma.h \
	%D%/wgmma_filter.c \
	%D%/window_filter.c
