# SPDX-License-Identifier: Apache-2.0
# The Python package, and the wheel that carries it with the library and the command.
EXTRA_DIST += \
	%D%/vernier/__init__.py \
	%D%/vernier/__main__.py \
	%D%/vernier/_arrays.py \
	%D%/vernier/_attention.py \
	%D%/vernier/_conv.py \
	%D%/vernier/_cross_entropy.py \
	%D%/vernier/_device.py \
	%D%/vernier/_dlpack.py \
	%D%/vernier/_gemm.py \
	%D%/vernier/_library.py \
	%D%/vernier/_opencl.py \
	%D%/vernier/_softmax.py \
	%D%/vernier/py.typed \
	%D%/vernier/report.py \
	%D%/vernier/tests/__init__.py \
	%D%/vernier/tests/arrays.py \
	%D%/vernier/tests/conftest.py \
	%D%/vernier/tests/test_attention.py \
	%D%/vernier/tests/test_conv.py \
	%D%/vernier/tests/test_cross_entropy.py \
	%D%/vernier/tests/test_device.py \
	%D%/vernier/tests/test_dlpack.py \
	%D%/vernier/tests/test_gemm.py \
	%D%/vernier/tests/test_opencl.py \
	%D%/vernier/tests/test_report.py \
	%D%/vernier/tests/test_softmax.py \
	%D%/vernier/tests/test_torch.py \
	%D%/wheel.py

PYTHON = python3
wheel_library = %D%/libvernier.so
CLEANFILES   += $(wheel_library) %D%/command vernier-*.whl

$(wheel_library): libvernier.la
	$(AM_V_GEN)$(MKDIR_P) %D% && cp .libs/libvernier.so $@ && $(STRIP) $@

if TOOLS
# Of jansson only a static copy is sure to be there where the wheel is installed; its license goes along.
jansson_license = $(wildcard /usr/share/doc/libjansson-dev/copyright)
jansson_archive = $(if $(jansson_license),$(wildcard $(shell $(CC) -print-file-name=libjansson.a)))
wheel_command   = %D%/command
wheel_with      = --command $(wheel_command) --suites $(addprefix $(srcdir)/,$(suites))

%D%/command: $(vernier_OBJECTS) $(vernier_DEPENDENCIES)
	$(AM_V_CCLD)$(MKDIR_P) %D% && $(vernier_LINK) $(vernier_OBJECTS) \
	    $(if $(jansson_archive),$(subst -ljansson,$(jansson_archive),$(vernier_LDADD)),$(vernier_LDADD)) $(LIBS) \
	&& $(STRIP) $@
endif

wheel: $(wheel_library) $(wheel_command)
	$(AM_V_at)$(PYTHON) $(srcdir)/%D%/wheel.py --version $(PACKAGE_VERSION) --library $(wheel_library) $(wheel_with) \
	    --licenses $(srcdir)/LICENSE $(if $(jansson_archive),$(jansson_license)) \
	    --description $(srcdir)/doc/python.md .
.PHONY: wheel
