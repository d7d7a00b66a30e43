/* SPDX-License-Identifier: Apache-2.0
 *
 * spot.c - checks the first and the last part of an output.
 *
 * The problem is narrowed to those operands that the part depends on: some rows of A and
 * columns of B, one image and one filter, a few rows of a softmax.  That is again a problem,
 * small enough for the oracle, with its rounding bounds.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include "oracle.h"
#include "spot.h"

enum { ROWS = 4, COLUMNS = 16 };

/* ---- narrowing ---- */

struct part  { struct problem p; struct operands o; };
struct range { int64_t from, count; };

/* Dimension d to a range of it.  A dimension that repeats stays as it is. */
static void narrow(vn_tensor *t, int d, struct range r)
{
    if (t->rank <= d || t->extent[d] <= 1)
        return;
    t->start    += r.from * t->stride[d];
    t->extent[d] = r.count;
}

static struct range end_of(int64_t extent, int64_t most, int last)
{
    const int64_t count = extent < most ? extent : most;

    return (struct range){ last ? extent - count : 0, count };
}

static void narrow_gemm(struct part *s, int last)
{
    struct problem *const p = &s->p;
    vn_tensor *const all[] = { &s->o.t[0], &s->o.t[1], &s->o.t[2], &s->o.bias };
    const int row = s->o.t[2].rank - 2, col = row + 1;
    const struct range l = end_of(p->batch, 1, last);
    const struct range i = end_of(p->m, ROWS, last), j = end_of(p->n, COLUMNS, last);

    for (int at = 0; at < 4; at++) {
        if (row > 0)
            narrow(all[at], 0, l);
        if (at != 1)
            narrow(all[at], row, i);
        if (at != 0)
            narrow(all[at], col, j);
    }
    p->batch = l.count;
    p->m     = i.count;
    p->n     = j.count;
}

/* One group, and in it what a part of the output needs: of images, filters and channels,
 * one of those that the output has, and all of those that are summed over.              */
static void narrow_conv(struct part *s, int last)
{
    static const int place[][3] = { [FORWARD] = { 0, 1, 2 }, [BACKWARD_DATA] = { 2, 1, 0 },
                                    [BACKWARD_FILTER] = { 0, 2, 1 } };        /* of x, w, y */
    struct problem *const p = &s->p;
    const int64_t c_each = p->c / p->groups, k_each = p->filters / p->groups;
    const int64_t group = last ? p->groups - 1 : 0;
    const struct range n = end_of(p->images, p->direction == BACKWARD_FILTER ? p->images : 1, last);
    const struct range k = end_of(k_each, p->direction == BACKWARD_DATA ? k_each : 1, last);
    const struct range c = end_of(c_each, p->direction == FORWARD ? c_each : 1, last);
    const struct range filters  = { group * k_each + k.from, k.count };
    const struct range channels = { group * c_each + c.from, c.count };
    const struct range of[3][2] = { { n, channels }, { filters, c }, { n, filters } };

    for (int i = 0; i < 3; i++)
        for (int d = 0; d < 2; d++) {
            narrow(&s->o.t[place[p->direction][i]], d, of[i][d]);
            if (place[p->direction][i] == s->o.output && s->o.bias.rank > 1)
                narrow(&s->o.bias, d, of[i][d]);
        }
    if (s->o.bias.rank == 1)
        narrow(&s->o.bias, 0, filters);
    p->images  = n.count;
    p->c       = c.count;
    p->filters = k.count;
    p->groups  = 1;
}

/* Whole rows; what is causal keeps the first ones, since a row's number says what it sees. */
static void narrow_softmax(struct part *s, int last)
{
    struct problem *const p = &s->p;
    const int batched = p->batch > 1;
    const struct range l = end_of(p->batch, 1, last);
    const struct range i = end_of(p->rows / p->inner, ROWS, last && !p->causal);
    vn_tensor *const all[] = { &s->o.t[0], &s->o.t[1], &s->o.t[2], &s->o.mask };

    for (int at = 0; at < 4; at++) {
        if (batched)
            narrow(all[at], 0, l);
        narrow(all[at], batched, i);
    }
    p->batch = l.count;
    p->rows  = i.count * p->inner;
}

/* ---- gathering ---- */

struct gather { const void *from; vn_type type; double *to; int64_t count; };

static void gather_one(void *context, int64_t offset, const int64_t place[VN_RANK])
{
    struct gather *const g = context;

    (void)place;
    g->to[g->count++] = oracle_load(g->type, g->from, offset);
}

/* The elements of a view as numbers, one after the other; packs the view.  NULL: no memory. */
static double *gather(vn_tensor *t, const void *from, int64_t *count)
{
    struct gather g = { from, t->type, NULL, 0 };
    int64_t step = 1;

    for (int d = 0; d < t->rank; d++)
        step *= t->extent[d];
    if (!(g.to = malloc((size_t)(step ? step : 1) * sizeof *g.to)))
        return NULL;
    oracle_each(t, gather_one, &g);
    t->start = 0;
    step = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        t->stride[d] = step;
        step *= t->extent[d];
    }
    *count = g.count;
    return g.to;
}

/* ---- checking ---- */

struct gathered {
    double      *in[3], *bias, *mask, *result;
    long double *value, *bound;
    int64_t      count;               /* of result */
};

static int gather_all(struct gathered *g, struct part *s, const struct values *v, const void *result)
{
    vn_tensor output = s->o.t[s->o.output];
    int64_t unused;

    for (int i = 0; i < s->o.count; i++)
        if (!(g->in[i] = gather(&s->o.t[i], v->operand[i], &unused)))
            return -1;
    if ((s->o.bias.rank && !(g->bias = gather(&s->o.bias, v->bias, &unused))) ||
        (s->o.mask.rank && !(g->mask = gather(&s->o.mask, v->mask, &unused))))
        return -1;
    g->result = gather(&output, result, &g->count);
    g->value  = calloc((size_t)g->count + 1, sizeof *g->value);
    g->bound  = calloc((size_t)g->count + 1, sizeof *g->bound);
    return g->result && g->value && g->bound ? 0 : -1;
}

static void gathered_close(struct gathered *g)
{
    for (int i = 0; i < 3; i++)
        free(g->in[i]);
    free(g->bias);
    free(g->mask);
    free(g->result);
    free(g->value);
    free(g->bound);
}

static int compare(const struct gathered *g, char *why, size_t why_size)
{
    for (int64_t i = 0; i < g->count; i++)
        if (g->result[i] != g->value[i] && !(fabsl(g->result[i] - g->value[i]) <= g->bound[i])) {
            snprintf(why, why_size, "wrong: %.9g, and right is %.9Lg within %.2Lg",
                     g->result[i], g->value[i], g->bound[i]);
            return -1;
        }
    return 0;
}

static int check_part(const struct problem *p, const struct values *v, const void *result, int last,
                      char *why, size_t why_size)
{
    static void (*const narrows[])(struct part *, int) = { narrow_gemm, narrow_conv, narrow_softmax };
    struct part part = { *p, v->o };
    struct gathered g = { .count = 0 };
    int failed;

    narrows[p->op](&part, last);
    if ((failed = gather_all(&g, &part, v, result)))
        snprintf(why, why_size, "host memory ran out for the check");
    else {
        oracle_run(g.value, g.bound, &part.p, &part.o,
                   &(struct oracle_inputs){ { g.in[0], g.in[1], g.in[2] }, g.bias, g.mask });
        failed = compare(&g, why, why_size);
    }
    gathered_close(&g);
    return failed;
}

int spot_check(const struct problem *p, const struct values *v, const void *result,
               char *why, size_t why_size)
{
    return check_part(p, v, result, 0, why, why_size) || check_part(p, v, result, 1, why, why_size) ? -1 : 0;
}

/* ---- two results ---- */

/* Products summed for one element of the output. */
static double summands(const struct problem *p)
{
    const double window = (double)p->filter[0] * p->filter[1] * p->filter[2];

    if (p->op == GEMM)
        return (double)p->k;
    if (p->op == SOFTMAX)
        return (double)p->n;
    switch (p->direction) {
    case BACKWARD_DATA:   return (double)p->filters / p->groups * window;
    case BACKWARD_FILTER: return (double)p->images * p->out[0] * p->out[1] * p->out[2];
    default:              return (double)p->c / p->groups * window;
    }
}

/* Where operands may lose their last 13 bits: all products then shrink by up to 2^-9, and each by
 * about 2^-11 more or less than the others.                                                     */
static double cut_off(const struct problem *p, double value)
{
    if (p->type != VN_F32 || p->math != VN_MATH_TF32)
        return 0;
    return 8.0 / 3 * 0x1p-11 * sqrt(summands(p)) * fmax(1, fabs(p->alpha)) + 0x1p-9 * fabs(value);
}

/* Two orders of summing n products of numbers in [-1, 1) differ by about eps n / 3 in the
 * root mean square; eight times that is beyond chance, and one wrong product is far beyond.
 * The softmax itself divides by such a sum, of n positive numbers.                       */
static double tolerance(const struct problem *p, double value)
{
    static const double storage[VN_TYPE_COUNT] = {
        [VN_F32] = FLT_EPSILON, [VN_F16] = 0x1p-10, [VN_BF16] = 0x1p-7, [VN_F64] = DBL_EPSILON };
    const double eps = p->type == VN_F64 ? DBL_EPSILON : FLT_EPSILON;
    const double tiny = p->type == VN_F16 ? 0x1p-24 : 0;                   /* its denormals */
    const double sums = p->op == SOFTMAX && p->direction == FORWARD
                      ? (sqrt((double)p->n) + 4) * fabs(value)
                      : (summands(p) + 4) * fmax(1, fabs(p->alpha));

    return 8.0 / 3 * eps * sums + 2 * storage[p->type] * fabs(value) + tiny + cut_off(p, value);
}

int results_agree(const struct problem *p, const void *ours, const void *theirs, int64_t count,
                  char *why, size_t why_size, const char *name)
{
    for (int64_t i = 0; i < count; i++) {
        const double a = oracle_load(p->type, ours, i), b = oracle_load(p->type, theirs, i);

        if (a == b || fabs(a - b) <= tolerance(p, b))
            continue;
        snprintf(why, why_size, "differs from %s at element %lld: %.9g, and %.9g there", name,
                 (long long)i, a, b);
        return 0;
    }
    return 1;
}
