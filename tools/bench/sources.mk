# SPDX-License-Identifier: Apache-2.0
vernier_SOURCES += \
	%D%/bench.c \
	%D%/bench.h \
	%D%/context.c \
	%D%/engines.c \
	%D%/engines.h \
	%D%/html.c \
	%D%/overhead.c \
	%D%/report.c \
	%D%/roofline.c \
	%D%/roofline.h \
	%D%/row.c \
	%D%/series.c \
	%D%/series.h \
	%D%/startup.c

# The commit that this was built from, "" where nobody knows.
tools/bench/vernier-context.$(OBJEXT): tools/commit.h
tools/commit.h: FORCE
	$(AM_V_at)$(MKDIR_P) tools && commit=; \
	if test -e '$(srcdir)/.git'; then \
	    commit=`cd '$(srcdir)' && git describe --always --dirty --abbrev=40 --exclude='*' 2> /dev/null`; \
	elif test -f '$(srcdir)/.commit'; then commit=`cat '$(srcdir)/.commit'`; fi; \
	{ echo '/* SPDX-License''-Identifier: Apache-2.0 */'; echo "#define COMMIT \"$$commit\""; } > $@.new; \
	if cmp -s $@.new $@; then rm -f $@.new; else mv -f $@.new $@; fi
FORCE:
.PHONY: FORCE
CLEANFILES += tools/commit.h
dist-hook:
	sed -n 's/^#define COMMIT "\(.*\)"$$/\1/p' tools/commit.h > '$(distdir)/.commit'
dist-hook: tools/commit.h
