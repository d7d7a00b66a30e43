/* SPDX-License-Identifier: Apache-2.0
 *
 * oracle.c - GEMM, convolution and softmax as their definitions say, and rounding bounds.
 *
 * The bounds are worst cases, by the usual counting (Higham, Accuracy and Stability of
 * Numerical Algorithms, chapters 2 to 4).  u is half an ulp of 1 in the type that sums.
 *
 *   sums         K products added in any order, fused or not, are off by at most
 *                gamma(K) sum |a||b|, with gamma(n) = n u / (1 - n u).  Scaling by alpha
 *                (itself rounded), beta y and the bias are four roundings more.
 *   activation   a function with |f'| <= L hands on L times that, and adds its own: an
 *                exponential within 2 ulp, a division within 2.5, an addition.
 *   store        half an ulp of the type stored.
 *   denormals    a device may take them for 0 in f32 and f64.
 */
#include "oracle.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- numbers -------------------------------------------------------------- */

/* digits of the significand, and the power of two of the smallest normal */
static const struct format { int digits, low; } formats[VN_TYPE_COUNT] = {
    [VN_F32]  = { 24, -126 },
    [VN_F16]  = { 11, -14 },
    [VN_BF16] = { 8, -126 },
    [VN_F64]  = { 53, -1022 },
};

double oracle_largest(vn_type t)
{
    static const double largest[VN_TYPE_COUNT] = {
        [VN_F32] = FLT_MAX, [VN_F16] = 65504, [VN_BF16] = 0x1.fep127, [VN_F64] = DBL_MAX };

    return largest[t];
}

/* 2^e, of a normal number.  Cases are mostly conversions: ldexp() and frexp() are slow. */
static double power(int e)
{
    const uint64_t bits = (uint64_t)(e + 1023) << 52;
    double p;

    memcpy(&p, &bits, sizeof p);
    return p;
}

/* Of a normal number: |v| lies in [2^e, 2^(e + 1)).  Of 0 and denormals: -1023. */
static int exponent(double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof bits);
    return (int)(bits >> 52 & 0x7ff) - 1023;
}

double oracle_round(vn_type t, double v)
{
    const struct format f = formats[t];
    const int e = exponent(v), last = (e < f.low ? f.low : e) - (f.digits - 1);       /* of its last digit */
    double r;

    if (t == VN_F32)
        return (float)v;
    if (t == VN_F64 || v == 0 || !isfinite(v))
        return v;
    r = rint(v * power(-last)) * power(last);
    return fabs(r) > oracle_largest(t) ? copysign(INFINITY, v) : r;
}

static uint16_t half_bits(double v)
{
    const uint16_t sign = signbit(v) ? 0x8000 : 0;
    const double   a = fabs(oracle_round(VN_F16, v));
    const int      e = exponent(a);

    if (isnan(v))
        return sign | 0x7e00;
    if (isinf(a))
        return sign | 0x7c00;
    if (a < 0x1p-14)                                            /* the digits count 2^-24 */
        return (uint16_t)(sign | (uint16_t)(a * 0x1p24));
    return (uint16_t)(sign | (e + 15) << 10 | ((int)(a * power(10 - e)) & 0x3ff));
}

static double half_value(uint16_t h)
{
    const int    e = h >> 10 & 31, digits = h & 0x3ff;
    const double a = e == 31 ? (digits ? NAN : INFINITY)
                   : e == 0  ? digits * 0x1p-24 : (digits | 0x400) * power(e - 25);

    return h & 0x8000 ? -a : a;
}

double oracle_load(vn_type t, const void *base, int64_t at)
{
    uint32_t bits;
    float    f;

    switch (t) {
    case VN_F16:
        return half_value(((const uint16_t *)base)[at]);
    case VN_BF16:
        bits = (uint32_t)((const uint16_t *)base)[at] << 16;
        memcpy(&f, &bits, sizeof f);
        return f;
    case VN_F64:
        return ((const double *)base)[at];
    default:
        return ((const float *)base)[at];
    }
}

void oracle_store(vn_type t, void *base, int64_t at, double v)
{
    uint32_t bits;
    float    f;

    switch (t) {
    case VN_F16:
        ((uint16_t *)base)[at] = half_bits(v);
        break;
    case VN_BF16:
        f = (float)oracle_round(VN_BF16, v);
        memcpy(&bits, &f, sizeof bits);
        ((uint16_t *)base)[at] = (uint16_t)(bits >> 16);
        break;
    case VN_F64:
        ((double *)base)[at] = v;
        break;
    default:
        ((float *)base)[at] = (float)v;
    }
}

void oracle_store_canary(vn_type t, void *base, int64_t at)
{
    const uint64_t i = (uint64_t)at;

    switch (t) {
    case VN_F16:  ((uint16_t *)base)[at] = (uint16_t)(0x7e00 | (i & 0x1ff));                   break;
    case VN_BF16: ((uint16_t *)base)[at] = (uint16_t)(0x7fc0 | (i & 0x3f));                    break;
    case VN_F64:  ((uint64_t *)base)[at] = 0x7ff8000000000000u | (i & 0x7ffffffffffffu);       break;
    default:      ((uint32_t *)base)[at] = 0x7fc00000u | (uint32_t)(i & 0x3fffff);
    }
}

/* ---- views ---------------------------------------------------------------- */

void oracle_each(const vn_tensor *t, oracle_visit *visit, void *context)
{
    int64_t place[VN_RANK] = { 0 }, offset = t->start;
    int     d;

    for (d = 0; d < t->rank; d++)
        if (t->extent[d] == 0)
            return;
    for (;;) {
        visit(context, offset, place);
        for (d = t->rank - 1; d >= 0; d--) {                    /* as an odometer counts */
            offset += t->stride[d];
            if (++place[d] < t->extent[d])
                break;
            offset -= t->extent[d] * t->stride[d];
            place[d] = 0;
        }
        if (d < 0)
            return;
    }
}

static int64_t offset_of(const vn_tensor *t, const int64_t *place)
{
    int64_t at = t->start;

    for (int d = 0; d < t->rank; d++)
        at += (t->extent[d] == 1 ? 0 : place[d]) * t->stride[d];
    return at;
}

/* ---- sums of products ------------------------------------------------------ */

struct sums { long double *sum, *size; };         /* sum of a b, and of |a||b| */

enum { PANEL = 8, DEPTH = 128 };               /* columns and rows of B that are walked at a time */

/* The sums of one row of A with a panel of B, a part of K at a time. */
struct dots { long double sum[PANEL], size[PANEL]; };

static void dots_wide(struct dots *d, const double *x, int64_t step, double panel[][PANEL], int64_t depth)
{
    for (int64_t k = 0; k < depth; k++)
        for (int t = 0; t < PANEL; t++) {
            const long double product = (long double)x[k * step] * panel[k][t];

            d->sum[t]  += product;
            d->size[t] += fabsl(product);
        }
}

/* Of numbers with 24 digits or fewer f64 holds the products, and is off by 2^-29 of what their
 * sums in f32 may be.                                                                        */
static void dots_narrow(struct dots *d, const double *x, int64_t step, double panel[][PANEL], int64_t depth)
{
    double sum[PANEL] = { 0 }, size[PANEL] = { 0 };

    for (int64_t k = 0; k < depth; k++)
        for (int t = 0; t < PANEL; t++) {
            const double product = x[k * step] * panel[k][t];

            sum[t]  += product;
            size[t] += fabs(product);
        }
    for (int t = 0; t < PANEL; t++) {
        d->sum[t]  = sum[t];
        d->size[t] = size[t];
    }
}

/* One panel of one matrix: the offsets are of the matrices, `k` and `j` the panel's first row and column. */
static void panel_sums(const struct sums *s, const struct problem *p, const struct operands *o, const double *a,
                       const double *b, int64_t to, int64_t k, int64_t j)
{
    const int      row = o->t[2].rank - 2, col = row + 1;
    const vn_tensor *const t_a = &o->t[0], *const t_b = &o->t[1], *const t_c = &o->t[2];
    const int64_t  depth = p->k - k < DEPTH ? p->k - k : DEPTH, width = p->n - j < PANEL ? p->n - j : PANEL;
    double panel[DEPTH][PANEL] = { { 0 } };

    for (int64_t i = 0; i < depth; i++)
        for (int64_t t = 0; t < width; t++)
            panel[i][t] = b[(k + i) * t_b->stride[row] + (j + t) * t_b->stride[col]];
    for (int64_t i = 0; i < p->m; i++) {
        const double *x = a + i * t_a->stride[row] + k * t_a->stride[col];
        struct dots   d = { { 0 }, { 0 } };

        (p->type == VN_F64 ? dots_wide : dots_narrow)(&d, x, t_a->stride[col], panel, depth);
        for (int64_t t = 0; t < width; t++) {
            const int64_t at = to + i * t_c->stride[row] + (j + t) * t_c->stride[col];

            s->sum[at]  += d.sum[t];
            s->size[at] += d.size[t];
        }
    }
}

static void gemm_sums(const struct sums *s, const struct problem *p, const struct operands *o,
                      const struct oracle_inputs *in)
{
    const vn_tensor *const a = &o->t[0], *const b = &o->t[1], *const c = &o->t[2];

    for (int64_t l = 0; l < p->batch; l++)
        for (int64_t k = 0; k < p->k; k += DEPTH)
            for (int64_t j = 0; j < p->n; j += PANEL)
                panel_sums(s, p, o, in->t[0] + a->start + (c->rank > 2 && a->extent[0] > 1 ? l * a->stride[0] : 0),
                           in->t[1] + b->start + (c->rank > 2 && b->extent[0] > 1 ? l * b->stride[0] : 0),
                           c->start + (c->rank > 2 ? l * c->stride[0] : 0), k, j);
}

/* One walk over all pairs of an output and a filter element serves the three directions:
 * each pair names an element of x, of w and of y, two of which are read.               */
struct taps {
    const struct problem *p;
    const struct sums    *s;
    const vn_tensor      *x, *w, *y;
    const double         *in[3];                  /* of x, w and y; NULL: the output */
};

static void add_tap(const struct taps *t, int64_t x, int64_t w, int64_t y)
{
    const int64_t     to = !t->in[0] ? x : !t->in[1] ? w : y;
    const long double product = (t->in[0] ? (long double)t->in[0][x] : 1.0L) * (t->in[1] ? t->in[1][w] : 1.0)
                              * (t->in[2] ? t->in[2][y] : 1.0);

    t->s->sum[to]  += product;
    t->s->size[to] += fabsl(product);
}

/* Walks the spatial dimensions from d on; the offsets are of what is fixed so far. */
static void walk_taps(const struct taps *t, int d, int64_t x, int64_t w, int64_t y)
{
    const struct problem *p = t->p;
    const int dim = 2 + d - (3 - p->spatial);

    if (d == 3) {
        add_tap(t, x, w, y);
        return;
    }
    for (int64_t o = 0; o < p->out[d]; o++)
        for (int64_t f = 0; f < p->filter[d]; f++) {
            const int64_t i = o * p->stride[d] - p->pad_before[d] + f * p->dilation[d];

            if (i >= 0 && i < p->size[d])
                walk_taps(t, d + 1, x + i * t->x->stride[dim], w + f * t->w->stride[dim], y + o * t->y->stride[dim]);
        }
}

static void conv_sums(const struct sums *s, const struct problem *p, const struct operands *o,
                      const struct oracle_inputs *in)
{
    static const int place[][3] = { [FORWARD] = { 0, 1, 2 }, [BACKWARD_DATA] = { 2, 1, 0 },
                                    [BACKWARD_FILTER] = { 0, 2, 1 } };        /* of x, w, y */
    const int   *at = place[p->direction];
    struct taps  t = { p, s, &o->t[at[0]], &o->t[at[1]], &o->t[at[2]], { NULL } };
    const int64_t c_each = p->c / p->groups, k_each = p->filters / p->groups;

    for (int i = 0; i < 3; i++)
        t.in[i] = at[i] == 2 ? NULL : in->t[at[i]];
    for (int64_t n = 0; n < p->images; n++)
        for (int64_t k = 0; k < p->filters; k++)
            for (int64_t c = 0; c < c_each; c++)
                walk_taps(&t, 3 - p->spatial,
                          t.x->start + n * t.x->stride[0] + (k / k_each * c_each + c) * t.x->stride[1],
                          t.w->start + k * t.w->stride[0] + c * t.w->stride[1],
                          t.y->start + n * t.y->stride[0] + k * t.y->stride[1]);
}

/* The most products that one output sums. */
static double terms(const struct problem *p)
{
    double n = (double)p->k;

    if (p->op == CONV) {
        n = p->direction == FORWARD ? (double)(p->c / p->groups)
          : p->direction == BACKWARD_DATA ? (double)(p->filters / p->groups) : (double)p->images;
        for (int i = 0; i < 3; i++)
            n *= (double)(p->direction == BACKWARD_FILTER ? p->out[i] : p->filter[i]);
    }
    return n;
}

/* ---- rounding -------------------------------------------------------------- */

static long double unit(vn_type t)                /* of the type that sums: f64, or f32 for the others */
{
    return t == VN_F64 ? 0x1p-53L : 0x1p-24L;
}

static long double tiny(vn_type t)                /* its smallest normal number */
{
    return t == VN_F64 ? 0x1p-1022L : 0x1p-126L;
}

static long double gamma_of(vn_type t, long double n)
{
    return n * unit(t) / (1 - n * unit(t));
}

/* The bound on what is stored, from that on what is computed. */
static long double stored(vn_type t, long double value, long double computed)
{
    const struct format f = formats[t];

    if (t == VN_F32 || t == VN_F64)
        return computed;
    return computed + ldexpl(fabsl(value) + computed, -f.digits) + ldexpl(1, f.low - f.digits);
}

/* ---- activations ------------------------------------------------------------ */

static long double gelu_argument(long double x)
{
    return 1.5957691216057308L * (x + 0.044715L * x * x * x);
}

/* x / (1 + exp(-z)), with its limit 0 where x is far below 0 */
static long double gate(long double x, long double z)
{
    return x < -1e4L ? 0 : x / (1 + expl(-z));
}

static long double activate(vn_activation act, long double x)
{
    switch (act) {
    case VN_RELU:    return x < 0 ? 0 : x;
    case VN_GELU:    return gate(x, gelu_argument(x));
    case VN_SILU:    return gate(x, x);
    case VN_SIGMOID: return 1 / (1 + expl(-x));
    case VN_TANH:    return tanhl(x);
    default:         return x;
    }
}

/* |act(x') - act(x)| <= slope |x' - x|, and the roundings of act itself, in units of
 * act(x): an exponential 4, an addition 1, a division 5; gelu's argument z has 6 of its
 * own, which the exponential turns into 6 |z|.  Past its range an exponential stays
 * where it was, which leaves less than the smallest normal number, times x.            */
static long double activation_bound(const struct problem *p, long double x, long double y, long double before)
{
    static const long double slope[] = { [VN_IDENTITY] = 1, [VN_RELU] = 1, [VN_GELU] = 1.13L, [VN_SILU] = 1.1L,
                                         [VN_SIGMOID] = 0.25L, [VN_TANH] = 1 };
    long double own = 10;

    if (p->act == VN_IDENTITY || p->act == VN_RELU)
        return before;
    if (p->act == VN_GELU)
        own += 6 * fabsl(gelu_argument(x));
    if (y == 0 || isinf(x) || isinf(y))
        own = 0;
    return slope[p->act] * before + own * unit(p->type) * fabsl(y)
         + (isinf(x) ? 0 : (1 + fabsl(x)) * tiny(p->type));
}

/* ---- gemm and convolution ----------------------------------------------------- */

struct finish {
    const struct problem       *p;
    const struct oracle_inputs *in;
    vn_tensor                   bias;             /* with the rank of the output */
    int                         output;
    long double                *value, *bound, terms;
};

static void finish_one(void *context, int64_t at, const int64_t place[VN_RANK])
{
    const struct finish  *f = context;
    const struct problem *p = f->p;
    const long double c = p->beta != 0 ? p->beta * (long double)f->in->t[f->output][at] : 0;
    const long double b = f->bias.rank ? f->in->bias[offset_of(&f->bias, place)] : 0;
    const long double size = fabsl(p->alpha * f->bound[at]);
    const long double x = p->alpha * f->value[at] + c + b;
    const long double y = activate(p->act, x);
    long double e = gamma_of(p->type, f->terms + 4) * (size + fabsl(c) + fabsl(b))
                  + (f->terms + 4) * tiny(p->type) * 4 * (1 + fabsl(p->alpha) + fabsl(p->beta));

    if (p->math == VN_MATH_TF32 && p->type == VN_F32)           /* each operand loses its last 13 bits */
        e += 0x1.01p-9L * size;
    if (isinf(x))                                               /* then so is what is computed */
        e = 0;
    f->value[at] = y;
    f->bound[at] = stored(p->type, y, activation_bound(p, x, y, e));
}

static void clear_one(void *context, int64_t at, const int64_t place[VN_RANK])
{
    const struct sums *s = context;

    (void)place;
    s->sum[at] = s->size[at] = 0;
}

static void run_sums(long double *value, long double *bound, const struct problem *p,
                     const struct operands *o, const struct oracle_inputs *in)
{
    const vn_tensor *y = &o->t[o->output];
    struct sums   s = { value, bound };
    struct finish f = { p, in, o->bias, o->output, value, bound, terms(p) };

    if (o->bias.rank == 1) {                                    /* of a convolution: along the channels */
        f.bias = (vn_tensor){ .rank = y->rank, .start = o->bias.start, .extent = { 1, o->bias.extent[0], 1, 1, 1 },
                              .stride = { 0, o->bias.stride[0] } };
    }
    oracle_each(y, clear_one, &s);
    if (p->alpha != 0)
        (p->op == GEMM ? gemm_sums : conv_sums)(&s, p, o, in);
    oracle_each(y, finish_one, &f);
}

/* ---- softmax ------------------------------------------------------------------ */

/* One row of it, and what it takes to walk the others. */
struct row {
    const struct problem       *p;
    const struct operands      *o;
    const struct oracle_inputs *in;
    long double                *value, *bound;
    int                         axis;             /* dimension */
};

/* z = scale x + mask of an element; it is off by at most 2 u size: two roundings of
 * scale x (none if scale is a power of two), one of the addition (none without mask). */
static long double logit(const struct row *r, const int64_t *place, long double *size)
{
    const long double x = r->p->scale * (long double)r->in->t[0][offset_of(&r->o->t[0], place)];
    const long double m = r->o->mask.rank ? r->in->mask[offset_of(&r->o->mask, place)] : 0;
    int e;

    *size = (fabs(frexp(r->p->scale, &e)) == 0.5 ? 0 : fabsl(x)) + (r->o->mask.rank ? fabsl(x) + fabsl(m) : 0);
    return x + m;
}

static int64_t visible(const struct row *r, const int64_t *place)
{
    return r->p->causal && place[r->axis - 1] + 1 < r->p->n ? place[r->axis - 1] + 1 : r->p->n;
}

struct stats { long double max, sum, size; int poisoned; };

static struct stats row_stats(const struct row *r, int64_t *place, int64_t seen)
{
    struct stats s = { -INFINITY, 0, 0, 0 };
    long double  size, z;

    for (place[r->axis] = 0; place[r->axis] < seen; place[r->axis]++) {
        z = logit(r, place, &size);
        s.poisoned |= isnan(z) || z == INFINITY;
        s.max = z > s.max ? z : s.max;
        s.size = isfinite(size) && size > s.size ? size : s.size;
    }
    for (place[r->axis] = 0; place[r->axis] < seen; place[r->axis]++) {
        z = logit(r, place, &size);
        s.sum += z == -INFINITY ? 0 : expl(z - s.max);
    }
    return s;
}

/* Each z is off by 2 u size, so is the largest; an exponential adds 4 u and the rounding
 * of its argument; a running sum rescales up to n times, 6 u each (an exponential, a
 * product, an addition); the division adds 5 u.  A logarithm turns relative into absolute. */
static long double softmax_bound(const struct row *r, const struct stats *s, long double z, long double y)
{
    const vn_type     t = r->p->type;
    const long double n = (long double)r->p->n, depth = fabsl(z - s->max);

    if (!isfinite(y) || z == -INFINITY)
        return 0;
    if (r->p->log)
        return unit(t) * (10 * s->size + 2 * depth + 2 * fabsl(y) + 6 * n + 4 * logl(n) + 12) + tiny(t);
    return unit(t) * (10 * s->size + depth + 6 * n + 12) * y + 2 * tiny(t);
}

static void softmax_row(void *context, int64_t at, const int64_t where[VN_RANK])
{
    const struct row *r = context;
    int64_t       place[VN_RANK];
    long double   size;

    (void)at;
    memcpy(place, where, sizeof place);

    const int64_t      seen = visible(r, place);
    const struct stats s = row_stats(r, place, seen);

    for (place[r->axis] = 0; place[r->axis] < r->p->n; place[r->axis]++) {
        const int64_t     to = offset_of(&r->o->t[1], place);
        const long double z = place[r->axis] < seen ? logit(r, place, &size) : -INFINITY;
        const long double y = s.poisoned && place[r->axis] < seen ? NAN
                            : z == -INFINITY ? (r->p->log ? -INFINITY : 0)
                            : r->p->log ? z - s.max - logl(s.sum) : expl(z - s.max) / s.sum;

        r->value[to] = y;
        r->bound[to] = z == -INFINITY ? 0 : stored(r->p->type, y, softmax_bound(r, &s, z, y));
    }
}

/* dx = scale y (dy - sum dy y), or scale (dy - exp(y) sum dy): the sum is off by gamma(n)
 * of its size; then a product or an exponential (4), a subtraction, two products.        */
static void backward_row(void *context, int64_t at, const int64_t where[VN_RANK])
{
    const struct row     *r = context;
    const struct problem *p = r->p;
    int64_t     place[VN_RANK];
    long double sum = 0, size = 0;

    (void)at;
    memcpy(place, where, sizeof place);

    const int64_t seen = visible(r, place);

    for (place[r->axis] = 0; place[r->axis] < seen; place[r->axis]++) {
        const long double y  = r->in->t[0][offset_of(&r->o->t[0], place)];
        const long double dy = r->in->t[1][offset_of(&r->o->t[1], place)];
        const long double v  = p->log ? dy : dy * y;

        sum  += v;
        size += fabsl(v);
    }
    for (place[r->axis] = 0; place[r->axis] < p->n; place[r->axis]++) {
        const int64_t     to = offset_of(&r->o->t[2], place);
        const long double y  = r->in->t[0][offset_of(&r->o->t[0], place)];
        const long double dy = r->in->t[1][offset_of(&r->o->t[1], place)];
        const long double w  = p->log ? expl(y) : 1, outer = p->log ? p->scale : p->scale * y;
        const long double e  = gamma_of(p->type, (long double)p->n + 16);
        const int         hidden = place[r->axis] >= seen;
        const long double v = hidden ? 0 : outer * (dy - w * sum);

        r->value[to] = v;
        r->bound[to] = hidden ? 0 : stored(p->type, v, e * fabsl(outer) * (fabsl(dy) + w * size)
                                                      + ((long double)p->n + 4) * 4 * tiny(p->type));
    }
}

static void run_softmax(long double *value, long double *bound, const struct problem *p,
                        const struct operands *o, const struct oracle_inputs *in)
{
    struct row r = { p, o, in, value, bound, o->t[0].rank - 1 - (p->inner > 1) };
    vn_tensor  first = o->t[0];                                 /* the first of each row */

    if (first.extent[r.axis] > 1)
        first.extent[r.axis] = 1;
    oracle_each(&first, p->direction == BACKWARD ? backward_row : softmax_row, &r);
}

void oracle_run(long double *value, long double *bound, const struct problem *p,
                const struct operands *o, const struct oracle_inputs *in)
{
    (p->op == SOFTMAX ? run_softmax : run_sums)(value, bound, p, o, in);
}
