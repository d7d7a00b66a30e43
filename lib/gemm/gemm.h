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
    vn_tensor a, b, c;            /* one rank; broadcast batches have stride 0 */
    vn_tensor scale, residual, bias;    /* with the extents of C: what is the same along one has stride 0 */
    int       has_scale, has_bias;      /* the residual counts where beta is not 0 */
    int       fast;               /* vn__fast_act() */
    vn_activation activation;
    vn_math   math;
    int       to_pack;            /* for vn_pack_open: B will be there in whatever layout is wanted */
    vn_buffer *pack;              /* B, as a vn_pack has it; or NULL */
    struct vn_layout packed;      /* its layout */
};

extern const struct vn_variant vn__gemm_variants[];

/* ---- the problem (gemm.c) -------------------------------------------------------- */

/* The stride of a matrix from row to row, and from column to column. */
static inline int64_t vn__row(const vn_tensor *t) { return t->stride[t->rank - 2]; }
static inline int64_t vn__col(const vn_tensor *t) { return t->stride[t->rank - 1]; }

/* Completes a problem whose operands, scalars and epilogue are given: head, sizes, and which way round it is
 * computed.  True if C is empty.                                                                         */
int  vn__gemm_settle(struct gemm *g);
/* Fills in head, but for op and type, from the rest. */
void vn__gemm_size_up(struct gemm *g);
/* Batch extents of 1 broadcast: they take over those of C, with stride 0. */
vn_status vn__gemm_batches(vn_tensor *t, const char *name, const vn_tensor *c);
/* C^T = B^T A^T instead of C = A B. */
void vn__gemm_transpose(struct gemm *g);
/* The product itself where M is at most N, else its transpose; and whether it is that. */
struct gemm vn__gemm_few_rows(const struct gemm *g);
int         vn__gemm_turns_few_rows(const void *problem);

/* ---- what fits() asks (fits.c) ----------------------------------------------------- */

/* NULL if M, N, K and the batches stay below 2^31: what every kernel here needs; or below 2^30. */
const char *vn__fits_sizes(const struct gemm *g);
const char *vn__fits_half_sizes(const struct gemm *g);
/* Its sums are in another order than VN_MATH_BITWISE promises. */
const char *vn__fits_order(const struct gemm *g);
/* A matrix that is contiguous along neither dimension counts as K-major. */
int vn__is_mn_major_a(const struct gemm *g);
int vn__is_mn_major_b(const struct gemm *g);
/* Whether TMA can read it: contiguous along one dimension, rows along it that begin at multiples of 16 bytes,
 * and at most one batch dimension.  along: its stride there, 1; across: the other.                         */
int vn__fits_tma(const vn_tensor *t, int64_t along, int64_t across);

/* ---- what a plan costs (cost.c) ---------------------------------------------------- */

/* What kernels do that make C in tiles, one after the other on each compute unit. */
struct vn_tiles {
    double tiles;                 /* in all */
    double flops;                 /* of a tile, its idle parts included; in the mean */
    double longest;               /* of the tile that takes longest; 0: all take as long */
    double bytes;                 /* that all of them read and write at least */
    double lines;                 /* of L2, that a tile asks for; 0: not counted */
    double peak;                  /* GFLOP/s of a compute unit, on the engine that they use */
    double start;                 /* seconds before the first of a work-group's */
    double after;                 /* seconds of each when its products are there: an activation */
    int    resident;              /* on a compute unit at the same time */
};
/* Their first costs. */
enum { VN_EFF, VN_EFF_FULL, VN_EFF_DRAM, VN_FIXED_NS, VN_TILE_NS, VN_ODD_C, VN_TILE_COSTS };
#define VN_TILES_COSTS "EFF EFF_FULL EFF_DRAM FIXED_NS TILE_NS ODD_C"
/* And of those whose tiles TMA copies. */
enum { VN_OFF_LINES = VN_TILE_COSTS, VN_TMA_COST_COUNT };
#define VN_TMA_COSTS VN_TILES_COSTS " OFF_LINES"

/* Seconds, by the cost columns of the row; 0 if the row has none. */
double vn__tiles_seconds(const struct vn_tiles *t, const struct vn_row *row, const struct vn_site *site);
/* Tiles of blk_m x blk_n and `k` of K in each, of so many matrices, which each work-group has to find. */
struct vn_tiles vn__gemm_tiles(const struct gemm *g, int64_t blk_m, int64_t blk_n, int64_t k, double matrices,
                               double peak, int resident, const struct vn_row *row,
                               const struct vn_site *site);
/* What the store of a tile of an unaligned C takes more, after its products are there. */
double vn__odd_tile_seconds(const struct gemm *g, int64_t blk_m, int64_t blk_n, int thousandths,
                            const struct vn_site *site);
/* Tiles that TMA copies, which finds the matrix of a batch by itself; an unaligned C counts by the tile. */
struct vn_tiles vn__tma_tiles(const struct gemm *g, int64_t blk_m, int64_t blk_n, int64_t k, double matrices,
                              double peak, const struct vn_row *row, const struct vn_site *site);
/* How long vn__gemm_tiles() take, none of their lines counted. */
double vn__gemm_seconds(const struct gemm *g, int64_t blk_m, int64_t blk_n, int64_t k, double matrices,
                        double peak, int resident, const struct vn_row *row, const struct vn_site *site);
/* What is left of a rate where rows of an operand begin within a line of the cache, so that each row of a TMA
 * box lies in two: OFF_LINES thousandths.  Rows of at most a line share it.  bytes: from row to row.       */
double vn__off_lines(int64_t bytes, const struct vn_row *row);
double vn__off_lines_of(const vn_tensor *t, const struct vn_row *row);
/* Lines of the cache that TMA asks for, in the mean, for 128 bytes of each row that a tile has of an operand
 * of so many rows, `block` in a tile: up to two for each row where they begin within a line; else 0, for
 * their time is in EFF.  Rows beyond the operand are not read.                                           */
double vn__lines_of(const vn_tensor *t, int64_t rows, int64_t block);
/* And those for so many rows of K of an operand that is contiguous the other way, along: its stride there, 1.
 * Rows that share a line are asked for one by one, each as long as a line takes, by all tiles that read them.
 * 0: each row fills a line.                                                                                */
double vn__short_lines_of(const vn_tensor *t, int64_t along, int64_t k);
/* Work-groups of so many work-items that a compute unit runs at the same time,
 * if their registers are not many.                                          */
int    vn__resident(int items);
/* Bytes that storing C takes as long as, beyond its own: thousandths of them,
 * where its rows are not 16-byte aligned.                                  */
double vn__odd_c_bytes(const struct gemm *g, int thousandths);
/* And where they begin within a sector of memory, of 32 bytes. */
double vn__half_c_bytes(const struct gemm *g, int thousandths);
/* What all tiles read and write, with the former. */
double vn__tiles_bytes(const struct gemm *g, const struct vn_row *row);
/* Of moving bytes at so many thousandths of the memory's rate. */
double vn__move_seconds(double bytes, int thousandths, const struct vn_site *site);
double vn__launch_seconds(const struct vn_site *site);
/* Of a work-group until it knows where its matrices of a batch begin; 0 for a single product.  The divisions
 * of batch_offset() (cl/types.h) wait for each other.                                                     */
double vn__batch_seconds(const struct gemm *g, const struct vn_site *site);
/* Of two things that overlap in part. */
double vn__together(double a, double b);
/* Of so many bytes, the share that the second-level cache keeps from one product to the next; and the time
 * to read or write one of them.                                                                        */
double vn__share_in_l2 (double bytes, const struct vn_site *site);
double vn__byte_seconds(double bytes, const struct vn_site *site);
/* The rate of multiply-adds, of the matrix engine, for the problem's type. */
double vn__fma_peak(const struct gemm *g, const struct vn_site *site);
double vn__mma_peak(const struct gemm *g, const struct vn_site *site);

/* Kernels of mma.sync begin their parameters with these, and have so many work-items for each set of warps
 * (mma.c). */
#define VN_MMA_PARAMS "BLK_M BLK_N BLK_K WARP_M WARP_N STAGES MMA_M MMA_K"
int vn__mma_items(const int *p);

/* Kernels with split-K in one launch (splits.c).  Of a slice of a tile: flops, and loads, in bytes from L2.
 * peak: GFLOP/s of a compute unit; memory: bytes of the operands; bytes: the same, and what storing C takes
 * beyond them; start: seconds before the first slice; local: bytes of local memory; slots: of a tile. */
struct vn_splits {
    double  tiles, flops, loads, peak, memory, bytes, start;
    int64_t slices, local, slots;
    int     items;
};
/* Their first costs. */
enum { VN_SPLITS_EFF, VN_SPLITS_EFF_FULL, VN_SPLITS_FIXED_NS, VN_SPLITS_WAVE_NS, VN_SPLITS_LEVEL_NS,
       VN_SPLITS_LOADS, VN_SPLITS_COSTS };
#define VN_SPLITS_COST_NAMES "EFF EFF_FULL FIXED_NS WAVE_NS SPLIT_NS LOADS"
/* Seconds with as many splits as take the least, of those that there are slots for; 0 if the row has no
 * costs. */
double vn__plan_splits(int64_t *span, int64_t *splits, const struct vn_splits *s, const struct vn_row *row,
                       const struct vn_site *site);

/* What kernels for CPUs do: launches; flops, the idle parts of tiles included; bytes of A that are packed or
 * read, of B that are read, in all passes, and of C; and for how many cores there is work.  odd: an operand
 * that is not read along contiguous rows.                                                                 */
struct vn_cpu_work {
    double launches, flops, cores, a, b, c;
    int    odd_a, odd_b;
};
#define VN_CPU_COSTS "EFF FIXED_NS A_PS ODD_A B_PS ODD_B C_PS"
double vn__cpu_seconds(const struct gemm *g, const struct vn_cpu_work *w, const struct vn_row *row,
                       const struct vn_site *site);
/* Work of tiles of thr_m x thr_n: flops, cores, and C. */
struct vn_cpu_work vn__cpu_tiles(const struct gemm *g, int64_t thr_m, int64_t thr_n,
                                 const struct vn_site *site);

/* ---- launches (gemm.c) --------------------------------------------------------------- */

/* Arguments: M, N, K; an input, for which C's buffer stands in where K is 0, so that nothing is
 * read; both inputs; and those that end each kernel: C, and what is added to it.           */
void vn__gemm_sizes (struct vn_launch *l, const struct gemm *g);
void vn__gemm_input (struct vn_launch *l, const struct gemm *g, const vn_tensor *t);
void vn__gemm_inputs(struct vn_launch *l, const struct gemm *g);
void vn__gemm_output(struct vn_launch *l, const struct gemm *g);
/* The error for a C that has more tiles than a launch holds work-groups. */
vn_status vn__gemm_too_many(const struct vn_choice *it, int64_t tiles, int64_t blk_m, int64_t blk_n,
                            int64_t most);
/* One work-group of so many work-items for each blk_m x blk_n of C; the kernel takes the sizes, C's extents,
 * alpha, the inputs and the output.                                                                       */
vn_status vn__gemm_launch_tiles(vn_queue *q, const struct vn_choice *it, const struct gemm *g, int blk_m,
                                int blk_n, int items);

/* ---- B in a layout of its own, for once or for many times (pack.c) ------------------- */

vn_status vn__gemm_take(struct gemm *g, const vn_queue *q, const vn_pack *pack);
/* True if B is already packed by this packer, or will be. */
static inline int vn__is_packed_by(const struct gemm *g, vn_packer *packer)
{
    return g->to_pack || (g->pack && g->packed.pack == packer);
}
/* And in this very layout. */
int       vn__is_packed_as(const struct gemm *g, const struct vn_layout *l);
/* Workspace of a variant that needs `own` bytes, and B in this layout after them. */
size_t    vn__workspace_and_b(const struct gemm *g, size_t own, const struct vn_layout *l);
/* B in the variant's layout: *b from byte *at on.  It is that of the pack, if that has it so; else it is
 * packed here.  *workspace has room for `own` bytes.                                                 */
vn_status vn__lay_out_b(vn_buffer **b, size_t *at, vn_buffer **workspace, vn_queue *q,
                        const struct vn_choice *it, const struct gemm *g, size_t own);

/* ---- the variants: variants.c has the table ------------------------------------------ */

#define VN_VARIANT(name)                                                                                     \
    const char *vn__fits_##name(const void *problem, const struct vn_facts *f);                              \
    const char *vn__plan_##name(struct vn_plan *out, const void *problem, const struct vn_row *row,          \
                                const struct vn_site *site);                                                 \
    vn_status   vn__run_##name (vn_queue *q, const struct vn_choice *it, const void *problem,                \
                                const struct vn_plan *plan)
#define VN_CONSTANTS_OF(name) void vn__constants_##name(int *c, const void *problem)
#define VN_LAYOUT_OF(name)    struct vn_layout vn__layout_##name(const void *problem, const int *p)

VN_VARIANT(tiled);                                       /* tiled.c: any device */
VN_VARIANT(matrix_mfma); VN_VARIANT(matrix_wmma); VN_VARIANT(matrix_dpas); /* matrix.c: AMD, Intel */
VN_VARIANT(pipelined); VN_CONSTANTS_OF(pipelined); int vn__turns_pipelined(const void *problem);
                                                         /* pipelined.c: f32, f64 by multiply-adds, sm_80 */
VN_VARIANT(mma);       VN_CONSTANTS_OF(mma);             /* mma.c: matrix engines of sm_80 and up */
VN_VARIANT(mma_splitk);                                  /* mma_splitk.c: few tiles, rows of any alignment */
VN_VARIANT(batched);   VN_CONSTANTS_OF(batched);         /* batched.c: many small matrices */
VN_VARIANT(batched_fma);
VN_VARIANT(wgmma);     VN_CONSTANTS_OF(wgmma); VN_CONSTANTS_OF(wgmma_tiles);
                                                         /* wgmma.c: 16-bit types on sm_90 */
VN_VARIANT(wgmma_splitk);
VN_VARIANT(padded);    VN_CONSTANTS_OF(padded); VN_LAYOUT_OF(padded);  /* padded.c: the same, unaligned */
VN_VARIANT(wgmma_repack);
VN_VARIANT(tf32);      VN_CONSTANTS_OF(tf32); VN_LAYOUT_OF(tf32); int vn__turns_tf32(const void *problem);
                                                         /* tf32.c: VN_MATH_TF32 on sm_90 */
VN_VARIANT(bf16x3);    VN_LAYOUT_OF(bf16x3);             /* bf16x3.c: f32 by three bf16 parts, sm_90 */
VN_VARIANT(bf16x3_rows); VN_CONSTANTS_OF(bf16x3_rows);   /* bf16x3_rows.c: of one operand with few rows */
VN_VARIANT(skinny);      VN_CONSTANTS_OF(skinny);        /* skinny.c: M or N small, on GPUs */
VN_VARIANT(skinny_mma);  VN_CONSTANTS_OF(skinny_mma);
VN_VARIANT(skinny_rows); VN_CONSTANTS_OF(skinny_rows);
VN_VARIANT(splitk);                                      /* splitk.c: K split, other variants' products */
VN_VARIANT(cpu_packed);  VN_LAYOUT_OF(cpu_packed);       /* cpu.c: CPUs, tiles of packed panels */
VN_VARIANT(cpu_panels);
VN_VARIANT(cpu_unpacked);
VN_VARIANT(cpu_direct); VN_VARIANT(cpu_narrow);
VN_VARIANT(cpu_rank);                                    /* cpu_rank.c, cpu_dot.c, cpu_strip.c: few rows */
VN_VARIANT(cpu_dot);
VN_VARIANT(cpu_strip);

const char *vn__fits_cpu(const void *problem, const struct vn_facts *f);

/* The constant VECTORS: whether rows of C, and of a residual that is a matrix, are whole 16-byte vectors. */
int         vn__gemm_in_vectors(const struct gemm *g);

/* What the kernel of gemm_wgmma is launched with, where that is not the usual: operands that it repacks. */
struct vn_repack {
    vn_tensor a, b;               /* as they are */
    int64_t   strips_a, strips_b; /* of 512 rows; 0: none */
};
/* after_ns: of a tile, beside its products; half_c: thousandths, of vn__half_c_bytes(). */
const char *vn__plan_wgmma_tiles(struct vn_plan *out, const struct gemm *g, int after_ns, int half_c,
                                 const struct vn_row *row, const struct vn_site *site);
vn_status   vn__launch_wgmma(vn_queue *q, const struct vn_choice *it, const struct gemm *g,
                             const struct vn_plan *plan, const struct vn_repack *repack);

/* GEMM_PARAMS of cl/gemm/wgmma.h; raster: rows of tiles in a group; staged: whether the residual is. */
vn_status   vn__gemm_by_maps(struct vn_launch *l, vn_queue *q, const struct gemm *g,
                             const int64_t tile[2], int64_t raster, int64_t groups, int64_t tiles,
                             int staged);

/* Adds `splits` partial sums of all of C, from element `start` of `sums` on
 * (splitk_sum.cl, the choice's `kernel`).                                */
vn_status   vn__add_splits(vn_queue *q, const struct vn_choice *it, int kernel, int items,
                           const struct gemm *g, vn_buffer *sums, int64_t start, int64_t splits);

/* trial.c: a small product in integers, which must come out exactly. */
vn_status   vn__trial_gemm(vn_queue *q, const struct vn_choice *it, vn_type type);
#endif
