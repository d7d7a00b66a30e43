# SPDX-License-Identifier: Apache-2.0
vernier_SOURCES += \
	%D%/disassembly.c \
	%D%/disassembly.h \
	%D%/gap.c \
	%D%/gap.h \
	%D%/html.c \
	%D%/launched.c \
	%D%/launched.h \
	%D%/once.c \
	%D%/pair.c \
	%D%/pinned.c \
	%D%/pinned.h \
	%D%/processes.c \
	%D%/report.c \
	%D%/resumed.c \
	%D%/row.c \
	%D%/session.c \
	%D%/session.h \
	%D%/workers.c \
	%D%/workers.h
