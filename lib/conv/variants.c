/* SPDX-License-Identifier: Apache-2.0
 *
 * variants.c - the variants of convolution and its two gradients, a row each.
 */
#include <string.h>

#include "conv.h"
#include "shallow_wgmma.h"
#include "gemm/gemm.h"
#include "vendors/vendor.h"

/* ---- fits -------------------------------------------------------------------- */

static const char *fits_conv(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;

    (void)f;
    return vn__conv_rows(c) > VN_CONV_MOST || vn__conv_columns(c) > VN_CONV_MOST ||
           vn__conv_phases(c) > VN_CONV_MOST / (vn__conv_columns(c) / 8 + 1) ||
           vn__conv_depth(c) > VN_CONV_MOST || c->groups > VN_CONV_MOST
         ? "its rows, columns and sums must stay below 2^31" : NULL;
}

static const char *fits_any_cpu(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;
    const char *const why = vn__fits_vectors(problem, f);

    if (why)
        return why;
    if (f->local_bytes < 256 << 10)
        return "the device has less than 256 KiB of local memory";
    if (c->math == VN_MATH_BITWISE)
        return "bitwise mathematics needs the order of sums of conv";
    return fits_conv(problem, f);
}

static const char *fits_cpu(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;

    return c->direction == BACKWARD_FILTER ? "it is for outputs that are images" : fits_any_cpu(problem, f);
}

static const char *fits_depthwise(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;

    return c->w.extent[0] != c->groups || c->w.extent[1] != 1 || c->groups == 1
         ? "each channel needs a filter of its own" : fits_cpu(problem, f);
}

static const char *fits_filter(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;

    return c->direction != BACKWARD_FILTER ? "it is for the gradient of the filter"
                                           : fits_any_cpu(problem, f);
}

static void direction_of(int *c, const void *problem)
{
    c[0] = (int)((const struct conv *)problem)->direction;
}

/* ---- the table ---------------------------------------------------------------------------- */

#define EPILOGUE "cl/atoms/nvidia/math.h cl/tile/activation.h cl/tile/epilogue.h "
#define CPU EPILOGUE "cl/conv/conv.h cl/tile/half.h cl/tile/cpu.h cl/conv/cpu.cl"
#define SLAB EPILOGUE "cl/conv/conv.h cl/tile/half.h cl/tile/cpu.h cl/conv/slab.h "
#define SLAB_COSTS  "READ PACK COPY LIST SUM"
#define SLAB_CONSTANTS .constants = "DIRECTION 0 1  IN_PLACE 0 1", .constants_of = vn__constants_conv_slab
#define SLAB_PARAMS "THR_M THR_V VEC BLK_K BLK_S BLK_C"
#define TMA EPILOGUE "cl/atoms/nvidia/mbarrier.h cl/atoms/nvidia/warp.h cl/atoms/nvidia/tma.h "              \
            "cl/atoms/nvidia/wgmma.h cl/atoms/nvidia/memory.h cl/tile/pipeline.h cl/tile/tensor_map.h " \
            "cl/tile/operand.h cl/tile/accumulator.h cl/tile/store_row.h cl/tile/store_f32.h "          \
            "cl/tile/store.h cl/tile/scheduler.h cl/tile/roles.h "
#define BF16X3 "cl/tile/bf16_parts.h cl/gemm/bf16x3.h "
#define MMA EPILOGUE "cl/tile/scheduler.h cl/atoms/nvidia/cp_async.h cl/atoms/nvidia/mma.h "                 \
            "cl/atoms/nvidia/memory.h cl/conv/conv.h cl/conv/gather.h cl/tile/fragment.h "                   \
            "cl/tile/async_operand.h cl/tile/slices.h cl/tile/stages.h cl/tile/mainloop.h "
#define MMA_IMAGE MMA "cl/tile/slots.h cl/tile/split.h cl/tile/store_fragment.h cl/conv/mma.cl"
#define NO_SCALE "#undef SCALE\n#define SCALE 0\n"
#define CONV_TMA "cl/conv/sides.h " TMA "cl/tile/store_across.h cl/conv/conv.h cl/conv/im2col.h "            \
                 "cl/conv/output.h cl/gemm/wgmma.h cl/conv/wgmma.h "
#define WGMMA CONV_TMA STAGED "cl/conv/wgmma.cl"
#define STAGED "cl/atoms/nvidia/mma.h cl/tile/staged_residual.h cl/tile/store_through.h "
#define WGMMA_PARAMS "BLK_N STAGES WARPGROUPS RASTER TEAMS"
#define WGMMA_DEFINES "#define MN_MAJOR_A PIXELS_MAJOR\n#define MN_MAJOR_B DIRECTION\n"
#define NHWC_DEFINES WGMMA_DEFINES "#define ACROSS 0\n#define SOURCE_RANK 4\n#define TWINS 0\n"
#define MOST_OPEN  "#define MOST_OPEN " TEXT(VN_MOST_OPEN) "\n"
#define TEXT(x)    TEXT_(x)
#define TEXT_(x)   #x
#define FILTER_SUM "cl/conv/parts.h cl/conv/filter_sum.cl "
#define WGMMA_FILTER TMA "cl/conv/conv.h cl/conv/im2col.h cl/conv/filter_tiles.h cl/conv/repack.cl "         \
                         "cl/conv/wgmma_filter.h "
#define FILTER_ROWS .params = "SUB_M SUB_N WARPGROUPS_M WARPGROUPS_N BLK_K STAGES",                          \
                    .costs = "EFF L2 FIXED_NS TILE_NS MOVE", .trial = vn__trial_conv,                        \
                    .defines = "#define DIRECTION 2\n#define SCALE 0\n#define TAPS_TOGETHER 0\n"           \
                               "#define WARPGROUPS (WARPGROUPS_M * WARPGROUPS_N)\n"                          \
                               "#define BLK_M (SUB_M * WARPGROUPS_M)\n"                                      \
                               "#define BLK_N (SUB_N * WARPGROUPS_N)\n", .engine = "HGMMA"
#define DEPTHWISE_FILTER .constants = "TAPS 3  STRIDE 1 2", .constants_of = vn__constants_depthwise_filter,  \
                         .defines = "#define DIRECTION 2\n#define CHANNELS_LAST 1\n"
#define MATRIX(maker) .plan = vn__plan_conv_matrix, .run = vn__run_conv_matrix, .trial = vn__trial_conv,     \
    .texts = EPILOGUE "cl/tile/scheduler.h cl/atoms/" maker "/matrix.h cl/tile/store_matrix.h "              \
             "cl/tile/matrix.h cl/conv/conv.h cl/conv/gather.h cl/conv/matrix.h cl/conv/matrix.cl",          \
    .entries = "conv_matrix", .params = "BLK_M BLK_N BLK_K WAVE_M WAVE_N ENGINE LANES",                      \
    .costs = VN_TILES_COSTS, .constants = "DIRECTION 0 1  IMAGE_RANK 4 5  TAIL 0 1",                         \
    .constants_of = vn__constants_conv_matrix
#define PANELS "THR_M THR_V VEC BLK_M BLK_K"
#define DIRECTIONS(list) .constants = "DIRECTION " list, .constants_of = direction_of

const struct vn_variant vn__conv_variants[] = {
    VN_CUDNN_CONV
    { .name = "conv_depthwise", .fits = fits_depthwise, .run = vn__run_conv_depthwise,
      .texts = CPU, .entries = "conv_cpu", .params = PANELS, DIRECTIONS("0 1"),
      .defines = "#define DEPTHWISE 1\n" },
    { .name = "conv_gemm", .fits = vn__fits_conv_gemm, .plan = vn__plan_conv_gemm, .run = vn__run_conv_gemm,
      .texts = EPILOGUE "cl/gemm/splitk_sum.cl", .entries = "gemm_sum", .params = "ITEMS",
      .costs = "FEW_PIXELS FEW_PACKED MANY_PIXELS FILTERS", .engine = "" },
    { .name = "conv_shallow_wgmma_filter", .fits = vn__fits_conv_shallow_wgmma_filter,
      .plan = vn__plan_conv_shallow_wgmma_filter, .run = vn__run_conv_shallow_wgmma_filter,
      .trial = vn__trial_conv,
      .texts = TMA "cl/atoms/nvidia/cp_async.h cl/atoms/nvidia/mma.h cl/conv/conv.h cl/conv/im2col.h "
                   "cl/conv/shallow_units.h cl/conv/repack.cl cl/conv/shallow_wgmma_filter.cl "
                   "cl/conv/parts.h cl/conv/columns_sum.cl",
      .entries = "repack conv_shallow_wgmma_filter conv_columns_sum",
      .params = "COLUMNS STAGES STAGES_Y WARPGROUPS EACH",
      .costs = "EFF SHARE FIXED_NS STAGE_NS ELEMENTS_NS ROW_NS TILE_NS MOVE",
      .constants = "STRIDE 1 2  WORDS 0 3  BLK_R 64", .constants_of = vn__constants_conv_shallow_wgmma_filter,
      .defines = "#define DIRECTION 2\n#define IMAGE_RANK 4\n#define STRIP COLUMNS\n#define UNITS 8\n"
                 "#define TWINS ((BLK_R / 8 - 1) / STRIDE)\n" MOST_OPEN,
      .engine = "HGMMA" },
    { .name = "conv_window_filter", .fits = vn__fits_conv_window_filter, .plan = vn__plan_conv_window_filter,
      .run = vn__run_conv_window_filter, .trial = vn__trial_conv,
      .texts = TMA "cl/conv/conv.h cl/conv/im2col.h cl/conv/filter_tiles.h cl/conv/window_filter.cl "
                   FILTER_SUM,
      .entries = "conv_window_filter conv_filter_sum", .params = "PLACES WINDOW STAGES",
      .costs = "EFF FIXED_NS TILE_NS",
      .defines = "#define DIRECTION 2\n#define TAPS_TOGETHER 1\n#define IMAGE_RANK 4\n#define WARPGROUPS 3\n"
                 "#define BLK_M 64\n#define BLK_N 576\n", .engine = "HGMMA" },
    { .name = "conv_wgmma_filter_splitk", .fits = vn__fits_conv_wgmma_filter_splitk,
      .plan = vn__plan_conv_wgmma_filter_splitk, .run = vn__run_conv_wgmma_filter_splitk,
      .texts = WGMMA_FILTER "cl/conv/wgmma_filter_splitk.cl " FILTER_SUM "cl/conv/few.cl",
      .entries = "repack conv_wgmma_filter_splitk conv_filter_sum copy_rows", FILTER_ROWS,
      .constants = "IMAGE_RANK 4 5", .constants_of = vn__constants_conv_wgmma_filter },
    { .name = "conv_wgmma_filter", .fits = vn__fits_conv_wgmma_filter, .plan = vn__plan_conv_wgmma_filter,
      .run = vn__run_conv_wgmma_filter, .texts = WGMMA_FILTER "cl/conv/wgmma_filter.cl",
      .entries = "repack conv_wgmma_filter", FILTER_ROWS,
      .constants = "IMAGE_RANK 4 5  VECTORS 0 1", .constants_of = vn__constants_conv_wgmma_filter_tiles },
    { .name = "conv_spread", .fits = vn__fits_conv_spread, .plan = vn__plan_conv_spread,
      .run = vn__run_conv_spread, .texts = SLAB "cl/conv/run.h cl/conv/spread.cl", .entries = "conv_spread",
      .params = "VEC", .costs = "FEW_PIXELS FEW_PACKED",
      .defines = "#define DIRECTION 1\n#define PACKED 0\n"
                 "#define THR_M 4\n#define THR_V 1\n#define BLK_C 1024\n",
      .engine = "" },
    { .name = "conv_narrow", .fits = vn__fits_conv_narrow, .plan = vn__plan_conv_narrow,
      .run = vn__run_conv_narrow, .texts = SLAB "cl/conv/run.h cl/conv/narrow.cl",
      .entries = "conv_narrow", .params = "REGS VEC BLK_S BLK_C", .costs = "COPY LIST MOST",
      .constants = "DIRECTION 0 1  CHANNELS 1 2 3 4 5 6 7 8 9", .constants_of = vn__constants_conv_narrow,
      .defines = "#define PACKED 0\n#define THR_M 4\n#define THR_V 1\n" },
    { .name = "conv_slab_packed", .fits = fits_cpu, .plan = vn__plan_conv_slab_packed,
      .run = vn__run_conv_slab, .layout = vn__layout_conv_slab,
      .texts = SLAB "cl/conv/slab.cl", .entries = "conv_slab conv_slab_pack",
      .params = SLAB_PARAMS, .costs = SLAB_COSTS, SLAB_CONSTANTS, .defines = "#define PACKED 1\n" },
    { .name = "conv_slab", .fits = fits_cpu, .plan = vn__plan_conv_slab, .run = vn__run_conv_slab,
      .texts = SLAB "cl/conv/slab.cl", .entries = "conv_slab",
      .params = SLAB_PARAMS, .costs = SLAB_COSTS, SLAB_CONSTANTS, .defines = "#define PACKED 0\n" },
    { .name = "conv_gather_filter", .fits = vn__fits_conv_gather_filter, .plan = vn__plan_conv_gather_filter,
      .run = vn__run_conv_gather_filter, .texts = "cl/conv/conv.h cl/conv/gather_filter.cl",
      .entries = "conv_gather_filter", .params = "VEC", .costs = "FILTERS MANY_PIXELS",
      .defines = "#define DIRECTION 2\n", .engine = "" },
    { .name = "conv_slab_filter", .fits = fits_filter, .plan = vn__plan_conv_slab_filter,
      .run = vn__run_conv_slab_filter, .texts = SLAB "cl/conv/slab_filter.cl",
      .entries = "conv_slab_filter conv_slab_add", .params = SLAB_PARAMS,
      .costs = "PACK COPY SUM RUN ADD LAUNCH",
      .defines = "#define DIRECTION 2\n#define PACKED 0\n#define IN_PLACE 0\n" },
    { .name = "conv_cpu", .fits = fits_cpu, .run = vn__run_conv_cpu,
      .texts = CPU, .entries = "conv_cpu", .params = PANELS, DIRECTIONS("0 1"),
      .defines = "#define DEPTHWISE 0\n" },
    { .name = "conv_cpu", .fits = fits_filter, .plan = vn__plan_conv_cpu_filter,
      .run = vn__run_conv_cpu_filter,
      .texts = CPU, .entries = "conv_cpu conv_sum", .params = PANELS, DIRECTIONS("2"),
      .defines = "#define DEPTHWISE 0\n" },
    { .name = "conv_wgmma", .fits = vn__fits_conv_wgmma, .plan = vn__plan_conv_wgmma,
      .run = vn__run_conv_wgmma, .trial = vn__trial_conv,
      .texts = WGMMA,
      .entries = "conv_wgmma", .params = WGMMA_PARAMS, .costs = VN_TILES_COSTS " LOADS BACK_NS",
      .constants = "DIRECTION 0 1  SOURCE_RANK 3 4 5  BIAS_OF_CHANNELS 0 1  ACROSS 0 1  VECTORS 0 1",
      .constants_of = vn__constants_conv_wgmma, .engine = "HGMMA",
      .defines = "#define SPLITK 0\n#define IMAGE_RANK (SOURCE_RANK == 3 ? 4 : SOURCE_RANK)\n"
                 "#define TWINS 0\n" WGMMA_DEFINES },
    { .name = "conv_wgmma_splitk", .fits = vn__fits_conv_wgmma_joined,
      .plan = vn__plan_conv_wgmma_splitk, .run = vn__run_conv_wgmma_splitk, .trial = vn__trial_conv,
      .texts = WGMMA " cl/gemm/splitk_sum.cl",
      .entries = "conv_wgmma gemm_sum", .params = WGMMA_PARAMS, .costs = VN_TILES_COSTS " LOADS",
      .constants = "DIRECTION 0 1  IMAGE_RANK 4 5  BIAS_OF_CHANNELS 0 1",
      .constants_of = vn__constants_conv_wgmma_joined, .defines = NHWC_DEFINES "#define SPLITK 1\n",
      .engine = "HGMMA" },
    { .name = "conv_wgmma_few", .fits = vn__fits_conv_wgmma_few, .plan = vn__plan_conv_wgmma_few,
      .run = vn__run_conv_wgmma_few, .trial = vn__trial_conv, .texts = WGMMA " cl/conv/few.cl",
      .entries = "copy_rows conv_wgmma", .params = WGMMA_PARAMS,
      .costs = VN_TILES_COSTS " LOADS REPACK", .constants = "BIAS_OF_CHANNELS 0 1  ACROSS 0 1  TWINS 0 1",
      .constants_of = vn__constants_conv_wgmma_few,
      .defines = "#define DIRECTION 0\n#define IMAGE_RANK 4\n#define SPLITK 0\n#define SOURCE_RANK 4\n"
                 WGMMA_DEFINES, .engine = "HGMMA" },
    { .name = "conv_shallow_wgmma", .fits = vn__fits_conv_shallow_wgmma, .plan = vn__plan_conv_shallow_wgmma,
      .run = vn__run_conv_shallow_wgmma, .trial = vn__trial_conv,
      .texts = "cl/conv/sides.h " TMA "cl/atoms/nvidia/cp_async.h cl/tile/store_across.h cl/conv/conv.h "
               "cl/conv/output.h cl/gemm/wgmma.h cl/conv/shallow_units.h cl/conv/shallow_wgmma.cl",
      .entries = "conv_shallow_wgmma", .params = "BLK_N STAGES WARPGROUPS ACROSS_STRIP TAP_ROWS TENANTS",
      .costs = "EFF SHARE FIXED_NS FILTER_NS STAGE_NS ELEMENTS_NS ROW_NS",
      .constants = "STRIDE 1 2  UNITS 4  WORDS 0 3  BIAS_OF_CHANNELS 0 1  ACROSS 0 1",
      .constants_of = vn__constants_conv_shallow_wgmma,
      .defines = "#define DIRECTION 0\n#define SOURCE_RANK 4\n#define MN_MAJOR_A 0\n#define MN_MAJOR_B 0\n"
                 "#define STRIP (64 * ACROSS_STRIP)\n#define TWINS 0\n" MOST_OPEN,
      .engine = "HGMMA" },
    { .name = "conv_window", .fits = vn__fits_conv_window, .plan = vn__plan_conv_window,
      .run = vn__run_conv_window, .trial = vn__trial_conv,
      .texts = CONV_TMA "cl/conv/phases.h cl/conv/window.h cl/conv/window.cl", .entries = "conv_window",
      .params = "BLK_N STAGES WARPGROUPS TAPS ROOM", .costs = VN_TILES_COSTS " BACK_NS",
      .constants = "DIRECTION 0 1  IMAGE_RANK 4  BIAS_OF_CHANNELS 0 1  VECTORS 0 1",
      .constants_of = vn__constants_conv_window, .defines = NHWC_DEFINES "#define PHASES 0\n",
      .engine = "HGMMA" },
    { .name = "conv_window_blocks", .fits = vn__fits_conv_window_blocks,
      .plan = vn__plan_conv_window_blocks, .run = vn__run_conv_window, .trial = vn__trial_conv,
      .texts = CONV_TMA "cl/conv/window.h cl/conv/window_blocks.cl", .entries = "conv_window_blocks",
      .params = "BLK_N STAGES WARPGROUPS TAPS ROOM", .costs = VN_TILES_COSTS " BACK_NS",
      .constants = "DIRECTION 0 1  IMAGE_RANK 4  BIAS_OF_CHANNELS 0 1  VECTORS 0 1",
      .constants_of = vn__constants_conv_window, .defines = NHWC_DEFINES, .engine = "HGMMA" },
    { .name = "conv_window_phases", .fits = vn__fits_conv_window_phases,
      .plan = vn__plan_conv_window_phases, .run = vn__run_conv_window_phases, .trial = vn__trial_conv,
      .texts = CONV_TMA "cl/conv/phases.h cl/conv/window.h cl/conv/window.cl cl/conv/phases.cl",
      .entries = "copy_phases conv_window", .params = "BLK_N STAGES WARPGROUPS TAPS ROOM",
      .costs = VN_TILES_COSTS, .engine = "HGMMA",
      .defines = "#define DIRECTION 0\n#define IMAGE_RANK 4\n#define BIAS_OF_CHANNELS 0\n#define PHASES 1\n"
                 NHWC_DEFINES },
    { .name = "conv_tf32", .fits = vn__fits_conv_tf32, .plan = vn__plan_conv_tf32, .run = vn__run_conv_tf32,
      .layout = vn__layout_conv_tf32, .trial = vn__trial_conv,
      .texts = CONV_TMA "cl/conv/repack.cl cl/gemm/tf32_pack.cl " STAGED "cl/conv/wgmma.cl",
      .entries = "repack pack conv_wgmma", .params = WGMMA_PARAMS, .costs = VN_TILES_COSTS " LOADS MOVE",
      .constants = "DIRECTION 0 1  SOURCE_RANK 4 5  BIAS_OF_CHANNELS 0 1  ACROSS 0 1  VECTORS 0 1",
      .constants_of = vn__constants_conv_tf32,
      .defines = "#define SPLITK 0\n#define IMAGE_RANK SOURCE_RANK\n#define TWINS 0\n#define MN_MAJOR_A 0\n"
                 "#define MN_MAJOR_B 0\n", .engine = "HGMMA", .engine_f32 = "HGMMA tf32" },
    { .name = "conv_mfma", .fits = vn__fits_conv_mfma, MATRIX("amd"), .engine = "MFMA" },
    { .name = "conv_wmma", .fits = vn__fits_conv_wmma, MATRIX("amd"), .engine = "WMMA" },
    { .name = "conv_dpas", .fits = vn__fits_conv_dpas, MATRIX("intel"), .engine = "DPAS" },
    { .name = "conv_bf16x3", .fits = vn__fits_conv_bf16x3, .plan = vn__plan_conv_bf16x3,
      .run = vn__run_conv_bf16x3, .layout = vn__layout_conv_bf16x3, .trial = vn__trial_conv,
      .texts = TMA "cl/conv/conv.h cl/conv/im2col.h " BF16X3 "cl/gemm/bf16x3_rows.h "
      "cl/conv/repack.cl cl/conv/bf16x3.cl",
      .entries = "split repack conv_bf16x3 add_units", .params = "BLK_M STAGES WARPGROUPS",
      .costs = "EFF TILE_NS FIXED_NS STORE_NS MOVE ODD_C",
      .constants = "IMAGE_RANK 4 5  MN_MAJOR_B 0 1  FILLS 0 1",
      .constants_of = vn__constants_conv_bf16x3,
      .defines = "#define BLK_K 32\n",
      .engine = "HGMMA", .engine_f32 = "HGMMA bf16 x 3" },
    { .name = "conv_mma", .fits = vn__fits_conv_mma, .plan = vn__plan_conv_mma, .run = vn__run_conv_mma,
      .trial = vn__trial_conv,
      .texts = MMA_IMAGE, .entries = "conv_mma",
      .params = VN_MMA_PARAMS, .costs = VN_TILES_COSTS " LOADS UNGROUPED",
      .constants = "DIRECTION 0 1  IMAGE_RANK 4 5", .constants_of = vn__constants_conv_mma,
      .defines = NO_SCALE "#define MN_MAJOR_A 0\n#define MN_MAJOR_B DIRECTION\n#define SPLITK 0\n",
      .engine = "HMMA" },
    { .name = "conv_mma_splitk", .fits = vn__fits_conv_mma_splitk, .plan = vn__plan_conv_mma_splitk,
      .run = vn__run_conv_mma_splitk, .trial = vn__trial_conv,
      .texts = MMA_IMAGE, .entries = "conv_mma",
      .params = VN_MMA_PARAMS " PARTS_K", .costs = VN_SPLITS_COST_NAMES " ODD_C BACK",
      .constants = "DIRECTION 0 1  IMAGE_RANK 4 5", .constants_of = vn__constants_conv_mma,
      .defines = NO_SCALE "#define MN_MAJOR_A 0\n#define MN_MAJOR_B DIRECTION\n#define SPLITK 1\n",
      .engine = "HMMA" },
    { .name = "conv_mma_filter", .fits = vn__fits_conv_mma_filter, .plan = vn__plan_conv_mma_filter,
      .run = vn__run_conv_mma_filter, .trial = vn__trial_conv,
      .texts = MMA "cl/conv/mma_filter.cl cl/conv/parts.h cl/conv/columns_sum.cl",
      .entries = "conv_mma_filter conv_columns_sum",
      .params = VN_MMA_PARAMS, .costs = "EFF L2 FIXED_NS TILE_NS UNGROUPED", .constants = "IMAGE_RANK 4 5",
      .constants_of = vn__constants_conv_mma_filter,
      .defines = NO_SCALE "#define DIRECTION 2\n#define MN_MAJOR_A 1\n#define MN_MAJOR_B 1\n",
      .engine = "HMMA" },
    { .name = "conv_shallow_mma", .fits = vn__fits_conv_shallow_mma, .plan = vn__plan_conv_shallow_mma,
      .run = vn__run_conv_shallow_mma, .trial = vn__trial_conv,
      .texts = "cl/conv/sides.h " EPILOGUE "cl/atoms/nvidia/mma.h cl/conv/conv.h cl/conv/shallow.h "
               "cl/conv/shallow_mma.cl",
      .entries = "conv_shallow_mma", .params = "BLK_K THR_H LANES EXTRA WINDOW",
      .costs = "FIXED_NS FILTER_NS TILE_NS STEP_NS COPY_NS",
      .constants = "STRIDE 1 2  STEPS 2  BIAS_OF_CHANNELS 0 1",
      .constants_of = vn__constants_conv_shallow_mma,
      .defines = "#define DIRECTION 0\n#define CHANNELS_LAST 1\n#define ITEMS 256\n"
                 "#define WINDOW_T T_BITS\n#define LOAD_WINDOW LOAD_RAW\n",
      .engine = "HMMA" },
    { .name = "conv_shallow", .fits = vn__fits_conv_shallow, .plan = vn__plan_conv_shallow,
      .run = vn__run_conv_shallow, .texts = EPILOGUE "cl/conv/conv.h cl/conv/shallow.h cl/conv/shallow.cl",
      .entries = "conv_shallow", .params = "BLK_K THR_K THR_H LANES EXTRA FILTERS WINDOW",
      .costs = "EFF FIXED_NS TILE_NS", .constants = "STRIDE 1 2  CHANNELS_LAST 0 1",
      .constants_of = vn__constants_conv_shallow,
      .defines = "#define DIRECTION 0\n#define ITEMS (LANES * (BLK_K / THR_K))\n"
                 "#define WINDOW_T R\n#define LOAD_WINDOW LOAD\n" },
    { .name = "conv_planes", .fits = vn__fits_conv_planes, .plan = vn__plan_conv_planes,
      .run = vn__run_conv_planes,
      .texts = EPILOGUE "cl/conv/conv.h cl/conv/strip.h cl/conv/adjacent.h cl/conv/planes.cl",
      .entries = "conv_planes",
      .params = "THR_H COLS EXACT ITEMS ROOM", .costs = "FIXED_NS SHARE STRIDED SPREAD",
      .constants = "DIRECTION 0 1  TAPS 3  STRIDE 1 2", .constants_of = vn__constants_conv_planes },
    { .name = "conv_strips_window", .fits = vn__fits_conv_strips_window,
      .plan = vn__plan_conv_strips_window, .run = vn__run_conv_strips_window, .trial = vn__trial_conv,
      .texts = EPILOGUE "cl/atoms/nvidia/mbarrier.h cl/atoms/nvidia/warp.h cl/atoms/nvidia/tma.h "
               "cl/atoms/nvidia/memory.h cl/tile/pipeline.h cl/tile/tensor_map.h cl/conv/conv.h "
               "cl/conv/im2col.h cl/conv/strip.h cl/conv/strip_words.h cl/conv/strip_store.h "
               "cl/conv/strips_window.cl",
      .entries = "conv_strips_window",
      .params = "THR_H COLS STRIPS_H STRIPS_W LANES STAGES TENANTS",
      .costs = "FIXED_NS SHARE TILE_NS STRIDED_NS SPREAD_NS",
      .constants = "DIRECTION 0 1  TAPS 3 5  STRIDE 1 2",
      .constants_of = vn__constants_conv_strips_window,
      .defines = "#define EXACT 0\n#define IMAGE_RANK 4\n" },
    { .name = "conv_strips", .fits = vn__fits_conv_strips, .plan = vn__plan_conv_strips,
      .run = vn__run_conv_strips,
      .texts = EPILOGUE "cl/conv/conv.h cl/conv/strip.h cl/conv/strip_rows.h cl/conv/strip_store.h "
               "cl/conv/adjacent.h cl/conv/strips.cl",
      .entries = "conv_strips",
      .params = "THR_H COLS VEC EXACT ITEMS",
      .costs = "FIXED_NS SHARE STRIDED SPREAD PLANAR PLANAR_STRIDED PLANAR_SPREAD",
      .constants = "DIRECTION 0 1  CHANNELS_LAST 0 1  TAPS 3 5  STRIDE 1 2",
      .constants_of = vn__constants_conv_strips },
    { .name = "conv_planes_filter", .fits = vn__fits_conv_planes_filter, .plan = vn__plan_conv_planes_filter,
      .run = vn__run_conv_planes_filter,
      .texts = EPILOGUE "cl/conv/conv.h cl/conv/strip.h cl/conv/adjacent.h cl/conv/planes_filter.cl "
               "cl/conv/parts_sum.cl",
      .entries = "conv_planes_filter conv_parts_sum", .params = "THR_H COLS EXACT ITEMS ROOM",
      .costs = "FIXED_NS SHARE STRIDED SPREAD ROUNDS", DEPTHWISE_FILTER },
    { .name = "conv_strips_filter", .fits = vn__fits_conv_strips_filter, .plan = vn__plan_conv_strips_filter,
      .run = vn__run_conv_strips_filter,
      .texts = EPILOGUE "cl/conv/conv.h cl/conv/strip.h cl/conv/strip_rows.h cl/conv/strips_filter.cl "
               "cl/conv/parts_sum.cl",
      .entries = "conv_strips_filter conv_parts_sum", .params = "THR_H COLS VEC LANES EXACT ITEMS",
      .costs = "FIXED_NS SHARE STRIDED SPREAD ROUNDS", DEPTHWISE_FILTER },
    { .name = "conv_taps", .fits = vn__fits_conv_taps, .plan = vn__plan_conv_taps, .run = vn__run_conv_taps,
      .texts = EPILOGUE "cl/conv/conv.h cl/conv/taps.cl", .entries = "add_taps", .params = "ITEMS",
      .costs = "MOVE", .defines = "#define DIRECTION 1\n", .engine = "" },
    { .name = "conv_tf32_filter", .fits = vn__fits_conv_tf32_filter, .plan = vn__plan_conv_tf32_filter,
      .run = vn__run_conv_tf32_filter, .trial = vn__trial_conv,
      .texts = TMA "cl/conv/conv.h cl/conv/im2col.h cl/gemm/tf32_pack.cl cl/gemm/tf32.h "
                   "cl/conv/filter_tiles.h cl/conv/repack.cl cl/conv/tf32_filter.cl " FILTER_SUM,
      .entries = "repack pack conv_tf32_filter conv_filter_sum",
      .params = "BLK_M STAGES TRANSPOSE",
      .costs = "EFF L2 FIXED_NS TILE_NS MOVE",
      .constants = "IMAGE_RANK 4 5", .constants_of = vn__constants_conv_wgmma_filter,
      .defines = "#define DIRECTION 2\n#define TAPS_TOGETHER 0\n#define BLK_K 32\n#define WARPGROUPS 2\n"
                 "#define ROLE_WORKS TRANSPOSE\n#define BLK_N 128\n#define COLUMNS BLK_M\n"
                 "#define STAGE ((BLK_M + BLK_N) * 128)\n",
      .engine = "HGMMA", .engine_f32 = "HGMMA tf32" },
    { .name = "conv_bf16x3_filter", .fits = vn__fits_conv_bf16x3_filter, .plan = vn__plan_conv_bf16x3_filter,
      .run = vn__run_conv_bf16x3_filter, .trial = vn__trial_conv,
      .texts = TMA "cl/conv/conv.h cl/conv/im2col.h " BF16X3 "cl/gemm/bf16x3_rows.h "
                   "cl/conv/filter_tiles.h cl/conv/repack.cl cl/conv/bf16x3_filter.cl " FILTER_SUM,
      .entries = "repack split conv_bf16x3_filter conv_filter_sum", .params = "BLK_M STAGES",
      .costs = "EFF FIXED_NS TILE_NS MOVE",
      .constants = "IMAGE_RANK 4 5", .constants_of = vn__constants_conv_bf16x3_filter,
      .defines = "#define DIRECTION 2\n#define TAPS_TOGETHER 0\n#define BLK_K 32\n#define WARPGROUPS 2\n"
                 "#define MN_MAJOR_B 1\n",
      .engine = "HGMMA", .engine_f32 = "HGMMA bf16 x 3" },
    { .name = "conv_repack", .fits = vn__fits_conv_repack, .plan = vn__plan_conv_repack,
      .run = vn__run_conv_repack, .texts = "cl/conv/repack.cl cl/conv/unpack.cl", .entries = "repack unpack",
      .params = "ITEMS", .costs = "MOVE", .engine = "" },
    { .name = "conv", .fits = fits_conv, .run = vn__run_conv_tiled,
      .texts = EPILOGUE "cl/conv/conv.h cl/tile/fma.h cl/conv/tiled.cl", .entries = "conv",
      .params = "BLK_M BLK_N BLK_K THR_M THR_N", DIRECTIONS("0 1 2") },
    { .name = NULL }
};
