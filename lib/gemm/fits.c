/* SPDX-License-Identifier: Apache-2.0
 *
 * fits.c - what several variants ask before they say that they fit.
 */
#include <limits.h>

#include "gemm.h"

/* Past these an int in a kernel could overflow, also when rounded up to a tile. */
enum { MOST = INT_MAX - 4096, HALF = INT_MAX / 2 };
enum { VECTOR = 16 };             /* bytes: what TMA counts in */

const char *vn__fits_sizes(const struct gemm *g)
{
    return g->m > MOST || g->n > MOST || g->k > MOST || g->batches > MOST
         ? "M, N, K and the batches must stay below 2^31" : NULL;
}

const char *vn__fits_half_sizes(const struct gemm *g)
{
    return g->m > HALF || g->n > HALF || g->k > HALF || g->batches > HALF
         ? "M, N, K and the batches must stay below 2^30" : NULL;
}

const char *vn__fits_order(const struct gemm *g)
{
    return g->math == VN_MATH_BITWISE ? "it sums in another order than VN_MATH_BITWISE promises" : NULL;
}

int vn__is_mn_major_a(const struct gemm *g) { return vn__col(&g->a) != 1 && vn__row(&g->a) == 1; }
int vn__is_mn_major_b(const struct gemm *g) { return vn__row(&g->b) != 1 && vn__col(&g->b) == 1; }

int vn__fits_tma(const vn_tensor *t, int64_t along, int64_t across)
{
    const int64_t elements = VECTOR / (int64_t)vn_type_bytes(t->type);

    return along == 1 && across % elements == 0 && across > 0 && t->start % elements == 0 &&
           (t->rank == 2 || (t->rank == 3 && t->stride[0] % elements == 0));
}
