# SPDX-License-Identifier: Apache-2.0
# The conformance suite: `vernier check` and the tests run the same cases.
libproblem_la_SOURCES += \
	%D%/data.c \
	%D%/data.h \
	%D%/oracle.c \
	%D%/oracle.h \
	%D%/oracle/products.c \
	%D%/oracle/products.h \
	%D%/suite.c \
	%D%/suite.h \
	%D%/suite_jobs.c
vernier_SOURCES += \
	%D%/check.c \
	%D%/spot.c \
	%D%/spot.h
