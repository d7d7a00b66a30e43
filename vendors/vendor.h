/* SPDX-License-Identifier: Apache-2.0
 *
 * vendor.h - the variants that call a vendor's library, for the tables of the operations.
 *
 * Each loads its library when it is first considered. Where that is missing, too old, or of an unknown major
 * version, the variant does not fit, and the sentence says what to install.
 */
#ifndef VN_VENDOR_H
#define VN_VENDOR_H

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "core.h"

const char *vn__fits_cublas(const void *problem, const struct vn_facts *f);
const char *vn__cublas_version(void);         /* "cuBLAS 13.1.0", once it has fitted */
vn_status   vn__run_cublas(vn_queue *q, const struct vn_choice *it, const void *problem,
                 const struct vn_plan *plan);

const char *vn__fits_clblast(const void *problem, const struct vn_facts *f);
const char *vn__plan_clblast(struct vn_plan *out, const void *problem, const struct vn_row *row,
                             const struct vn_site *site);
vn_status   vn__run_clblast(vn_queue *q, const struct vn_choice *it, const void *problem,
                 const struct vn_plan *plan);

const char *vn__cudnn_version(void);
const char *vn__fits_cudnn_conv(const void *problem, const struct vn_facts *f);
vn_status   vn__run_cudnn_conv(vn_queue *q, const struct vn_choice *it, const void *problem,
                 const struct vn_plan *plan);
const char *vn__fits_cudnn_softmax(const void *problem, const struct vn_facts *f);
vn_status   vn__run_cudnn_softmax(vn_queue *q, const struct vn_choice *it, const void *problem,
                 const struct vn_plan *plan);

/* Rows of the tables. One tune row serves all operations of a library: cudnn's has two columns. */
#define VN_CLBLAST_GEMM \
    { .name = "clblast", .fits = vn__fits_clblast, .plan = vn__plan_clblast, .run = vn__run_clblast, \
      .params = "PREFERRED" },
#if VN_WITH_CUDA
#define VN_CUBLAS_GEMM \
    { .name = "cublas", .fits = vn__fits_cublas, .run = vn__run_cublas, .params = "PREFERRED" },
#define VN_CUDNN_CONV \
    { .name = "cudnn", .fits = vn__fits_cudnn_conv, .run = vn__run_cudnn_conv, \
      .params = "CONV SOFTMAX", .preferred = 0 },
#define VN_CUDNN_SOFTMAX \
    { .name = "cudnn", .fits = vn__fits_cudnn_softmax, .run = vn__run_cudnn_softmax, \
      .params = "CONV SOFTMAX", .preferred = 1 },
#else
#define VN_CUBLAS_GEMM
#define VN_CUDNN_CONV
#define VN_CUDNN_SOFTMAX
#endif
#endif
