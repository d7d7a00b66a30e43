/* SPDX-License-Identifier: Apache-2.0
 *
 * backward.h - what the variants that compute gradients of attention share.
 */
#ifndef VN_ATTENTION_BACKWARD_H
#define VN_ATTENTION_BACKWARD_H

#include "attention.h"

/* In elements of the type that sums: of each head of queries `pitch` shifts, then `pitch` deltas, as
 * cl/attention/backward.cl leaves them.                                                          */
struct statistics { int64_t start, pitch, elements; };  /* start: of the first of them in the workspace */

/* Rows are padded to a multiple of `rows`.  NULL, or that they overflow. */
const char *vn__attention_statistics(struct statistics *out, const struct attention *a, int64_t start,
                                     int64_t rows);
size_t      vn__attention_statistics_bytes(const struct statistics *s, const struct attention *a);
/* Kernel 0 of the variant computes them; shifts are those of 2^x where `in_powers_of_2`, else of exp(x). */
vn_status   vn__run_attention_statistics(vn_queue *q, const struct vn_choice *it, const struct attention *a,
                                         const struct statistics *s, int in_powers_of_2, vn_buffer *to);
/* The arguments that the kernels of gradients begin with. */
void        vn__attention_backward_begin(struct vn_launch *l, const struct attention *a,
                                         const struct statistics *s, vn_buffer *statistics);

/* backward_tiled.c: any device with local memory */
vn_status   vn__run_attention_backward(vn_queue *q, const struct vn_choice *it, const void *problem,
                                       const struct vn_plan *plan);

/* backward_cpu.c: CPUs, through vectors written out */
const char *vn__plan_attention_backward_cpu(struct vn_plan *out, const void *problem,
                                            const struct vn_row *row, const struct vn_site *site);
vn_status   vn__run_attention_backward_cpu(vn_queue *q, const struct vn_choice *it, const void *problem,
                                           const struct vn_plan *plan);

/* backward_wgmma.c: 16-bit types on NVIDIA's sm_90 */
const char *vn__fits_attention_backward_wgmma(const void *problem, const struct vn_facts *f);
const char *vn__plan_attention_backward_wgmma(struct vn_plan *out, const void *problem,
                                              const struct vn_row *row, const struct vn_site *site);
vn_status   vn__run_attention_backward_wgmma(vn_queue *q, const struct vn_choice *it, const void *problem,
                                             const struct vn_plan *plan);

/* backward_trial.c: of a variant that needs a proof */
vn_status   vn__trial_attention_backward(vn_queue *q, const struct vn_choice *it, vn_type type);
#endif
