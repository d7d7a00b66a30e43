# SPDX-License-Identifier: Apache-2.0
vernier_SOURCES += \
	%D%/candidates.c \
	%D%/check.c \
	%D%/choice.c \
	%D%/choice.h \
	%D%/drawn.c \
	%D%/file.c \
	%D%/journal.c \
	%D%/race.c \
	%D%/space.c \
	%D%/tune.c \
	%D%/tune.h
