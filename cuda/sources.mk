# SPDX-License-Identifier: Apache-2.0
# The words that the kernels are written in, as CUDA C++.
texts += \
	%D%/words.h
