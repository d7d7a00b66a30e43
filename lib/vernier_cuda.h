/* SPDX-License-Identifier: Apache-2.0
 *
 * vernier_cuda.h - Vernier inside an application that already uses CUDA.
 *
 * The caller's objects must outlive our handles on them; they are never destroyed, finished or
 * changed beyond what an operation enqueues, and whatever context is current stays so.
 * cuda.h is not needed: its CUcontext is a struct CUctx_st *, its CUdeviceptr an unsigned
 * long long.  A library that was built without CUDA returns VN_UNSUPPORTED.
 */
#ifndef VERNIER_CUDA_H
#define VERNIER_CUDA_H

#include "vernier.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;

/* The device of the caller's context (CUcontext), which may be the primary one. */
VN_API vn_status vn_cuda_device_open(vn_device **out, struct CUctx_st *context);

/* The caller's stream (CUstream) of that context; NULL is the default stream.
 * vn_queue_close() does not wait for it.                                      */
VN_API vn_status vn_cuda_queue_open(vn_queue **out, vn_device *d, struct CUstream_st *stream);

/* The caller's device memory (CUdeviceptr), of so many bytes. */
VN_API vn_status vn_cuda_buffer_open(vn_buffer **out, vn_device *d, unsigned long long address, size_t bytes);

/* What is queued from here on starts after these events (CUevent). */
VN_API vn_status vn_cuda_queue_wait(vn_queue *q, unsigned count, struct CUevent_st *const *events);

/* An event (CUevent) that completes when all that is queued so far has; the caller destroys it. */
VN_API vn_status vn_cuda_queue_event(struct CUevent_st **out, vn_queue *q);

#ifdef __cplusplus
}
#endif
#endif
