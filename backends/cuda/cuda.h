/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda.h - what the files of the CUDA backend, and its users, share: the CUDA objects behind our handles.
 */
#ifndef VN_CUDA_H
#define VN_CUDA_H

#include "driver.h"

/* VN_OK for CUDA_SUCCESS, else the status that the error means and a sentence that names the call. */
vn_status   vn__cuda_status(CUresult e, const char *call);

/* CUDA calls between these two run in the context of the device. vn__cuda_leave() returns s. */
vn_status   vn__cuda_enter(const vn_device *d);
vn_status   vn__cuda_leave(vn_status s);

CUstream    vn__cuda_stream (const vn_queue *q);
CUdeviceptr vn__cuda_address(const vn_buffer *b);

vn_status   vn__cuda_wait  (vn_queue *q, unsigned count, CUevent const *events);
vn_status   vn__cuda_marker(CUevent *out, vn_queue *q);

/* Writes the spec ("cuda:0") of the device of the caller's context. */
vn_status   vn__cuda_spec(char *out, size_t room, CUcontext context);
#endif
