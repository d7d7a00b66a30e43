# SPDX-License-Identifier: Apache-2.0
# The public calls are there without CUDA, too: they say that it is missing.
libcore_la_SOURCES += \
	%D%/interop.c
if CUDA
libcore_la_SOURCES += \
	%D%/cuda.c \
	%D%/cuda.h \
	%D%/driver.c \
	%D%/driver.h
endif
