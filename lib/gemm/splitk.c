/* SPDX-License-Identifier: Apache-2.0
 *
 * splitk.c - the variant gemm_splitk: few tiles of C and a long K, on GPUs, in f32 and f64.
 *
 * The splits of K are posed as batches of another product, which the cheapest other variant computes to the
 * workspace; cl/gemm/splitk_sum.cl adds its batches in their order.
 */
#include <limits.h>
#include <string.h>

#include "gemm.h"

enum { ITEMS };                                 /* its parameter */
enum { PARTS, SUMS, NEXT };                     /* its costs: thousandths of what the splits are estimated
                                                   at; of the memory's rate at which sums are added; and of
                                                   a launch, for each after the first */
enum { SPLITS, SPAN, REST };                    /* values of a plan: `SPLITS` of `SPAN`, and one of
                                                   `REST` if not 0 */
enum { LEAST_SPAN = 64, MOST_SPLITS = 32, ALIGNED = 16, WORKSPACE_ALIGN = 256 };

struct cut { int64_t splits, span, rest; };

const char *vn__fits_splitk(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;
    const char *why;

    if (!strcmp(f->family, "cpu"))
        return "a CPU has too few units for it to pay";
    if (g->head.type != VN_F32 && g->head.type != VN_F64)
        return "it needs f32 or f64, whose sums are stored as they are";
    if (g->c.rank >= VN_RANK - 1)
        return "it needs a batch dimension for itself";
    if (g->k < 2 * LEAST_SPAN)
        return "K is too short to be split";
    return (why = vn__fits_order(g)) ? why : vn__fits_half_sizes(g);
}

/* ---- the splits -------------------------------------------------------------------- */

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

/* Their partial sums: [batch][m][n], contiguous. */
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

/* `splits` splits of `span` of K, from k on. */
static struct gemm part_of(const struct gemm *g, int64_t k, int64_t splits, int64_t span, vn_buffer *buffer,
                            int64_t start)
{
    const int64_t a_step = vn__col(&g->a), b_step = vn__row(&g->b), all = g->batches * g->m * g->n;
    struct gemm p = *g;

    p.pack       = NULL;
    p.to_pack    = 0;
    p.k          = span;
    p.batches    = g->batches * splits;
    p.alpha      = 1;
    p.beta       = 0;
    p.has_bias   = p.has_scale = 0;
    p.activation = VN_IDENTITY;
    p.a          = stacked(g->a, splits, span * a_step);
    p.b          = stacked(g->b, splits, span * b_step);
    p.a.start   += k * a_step;
    p.b.start   += k * b_step;
    p.a.extent[p.a.rank - 1] = span;
    p.b.extent[p.b.rank - 2] = span;
    p.c          = stacked(sums_of(g, buffer, start), splits, all);
    vn__gemm_size_up(&p);
    return p;
}

static int64_t bytes_of(const struct gemm *g, const struct cut *cut)
{
    return (cut->splits + (cut->rest != 0)) * g->batches * g->m * g->n * (int64_t)vn_type_bytes(g->head.type);
}

/* ---- the plan ------------------------------------------------------------------------ */

/* The time of the other variants, of adding, and the workspace of both: the splits' comes first. */
static double seconds_of(size_t *workspace, const struct gemm *g, const struct cut *cut,
                         const struct vn_row *row, const struct vn_site *site)
{
    const struct gemm most = part_of(g, 0, cut->splits, cut->span, g->c.buffer, 0);
    const struct gemm last = part_of(g, cut->splits * cut->span, 1, cut->rest, g->c.buffer, 0);
    size_t own = 0, own_last = 0;
    const double first = vn__part_seconds(site, vn__gemm_variants, &most, &own);
    const double rest = cut->rest ? vn__part_seconds(site, vn__gemm_variants, &last, &own_last) : 0;

    own = own > own_last ? own : own_last;
    *workspace = VN_CEIL_DIV(own, WORKSPACE_ALIGN) * WORKSPACE_ALIGN + (size_t)bytes_of(g, cut);
    if (first <= 0 || (cut->rest && rest <= 0))
        return 0;
    return (first + rest) * row->cost[PARTS] / 1000 +
           (cut->rest ? 2 : 1) * vn__launch_seconds(site) * row->cost[NEXT] / 1000 +
           vn__move_seconds(2.0 * (double)bytes_of(g, cut), row->cost[SUMS], site);
}

/* At least two splits, of at least LEAST_SPAN, and no more sums than there are elements to read. */
const char *vn__plan_splitk(struct vn_plan *out, const void *problem, const struct vn_row *row,
                            const struct vn_site *site)
{
    const struct gemm *g = problem;
    const int64_t room = (g->m * g->k + g->k * g->n) / (g->m * g->n);
    int found = 0;

    if (site->depth) {
        out->seconds = -1;
        return "it is a split of such a problem";
    }
    for (int64_t wanted = 2; wanted <= g->k / LEAST_SPAN && wanted <= MOST_SPLITS;
         wanted += wanted < 8 ? 1 : wanted / 4) {
        const int64_t span = g->k / wanted / ALIGNED * ALIGNED;
        const struct cut c = { g->k / span, span, g->k % span };
        size_t workspace;
        double seconds;

        if (found && wanted > room)
            break;
        seconds = seconds_of(&workspace, g, &c, row, site);
        if (found && (seconds <= 0 || seconds >= out->seconds))
            continue;
        found = 1;
        out->seconds = seconds;
        out->workspace = workspace;
        memcpy(out->v, &c, sizeof c);
    }
    return room < 2 ? "C has more elements than A and B: K is too short to be split" : NULL;
}

/* ---- launches ------------------------------------------------------------------------ */

/* A part of the problem, and how it is solved.  All are chosen before the first launch. */
struct part { struct gemm gemm; const struct vn_choice *choice; struct vn_plan plan; };

static vn_status choose_part(struct part *part, vn_queue *q)
{
    return vn__choose_part(&part->choice, &part->plan, q, vn__gemm_variants, &part->gemm);
}

/* The variant that solves the splits has what comes first of the workspace. */
static void reserve(size_t *bytes, const struct part *part)
{
    const size_t own = VN_CEIL_DIV(part->plan.workspace, WORKSPACE_ALIGN) * WORKSPACE_ALIGN;

    if (own > *bytes)
        *bytes = own;
}

/* Gives the part its place in the workspace.  It is chosen anew where that makes it wide, or its rows of sums
 * unaligned: the first choice was for a C that begins at 0.                                               */
static vn_status place(struct part *part, vn_queue *q, vn_buffer *buffer, int64_t start)
{
    const int wide = part->gemm.head.wide;

    part->gemm.c.buffer = buffer;
    part->gemm.c.start  = start;
    vn__gemm_size_up(&part->gemm);
    return part->gemm.head.wide == wide && start % ALIGNED == 0 ? VN_OK : choose_part(part, q);
}

static vn_status solve(vn_queue *q, const struct part *part)
{
    return part->choice->variant->run(q, part->choice, &part->gemm, &part->plan);
}

vn_status vn__add_splits(vn_queue *q, const struct vn_choice *it, int kernel, int items, const struct gemm *g,
                        vn_buffer *sums, int64_t start, int64_t splits)
{
    struct vn_launch l = { .groups = { 1, 1, 1 }, .items = items };
    const int each = g->n % 4 ? 1 : 4;          /* elements of an item, as in splitk_sum.cl */

    l.groups[0] = VN_CEIL_DIV(g->batches * g->m * g->n, items * each);
    if (l.groups[0] > INT_MAX || start > INT_MAX)
        return vn__fail(VN_UNSUPPORTED, "%s takes at most %d work-groups", it->variant->name, INT_MAX);
    vn__arg_int(&l, g->m);
    vn__arg_int(&l, g->n);
    vn__arg_int(&l, g->batches);
    vn__arg_int(&l, splits);
    vn__arg_int(&l, start);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__arg_buffer(&l, sums);
    vn__gemm_output(&l, g);
    return vn__launch(q, it, kernel, &l);
}

vn_status vn__run_splitk(vn_queue *q, const struct vn_choice *it, const void *problem,
                         const struct vn_plan *plan)
{
    const struct gemm *g = problem;
    const struct cut cut = { plan->v[SPLITS], plan->v[SPAN], plan->v[REST] };
    const int64_t all = g->batches * g->m * g->n;
    struct part most = { .gemm = part_of(g, 0, cut.splits, cut.span, g->c.buffer, 0) };
    struct part last = { .gemm = part_of(g, cut.splits * cut.span, 1, cut.rest, g->c.buffer, 0) };
    vn_buffer *buffer;
    size_t own = 0;
    vn_status s;

    if ((s = choose_part(&most, q)) || (cut.rest && (s = choose_part(&last, q))))
        return s;
    reserve(&own, &most);
    if (cut.rest)
        reserve(&own, &last);
    if ((s = vn__workspace(&buffer, q, own + (size_t)bytes_of(g, &cut))))
        return s;

    const int64_t start = (int64_t)(own / vn_type_bytes(g->head.type));

    if ((s = place(&most, q, buffer, start)) ||
        (cut.rest && (s = place(&last, q, buffer, start + cut.splits * all))) ||
        (s = solve(q, &most)) || (cut.rest && (s = solve(q, &last))))
        return s;
    q->workspace_used = own + (size_t)bytes_of(g, &cut);
    return vn__add_splits(q, it, 0, it->p[ITEMS], g, buffer, start, cut.splits + (cut.rest != 0));
}
