/* SPDX-License-Identifier: Apache-2.0
 *
 * operands.c - views of the operands of a problem, and of parts of them.
 */
#include <string.h>

#include "operands.h"

int64_t lay_out(vn_tensor *t, const struct problem *p, int rank, const int64_t *extent, const int *order)
{
    int64_t step = 1, last = p->start, run;

    *t = (vn_tensor){ .type = p->type, .rank = rank, .start = p->start };
    memcpy(t->extent, extent, (size_t)rank * sizeof extent[0]);
    for (int i = rank - 1; i >= 0; i--) {
        const int d = order ? order[i] : i;

        t->stride[d] = step;
        if (__builtin_mul_overflow(step, extent[d] > 0 ? extent[d] : 1, &run)
            || (i == rank - 1 && __builtin_add_overflow(run, p->gap, &run))
            || __builtin_mul_overflow(step, extent[d] > 0 ? extent[d] - 1 : 0, &step)
            || __builtin_add_overflow(last, step, &last))
            return -1;
        step = run;
    }
    for (int d = 0; d < rank; d++)
        if (extent[d] == 0)
            return p->start;
    return __builtin_add_overflow(last, 1, &last) ? -1 : last;
}

int64_t lay_out_part(vn_tensor *t, const struct problem *p, const vn_tensor *like, unsigned keep)
{
    int64_t extent[VN_RANK];

    for (int d = 0; d < like->rank; d++)
        extent[d] = keep >> (like->rank - 1 - d) & 1 ? like->extent[d] : 1;
    return lay_out(t, p, like->rank, extent, NULL);
}

/* The dimension whose blocks alternate with those of other operands: the contiguous one, or the outermost. */
static int dimension_of(const vn_tensor *t, enum beside beside)
{
    int found = -1;

    for (int d = 0; d < t->rank; d++) {
        if (beside == BESIDE_ROWS ? t->stride[d] != 1 : t->extent[d] < 2 || t->stride[d] == 0)
            continue;
        if (found < 0 || (beside == BESIDE_ROWS ? t->extent[d] > t->extent[found]
                                                : t->stride[d] > t->stride[found]))
            found = d;
    }
    return found;
}

/* The elements of one block, which the strides around it are multiples of; 0: there is none. */
static int64_t width_of(const vn_tensor *t, const struct problem *p, int d)
{
    return d < 0 ? 1 : p->beside == BESIDE_ROWS ? t->extent[d] + p->gap : t->stride[d];
}

/* Spreads the blocks, so that one of each operand fits into `pitch`; returns the view's elements, or -1. */
static int64_t spread(vn_tensor *t, int rows, int d, int64_t width, int64_t pitch)
{
    int64_t last = t->start, span;
    int empty = 0;

    for (int i = 0; i < t->rank; i++) {
        const int is_around = rows ? i != d && width && t->stride[i] % width == 0 : i == d;

        empty |= t->extent[i] == 0;
        if (is_around && __builtin_mul_overflow(t->stride[i] / width, pitch, &t->stride[i]))
            return -1;
        if (__builtin_mul_overflow(t->extent[i] > 0 ? t->extent[i] - 1 : 0, t->stride[i], &span)
            || __builtin_add_overflow(last, span, &last))
            return -1;
    }
    return empty ? t->start : __builtin_add_overflow(last, 1, &last) ? -1 : last;
}

int put_beside(struct operands *o, const struct problem *p)
{
    int64_t pitch = 0, most = 0;

    for (int i = 0; i < o->count; i++) {
        vn_tensor *const t = &o->t[i];

        if (__builtin_add_overflow(t->start, pitch, &t->start)
            || (t->rank && __builtin_add_overflow(pitch, width_of(t, p, dimension_of(t, p->beside)), &pitch)))
            return -1;
    }
    for (int i = 0; i < o->count; i++) {
        vn_tensor *const t = &o->t[i];
        const int d = dimension_of(t, p->beside);
        const int64_t n = spread(t, p->beside == BESIDE_ROWS, d, width_of(t, p, d), pitch);

        if (n < 0)
            return -1;
        most = n > most ? n : most;
    }
    for (int i = 0; i < o->count; i++)
        o->elements[i] = most;
    o->in_one = 1;
    return 0;
}

const char *variant_of(const struct problem *p)
{
    return p->variant[0] ? p->variant : NULL;
}

/* ---- parts that are checked ---- */

struct range end_of(int64_t extent, int64_t most, int last)
{
    const int64_t count = extent < most ? extent : most;

    return (struct range){ last ? extent - count : 0, count };
}

void narrow(vn_tensor *t, int d, struct range r)
{
    if (t->rank <= d || t->extent[d] <= 1)
        return;
    t->start    += r.from * t->stride[d];
    t->extent[d] = r.count;
}

/* ---- smaller problems ---- */

enum { EVEN = 16 };

int64_t shrunk(int64_t size, int64_t most, int shape, int even)
{
    const int64_t n = size > most ? most : shape && size > 2 ? size - 1 : size;

    return even && n > EVEN ? n / EVEN * EVEN : n;
}

int64_t at_most(int64_t size, int64_t most)
{
    return size < most ? size : most;
}

double tame(double v, double usual)
{
    return v == 0 || v == 1 || v == -1 || v == 2 || v == 0.5 ? v : usual;
}
