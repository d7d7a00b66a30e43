# SPDX-License-Identifier: Apache-2.0
# Kernels and their vocabularies travel inside the library, as text.
texts += \
	%D%/peak.cl \
	%D%/peak_matrix.cl \
	%D%/peak_mma.cl \
	%D%/peak_operand.h \
	%D%/peak_wgmma.cl \
	%D%/rates.tune \
	%D%/types.h \
	%D%/window.cl \
	%D%/words.h
EXTRA_DIST += $(texts)
