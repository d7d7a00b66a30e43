/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu.c - softmax on CPUs, through vectors written out.
 */
#include "softmax.h"

/* Parameters by their place, as the table names them. */
enum { VEC, BLOCK };

static struct parts cpu_parts(const struct softmax *s, const int *p)
{
    return vn__softmax_parts(s, s->n, (int64_t)p[VEC] * p[BLOCK]);
}

enum { LONG_ROW = 16384 };       /* elements from which splitting a row pays for a second pass */

/* A CPU keeps exponentials in y, which parts cannot: they compute each one twice. */
const char *vn__plan_softmax_cpu_split(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                          const struct vn_site *site)
{
    const struct softmax *s = problem;

    out->workspace = vn__softmax_pairs_bytes(s, cpu_parts(s, row->p).count);
    return s->n < 4 * LONG_ROW ? "its rows are too short to be split"
         : 2 * s->rows >= site->facts->units ? "its rows occupy half the cores or more" : NULL;
}

vn_status vn__run_softmax_cpu_split(vn_queue *q, const struct vn_choice *it, const void *problem,
                                    const struct vn_plan *plan)
{
    (void)plan;
    return vn__run_softmax_parts(q, it, problem, cpu_parts(problem, it->p), 1);
}

/* A group of a CPU costs about a microsecond to start: it takes rows of some 64 Ki elements,
 * unless that would leave cores idle.                                                       */
vn_status vn__run_softmax_cpu(vn_queue *q, const struct vn_choice *it, const void *problem,
                              const struct vn_plan *plan)
{
    const struct softmax *s = problem;
    const vn_tensor *x = &s->t[X];
    const int across = s->across && !s->causal;
    const int64_t side = across ? x->extent[x->rank - 2] : 1;
    const int64_t all = across ? s->rows / side * VN_CEIL_DIV(side, it->p[VEC]) : s->rows;
    const int64_t lines = across ? it->p[VEC] : 1;
    const int64_t share = VN_CEIL_DIV(all, 4 * (int64_t)s->units);
    const int64_t fill = VN_CEIL_DIV(65536, lines * s->n);
    const int64_t least = VN_CEIL_DIV(all, INT32_MAX);
    const int64_t each = fill < share ? (fill > least ? fill : least) : share;
    struct vn_launch l = { .groups = { VN_CEIL_DIV(all, each), 1, 1 }, .items = 1 };

    (void)plan;
    vn__softmax_begin(&l, s, each);
    vn__arg_int(&l, across);
    return vn__launch(q, it, 0, &l);
}
