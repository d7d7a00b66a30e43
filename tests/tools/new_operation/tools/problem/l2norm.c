/* SPDX-License-Identifier: Apache-2.0
 *
 * l2norm.c - the operation l2norm: "l2norm:ROWSxN:TYPE".
 */
#include "core.h"
#include "l2norm.h"
#include "language.h"
#include "operands.h"

static const struct word words[] = { { NULL, 0, 0, 0 } };
static const struct key keys[] = { { .name = NULL } };
static const struct l2norm_problem usual;

static int sizes(const struct reader *r, const char *text)
{
    struct l2norm_problem *const l = l2norm_of(r->p);
    int64_t *const out[] = { &l->rows, &l->n };

    return read_sizes(r, text, 2, out, "ROWSxN", "128x1000");
}

static void write(struct writer *w, const struct problem *p)
{
    const struct l2norm_problem *const l = l2norm_of(p);

    write_text(w, "%lldx%lld:%s", (long long)l->rows, (long long)l->n, vn_type_name(p->type));
}

static const char *const names[OPERANDS] = { "x", "y" };

static void operands(struct operands *o, const struct problem *p)
{
    const int64_t extent[2] = { l2norm_of(p)->rows, l2norm_of(p)->n };

    o->outputs = 1u << L2NORM_Y;
    o->elements[L2NORM_X] = lay_out(&o->t[L2NORM_X], p, 2, extent, NULL);
    o->elements[L2NORM_Y] = lay_out(&o->t[L2NORM_Y], p, 1, extent, NULL);
}

static vn_status run(vn_queue *q, const struct problem *p, const struct operands *o)
{
    return vn_l2norm(q, o->t[L2NORM_X], o->t[L2NORM_Y], variant_of(p));
}

static double flops(const struct problem *p)
{
    return 2.0 * (double)l2norm_of(p)->rows * (double)l2norm_of(p)->n;
}

static double summands(const struct problem *p)
{
    return (double)l2norm_of(p)->n;
}

static void narrow_rows(struct problem *p, struct operands *o, int last)
{
    const struct range rows = end_of(l2norm_of(p)->rows, 4, last);

    narrow(&o->t[L2NORM_X], 0, rows);
    narrow(&o->t[L2NORM_Y], 0, rows);
    l2norm_of(p)->rows = rows.count;
}

static void shrink(struct problem *p, int shape, int even)
{
    static const int64_t most[SHAPES][2] = { { 37, 515 }, { 3, 7001 }, { 131, 67 }, { 7, 4099 } };
    struct l2norm_problem *const l = l2norm_of(p);

    l->rows = at_most(l->rows, most[shape][0]);
    l->n    = shrunk(l->n, most[shape][1], shape, even);
}

const struct op op_l2norm = {
    .name = "l2norm", .operation = &vn__l2norm,
    .words = words, .keys = keys, .usual = &usual, .own_size = sizeof usual, .directions = 1u << FORWARD,
    .read_sizes = sizes, .write = write,
    .operands = names, .lay_out = operands, .run = run,
    .flops = flops, .by_bytes = 1,
    .oracle = oracle_l2norm, .summands = summands, .narrow = narrow_rows, .shrink = shrink,
    .cases = suite_l2norm, .fill = data_fill_l2norm, .patterns = l2norm_patterns,
};
