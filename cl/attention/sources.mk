# SPDX-License-Identifier: Apache-2.0
texts += \
	%D%/attention.h \
	%D%/attention.tune \
	%D%/cpu.cl \
	%D%/tiled.cl
