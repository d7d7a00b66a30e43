/* SPDX-License-Identifier: Apache-2.0
 *
 * variants.c - the variants of softmax and its gradient, a row each.
 */
#include "softmax.h"
#include "vendors/vendor.h"

/* ---- fits ----------------------------------------------------------------------- */

/* FORM and WHOLE of cl/softmax/. */
static void form_of(int *c, const void *problem)
{
    const struct softmax *s = problem;

    c[0] = s->backward ? 2 : s->has_w;
    c[1] = s->whole;
}

/* CPUs ask at run time whether there is a mask. */
static void direction_of(int *c, const void *problem)
{
    c[0] = ((const struct softmax *)problem)->backward ? 2 : 0;
}

/* ---- plans ---------------------------------------------------------------------- */

static const char *plan_strided(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                const struct vn_site *site)
{
    const struct softmax *s = problem;

    (void)out;
    (void)row;
    (void)site;
    return s->across ? NULL : "its rows are contiguous, or their elements are";
}

/* ---- the table ------------------------------------------------------------------ */

#define ROW_TEXTS "cl/tile/row.h cl/tile/exponentials.h cl/softmax/softmax.h " \
                  "cl/softmax/rows.h "
#define GPU_TEXTS "cl/tile/activation.h cl/tile/lanes.h " ROW_TEXTS "cl/softmax/rows.cl"
#define PTX_TEXTS "cl/atoms/nvidia/warp.h cl/atoms/nvidia/memory.h cl/tile/activation.h " \
                  "cl/atoms/nvidia/lanes.h " ROW_TEXTS
#define CPU_TEXTS "cl/tile/activation.h cl/tile/lanes.h cl/tile/row_cpu.h cl/softmax/softmax.h " \
                  "cl/softmax/cpu.cl"
#define HELD      .params = "ITEMS ROW_ITEMS VALUES", .costs = "LONGER"
#define FORM      .constants = "FORM 0 1 2", .constants_of = form_of
#define DIRECTION .constants = "FORM 0 2", .constants_of = direction_of
#define ALIGNED   .constants = "FORM 0 1 2  WHOLE 0 1", .constants_of = form_of

const struct vn_variant vn__softmax_variants[] = {
    VN_CUDNN_SOFTMAX
    { .name = "softmax_cpu_split", .fits = vn__fits_vectors, .plan = vn__plan_softmax_cpu_split,
      .run = vn__run_softmax_cpu_split,
      .texts = CPU_TEXTS, .entries = "partial finish", .params = "VEC BLOCK", DIRECTION,
      .defines = "#define SPLIT 1\n" },
    { .name = "softmax_cpu", .fits = vn__fits_vectors, .run = vn__run_softmax_cpu,
      .texts = CPU_TEXTS, .entries = "softmax", .params = "VEC BLOCK", DIRECTION,
      .defines = "#define SPLIT 0\n" },
    { .name = "softmax_team", .fits = vn__fits_warps, .plan = vn__plan_softmax_team,
      .run = vn__run_softmax_team,
      .texts = PTX_TEXTS "cl/tile/held.h cl/tile/team.h cl/softmax/team.cl",
      .entries = "softmax", VN_TEAM, ALIGNED,
      .defines = "#define ACROSS 0\n#define ROW_ITEMS ITEMS\n" },
    { .name = "softmax_warps", .fits = vn__fits_warps, .plan = vn__plan_softmax_rows, .run = vn__run_softmax,
      .texts = PTX_TEXTS "cl/softmax/rows.cl", .entries = "softmax", HELD, ALIGNED,
      .defines = "#define SPLIT 0\n#define ACROSS 0\n" },
    { .name = "softmax_split", .fits = vn__fits_any, .plan = vn__plan_softmax_split,
      .run = vn__run_softmax_split,
      .texts = GPU_TEXTS, .entries = "partial finish", .params = "ITEMS VALUES", ALIGNED,
      .defines = "#define SPLIT 1\n#define ACROSS 0\n#define ROW_ITEMS ITEMS\n" },
    { .name = "softmax_strided", .fits = vn__fits_any, .plan = plan_strided, .run = vn__run_softmax,
      .texts = GPU_TEXTS, .entries = "softmax", .params = "ITEMS ROW_ITEMS VALUES", FORM,
      .defines = "#define SPLIT 0\n#define ACROSS 1\n#define WHOLE 0\n" },
    { .name = "softmax", .fits = vn__fits_any, .plan = vn__plan_softmax_rows, .run = vn__run_softmax,
      .texts = GPU_TEXTS, .entries = "softmax", HELD, ALIGNED,
      .defines = "#define SPLIT 0\n#define ACROSS 0\n" },
    { .name = NULL }
};
