# SPDX-License-Identifier: Apache-2.0
libcore_la_SOURCES += \
	%D%/checks.c \
	%D%/conv.c \
	%D%/conv.h \
	%D%/cpu.c \
	%D%/product.c \
	%D%/slab.c \
	%D%/tiled.c \
	%D%/variants.c
