/* SPDX-License-Identifier: Apache-2.0
 *
 * vernier_opencl.h - Vernier inside an application that already uses OpenCL.
 *
 * The caller's objects are retained while ours are open, and never finished,
 * flushed or changed beyond what an operation enqueues.
 */
#ifndef VERNIER_OPENCL_H
#define VERNIER_OPENCL_H

#include <CL/cl.h>
#include "vernier.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A device of the caller's context. */
VN_API vn_status vn_opencl_device_open(vn_device **out, cl_context context, cl_device_id device);

/* The caller's queue, in order or out of order (then each operation is fenced by
 * barriers).  vn_event_seconds() needs CL_QUEUE_PROFILING_ENABLE.  vn_queue_close()
 * does not wait for it.                                                            */
VN_API vn_status vn_opencl_queue_open(vn_queue **out, vn_device *d, cl_command_queue queue);

/* The caller's buffer or sub-buffer; its size is asked of it.  Where it is CL_MEM_READ_ONLY,
 * operations refuse it as an output.                                                         */
VN_API vn_status vn_opencl_buffer_open(vn_buffer **out, vn_device *d, cl_mem buffer);

/* What is queued from here on starts after these events. */
VN_API vn_status vn_opencl_queue_wait(vn_queue *q, cl_uint count, const cl_event *events);

/* An event that completes when all that is queued so far has; the caller releases it. */
VN_API vn_status vn_opencl_queue_event(cl_event *out, vn_queue *q);

#ifdef __cplusplus
}
#endif
#endif
