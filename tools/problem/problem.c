/* SPDX-License-Identifier: Apache-2.0
 *
 * problem.c - the operations, and what is asked of a problem whichever its operation is.
 */
#include <string.h>

#include "operands.h"

#define OP(name) &op_##name,
const struct op *const ops[] = {
#include "ops.h"
    NULL
};
#undef OP

const struct op *op_named(const char *name)
{
    for (const struct op *const *o = ops; *o; o++)
        if (!strcmp((*o)->name, name))
            return *o;
    return NULL;
}

int op_place(const struct op *const list[], const struct op *op)
{
    for (int i = 0; list[i]; i++)
        if (list[i] == op)
            return i;
    return -1;
}

const char *op_list(char out[128])
{
    size_t used = 0;

    for (const struct op *const *o = ops; *o && used < 128; o++)
        used += (size_t)snprintf(out + used, 128 - used, "%s%s", o == ops ? "" : ", ", (*o)->name);
    return out;
}

/* ---- operands ---- */

int problem_operands(struct operands *out, const struct problem *p)
{
    memset(out, 0, sizeof *out);
    p->op->lay_out(out, p);
    for (int i = 0; i < OPERANDS; i++)
        if (out->elements[i] < 0)
            return -1;
        else if (out->t[i].rank)
            out->count = i + 1;
    if (p->beside && put_beside(out, p))
        return -1;
    while (!is_output(out, out->output))
        out->output++;
    return 0;
}

vn_status problem_pack(vn_queue *q, const struct problem *p, struct operands *o)
{
    return p->op->pack ? p->op->pack(q, p, o) : VN_OK;
}

vn_status problem_run(vn_queue *q, const struct problem *p, const struct operands *o)
{
    return p->op->run(q, p, o);
}

/* ---- work ---- */

static double extents_of(const vn_tensor *t)
{
    double n = t->rank ? 1 : 0;

    for (int d = 0; d < t->rank; d++)
        n *= (double)(t->stride[d] == 0 ? 1 : t->extent[d]);
    return n;
}

double problem_flops(const struct problem *p)
{
    return p->op->flops(p);
}

struct amount problem_amount(const struct problem *p)
{
    struct amount w = { .flops = problem_flops(p) };
    struct operands o;

    if (problem_operands(&o, p))
        return w;

    const int by_beta = o.residual ? o.residual : o.output;     /* what beta multiplies */

    for (int i = 0; i < o.count; i++) {
        const double bytes = extents_of(&o.t[i]) * (double)vn_type_bytes(o.t[i].type);

        if (i == by_beta ? p->beta != 0 : !is_output(&o, i))
            w.read += bytes;
        w.written += is_output(&o, i) ? bytes : 0;
    }
    return w;
}

double problem_bytes(const struct problem *p)
{
    const struct amount w = problem_amount(p);

    return w.read + w.written;
}
