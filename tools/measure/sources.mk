# SPDX-License-Identifier: Apache-2.0
vernier_SOURCES += \
	%D%/clocks.c \
	%D%/clocks.h \
	%D%/dictated.c \
	%D%/dictated.h \
	%D%/interposed.c \
	%D%/interposed.h \
	%D%/machine.c \
	%D%/machine.h \
	%D%/sampling.c \
	%D%/sampling.h \
	%D%/statistics.c \
	%D%/statistics.h \
	%D%/timing.c \
	%D%/timing.h
if CUDA
vernier_SOURCES += \
	%D%/interposed_cuda.c
endif
