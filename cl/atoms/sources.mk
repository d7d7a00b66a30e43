# SPDX-License-Identifier: Apache-2.0
texts += \
	%D%/amd/matrix.h \
	%D%/intel/matrix.h \
	%D%/nvidia/nvidia.h
