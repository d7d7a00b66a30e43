# SPDX-License-Identifier: Apache-2.0
# The command.  It is linked with the objects of the library, whose inner parts its roofline
# and overhead measurements use, so that it runs where the library is not installed.
if TOOLS
bin_PROGRAMS      = vernier
dist_pkgdata_DATA = $(suites)

# Where bash-completion looks; made by the command, so not where that cannot run.
if NATIVE
completionsdir   = $(datadir)/bash-completion/completions
completions_DATA = %D%/completion/vernier
CLEANFILES      += %D%/completion/vernier
endif
%D%/completion/vernier: vernier$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) %D%/completion && ./vernier$(EXEEXT) completion > $@.tmp && mv $@.tmp $@
endif
vernier_SOURCES += \
	%D%/cache.c \
	%D%/commands.h \
	%D%/compare.c \
	%D%/compare.h \
	%D%/compare_html.c \
	%D%/completion.c \
	%D%/devices.c \
	%D%/explain.c \
	%D%/main.c \
	%D%/options.c \
	%D%/options.h \
	%D%/warm.c
vernier_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) \
	-DINSTALLED_SUITES='"$(pkgdatadir)"'
vernier_LDADD    = libproblem.la libpeers.la libcore.la $(JANSSON_LIBS) $(TOOLS_LIBS)
vernier_LDFLAGS  = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=posix_memalign,--wrap=strdup \
	-Wl,--wrap=clSetKernelArg,--wrap=clEnqueueNDRangeKernel,--wrap=vn__tune_find,--wrap=vn__choose,--wrap=vn__call_again
if CUDA
vernier_LDFLAGS += -Wl,--wrap=vn__launch,--wrap=vn__cuda_driver
endif
