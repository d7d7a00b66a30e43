# SPDX-License-Identifier: Apache-2.0
vernier_SOURCES += \
	%D%/candidates.c \
	%D%/check.c \
	%D%/choice.c \
	%D%/choice.h \
	%D%/costs.c \
	%D%/drawn.c \
	%D%/file.c \
	%D%/gauges.c \
	%D%/journal.c \
	%D%/model.c \
	%D%/model.h \
	%D%/pins.c \
	%D%/race.c \
	%D%/rates.c \
	%D%/space.c \
	%D%/tune.c \
	%D%/tune.h
