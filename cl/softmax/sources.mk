# SPDX-License-Identifier: Apache-2.0
texts += \
	%D%/cpu.cl \
	%D%/rows.cl \
	%D%/rows.h \
	%D%/softmax.h \
	%D%/softmax.tune \
	%D%/team.cl
