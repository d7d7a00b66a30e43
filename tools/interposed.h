/* SPDX-License-Identifier: Apache-2.0
 *
 * interposed.h - watches what the library calls: allocations, and kernels enqueued.
 *
 * The command is linked with --wrap, which turns calls made by our own objects (and by
 * nobody else, so not by the driver) to the functions of interposed.c.
 */
#ifndef VERNIER_INTERPOSED_H
#define VERNIER_INTERPOSED_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

/* Calls of malloc and its like since the last start. */
void allocations_start(void);
long allocations_stop(void);

/* Notes the arguments that kernels are given, and those that are enqueued between start and
 * stop.  -1 from stop if there was more than it can hold.                                 */
void recording_open (void);           /* before the first call on a device */
void recording_start(void);
int  recording_stop (void);           /* the number of launches */
void recording_close(void);

/* While on, nothing reaches OpenCL: what is left is the library's own time. */
void recording_mute (int on);

/* The bare calls again: clSetKernelArg for each argument, then clEnqueueNDRangeKernel. */
cl_int           recording_replay(void);
cl_command_queue recording_queue(void);
int              recording_arguments(void);       /* clSetKernelArg calls of a replay */
#endif
