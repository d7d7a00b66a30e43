/* SPDX-License-Identifier: Apache-2.0
 *
 * cross_entropy.c - the operation cross-entropy: "cross-entropy:ROWSxCLASSES:TYPE".
 */
#include <math.h>

#include "core.h"
#include "cross_entropy.h"
#include "language.h"
#include "operands.h"

/* ---- the language ---- */

#define AT(member) OWN(struct cross_entropy_problem, member)

static const struct name target_names[] = { { "i32", 0 }, { "i64", 1 }, { NULL, 0 } };

static const struct word words[] = {
    { "loss",    AT(only_loss), 1, 0 },
    { "inplace", AT(in_place),  1, 0 },
    { "weights", AT(weights),   1, 0 },
    { "lse",     AT(lse),       1, 0 },
    { NULL, 0, 0, 0 }
};

static const struct key keys[] = {
    KEY_NAME("targets", AT(wide_targets), target_names),
    KEY_INTEGER("ignore", AT(ignore), 0, 0, INT64_MAX),
    KEY_REAL("smoothing", AT(smoothing), 0),
    KEY_REAL("zloss", AT(z_loss), 0),
    { .name = NULL }
};

static const struct cross_entropy_problem usual;

static int sizes(const struct reader *r, const char *text)
{
    struct cross_entropy_problem *const e = cross_entropy_of(r->p);
    int64_t *const out[] = { &e->rows, &e->classes };

    return read_sizes(r, text, 2, out, "ROWSxCLASSES", "4096x32000");
}

/* In place, x is read and written, as a C with a beta. */
static int complete(const struct reader *r)
{
    const struct cross_entropy_problem *const e = cross_entropy_of(r->p);

    if (e->only_loss && e->in_place)
        return wrong(r, "cross-entropy: inplace is said of the gradient, and loss that there is none");
    if (r->p->beside)
        return wrong(r, "cross-entropy: operands in one buffer have one type; here targets are integers");
    r->p->beta = e->in_place;
    return 0;
}

static void write(struct writer *w, const struct problem *p)
{
    const struct cross_entropy_problem *const e = cross_entropy_of(p);

    write_text(w, "%lldx%lld:%s", (long long)e->rows, (long long)e->classes, vn_type_name(p->type));
    write_text(w, "%s%s%s%s", e->only_loss ? ":loss" : "", e->in_place ? ":inplace" : "",
               e->weights ? ":weights" : "", e->lse ? ":lse" : "");
    write_keys(w, keys, p);
}

/* ---- operands ---- */

static const char *const names[OPERANDS] = { "x", "the targets", "the loss", "the weights", "lse", "dx" };

/* One number for each row, of the type that sums have. */
static int64_t column(vn_tensor *t, const struct problem *p)
{
    const int64_t n = lay_out(t, p, 1, &cross_entropy_of(p)->rows, NULL);

    t->type = p->type == VN_F64 ? VN_F64 : VN_F32;
    return n;
}

static void operands(struct operands *o, const struct problem *p)
{
    const struct cross_entropy_problem *const e = cross_entropy_of(p);
    const int64_t extent[2] = { e->rows, e->classes }, integer[2] = { e->rows, e->wide_targets ? 2 : 1 };
    struct problem integers = *p;

    integers.gap *= integer[1];
    integers.start *= integer[1];
    o->outputs = 1u << ENTROPY_LOSS;
    o->elements[ENTROPY_X] = lay_out(&o->t[ENTROPY_X], p, 2, extent, NULL);
    o->elements[ENTROPY_TARGETS] = lay_out(&o->t[ENTROPY_TARGETS], &integers, 2, integer, NULL);
    o->t[ENTROPY_TARGETS].type = VN_F32;
    o->elements[ENTROPY_LOSS] = column(&o->t[ENTROPY_LOSS], p);
    if (e->weights)
        o->elements[ENTROPY_WEIGHTS] = column(&o->t[ENTROPY_WEIGHTS], p);
    if (e->lse) {
        o->elements[ENTROPY_LSE] = column(&o->t[ENTROPY_LSE], p);
        o->outputs |= 1u << ENTROPY_LSE;
    }
    if (e->in_place)
        o->outputs |= 1u << ENTROPY_X;
    else if (!e->only_loss) {
        o->elements[ENTROPY_DX] = lay_out(&o->t[ENTROPY_DX], p, 2, extent, NULL);
        o->outputs |= 1u << ENTROPY_DX;
    }
}

static vn_status run(vn_queue *q, const struct problem *p, const struct operands *o)
{
    const struct cross_entropy_problem *const e = cross_entropy_of(p);
    const vn_tensor *const t = &o->t[ENTROPY_TARGETS];
    const int64_t each = t->extent[1];
    const vn_ints targets = { t->buffer, t->start / each, t->extent[0], t->stride[0] / each,
                              4 * (int)each, 0 };
    const vn_cross_entropy_options options = {
        .size = sizeof options, .ignore = e->ignore, .smoothing = e->smoothing, .z_loss = e->z_loss,
        .weights = o->t[ENTROPY_WEIGHTS], .lse = o->t[ENTROPY_LSE], .variant = variant_of(p) };

    return vn_cross_entropy(q, o->t[ENTROPY_X], targets, o->t[ENTROPY_LOSS],
                            o->t[e->in_place ? ENTROPY_X : ENTROPY_DX], &options);
}

/* Targets: classes, the lower half of an integer first. */
static double element(const struct problem *p, int operand, int64_t at, double random)
{
    const struct cross_entropy_problem *const e = cross_entropy_of(p);
    const int64_t start = e->wide_targets ? 2 * p->start : p->start;

    if (operand != ENTROPY_TARGETS)
        return random;
    return e->wide_targets && (at - start) % 2 ? 0
         : data_number((int32_t)fmin((random + 1) / 2 * (double)e->classes, (double)e->classes - 1));
}

/* Maximum, subtraction, exponential, sum; multiplication, subtraction. */
static double flops(const struct problem *p)
{
    const struct cross_entropy_problem *const e = cross_entropy_of(p);

    return (e->only_loss ? 4.0 : 6.0) * (double)e->rows * (double)e->classes;
}

/* ---- checks ---- */

static double summands(const struct problem *p)
{
    return (double)cross_entropy_of(p)->classes;
}

static double spread(const struct problem *p, double value)
{
    return sqrt(summands(p)) * (fabs(value) + 1) + 8;
}

static void narrow_rows(struct problem *p, struct operands *o, int last)
{
    const struct range rows = end_of(cross_entropy_of(p)->rows, 4, last);

    for (int i = ENTROPY_X; i <= ENTROPY_DX; i++)
        if (o->t[i].rank)
            narrow(&o->t[i], 0, rows);
    cross_entropy_of(p)->rows = rows.count;
}

static void shrink(struct problem *p, int shape, int even)
{
    static const int64_t most[SHAPES][2] = { { 37, 515 }, { 3, 70001 }, { 131, 67 }, { 7, 4099 } };
    struct cross_entropy_problem *const e = cross_entropy_of(p);

    e->rows = at_most(e->rows, most[shape][0]);
    e->classes = shrunk(e->classes, most[shape][1], shape, even);
    e->smoothing = 0;
    e->z_loss = 0;
}

const struct op op_cross_entropy = {
    .name = "cross-entropy", .operation = &vn__cross_entropy,
    .words = words, .keys = keys, .usual = &usual, .own_size = sizeof usual, .directions = 1u << FORWARD,
    .read_sizes = sizes, .complete = complete, .write = write,
    .operands = names, .lay_out = operands, .run = run, .element = element,
    .flops = flops, .by_bytes = 1,
    .oracle = oracle_cross_entropy, .summands = summands, .spread = spread, .narrow = narrow_rows,
    .shrink = shrink,
    .cases = suite_cross_entropy, .fill = data_fill_cross_entropy, .patterns = cross_entropy_patterns,
    .has_zeros = 1,
};
