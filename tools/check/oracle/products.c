/* SPDX-License-Identifier: Apache-2.0
 *
 * products.c - what follows the sums of products of gemm and conv: alpha, beta, bias, activation.
 */
#include <math.h>

#include "check/oracle.h"
#include "products.h"

enum { SUM = 2, BIAS = 3, RESIDUAL = 4, SCALE = 5 };            /* operands */

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
 * where it was, which leaves less than the smallest normal number, times x.
 * A device's own exponential and reciprocal, in units in the last place 2 and 1, need no more:
 * cl/tile/activation.h.  Where 16 bits are stored, their argument is rounded twice.    */
static long double activation_bound(const struct problem *p, vn_type stored, long double x, long double y,
                                    long double before)
{
    static const long double slope[] = { [VN_IDENTITY] = 1, [VN_RELU] = 1, [VN_GELU] = 1.13L,
                                         [VN_SILU] = 1.1L, [VN_SIGMOID] = 0.25L, [VN_TANH] = 1 };
    long double own = 10;

    if (p->act == VN_IDENTITY || p->act == VN_RELU)
        return before;
    if (p->act == VN_GELU)
        own += 6 * fabsl(gelu_argument(x));
    else if (vn_type_bytes(stored) == 2)
        own += 3 * fabsl(x);
    if (y == 0 || isinf(x) || isinf(y))
        own = 0;
    return slope[p->act] * before + own * oracle_unit(p->type) * fabsl(y)
         + (isinf(x) ? 0 : (1 + fabsl(x)) * oracle_tiny(p->type));
}

/* ---- the epilogue ------------------------------------------------------------- */

struct finish {
    const struct oracle *c;
    vn_tensor            bias, residual;          /* with the rank of the output; 0: none; the output */
    const vn_tensor     *scale;                   /* NULL: none */
    vn_type              stored;
    long double         *value, *bound, terms;
};

static void finish_one(void *context, int64_t at, const int64_t place[VN_RANK])
{
    const struct finish  *f = context;
    const struct problem *p = f->c->p;
    const long double added = p->beta == 0 ? 0
                            : f->residual.rank ? f->c->in[RESIDUAL][oracle_offset(&f->residual, place)]
                            : f->c->in[SUM][at];
    const long double c = p->beta != 0 ? p->beta * added : 0;
    const long double scale = f->scale ? f->c->in[SCALE][oracle_offset(f->scale, place)] : 1;
    const long double alpha = p->alpha * scale;
    const long double b = f->bias.rank ? f->c->in[BIAS][oracle_offset(&f->bias, place)] : 0;
    const long double size = fabsl(alpha * f->bound[at]);
    const long double x = alpha * f->value[at] + c + b;
    const long double y = activate(p->act, x);
    long double e = oracle_gamma(p->type, f->terms + 5) * (size + fabsl(c) + fabsl(b))
                  + (f->terms + 4) * oracle_tiny(p->type) * 4 * (1 + fabsl(p->alpha)) * (1 + fabsl(scale))
                    * (1 + fabsl(p->beta));

    if (p->math == VN_MATH_TF32 && p->type == VN_F32)           /* each operand loses its last 13 bits */
        e += 0x1.01p-9L * size;
    if (isinf(x))                                               /* then so is what is computed */
        e = 0;
    f->value[at] = y;
    f->bound[at] = oracle_stored(f->stored, y, activation_bound(p, f->stored, x, y, e));
}

static void clear_one(void *context, int64_t at, const int64_t place[VN_RANK])
{
    const struct sums *s = context;

    (void)place;
    s->sum[at] = s->size[at] = 0;
}

/* One of rank 1, of a convolution, goes along the channels. */
static vn_tensor side_of(const vn_tensor *t, const vn_tensor *y)
{
    return t->rank != 1 ? *t : (vn_tensor){ .rank = y->rank, .start = t->start,
                                            .extent = { 1, t->extent[0], 1, 1, 1 },
                                            .stride = { 0, t->stride[0] } };
}

void oracle_products(const struct oracle *c, void (*sum)(const struct oracle *c, const struct sums *s))
{
    const vn_tensor *y = &c->o->t[SUM], *scale = &c->o->t[SCALE];
    struct sums   s = { c->value[SUM], c->bound[SUM] };
    struct finish f = { c, side_of(&c->o->t[BIAS], y), side_of(&c->o->t[RESIDUAL], y),
                        scale->rank ? scale : NULL, y->type, s.sum, s.size, c->p->op->summands(c->p) };

    oracle_each(y, clear_one, &s);
    if (c->p->alpha != 0)
        sum(c, &s);
    oracle_each(y, finish_one, &f);
}
