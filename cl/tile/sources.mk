# SPDX-License-Identifier: Apache-2.0
texts += \
	%D%/cpu.h \
	%D%/epilogue.h \
	%D%/fma.h
