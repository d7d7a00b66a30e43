/* SPDX-License-Identifier: Apache-2.0
 *
 * conv.c - convolutions as their definition says.
 */
#include <math.h>

#include "problem/conv.h"
#include "products.h"

/* One walk over all pairs of an output and a filter element serves the three directions:
 * each pair names an element of x, of w and of y, two of which are read.               */
struct taps {
    const struct conv_problem *p;
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
    const struct conv_problem *p = t->p;
    const int dim = 2 + d - (3 - p->spatial);

    if (d == 3) {
        add_tap(t, x, w, y);
        return;
    }
    for (int64_t o = 0; o < p->out[d]; o++)
        for (int64_t f = 0; f < p->filter[d]; f++) {
            const int64_t i = o * p->stride[d] - p->pad_before[d] + f * p->dilation[d];

            if (i >= 0 && i < p->size[d])
                walk_taps(t, d + 1, x + i * t->x->stride[dim], w + f * t->w->stride[dim],
                          y + o * t->y->stride[dim]);
        }
}

static void sum(const struct oracle *c, const struct sums *s)
{
    const struct conv_problem *const p = conv_of(c->p);
    const int   *at = conv_place[c->p->direction];
    struct taps  t = { p, s, &c->o->t[at[0]], &c->o->t[at[1]], &c->o->t[at[2]], { NULL } };
    const int64_t c_each = p->c / p->groups, k_each = p->filters / p->groups;

    for (int i = 0; i < 3; i++)
        t.in[i] = at[i] == 2 ? NULL : c->in[at[i]];
    for (int64_t n = 0; n < p->images; n++)
        for (int64_t k = 0; k < p->filters; k++)
            for (int64_t ch = 0; ch < c_each; ch++)
                walk_taps(&t, 3 - p->spatial,
                          t.x->start + n * t.x->stride[0] + (k / k_each * c_each + ch) * t.x->stride[1],
                          t.w->start + k * t.w->stride[0] + ch * t.w->stride[1],
                          t.y->start + n * t.y->stride[0] + k * t.y->stride[1]);
}

void oracle_conv(const struct oracle *c)
{
    oracle_products(c, sum);
}
