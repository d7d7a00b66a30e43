# SPDX-License-Identifier: Apache-2.0
libcore_la_SOURCES += \
	%D%/cross_entropy.c \
	%D%/cross_entropy.h \
	%D%/variants.c
