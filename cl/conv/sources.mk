# SPDX-License-Identifier: Apache-2.0
texts += \
	%D%/conv.h \
	%D%/conv.tune \
	%D%/cpu.cl \
	%D%/slab.cl \
	%D%/tiled.cl
