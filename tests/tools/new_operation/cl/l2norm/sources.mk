# SPDX-License-Identifier: Apache-2.0
texts += \
	%D%/l2norm.tune \
	%D%/rows.cl
