/* SPDX-License-Identifier: Apache-2.0
 *
 * bare_cuda.h - a warm vn_gemm() beside the bare CUDA calls that it makes.
 */
#ifndef VERNIER_BARE_CUDA_H
#define VERNIER_BARE_CUDA_H

#include "bench.h"

/* Seconds of a call, and of one that is waited for; 0, or -1: they could not be had. */
int bare_cuda_measure(struct call_cost *once, struct call_cost *finished, const char *spec);
#endif
