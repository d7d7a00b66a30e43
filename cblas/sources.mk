# SPDX-License-Identifier: Apache-2.0
# libvernier_cblas.so: products of BLAS through the library, by LD_PRELOAD or by -lvernier_cblas before the BLAS.
if CBLAS
lib_LTLIBRARIES += libvernier_cblas.la
endif
libvernier_cblas_la_SOURCES = \
	%D%/cblas.c \
	%D%/family.h \
	%D%/functions.h \
	%D%/next.c \
	%D%/product.c \
	%D%/shim.h
libvernier_cblas_la_LIBADD  = libvernier.la
libvernier_cblas_la_LDFLAGS = $(AM_LDFLAGS) -no-undefined -avoid-version -shared $(NODELETE)

# Which sizes are worth it on this machine: ratio.c says how it is run.
EXTRA_PROGRAMS      += %D%/ratio
%C%_ratio_LDADD      =
