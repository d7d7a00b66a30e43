/* SPDX-License-Identifier: Apache-2.0
 *
 * engines.c - the kernels of cl/peak_*.cl, a row for each kind of matrix engine and its types.
 */
#include <fnmatch.h>
#include <stdio.h>
#include "engines.h"

enum { F32 = 1u << VN_F32, F64 = 1u << VN_F64, HALVES = 1u << VN_F16 | 1u << VN_BF16 };

#define OPERAND "cl/peak_operand.h "
#define WGMMA   .texts = OPERAND "cl/atoms/nvidia/warp.h cl/atoms/nvidia/wgmma.h cl/peak_wgmma.cl", \
                .entries = "matrix_peak", .params = "", .engine = "HGMMA", .engine_f32 = "HGMMA tf32"
#define MMA     .texts = OPERAND "cl/atoms/nvidia/mma.h cl/peak_mma.cl",                            \
                .entries = "matrix_peak", .params = "MMA_M", .engine = "HMMA", .engine_f32 = "HMMA tf32"
#define AMD     .texts = OPERAND "cl/atoms/amd/matrix.h cl/peak_matrix.cl",                         \
                .entries = "matrix_peak", .params = "BLK_M BLK_N BLK_K ENGINE LANES"
#define INTEL   .texts = OPERAND "cl/atoms/intel/matrix.h cl/peak_matrix.cl",                       \
                .entries = "matrix_peak", .params = "BLK_M BLK_N BLK_K ENGINE LANES"

#define SM_80   "nvidia/sm_8? nvidia/sm_9? nvidia/sm_1??"
#define CDNA    "amd/gfx90a amd/gfx94?"

/* flops: work-group's waves x products of a round x 2 M N K */
const struct matrix_engine matrix_engines[] = {
    { { .name = "peak_wgmma", WGMMA }, "nvidia/sm_90", HALVES, { 0 }, 256, 2. * 4 * 2 * 64 * 256 * 16 },
    { { .name = "peak_wgmma", WGMMA }, "nvidia/sm_90", F32,    { 0 }, 256, 2. * 4 * 2 * 64 * 256 * 8 },
    { { .name = "peak_mma", MMA }, SM_80,          HALVES, { 8 },  256, 8. * 8 * 2 * 16 * 8 * 16 },
    { { .name = "peak_mma", MMA }, SM_80,          F32,    { 8 },  256, 8. * 8 * 2 * 16 * 8 * 8 },
    { { .name = "peak_mma", MMA }, "nvidia/sm_90", F64,    { 16 }, 256, 8. * 8 * 2 * 16 * 8 * 16 },
    { { .name = "peak_mma", MMA }, SM_80,          F64,    { 8 },  256, 8. * 8 * 2 * 16 * 8 * 4 },
    { { .name = "peak_mfma", AMD, .engine = "MFMA" }, "amd/gfx908", HALVES, { 64, 64, 16, 908, 64 },
      256, 4. * 4 * 2 * 32 * 32 * 16 },
    { { .name = "peak_mfma", AMD, .engine = "MFMA" }, "amd/gfx908", F32, { 64, 64, 8, 908, 64 },
      256, 4. * 4 * 2 * 32 * 32 * 8 },
    { { .name = "peak_mfma", AMD, .engine = "MFMA" }, CDNA, HALVES, { 64, 64, 16, 90, 64 },
      256, 4. * 4 * 2 * 32 * 32 * 16 },
    { { .name = "peak_mfma", AMD, .engine = "MFMA" }, CDNA, F32, { 64, 64, 8, 90, 64 },
      256, 4. * 4 * 2 * 32 * 32 * 8 },
    { { .name = "peak_mfma", AMD, .engine = "MFMA" }, CDNA, F64, { 64, 64, 8, 90, 64 },
      256, 4. * 4 * 2 * 16 * 16 * 8 },
    { { .name = "peak_wmma", AMD, .engine = "WMMA" }, "amd/gfx11*", HALVES, { 64, 64, 16, 11, 32 },
      128, 4. * 4 * 2 * 16 * 16 * 16 },
    { { .name = "peak_wmma", AMD, .engine = "WMMA" }, "amd/gfx120*", HALVES, { 64, 64, 16, 12, 32 },
      128, 4. * 4 * 2 * 16 * 16 * 16 },
    { { .name = "peak_dpas", INTEL, .engine = "DPAS" }, "intel/*", HALVES, { 64, 64, 16, 16, 16 },
      64, 4. * 4 * 2 * 8 * 16 * 16 },
    { { .name = "peak_dpas", INTEL, .engine = "DPAS" }, "intel/*", HALVES, { 64, 64, 16, 8, 8 },
      32, 4. * 4 * 2 * 8 * 8 * 16 },
    { { .name = NULL }, NULL, 0, { 0 }, 0, 0 }
};

const struct matrix_engine *matrix_engine_for(const struct matrix_engine *it, const struct vn_facts *f,
                                              vn_type type)
{
    char device[64], pattern[64];

    snprintf(device, sizeof device, "%s/%s", f->family, f->arch);
    for (; it->devices; it++)
        for (int i = 0; it->types >> type & 1 && vn__word_at(pattern, it->devices, i); i++)
            if (!fnmatch(pattern, device, 0))
                return it;
    return NULL;
}
