/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm.h - the problem of gemm.c, for the files that solve it in a way of their own.
 */
#ifndef VN_GEMM_H
#define VN_GEMM_H

#include "core.h"

struct gemm {                     /* the problem, as variants see it */
    struct vn_problem head;
    int64_t   m, n, k, batches;
    double    alpha, beta;
    vn_tensor a, b, c, bias;      /* one rank; broadcast batches have stride 0 */
    int       has_bias;
    vn_activation activation;
    vn_math   math;
    int       units;              /* of the device: how many work-groups it takes to fill it */
    int       is_part;            /* of a problem that gemm_deep has split */
    int       to_pack;            /* for vn_pack_open: B will be there in whatever layout is wanted */
    vn_buffer *pack;              /* B, as a vn_pack has it; or NULL */
    struct vn_layout packed;      /* its layout */
};

/* Bytes that the second-level cache of an H100 keeps from one product to the next. */
#define VN_CACHE 40e6

/* The step of a matrix from row to row, and from column to column. */
static inline int64_t vn__row(const vn_tensor *t) { return t->stride[t->rank - 2]; }
static inline int64_t vn__col(const vn_tensor *t) { return t->stride[t->rank - 1]; }

/* M, N, K, batches in 31 bits: what every kernel here needs. */
const char *vn__fits_gemm(const void *problem, const struct vn_facts *f);

/* Arguments: M, N, K; an input, for which C's buffer stands in where K is 0, so that nothing is
 * read; both inputs; and those that end each kernel: beta, C, bias, activation.            */
void vn__gemm_sizes (struct vn_launch *l, const struct gemm *g);
void vn__gemm_input (struct vn_launch *l, const struct gemm *g, const vn_tensor *t);
void vn__gemm_inputs(struct vn_launch *l, const struct gemm *g);
void vn__gemm_output(struct vn_launch *l, const struct gemm *g);
/* Fills in head, but for op and type, from the rest. */
void vn__gemm_size_up(struct gemm *g);
/* An input's extents of 1 among the batches repeat. */
vn_status vn__gemm_batches(vn_tensor *t, const char *name, const vn_tensor *c);

/* gemm_pack.c: B in a layout of its own, for once or for many times. */
vn_status vn__gemm_take(struct gemm *g, const vn_queue *q, const vn_pack *pack);
/* Is B there as this packer lays it out, so that the problem has no work with it? */
static inline int vn__is_packed_by(const struct gemm *g, vn_packer *packer)
{
    return g->to_pack || (g->pack && g->packed.pack == packer);
}
/* Workspace of a variant that needs `own` bytes, and B in this layout after them. */
size_t    vn__workspace_and_b(const struct gemm *g, size_t own, const struct vn_layout *l);
/* B in the variant's layout: *b from byte *at on.  It is that of the pack, if that has it so; else it is
 * laid out here.  *workspace has room for `own` bytes.                                               */
vn_status vn__lay_out_b(vn_buffer **b, size_t *at, vn_buffer **workspace, vn_queue *q, const struct vn_choice *it,
                        const struct gemm *g, size_t own);

/* gemm_cpu.c: CPUs, through vectors written out */
const char *vn__fits_cpu(const void *problem, const struct vn_facts *f);
const char *vn__fits_dot(const void *problem, const struct vn_facts *f);
const char *vn__pays_dot(const void *problem, const struct vn_facts *f);
const char *vn__fits_rank(const void *problem, const struct vn_facts *f);
const char *vn__pays_rank(const void *problem, const struct vn_facts *f);
const char *vn__pays_packed(const void *problem, const struct vn_facts *f);
const char *vn__fits_direct(const void *problem, const struct vn_facts *f);
const char *vn__pays_direct(const void *problem, const struct vn_facts *f);
const char *vn__pays_narrow(const void *problem, const struct vn_facts *f);
size_t      vn__workspace_packed(const void *problem, const int *p);
vn_status   vn__run_packed(vn_queue *q, const struct vn_choice *it, const void *problem);
vn_status   vn__run_unpacked(vn_queue *q, const struct vn_choice *it, const void *problem);
const char *vn__fits_cpu_packed(const void *problem, const struct vn_facts *f);
const char *vn__pays_cpu_packed(const void *problem, const struct vn_facts *f);
size_t      vn__workspace_cpu_packed(const void *problem, const int *p);
struct vn_layout vn__layout_cpu_packed(const void *problem, const int *p);
vn_status   vn__run_cpu_packed(vn_queue *q, const struct vn_choice *it, const void *problem);
size_t      vn__workspace_rank(const void *problem, const int *p);
vn_status   vn__run_rank(vn_queue *q, const struct vn_choice *it, const void *problem);
vn_status   vn__run_dot(vn_queue *q, const struct vn_choice *it, const void *problem);

/* gemm_strip.c: likewise, few rows and a B in the caches */
const char *vn__fits_strip(const void *problem, const struct vn_facts *f);
const char *vn__pays_strip(const void *problem, const struct vn_facts *f);
vn_status   vn__run_strip(vn_queue *q, const struct vn_choice *it, const void *problem);

/* C^T = B^T A^T instead of C = A B. */
void vn__gemm_transpose(struct gemm *g);
/* The product itself where M is at most N, else its transpose. */
struct gemm vn__gemm_few_rows(const struct gemm *g);

/* One work-group for each BLK_M x BLK_N of C, one item for each THR_M x THR_N of that; BLK_M BLK_N
 * BLK_K THR_M THR_N begin the parameters.                                                      */
vn_status vn__run_tiled(vn_queue *q, const struct vn_choice *it, const void *problem);

/* gemm_async.c: f32 and f64 by multiply-adds on NVIDIA's sm_80 and up.  A letter for each of A and B:
 * k says that its lines run along K, v that they run across it in multiples of 16 bytes; x, neither. */
const char *vn__fits_async_vv(const void *problem, const struct vn_facts *f);
const char *vn__fits_async_vk(const void *problem, const struct vn_facts *f);
const char *vn__fits_async_kv(const void *problem, const struct vn_facts *f);
const char *vn__fits_async_kk(const void *problem, const struct vn_facts *f);
const char *vn__fits_async_xk(const void *problem, const struct vn_facts *f);
const char *vn__fits_async_kx(const void *problem, const struct vn_facts *f);
const char *vn__fits_async_xx(const void *problem, const struct vn_facts *f);
vn_status   vn__run_async_transposed(vn_queue *q, const struct vn_choice *it, const void *problem);

/* gemm_wgmma.c: 16-bit types on NVIDIA's sm_90; "_nt" says which of A, B runs across K. */
const char *vn__fits_wgmma_nn(const void *problem, const struct vn_facts *f);
const char *vn__fits_wgmma_nt(const void *problem, const struct vn_facts *f);
const char *vn__fits_wgmma_tn(const void *problem, const struct vn_facts *f);
const char *vn__fits_wgmma_tt(const void *problem, const struct vn_facts *f);
const char *vn__pays_wgmma    (const void *problem, const struct vn_facts *f);
const char *vn__pays_wgmma_64x64  (const void *problem, const struct vn_facts *f);
const char *vn__pays_wgmma_64x128 (const void *problem, const struct vn_facts *f);
const char *vn__pays_wgmma_64x256 (const void *problem, const struct vn_facts *f);
const char *vn__pays_wgmma_128x192(const void *problem, const struct vn_facts *f);
size_t      vn__workspace_wgmma(const void *problem, const int *p);
vn_status   vn__run_wgmma(vn_queue *q, const struct vn_choice *it, const void *problem);
/* ... of operands that the same launch lays apart: where they are now, and in how many strips of 512 of M, of N;
 * 0: it lies apart already.                                                                            */
struct padding { vn_tensor a, b; int64_t strips_a, strips_b; };
vn_status   vn__run_wgmma_padding(vn_queue *q, const struct vn_choice *it, const void *problem, const struct padding *pads);
/* The same with K cut into parts, where C has few tiles. */
const char *vn__fits_wgmma_deep_nn(const void *problem, const struct vn_facts *f);
const char *vn__fits_wgmma_deep_nt(const void *problem, const struct vn_facts *f);
const char *vn__fits_wgmma_deep_tn(const void *problem, const struct vn_facts *f);
const char *vn__fits_wgmma_deep_tt(const void *problem, const struct vn_facts *f);
const char *vn__pays_wgmma_deep(const void *problem, const struct vn_facts *f);
size_t      vn__workspace_wgmma_deep(const void *problem, const int *p);
vn_status   vn__run_wgmma_deep(vn_queue *q, const struct vn_choice *it, const void *problem);

/* gemm_padded.c: the same, of operands that are first copied to where the engine can take them. */
const char *vn__fits_padded_nn(const void *problem, const struct vn_facts *f);
const char *vn__fits_padded_nt(const void *problem, const struct vn_facts *f);
const char *vn__fits_padded_tn(const void *problem, const struct vn_facts *f);
const char *vn__fits_padded_tt(const void *problem, const struct vn_facts *f);
const char *vn__pays_padded(const void *problem, const struct vn_facts *f);
size_t      vn__workspace_padded(const void *problem, const int *p);
struct vn_layout vn__layout_padded(const void *problem, const int *p);
vn_status   vn__run_padded(vn_queue *q, const struct vn_choice *it, const void *problem);
/* ... and copied by the launch that multiplies */
const char *vn__fits_padding_nn(const void *problem, const struct vn_facts *f);
const char *vn__fits_padding_nt(const void *problem, const struct vn_facts *f);
const char *vn__fits_padding_tn(const void *problem, const struct vn_facts *f);
const char *vn__fits_padding_tt(const void *problem, const struct vn_facts *f);
const char *vn__pays_padding(const void *problem, const struct vn_facts *f);
vn_status   vn__run_padding(vn_queue *q, const struct vn_choice *it, const void *problem);

/* gemm_split.c: f32 on NVIDIA's sm_90, in three bf16 parts; by the tile's columns, or its 64 rows. */
const char *vn__fits_split(const void *problem, const struct vn_facts *f);
const char *vn__pays_split_64 (const void *problem, const struct vn_facts *f);
const char *vn__pays_split_128(const void *problem, const struct vn_facts *f);
const char *vn__pays_split_192(const void *problem, const struct vn_facts *f);
int         vn__gains_split_packed(const struct gemm *g);      /* of few rows, since B is packed */
size_t      vn__workspace_split(const void *problem, const int *p);
struct vn_layout vn__layout_split(const void *problem, const int *p);
vn_status   vn__run_split(vn_queue *q, const struct vn_choice *it, const void *problem);

/* gemm_split_rows.c: the same where one operand has few rows; how the other lies to K, and the tile's rows. */
const char *vn__fits_split_rows_along (const void *problem, const struct vn_facts *f);
const char *vn__fits_split_rows_across(const void *problem, const struct vn_facts *f);
const char *vn__pays_split_rows_64 (const void *problem, const struct vn_facts *f);
const char *vn__pays_split_rows_128(const void *problem, const struct vn_facts *f);
size_t      vn__workspace_split_rows(const void *problem, const int *p);
vn_status   vn__run_split_rows(vn_queue *q, const struct vn_choice *it, const void *problem);

/* gemm_tf32.c: VN_MATH_TF32 on NVIDIA's sm_90; how the left operand lies to K. */
const char *vn__fits_tf32_along (const void *problem, const struct vn_facts *f);
const char *vn__fits_tf32_across(const void *problem, const struct vn_facts *f);
const char *vn__pays_tf32(const void *problem, const struct vn_facts *f);
size_t      vn__workspace_tf32(const void *problem, const int *p);
struct vn_layout vn__layout_tf32(const void *problem, const int *p);
vn_status   vn__run_tf32(vn_queue *q, const struct vn_choice *it, const void *problem);

/* gemm_mma.c: matrix engines of NVIDIA's sm_80 and up, out of registers; likewise. */
const char *vn__fits_mma_nn(const void *problem, const struct vn_facts *f);
const char *vn__fits_mma_nt(const void *problem, const struct vn_facts *f);
const char *vn__fits_mma_tn(const void *problem, const struct vn_facts *f);
const char *vn__fits_mma_tt(const void *problem, const struct vn_facts *f);
const char *vn__pays_mma(const void *problem, const struct vn_facts *f);
vn_status   vn__run_mma(vn_queue *q, const struct vn_choice *it, const void *problem);

/* gemm_matrix.c: matrix engines of AMD and Intel. */
const char *vn__fits_mfma(const void *problem, const struct vn_facts *f);
const char *vn__fits_wmma(const void *problem, const struct vn_facts *f);
const char *vn__fits_dpas(const void *problem, const struct vn_facts *f);
const char *vn__pays_matrix(const void *problem, const struct vn_facts *f);
vn_status   vn__run_matrix(vn_queue *q, const struct vn_choice *it, const void *problem);

/* gemm_skinny.c: M or N small.  The large operand runs along K, or across it (n); with so many
 * rows of the small one in registers.                                                       */
#define VN_SKINNY(along, ALONG, along_k, rows)                                                  \
    { .name = "gemm_skinny", .fits = vn__fits_skinny_##along##rows, .pays = vn__pays_skinny,    \
      .run = vn__run_skinny, .workspace = vn__workspace_skinny,                                 \
      .texts = "cl/tile/epilogue.h cl/gemm/skinny.h cl/gemm/splitk_sum.cl cl/gemm/skinny.cl",               \
      .entries = "gemm_skinny gemm_sum", .params = "ITEMS_K ITEMS_N THR_N DEPTH_K DEPTH_N FILL LANES SPLIT", \
      .defines = "#define ITEMS ITEMS_" #ALONG "\n#define DEPTH DEPTH_" #ALONG "\n#define ALONG_K " #along_k "\n#define THR_M " #rows "\n" }
#define VN_SKINNY_MMA(along, ALONG, along_k, rows, tiles)                                       \
    { .name = "gemm_skinny_mma", .fits = vn__fits_skinny_mma_##along##rows,                     \
      .pays = vn__pays_skinny_mma, .run = vn__run_skinny_mma,                                   \
      .trial = vn__trial_gemm,                                                                  \
      .texts = "cl/tile/epilogue.h cl/atoms/nvidia/nvidia.h cl/gemm/skinny.h cl/gemm/skinny_mma.cl",        \
      .entries = "gemm_skinny_mma", .params = "ITEMS TILES_16 TILES_64 ROOM DEPTH_K DEPTH_N FILL SPLIT", \
      .defines = "#define DEPTH DEPTH_" #ALONG "\n#define TILES TILES_" #tiles "\n"             \
                 "#define ALONG_K " #along_k "\n#define THR_M " #rows "\n" }
#define VN_SKINNY_LINES(suffix, rows)                                                           \
    { .name = "gemm_skinny_lines" #suffix, .fits = vn__fits_skinny_lines_##rows,                \
      .pays = vn__pays_skinny_lines##suffix, .run = vn__run_skinny_lines,                       \
      .trial = vn__trial_gemm,                                                                  \
      .texts = "cl/tile/epilogue.h cl/atoms/nvidia/nvidia.h cl/gemm/skinny.h cl/gemm/skinny_lines.cl",      \
      .entries = "gemm_skinny_lines", .params = "ITEMS GROUPS ROOM FILL SPLIT",                 \
      .defines = "#define THR_M " #rows "\n" }
#define VN_FITS_SKINNY(suffix) \
    const char *vn__fits_skinny_##suffix(const void *problem, const struct vn_facts *f)
VN_FITS_SKINNY(k1); VN_FITS_SKINNY(k2); VN_FITS_SKINNY(k4); VN_FITS_SKINNY(k8); VN_FITS_SKINNY(k16);
VN_FITS_SKINNY(n1); VN_FITS_SKINNY(n2); VN_FITS_SKINNY(n4); VN_FITS_SKINNY(n8); VN_FITS_SKINNY(n16);
VN_FITS_SKINNY(mma_k8); VN_FITS_SKINNY(mma_k16); VN_FITS_SKINNY(mma_k24); VN_FITS_SKINNY(mma_k32);
VN_FITS_SKINNY(mma_k40); VN_FITS_SKINNY(mma_k48); VN_FITS_SKINNY(mma_k64);
VN_FITS_SKINNY(mma_n8); VN_FITS_SKINNY(mma_n16); VN_FITS_SKINNY(mma_n24); VN_FITS_SKINNY(mma_n32);
VN_FITS_SKINNY(mma_n40); VN_FITS_SKINNY(mma_n48); VN_FITS_SKINNY(mma_n64);
VN_FITS_SKINNY(lines_8); VN_FITS_SKINNY(lines_16); VN_FITS_SKINNY(lines_32);
const char *vn__pays_skinny_lines   (const void *problem, const struct vn_facts *f);
const char *vn__pays_skinny_lines_16(const void *problem, const struct vn_facts *f);
vn_status   vn__run_skinny_lines(vn_queue *q, const struct vn_choice *it, const void *problem);
const char *vn__pays_skinny(const void *problem, const struct vn_facts *f);
const char *vn__pays_skinny_mma(const void *problem, const struct vn_facts *f);
size_t      vn__workspace_skinny(const void *problem, const int *p);
vn_status   vn__run_skinny(vn_queue *q, const struct vn_choice *it, const void *problem);
vn_status   vn__run_skinny_mma(vn_queue *q, const struct vn_choice *it, const void *problem);

/* gemm_deep.c: K split into parts, each part solved by another variant. */
const char *vn__fits_deep(const void *problem, const struct vn_facts *f);
const char *vn__pays_deep(const void *problem, const struct vn_facts *f);
double      vn__time_fma(const struct gemm *g);   /* with K in parts or not: microseconds on an H100 */
size_t      vn__workspace_deep(const void *problem, const int *p);
vn_status   vn__run_deep(vn_queue *q, const struct vn_choice *it, const void *problem);
/* Adds `parts` of all of C, from number `start` of `sums` on (gemm_sum.cl, the choice's `kernel`). */
vn_status   vn__add_parts(vn_queue *q, const struct vn_choice *it, int kernel, int items, const struct gemm *g,
                          vn_buffer *sums, int64_t start, int64_t parts);

/* gemm_trial.c: a small product in integers, which must come out exactly. */
vn_status   vn__trial_gemm(vn_queue *q, const struct vn_choice *it, vn_type type);
#endif
