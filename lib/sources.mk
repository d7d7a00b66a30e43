# SPDX-License-Identifier: Apache-2.0
# What the operations share: devices, queues, choosing, tuning, the cache, the log.
include_HEADERS += \
	%D%/vernier.h \
	%D%/vernier.hpp \
	%D%/vernier_cuda.h \
	%D%/vernier_opencl.h
libcore_la_SOURCES += \
	%D%/backend.h \
	%D%/choices.h \
	%D%/choose.c \
	%D%/core.h \
	%D%/device.c \
	%D%/explain.c \
	%D%/fits.c \
	%D%/team.c \
	%D%/log.c \
	%D%/memo.c \
	%D%/pack.c \
	%D%/operation.c \
	%D%/operations.c \
	%D%/operations.h \
	%D%/os.c \
	%D%/os.h \
	%D%/overlap.c \
	%D%/plan.c \
	%D%/queue.c \
	%D%/status.c \
	%D%/tensor.c \
	%D%/text.c \
	%D%/text.h \
	%D%/transfer.c \
	%D%/trial.c \
	%D%/tune.c
if WINDOWS
libcore_la_SOURCES += %D%/cache_absent.c
else
libcore_la_SOURCES += %D%/cache.c
endif
nodist_libcore_la_SOURCES += %D%/texts.c

# Kernels, vocabularies and tune rows as one table of strings.
BUILT_SOURCES += %D%/texts.c
CLEANFILES    += %D%/texts.c
EXTRA_DIST    += %D%/texts.awk

%D%/texts.c: $(texts) %D%/texts.awk Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && \
	(cd $(srcdir) && LC_ALL=C $(AWK) -f %D%/texts.awk $(texts)) > $@.tmp && mv $@.tmp $@
