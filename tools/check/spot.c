/* SPDX-License-Identifier: Apache-2.0
 *
 * spot.c - checks the first and the last part of the outputs.
 *
 * The problem is narrowed (op->narrow) to those operands that the part depends on: some rows of A and
 * columns of B, one image and one filter, a few rows of a softmax.  That is again a problem,
 * small enough for the oracle, with its rounding bounds.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include "oracle.h"
#include "spot.h"

struct part { struct problem p; struct operands o; };

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
    struct oracle right;
    double       *in[OPERANDS], *result[OPERANDS];
    int64_t       count[OPERANDS];    /* of result */
};

static int gather_all(struct gathered *g, struct part *s, const struct values *v,
                      const struct results *result)
{
    int64_t unused;

    g->right.p = &s->p;
    g->right.o = &s->o;
    for (int i = 0; i < s->o.count; i++) {
        vn_tensor output = s->o.t[i];

        if (!output.rank)
            continue;
        if (!(g->right.in[i] = g->in[i] = gather(&s->o.t[i], v->operand[i], &unused)))
            return -1;
        if (!is_output(&s->o, i))
            continue;
        g->result[i]      = gather(&output, result->of[i], &g->count[i]);
        g->right.value[i] = calloc((size_t)g->count[i] + 1, sizeof *g->right.value[i]);
        g->right.bound[i] = calloc((size_t)g->count[i] + 1, sizeof *g->right.bound[i]);
        if (!g->result[i] || !g->right.value[i] || !g->right.bound[i])
            return -1;
    }
    return 0;
}

static void gathered_close(struct gathered *g)
{
    for (int i = 0; i < OPERANDS; i++) {
        free(g->in[i]);
        free(g->result[i]);
        free(g->right.value[i]);
        free(g->right.bound[i]);
    }
}

static int compare(const struct gathered *g, char *why, size_t why_size)
{
    for (int i = 0; i < OPERANDS; i++)
        for (int64_t at = 0; at < g->count[i]; at++) {
            const double      is = g->result[i][at];
            const long double value = g->right.value[i][at], bound = g->right.bound[i][at];

            if (is == value || fabsl(is - value) <= bound)
                continue;
            snprintf(why, why_size, "wrong: %.9g, and right is %.9Lg within %.2Lg", is, value, bound);
            return -1;
        }
    return 0;
}

static int check_part(const struct problem *p, const struct values *v, const struct results *result, int last,
                      char *why, size_t why_size)
{
    struct part part = { *p, v->o };
    struct gathered g = { .count = { 0 } };
    int failed;

    p->op->narrow(&part.p, &part.o, last);
    if ((failed = gather_all(&g, &part, v, result)))
        snprintf(why, why_size, "host memory ran out for the check");
    else {
        oracle_run(&g.right);
        failed = compare(&g, why, why_size);
    }
    gathered_close(&g);
    return failed;
}

int spot_check(const struct problem *p, const struct values *v, const struct results *result,
               char *why, size_t why_size)
{
    return check_part(p, v, result, 0, why, why_size) || check_part(p, v, result, 1, why, why_size) ? -1 : 0;
}

/* ---- two results ---- */

/* Where operands may lose their last 13 bits: all products then shrink by up to 2^-9, and each by
 * about 2^-11 more or less than the others.                                                     */
static double cut_off(const struct problem *p, double value)
{
    if (p->type != VN_F32 || p->math != VN_MATH_TF32)
        return 0;
    return 8.0 / 3 * 0x1p-11 * sqrt(p->op->summands(p)) * fmax(1, fabs(p->alpha)) + 0x1p-9 * fabs(value);
}

static const double storage[VN_TYPE_COUNT] = {
    [VN_F32] = FLT_EPSILON, [VN_F16] = 0x1p-10, [VN_BF16] = 0x1p-7, [VN_F64] = DBL_EPSILON };

/* Two orders of summing n products of numbers in [-1, 1) differ by about eps n / 3 in the
 * root mean square; eight times that is beyond chance, and one wrong product is far beyond.
 * An operation of another kind says its own.                                            */
static double tolerance(const struct problem *p, double value)
{
    const double eps = p->type == VN_F64 ? DBL_EPSILON : FLT_EPSILON;
    const double tiny = p->type == VN_F16 ? 0x1p-24 : 0;                   /* its denormals */
    /* A library may round A B, and what it adds to that, to the type before it goes on. */
    const double added = p->op->has_epilogue ? fabs(p->beta) + (p->bias != NO_BIAS) : 0;
    const double sums = p->op->spread ? p->op->spread(p, value)
                                      : (p->op->summands(p) + 4) * fmax(1, fabs(p->alpha));

    return 8.0 / 3 * eps * sums + 2 * storage[p->type] * (fabs(value) + added) + tiny + cut_off(p, value);
}

static double root_mean_square(vn_type type, const void *from, int64_t begin, int64_t end)
{
    double sum = 0;

    for (int64_t at = begin; at < end; at++) {
        const double v = oracle_load(type, from, at);

        sum += v * v;
    }
    return sqrt(sum / (double)(end - begin));
}

/* An element is a sum of values with weights, each rounded to the type by half a unit at most.  In the root
 * mean square that is off by u / sqrt(3) times the sum's own, which the elements of a row have in common;
 * two results differ by sqrt(2) times that, and eight times as much is beyond chance.                    */
static double of_weights(const struct problem *p, const struct operands *o, const struct results *ours,
                         const struct results *theirs, int i, int64_t at)
{
    const int64_t width = p->op->weighted ? p->op->weighted(p, i) : 0, begin = width ? at - at % width : 0;
    const int64_t end = begin + width < o->elements[i] ? begin + width : o->elements[i];

    if (!width)
        return 0;
    return 8 * sqrt(2.0 / 3) * storage[p->type] / 2 *
           fmin(root_mean_square(o->t[i].type, ours->of[i], begin, end),
                root_mean_square(o->t[i].type, theirs->of[i], begin, end));
}

/* The first element from `at` on, or `count`, where two f32 results are further apart than `least`. */
static int64_t next_apart(const float *a, const float *b, int64_t at, int64_t count, double least)
{
    while (at < count && (a[at] == b[at] || fabs((double)a[at] - b[at]) <= least))
        at++;
    return at;
}

int results_agree(const struct problem *p, const struct operands *o, const struct results *ours,
                  const struct results *theirs, void *const *in, char *why, size_t why_size,
                  const char *name)
{
    const int is_rounded = in && p->op->rounded;
    const double least = p->op->spread ? 0 : tolerance(p, 0);       /* the bound grows with the value */

    for (int i = 0; i < o->count; i++)
        for (int64_t at = 0; is_output(o, i) && at < o->elements[i]; at++) {
            if (o->t[i].type == VN_F32
                && (at = next_apart(ours->of[i], theirs->of[i], at, o->elements[i], least)) == o->elements[i])
                break;

            const double a = oracle_load(o->t[i].type, ours->of[i], at),
                         b = oracle_load(o->t[i].type, theirs->of[i], at);

            if (a == b || fabs(a - b) <= least)
                continue;

            const double most = tolerance(p, b) + (is_rounded ? p->op->rounded(p, in, at) : 0);

            if (fabs(a - b) <= most || fabs(a - b) <= most + of_weights(p, o, ours, theirs, i, at))
                continue;
            snprintf(why, why_size, "differs from %s at element %lld: %.9g, and %.9g there", name,
                     (long long)at, a, b);
            return 0;
        }
    return 1;
}
