/* SPDX-License-Identifier: Apache-2.0
 *
 * overlap.c - whether two views share memory, and whether two elements of one view do.
 *
 * An element of a view lies at start + sum of i_d stride_d, 0 <= i_d < extent_d.  Two views share an element
 * where such a sum of the one equals one of the other.  With j_d counted from the last element instead of the
 * first, both sums stand on one side, and the question is whether
 *
 *     c_1 x_1 + ... + c_n x_n = target,    0 <= x_i <= most_i,    c_i > 0
 *
 * has a solution: a bounded knapsack.  It is decided by a search from the largest coefficient to the
 * smallest, which leaves out what the smaller ones cannot reach, by their sum and by their greatest common
 * divisor.  Where all strides together nest, as those of views of one tensor do, at most two values of each x
 * remain.  A search that takes more than STEPS steps is given up: then the answer is that they may overlap.
 */
#include "core.h"

enum { TERMS = 2 * VN_RANK + 2, STEPS = 1 << 14 };
enum answer { DISJOINT, SHARED, UNDECIDED };

struct term {
    int64_t c, most;
    int64_t reach, divisor;       /* of this term and all behind it: the largest sum, the common divisor */
    int64_t period, inverse;      /* x is determined modulo period by the terms behind this one */
    int     is_dense;             /* the sums from here on are all multiples of the divisor, up to reach */
};

struct sum { int count, steps, overflows; int64_t target; struct term term[TERMS + 1]; };

/* ---- setting up a sum ------------------------------------------------------------- */

/* Adds a term, in the order of coefficients, the largest first.  Equal ones are one term. */
static void add(struct sum *s, int64_t c, int64_t most)
{
    int at = 0;

    if (c == 0 || most == 0)
        return;
    while (at < s->count && s->term[at].c > c)
        at++;
    if (at < s->count && s->term[at].c == c) {
        s->overflows |= !vn__add(&s->term[at].most, s->term[at].most, most);
        return;
    }
    for (int i = s->count++; i > at; i--)
        s->term[i] = s->term[i - 1];
    s->term[at] = (struct term){ .c = c, .most = most };
}

/* Where a coefficient is q times another whose x reaches q - 1, both together are one term. */
static void join(struct sum *s)
{
    for (int j = s->count - 1; j > 0; j--)
        for (int i = j - 1; i >= 0 && !s->overflows; i--) {
            const int64_t q = s->term[i].c / s->term[j].c;
            int64_t more;

            if (s->term[i].c % s->term[j].c || s->term[j].most < q - 1)
                continue;
            s->overflows |= !vn__mul(&more, q, s->term[i].most) ||
                            !vn__add(&s->term[j].most, s->term[j].most, more);
            for (int k = i; k < s->count - 1; k++)
                s->term[k] = s->term[k + 1];
            s->count--;
            i = --j;                            /* it may now reach what it did not before */
        }
}

/* What the terms behind each one can reach. */
static void prepare(struct sum *s)
{
    s->term[s->count] = (struct term){ .is_dense = 1 };
    for (int i = s->count - 1; i >= 0 && !s->overflows; i--) {
        struct term *const t = &s->term[i], *const behind = t + 1;
        int64_t span = 0;

        t->divisor = vn__common_divisor(t->c, behind->divisor);
        s->overflows |= !vn__mul(&span, t->c, t->most) || !vn__add(&t->reach, span, behind->reach);
        t->is_dense = !behind->divisor || (behind->is_dense && t->divisor == behind->divisor &&
                                           t->c - behind->reach <= t->divisor);
        t->period = behind->divisor ? behind->divisor / t->divisor : 0;
        t->inverse = t->period ? vn__inverse(t->c / t->divisor, t->period) : 0;
    }
}

/* ---- the search --------------------------------------------------------------------- */

/* The least x >= low that leaves a multiple of what the terms behind are multiples of; 0: overflow. */
static int first_of(int64_t *x, const struct term *t, int64_t target, int64_t low)
{
    int64_t at;

    if (t->period <= 1) {
        *x = low;
        return 1;
    }
    if (!vn__mul(&at, target / t->divisor % t->period, t->inverse))
        return 0;
    at %= t->period;
    return vn__add(x, low, ((at - low % t->period) % t->period + t->period) % t->period);
}

static enum answer search(struct sum *s, int i, int64_t target)
{
    const struct term *const t = &s->term[i], *const behind = t + 1;
    int64_t low, high, x;

    if (target < 0 || target > t->reach || (t->divisor && target % t->divisor))
        return DISJOINT;
    if (target == 0 || t->is_dense)
        return SHARED;
    low = target > behind->reach ? VN_CEIL_DIV(target - behind->reach, t->c) : 0;
    high = target / t->c < t->most ? target / t->c : t->most;
    if (!first_of(&x, t, target, low))
        return UNDECIDED;
    for (; x <= high; x += t->period ? t->period : 1) {
        const enum answer a = ++s->steps > STEPS ? UNDECIDED : search(s, i + 1, target - x * t->c);

        if (a != DISJOINT)
            return a;
        if (t->period > high - x)
            break;
    }
    return DISJOINT;
}

static enum answer decide(struct sum *s)
{
    join(s);
    prepare(s);
    return s->overflows ? UNDECIDED : search(s, 0, s->target);
}

/* ---- two views ------------------------------------------------------------------------ */

static int is_same_memory(const vn_buffer *a, const vn_buffer *b)
{
    return a == b || (a->memory && a->memory == b->memory);
}

/* By how many bytes b's first element lies behind a's; 0: overflow. */
static int distance(int64_t *out, const vn_tensor *a, const vn_tensor *b, int64_t a_size, int64_t b_size)
{
    int64_t at_a, at_b;

    return vn__mul(&at_a, a->start, a_size) && vn__mul(&at_b, b->start, b_size) &&
           vn__add(&at_a, at_a, a->buffer->at) && vn__add(&at_b, at_b, b->buffer->at) &&
           !__builtin_sub_overflow(at_b, at_a, out);
}

/* The terms of a view whose elements are `scale` units long. */
static void add_view(struct sum *s, const vn_tensor *t, int64_t scale, int from_the_last)
{
    int64_t c = 0, span = 0;

    for (int d = 0; d < t->rank; d++) {
        s->overflows |= !vn__mul(&c, t->stride[d], scale) || !vn__mul(&span, c, t->extent[d] - 1);
        add(s, c, t->extent[d] - 1);
        if (from_the_last)
            s->overflows |= !vn__add(&s->target, s->target, span);
    }
}

/* All is counted in units that divide both elements and the distance: one element, as a rule.  Of elements of
 * several units, any two units may meet.                                                                   */
static enum answer answer_of(const vn_tensor *a, const vn_tensor *b)
{
    const int64_t a_size = (int64_t)vn_type_bytes(a->type), b_size = (int64_t)vn_type_bytes(b->type);
    struct sum s = { 0 };
    int64_t bytes, unit;

    if (!is_same_memory(a->buffer, b->buffer))
        return DISJOINT;
    if (!distance(&bytes, a, b, a_size, b_size))
        return UNDECIDED;
    unit = vn__common_divisor(vn__common_divisor(a_size, b_size),
                              bytes < 0 ? -(bytes % (a_size * b_size)) : bytes);
    s.target = bytes / unit;
    add_view(&s, a, a_size / unit, 0);
    add_view(&s, b, b_size / unit, 1);
    add(&s, 1, a_size / unit - 1 + b_size / unit - 1);
    s.overflows |= !vn__add(&s.target, s.target, b_size / unit - 1);
    return decide(&s);
}

vn_status vn__check_overlap(const vn_tensor *a, const char *a_name, const vn_tensor *b, const char *b_name)
{
    if (!a->buffer || !b->buffer || !vn__elements(a) || !vn__elements(b))
        return VN_OK;
    switch (answer_of(a, b)) {
    case DISJOINT:
        return VN_OK;
    case SHARED:
        return vn__fail(VN_INVALID, "%s overlaps %s; it needs memory of its own", a_name, b_name);
    default:
        return vn__fail(VN_INVALID, "%s may overlap %s: their strides do not nest, and %d steps do not "
                        "decide it; it needs memory of its own, or strides that nest", a_name, b_name, STEPS);
    }
}

/* ---- one view ---------------------------------------------------------------------------- */

/* Whether two elements of it that differ along dimension d, and along none before it, lie in one place: a
 * difference of at least 1 along d is made up for by differences of either sign along those behind.      */
static enum answer repeats_along(const vn_tensor *t, int d)
{
    struct sum s = { .target = t->stride[d] };

    if (t->extent[d] < 2)
        return DISJOINT;
    if (!t->stride[d])
        return SHARED;
    add(&s, t->stride[d], t->extent[d] - 2);
    s.target += (t->extent[d] - 2) * t->stride[d];      /* no overflow: the view is inside its buffer */
    for (int i = d + 1; i < t->rank; i++) {
        const int64_t most = t->extent[i] - 1;

        if (t->stride[i] == 0)
            continue;
        add(&s, t->stride[i], most);
        add(&s, t->stride[i], most);
        s.overflows |= !vn__add(&s.target, s.target, most * t->stride[i]);
    }
    return decide(&s);
}

/* Where each stride exceeds what the smaller ones span, no two elements meet; this finds the first that does
 * not, or -1, and what it must exceed.                                                                   */
static int not_nested(int64_t *reach, const vn_tensor *t)
{
    int order[VN_RANK], n = 0;

    *reach = 0;
    for (int i = 0; i < t->rank; i++) {
        if (t->extent[i] == 1)
            continue;

        int at = n++;

        for (; at > 0 && t->stride[order[at - 1]] > t->stride[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (int j = 0; j < n; j++) {
        const int i = order[j];

        if (t->stride[i] <= *reach)
            return i;
        *reach += (t->extent[i] - 1) * t->stride[i];    /* no overflow: the view is inside its buffer */
    }
    return -1;
}

vn_status vn__check_distinct(const vn_tensor *t, const char *name)
{
    int64_t reach;
    const int i = not_nested(&reach, t);
    enum answer a = DISJOINT;

    for (int d = 0; i >= 0 && d < t->rank && a == DISJOINT; d++)
        a = repeats_along(t, d);
    if (a == DISJOINT)
        return VN_OK;
    return vn__fail(VN_INVALID, "%s has stride %lld along dimension %d, so that its elements %soverlap; "
                    "an output needs a stride above %lld there", name, (long long)t->stride[i], i,
                    a == SHARED ? "" : "may ", (long long)reach);
}
