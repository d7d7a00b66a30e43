# SPDX-License-Identifier: Apache-2.0
libcore_la_SOURCES += \
	%D%/batched.c \
	%D%/bf16x3.c \
	%D%/bf16x3.h \
	%D%/bf16x3_rows.c \
	%D%/cost.c \
	%D%/cpu.c \
	%D%/cpu_dot.c \
	%D%/cpu_rank.c \
	%D%/cpu_strip.c \
	%D%/fits.c \
	%D%/gemm.c \
	%D%/gemm.h \
	%D%/matrix.c \
	%D%/mma.c \
	%D%/mma_splitk.c \
	%D%/pack.c \
	%D%/padded.c \
	%D%/pipelined.c \
	%D%/skinny.c \
	%D%/splitk.c \
	%D%/splits.c \
	%D%/tf32.c \
	%D%/tiled.c \
	%D%/trial.c \
	%D%/variants.c \
	%D%/wgmma.c
