# SPDX-License-Identifier: Apache-2.0
texts += \
	%D%/attention.h \
	%D%/attention.tune \
	%D%/cpu.cl \
	%D%/decode.cl \
	%D%/decode.h \
	%D%/decode_mma.cl \
	%D%/merge.cl \
	%D%/online.h \
	%D%/tiled.cl \
	%D%/wgmma.cl \
	%D%/wgmma.h
