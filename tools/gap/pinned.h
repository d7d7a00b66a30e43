/* SPDX-License-Identifier: Apache-2.0
 *
 * pinned.h - host memory that the device can read and write by itself.
 *
 * vn_write() and vn_read() take any host memory; drivers copy pinned memory without a detour.
 * OpenCL's way is a mapped buffer of CL_MEM_ALLOC_HOST_PTR; CUDA's, cuMemHostRegister.
 */
#ifndef VERNIER_PINNED_H
#define VERNIER_PINNED_H

#include "vernier.h"

struct pinned { void *host, *handle; vn_queue *queue; };

/* 0, or -1: there is none on this device. */
int  pinned_open (struct pinned *out, vn_queue *q, size_t bytes);
void pinned_close(struct pinned *p);
#endif
