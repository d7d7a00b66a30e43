/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_dot.c - the variant gemm_cpu_dot: CPUs, few rows or columns, both operands K-major.
 */
#include "gemm.h"

enum { THR_M, THR_N, VEC, BLK_M, BLK_N };       /* its parameters */

const char *vn__fits_cpu_dot(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;
    const char *why = vn__fits_order(g);

    if (why)
        return why;
    if ((vn__col(&g->a) != 1 || vn__row(&g->b) != 1) && g->k > 1)
        return "A and B must be K-major";
    return vn__fits_cpu(problem, f);
}

const char *vn__plan_cpu_dot(struct vn_plan *out, const void *problem, const struct vn_row *row,
                             const struct vn_site *site)
{
    const struct gemm g = vn__gemm_few_rows(problem);
    const int *p = row->p;
    struct vn_cpu_work w = vn__cpu_tiles(&g, p[THR_M], p[THR_N], site);

    w.b *= (double)VN_CEIL_DIV(g.m, p[BLK_M]);
    w.odd_a = w.odd_b = 0;
    out->seconds = vn__cpu_seconds(&g, &w, row, site);
    return NULL;
}

vn_status vn__run_cpu_dot(vn_queue *q, const struct vn_choice *it, const void *problem,
                          const struct vn_plan *plan)
{
    const struct gemm g = vn__gemm_few_rows(problem);
    const int *p = it->p;
    const int64_t wanted = 8 * (int64_t)q->device->facts.units;     /* work-groups */
    const int64_t even = VN_CEIL_DIV(VN_CEIL_DIV(g.n, p[THR_N]), wanted) * p[THR_N];
    const int64_t cols = even < p[BLK_N] ? even : p[BLK_N];
    struct vn_launch l = { .nargs = 0 };

    (void)plan;
    l.groups[0] = VN_CEIL_DIV(g.n, cols);
    l.groups[1] = VN_CEIL_DIV(g.m, p[BLK_M]);
    l.groups[2] = g.batches;
    l.items = 1;
    vn__gemm_sizes(&l, &g);
    vn__arg_int(&l, cols);
    vn__arg_extents(&l, &g.c);
    vn__arg_real(&l, g.head.type, g.alpha);
    vn__gemm_inputs(&l, &g);
    vn__gemm_output(&l, &g);
    return vn__launch(q, it, 0, &l);
}
