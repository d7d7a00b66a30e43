/* SPDX-License-Identifier: Apache-2.0
 *
 * variants.c - the variants of attention, a row each.
 */
#include "attention.h"

/* ---- fits ----------------------------------------------------------------------- */

static const char *fits_any(const void *problem, const struct vn_facts *f)
{
    (void)problem;
    (void)f;
    return NULL;
}

static void constants_of(int *c, const void *problem)
{
    const struct attention *a = problem;

    c[0] = vn__attention_head(a);
    c[1] = a->has_mask;
    c[2] = a->softcap > 0;
}

/* ---- the table ------------------------------------------------------------------ */

#define CONSTANTS .constants = "HEAD 64 128 192 256  HAS_MASK 0 1  HAS_SOFTCAP 0 1", \
                  .constants_of = constants_of

const struct vn_variant vn__attention_variants[] = {
    { .name = "attention_cpu", .fits = vn__fits_attention_cpu, .plan = vn__plan_attention_cpu,
      .run = vn__run_attention_cpu,
      .texts = "cl/tile/activation.h cl/tile/epilogue.h cl/tile/cpu.h cl/attention/attention.h "
               "cl/attention/cpu.cl",
      .entries = "pack attention_cpu", .params = "THR_M THR_V VEC BLK_M BLK_N", CONSTANTS },
    { .name = "attention", .fits = fits_any, .run = vn__run_attention,
      .texts = "cl/tile/activation.h cl/tile/fma.h cl/attention/attention.h cl/attention/tiled.cl",
      .entries = "attention", .params = "BLK_M BLK_N BLK_K THR_M THR_N", CONSTANTS },
    { .name = NULL }
};
