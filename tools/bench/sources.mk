# SPDX-License-Identifier: Apache-2.0
vernier_SOURCES += \
	%D%/bench.c \
	%D%/bench.h \
	%D%/overhead.c \
	%D%/report.c \
	%D%/roofline.c \
	%D%/roofline.h \
	%D%/row.c \
	%D%/series.c \
	%D%/series.h \
	%D%/startup.c
