# SPDX-License-Identifier: Apache-2.0
# A program is made of the C file of its name, unless more is said, and linked with LDADD.
LDADD = libproblem.la libcore.la -lm
disk  = %D%/disk.c %D%/disk.h
trial = %D%/trial.c %D%/trial.h

## The API.

test_programs += \
	%D%/api/test_again \
	%D%/api/test_arguments \
	%D%/api/test_attention \
	%D%/api/test_bitwise \
	%D%/api/test_cache \
	%D%/api/test_costs \
	%D%/api/test_fork \
	%D%/api/test_gradients \
	%D%/api/test_log \
	%D%/api/test_pack \
	%D%/api/test_relations \
	%D%/api/test_sizes \
	%D%/api/test_threads \
	%D%/api/test_transfers \
	%D%/api/test_tune \
	%D%/api/test_unload \
	%D%/api/test_views \
	%D%/api/test_warm
test_scripts  += \
	%D%/api/cblas.sh \
	%D%/api/cpp.sh \
	%D%/api/headers.sh \
	%D%/api/install.sh \
	%D%/api/mingw.sh

%C%_api_test_again_SOURCES   = %D%/api/test_again.c $(trial)
%C%_api_test_again_LDFLAGS   = $(AM_LDFLAGS) -Wl,--wrap=vn__operate,--wrap=vn__choose,--wrap=vn__launch
%C%_api_test_bitwise_SOURCES = %D%/api/test_bitwise.c %D%/api/bitwise.h $(trial)
%C%_api_test_bitwise_CFLAGS  = $(AM_CFLAGS) -ffp-contract=off
%C%_api_test_cache_SOURCES   = %D%/api/test_cache.c $(disk)
%C%_api_test_fork_SOURCES    = %D%/api/test_fork.c $(trial)
%C%_api_test_log_SOURCES     = %D%/api/test_log.c $(disk)
%C%_api_test_threads_SOURCES = %D%/api/test_threads.c $(trial) $(disk)
%C%_api_test_tune_SOURCES    = %D%/api/test_tune.c $(disk)
%C%_api_test_unload_CPPFLAGS = $(AM_CPPFLAGS) -DLIBRARY='"$(abs_builddir)/.libs/libvernier.so"'
%C%_api_test_warm_SOURCES    = %D%/api/test_warm.c $(disk)

# Products of BLAS, before a BLAS that counts its calls.
if CBLAS
test_programs     += %D%/api/test_cblas
check_LTLIBRARIES += %D%/fakes/blas.la
endif
%C%_fakes_blas_la_SOURCES   = %D%/fakes/blas.c
%C%_fakes_blas_la_LDFLAGS   = $(fake_flags)
%C%_api_test_cblas_CPPFLAGS = $(AM_CPPFLAGS) -DSHIM='"$(abs_builddir)/.libs/libvernier_cblas.so"' \
	-DBLAS='"$(abs_builddir)/%D%/fakes/.libs/blas.so"'
%C%_api_test_cblas_LDADD    =

## The kernels.  The conformance suite runs three times: as a program on the device that
## $VERNIER_DEVICE names (PoCL unless set), and through a script on two more implementations.

test_programs  += %D%/kernels/hopper %D%/kernels/test_activations %D%/kernels/test_exponential
%C%_kernels_test_activations_CFLAGS = $(AM_CFLAGS) -ffp-contract=off -Wno-unused-function
%C%_kernels_test_activations_LDADD  = -lm
%C%_kernels_test_exponential_CFLAGS = $(AM_CFLAGS) -ffp-contract=off -Wno-unused-function
%C%_kernels_test_exponential_LDADD  = -lm
check_PROGRAMS += %D%/kernels/emulation %D%/kernels/machine_code %D%/kernels/nvrtc %D%/kernels/texts
test_scripts   += \
	%D%/kernels/compile.sh \
	%D%/kernels/conv.sh \
	%D%/kernels/emulation.sh \
	%D%/kernels/engines.sh \
	%D%/kernels/gate.sh \
	%D%/kernels/oclgrind.sh \
	%D%/kernels/rows.sh \
	%D%/kernels/rusticl.sh
EXTRA_DIST     += %D%/kernels/amdgcn.h %D%/kernels/coroutines.h %D%/kernels/engines.h %D%/kernels/hopper.h %D%/kernels/intel.h \
	%D%/kernels/lanes.h %D%/kernels/scalar.h %D%/kernels/codegen.sh %D%/kernels/codegen.names \
	%D%/kernels/compilers.sh

%C%_kernels_texts_SOURCES      = %D%/kernels/texts.c tools/bench/engines.c
%C%_kernels_machine_code_LDADD =
%C%_kernels_nvrtc_LDADD        =
%C%_kernels_emulation_CPPFLAGS = $(AM_CPPFLAGS) -DSTAND_IN_FOLDER='"$(abs_srcdir)/%D%/kernels"'
%C%_kernels_emulation_LDFLAGS  = $(AM_LDFLAGS) \
	-Wl,--wrap=vn__text_find,--wrap=vn__tune_find,--wrap=suite_next_variant

%C%_kernels_hopper_CPPFLAGS    = $(AM_CPPFLAGS) -DSTAND_IN='"$(abs_srcdir)/%D%/kernels/hopper.h"'
%C%_kernels_hopper_LDFLAGS     = $(AM_LDFLAGS) \
	-Wl,--wrap=vn__text_find,--wrap=vn__tune_find,--wrap=suite_next_variant

# A report on the machine code of all texts: codegen.sh says more.
codegen = srcdir='$(srcdir)' MAKE='$(MAKE)' TARGETS='$(TARGETS)' $(SHELL) $(srcdir)/%D%/kernels/codegen.sh
codegen codegen-compare: %D%/kernels/texts %D%/kernels/nvrtc %D%/kernels/machine_code
codegen:
	+$(codegen) table codegen.table
codegen-compare:
	+$(codegen) compare '$(BASE)'
distclean-local:
	rm -rf codegen.cache codegen.table codegen.base codegen.report
.PHONY: codegen codegen-compare

# The library as a DLL, run under Wine.
check-windows:
	$(SHELL) $(srcdir)/packaging/mingw.sh
.PHONY: check-windows

## The backends.

test_programs += \
	%D%/backends/test_cuda \
	%D%/backends/test_faults \
	%D%/backends/test_grid \
	%D%/backends/test_opencl \
	%D%/backends/test_ptx

# A layer between the OpenCL loader and the drivers, loaded at run time.
check_LTLIBRARIES += %D%/fakes/opencl_layer.la
layer_client       = %D%/fakes/opencl_layer_open.c %D%/fakes/opencl_layer.h
layer_cppflags     = $(AM_CPPFLAGS) -DLAYER='"$(abs_builddir)/%D%/fakes/.libs/opencl_layer.so"'
%C%_fakes_opencl_layer_la_SOURCES = %D%/fakes/opencl_layer.c %D%/fakes/opencl_layer.h
%C%_fakes_opencl_layer_la_LDFLAGS = $(fake_flags)

%C%_backends_test_faults_SOURCES  = %D%/backends/test_faults.c $(layer_client)
%C%_backends_test_faults_CPPFLAGS = $(layer_cppflags)
%C%_backends_test_grid_SOURCES    = %D%/backends/test_grid.c $(disk)
%C%_backends_test_opencl_SOURCES  = %D%/backends/test_opencl.c $(layer_client)
%C%_backends_test_opencl_CPPFLAGS = $(layer_cppflags)

# NVIDIA's libraries, without a GPU: they find what they are to do in the program that loads them.
if CUDA
check_LTLIBRARIES += %D%/fakes/cuda.la %D%/fakes/nvrtc.la %D%/fakes/cublas.la %D%/fakes/cudnn.la
endif
fake_flags = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
%C%_fakes_cuda_la_SOURCES   = %D%/fakes/cuda.c %D%/fakes/fake.h
%C%_fakes_cuda_la_LDFLAGS   = $(fake_flags)
%C%_fakes_nvrtc_la_SOURCES  = %D%/fakes/nvrtc.c %D%/fakes/fake.h
%C%_fakes_nvrtc_la_LDFLAGS  = $(fake_flags)
%C%_fakes_cublas_la_SOURCES = %D%/fakes/cublas.c %D%/fakes/fake.h
%C%_fakes_cublas_la_LDFLAGS = $(fake_flags)
%C%_fakes_cudnn_la_SOURCES  = %D%/fakes/cudnn.c %D%/fakes/cudnn_graph.c %D%/fakes/fake.h
%C%_fakes_cudnn_la_LDFLAGS  = $(fake_flags)

%C%_backends_test_cuda_SOURCES  = %D%/backends/test_cuda.c %D%/fakes/fake.h $(disk)
%C%_backends_test_cuda_CPPFLAGS = $(AM_CPPFLAGS) -DFAKES='"$(abs_builddir)/%D%/fakes/.libs"'
%C%_backends_test_cuda_LDFLAGS  = $(AM_LDFLAGS) -export-dynamic
%C%_backends_test_cuda_LDADD    = libproblem.la libcore.la -lm

## The command.

test_programs += \
	%D%/tools/test_jobs \
	%D%/tools/test_problem \
	%D%/tools/test_tuner
test_scripts  += \
	%D%/tools/cache.sh \
	%D%/tools/check.sh \
	%D%/tools/choice.sh \
	%D%/tools/completion.sh \
	%D%/tools/torch.sh \
	%D%/tools/warm.sh \
	%D%/tools/gap.sh \
	%D%/tools/messages.sh \
	%D%/tools/cuda_stream.sh \
	%D%/tools/mpi.sh \
	%D%/tools/new_operation.sh \
	%D%/tools/python.sh \
	%D%/tools/rates.sh \
	%D%/tools/report.sh \
	%D%/tools/surroundings.sh \
	%D%/tools/tune.sh
EXTRA_DIST    += %D%/api/cpp.cpp %D%/tools/command.sh %D%/tools/gap_report.json %D%/tools/report.json %D%/tools/waiting.sh %D%/start.h
EXTRA_DIST    += \
	%D%/tools/new_operation/cl/l2norm/l2norm.tune \
	%D%/tools/new_operation/cl/l2norm/rows.cl \
	%D%/tools/new_operation/cl/l2norm/sources.mk \
	%D%/tools/new_operation/lib/l2norm/l2norm.c \
	%D%/tools/new_operation/lib/l2norm/sources.mk \
	%D%/tools/new_operation/tools/check/oracle/l2norm.c \
	%D%/tools/new_operation/tools/check/suite_l2norm.c \
	%D%/tools/new_operation/tools/problem/l2norm.c \
	%D%/tools/new_operation/tools/problem/l2norm.h \
	%D%/tools/new_operation/warm.c
if TOOLS
test_programs += %D%/tools/test_gap %D%/tools/test_measure
endif

# The race alone, with what stands before the library's choice.
%C%_tools_test_tuner_SOURCES = \
	%D%/tools/test_tuner.c $(disk) \
	tools/measure/dictated.c \
	tools/measure/sampling.c \
	tools/measure/statistics.c \
	tools/check/spot.c \
	tools/tune/check.c \
	tools/tune/file.c \
	tools/tune/journal.c \
	tools/tune/race.c \
	tools/tune/space.c \
	tools/problem/values.c
%C%_tools_test_tuner_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=vn__tune_find,--wrap=vn__choose,--wrap=vn__call_again,--wrap=vn__seconds

%C%_tools_test_gap_SOURCES = \
	%D%/tools/test_gap.c \
	tools/gap/disassembly.c \
	tools/gap/html.c \
	tools/gap/report.c \
	tools/gap/workers.c \
	tools/measure/statistics.c \
	tools/report/chart.c \
	tools/report/csv.c \
	tools/report/errors.c \
	tools/report/html.c \
	tools/report/page.c \
	tools/report/report.c \
	tools/report/svg.c
%C%_tools_test_gap_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_tools_test_gap_LDADD    = libproblem.la libcore.la $(JANSSON_LIBS) -lm

%C%_tools_test_measure_SOURCES = \
	%D%/tools/test_measure.c \
	tools/bench/engines.c \
	tools/bench/roofline.c \
	tools/check/spot.c \
	tools/measure/clocks.c \
	tools/measure/machine.c \
	tools/measure/sampling.c \
	tools/measure/statistics.c \
	tools/measure/timing.c \
	tools/report/errors.c tools/report/report.c
%C%_tools_test_measure_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_tools_test_measure_LDADD    = libproblem.la libcore.la $(JANSSON_LIBS) -lm

## The tree itself: who may know what, and what the documents say.

test_scripts += \
	%D%/layers.sh \
	%D%/manual.sh \
	%D%/quickstart.sh \
	%D%/readme.sh \
	%D%/reuse.sh \
	%D%/words.sh

## How they run.

check_PROGRAMS += $(test_programs)
TESTS           = $(test_programs) $(test_scripts) %D%/counts.sh
EXTRA_DIST     += $(test_scripts) %D%/counts.sh %D%/timed.sh
# Two at a time, unless the user says how many: most tests keep one core busy.
AM_MAKEFLAGS    = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j2) $(in_order)

# They begin in the order of TESTS where nothing has to be made before.  What they run is there by then, but the
# recipe of config.h runs each time: programs would wait for it, and begin after all scripts.
in_order        = $(if $(filter check-TESTS recheck,$@),-o config.h)

# The suite keeps one core busy for long: it is the first of $(test_programs), and before what keeps both.
$(filter %D%/kernels/compile.log,$(TEST_LOGS)): $(filter %D%/api/test_suite.log,$(TEST_LOGS))

# Counts what the others did, so it comes last.
%D%/counts.log: $(test_programs:=.log) $(test_scripts:.sh=.log)

# What tells most in a minute.
quick_programs = \
	%D%/api/test_arguments \
	%D%/api/test_attention \
	%D%/api/test_cache \
	%D%/api/test_fork \
	%D%/api/test_sizes \
	%D%/api/test_tune \
	%D%/backends/test_opencl \
	%D%/tools/test_problem
quick_scripts  = \
	%D%/api/headers.sh \
	%D%/kernels/sample.sh \
	%D%/tools/check.sh \
	%D%/layers.sh \
	%D%/manual.sh \
	%D%/readme.sh \
	%D%/words.sh
if CUDA
quick_programs += %D%/backends/test_cuda
endif
EXTRA_DIST    += %D%/kernels/sample.sh

check-quick: all
	@$(MAKE) $(AM_MAKEFLAGS) $(check_DATA) $(check_LTLIBRARIES) $(quick_programs)
	@$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(quick_programs) $(quick_scripts)'
.PHONY: check-quick

TEST_EXTENSIONS      = .sh
timed                = $(SHELL) $(srcdir)/%D%/timed.sh
LOG_COMPILER         = $(timed)
SH_LOG_COMPILER      = $(timed) $(SHELL)
AM_TESTS_FD_REDIRECT = 9>&1
AM_TESTS_ENVIRONMENT = \
	unset VERNIER_LOG VERNIER_TRACE; \
	VERNIER_TUNE=/dev/null; export VERNIER_TUNE; \
	VERNIER_DEVICE=$${VERNIER_DEVICE-Portable}; export VERNIER_DEVICE; \
	VERNIER_CACHE_DIR='$(abs_builddir)/%D%/cache'; export VERNIER_CACHE_DIR; \
	POCL_CACHE_DIR='$(abs_builddir)/%D%/cache/pocl'; export POCL_CACHE_DIR; \
	counted='$(test_programs) $(test_scripts:.sh=)'; export counted; \
	CC='$(CC)'; export CC; MAKE='$(MAKE)'; export MAKE;

# Each run begins with nothing built on disk.
check_DATA = %D%/cache
%D%/cache:
	$(AM_V_GEN)rm -rf $@ && $(MKDIR_P) %D% && mkdir -m 700 $@ $@/pocl
clean-local:
	rm -rf %D%/cache
.PHONY: %D%/cache

# Minutes: NumPy's own tests on the library.
check-numpy: all
	@$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' $(SHELL) $(srcdir)/%D%/tools/numpy.sh
EXTRA_DIST += %D%/tools/notebook.py %D%/tools/numpy.sh
.PHONY: check-numpy
