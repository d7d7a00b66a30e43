# SPDX-License-Identifier: Apache-2.0
# Libraries to be measured against, each loaded at run time if it is there.
libpeers_la_SOURCES += \
	%D%/clblast.c \
	%D%/nvidia.c \
	%D%/onednn.c \
	%D%/openblas.c \
	%D%/peer.c \
	%D%/peer.h \
	%D%/threads.c \
	%D%/torch.c

# The process that runs PyTorch, as a string.
EXTRA_DIST     += %D%/torch.py
BUILT_SOURCES  += %D%/torch_script.h
CLEANFILES     += %D%/torch_script.h
%D%/torch_script.h: %D%/torch.py
	$(AM_V_GEN)mkdir -p %D% && \
	sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&\\n"/' $(srcdir)/%D%/torch.py > $@.new && mv $@.new $@
%D%/torch.lo: %D%/torch_script.h
