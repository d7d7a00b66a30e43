# SPDX-License-Identifier: Apache-2.0
libcore_la_SOURCES += \
	%D%/awake.c \
	%D%/device.c \
	%D%/error.c \
	%D%/grid.c \
	%D%/host.c \
	%D%/interop.c \
	%D%/opencl.c \
	%D%/opencl.h \
	%D%/ptx.c
