# SPDX-License-Identifier: Apache-2.0
# Libraries to be measured against, each loaded at run time if it is there.
libpeers_la_SOURCES += \
	%D%/clblast.c \
	%D%/nvidia.c \
	%D%/onednn.c \
	%D%/openblas.c \
	%D%/peer.c \
	%D%/peer.h \
	%D%/threads.c
