# SPDX-License-Identifier: Apache-2.0
# Problems and their little language: shared by the command and the tests.
libproblem_la_SOURCES += \
	%D%/attention.h \
	%D%/conv.h \
	%D%/gemm.h \
	%D%/language.c \
	%D%/language.h \
	%D%/op.h \
	%D%/operands.c \
	%D%/operands.h \
	%D%/ops.h \
	%D%/problem.c \
	%D%/problem.h \
	%D%/softmax.h
vernier_SOURCES += \
	%D%/values.c \
	%D%/values.h \
	%D%/workloads.c \
	%D%/workloads.h

# The operations of ops.h: how each is said and run, its oracle, and its cases in the suite.
libproblem_la_SOURCES += \
	%D%/attention.c tools/check/oracle/attention.c tools/check/suite_attention.c \
	%D%/conv.c    tools/check/oracle/conv.c    tools/check/suite_conv.c \
	%D%/gemm.c    tools/check/oracle/gemm.c    tools/check/suite_gemm.c \
	%D%/softmax.c tools/check/oracle/softmax.c tools/check/suite_softmax.c
libproblem_la_SOURCES += %D%/cross_entropy.c %D%/cross_entropy.h tools/check/oracle/cross_entropy.c tools/check/suite_cross_entropy.c
