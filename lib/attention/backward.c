/* SPDX-License-Identifier: Apache-2.0
 *
 * backward.c - the gradients of attention: what is checked, and what each row of queries needs beforehand.
 */
#include "backward.h"

/* ---- checks ---------------------------------------------------------------------- */

static const char *const names[VIEWS] = { "queries", "keys", "values", "out", "options.mask", "options.lse" };
static const char *const gradient_names[GRADIENTS] = { "d_out", "d_queries", "d_keys", "d_values" };
static const int gradient_of[GRADIENTS] = { OUT, Q, K, V };

static vn_status check_gradient(const vn_tensor d[GRADIENTS], int i, const vn_tensor t[VIEWS],
                                const vn_queue *q)
{
    static const char *const what[] = { "batches", "heads", "rows", "elements in a row" };
    const vn_tensor *const of = &t[gradient_of[i]];
    vn_status s = vn__check_tensor(&d[i], gradient_names[i], q, 4, 4, i != D_OUT);

    if (s)
        return s;
    if (d[i].type != of->type)
        return vn__fail(VN_INVALID, "%s is %s; it needs the type of %s, %s", gradient_names[i],
                        vn_type_name(d[i].type), names[gradient_of[i]], vn_type_name(of->type));
    for (int k = 0; k < 4; k++)
        if (d[i].extent[k] != of->extent[k])
            return vn__fail(VN_INVALID, "%s has %lld %s; it needs those of %s, %lld", gradient_names[i],
                            (long long)d[i].extent[k], what[k], names[gradient_of[i]],
                            (long long)of->extent[k]);
    return VN_OK;
}

/* No gradient may share memory with an input or with another gradient. */
static vn_status check_overlaps(const vn_tensor t[VIEWS], const vn_tensor d[GRADIENTS], int i,
                                const struct attention *a)
{
    vn_status s;

    for (int k = Q; k < VIEWS; k++)
        if ((k != MASK || a->has_mask) &&
            (s = vn__check_overlap(&d[i], gradient_names[i], &t[k], names[k])))
            return s;
    for (int k = D_OUT; k < i; k++)
        if (vn__given(&d[k]) && (s = vn__check_overlap(&d[i], gradient_names[i], &d[k], gradient_names[k])))
            return s;
    return VN_OK;
}

vn_status vn__check_attention_backward(const vn_tensor t[VIEWS], const vn_tensor d[GRADIENTS],
                                       const struct attention *a, const vn_queue *q)
{
    int wanted = 0;
    vn_status s;

    if (!a->has_lse && vn__elements(&t[Q]) > 0)
        return vn__fail(VN_INVALID, "options.lse is not there; gradients need it as vn_attention() left it");
    if ((s = check_gradient(d, D_OUT, t, q)))
        return s;
    for (int i = D_Q; i <= D_V; i++) {
        wanted += vn__given(&d[i]) || (d[i].rank > 0 && vn__elements(&d[i]) == 0);
        if (!vn__given(&d[i]))
            continue;
        if ((s = check_gradient(d, i, t, q)) || (s = check_overlaps(t, d, i, a)))
            return s;
    }
    return wanted ? VN_OK
         : vn__fail(VN_INVALID, "d_queries, d_keys and d_values are not there; one of them at least must be");
}

/* ---- the problem ----------------------------------------------------------------- */

int vn__poses_no_gradient(struct attention *a, const vn_tensor d[GRADIENTS])
{
    int64_t elements = 0;

    for (int i = D_OUT; i <= D_V; i++) {
        const int there = vn__given(&d[i]);

        a->gradient[i] = there ? d[i] : d[D_OUT];
        if (i == D_OUT || !there)
            continue;
        a->wanted |= 1 << i;
        elements += vn__elements(&d[i]);
    }
    return elements == 0;
}

/* 2.5 times the flops of forward, as in the literature; each operand is moved once. */
void vn__describe_attention_backward(struct attention *a)
{
    a->head.flops *= 2.5;
    a->head.bytes = 0;
    for (int i = Q; i < VIEWS; i++)
        if (i != MASK || a->has_mask)
            a->head.bytes += (double)vn__elements(&a->t[i]) * (double)vn_type_bytes(a->t[i].type);
    for (int i = D_OUT; i < GRADIENTS; i++) {
        if (i == D_OUT || a->wanted >> i & 1)
            a->head.bytes += (double)vn__elements(&a->gradient[i]) * (double)vn_type_bytes(a->head.type);
        a->head.wide |= vn__is_wide(&a->gradient[i]);
    }
}

/* ---- statistics of rows ------------------------------------------------------------ */

const char *vn__attention_statistics(struct statistics *out, const struct attention *a, int64_t start,
                                     int64_t rows)
{
    int64_t heads;

    out->start = start;
    out->pitch = VN_CEIL_DIV(a->queries, rows) * rows;
    return vn__mul(&heads, 2 * a->batches, a->heads) && vn__mul(&out->elements, heads, out->pitch) &&
           out->elements <= INT64_MAX / 64 ? NULL : "two numbers for each row of queries overflow";
}

size_t vn__attention_statistics_bytes(const struct statistics *s, const struct attention *a)
{
    return (size_t)(s->start + s->elements) * (a->head.type == VN_F64 ? sizeof(double) : sizeof(float));
}

vn_status vn__run_attention_statistics(vn_queue *q, const struct vn_choice *it, const struct attention *a,
                                       const struct statistics *s, int in_powers_of_2, vn_buffer *to)
{
    enum { ROWS = 8, ITEMS = 128 };             /* of a work-group */
    struct vn_launch l = { .groups = { VN_CEIL_DIV(s->pitch, ROWS), a->heads, a->batches }, .items = ITEMS };

    if (s->elements == 0)
        return VN_OK;
    vn__arg_int(&l, a->queries);
    vn__arg_int(&l, a->dv);
    vn__arg_tensor(&l, &a->t[OUT]);
    vn__arg_tensor(&l, &a->gradient[D_OUT]);
    vn__arg_tensor(&l, &a->t[LSE]);
    vn__arg_real(&l, a->head.type, in_powers_of_2 ? 1.4426950408889634074 : 1);
    vn__arg_buffer(&l, to);
    vn__arg_int(&l, s->start);
    vn__arg_int(&l, s->pitch);
    vn__arg_int(&l, a->heads);
    return vn__launch(q, it, 0, &l);
}

void vn__attention_backward_begin(struct vn_launch *l, const struct attention *a, const struct statistics *s,
                                  vn_buffer *statistics)
{
    vn__arg_int(l, a->queries);
    vn__arg_int(l, a->keys);
    vn__arg_int(l, a->d);
    vn__arg_int(l, a->dv);
    vn__arg_int(l, a->group);
    vn__arg_int(l, a->offset);
    vn__arg_int(l, a->window);
    vn__arg_real(l, a->head.type, a->scale);
    vn__arg_buffer(l, statistics);
    vn__arg_int(l, s->start);
    vn__arg_int(l, s->pitch);
    vn__arg_int(l, a->heads);
}
