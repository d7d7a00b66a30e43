/* SPDX-License-Identifier: Apache-2.0
 *
 * softmax.c - the operation softmax, and its gradient.
 */
#include <math.h>

#include "check/oracle.h"
#include "core.h"
#include "language.h"
#include "operands.h"
#include "softmax.h"

/* ---- the language ---- */

static const struct name mask_names[] = {
    { "none", NO_MASK }, { "row", MASK_ROW }, { "full", MASK_FULL }, { NULL, 0 } };

#define AT(member) OWN(struct softmax_problem, member)

static const struct word words[] = {
    { "forward",  offsetof(struct problem, direction), FORWARD,  1 },
    { "backward", offsetof(struct problem, direction), BACKWARD, 0 },
    { "log",      AT(log),                             1,        0 },
    { "causal",   AT(causal),                          1,        0 },
    { NULL, 0, 0, 0 }
};

static const struct key keys[] = {
    KEY_INTEGER("batch", AT(batch), 1, 0, INT64_MAX),
    KEY_INTEGER("inner", AT(inner), 1, 1, INT64_MAX),
    KEY_REAL("scale", AT(scale), 1),
    KEY_NAME("mask", AT(mask), mask_names),
    { .name = NULL }
};

static const struct softmax_problem usual = { .batch = 1, .inner = 1, .scale = 1 };

static int sizes(const struct reader *r, const char *text)
{
    struct softmax_problem *const s = softmax_of(r->p);
    int64_t *const out[] = { &s->rows, &s->n };

    return read_sizes(r, text, 2, out, "ROWSxN", "128x1000");
}

static int complete(const struct reader *r)
{
    const struct softmax_problem *const s = softmax_of(r->p);

    if (s->rows % s->inner)
        return wrong(r, "softmax: inner=%lld does not divide %lld row%s", (long long)s->inner,
                     (long long)s->rows, PLURAL(s->rows));
    if (s->causal && s->inner > 1)
        return wrong(r, "softmax: causal needs the last axis, so not inner=%lld", (long long)s->inner);
    return 0;
}

static void write(struct writer *w, const struct problem *p)
{
    const struct softmax_problem *const s = softmax_of(p);

    write_text(w, "%lldx%lld:%s", (long long)s->rows, (long long)s->n, vn_type_name(p->type));
    write_text(w, "%s%s%s", p->direction == BACKWARD ? ":backward" : "", s->log ? ":log" : "",
               s->causal ? ":causal" : "");
    write_keys(w, keys, p);
}

/* ---- operands ---- */

static const char *const names[OPERANDS] = {
    "the first operand", "the second operand", "the third operand", "the mask" };

/* x y; or backward y dy dx */
static void operands(struct operands *o, const struct problem *p)
{
    const struct softmax_problem *const s = softmax_of(p);
    const int64_t extent[4] = { s->batch, s->rows / s->inner, s->n, s->inner };
    const int     first = s->batch == 1, rank = 4 - first - (s->inner == 1);
    const int     output = p->direction == BACKWARD ? 2 : 1;

    o->outputs = 1u << output;
    for (int i = 0; i <= output; i++)
        o->elements[i] = lay_out(&o->t[i], p, rank, extent + first, NULL);
    if (s->mask)
        o->elements[SOFTMAX_MASK] = lay_out_part(&o->t[SOFTMAX_MASK], p, &o->t[0],
                                                 s->mask == MASK_FULL ? ~0u : s->inner > 1 ? 2u : 1u);
}

static vn_status run(vn_queue *q, const struct problem *p, const struct operands *o)
{
    const struct softmax_problem *const s = softmax_of(p);
    const vn_softmax_options options = { .axis = s->inner > 1, .log = s->log, .scale = s->scale,
                                         .mask = o->t[SOFTMAX_MASK], .causal = s->causal,
                                         .variant = variant_of(p) };

    return p->direction == BACKWARD ? vn_softmax_backward(q, o->t[0], o->t[1], o->t[2], &options)
                                    : vn_softmax(q, o->t[0], o->t[1], &options);
}

static double flops(const struct problem *p)                    /* scale, max, subtract, exp, sum, divide */
{
    const struct softmax_problem *const s = softmax_of(p);

    return (p->direction == BACKWARD ? 5.0 : 6.0) * (double)s->batch * (double)s->rows * (double)s->n;
}

/* ---- checks ---- */

static double summands(const struct problem *p)
{
    return (double)softmax_of(p)->n;
}

/* Forward divides by a sum of n positive numbers. */
static double spread(const struct problem *p, double value)
{
    const double n = summands(p);

    return p->direction == FORWARD ? (sqrt(n) + 4) * fabs(value) : n + 4;
}

/* Of the gradient y (dy - sum y dy), each product y dy may be rounded before it is used, the element's and
 * those of the sum: by half a unit in its last place at most.  The root mean square of a sum of n such errors
 * is at most sqrt(n / 3) u times that of the products, which is 1/3 for numbers in [-1, 1); eight times that
 * is beyond chance.  The gradient of a logarithm has no product.                                        */
static double rounded(const struct problem *p, void *const *in, int64_t at)
{
    static const struct { double unit, tiny; } half[VN_TYPE_COUNT] = {
        [VN_F32] = { 0x1p-24, 0 }, [VN_F16] = { 0x1p-11, 0x1p-25 }, [VN_BF16] = { 0x1p-8, 0 },
        [VN_F64] = { 0x1p-53, 0 } };
    const double y = oracle_load(p->type, in[0], at), dy = oracle_load(p->type, in[1], at);
    const double unit = half[p->type].unit, tiny = half[p->type].tiny;

    if (p->direction == FORWARD || softmax_of(p)->log)
        return 0;
    return fabs(softmax_of(p)->scale) * (unit * fabs(y * dy) + tiny +
                                         8 * fabs(y) * sqrt(summands(p) / 3) * (unit / 3 + tiny));
}

/* Whole rows; what is causal keeps the first ones, since a row's index says what it sees. */
static void narrow_softmax(struct problem *p, struct operands *o, int last)
{
    enum { ROWS = 4 };
    struct softmax_problem *const s = softmax_of(p);
    const int batched = s->batch > 1;
    const struct range l = end_of(s->batch, 1, last);
    const struct range i = end_of(s->rows / s->inner, ROWS, last && !s->causal);

    for (int at = 0; at <= SOFTMAX_MASK; at++) {
        if (batched)
            narrow(&o->t[at], 0, l);
        narrow(&o->t[at], batched, i);
    }
    s->batch = l.count;
    s->rows  = i.count * s->inner;
}

static void shrink(struct problem *p, int shape, int even)
{
    static const int64_t most[SHAPES][2] = { { 37, 515 }, { 3, 70001 }, { 131, 67 }, { 7, 4099 } };
    struct softmax_problem *const s = softmax_of(p);
    const int64_t outer = s->rows / s->inner;

    s->inner = s->inner > 1 ? shrunk(s->inner, 37, shape, even) : 1;
    s->rows  = at_most(outer, most[shape][0]) * s->inner;
    s->n     = shrunk(s->n, most[shape][1] / s->inner + 1, shape, even);
    s->batch = at_most(s->batch, 2);
    s->scale = s->scale > 0 ? tame(s->scale, 1) : 1;
    s->log   = s->log && p->direction == BACKWARD;
}

/* A logarithm. */
static int inexact(const struct problem *p)
{
    return p->direction == FORWARD && softmax_of(p)->log;
}

const struct op op_softmax = {
    .name = "softmax", .operation = &vn__softmax,
    .words = words, .keys = keys, .usual = &usual, .own_size = sizeof usual,
    .directions = 1u << FORWARD | 1u << BACKWARD,
    .read_sizes = sizes, .complete = complete, .write = write,
    .operands = names, .lay_out = operands, .run = run,
    .flops = flops, .by_bytes = 1,
    .oracle = oracle_softmax, .summands = summands, .spread = spread,
    .rounded = rounded, .narrow = narrow_softmax, .shrink = shrink,
    .cases = suite_softmax, .fill = data_fill_softmax, .patterns = softmax_patterns, .has_zeros = 1,
    .inexact = inexact,
};
