/* SPDX-License-Identifier: Apache-2.0
 *
 * opencl.h - what the files of the OpenCL backend share.
 *
 * The backend calls functions of OpenCL 1.2 only, also those that 2.0 renamed. A buffer's impl is its
 * cl_mem, an event's its cl_event.
 */
#ifndef VN_OPENCL_H
#define VN_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include "backend.h"

#define VN_POCL "Portable Computing Language"       /* the name of that platform */

struct vn_cl_device {
    cl_device_id id;
    cl_context   context;
    char         options[80];     /* of every build */
    int          hides_local;     /* runs kernels with more local memory than it reports (NVIDIA):
                                     the variant's trial finds out how much */
    int          limits_kernels;  /* CL_KERNEL_WORK_GROUP_SIZE is reliable: it is what the registers
                                     allow. (rusticl 22.3 reports 32 and runs 1024; NVIDIA reports
                                     256 for a kernel that it built for 288.) */
    int          in_line;         /* all work-groups are enqueued along the third dimension (grid.c) */
    struct vn_cl_awake *awake;    /* NULL where threads need not be kept awake */
    int          shares_host;     /* whether kernels work in the host's memory: 0 if that was not tried yet,
                                     1 if so, -1 if not */
};

struct vn_cl_queue {
    cl_command_queue id;
    int              unordered;   /* out-of-order: commands need fences */
};

/* VN_OK for CL_SUCCESS, else the status that `error` means and a sentence that names
 * the call, the error and its number.                                               */
vn_status vn__cl_status(cl_int error, const char *call);
const char *vn__cl_error_name(cl_int error);

/* device.c */
int       vn__cl_count(void);
vn_status vn__cl_list(struct vn_listing *out, int index);
vn_status vn__cl_open(vn_device *d, int index, void *const native[2]);
void      vn__cl_close(vn_device *d);
/* Writes "opencl:0", or "opencl" for a device that is not in the list: a sub-device. */
void      vn__cl_spec(char *out, size_t room, cl_device_id id);

/* grid.c: how the work-groups of a launch are enqueued. */
struct vn_cl_grid { size_t global[3], local[3], offset[3]; };

int       vn__cl_needs_line(const vn_device_info *i);
struct vn_cl_grid vn__cl_grid(const struct vn_launch *l, int in_line);

/* awake.c: makes a thread wait, for a moment, for the launch after this one. */
struct vn_cl_awake *vn__cl_awake_open(const vn_device *d);
void      vn__cl_awake_close(struct vn_cl_awake *w);
void      vn__cl_stay_awake(struct vn_cl_awake *w, cl_event launch);

/* ptx.c: turns PTX for the architecture in general ("sm_90") into PTX for the exact one ("sm_90a"), with the
 * instructions that ARCH_ONLY had commented out, and with what ROOM_FOR asked for. 0: there was nothing to
 * do. */
int       vn__cl_retarget(void **ptx, size_t *bytes, const char *arch);

/* host.c: whether kernels work in the host's memory itself: 1, or -1 if not. */
vn_status vn__cl_shares_host(int *out, vn_device *device);

/* On an out-of-order queue, a barrier: later commands run after earlier ones. */
vn_status vn__cl_fence(vn_queue *q);
/* An event that completes when all commands before it have. */
vn_status vn__cl_marker(cl_event *out, vn_queue *q);
vn_status vn__cl_wait(vn_queue *q, cl_uint count, const cl_event *events);
#endif
