# SPDX-License-Identifier: Apache-2.0
libcore_la_SOURCES += \
	%D%/conv.c \
	%D%/conv.h
