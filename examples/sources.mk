# SPDX-License-Identifier: Apache-2.0
# Programs to begin with.  Each checks its own output, and `make check` runs them; they are installed as sources.
examples = \
	%D%/generate \
	%D%/gradient_accumulation \
	%D%/linear_cross_entropy \
	%D%/nhwc_chain \
	%D%/opencl_context \
	%D%/packed_weights \
	%D%/two_queues
test_programs         += $(examples)
examplesdir            = $(docdir)/examples
dist_examples_DATA     = $(examples:=.c) %D%/cuda_stream.c %D%/example.h %D%/conformance.yml \
	%D%/gap.ipynb

# cuda_stream.c is built by tests/tools/cuda_stream.sh where CUDA is.

# Of several machines, by MPI: built by tests/tools/mpi.sh where MPI is.
examples_mpidir        = $(examplesdir)/mpi
dist_examples_mpi_DATA = %D%/mpi/summa.c

examples_with          = libvernier.la -lm
%C%_generate_LDADD              = $(examples_with)
%C%_gradient_accumulation_LDADD = $(examples_with)
%C%_linear_cross_entropy_LDADD  = $(examples_with)
%C%_nhwc_chain_LDADD            = $(examples_with)
%C%_opencl_context_LDADD        = $(examples_with)
%C%_packed_weights_LDADD        = $(examples_with)
%C%_two_queues_LDADD            = $(examples_with)
