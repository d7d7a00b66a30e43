# SPDX-License-Identifier: Apache-2.0
texts += \
	%D%/amd/chained.h \
	%D%/amd/matrix.h \
	%D%/intel/chained.h \
	%D%/intel/matrix.h \
	%D%/nvidia/cp_async.h \
	%D%/nvidia/lanes.h \
	%D%/nvidia/mbarrier.h \
	%D%/nvidia/math.h \
	%D%/nvidia/memory.h \
	%D%/nvidia/mma.h \
	%D%/nvidia/stream.h \
	%D%/nvidia/tma.h \
	%D%/nvidia/warp.h \
	%D%/nvidia/wgmma.h
