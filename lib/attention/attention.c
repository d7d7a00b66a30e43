/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.c - softmax(scale Q K^T + mask) V by heads, and its gradients: check, choose a variant, run it.
 */
#include <math.h>
#include <string.h>

#include "attention.h"

/* ---- launches -------------------------------------------------------------------- */

void vn__attention_begin(struct vn_launch *l, const struct attention *a)
{
    vn__arg_int(l, a->queries);
    vn__arg_int(l, a->keys);
    vn__arg_int(l, a->d);
    vn__arg_int(l, a->dv);
    vn__arg_int(l, a->group);
    vn__arg_int(l, a->causal);
    vn__arg_int(l, a->offset);
    vn__arg_int(l, a->window);
    vn__arg_real(l, a->head.type, a->scale);
    vn__arg_real(l, a->head.type, a->softcap);
    for (int i = 0; i < VIEWS; i++)
        vn__arg_tensor(l, &a->t[i]);
    vn__arg_int(l, a->has_lse);
}

enum { GIVEN_MASK = 1, GIVEN_KEY_LENGTHS = 2, GIVEN_QUERY_LENGTHS = 4, GIVEN_SINKS = 8, GIVEN_LAST = 16 };

/* Integers that there are none of are the queries, which no kernel then reads. */
static void arg_ints(struct vn_launch *l, const vn_ints *t, const struct attention *a)
{
    vn__arg_buffer(l, t->buffer ? t->buffer : a->t[Q].buffer);
}

void vn__attention_more(struct vn_launch *l, const struct attention *a)
{
    const vn_ints *const keys = &a->key_lengths, *const queries = &a->query_lengths;

    vn__arg_int(l, (a->has_mask ? GIVEN_MASK : 0) | (keys->buffer ? GIVEN_KEY_LENGTHS : 0) |
                   (queries->buffer ? GIVEN_QUERY_LENGTHS : 0) | (a->has_sinks ? GIVEN_SINKS : 0) |
                   (a->last ? GIVEN_LAST : 0));
    vn__arg_int(l, a->page);
    vn__arg_int(l, a->page_count);
    arg_ints(l, keys, a);
    arg_ints(l, queries, a);
    arg_ints(l, &a->pages, a);
    vn__arg_buffer(l, a->has_sinks ? a->sinks.buffer : a->t[Q].buffer);
    vn__arg_view(l, (int64_t[8]){ keys->start, keys->stride, queries->start, queries->stride,
                                  a->pages.start, a->pages.stride, a->sinks.start, a->sinks.stride[0] });
}

int vn__attention_head(const struct attention *a)
{
    return (int)VN_CEIL_DIV(a->d > a->dv ? a->d : a->dv, 64) * 64;
}

int vn__attention_has_vectors(const vn_tensor *t)
{
    const int64_t vector = 16 / (int64_t)vn_type_bytes(t->type);
    int has = t->extent[3] % vector == 0 && t->start % vector == 0 &&
              (t->extent[3] == 1 || t->stride[3] == 1);

    for (int d = 0; d < 3; d++)
        has &= t->extent[d] <= 1 || t->stride[d] % vector == 0;
    return has;
}

/* ---- the call -------------------------------------------------------------------- */

enum { FORWARD, BACKWARD };

struct call {
    struct vn_call head;
    vn_tensor      t[VIEWS], sinks, d[GRADIENTS];       /* as given */
    vn_ints        key_lengths, query_lengths, pages;
    double         scale, softcap;
    int64_t        window;
    int            causal, math;
};

/* ---- checks ---------------------------------------------------------------------- */

enum { LARGEST_HEAD = 256 };

static const char *const names[VIEWS] = { "queries", "keys", "values", "out", "options.mask", "options.lse" };

static vn_status check_views(const vn_tensor t[VIEWS], const vn_queue *q, int output)
{
    vn_status s;

    for (int i = Q; i <= OUT; i++) {
        if ((s = vn__check_tensor(&t[i], names[i], q, 4, 4, i == output)))
            return s;
        if (t[i].type != t[Q].type)
            return vn__fail(VN_INVALID, "%s is %s and queries is %s; they need one type", names[i],
                            vn_type_name(t[i].type), vn_type_name(t[Q].type));
    }
    return VN_OK;
}

/* Keys and values in pages are batches of their own number. */
static int is_paged(const struct call *c) { return c->pages.buffer != NULL; }

/* Dimension d of view i must have the extent that view `like` has there. */
static vn_status check_alike(const vn_tensor t[VIEWS], int i, int like, int d)
{
    static const char *const what[] = { "batches", "heads", "rows", "elements in a row" };

    if (t[i].extent[d] == t[like].extent[d])
        return VN_OK;
    return vn__fail(VN_INVALID, "%s has %lld %s; it needs those of %s, %lld", names[i],
                    (long long)t[i].extent[d], what[d], names[like], (long long)t[like].extent[d]);
}

/* paged: see vn_attention(). */
static vn_status check_shapes(const vn_tensor t[VIEWS], int paged)
{
    const struct { int view, like, dimension; } same[] = {
        { K, paged ? K : Q, 0 }, { V, K, 0 }, { OUT, Q, 0 }, { V, K, 1 }, { OUT, Q, 1 }, { V, K, 2 },
        { OUT, Q, 2 },
        { K, Q, 3 }, { OUT, V, 3 } };
    const int64_t heads = t[Q].extent[1], shared = t[K].extent[1];
    vn_status s;

    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        if ((s = check_alike(t, same[i].view, same[i].like, same[i].dimension)))
            return s;
    if (shared == 0 ? heads != 0 : heads % shared != 0)
        return vn__fail(VN_INVALID, "queries has %lld heads and keys %lld; it needs a multiple of them",
                        (long long)heads, (long long)shared);
    for (int i = Q; i <= V; i += V - Q)
        if (t[i].extent[3] < 1 || t[i].extent[3] > LARGEST_HEAD)
            return vn__fail(t[i].extent[3] < 1 ? VN_INVALID : VN_UNSUPPORTED,
                            "%s has %lld elements in a row; it needs 1 to %d", names[i],
                            (long long)t[i].extent[3], LARGEST_HEAD);
    if (t[Q].extent[2] > INT32_MAX / 2 || t[K].extent[2] > INT32_MAX / 2)
        return vn__fail(VN_UNSUPPORTED, "queries has %lld rows and keys %lld; at most %d are supported",
                        (long long)t[Q].extent[2], (long long)t[K].extent[2], INT32_MAX / 2);
    return VN_OK;
}

static vn_status check_options(const struct call *c)
{
    vn_status s;

    if ((s = vn__check_enum(c->causal, VN_CAUSAL_COUNT, "options.causal")) ||
        (s = vn__check_enum(c->math, VN_MATH_COUNT, "options.math")))
        return s;
    if (c->math == VN_MATH_BITWISE)
        return vn__fail(VN_UNSUPPORTED, "options.math is VN_MATH_BITWISE; attention needs another: each of "
                        "its kernels sums in an order of its own");
    if (c->window < 0)
        return vn__fail(VN_INVALID, "options.window is %lld; it needs 0 or more", (long long)c->window);
    if (c->window && c->causal == VN_CAUSAL_NONE)
        return vn__fail(VN_INVALID, "options.window is %lld and options.causal VN_CAUSAL_NONE; a window "
                        "needs VN_CAUSAL_LAST or VN_CAUSAL_FIRST", (long long)c->window);
    if (!isfinite(c->scale))
        return vn__fail(VN_INVALID, "options.scale is %g; it needs a finite number", c->scale);
    if (!isfinite(c->softcap) || c->softcap < 0)
        return vn__fail(VN_INVALID, "options.softcap is %g; it needs 0 or a positive number", c->softcap);
    return VN_OK;
}

/* One or more pages for each batch, and as many for all of them. */
static vn_status check_pages(const struct call *c, const vn_queue *q)
{
    const int64_t batches = c->t[Q].extent[0], count = c->pages.count;
    int64_t keys;

    if (count < 0 || (batches ? count % batches : count))
        return vn__fail(VN_INVALID, "options.pages has %lld integers; it needs a multiple of the %lld "
                        "batches of queries", (long long)count, (long long)batches);
    if (c->t[K].extent[2] < 1)
        return vn__fail(VN_INVALID, "keys has %lld rows; in pages it needs one or more",
                        (long long)c->t[K].extent[2]);
    if (count && c->t[K].extent[0] < 1)
        return vn__fail(VN_INVALID, "keys has no batches; options.pages needs a page or more");
    if (c->t[K].extent[0] > INT32_MAX || !vn__mul(&keys, batches ? count / batches : 0, c->t[K].extent[2]) ||
        keys > INT32_MAX / 2)
        return vn__fail(VN_UNSUPPORTED, "options.pages has %lld integers for %lld pages of %lld keys; at "
                        "most %d keys of a batch are supported", (long long)count,
                        (long long)c->t[K].extent[0], (long long)c->t[K].extent[2], INT32_MAX / 2);
    return vn__check_ints(&c->pages, "options.pages", q, count, "page of a batch", 0);
}

static vn_status check_sinks(const struct call *c, const vn_queue *q)
{
    const vn_type type = c->t[Q].type == VN_F64 ? VN_F64 : VN_F32;
    vn_status s;

    if ((s = vn__check_tensor(&c->sinks, "options.sinks", q, 1, 1, 0)))
        return s;
    if (c->sinks.type != type)
        return vn__fail(VN_INVALID, "options.sinks is %s; beside queries of %s it needs %s",
                        vn_type_name(c->sinks.type), vn_type_name(c->t[Q].type), vn_type_name(type));
    if (c->sinks.extent[0] != c->t[Q].extent[1])
        return vn__fail(VN_INVALID, "options.sinks has extent %lld; it needs one for each head of queries, "
                        "%lld", (long long)c->sinks.extent[0], (long long)c->t[Q].extent[1]);
    return VN_OK;
}

/* What the options give beside tensors of the scores' shape. */
static vn_status check_more(const struct call *c, const vn_queue *q)
{
    const int64_t batches = c->t[Q].extent[0];
    vn_status s = VN_OK;

    if (c->key_lengths.buffer)
        s = vn__check_ints(&c->key_lengths, "options.key_lengths", q, batches, "batch", 0);
    if (!s && c->query_lengths.buffer)
        s = vn__check_ints(&c->query_lengths, "options.query_lengths", q, batches, "batch", 0);
    if (!s && is_paged(c))
        s = check_pages(c, q);
    return !s && vn__given(&c->sinks) ? check_sinks(c, q) : s;
}

/* The keys that a batch may have. */
static int64_t keys_of(const struct call *c)
{
    const int64_t batches = c->t[Q].extent[0], rows = c->t[K].extent[2];

    return !is_paged(c) ? rows : batches ? c->pages.count / batches * rows : 0;
}

/* Of the shape B x H x Sq x Sk; its buffer is never looked at. */
static vn_tensor scores_of(const vn_tensor t[VIEWS], int64_t keys)
{
    vn_tensor scores = t[Q];

    scores.extent[3] = keys;
    return scores;
}

static vn_status check_mask(vn_tensor t[VIEWS], const vn_queue *q, int64_t keys)
{
    const vn_tensor scores = scores_of(t, keys);
    vn_status s;

    if ((s = vn__check_tensor(&t[MASK], names[MASK], q, 1, 4, 0)))
        return s;
    if (t[MASK].type != t[Q].type)
        return vn__fail(VN_INVALID, "options.mask is %s; it needs the type of queries, %s",
                        vn_type_name(t[MASK].type), vn_type_name(t[Q].type));
    return vn__broadcast(&t[MASK], names[MASK], &scores, "the scores (B x H x Sq x Sk)");
}

static vn_status check_lse(const vn_tensor t[VIEWS], const vn_queue *q, int output)
{
    const vn_type type = t[Q].type == VN_F64 ? VN_F64 : VN_F32;
    vn_status s;

    if ((s = vn__check_tensor(&t[LSE], names[LSE], q, 3, 3, output)))
        return s;
    if (t[LSE].type != type)
        return vn__fail(VN_INVALID, "options.lse is %s; beside queries of %s it needs %s",
                        vn_type_name(t[LSE].type), vn_type_name(t[Q].type), vn_type_name(type));
    for (int d = 0; d < 3; d++)
        if ((s = check_alike(t, LSE, Q, d)))
            return s;
    return VN_OK;
}

/* Neither output may share memory with an input or with the other. */
static vn_status check_overlaps(const vn_tensor t[VIEWS], const struct attention *a, const struct call *c)
{
    const int there[VIEWS] = { 1, 1, 1, 1, a->has_mask, a->has_lse };
    const struct { const char *name; const vn_ints *at; } ints[] = {
        { "options.key_lengths", &c->key_lengths }, { "options.query_lengths", &c->query_lengths },
        { "options.pages", &c->pages } };
    vn_status s = VN_OK;

    for (int out = OUT; out <= LSE && !s; out += LSE - OUT) {
        for (int i = Q; there[out] && i <= MASK && !s; i++)
            if (there[i] && i != out)
                s = vn__check_overlap(&t[out], names[out], &t[i], names[i]);
        for (int i = 0; there[out] && i < 3 && !s; i++)
            if (ints[i].at->buffer) {
                const vn_tensor view = vn__ints_view(ints[i].at);

                s = vn__check_overlap(&t[out], names[out], &view, ints[i].name);
            }
        if (!s && there[out] && vn__given(&c->sinks))
            s = vn__check_overlap(&t[out], names[out], &c->sinks, "options.sinks");
    }
    return s;
}

/* Of gradients; sinks have none, and no influence but by lse. */
static vn_status check_backward(const vn_tensor t[VIEWS], const struct attention *a, const vn_queue *q,
                                const struct call *c)
{
    const char *const given = c->key_lengths.buffer ? "key_lengths"
                            : c->query_lengths.buffer ? "query_lengths" : is_paged(c) ? "pages" : NULL;

    return given ? vn__fail(VN_UNSUPPORTED, "options.%s has a buffer; gradients take no lengths and no pages",
                            given)
         : vn__check_attention_backward(t, c->d, a, q);
}

static vn_status check(vn_tensor t[VIEWS], struct attention *a, const vn_queue *q, const struct call *c)
{
    vn_status s;

    if ((s = check_views(t, q, a->backward ? -1 : OUT)) || (s = check_shapes(t, is_paged(c))) ||
        (s = check_options(c)) || (s = check_more(c, q)) ||
        (a->has_mask && (s = check_mask(t, q, keys_of(c)))) ||
        (a->has_lse && (s = check_lse(t, q, !a->backward))))
        return s;
    return a->backward ? check_backward(t, a, q, c) : check_overlaps(t, a, c);
}

/* ---- the problem ----------------------------------------------------------------- */

/* The sum of v, limited to 0 and n, over all v up to x. */
static double sum_to(double x, double n)
{
    return x <= 0 ? 0 : x <= n ? x * (x + 1) / 2 : n * (n + 1) / 2 + (x - n) * n;
}

double vn__attention_pairs(int64_t queries, int64_t keys, int causal, int64_t offset, int64_t window)
{
    const double n = (double)keys, last = (double)(queries + offset), before = (double)offset;
    const double w = (double)window;
    const double ends = sum_to(last, n) - sum_to(before, n);

    return !causal ? (double)queries * n
         : window  ? ends - (sum_to(last - w, n) - sum_to(before - w, n)) : ends;
}

static void describe(struct attention *a)
{
    const double heads = (double)a->batches * (double)a->heads, size = (double)vn_type_bytes(a->head.type);
    int wide = 0;

    for (int i = 0; i < VIEWS; i++)
        wide |= vn__is_wide(&a->t[i]);
    a->head.op = "attention";
    a->head.epilogue = (struct vn_epilogue){ .type_c = (int)a->head.type, .type_residual = (int)a->head.type,
                                             .type_bias = (int)a->head.type };
    a->head.bucket = a->keys <= 512 ? VN_SMALL : a->keys <= 2048 ? VN_MEDIUM : VN_LARGE;
    a->head.wide = wide;
    a->head.flops = 2 * heads * (double)(a->d + a->dv)
                  * vn__attention_pairs(a->queries, a->keys, a->causal, a->offset, a->window);
    a->head.bytes = heads * size * (double)a->queries * (double)(a->d + a->dv)
                  + heads / (double)a->group * size * (double)a->keys * (double)(a->d + a->dv);
}

/* 1 / sqrt(v), for v from 1 to LARGEST_HEAD: by Newton's method from below, since libm is not linked. */
static double inverse_root(double v)
{
    double root = 1 / v;

    for (int i = 0; i < 24; i++)
        root *= 1.5 - 0.5 * v * root * root;
    return root;
}

static vn_status pose(void *problem, int *done, const vn_queue *q, const void *given)
{
    const struct call *const c = given;
    struct attention *const a = problem;
    vn_tensor t[VIEWS];
    vn_status s;

    memcpy(t, c->t, sizeof t);
    a->backward = c->head.function == BACKWARD;
    a->has_mask = vn__given(&t[MASK]);
    a->has_lse = vn__given(&t[LSE]);
    if ((s = check(t, a, q, c)))
        return s;
    a->head.type = t[Q].type;
    a->batches = t[Q].extent[0];
    a->heads = t[Q].extent[1];
    a->queries = t[Q].extent[2];
    a->keys = keys_of(c);
    a->d = t[Q].extent[3];
    a->dv = t[V].extent[3];
    if ((*done = a->backward ? vn__poses_no_gradient(a, c->d) : a->batches * a->heads * a->queries == 0))
        return VN_OK;
    a->group = t[K].extent[1] ? a->heads / t[K].extent[1] : 0;
    a->causal = c->causal != VN_CAUSAL_NONE;
    a->last = c->causal == VN_CAUSAL_LAST;
    a->offset = c->causal == VN_CAUSAL_LAST ? a->keys - a->queries : 0;
    a->window = c->window < a->queries + a->keys ? c->window : 0;
    a->scale = c->scale == 0 ? inverse_root((double)a->d) : c->scale;
    a->softcap = c->softcap;
    a->units = q->device->facts.units;
    if ((a->has_sinks = vn__given(&c->sinks)))
        a->sinks = c->sinks;
    a->key_lengths = c->key_lengths;
    a->query_lengths = c->query_lengths;
    a->pages = c->pages;
    a->page = is_paged(c) ? t[K].extent[2] : 0;
    a->page_count = is_paged(c) ? t[K].extent[0] : 0;
    if (!a->has_mask)
        t[MASK] = t[Q];
    if (!a->has_lse)
        t[LSE] = t[OUT];
    memcpy(a->t, t, sizeof t);
    describe(a);
    if (a->backward)
        vn__describe_attention_backward(a);
    return VN_OK;
}

const struct vn_operation vn__attention = {
    .name = "attention",
    .functions = { [FORWARD] = "vn_attention", [BACKWARD] = "vn_attention_backward" },
    .variants = vn__attention_variants,
    .call_size = sizeof(struct call), .problem_size = sizeof(struct attention), .pose = pose,
};

/* What is not given is no bytes of a call. */
static vn_ints ints_of(const vn_ints *t)
{
    static const vn_ints none;

    return t->buffer ? *t : none;
}

static vn_status attention(vn_queue *q, int function, const vn_tensor t[OUT + 1],
                           const vn_tensor d[GRADIENTS], const vn_attention_options *o)
{
    static const vn_attention_options usual;
    vn_status s;

    o = o ? o : &usual;
    if (o->size && o->size != sizeof *o) {
        s = vn__enter(vn__attention.functions[function]);
        return s ? s : vn__fail(VN_INVALID, "options.size is %zu; it needs 0 or %zu", o->size, sizeof *o);
    }

    struct call call = {
        .head = { &vn__attention, o->variant, function, 0 },
        .t = { [Q] = t[Q], [K] = t[K], [V] = t[V], [OUT] = t[OUT], [MASK] = o->mask, [LSE] = o->lse },
        .scale = o->scale, .softcap = o->softcap, .window = o->window, .causal = (int)o->causal,
        .math = (int)o->math,
        .key_lengths = ints_of(&o->key_lengths), .query_lengths = ints_of(&o->query_lengths),
        .pages = ints_of(&o->pages), .sinks = o->sinks,
    };

    memcpy(call.d, d, sizeof call.d);
    return vn__operate(q, &call.head);
}

vn_status vn_attention(vn_queue *q, vn_tensor queries, vn_tensor keys, vn_tensor values, vn_tensor out,
                       const vn_attention_options *o)
{
    static const vn_tensor none[GRADIENTS];
    const vn_tensor t[] = { [Q] = queries, [K] = keys, [V] = values, [OUT] = out };

    return attention(q, FORWARD, t, none, o);
}

vn_status vn_attention_backward(vn_queue *q, vn_tensor queries, vn_tensor keys, vn_tensor values,
                                vn_tensor out, vn_tensor d_out, vn_tensor d_queries, vn_tensor d_keys,
                                vn_tensor d_values, const vn_attention_options *o)
{
    const vn_tensor t[] = { [Q] = queries, [K] = keys, [V] = values, [OUT] = out };
    const vn_tensor d[] = { [D_OUT] = d_out, [D_Q] = d_queries, [D_K] = d_keys, [D_V] = d_values };

    return attention(q, BACKWARD, t, d, o);
}
