/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_strip.c - the variant gemm_cpu_strip: CPUs, few rows, of a B that is in the caches.
 */
#include <limits.h>

#include "gemm.h"

enum { VEC, STRIP_1, STRIP_2, STRIP_4, ROWS_MOST = 4 };

/* Elements of B: the most that stay in the caches; and those that are worth another core. */
enum { CACHED_B = 1 << 21, LEAST_B = 1 << 17 };

const char *vn__fits_cpu_strip(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    if (g->batches != 1)
        return "it takes no batches";
    return vn__fits_cpu_rank(problem, f);
}

/* How many cores are worth waking. */
static int64_t cores_for(const struct gemm *g, int units)
{
    const int64_t worth = VN_CEIL_DIV(g->n * g->k, LEAST_B);

    return worth < 1 ? 1 : worth < units ? worth : units;
}

const char *vn__plan_cpu_strip(struct vn_plan *out, const void *problem, const struct vn_row *row,
                               const struct vn_site *site)
{
    const struct gemm *g = problem;
    struct vn_cpu_work w = vn__cpu_tiles(g, 1, row->p[VEC], site);

    w.b *= (double)VN_CEIL_DIV(g->m, ROWS_MOST);
    w.cores = (double)cores_for(g, site->facts->units);
    out->seconds = vn__cpu_seconds(g, &w, row, site);
    return g->n * g->k >= CACHED_B ? "B has 2097152 elements or more: then it is read in longer stretches"
                                   : NULL;
}

/* Vectors of a strip; 1 where C is narrower than the strip. */
static int64_t vectors_for(const struct gemm *g, const int *p)
{
    const int vectors = p[g->m == 1 ? STRIP_1 : g->m == 2 ? STRIP_2 : STRIP_4];

    return g->n < vectors * p[VEC] ? 1 : vectors;
}

static int64_t groups_for(const struct gemm *g, int64_t strips, int units)
{
    const int64_t cores = cores_for(g, units);

    return strips < cores ? strips : cores;
}

vn_status vn__run_cpu_strip(vn_queue *q, const struct vn_choice *it, const void *problem,
                            const struct vn_plan *plan)
{
    const struct gemm *g = problem;
    const int64_t vectors = vectors_for(g, it->p);
    const int64_t row_strips = VN_CEIL_DIV(g->n, vectors * it->p[VEC]);
    int64_t strips;
    vn_buffer *counters;
    struct vn_launch l = { .nargs = 0 };
    vn_status s;

    (void)plan;
    if (!vn__mul(&strips, row_strips, VN_CEIL_DIV(g->m, ROWS_MOST)) || strips > INT_MAX / 2)
        return vn__fail(VN_UNSUPPORTED, "C has more than %d strips", INT_MAX / 2);
    if ((s = vn__counters(&counters, q)))
        return s;
    l.groups[0] = groups_for(g, strips, q->device->facts.units);
    l.groups[1] = l.groups[2] = 1;
    l.items = 1;
    vn__arg_view(&l, (int64_t[8]){ g->m, g->n, g->k, l.groups[0], vectors, VN_COUNTERS });
    vn__arg_view(&l, (int64_t[8]){ g->a.start, vn__row(&g->a), vn__col(&g->a), g->b.start, vn__row(&g->b) });
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__arg_buffer(&l, g->k ? g->a.buffer : g->c.buffer);
    vn__arg_buffer(&l, g->k ? g->b.buffer : g->c.buffer);
    vn__arg_buffer(&l, counters);
    vn__gemm_output(&l, g);
    return vn__launch(q, it, 0, &l);
}
