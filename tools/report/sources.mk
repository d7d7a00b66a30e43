# SPDX-License-Identifier: Apache-2.0
vernier_SOURCES += \
	%D%/chart.c \
	%D%/chart.h \
	%D%/csv.c \
	%D%/errors.c \
	%D%/errors.h \
	%D%/html.c \
	%D%/html.h \
	%D%/page.c \
	%D%/page.h \
	%D%/report.c \
	%D%/report.h \
	%D%/svg.c \
	%D%/svg.h \
	%D%/valid.c
EXTRA_DIST += CITATION.cff doc/report.schema.json doc/summary.py
