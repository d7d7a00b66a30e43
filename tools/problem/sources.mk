# SPDX-License-Identifier: Apache-2.0
# Problems and their little language: shared by the command and the tests.
libproblem_la_SOURCES += \
	%D%/problem.c \
	%D%/problem.h
vernier_SOURCES += \
	%D%/values.c \
	%D%/values.h \
	%D%/workloads.c \
	%D%/workloads.h
