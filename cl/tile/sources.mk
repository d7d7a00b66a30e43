# SPDX-License-Identifier: Apache-2.0
texts += \
	%D%/accumulator.h \
	%D%/activation.h \
	%D%/async_operand.h \
	%D%/cpu.h \
	%D%/epilogue.h \
	%D%/exponentials.h \
	%D%/fma.h \
	%D%/fma_operand.h \
	%D%/fragment.h \
	%D%/half.h \
	%D%/held.h \
	%D%/lanes.h \
	%D%/mainloop.h \
	%D%/matrix.h \
	%D%/operand.h \
	%D%/pair.h \
	%D%/pipeline.h \
	%D%/roles.h \
	%D%/row.h \
	%D%/row_cpu.h \
	%D%/scheduler.h \
	%D%/slices.h \
	%D%/slots.h \
	%D%/split.h \
	%D%/stages.h \
	%D%/store.h \
	%D%/store_across.h \
	%D%/store_blocks.h \
	%D%/store_f32.h \
	%D%/store_fragment.h \
	%D%/store_matrix.h \
	%D%/store_row.h \
	%D%/stream.h \
	%D%/team.h \
	%D%/tensor_map.h \
	%D%/word_operand.h
