# SPDX-License-Identifier: Apache-2.0
texts += \
	%D%/cpu.cl \
	%D%/cross_entropy.h \
	%D%/cross_entropy.tune \
	%D%/rows.cl \
	%D%/rows.h \
	%D%/team.cl
