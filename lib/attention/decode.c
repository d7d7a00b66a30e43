/* SPDX-License-Identifier: Apache-2.0
 *
 * decode.c - attention where few queries read many keys: work-groups share the keys.
 */
#include <limits.h>

#include "attention.h"

enum { ITEMS, LANES_MOST, KEYS };               /* parameters by their place in the table */
enum { ROWS_MOST, GROUPS, FIXED_NS };           /* and costs */
enum { MMA_ITEMS, MMA_KEYS, MMA_STAGES };       /* likewise, of attention_decode_mma */
enum { MMA_GROUPS, MMA_FIXED_NS };
enum { MMA_ROWS = 16 };
enum { CPU_VEC, CPU_KEYS };                     /* and of attention_decode_cpu */
enum { CPU_GROUPS };
enum { BLOCKS, SPLITS };                        /* values of a plan */
enum { DECODE, MERGE };                         /* kernels */
enum { SPLITS_MOST = 128, WAVE_STEPS = 4, DECODE_ROWS = 64, CPU_ROWS = 16 };
enum { COMPUTED = 12 };                         /* instructions for an element and row, as multiply-adds */

/* ---- fits ------------------------------------------------------------------------- */

const char *vn__fits_attention_decode(const void *problem, const struct vn_facts *f)
{
    const struct attention *a = problem;

    (void)f;
    if (a->backward)
        return "it computes no gradients";
    if (!vn__attention_has_vectors(&a->t[K]) || !vn__attention_has_vectors(&a->t[V]))
        return "keys and values must be contiguous along a row, and rows must be whole vectors of 16 bytes "
               "that begin at multiples of 16 bytes";
    if (a->queries * a->group > INT_MAX / 2)
        return "the queries of a head of keys are more than 2^30";
    return NULL;
}

const char *vn__fits_attention_decode_warps(const void *problem, const struct vn_facts *f)
{
    const char *const why = vn__fits_warps(problem, f);

    return why ? why : vn__fits_attention_decode(problem, f);
}

const char *vn__fits_attention_decode_mma(const void *problem, const struct vn_facts *f)
{
    const struct attention *a = problem;
    const char *const why = vn__fits_attention_decode_warps(problem, f);

    return why ? why : a->head.type != VN_F16 && a->head.type != VN_BF16 ? "it needs f16 or bf16" : NULL;
}

const char *vn__fits_attention_decode_cpu(const void *problem, const struct vn_facts *f)
{
    const struct attention *a = problem;
    const char *const why = vn__fits_vectors(problem, f);

    return why ? why : a->backward ? "it computes no gradients"
         : (a->d > 1 && a->t[K].stride[3] != 1) || (a->dv > 1 && a->t[V].stride[3] != 1)
         ? "keys and values must be contiguous along a row"
         : a->queries * a->group > INT_MAX / 2 ? "the queries of a head of keys are more than 2^30" : NULL;
}

/* The rows of a work-group, of `count` in all. */
static int rows_of(int64_t count)
{
    return count <= 1 ? 1 : count <= 4 ? 4 : 8;
}

static int64_t all_rows(const struct attention *a)
{
    return a->queries * a->group;
}

static int head_of(const struct attention *a)
{
    const int64_t d = a->d > a->dv ? a->d : a->dv;

    return d <= 64 ? 64 : d <= 128 ? 128 : 256;
}

void vn__constants_attention_decode(int *c, const void *problem)
{
    const struct attention *a = problem;

    c[0] = head_of(a);
    c[1] = rows_of(all_rows(a));
    c[2] = a->has_mask || a->softcap > 0;
    c[3] = a->pages.buffer != NULL;
}

void vn__constants_attention_decode_cpu(int *c, const void *problem)
{
    c[0] = head_of(problem);
    c[1] = rows_of(all_rows(problem));
}

void vn__constants_attention_decode_mma(int *c, const void *problem)
{
    const struct attention *a = problem;

    c[0] = head_of(a);
    c[1] = a->has_mask || a->softcap > 0;
    c[2] = a->pages.buffer != NULL;
}

/* ---- plans -------------------------------------------------------------------------- */

/* Heads of keys, in all batches. */
static int64_t heads_of(const struct attention *a)
{
    return a->batches * (a->heads / a->group);
}

/* Keys that a work-group takes in a step. */
static int64_t step_of(const struct attention *a, const int *p)
{
    const int lanes = head_of(a) / (16 / (int)vn_type_bytes(a->head.type));

    return p[ITEMS] / (lanes < p[LANES_MOST] ? lanes : p[LANES_MOST]) * p[KEYS];
}

/* The splits that leave the last wave of work-groups fullest; a wave costs WAVE_STEPS beside its keys. */
static int64_t splits_of(const struct attention *a, int64_t step, int64_t blocks, int64_t slots)
{
    const int64_t all = heads_of(a) * blocks, steps = VN_CEIL_DIV(a->keys, step);
    int64_t best = 1, least = INT64_MAX;

    for (int64_t splits = 1; splits <= SPLITS_MOST && splits <= steps; splits++) {
        const int64_t time = VN_CEIL_DIV(all * splits, slots)
                           * (VN_CEIL_DIV(a->keys, splits) + WAVE_STEPS * step);

        if (time < least) {
            least = time;
            best = splits;
        }
    }
    return best;
}

/* step: keys of a work-group at a time; groups: those of a compute unit.  NULL, or why this row cannot. */
static const char *plan_splits(struct vn_plan *out, const struct attention *a, const struct vn_site *site,
                               int64_t rows, int64_t step, int groups)
{
    const int64_t blocks = VN_CEIL_DIV(all_rows(a), rows), real = a->head.type == VN_F64 ? 8 : 4;
    const int units = site->facts->units < 1 ? 1 : site->facts->units;
    int64_t size;

    out->v[BLOCKS] = blocks;
    out->v[SPLITS] = splits_of(a, step, blocks, (int64_t)units * groups);
    if (!vn__mul(&size, heads_of(a) * blocks, out->v[SPLITS]) ||
        !vn__mul(&size, size, rows * (a->dv + 2) * real) ||
        (!a->head.wide && size / real > INT32_MAX))
        return "its partial sums are too many";
    out->workspace = (size_t)size;
    return NULL;
}

/* Of all keys and values, each read once for each block of rows. */
static double elements_of(const struct attention *a, const struct vn_plan *p)
{
    return (double)heads_of(a) * (double)p->v[BLOCKS] * (double)a->keys * (double)(a->d + a->dv);
}

static double seconds_of(const struct attention *a, const struct vn_plan *p, const struct vn_site *site,
                         double flops, double flops_per_unit, int fixed_ns)
{
    const double units = site->facts->units < 1 ? 1 : site->facts->units;
    const double read = elements_of(a, p) * (double)vn_type_bytes(a->head.type) / (site->rates->gbps * 1e9);
    const double computed = flops / (flops_per_unit * 1e9 * units);

    return fixed_ns * 1e-9 + (read > computed ? read : computed);
}

static const char *too_many_queries(const struct attention *a)
{
    return all_rows(a) > DECODE_ROWS ? "it would read the keys for few of the queries at a time" : NULL;
}

const char *vn__plan_attention_decode(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                      const struct vn_site *site)
{
    const struct attention *a = problem;
    const int64_t rows = rows_of(all_rows(a));
    const char *why = plan_splits(out, a, site, rows, step_of(a, row->p), row->cost[GROUPS]);

    if (!why && row->p[ITEMS] > site->facts->items)
        why = "its work-groups are larger than the device's";
    if (why) {
        out->seconds = -1;
        return why;
    }
    out->seconds = seconds_of(a, out, site, COMPUTED * elements_of(a, out) * (double)rows, site->rates->fma32,
                              row->cost[FIXED_NS]);
    return rows > row->cost[ROWS_MOST] ? "this row is for fewer queries of a head of keys"
                                       : too_many_queries(a);
}

/* Without a model: in the table it precedes the kernel for many queries, which copies keys and values. */
const char *vn__plan_attention_decode_cpu(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                          const struct vn_site *site)
{
    const struct attention *a = problem;
    const char *const why = a->d % row->p[CPU_VEC] || a->dv % row->p[CPU_VEC]
                          ? "rows of keys and values must be whole vectors"
                          : plan_splits(out, a, site, rows_of(all_rows(a)), row->p[CPU_KEYS],
                                        row->cost[CPU_GROUPS]);

    if (why) {
        out->seconds = -1;
        return why;
    }
    return all_rows(a) > CPU_ROWS ? "it would read the keys for few of the queries at a time" : NULL;
}

/* Of a work-group, as the kernel's LOCAL_BYTES. */
static double mma_local_kib(const struct attention *a, const int *p)
{
    enum { OTHER = 1 };

    return p[MMA_ITEMS] / 32 * p[MMA_STAGES] * 4.0 * p[MMA_KEYS] * head_of(a) / 1024 + OTHER;
}

const char *vn__plan_attention_decode_mma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                          const struct vn_site *site)
{
    const struct attention *a = problem;
    const int *p = row->p;
    const char *why = plan_splits(out, a, site, MMA_ROWS, p[MMA_ITEMS] / 32 * p[MMA_KEYS],
                                  row->cost[MMA_GROUPS]);

    if (!why && mma_local_kib(a, p) > site->rates->local_kib)
        why = "this row takes more local memory than there is";
    if (why) {
        out->seconds = -1;
        return why;
    }
    out->seconds = seconds_of(a, out, site, 0, 1, row->cost[MMA_FIXED_NS]);
    return too_many_queries(a);
}

/* ---- the launches --------------------------------------------------------------------- */

static void arg_all(struct vn_launch *l, const struct attention *a, const struct vn_plan *plan,
                    vn_buffer *splits, int merges, vn_buffer *counters)
{
    vn__attention_begin(l, a);
    vn__attention_more(l, a);
    vn__arg_int(l, a->heads / a->group);
    vn__arg_int(l, plan->v[BLOCKS]);
    vn__arg_int(l, plan->v[SPLITS]);
    vn__arg_buffer(l, splits);
    vn__arg_int(l, merges);
    vn__arg_buffer(l, counters);
}

/* items: of a work-group.  can_merge: the last work-group that has a split of some rows can see what the
 * others left. */
static vn_status run(vn_queue *q, const struct vn_choice *it, const struct attention *a,
                     const struct vn_plan *plan, int items, int can_merge)
{
    const int64_t heads = a->heads / a->group, blocks = plan->v[BLOCKS];
    const int merges = can_merge && a->batches * heads * blocks <= VN_COUNTERS;
    struct vn_launch decode = { .groups = { blocks * plan->v[SPLITS], heads, a->batches },
                                .items = items };
    struct vn_launch merge = { .groups = { blocks, heads, a->batches }, .items = items };
    vn_buffer *splits, *counters;
    vn_status s;

    if ((s = vn__workspace(&splits, q, plan->workspace)) || (s = vn__counters(&counters, q)))
        return s;
    arg_all(&decode, a, plan, splits, merges, counters);
    arg_all(&merge, a, plan, splits, 0, counters);
    s = vn__launch(q, it, DECODE, &decode);
    return s || merges ? s : vn__launch(q, it, MERGE, &merge);
}

vn_status vn__run_attention_decode(vn_queue *q, const struct vn_choice *it, const void *problem,
                                   const struct vn_plan *plan)
{
    return run(q, it, problem, plan, it->p[ITEMS], 0);
}

vn_status vn__run_attention_decode_cpu(vn_queue *q, const struct vn_choice *it, const void *problem,
                                       const struct vn_plan *plan)
{
    return run(q, it, problem, plan, 1, 0);
}

vn_status vn__run_attention_decode_warps(vn_queue *q, const struct vn_choice *it, const void *problem,
                                         const struct vn_plan *plan)
{
    return run(q, it, problem, plan, it->p[ITEMS], 1);
}
