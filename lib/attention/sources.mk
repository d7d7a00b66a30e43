# SPDX-License-Identifier: Apache-2.0
libcore_la_SOURCES += \
	%D%/attention.c \
	%D%/attention.h \
	%D%/backward.c \
	%D%/backward.h \
	%D%/backward_cpu.c \
	%D%/backward_tiled.c \
	%D%/backward_trial.c \
	%D%/backward_wgmma.c \
	%D%/bf16x3.c \
	%D%/cpu.c \
	%D%/decode.c \
	%D%/matrix.c \
	%D%/mma.c \
	%D%/tiled.c \
	%D%/trial.c \
	%D%/variants.c \
	%D%/wgmma.c
