/* SPDX-License-Identifier: Apache-2.0
 *
 * opencl.h - what the files of the OpenCL backend share.
 *
 * Only functions of OpenCL 1.2 are called, also those that 2.0 renamed.  A buffer's impl
 * is its cl_mem, an event's its cl_event.
 */
#ifndef VN_OPENCL_H
#define VN_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include "backend.h"

struct vn_cl_device {
    cl_device_id id;
    cl_context   context;
    char         options[80];     /* of every build */
    int          hides_local;     /* runs kernels with more local memory than it admits to (NVIDIA:
                                     48 KiB said, 227 had): the variant's trial finds out */
    int          limits_kernels;  /* CL_KERNEL_WORK_GROUP_SIZE can be believed: it is what the
                                     registers allow (rusticl 22.3 says 32, and runs 1024;
                                     NVIDIA says 256 of a kernel it built for 288) */
    struct vn_cl_awake *awake;    /* NULL where threads need not be kept so */
};

struct vn_cl_queue {
    cl_command_queue id;
    int              unordered;   /* commands may overtake each other: fence them */
};

/* VN_OK for CL_SUCCESS, else the status that `error` means and a sentence that names
 * the call, the error and its number.                                               */
vn_status vn__cl_status(cl_int error, const char *call);
const char *vn__cl_error_name(cl_int error);

/* opencl_device.c */
int       vn__cl_count(void);
vn_status vn__cl_list(struct vn_listing *out, int index);
vn_status vn__cl_open(vn_device *d, int index, void *const native[2]);
void      vn__cl_close(vn_device *d);
/* "opencl:0", or "opencl" for what is not in the list: a sub-device. */
void      vn__cl_spec(char *out, size_t room, cl_device_id id);

/* opencl_awake.c: has a thread wait, for a moment, for what is launched after this. */
struct vn_cl_awake *vn__cl_awake_open(const vn_device *d);
void      vn__cl_awake_close(struct vn_cl_awake *w);
void      vn__cl_stay_awake(struct vn_cl_awake *w, cl_event launch);

/* opencl_ptx.c: makes PTX that was built for the architecture in general ("sm_90") PTX for
 * the very one ("sm_90a"), with the lines that waited behind ARCH_ONLY.  0: nothing to do. */
int       vn__cl_retarget(void **ptx, size_t *bytes, const char *arch);

/* Makes an unordered queue run what comes after it after what came before it. */
vn_status vn__cl_fence(vn_queue *q);
/* Completes when all that was queued before has. */
vn_status vn__cl_marker(cl_event *out, vn_queue *q);
vn_status vn__cl_wait(vn_queue *q, cl_uint count, const cl_event *events);
#endif
