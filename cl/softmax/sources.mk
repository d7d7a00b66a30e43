# SPDX-License-Identifier: Apache-2.0
texts += \
	%D%/cpu.cl \
	%D%/rows.cl \
	%D%/softmax.h \
	%D%/softmax.tune
