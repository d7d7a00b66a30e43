/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm.c - C := act(alpha A B + beta C + bias): check it, choose a variant, run it.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "gemm.h"
#include "vendors/vendor.h"

/* Past these an int in a kernel could overflow, also when rounded up to a tile. */
enum { MOST = INT_MAX - 4096 };

/* ---- fits -------------------------------------------------------------------- */

const char *vn__fits_gemm(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    (void)f;
    if (g->m > MOST || g->n > MOST || g->k > MOST || g->batches > MOST)
        return "M, N, K and the batches must stay below 2^31";
    return NULL;
}

/* Many small matrices fill a device with small tiles, one for each. */
static const char *pays_batch(const struct gemm *g, const struct vn_facts *f, int most)
{
    if (!strcmp(f->family, "cpu"))
        return "the device is a CPU, where one work-item makes a matrix";
    if (g->m > most || g->n > most)
        return "M or N is larger than its tile";
    return g->batches < f->units ? "the batches are fewer than the device's units" : NULL;
}

static const char *pays_tiny(const void *problem, const struct vn_facts *f)  { return pays_batch(problem, f, 16); }
static const char *pays_small(const void *problem, const struct vn_facts *f) { return pays_batch(problem, f, 32); }

/* ---- launches ------------------------------------------------------------------ */

void vn__gemm_output(struct vn_launch *l, const struct gemm *g)
{
    vn__arg_real(l, g->head.type, g->beta);
    vn__arg_tensor(l, &g->c);
    vn__arg_int(l, g->has_bias);
    vn__arg_tensor(l, g->has_bias ? &g->bias : &g->c);
    vn__arg_int(l, g->activation);
}

void vn__gemm_input(struct vn_launch *l, const struct gemm *g, const vn_tensor *t)
{
    vn__arg_buffer(l, g->k ? t->buffer : g->c.buffer);
    vn__arg_strides(l, t);
}

void vn__gemm_inputs(struct vn_launch *l, const struct gemm *g)
{
    vn__gemm_input(l, g, &g->a);
    vn__gemm_input(l, g, &g->b);
}

void vn__gemm_sizes(struct vn_launch *l, const struct gemm *g)
{
    vn__arg_int(l, g->m);
    vn__arg_int(l, g->n);
    vn__arg_int(l, g->k);
}

vn_status vn__run_tiled(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    enum { BLK_M, BLK_N, BLK_K, THR_M, THR_N };
    const struct gemm *g = problem;
    const int *p = it->p;
    struct vn_launch l;

    l.nargs = 0;
    l.groups[0] = VN_CEIL_DIV(g->m, p[BLK_M]) * VN_CEIL_DIV(g->n, p[BLK_N]);
    l.groups[1] = l.groups[2] = 1;
    l.items = p[BLK_M] / p[THR_M] * (p[BLK_N] / p[THR_N]);
    if (!vn__mul(&l.groups[0], l.groups[0], g->batches) || l.groups[0] > INT_MAX)
        return vn__fail(VN_UNSUPPORTED, "C has %lld tiles of %d x %d; a launch holds %d", (long long)l.groups[0],
                        p[BLK_M], p[BLK_N], INT_MAX);
    vn__gemm_sizes(&l, g);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__gemm_inputs(&l, g);
    vn__gemm_output(&l, g);
    return vn__launch(q, it, 0, &l);
}

/* ---- variants -------------------------------------------------------------------- */

/* One variant for each way that lines can run: across_a "1" where A's run across K. */
#define WGMMA(its_name, pay, layout, across_a, across_b)                                             \
    { .name = its_name, .fits = vn__fits_wgmma_##layout, .pays = vn__pays_wgmma##pay,                 \
      .run = vn__run_wgmma, .workspace = vn__workspace_wgmma, .trial = vn__trial_gemm,                \
      .texts = "cl/tile/epilogue.h cl/atoms/nvidia/nvidia.h cl/gemm/boxes.h cl/gemm/wgmma.cl", .entries = "gemm_wgmma",           \
      .params = "BLK_N STAGES WARPGROUPS BAND",                                               \
      .defines = "#define PARTS 0\n#define ACROSS_A " across_a "\n#define ACROSS_B " across_b "\n" }
#define WGMMAS(its_name, pay) \
    WGMMA(its_name, pay, nn, "0", "1"), WGMMA(its_name, pay, nt, "0", "0"), \
    WGMMA(its_name, pay, tn, "1", "1"), WGMMA(its_name, pay, tt, "1", "0")

#define WGMMA_DEEP(layout, across_a, across_b)                                                       \
    { .name = "gemm_wgmma_deep", .fits = vn__fits_wgmma_deep_##layout, .pays = vn__pays_wgmma_deep,   \
      .run = vn__run_wgmma_deep, .workspace = vn__workspace_wgmma_deep, .trial = vn__trial_gemm,      \
      .texts = "cl/tile/epilogue.h cl/atoms/nvidia/nvidia.h cl/gemm/boxes.h cl/gemm/wgmma.cl cl/gemm/splitk_sum.cl",                     \
      .entries = "gemm_wgmma gemm_sum", .params = "BLK_N STAGES WARPGROUPS BAND",             \
      .defines = "#define PARTS 1\n#define ACROSS_A " across_a "\n#define ACROSS_B " across_b "\n" }

/* Its operands laid apart before it (padded), or meanwhile (padding). */
#define LAID_APART(kind, ways, pads, header, across_a, across_b)                                      \
    { .name = "gemm_" #kind, .fits = vn__fits_##kind##_##ways, .pays = vn__pays_##kind,              \
      .run = vn__run_##kind, .workspace = vn__workspace_padded, .layout = vn__layout_padded, .trial = vn__trial_gemm, \
      .texts = "cl/tile/epilogue.h cl/atoms/nvidia/nvidia.h cl/gemm/boxes.h " header "cl/gemm/wgmma.cl cl/gemm/padded.cl",    \
      .entries = "gemm_wgmma pad", .params = "BLK_N STAGES WARPGROUPS BAND",                 \
      .defines = "#define PARTS 0\n#define PADS " pads "\n#define ODD_LINES 1\n"                    \
                 "#define ACROSS_A " across_a "\n#define ACROSS_B " across_b "\n" }
#define PADDED(ways, across_a, across_b)  LAID_APART(padded,  ways, "0", "",          across_a, across_b)
#define PADDING(ways, across_a, across_b) LAID_APART(padding, ways, "1", "cl/gemm/pad.h ", across_a, across_b)

#define TF32(lines, across_a)                                                                        \
    { .name = "gemm_tf32", .fits = vn__fits_tf32_##lines, .pays = vn__pays_tf32, .run = vn__run_tf32, \
      .workspace = vn__workspace_tf32, .layout = vn__layout_tf32, .trial = vn__trial_gemm,            \
      .texts = "cl/tile/epilogue.h cl/atoms/nvidia/nvidia.h cl/gemm/boxes.h cl/gemm/tf32.cl", .entries = "pack gemm_tf32", \
      .params = "BLK_N STAGES WARPGROUPS BAND",                                                        \
      .defines = "#define PARTS 0\n#define ACROSS_A " across_a "\n#define ACROSS_B 0\n" }

#define SPLIT(its_name, tile)                                                                        \
    { .name = its_name, .fits = vn__fits_split, .pays = vn__pays_split_##tile, .run = vn__run_split,  \
      .workspace = vn__workspace_split, .layout = vn__layout_split, .trial = vn__trial_gemm,          \
      .texts = "cl/tile/epilogue.h cl/atoms/nvidia/nvidia.h cl/gemm/bf16x3.h cl/gemm/bf16x3.cl",                        \
      .entries = "split gemm_split",                                                                  \
      .params = "BLK_N BLK_K STAGES WARPGROUPS" }

/* Blocks of 32 of K: 128 bytes, which the copy engine swizzles. */
#define SPLIT_ROWS(its_name, tile, lines, across_b)                                                  \
    { .name = its_name, .fits = vn__fits_split_rows_##lines, .pays = vn__pays_split_rows_##tile,      \
      .run = vn__run_split_rows, .workspace = vn__workspace_split_rows, .trial = vn__trial_gemm,      \
      .texts = "cl/tile/epilogue.h cl/atoms/nvidia/nvidia.h cl/gemm/bf16x3.h cl/gemm/bf16x3_rows.cl",                    \
      .entries = "split gemm_split_rows add_shares", .params = "BLK_M STAGES",                        \
      .defines = "#define BLK_K 32\n#define ACROSS_B " across_b "\n" }

#define MMA(layout, across_a, across_b)                                                              \
    { .name = "gemm_mma", .fits = vn__fits_mma_##layout, .pays = vn__pays_mma, .run = vn__run_mma,    \
      .trial = vn__trial_gemm,                                                                        \
      .texts = "cl/tile/epilogue.h cl/atoms/nvidia/nvidia.h cl/gemm/mma.cl", .entries = "gemm_mma",               \
      .params = "BLK_M BLK_N BLK_K WARP_M WARP_N STAGES MMA_M MMA_K",                                 \
      .defines = "#define ACROSS_A " across_a "\n#define ACROSS_B " across_b "\n" }

#define MATRIX(engine, whose, family) \
    { .name = "gemm_" #engine, .fits = vn__fits_##whose, .pays = vn__pays_matrix, .run = vn__run_matrix, \
      .trial = vn__trial_gemm, .texts = "cl/tile/epilogue.h cl/atoms/" family ".h cl/gemm/matrix.cl", \
      .entries = "gemm_matrix", .params = "BLK_M BLK_N BLK_K WAVE_M WAVE_N ENGINE LANES" }

#define SMALL(size) \
    { .name = "gemm_" #size, .fits = vn__fits_gemm, .pays = pays_##size, .run = vn__run_tiled, \
      .texts = "cl/tile/epilogue.h cl/tile/fma.h cl/gemm/tiled.cl", .entries = "gemm", \
      .params = "BLK_M BLK_N BLK_K THR_M THR_N" }

#define CPU_DIRECT(which) \
    { .name = "gemm_cpu_" #which, .fits = vn__fits_direct, .pays = vn__pays_##which, .run = vn__run_unpacked, \
      .texts = "cl/tile/epilogue.h cl/tile/cpu.h cl/gemm/cpu.cl", .entries = "gemm_cpu", \
      .params = "THR_M THR_V VEC BLK_M BLK_N BLK_K", \
      .defines = "#define PACKED 0\n#define PACKED_B 0\n#define DIRECT 1\n" }

/* And here, for each way that they are copied: by16_a "1" where A's go 16 bytes at a time. */
#define ASYNC(ways, runs, across_a, by16_a, across_b, by16_b)                                         \
    { .name = "gemm_async", .fits = vn__fits_async_##ways, .run = runs, .trial = vn__trial_gemm,      \
      .texts = "cl/tile/epilogue.h cl/atoms/nvidia/nvidia.h cl/gemm/pipelined.cl", .entries = "gemm_async",           \
      .params = "BLK_M BLK_N BLK_K THR_M THR_N STAGES",                                               \
      .defines = "#define ACROSS_A " across_a "\n#define BY16_A " by16_a "\n"                         \
                 "#define ACROSS_B " across_b "\n#define BY16_B " by16_b "\n" }

/* Tried from the top; the first that fits is used. */
const struct vn_variant vn__gemm_variants[] = {
    VN_CUBLAS_GEMM
    VN_CLBLAST_GEMM
    { .name = "gemm_cpu_packed", .fits = vn__fits_cpu_packed, .pays = vn__pays_cpu_packed, .run = vn__run_cpu_packed,
      .workspace = vn__workspace_cpu_packed, .layout = vn__layout_cpu_packed,
      .texts = "cl/tile/epilogue.h cl/tile/cpu.h cl/gemm/cpu.cl", .entries = "pack gemm_cpu pack_b",
      .params = "THR_M THR_V VEC BLK_M BLK_N BLK_K", .defines = "#define PACKED 1\n#define PACKED_B 1\n#define DIRECT 0\n" },
    { .name = "gemm_dot", .fits = vn__fits_dot, .pays = vn__pays_dot, .run = vn__run_dot,
      .texts = "cl/tile/epilogue.h cl/gemm/cpu_dot.cl", .entries = "gemm_dot",
      .params = "THR_M THR_N VEC BLK_M BLK_N BLK_K" },
    { .name = "gemm_strip", .fits = vn__fits_strip, .pays = vn__pays_strip, .run = vn__run_strip,
      .texts = "cl/tile/epilogue.h cl/tile/cpu.h cl/gemm/cpu_strip.cl", .entries = "gemm_strip",
      .params = "VEC STRIP_1 STRIP_2 STRIP_4", .defines = "#define THR_M 1\n#define THR_V 1\n" },
    { .name = "gemm_rank", .fits = vn__fits_rank, .pays = vn__pays_rank, .run = vn__run_rank,
      .workspace = vn__workspace_rank,
      .texts = "cl/tile/epilogue.h cl/tile/cpu.h cl/gemm/cpu_rank.cl", .entries = "gemm_rank sum",
      .params = "THR_K THR_V VEC BLK_M BLK_C BLK_K", .defines = "#define THR_M 1\n" },
    CPU_DIRECT(narrow), CPU_DIRECT(direct),
    { .name = "gemm_cpu", .fits = vn__fits_cpu, .pays = vn__pays_packed, .run = vn__run_packed,
      .workspace = vn__workspace_packed,
      .texts = "cl/tile/epilogue.h cl/tile/cpu.h cl/gemm/cpu.cl", .entries = "pack gemm_cpu",
      .params = "THR_M THR_V VEC BLK_M BLK_N BLK_K", .defines = "#define PACKED 1\n#define PACKED_B 0\n#define DIRECT 0\n" },
    { .name = "gemm_cpu_unpacked", .fits = vn__fits_cpu, .run = vn__run_unpacked,
      .texts = "cl/tile/epilogue.h cl/tile/cpu.h cl/gemm/cpu.cl", .entries = "gemm_cpu",
      .params = "THR_M THR_V VEC BLK_M BLK_N BLK_K", .defines = "#define PACKED 0\n#define PACKED_B 0\n#define DIRECT 0\n" },
    SMALL(tiny), SMALL(small),
    SPLIT_ROWS("gemm_split_rows_64", 64, along, "0"), SPLIT_ROWS("gemm_split_rows_64", 64, across, "1"),
    SPLIT_ROWS("gemm_split_rows", 128, along, "0"), SPLIT_ROWS("gemm_split_rows", 128, across, "1"),
    VN_SKINNY_LINES(_16, 8), VN_SKINNY_LINES(_16, 16), VN_SKINNY_LINES(_16, 32),
    VN_SKINNY_LINES(, 8), VN_SKINNY_LINES(, 16), VN_SKINNY_LINES(, 32),
    VN_SKINNY_MMA(k, K, 1, 8, 16), VN_SKINNY_MMA(k, K, 1, 16, 16), VN_SKINNY_MMA(k, K, 1, 24, 64),
    VN_SKINNY_MMA(k, K, 1, 32, 64), VN_SKINNY_MMA(k, K, 1, 40, 64), VN_SKINNY_MMA(k, K, 1, 48, 64),
    VN_SKINNY_MMA(k, K, 1, 64, 64),
    VN_SKINNY_MMA(n, N, 0, 8, 16), VN_SKINNY_MMA(n, N, 0, 16, 16), VN_SKINNY_MMA(n, N, 0, 24, 64),
    VN_SKINNY_MMA(n, N, 0, 32, 64), VN_SKINNY_MMA(n, N, 0, 40, 64), VN_SKINNY_MMA(n, N, 0, 48, 64),
    VN_SKINNY_MMA(n, N, 0, 64, 64),
    VN_SKINNY(k, K, 1, 1), VN_SKINNY(k, K, 1, 2), VN_SKINNY(k, K, 1, 4), VN_SKINNY(k, K, 1, 8),
    VN_SKINNY(k, K, 1, 16),
    VN_SKINNY(n, N, 0, 1), VN_SKINNY(n, N, 0, 2), VN_SKINNY(n, N, 0, 4), VN_SKINNY(n, N, 0, 8),
    VN_SKINNY(n, N, 0, 16),
    TF32(along, "0"), TF32(across, "1"),
    SPLIT("gemm_split", 192), SPLIT("gemm_split_128", 128), SPLIT("gemm_split_64", 64),
    { .name = "gemm_deep", .fits = vn__fits_deep, .pays = vn__pays_deep, .run = vn__run_deep,
      .workspace = vn__workspace_deep, .texts = "cl/tile/epilogue.h cl/gemm/splitk_sum.cl", .entries = "gemm_sum",
      .params = "ITEMS" },
    WGMMA_DEEP(nn, "0", "1"), WGMMA_DEEP(nt, "0", "0"), WGMMA_DEEP(tn, "1", "1"), WGMMA_DEEP(tt, "1", "0"),
    WGMMAS("gemm_wgmma_64x64", _64x64), WGMMAS("gemm_wgmma_64x128", _64x128), WGMMAS("gemm_wgmma_64x256", _64x256),
    WGMMAS("gemm_wgmma_128x192", _128x192), WGMMAS("gemm_wgmma", ),
    PADDING(nn, "0", "1"), PADDING(nt, "0", "0"), PADDING(tn, "1", "1"), PADDING(tt, "1", "0"),
    PADDED(nn, "0", "1"), PADDED(nt, "0", "0"), PADDED(tn, "1", "1"), PADDED(tt, "1", "0"),
    MMA(nn, "0", "1"), MMA(nt, "0", "0"), MMA(tn, "1", "1"), MMA(tt, "1", "0"),
    MATRIX(mfma, mfma, "amd"), MATRIX(wmma, wmma, "amd"), MATRIX(dpas, dpas, "intel"), MATRIX(dpas8, dpas, "intel"),
    ASYNC(vv, vn__run_tiled, "1", "1", "1", "1"), ASYNC(vk, vn__run_tiled, "1", "1", "0", "0"),
    ASYNC(kv, vn__run_async_transposed, "1", "1", "0", "0"), ASYNC(kk, vn__run_tiled, "0", "0", "0", "0"),
    ASYNC(xk, vn__run_tiled, "1", "0", "0", "0"), ASYNC(kx, vn__run_async_transposed, "1", "0", "0", "0"),
    ASYNC(xx, vn__run_tiled, "1", "0", "1", "0"),
    { .name = "gemm", .fits = vn__fits_gemm, .run = vn__run_tiled,
      .texts = "cl/tile/epilogue.h cl/tile/fma.h cl/gemm/tiled.cl", .entries = "gemm",
      .params = "BLK_M BLK_N BLK_K THR_M THR_N" },
    { .name = NULL }
};

/* ---- the call ---------------------------------------------------------------------- */

vn_status vn__gemm_batches(vn_tensor *t, const char *name, const vn_tensor *c)
{
    for (int i = 0; i < c->rank - 2; i++) {
        if (t->extent[i] == c->extent[i])
            continue;
        if (t->extent[i] != 1)
            return vn__fail(VN_INVALID, "%s has batch extent %lld along dimension %d; it needs 1, or that of C, %lld",
                            name, (long long)t->extent[i], i, (long long)c->extent[i]);
        t->extent[i] = c->extent[i];
        t->stride[i] = 0;
    }
    return VN_OK;
}

static vn_status check_shapes(const vn_tensor *a, const vn_tensor *b, const vn_tensor *c)
{
    const int row = c->rank - 2, col = c->rank - 1;

    if (a->rank != c->rank || b->rank != c->rank)
        return vn__fail(VN_INVALID, "A, B and C have ranks %d, %d and %d; they need one rank", a->rank, b->rank,
                        c->rank);
    if (a->type != c->type || b->type != c->type)
        return vn__fail(VN_INVALID, "A, B and C have types %s, %s and %s; they need one type", vn_type_name(a->type),
                        vn_type_name(b->type), vn_type_name(c->type));
    if (a->extent[row] != c->extent[row])
        return vn__fail(VN_INVALID, "A has %lld rows; it needs those of C, %lld", (long long)a->extent[row],
                        (long long)c->extent[row]);
    if (b->extent[col] != c->extent[col])
        return vn__fail(VN_INVALID, "B has %lld columns; it needs those of C, %lld", (long long)b->extent[col],
                        (long long)c->extent[col]);
    if (b->extent[row] != a->extent[col])
        return vn__fail(VN_INVALID, "B has %lld rows; it needs as many as A has columns, %lld",
                        (long long)b->extent[row], (long long)a->extent[col]);
    return VN_OK;
}

static vn_status check_bias(struct gemm *g, const vn_queue *q)
{
    vn_status s;

    if (!(g->has_bias = vn__given(&g->bias)))
        return VN_OK;
    if ((s = vn__check_tensor(&g->bias, "bias", q, 2, VN_RANK, 0)))
        return s;
    if (g->bias.type != g->c.type)
        return vn__fail(VN_INVALID, "bias has type %s; it needs that of C, %s", vn_type_name(g->bias.type),
                        vn_type_name(g->c.type));
    if ((s = vn__broadcast(&g->bias, "bias", &g->c, "C")))
        return s;
    return vn__check_overlap(&g->c, "C", &g->bias, "bias");
}

static vn_status check(struct gemm *g, const vn_queue *q)
{
    vn_status s;

    if ((s = vn__check_tensor(&g->a, "A", q, 2, VN_RANK, 0)) || (s = vn__check_tensor(&g->b, "B", q, 2, VN_RANK, 0)) ||
        (s = vn__check_tensor(&g->c, "C", q, 2, VN_RANK, 1)) || (s = check_shapes(&g->a, &g->b, &g->c)) ||
        (s = vn__gemm_batches(&g->a, "A", &g->c)) || (s = vn__gemm_batches(&g->b, "B", &g->c)) ||
        (s = check_bias(g, q)) || (s = vn__check_enum((int)g->math, VN_MATH_COUNT, "math")) ||
        (s = vn__check_enum((int)g->activation, VN_ACTIVATION_COUNT, "activation")) ||
        (s = vn__check_overlap(&g->c, "C", &g->a, "A")) || (s = vn__check_overlap(&g->c, "C", &g->b, "B")))
        return s;
    return VN_OK;
}

void vn__gemm_transpose(struct gemm *g)
{
    const vn_tensor a = g->a;
    const int64_t m = g->m;

    g->a = vn_transpose(g->b);
    g->b = vn_transpose(a);
    g->c = vn_transpose(g->c);
    if (g->has_bias)
        g->bias = vn_transpose(g->bias);
    g->m = g->n;
    g->n = m;
    g->pack = NULL;                             /* for what is B now is not what it has */
}

struct gemm vn__gemm_few_rows(const struct gemm *g)
{
    struct gemm t = *g;

    if (g->m > g->n)
        vn__gemm_transpose(&t);
    return t;
}

/* Rows of C that run along memory are what kernels store well: else C^T = B^T A^T.  A pack is of B. */
static void orient(struct gemm *g)
{
    if (g->pack)
        return;
    if (g->n > 1 && (vn__col(&g->c) == 1 || vn__row(&g->c) != 1 || g->m == 1))
        return;
    if (g->n > 1 || g->m > 1)
        vn__gemm_transpose(g);
}

/* Kernels count in elements, gemm_async in bytes: 32 bits hold both, or `wide` is said. */
static int is_wide(const vn_tensor *t)
{
    return vn__is_wide(t) || (t->buffer && t->buffer->bytes > UINT32_MAX);
}

/* What variants and tune rows go by. */
void vn__gemm_size_up(struct gemm *g)
{
    const double mnk = (double)g->m * (double)g->n * (double)g->k, batches = (double)g->batches;
    const double reads = (double)g->m * (double)g->k + (double)g->k * (double)g->n;
    const double c = (double)g->m * (double)g->n * (g->beta != 0 ? 2 : 1);
    const int64_t lines = g->pack || g->to_pack ? g->m + g->n : g->m;   /* in panels */

    /* A matrix a few tiles wide is no large one, however long: large tiles would be mostly edge. */
    g->head.bucket = mnk <= 0x1p24 ? VN_SMALL : mnk <= 0x1p30 || g->m < 512 || g->n < 512 ? VN_MEDIUM : VN_LARGE;
    g->head.wide = is_wide(&g->a) || is_wide(&g->b) || is_wide(&g->c) || (g->has_bias && is_wide(&g->bias)) ||
                   ((double)lines + 4096) * (double)g->k * batches > INT_MAX;
    g->head.flops = 2 * mnk * batches;
    g->head.bytes = (reads + c) * batches * (double)vn_type_bytes(g->head.type);
}

/* What a call says; first what tells one from another. */
struct call { vn_tensor b, a, c; double alpha, beta; vn_gemm_options o; };

/* The problem that it poses, checked. */
static vn_status pose(struct gemm *g, const vn_queue *q, const struct call *call)
{
    vn_status s;

    *g = (struct gemm){ .head = { .op = "gemm", .type = call->c.type }, .alpha = call->alpha, .beta = call->beta,
                        .a = call->a, .b = call->b, .c = call->c, .bias = call->o.bias,
                        .activation = call->o.activation, .math = call->o.math, .units = q->device->facts.units };
    if ((s = check(g, q)) || (call->o.packed_b && (s = vn__gemm_take(g, q, call->o.packed_b))))
        return s;
    g->m = g->c.extent[g->c.rank - 2];
    g->n = g->c.extent[g->c.rank - 1];
    g->k = g->alpha == 0 ? 0 : g->a.extent[g->a.rank - 1];
    g->batches = 1;
    for (int i = 0; i < g->c.rank - 2; i++)
        g->batches *= g->c.extent[i];           /* cannot wrap: C was checked */
    return VN_OK;
}

static vn_status gemm(vn_queue *q, const struct call *call)
{
    const struct vn_choice *it;
    struct gemm g;
    vn_status s;

    if ((s = vn__handle_check(q, VN_QUEUE, "queue")))
        return s;
    if (vn__call_again(&s, q, call, sizeof *call))
        return s;
    if ((s = pose(&g, q, call)))
        return s;
    if (g.m == 0 || g.n == 0 || g.batches == 0)
        return VN_OK;
    orient(&g);
    vn__gemm_size_up(&g);
    if ((s = vn__choose(&it, q, vn__gemm_variants, &g, sizeof g, call->o.variant)))
        return s;
    return vn__call(q, it, &g, call, sizeof *call);
}

vn_status vn_gemm(vn_queue *q, double alpha, vn_tensor a, vn_tensor b,
                               double beta,  vn_tensor c, const vn_gemm_options *o)
{
    static const vn_gemm_options usual;
    const struct call call = { .alpha = alpha, .a = a, .b = b, .beta = beta, .c = c, .o = o ? *o : usual };
    vn_status s;

    if ((s = vn__enter("vn_gemm")))
        return s;
    return vn__leave(gemm(q, &call));
}
