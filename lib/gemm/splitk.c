/* SPDX-License-Identifier: Apache-2.0
 *
 * splitk.c - the variant gemm_deep: few tiles of C and a long K, on GPUs, in f32 and f64.
 *
 * K is cut into parts, as if they were batches: another variant leaves their products in the
 * workspace, and cl/gemm/splitk_sum.cl adds these in their order.  How many parts there are follows from
 * the problem and the device's units alone, so results are the same each time.
 */
#include <limits.h>
#include <string.h>

#include "gemm.h"

enum { ITEMS };                                 /* its parameter */
enum { SPAN = 64, MOST_PARTS = 32, PAYS_K = 1024, DEEP = 4, ALIGNED = 16, WORKSPACE_ALIGN = 256 };

struct cut { int64_t parts, span, rest; };      /* `parts` of `span`, and one of `rest` if that is not 0 */

/* Of what makes the parts, on an H100, in microseconds: what one of K takes in a tile, if a unit makes it
 * alone, or several together, each after the other; what else a tile takes; a launch; and the bytes of
 * sums that are written and read in one.  On other devices it is their ratio that counts.          */
struct tile { int m, n; double alone, together, rest; };
static const struct tile tile_f32 = { 128, 64, 0.052, 0.046, 2 }, tile_f64 = { 64, 64, 0.022, 0.02, 2 };
static const double LAUNCH = 3, SUMS = 3e6;

static double time_of_span(const struct gemm *g, int64_t parts, int64_t span)
{
    const struct tile *t = g->head.type == VN_F64 ? &tile_f64 : &tile_f32;
    const int64_t tiles = VN_CEIL_DIV(g->m, t->m) * VN_CEIL_DIV(g->n, t->n) * g->batches * parts;
    const double rounds = (double)VN_CEIL_DIV(tiles, g->units);

    return LAUNCH + rounds * ((double)span * (tiles > g->units ? t->together : t->alone) + t->rest);
}

static double time_of(const struct gemm *g, const struct cut *c)
{
    const double sums = (double)(c->parts + (c->rest != 0)) * (double)g->m * (double)g->n * (double)g->batches;
    const double whole = time_of_span(g, c->parts, c->span) + (c->rest ? time_of_span(g, 1, c->rest) : 0);

    return c->parts < 2 ? whole : whole + LAUNCH + 2 * sums * (double)vn_type_bytes(g->head.type) / SUMS;
}

/* What takes the least time: at least two parts, of at least SPAN, and no more sums than there is to read.
 * One: it cannot be cut.                                                                              */
static struct cut cut_of(const struct gemm *g)
{
    const int64_t reads = g->m * g->k + g->k * g->n, room = reads / (g->m * g->n);
    struct cut best = { 1, g->k, 0 };

    for (int64_t parts = 2; parts <= g->k / SPAN && parts <= room && parts <= MOST_PARTS; parts++) {
        const int64_t span = g->k / parts / ALIGNED * ALIGNED;
        const struct cut c = { g->k / span, span, g->k % span };

        if (best.parts < 2 || time_of(g, &c) < time_of(g, &best))
            best = c;
    }
    return best;
}

static double time_whole(const struct gemm *g)
{
    return time_of(g, &(struct cut){ 1, g->k, 0 });
}

static int is_long(const struct gemm *g)
{
    return g->k >= PAYS_K && (g->k >= DEEP * g->m || g->k >= DEEP * g->n);
}

double vn__time_fma(const struct gemm *g)
{
    const double whole = time_whole(g);
    const struct cut cut = cut_of(g);

    return !g->is_part && is_long(g) && cut.parts > 1 && time_of(g, &cut) < whole ? time_of(g, &cut) : whole;
}

const char *vn__fits_deep(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    (void)f;
    if (g->is_part)
        return "it is a part of such a problem";
    if (g->math == VN_MATH_BITWISE)
        return "it sums in another order than VN_MATH_BITWISE promises";
    if (g->head.type != VN_F32 && g->head.type != VN_F64)
        return "it needs f32 or f64, whose sums are stored as they are";
    if (g->c.rank >= VN_RANK - 1)
        return "it needs a batch dimension for itself";
    if (g->m > INT_MAX / 2 || g->n > INT_MAX / 2 || g->k > INT_MAX / 2 || g->batches > INT_MAX / 2)
        return "M, N, K and the batches must stay below 2^30";
    if (cut_of(g).parts < 2)
        return "K is too short to be cut into parts";
    return NULL;
}

const char *vn__pays_deep(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;
    const struct cut cut = cut_of(g);

    if (!strcmp(f->family, "cpu"))
        return "a CPU has too few units for it to pay";
    if (!is_long(g))
        return "K is below 1024, or below 4 times both M and N: C has tiles enough";
    if (time_whole(g) <= time_of(g, &cut))
        return "C has tiles enough, or K is too short for a second launch to pay";
    return NULL;
}

/* ---- the parts -------------------------------------------------------------------- */

/* Puts a first dimension before the others. */
static vn_tensor stacked(vn_tensor t, int64_t extent, int64_t stride)
{
    memmove(t.extent + 1, t.extent, (size_t)t.rank * sizeof *t.extent);
    memmove(t.stride + 1, t.stride, (size_t)t.rank * sizeof *t.stride);
    t.extent[0] = extent;
    t.stride[0] = stride;
    t.rank++;
    return t;
}

/* Their sums, in rows: [batch][m][n]. */
static vn_tensor sums_of(const struct gemm *g, vn_buffer *buffer, int64_t start)
{
    vn_tensor t = g->c;
    int64_t step = 1;

    for (int i = t.rank - 1; i >= 0; i--) {
        t.stride[i] = step;
        step *= t.extent[i];
    }
    t.buffer = buffer;
    t.start  = start;
    return t;
}

/* `parts` parts of `span` of K, from k on. */
static struct gemm parts_of(const struct gemm *g, int64_t k, int64_t parts, int64_t span, vn_buffer *buffer,
                            int64_t start)
{
    const int64_t a_step = vn__col(&g->a), b_step = vn__row(&g->b), all = g->batches * g->m * g->n;
    struct gemm p = *g;

    p.is_part    = 1;
    p.pack       = NULL;
    p.to_pack    = 0;
    p.k          = span;
    p.batches    = g->batches * parts;
    p.alpha      = 1;
    p.beta       = 0;
    p.has_bias   = 0;
    p.activation = VN_IDENTITY;
    p.a          = stacked(g->a, parts, span * a_step);
    p.b          = stacked(g->b, parts, span * b_step);
    p.a.start   += k * a_step;
    p.b.start   += k * b_step;
    p.a.extent[p.a.rank - 1] = span;
    p.b.extent[p.b.rank - 2] = span;
    p.c          = stacked(sums_of(g, buffer, start), parts, all);
    vn__gemm_size_up(&p);
    return p;
}

static int64_t bytes_of(const struct gemm *g, const struct cut *cut)
{
    return (cut->parts + (cut->rest != 0)) * g->batches * g->m * g->n * (int64_t)vn_type_bytes(g->head.type);
}

size_t vn__workspace_deep(const void *problem, const int *p)
{
    const struct gemm *g = problem;
    const struct cut cut = cut_of(g);

    (void)p;
    return (size_t)bytes_of(g, &cut);
}

/* The variant that solves the parts may need some of the workspace: it has what comes first. */
static vn_status inner_workspace(size_t *bytes, vn_queue *q, const struct gemm *part)
{
    const struct vn_choice *it;
    vn_status s = vn__choose_part(&it, q, vn__gemm_variants, part);

    if (s == VN_OK && it->variant->workspace) {
        const size_t own = VN_CEIL_DIV(it->variant->workspace(part, it->p), WORKSPACE_ALIGN) * WORKSPACE_ALIGN;

        if (own > *bytes)
            *bytes = own;
    }
    return s;
}

static vn_status solve(vn_queue *q, const struct gemm *part)
{
    const struct vn_choice *it;
    vn_status s = vn__choose_part(&it, q, vn__gemm_variants, part);

    return s ? s : it->variant->run(q, it, part);
}

vn_status vn__add_parts(vn_queue *q, const struct vn_choice *it, int kernel, int items, const struct gemm *g,
                        vn_buffer *sums, int64_t start, int64_t parts)
{
    struct vn_launch l = { .groups = { 1, 1, 1 }, .items = items };
    const int each = g->n % 4 ? 1 : 4;          /* elements of an item, as in gemm_sum.cl */

    l.groups[0] = VN_CEIL_DIV(g->batches * g->m * g->n, items * each);
    if (l.groups[0] > INT_MAX || start > INT_MAX)
        return vn__fail(VN_UNSUPPORTED, "%s takes at most %d work-groups", it->variant->name, INT_MAX);
    vn__arg_int(&l, g->m);
    vn__arg_int(&l, g->n);
    vn__arg_int(&l, g->batches);
    vn__arg_int(&l, parts);
    vn__arg_int(&l, start);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__arg_buffer(&l, sums);
    vn__gemm_output(&l, g);
    return vn__launch(q, it, kernel, &l);
}

vn_status vn__run_deep(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct gemm *g = problem;
    const struct cut cut = cut_of(g);
    const int64_t all = g->batches * g->m * g->n;
    struct gemm most = parts_of(g, 0, cut.parts, cut.span, g->c.buffer, 0);
    struct gemm last = parts_of(g, cut.parts * cut.span, 1, cut.rest, g->c.buffer, 0);
    vn_buffer *buffer;
    size_t own = 0;
    vn_status s;

    if ((s = inner_workspace(&own, q, &most)) || (cut.rest && (s = inner_workspace(&own, q, &last))) ||
        (s = vn__workspace(&buffer, q, own + (size_t)bytes_of(g, &cut))))
        return s;

    const int64_t start = (int64_t)(own / vn_type_bytes(g->head.type));

    most.c.buffer = last.c.buffer = buffer;
    most.c.start  = start;
    last.c.start  = start + cut.parts * all;
    vn__gemm_size_up(&most);                    /* for it may be wide now */
    vn__gemm_size_up(&last);
    if ((s = solve(q, &most)) || (cut.rest && (s = solve(q, &last))))
        return s;
    q->workspace_used = own + (size_t)bytes_of(g, &cut);
    return vn__add_parts(q, it, 0, it->p[ITEMS], g, buffer, start, cut.parts + (cut.rest != 0));
}
