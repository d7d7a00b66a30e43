# SPDX-License-Identifier: Apache-2.0
libcore_la_SOURCES += \
	%D%/attention.c \
	%D%/attention.h \
	%D%/cpu.c \
	%D%/decode.c \
	%D%/tiled.c \
	%D%/trial.c \
	%D%/variants.c \
	%D%/wgmma.c
