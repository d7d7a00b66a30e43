# SPDX-License-Identifier: Apache-2.0
# The conformance suite: `vernier check` and the tests run the same cases.
libproblem_la_SOURCES += \
	%D%/oracle.c \
	%D%/oracle.h
libsuite_la_SOURCES += \
	%D%/data.c \
	%D%/data.h \
	%D%/suite.c \
	%D%/suite.h \
	%D%/suite_conv.c \
	%D%/suite_gemm.c \
	%D%/suite_jobs.c \
	%D%/suite_softmax.c
vernier_SOURCES += \
	%D%/check.c \
	%D%/spot.c \
	%D%/spot.h
