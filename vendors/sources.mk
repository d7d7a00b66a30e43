# SPDX-License-Identifier: Apache-2.0
# Vendors' libraries as variants, each found at run time.
libcore_la_SOURCES += \
	%D%/blas.c \
	%D%/blas.h \
	%D%/clblast.c \
	%D%/library.c \
	%D%/library.h \
	%D%/vendor.h
if CUDA
libcore_la_SOURCES += \
	%D%/cublas.c \
	%D%/cublas.h \
	%D%/cudnn.c \
	%D%/cudnn.h \
	%D%/cudnn_conv.c \
	%D%/cudnn_conv.h \
	%D%/cudnn_fused.c \
	%D%/cudnn_graph.c \
	%D%/cudnn_graph.h \
	%D%/cudnn_softmax.c \
	%D%/prepared.c \
	%D%/prepared.h
endif
