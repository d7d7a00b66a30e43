/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda.h - what the files of the CUDA backend share: the CUDA objects behind our handles.
 */
#ifndef VN_CUDA_H
#define VN_CUDA_H

#include "driver.h"

/* VN_OK for CUDA_SUCCESS, else the status that it means and a sentence that names the call. */
vn_status   vn__cuda_status(CUresult e, const char *call);

/* Each call between these two runs in the device's context.  vn__cuda_leave() returns s. */
vn_status   vn__cuda_enter(const vn_device *d);
vn_status   vn__cuda_leave(vn_status s);

CUstream    vn__cuda_stream (const vn_queue *q);
CUdeviceptr vn__cuda_address(const vn_buffer *b);

vn_status   vn__cuda_wait  (vn_queue *q, unsigned count, CUevent const *events);
vn_status   vn__cuda_marker(CUevent *out, vn_queue *q);

/* "cuda:0": what to open for the device of the caller's context. */
vn_status   vn__cuda_spec(char *out, size_t room, CUcontext context);
#endif
