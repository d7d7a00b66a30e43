/* SPDX-License-Identifier: Apache-2.0
 *
 * pipelined.c - the variant gemm_async: f32 and f64 by multiply-adds, on NVIDIA's sm_80 and up.
 *
 * How an operand is copied to local memory: its lines run along K, or across it; and those across
 * 16 bytes at a time, where all of them begin and end at multiples of that.  Lines along K cost
 * more copies, and A's tile is the larger: where only A's lines run along K, C^T = B^T A^T.
 */
#include <stdlib.h>
#include <string.h>

#include "gemm.h"

enum way { ALONG, ACROSS, ACROSS_BY16 };

static int by_16(const vn_tensor *t, int64_t x, int64_t x_step, int64_t k_step)
{
    const int64_t numbers = 16 / (int64_t)vn_type_bytes(t->type);

    if (x_step != 1 || x % numbers || k_step % numbers || t->start % numbers)
        return 0;
    for (int i = 0; i < t->rank - 2; i++)
        if (t->stride[i] % numbers)
            return 0;
    return 1;
}

/* x is M of A, N of B. */
static int goes(const vn_tensor *t, int64_t x, int64_t x_step, int64_t k_step, enum way way)
{
    switch (way) {
    case ALONG:       return k_step == 1 && x_step > 1;
    case ACROSS:      return 1;
    case ACROSS_BY16: return by_16(t, x, x_step, k_step);
    }
    return 0;
}

/* Copies that do not wait came with sm_80: "sm_86", "sm_120". */
static const char *fits(const struct gemm *g, const struct vn_facts *f, enum way a, enum way b)
{
    if (strcmp(f->family, "nvidia") || strncmp(f->arch, "sm_", 3) || atoi(f->arch + 3) < 80)
        return "it needs an NVIDIA GPU of sm_80 or above, for asynchronous copies";
    if (g->head.type != VN_F32 && g->head.type != VN_F64)
        return "it needs f32 or f64, which are copied as they are";
    if (!goes(&g->a, g->m, vn__row(&g->a), vn__col(&g->a), a))
        return "A's lines need to run the other way, or to begin at multiples of 16 bytes";
    if (!goes(&g->b, g->n, vn__col(&g->b), vn__row(&g->b), b))
        return "B's lines need to run the other way, or to begin at multiples of 16 bytes";
    return vn__fits_gemm(g, f);
}

#define FITS(name, a, b) \
    const char *vn__fits_async_##name(const void *problem, const struct vn_facts *f) \
    {                                                                                \
        return fits(problem, f, a, b);                                               \
    }
FITS(vv, ACROSS_BY16, ACROSS_BY16)
FITS(vk, ACROSS_BY16, ALONG)
FITS(kv, ALONG,       ACROSS_BY16)
FITS(kk, ALONG,       ALONG)
FITS(xk, ACROSS,      ALONG)
FITS(kx, ALONG,       ACROSS)
FITS(xx, ACROSS,      ACROSS)

vn_status vn__run_async_transposed(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    struct gemm g = *(const struct gemm *)problem;

    vn__gemm_transpose(&g);
    return vn__run_tiled(q, it, &g);
}
