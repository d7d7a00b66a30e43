/* SPDX-License-Identifier: Apache-2.0
 *
 * variants.c - the variants of attention, a row each.
 */
#include "attention.h"
#include "backward.h"

/* ---- fits ----------------------------------------------------------------------- */

static void constants_of(int *c, const void *problem)
{
    const struct attention *a = problem;

    c[0] = vn__attention_head(a);
    c[1] = a->has_mask;
    c[2] = a->softcap > 0;
}

static const char *fits_forward(const void *problem, const struct vn_facts *f)
{
    (void)f;
    return ((const struct attention *)problem)->backward ? "it computes no gradients" : NULL;
}

static const char *fits_cpu(const void *problem, const struct vn_facts *f)
{
    const char *const why = vn__fits_vectors(problem, f);

    return why ? why : ((const struct attention *)problem)->page ? "keys and values are in pages"
         : fits_forward(problem, f);
}

static const char *fits_backward(const void *problem, const struct vn_facts *f)
{
    (void)f;
    return ((const struct attention *)problem)->backward ? NULL : "it computes gradients";
}

static const char *fits_backward_cpu(const void *problem, const struct vn_facts *f)
{
    const char *const why = vn__fits_vectors(problem, f);

    return why ? why : fits_backward(problem, f);
}

static void causal_of(int *c, const void *problem)
{
    c[0] = ((const struct attention *)problem)->causal;
}

static void head_of(int *c, const void *problem)
{
    c[0] = vn__attention_head(problem);
}

/* ---- the table ------------------------------------------------------------------ */

#define CONSTANTS .constants = "HEAD 64 128 192 256  HAS_MASK 0 1  HAS_SOFTCAP 0 1", \
                  .constants_of = constants_of

/* What kernels are composed of. */
#define TMA "cl/atoms/nvidia/math.h cl/tile/activation.h cl/tile/epilogue.h cl/atoms/nvidia/mbarrier.h "    \
            "cl/atoms/nvidia/warp.h cl/atoms/nvidia/tma.h cl/atoms/nvidia/mma.h cl/atoms/nvidia/wgmma.h "   \
            "cl/atoms/nvidia/memory.h cl/tile/pipeline.h cl/tile/tensor_map.h cl/tile/operand.h "           \
            "cl/tile/accumulator.h cl/tile/store_row.h cl/tile/roles.h cl/attention/attention.h "

#define BF16X3 "cl/tile/bf16_parts.h cl/gemm/bf16x3.h "

#define CPU "cl/tile/activation.h cl/tile/epilogue.h cl/tile/cpu.h cl/tile/row_cpu.h " \
            "cl/attention/attention.h cl/attention/cpu.h "

#define DECODE .plan = vn__plan_attention_decode,                                                   \
               .entries = "attention_decode attention_merge",                                       \
               .params = "ITEMS LANES_MOST KEYS STAGES UNROLLED",                                   \
               .costs = "ROWS_MOST GROUPS FIXED_NS",                                                \
               .constants = "HEAD 64 128 256  ROWS 1 4 8  GENERAL 0 1  PAGED 0 1",                  \
               .constants_of = vn__constants_attention_decode, .defines = "#define HAS_SOFTCAP 1\n"
#define SPLITS "cl/attention/attention.h cl/attention/merge.cl "

#define MATRIX(engine_) .plan = vn__plan_attention_matrix, .run = vn__run_attention_matrix,             \
                .trial = vn__trial_attention, .entries = "attention_matrix",                            \
                .params = "HEAD BLK_N BLK_K WAVES COLUMNS ENGINE LANES SPLIT_V Q_REGISTERS ROOM",       \
                .costs = "EFF TILE_NS", .constants = "FORM 1 2",                                        \
                .constants_of = vn__constants_attention_matrix, .engine = engine_,                      \
                .defines = "#define HAS_SOFTCAP 1\n#define CAUSAL causal\n"
#define MATRIX_TEXTS(maker) \
    "cl/tile/activation.h cl/tile/pair.h cl/atoms/" maker "/matrix.h cl/atoms/" maker "/chained.h "     \
    "cl/attention/attention.h cl/attention/matrix.h cl/attention/jobs.h cl/attention/matrix.cl"

const struct vn_variant vn__attention_variants[] = {
    { .name = "attention_decode_cpu", .fits = vn__fits_attention_decode_cpu,
      .plan = vn__plan_attention_decode_cpu, .run = vn__run_attention_decode_cpu,
      .texts = "cl/tile/activation.h cl/tile/lanes.h cl/tile/row_cpu.h " SPLITS "cl/attention/decode_cpu.cl",
      .entries = "attention_decode_cpu attention_merge", .params = "VEC BLK_N", .costs = "GROUPS",
      .constants = "HEAD 64 128 256  ROWS 1 4 8", .constants_of = vn__constants_attention_decode_cpu,
      .defines = "#define HAS_SOFTCAP 1\n#define ITEMS 1\n#define MERGED VEC\n" },
    { .name = "attention_cpu", .fits = fits_cpu, .plan = vn__plan_attention_cpu,
      .run = vn__run_attention_cpu,
      .texts = CPU "cl/attention/cpu.cl",
      .entries = "pack attention_cpu", .params = "THR_M THR_V VEC BLK_M BLK_N", CONSTANTS },
    { .name = "attention_wgmma", .fits = vn__fits_attention_wgmma, .plan = vn__plan_attention_wgmma,
      .run = vn__run_attention_wgmma, .trial = vn__trial_attention,
      .texts = TMA "cl/attention/online.h cl/attention/scores.h cl/attention/boxes.h cl/attention/jobs.h "
               "cl/attention/wgmma.h cl/attention/wgmma.cl",
      .entries = "attention_wgmma", .params = "HEAD BLK_N STAGES WARPGROUPS Q_BUFFERS Q_REGISTERS LAZY "
                                             "JOINED TENANTS",
      .costs = "BLOCK_NS TILE_NS MASK_NS", .constants = "CAUSAL 0 1  FORM 0 1 2",
      .constants_of = vn__constants_attention_wgmma, .engine = "HGMMA",
      .defines = "#define HAS_SOFTCAP 1\n#define PTX_MATH 1\n#define EXACT_WEIGHTS (FORM > 1)\n" },
    { .name = "attention_bf16x3", .fits = vn__fits_attention_bf16x3, .plan = vn__plan_attention_bf16x3,
      .run = vn__run_attention_bf16x3, .trial = vn__trial_attention,
      .texts = TMA BF16X3 "cl/tile/store_f32.h cl/attention/online.h cl/attention/bf16x3.h "
               "cl/attention/jobs.h cl/attention/bf16x3.cl",
      .entries = "attention_split attention_bf16x3", .params = "HEAD BLK_N STAGES WARPGROUPS Q_REGISTERS",
      .costs = "BLOCK_NS TILE_NS", .constants = "CAUSAL 0 1  FORM 0 1",
      .constants_of = vn__constants_attention_bf16x3, .engine = "HGMMA",
      .defines = "#define HAS_SOFTCAP 0\n#define PTX_MATH 1\n#define LAZY 0\n" },
    { .name = "attention_mma", .fits = vn__fits_attention_mma, .plan = vn__plan_attention_mma,
      .run = vn__run_attention_mma, .trial = vn__trial_attention,
      .texts = "cl/atoms/nvidia/math.h cl/tile/activation.h cl/tile/epilogue.h cl/atoms/nvidia/warp.h "
               "cl/atoms/nvidia/memory.h cl/atoms/nvidia/cp_async.h cl/atoms/nvidia/mma.h "
               "cl/tile/accumulator.h cl/tile/store_row.h cl/attention/mma.h cl/tile/fragment.h "
               "cl/tile/async_operand.h cl/attention/attention.h cl/attention/online.h "
               "cl/attention/scores.h cl/attention/jobs.h cl/attention/mma.cl",
      .entries = "attention_mma", .params = "HEAD BLK_M BLK_N WARP_M STAGES Q_REGISTERS LAZY",
      .costs = "EFF TILE_NS FIXED_NS", .constants = "CAUSAL 0 1  FORM 0 1 2  LAYOUT 0 1 2",
      .constants_of = vn__constants_attention_mma, .engine = "HMMA",
      .defines = "#define HAS_SOFTCAP 1\n#define PTX_MATH 1\n" },
    { .name = "attention_mfma", .fits = vn__fits_attention_mfma, MATRIX("MFMA"),
      .texts = MATRIX_TEXTS("amd") },
    { .name = "attention_wmma", .fits = vn__fits_attention_wmma, MATRIX("WMMA"),
      .texts = MATRIX_TEXTS("amd") },
    { .name = "attention_dpas", .fits = vn__fits_attention_dpas, MATRIX("DPAS"),
      .texts = MATRIX_TEXTS("intel") },
    { .name = "attention_decode_mma", .fits = vn__fits_attention_decode_mma,
      .plan = vn__plan_attention_decode_mma, .run = vn__run_attention_decode_warps,
      .trial = vn__trial_attention,
      .texts = "cl/atoms/nvidia/math.h cl/atoms/nvidia/warp.h cl/atoms/nvidia/memory.h "
               "cl/tile/activation.h cl/atoms/nvidia/lanes.h cl/atoms/nvidia/cp_async.h "
               "cl/atoms/nvidia/mma.h cl/tile/accumulator.h " SPLITS
               "cl/attention/online.h cl/attention/decode_mma.cl",
      .entries = "attention_decode_mma attention_merge", .params = "ITEMS KEYS STAGES LAZY",
      .costs = "GROUPS FIXED_NS", .constants = "HEAD 64 128 256  GENERAL 0 1  PAGED 0 1",
      .constants_of = vn__constants_attention_decode_mma, .engine = "HMMA",
      .defines = "#define HAS_SOFTCAP 1\n#define CAUSAL 1\n#define ROWS 16\n#define MERGED 4\n"
                 "#define PTX_MATH 1\n#define EXACT_WEIGHTS GENERAL\n" },
    { .name = "attention_decode_warps", .fits = vn__fits_attention_decode_warps,
      .run = vn__run_attention_decode_warps,
      .texts = "cl/atoms/nvidia/warp.h cl/atoms/nvidia/memory.h cl/tile/activation.h "
               "cl/atoms/nvidia/lanes.h cl/attention/decode.h cl/atoms/nvidia/cp_async.h "
               "cl/atoms/nvidia/stream.h " SPLITS "cl/attention/decode.cl", DECODE },
    { .name = "attention_decode", .fits = vn__fits_attention_decode, .run = vn__run_attention_decode,
      .texts = "cl/tile/activation.h cl/tile/lanes.h cl/attention/decode.h cl/tile/stream.h "
               SPLITS "cl/attention/decode.cl", DECODE },
    { .name = "attention_backward_wgmma", .fits = vn__fits_attention_backward_wgmma,
      .plan = vn__plan_attention_backward_wgmma, .run = vn__run_attention_backward_wgmma,
      .trial = vn__trial_attention_backward,
      .texts = TMA "cl/attention/online.h cl/attention/boxes.h cl/attention/backward.cl "
               "cl/attention/backward_wgmma.h cl/attention/backward_wgmma.cl",
      .entries = "attention_statistics attention_by_keys attention_by_queries",
      .params = "HEAD KEYS_N KEYS_STAGES QUERIES_N QUERIES_STAGES WARPGROUPS TURNS",
      .costs = "KEYS_NS QUERIES_NS TILE_NS", .constants = "CAUSAL 0 1",
      .constants_of = causal_of,
      .defines = "#define HAS_SOFTCAP 0\n#define PTX_MATH 1\n#define LAZY 0\n"
                 "#define ROLE_LEAST 1\n", .engine = "HGMMA" },
    { .name = "attention_backward_cpu", .fits = fits_backward_cpu, .plan = vn__plan_attention_backward_cpu,
      .run = vn__run_attention_backward_cpu, .texts = CPU "cl/attention/backward_cpu.cl",
      .entries = "attention_gradients gather", .params = "THR_M THR_V VEC BLK_M BLK_N",
      .constants = "HEAD 64 128 192 256", .constants_of = head_of, .defines = "#define HAS_SOFTCAP 1\n" },
    { .name = "attention", .fits = fits_forward, .run = vn__run_attention,
      .texts = "cl/tile/activation.h cl/tile/fma.h cl/attention/attention.h cl/attention/tiled.h "
               "cl/attention/tiled.cl",
      .entries = "attention", .params = "BLK_M BLK_N BLK_K THR_M THR_N", CONSTANTS },
    { .name = "attention", .fits = fits_backward, .run = vn__run_attention_backward,
      .texts = "cl/tile/activation.h cl/tile/fma.h cl/attention/attention.h cl/attention/tiled.h "
               "cl/attention/backward_tiled.cl",
      .entries = "attention_gradients",
      .params = "BLK_M BLK_N BLK_K THR_M THR_N",
      .constants = "HEAD 64 128 192 256", .constants_of = head_of },
    { .name = NULL }
};
