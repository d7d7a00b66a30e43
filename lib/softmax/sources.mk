# SPDX-License-Identifier: Apache-2.0
libcore_la_SOURCES += \
	%D%/cpu.c \
	%D%/rows.c \
	%D%/softmax.c \
	%D%/softmax.h \
	%D%/variants.c
