/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.h - the problem of attention.c, for the files that solve it in a way of their own.
 */
#ifndef VN_ATTENTION_H
#define VN_ATTENTION_H

#include "core.h"

enum { Q, K, V, OUT, MASK, LSE, VIEWS };
enum { D_OUT, D_Q, D_K, D_V, GRADIENTS };

struct attention {                /* the problem, as variants see it */
    struct vn_problem head;
    vn_tensor t[VIEWS];           /* MASK: broadcast to B x H x Sq x Sk; where it or LSE is not, another */
    int64_t   batches, heads, group;      /* group: query heads that share a key head */
    int64_t   queries, keys, d, dv;
    int64_t   offset;             /* query i stands at the place of key i + offset */
    int64_t   window;             /* with causal: keys that it sees, that place the last; 0: all before */
    double    scale, softcap;     /* softcap 0: none */
    int       causal, has_mask, has_lse, has_sinks, units;
    int       last;               /* causal, with the last query at the last key */
    vn_ints   key_lengths, query_lengths, pages;        /* buffer NULL: none */
    vn_tensor sinks;
    int64_t   page, page_count;   /* keys of a page; pages that there are */

    int       backward, wanted;   /* wanted: bits, 1 << D_Q ...; OUT and LSE are inputs then */
    vn_tensor gradient[GRADIENTS];        /* one that is not wanted: another */
};

/* The pairs of a query and a key that it sees, of one head; the others are as in struct attention. */
double vn__attention_pairs(int64_t queries, int64_t keys, int causal, int64_t offset, int64_t window);
/* The arguments that all kernels begin with. */
void vn__attention_begin(struct vn_launch *l, const struct attention *a);
/* The arguments that follow has_lse in kernels that take MORE_PARAMS (cl/attention/attention.h). */
void vn__attention_more(struct vn_launch *l, const struct attention *a);
/* The larger head size, rounded up to a multiple of 64: a constant of kernels that keep whole rows. */
int  vn__attention_head(const struct attention *a);
/* Contiguous rows of whole vectors of 16 bytes, which begin at multiples of 16 bytes. */
int  vn__attention_has_vectors(const vn_tensor *t);

/* tiled.c: any device with local memory */
vn_status vn__run_attention(vn_queue *q, const struct vn_choice *it, const void *problem,
                            const struct vn_plan *plan);

/* cpu.c: CPUs, through vectors written out */
const char *vn__plan_attention_cpu(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                   const struct vn_site *site);
vn_status   vn__run_attention_cpu(vn_queue *q, const struct vn_choice *it, const void *problem,
                                  const struct vn_plan *plan);

/* decode.c: few queries, and many keys, of which several work-groups have a split each */
const char *vn__fits_attention_decode(const void *problem, const struct vn_facts *f);
const char *vn__fits_attention_decode_warps(const void *problem, const struct vn_facts *f);
const char *vn__fits_attention_decode_cpu(const void *problem, const struct vn_facts *f);
const char *vn__fits_attention_decode_mma(const void *problem, const struct vn_facts *f);
void        vn__constants_attention_decode(int *c, const void *problem);
void        vn__constants_attention_decode_cpu(int *c, const void *problem);
void        vn__constants_attention_decode_mma(int *c, const void *problem);
const char *vn__plan_attention_decode(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                      const struct vn_site *site);
const char *vn__plan_attention_decode_cpu(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                          const struct vn_site *site);
const char *vn__plan_attention_decode_mma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                          const struct vn_site *site);
vn_status   vn__run_attention_decode(vn_queue *q, const struct vn_choice *it, const void *problem,
                                     const struct vn_plan *plan);
vn_status   vn__run_attention_decode_cpu(vn_queue *q, const struct vn_choice *it, const void *problem,
                                         const struct vn_plan *plan);
vn_status   vn__run_attention_decode_warps(vn_queue *q, const struct vn_choice *it, const void *problem,
                                           const struct vn_plan *plan);

/* wgmma.c: 16-bit types on NVIDIA's sm_90 */
int         vn__attention_fits_tma(const vn_tensor *t);
/* NULL, or why it is not of 16-bit types, heads of at most 256 elements, and rows as TMA takes them, without
 * pages. */
const char *vn__attention_fits_rows(const struct attention *a);
const char *vn__fits_attention_wgmma(const void *problem, const struct vn_facts *f);
void        vn__constants_attention_wgmma(int *c, const void *problem);
const char *vn__plan_attention_wgmma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                     const struct vn_site *site);
vn_status   vn__run_attention_wgmma(vn_queue *q, const struct vn_choice *it, const void *problem,
                                    const struct vn_plan *plan);

/* mma.c: 16-bit types on NVIDIA's sm_80 and up */
const char *vn__fits_attention_mma(const void *problem, const struct vn_facts *f);
void        vn__constants_attention_mma(int *c, const void *problem);
const char *vn__plan_attention_mma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                   const struct vn_site *site);
vn_status   vn__run_attention_mma(vn_queue *q, const struct vn_choice *it, const void *problem,
                                  const struct vn_plan *plan);

/* Of a tile of blk_m queries and blocks of blk_n keys: the blocks of one head's tiles; and heads whose keys
 * and values, of so many bytes each, L2 holds. */
double      vn__attention_blocks(const struct attention *a, int64_t blk_m, int64_t blk_n);
int64_t     vn__attention_section(const struct attention *a, const struct vn_rates *r, double bytes);
/* Of tiles that as many work-groups as there are units take; block, tile: nanoseconds. */
double      vn__attention_tile_seconds(const struct attention *a, double blocks, double block, double tile,
                                       double tiles, double units);
/* Of reading all keys and values once, and a launch. */
double      vn__attention_read_seconds(const struct attention *a, const struct vn_rates *r);

/* matrix.c: 16-bit types on the matrix engines of AMD and Intel */
const char *vn__fits_attention_mfma(const void *problem, const struct vn_facts *f);
const char *vn__fits_attention_wmma(const void *problem, const struct vn_facts *f);
const char *vn__fits_attention_dpas(const void *problem, const struct vn_facts *f);
void        vn__constants_attention_matrix(int *c, const void *problem);
const char *vn__plan_attention_matrix(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                      const struct vn_site *site);
vn_status   vn__run_attention_matrix(vn_queue *q, const struct vn_choice *it, const void *problem,
                                     const struct vn_plan *plan);

/* bf16x3.c: f32 in three bf16 parts on NVIDIA's sm_90 */
const char *vn__fits_attention_bf16x3(const void *problem, const struct vn_facts *f);
void        vn__constants_attention_bf16x3(int *c, const void *problem);
const char *vn__plan_attention_bf16x3(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                      const struct vn_site *site);
vn_status   vn__run_attention_bf16x3(vn_queue *q, const struct vn_choice *it, const void *problem,
                                     const struct vn_plan *plan);

/* backward.c: what all that compute gradients share. */
vn_status vn__check_attention_backward(const vn_tensor t[VIEWS], const vn_tensor d[GRADIENTS],
                                       const struct attention *a, const vn_queue *q);
/* Notes the gradients that are wanted; whether they have no element. */
int       vn__poses_no_gradient(struct attention *a, const vn_tensor d[GRADIENTS]);
void      vn__describe_attention_backward(struct attention *a);

/* trial.c: of a variant that needs a proof */
vn_status vn__trial_attention(vn_queue *q, const struct vn_choice *it, vn_type type);

extern const struct vn_variant vn__attention_variants[];
#endif
