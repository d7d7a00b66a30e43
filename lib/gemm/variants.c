/* SPDX-License-Identifier: Apache-2.0
 *
 * variants.c - the variants of C := act(alpha A B + beta C + bias), in the order in which they are tried.
 */
#include <limits.h>
#include <string.h>

#include "gemm.h"
#include "vendors/vendor.h"

/* Past these an int in a kernel could overflow, also when rounded up to a tile. */
enum { MOST = INT_MAX - 4096 };

/* ---- fits, pays -------------------------------------------------------------- */

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

/* ---- the table ------------------------------------------------------------------- */

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
