# SPDX-License-Identifier: Apache-2.0
vernier_SOURCES += \
	%D%/errors.c \
	%D%/errors.h \
	%D%/html.c \
	%D%/html.h \
	%D%/report.c \
	%D%/report.h \
	%D%/svg.c \
	%D%/svg.h \
	%D%/valid.c
