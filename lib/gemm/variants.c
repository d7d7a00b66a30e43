/* SPDX-License-Identifier: Apache-2.0
 *
 * variants.c - the variants of C := act(alpha A B + beta C + bias), a row each.
 *
 * Of the plans that their tune rows make for a problem the cheapest is used; where nobody has a model of a
 * plan, the order of this table counts.
 */
#include "gemm.h"
#include "vendors/vendor.h"

#define HOOKS(which)  .fits = vn__fits_##which, .plan = vn__plan_##which, .run = vn__run_##which
#define FEW_ROWS_TURN .turns = vn__gemm_turns_few_rows
#define CONSTANTS(which, list)  .constants = list, .constants_of = vn__constants_##which

/* What kernels are composed of. */
#define EPILOGUE "cl/atoms/nvidia/math.h cl/tile/activation.h cl/tile/epilogue.h "
#define CPU      EPILOGUE "cl/tile/cpu.h "
#define TILES    EPILOGUE "cl/tile/scheduler.h "
#define TMA      EPILOGUE "cl/atoms/nvidia/mbarrier.h cl/atoms/nvidia/warp.h cl/atoms/nvidia/tma.h "         \
                 "cl/atoms/nvidia/wgmma.h cl/atoms/nvidia/memory.h cl/tile/pipeline.h cl/tile/tensor_map.h " \
                 "cl/tile/operand.h cl/tile/accumulator.h cl/tile/store_row.h cl/tile/store_f32.h "          \
                 "cl/tile/store.h cl/tile/scheduler.h cl/tile/roles.h "
#define WGMMA_TEXTS TMA "cl/atoms/nvidia/mma.h cl/gemm/wgmma.h cl/tile/staged_residual.h "      \
                 "cl/tile/store_through.h cl/gemm/wgmma.cl"
#define BF16X3   "cl/tile/bf16_parts.h cl/gemm/bf16x3.h "
#define MMA      "cl/atoms/nvidia/cp_async.h cl/atoms/nvidia/mma.h cl/atoms/nvidia/memory.h "
#define SPLIT_STORE "cl/tile/slots.h cl/tile/split.h cl/tile/store_fragment.h "
#define SKINNY   EPILOGUE MMA "cl/atoms/nvidia/warp.h cl/tile/bf16_parts.h cl/tile/slots.h cl/gemm/skinny.h "

#define MAJORS   "MN_MAJOR_A 0 1  MN_MAJOR_B 0 1"
#define WGMMA    "BLK_N STAGES WARPGROUPS RASTER"
#define TILED    "BLK_M BLK_N BLK_K THR_M THR_N"
#define MATRIX   "BLK_M BLK_N BLK_K WAVE_M WAVE_N ENGINE LANES"
#define PANELS   "THR_M THR_V VEC BLK_M BLK_N BLK_K"
#define FEW_ROWS "EFF MEMORY FIXED_NS GROUP_NS ODD_C C STEP_NS LEVEL_NS"
#define BY_MAJOR " ODD_A EFF_N MEMORY_N ODD_A_N"

const struct vn_variant vn__gemm_variants[] = {
    VN_CUBLAS_GEMM
    VN_CLBLAST_GEMM

    /* CPUs */
    { .name = "gemm_cpu_packed", HOOKS(cpu_packed), .layout = vn__layout_cpu_packed,
      .texts = CPU "cl/gemm/cpu.cl", .entries = "pack gemm_cpu pack_b", .params = PANELS,
      .costs = VN_CPU_COSTS,
      .defines = "#define PACKED 1\n#define PACKED_B 1\n#define DIRECT 0\n" },
    { .name = "gemm_cpu_dot", .was = "gemm_dot", HOOKS(cpu_dot), FEW_ROWS_TURN,
      .texts = EPILOGUE "cl/gemm/cpu_dot.cl", .entries = "gemm_cpu_dot",
      .params = "THR_M THR_N VEC BLK_M BLK_N BLK_K", .costs = VN_CPU_COSTS },
    { .name = "gemm_cpu_strip", .was = "gemm_strip", HOOKS(cpu_strip),
      .texts = CPU "cl/gemm/cpu_strip.cl", .entries = "gemm_cpu_strip",
      .params = "VEC STRIP_1 STRIP_2 STRIP_4", .costs = VN_CPU_COSTS,
      .defines = "#define THR_M 1\n#define THR_V 1\n" },
    { .name = "gemm_cpu_rank", .was = "gemm_rank", HOOKS(cpu_rank),
      .texts = CPU "cl/gemm/cpu_rank.cl", .entries = "gemm_cpu_rank sum",
      .params = "THR_K THR_V VEC BLK_M BLK_C BLK_K", .costs = VN_CPU_COSTS,
      .defines = "#define THR_M 1\n" },
    { .name = "gemm_cpu_narrow", HOOKS(cpu_narrow),
      .texts = CPU "cl/gemm/cpu.cl", .entries = "gemm_cpu", .params = PANELS, .costs = VN_CPU_COSTS,
      .defines = "#define PACKED 0\n#define PACKED_B 0\n#define DIRECT 1\n" },
    { .name = "gemm_cpu_direct", HOOKS(cpu_direct),
      .texts = CPU "cl/gemm/cpu.cl", .entries = "gemm_cpu", .params = PANELS, .costs = VN_CPU_COSTS,
      .defines = "#define PACKED 0\n#define PACKED_B 0\n#define DIRECT 1\n" },
    { .name = "gemm_cpu", HOOKS(cpu_panels),
      .texts = CPU "cl/gemm/cpu.cl", .entries = "pack gemm_cpu", .params = PANELS, .costs = VN_CPU_COSTS,
      .defines = "#define PACKED 1\n#define PACKED_B 0\n#define DIRECT 0\n" },
    { .name = "gemm_cpu_unpacked", HOOKS(cpu_unpacked),
      .texts = CPU "cl/gemm/cpu.cl", .entries = "gemm_cpu", .params = PANELS, .costs = VN_CPU_COSTS,
      .defines = "#define PACKED 0\n#define PACKED_B 0\n#define DIRECT 0\n" },

    /* GPUs: few rows */
    { .name = "gemm_bf16x3_rows", .was = "gemm_split_rows gemm_split_rows_64", HOOKS(bf16x3_rows),
      FEW_ROWS_TURN, .trial = vn__trial_gemm,
      .texts = TMA BF16X3 "cl/gemm/bf16x3_rows.h cl/gemm/bf16x3_rows.cl",
      .entries = "split gemm_bf16x3_rows add_units", .params = "BLK_M STAGES",
      .costs = "EFF TILE_NS FIXED_NS ODD_C C",
      CONSTANTS(bf16x3_rows, "MN_MAJOR_B 0 1"), .defines = "#define BLK_K 32\n#define WARPGROUPS 2\n",
      .engine = "HGMMA", .engine_f32 = "HGMMA bf16 x 3" },
    { .name = "gemm_skinny_rows", .was = "gemm_skinny_lines gemm_skinny_lines_16", HOOKS(skinny_rows),
      FEW_ROWS_TURN, .trial = vn__trial_gemm, .texts = SKINNY "cl/gemm/skinny_rows.cl",
      .entries = "gemm_skinny_rows", .params = "ITEMS GROUPS ROOM FILL SPLIT",
      .costs = FEW_ROWS " TURNED_NS",
      CONSTANTS(skinny_rows, "THR_M 8 16 32"), .engine = "HMMA" },
    { .name = "gemm_skinny_mma", HOOKS(skinny_mma),
      FEW_ROWS_TURN, .trial = vn__trial_gemm, .texts = SKINNY "cl/gemm/skinny_mma.cl",
      .entries = "gemm_skinny_mma", .params = "ITEMS TILES_16 TILES_64 ROOM DEPTH_K DEPTH_N FILL SPLIT",
      .costs = FEW_ROWS BY_MAJOR, CONSTANTS(skinny_mma, "K_MAJOR 0 1  THR_M 8 16 24 32 40 48 64"),
      .defines = "#define DEPTH (K_MAJOR ? DEPTH_K : DEPTH_N)\n"
                 "#define TILES (THR_M > 16 ? TILES_64 : TILES_16)\n",
      .engine = "HMMA", .engine_f32 = "HMMA bf16 x 3" },
    { .name = "gemm_skinny", HOOKS(skinny), FEW_ROWS_TURN,
      .texts = EPILOGUE "cl/gemm/skinny.h cl/gemm/splitk_sum.cl cl/gemm/skinny.cl",
      .entries = "gemm_skinny gemm_sum", .params = "ITEMS_K ITEMS_N THR_N DEPTH_K DEPTH_N FILL LANES SPLIT",
      .costs = FEW_ROWS BY_MAJOR " SLICE_NS", CONSTANTS(skinny, "K_MAJOR 0 1  THR_M 1 2 4 8 16"),
      .defines = "#define ITEMS (K_MAJOR ? ITEMS_K : ITEMS_N)\n"
                 "#define DEPTH (K_MAJOR ? DEPTH_K : DEPTH_N)\n" },

    /* NVIDIA's matrix engines */
    { .name = "gemm_tf32", HOOKS(tf32), .turns = vn__turns_tf32, .layout = vn__layout_tf32,
      .trial = vn__trial_gemm,
      .texts = TMA "cl/gemm/wgmma.h cl/gemm/tf32_pack.cl cl/gemm/tf32.h cl/gemm/tf32.cl",
      .entries = "pack gemm_tf32", .params = WGMMA,
      .costs = VN_TMA_COSTS " MOVE HALF_C",
      CONSTANTS(tf32, "MN_MAJOR_A 0 1  VECTORS 0 1"),
      .defines = "#define MN_MAJOR_B 0\n#define UNALIGNED_C 0\n#define COLUMNS BLK_N\n",
      .engine = "HGMMA", .engine_f32 = "HGMMA tf32" },
    { .name = "gemm_bf16x3", .was = "gemm_split gemm_split_128 gemm_split_64", HOOKS(bf16x3),
      .layout = vn__layout_bf16x3, .trial = vn__trial_gemm, .texts = TMA BF16X3 "cl/gemm/bf16x3.cl",
      .entries = "split gemm_bf16x3", .params = "BLK_N BLK_K STAGES WARPGROUPS",
      .costs = VN_TILES_COSTS " MOVE", .engine = "HGMMA", .engine_f32 = "HGMMA bf16 x 3" },
    { .name = "gemm_splitk", .was = "gemm_deep", HOOKS(splitk),
      .texts = EPILOGUE "cl/gemm/splitk_sum.cl", .entries = "gemm_sum", .params = "ITEMS", .engine = "",
      .costs = "PARTS SUMS NEXT" },
    { .name = "gemm_wgmma_splitk", .was = "gemm_wgmma_deep", HOOKS(wgmma_splitk), .trial = vn__trial_gemm,
      .texts = TMA "cl/gemm/wgmma.h cl/gemm/wgmma_splitk.cl cl/gemm/splitk_sum.cl",
      .entries = "gemm_wgmma_splitk gemm_sum", .params = WGMMA, .costs = VN_TMA_COSTS,
      CONSTANTS(wgmma, MAJORS), .engine = "HGMMA" },
    { .name = "gemm_wgmma", .was = "gemm_wgmma_64x64 gemm_wgmma_64x128 gemm_wgmma_64x256 gemm_wgmma_128x192",
      HOOKS(wgmma), .trial = vn__trial_gemm, .texts = WGMMA_TEXTS,
      .entries = "gemm_wgmma", .params = WGMMA " TEAMS", .costs = VN_TMA_COSTS " ACT_NS HALF_C",
      CONSTANTS(wgmma_tiles, MAJORS "  VECTORS 0 1"),
      .defines = "#define UNALIGNED_C 0\n", .engine = "HGMMA" },
    { .name = "gemm_wgmma_repack", .was = "gemm_padding", HOOKS(wgmma_repack), .layout = vn__layout_padded,
      .trial = vn__trial_gemm,
      .texts = TMA "cl/gemm/wgmma.h cl/atoms/nvidia/cp_async.h cl/gemm/repack.h "
                   "cl/gemm/wgmma_repack.cl cl/gemm/padded.cl",
      .entries = "gemm_wgmma_repack pad", .params = WGMMA, .costs = VN_TMA_COSTS " REPACK",
      CONSTANTS(padded, MAJORS), .defines = "#define UNALIGNED_C 1\n", .engine = "HGMMA" },
    { .name = "gemm_padded", HOOKS(padded), .layout = vn__layout_padded,
      .trial = vn__trial_gemm, .texts = WGMMA_TEXTS " cl/gemm/padded.cl",
      .entries = "gemm_wgmma pad", .params = WGMMA, .costs = VN_TMA_COSTS " REPACK",
      CONSTANTS(padded, MAJORS), .defines = "#define UNALIGNED_C 1\n#define TEAMS 1\n", .engine = "HGMMA" },
    { .name = "gemm_batched", HOOKS(batched), .trial = vn__trial_gemm,
      .texts = TILES MMA "cl/atoms/nvidia/warp.h cl/tile/accumulator.h cl/tile/store_row.h "
                         "cl/tile/store_f32.h cl/tile/store.h cl/tile/fragment.h cl/tile/async_operand.h "
                         "cl/tile/slices.h cl/gemm/batched.h cl/gemm/batched.cl",
      .entries = "gemm_batched", .params = "BLK_M BLK_N BLK_K WARP_M WARP_N STAGES GROUPS MMA_M MMA_K",
      .costs = VN_TILES_COSTS " C HALF_C", CONSTANTS(batched, MAJORS), .engine = "HMMA" },
    { .name = "gemm_batched_fma", HOOKS(batched_fma), .trial = vn__trial_gemm,
      .texts = TILES "cl/atoms/nvidia/cp_async.h cl/atoms/nvidia/memory.h cl/tile/store_blocks.h "
                     "cl/tile/fma_operand.h cl/tile/async_operand.h cl/tile/slices.h "
                     "cl/gemm/batched.h cl/gemm/batched_fma.cl",
      .entries = "gemm_batched_fma", .params = TILED " STAGES GROUPS PARTS_K", .costs = VN_TILES_COSTS " C",
      CONSTANTS(batched, MAJORS),
      .defines = "#define ITEMS (BLK_M / THR_M * (BLK_N / THR_N) * PARTS_K)\n"
                 "#define ITEM ((unsigned int)LOCAL_ID())\n#define VEC (16 / T_BYTES)\n" },
    { .name = "gemm_mma", HOOKS(mma), .trial = vn__trial_gemm,
      .texts = TILES MMA "cl/tile/fragment.h cl/tile/async_operand.h cl/tile/slices.h cl/tile/stages.h "
                         SPLIT_STORE "cl/gemm/mma.cl",
      .entries = "gemm_mma", .params = VN_MMA_PARAMS, .costs = VN_TILES_COSTS " ODD EDGE",
      CONSTANTS(mma, MAJORS), .defines = "#define SPLITK 0\n", .engine = "HMMA", .engine_f32 = "HMMA tf32" },
    { .name = "gemm_mma_splitk", HOOKS(mma_splitk), .trial = vn__trial_gemm,
      .texts = TILES MMA "cl/tile/bf16_parts.h cl/tile/fragment.h cl/tile/word_operand.h " SPLIT_STORE
               "cl/gemm/mma_splitk.cl",
      .entries = "gemm_mma_splitk", .params = VN_MMA_PARAMS " PARTS_K",
      .costs = VN_SPLITS_COST_NAMES " ODD_C", CONSTANTS(mma, MAJORS),
      .defines = "#define SPLITK 1\n#define STAGE (WORD_BYTES(BLK_M, MN_MAJOR_A) + "
                 "WORD_BYTES(BLK_N, MN_MAJOR_B))\n",
      .engine = "HMMA", .engine_f32 = "HMMA bf16 x 3" },

    /* AMD's and Intel's */
    { .name = "gemm_mfma", HOOKS(matrix_mfma), .trial = vn__trial_gemm,
      .texts = TILES "cl/atoms/amd/matrix.h cl/tile/store_matrix.h cl/tile/matrix.h "
               "cl/gemm/matrix.cl",
      .entries = "gemm_matrix", .params = MATRIX, .costs = VN_TILES_COSTS, .engine = "MFMA" },
    { .name = "gemm_wmma", HOOKS(matrix_wmma), .trial = vn__trial_gemm,
      .texts = TILES "cl/atoms/amd/matrix.h cl/tile/store_matrix.h cl/tile/matrix.h "
               "cl/gemm/matrix.cl",
      .entries = "gemm_matrix", .params = MATRIX, .costs = VN_TILES_COSTS, .engine = "WMMA" },
    { .name = "gemm_dpas", .was = "gemm_dpas8", HOOKS(matrix_dpas), .trial = vn__trial_gemm,
      .texts = TILES "cl/atoms/intel/matrix.h cl/tile/store_matrix.h cl/tile/matrix.h "
               "cl/gemm/matrix.cl",
      .entries = "gemm_matrix", .params = MATRIX, .costs = VN_TILES_COSTS, .engine = "DPAS" },

    /* multiply-adds */
    { .name = "gemm_pipelined", .was = "gemm_async", HOOKS(pipelined), .turns = vn__turns_pipelined,
      .trial = vn__trial_gemm,
      .texts = TILES "cl/atoms/nvidia/warp.h cl/atoms/nvidia/cp_async.h cl/tile/store_blocks.h "
                     "cl/tile/store_blocks_through.h cl/gemm/pipelined.cl",
      .entries = "gemm_pipelined", .params = TILED " STAGES", .costs = VN_TILES_COSTS " ODD FEW ODD_CT",
      CONSTANTS(pipelined, "WAY_A 0 1 2  WAY_B 0 1 2"),
      .defines = "#define MN_MAJOR_A (WAY_A > 0)\n#define BY16_A (WAY_A > 1)\n"
                 "#define MN_MAJOR_B (WAY_B > 0)\n#define BY16_B (WAY_B > 1)\n" },
    { .name = "gemm", .was = "gemm_tiny gemm_small", HOOKS(tiled),
      .texts = TILES "cl/tile/fma.h cl/gemm/tiled.cl", .entries = "gemm", .params = TILED,
      .costs = VN_TILES_COSTS " MN_A MN_B" },
    { .name = NULL }
};
