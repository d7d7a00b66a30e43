/* SPDX-License-Identifier: Apache-2.0
 *
 * conv.h - the problem of conv.c, for the files that solve it in a way of their own.
 */
#ifndef VN_CONV_H
#define VN_CONV_H

#include "core.h"

static inline int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }
static inline double  larger(double a, double b)   { return a > b ? a : b; }

enum direction { FORWARD, BACKWARD_DATA, BACKWARD_FILTER };
enum { DIMS = 3, RANK = 2 + DIMS };     /* each problem is seen with three spatial dimensions */

struct conv {                           /* the problem, as variants see it */
    struct vn_problem p;
    enum direction direction;
    vn_math    math;
    vn_activation activation;
    int        has_bias;
    int        fast;                    /* vn__fast_act() */
    int        is_empty;                /* alpha 0, or nothing to sum: no input is read */
    double     alpha, beta;
    int64_t    groups;
    int64_t    stride[DIMS], dilation[DIMS], pad[DIMS];     /* pad: before */
    int64_t    joined;                  /* rows of pixels that the last dimension was joined from */
    vn_tensor  x, w, y;                 /* rank 5, whichever of them is the output */
    vn_tensor  bias, residual;          /* views of the output's shape */
    int64_t    to_pack;                 /* for vn_conv_pack_open: w will be in whatever layout is wanted */
    vn_buffer *pack;                    /* w, as a vn_pack has it; or NULL */
    struct vn_layout packed;            /* its layout */
};

/* True if the filter is already packed so, or will be. */
static inline int vn__conv_is_packed(const struct conv *c, const struct vn_layout *l)
{
    return c->to_pack || (c->pack && vn__same_layout(&c->packed, l));
}

struct conv_call {                      /* what a call says: first what tells one from another */
    struct vn_call head;                /* its function is a direction */
    vn_tensor  w, x, y, bias, residual; /* whichever of them is the output */
    double     alpha, beta;
    int        stride[DIMS], dilation[DIMS], pad_before[DIMS], pad_after[DIMS], groups;
    vn_math    math;
    vn_activation activation;
    int        unused;                  /* 0 */
    const vn_pack *packed_w;            /* or NULL */
};

/* Past these an int in a kernel could overflow, also when rounded up to a tile. */
enum { VN_CONV_MOST = INT32_MAX - 4096 };

/* Completes a problem whose tensors and numbers are given: joins rows of pixels, sizes it up. */
void vn__conv_settle(struct conv *c);

/* Whether the bias has one value for each channel of the output (cl/conv/sides.h). */
int vn__conv_has_bias_of_channels(const struct conv *c);

const vn_tensor *vn__conv_output(const struct conv *c);
int64_t vn__conv_pixels (const vn_tensor *t);
int64_t vn__conv_taps   (const struct conv *c);
int64_t vn__conv_rows   (const struct conv *c);
int64_t vn__conv_phases (const struct conv *c);     /* that the pixels of the output fall into */
int64_t vn__conv_columns(const struct conv *c);     /* of the largest phase, which is the first */
int64_t vn__conv_depth  (const struct conv *c);

/* NULL, or what keeps a problem of two dimensions from kernels with offsets of 32 bits and an order of
 * sums of their own. */
const char *vn__fits_elements(const struct conv *c);

/* In backward data, the step from tap to tap that contribute to one phase along dimension d; else 1. */
int64_t vn__conv_tap_step(const struct conv *c, int d);

/* The arguments that kernels take (cl/conv/conv.h): all that most of them begin with, and parts of it. */
void vn__conv_arg_problem (struct vn_launch *l, const struct conv *c);
void vn__conv_arg_inputs  (struct vn_launch *l, const struct conv *c);      /* gA, vA, gB, vB */
void vn__conv_arg_shape   (struct vn_launch *l, const struct conv *c);      /* eTaps, eIn, and the steps */
void vn__conv_arg_output  (struct vn_launch *l, const struct conv *c);
void vn__conv_arg_taps    (struct vn_launch *l, const struct conv *c);
void vn__conv_arg_steps   (struct vn_launch *l, const struct conv *c);      /* eOut, vStep, vPad, vMeet */
void vn__conv_arg_filter (struct vn_launch *l, const struct conv *c);  /* gA to eTaps, eOut to vMeet */
void vn__conv_arg_alpha   (struct vn_launch *l, const struct conv *c);

/* What a call says.  VN_INVALID: it has options of another size. */
vn_status vn__conv_say(struct conv_call *call, enum direction d, double alpha, const vn_tensor *x,
                       const vn_tensor *w, double beta, const vn_tensor *y, const vn_conv_options *o);
/* pack.c: the pack that a call is given, if it is of its filter */
vn_status vn__conv_take(struct conv *c, const vn_queue *q, const vn_pack *pack);

/* checks.c: VN_INVALID, or the options taken over into the problem */
vn_status vn__conv_check(struct conv *c, const vn_queue *q, const struct conv_call *o);

/* tiled.c: any device */
vn_status vn__run_conv_tiled(vn_queue *q, const struct vn_choice *it, const void *problem,
                             const struct vn_plan *plan);

/* cpu.c: CPUs, through vectors written out */
vn_status   vn__run_conv_cpu(vn_queue *q, const struct vn_choice *it, const void *problem,
                             const struct vn_plan *plan);
vn_status   vn__run_conv_depthwise(vn_queue *q, const struct vn_choice *it, const void *problem,
                                   const struct vn_plan *plan);
const char *vn__plan_conv_cpu_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                     const struct vn_site *site);
vn_status   vn__run_conv_cpu_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                    const struct vn_plan *plan);

/* product.c: a filter of 1x1, as a matrix product */
const char *vn__fits_conv_gemm(const void *problem, const struct vn_facts *f);
const char *vn__plan_conv_gemm(struct vn_plan *out, const void *problem, const struct vn_row *row,
                               const struct vn_site *site);
vn_status   vn__run_conv_gemm(vn_queue *q, const struct vn_choice *it, const void *problem,
                              const struct vn_plan *plan);

/* wgmma.c: 16-bit types on sm_90, images and their gradients */
const char *vn__fits_conv_wgmma(const void *problem, const struct vn_facts *f);
const char *vn__fits_conv_wgmma_joined(const void *problem, const struct vn_facts *f);
void        vn__constants_conv_wgmma(int *c, const void *problem);
void        vn__constants_conv_wgmma_joined(int *c, const void *problem);
void        vn__constants_conv_window(int *c, const void *problem);
void        vn__constants_conv_wgmma_few(int *c, const void *problem);
const char *vn__plan_conv_wgmma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                const struct vn_site *site);
vn_status   vn__run_conv_wgmma(vn_queue *q, const struct vn_choice *it, const void *problem,
                               const struct vn_plan *plan);

const char *vn__plan_conv_wgmma_splitk(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                       const struct vn_site *site);
vn_status   vn__run_conv_wgmma_splitk(vn_queue *q, const struct vn_choice *it, const void *problem,
                                      const struct vn_plan *plan);
const char *vn__fits_conv_wgmma_few(const void *problem, const struct vn_facts *f);
const char *vn__plan_conv_wgmma_few(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                    const struct vn_site *site);
vn_status   vn__run_conv_wgmma_few(vn_queue *q, const struct vn_choice *it, const void *problem,
                                   const struct vn_plan *plan);

const char *vn__fits_conv_window(const void *problem, const struct vn_facts *f);
const char *vn__plan_conv_window(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                 const struct vn_site *site);
const char *vn__fits_conv_window_blocks(const void *problem, const struct vn_facts *f);
const char *vn__plan_conv_window_blocks(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                        const struct vn_site *site);
vn_status   vn__run_conv_window(vn_queue *q, const struct vn_choice *it, const void *problem,
                                const struct vn_plan *plan);

/* matrix.c: 16-bit types on matrix engines of AMD and Intel, images and their gradients */
const char *vn__fits_conv_mfma(const void *problem, const struct vn_facts *f);
const char *vn__fits_conv_wmma(const void *problem, const struct vn_facts *f);
const char *vn__fits_conv_dpas(const void *problem, const struct vn_facts *f);
void        vn__constants_conv_matrix(int *c, const void *problem);
const char *vn__plan_conv_matrix(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                 const struct vn_site *site);
vn_status   vn__run_conv_matrix(vn_queue *q, const struct vn_choice *it, const void *problem,
                                const struct vn_plan *plan);

/* phases.c: backward data of few channels, whose phases are channels of one convolution */
const char *vn__fits_conv_window_phases(const void *problem, const struct vn_facts *f);
const char *vn__plan_conv_window_phases(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                        const struct vn_site *site);
vn_status   vn__run_conv_window_phases(vn_queue *q, const struct vn_choice *it, const void *problem,
                                       const struct vn_plan *plan);

/* trial.c: a small convolution in integers, which must come out exactly. */
vn_status vn__trial_conv(vn_queue *q, const struct vn_choice *it, vn_type type);

/* slab.c: CPUs, out of a slab that holds the source with its padding */
void        vn__constants_conv_slab(int *constants, const void *problem);
const char *vn__plan_conv_slab(struct vn_plan *out, const void *problem, const struct vn_row *row,
                               const struct vn_site *site);
struct vn_layout vn__layout_conv_slab(const void *problem, const int *p);
const char *vn__plan_conv_slab_packed(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                      const struct vn_site *site);
vn_status   vn__run_conv_slab(vn_queue *q, const struct vn_choice *it, const void *problem,
                              const struct vn_plan *plan);

/* slab_filter.c: the gradient of a filter on CPUs, out of a slab */
const char *vn__plan_conv_slab_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                      const struct vn_site *site);
vn_status   vn__run_conv_slab_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                     const struct vn_plan *plan);

/* repack.c: what has NCHW tensors, through copies */
const char *vn__fits_conv_repack(const void *problem, const struct vn_facts *f);
const char *vn__plan_conv_repack(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                 const struct vn_site *site);
vn_status   vn__run_conv_repack(vn_queue *q, const struct vn_choice *it, const void *problem,
                                const struct vn_plan *plan);

/* shallow.c: few channels, on GPUs */
const char *vn__fits_conv_shallow(const void *problem, const struct vn_facts *f);
void        vn__constants_conv_shallow(int *constants, const void *problem);
const char *vn__plan_conv_shallow(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                  const struct vn_site *site);
vn_status   vn__run_conv_shallow(vn_queue *q, const struct vn_choice *it, const void *problem,
                                 const struct vn_plan *plan);
const char *vn__fits_conv_shallow_mma(const void *problem, const struct vn_facts *f);
void        vn__constants_conv_shallow_mma(int *constants, const void *problem);
const char *vn__plan_conv_shallow_mma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                  const struct vn_site *site);
vn_status   vn__run_conv_shallow_mma(vn_queue *q, const struct vn_choice *it, const void *problem,
                                 const struct vn_plan *plan);

/* shallow_wgmma.c: few channels, on NVIDIA's sm_90 */
const char *vn__fits_conv_shallow_wgmma(const void *problem, const struct vn_facts *f);
void        vn__constants_conv_shallow_wgmma(int *constants, const void *problem);
const char *vn__plan_conv_shallow_wgmma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                        const struct vn_site *site);
vn_status   vn__run_conv_shallow_wgmma(vn_queue *q, const struct vn_choice *it, const void *problem,
                                       const struct vn_plan *plan);

/* strips.c: depthwise, on GPUs */
const char *vn__fits_conv_strips(const void *problem, const struct vn_facts *f);
void        vn__constants_conv_strips(int *c, const void *problem);
const char *vn__plan_conv_strips(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                 const struct vn_site *site);
vn_status   vn__run_conv_strips(vn_queue *q, const struct vn_choice *it, const void *problem,
                                const struct vn_plan *plan);

/* strips_window.c: depthwise, on NVIDIA's sm_90 */
const char *vn__fits_conv_strips_window(const void *problem, const struct vn_facts *f);
void        vn__constants_conv_strips_window(int *constants, const void *problem);
const char *vn__plan_conv_strips_window(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                        const struct vn_site *site);
vn_status   vn__run_conv_strips_window(vn_queue *q, const struct vn_choice *it, const void *problem,
                                       const struct vn_plan *plan);

/* planes.c: depthwise of NCHW tensors */
const char *vn__fits_conv_planes(const void *problem, const struct vn_facts *f);
void        vn__constants_conv_planes(int *c, const void *problem);
const char *vn__plan_conv_planes(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                 const struct vn_site *site);
vn_status   vn__run_conv_planes(vn_queue *q, const struct vn_choice *it, const void *problem,
                                const struct vn_plan *plan);

/* strips_filter.c: the gradient of a depthwise filter, on GPUs */
const char *vn__fits_conv_strips_filter(const void *problem, const struct vn_facts *f);
const char *vn__plan_conv_strips_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                        const struct vn_site *site);
vn_status   vn__run_conv_strips_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                       const struct vn_plan *plan);
const char *vn__fits_conv_planes_filter(const void *problem, const struct vn_facts *f);
void        vn__constants_depthwise_filter(int *c, const void *problem);
const char *vn__plan_conv_planes_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                        const struct vn_site *site);
vn_status   vn__run_conv_planes_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                       const struct vn_plan *plan);

/* narrow.c: CPUs, outputs of few channels */
void        vn__constants_conv_narrow(int *constants, const void *problem);
const char *vn__fits_conv_narrow(const void *problem, const struct vn_facts *f);
const char *vn__plan_conv_narrow(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                 const struct vn_site *site);
vn_status   vn__run_conv_narrow(vn_queue *q, const struct vn_choice *it, const void *problem,
                                const struct vn_plan *plan);

/* spread.c: CPUs, backward data of a filter of 1x1 that goes in steps */
const char *vn__fits_conv_spread(const void *problem, const struct vn_facts *f);
const char *vn__plan_conv_spread(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                 const struct vn_site *site);
vn_status   vn__run_conv_spread(vn_queue *q, const struct vn_choice *it, const void *problem,
                                const struct vn_plan *plan);

/* ... and, for gather_filter.c too, of the pixels that a filter of 1x1 with steps meets: whether their
 * channels are contiguous; the strides of a tensor of them, in the order of x; their elements, INT64_MAX
 * where there are too many; and NULL, or why no product can be made of them. */
int         vn__met_by_channel(const struct conv *c);
void        vn__met_in_order(vn_tensor *t, const struct conv *c);
int64_t     vn__met_elements(const struct conv *c);
const char *vn__fits_met(const struct conv *c);

/* gather_filter.c: CPUs, backward filter of a filter of 1x1 that goes in steps */
const char *vn__fits_conv_gather_filter(const void *problem, const struct vn_facts *f);
const char *vn__plan_conv_gather_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                        const struct vn_site *site);
vn_status   vn__run_conv_gather_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                       const struct vn_plan *plan);

/* taps.c: backward data with few channels, as products of all taps and their sum */
const char *vn__fits_conv_taps(const void *problem, const struct vn_facts *f);
const char *vn__plan_conv_taps(struct vn_plan *out, const void *problem, const struct vn_row *row,
                               const struct vn_site *site);
vn_status   vn__run_conv_taps(vn_queue *q, const struct vn_choice *it, const void *problem,
                              const struct vn_plan *plan);

/* mma.c: 16-bit types on sm_80 and up, images and their gradients, in groups or not */
const char *vn__fits_conv_mma(const void *problem, const struct vn_facts *f);
void        vn__constants_conv_mma(int *c, const void *problem);
const char *vn__plan_conv_mma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                              const struct vn_site *site);
vn_status   vn__run_conv_mma(vn_queue *q, const struct vn_choice *it, const void *problem,
                             const struct vn_plan *plan);
const char *vn__fits_conv_mma_splitk(const void *problem, const struct vn_facts *f);
const char *vn__plan_conv_mma_splitk(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                     const struct vn_site *site);
vn_status   vn__run_conv_mma_splitk(vn_queue *q, const struct vn_choice *it, const void *problem,
                                    const struct vn_plan *plan);
/* What these variants and that for the filter's gradient ask for. */
const char *vn__fits_conv_gather(const struct conv *c, const struct vn_facts *f);

/* mma_filter.c: the gradient of a filter in 16-bit types on sm_80 and up, in groups or not */
const char *vn__fits_conv_mma_filter(const void *problem, const struct vn_facts *f);
void        vn__constants_conv_mma_filter(int *c, const void *problem);
const char *vn__plan_conv_mma_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                     const struct vn_site *site);
vn_status   vn__run_conv_mma_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                    const struct vn_plan *plan);

/* tf32.c: f32 rounded to tf32 on sm_90, images and their gradients */
const char *vn__fits_conv_tf32(const void *problem, const struct vn_facts *f);
void        vn__constants_conv_tf32(int *c, const void *problem);
struct vn_layout vn__layout_conv_tf32(const void *problem, const int *p);
const char *vn__plan_conv_tf32(struct vn_plan *out, const void *problem, const struct vn_row *row,
                               const struct vn_site *site);
vn_status   vn__run_conv_tf32(vn_queue *q, const struct vn_choice *it, const void *problem,
                              const struct vn_plan *plan);

/* bf16x3.c: f32 by three bf16 parts on NVIDIA's sm_90 */
const char *vn__fits_conv_bf16x3(const void *problem, const struct vn_facts *f);
void        vn__constants_conv_bf16x3(int *c, const void *problem);
struct vn_layout vn__layout_conv_bf16x3(const void *problem, const int *p);
const char *vn__plan_conv_bf16x3(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                 const struct vn_site *site);
vn_status   vn__run_conv_bf16x3(vn_queue *q, const struct vn_choice *it, const void *problem,
                                const struct vn_plan *plan);

/* tf32_filter.c: f32 rounded to tf32, the gradient of a filter */
const char *vn__fits_conv_tf32_filter(const void *problem, const struct vn_facts *f);
const char *vn__plan_conv_tf32_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                      const struct vn_site *site);
vn_status   vn__run_conv_tf32_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                     const struct vn_plan *plan);

/* bf16x3_filter.c: likewise by three bf16 parts */
const char *vn__fits_conv_bf16x3_filter(const void *problem, const struct vn_facts *f);
void        vn__constants_conv_bf16x3_filter(int *c, const void *problem);
const char *vn__plan_conv_bf16x3_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                        const struct vn_site *site);
vn_status   vn__run_conv_bf16x3_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                       const struct vn_plan *plan);

/* shallow_wgmma_filter.c: the gradient of a filter of few channels, likewise */
const char *vn__fits_conv_shallow_wgmma_filter(const void *problem, const struct vn_facts *f);
void        vn__constants_conv_shallow_wgmma_filter(int *constants, const void *problem);
const char *vn__plan_conv_shallow_wgmma_filter(struct vn_plan *out, const void *problem,
                                               const struct vn_row *row, const struct vn_site *site);
vn_status   vn__run_conv_shallow_wgmma_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                              const struct vn_plan *plan);

/* window_filter.c: the gradient of a 3x3 filter, likewise */
const char *vn__fits_conv_window_filter(const void *problem, const struct vn_facts *f);
const char *vn__plan_conv_window_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                        const struct vn_site *site);
vn_status   vn__run_conv_window_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                       const struct vn_plan *plan);

/* wgmma_filter.c: the gradient of a filter in 16-bit types, on sm_90 */
const char *vn__fits_conv_wgmma_filter(const void *problem, const struct vn_facts *f);
const char *vn__fits_conv_wgmma_filter_splitk(const void *problem, const struct vn_facts *f);
void        vn__constants_conv_wgmma_filter(int *c, const void *problem);
void        vn__constants_conv_wgmma_filter_tiles(int *c, const void *problem);
const char *vn__plan_conv_wgmma_filter(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                       const struct vn_site *site);
const char *vn__plan_conv_wgmma_filter_splitk(struct vn_plan *out, const void *problem,
                                              const struct vn_row *row, const struct vn_site *site);
vn_status   vn__run_conv_wgmma_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                      const struct vn_plan *plan);
vn_status   vn__run_conv_wgmma_filter_splitk(vn_queue *q, const struct vn_choice *it, const void *problem,
                                             const struct vn_plan *plan);
#endif
