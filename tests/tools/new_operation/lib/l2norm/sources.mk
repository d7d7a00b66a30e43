# SPDX-License-Identifier: Apache-2.0
libcore_la_SOURCES += %D%/l2norm.c
