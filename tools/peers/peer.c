/* SPDX-License-Identifier: Apache-2.0
 *
 * peer.c - the table of peers, and what they share: loading, copies, and gemm as BLAS says it.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "peer.h"
#include "problem/gemm.h"

extern const struct peer peer_onednn, peer_onednn_plain, peer_openblas, peer_clblast, peer_cublas,
                         peer_cudnn, peer_torch;
const struct peer *const peers[] = { &peer_onednn, &peer_onednn_plain, &peer_openblas, &peer_clblast,
                                     &peer_cublas, &peer_cudnn, &peer_torch, NULL };

const struct peer *peer_named(const char *name)
{
    const struct peer *const *it = peers;

    while (*it && strcmp((*it)->name, name))
        it++;
    return *it;
}

int peer_results(const struct peer *peer, void *state, const struct results *to, const struct operands *o)
{
    for (int i = 0; i < o->count; i++)
        if (is_output(o, i) && peer->read(state, i, to->of[i]))
            return -1;
    return 0;
}

int peer_operation(const struct op *const has[], const struct problem *p, const char *lacks,
                   char *why, size_t why_size)
{
    const int place = op_place(has, p->op);

    return place < 0 ? peer_refuse(why, why_size, "%s", lacks) : place;
}

int peer_refuse(char *why, size_t why_size, const char *sentence, ...)
{
    va_list list;

    va_start(list, sentence);
    vsnprintf(why, why_size, sentence, list);
    va_end(list);
    return -1;
}

int peer_load(void **out, const char *const *sonames, const char *package, char *why, size_t why_size)
{
    const char *const *it;

    for (it = sonames; *it; it++)
        if ((*out = dlopen(*it, RTLD_NOW | RTLD_LOCAL)))
            return 0;
    return peer_refuse(why, why_size, "%s is not installed: apt install %s", sonames[0], package);
}

int peer_symbols(void *library, const struct peer_symbol *symbols, char *why, size_t why_size)
{
    for (; symbols->name; symbols++) {
        void *found = dlsym(library, symbols->name);

        if (!found)
            return peer_refuse(why, why_size, "the library has no %s(): it is too old", symbols->name);
        memcpy(symbols->to, &found, sizeof found);     /* C forbids the cast to a function pointer */
    }
    return 0;
}

void *peer_copy(const void *from, int64_t elements, vn_type type)
{
    const size_t bytes = (size_t)elements * vn_type_bytes(type), line = 64;
    void *to;

    if (posix_memalign(&to, line, (bytes + line) / line * line))
        return NULL;
    if (from)
        memcpy(to, from, bytes);
    else
        memset(to, 0, bytes);
    return to;
}

static void place_dimension(char *to, const vn_tensor *t, const char *from, const vn_tensor *f, int d,
                            size_t bytes)
{
    const size_t step = (size_t)(d < t->rank ? t->stride[d] : 0) * bytes;
    const size_t apart = (size_t)(d < t->rank ? f->stride[d] : 0) * bytes;

    if (d == t->rank)
        memcpy(to, from, bytes);
    else if (d == t->rank - 1 && step == bytes && apart == bytes)
        memcpy(to, from, (size_t)t->extent[d] * bytes);
    else
        for (int64_t i = 0; i < t->extent[d]; i++)
            place_dimension(to + (size_t)i * step, t, from + (size_t)i * apart, f, d + 1, bytes);
}

void peer_place(void *to, const vn_tensor *layout, const void *from, const vn_tensor *from_layout)
{
    const size_t bytes = vn_type_bytes(layout->type);

    place_dimension((char *)to + (size_t)layout->start * bytes, layout,
                    (const char *)from + (size_t)from_layout->start * bytes, from_layout, 0, bytes);
}

void peer_read(void *to, const void *from, const vn_tensor *layout)
{
    peer_place(to, layout, from, layout);
}

/* A matrix as BLAS says it.  The smallest leading dimension that BLAS takes is the row's length,
 * though a single row could have any.  -1: neither its rows nor its columns are side by side.  */
static int matrix(struct peer_matrix *out, const vn_tensor *t, int operand)
{
    const int64_t rows = t->extent[t->rank - 2], cols = t->extent[t->rank - 1];
    const int64_t down = t->stride[t->rank - 2], along = t->stride[t->rank - 1];
    const int by_rows = along == 1 || cols <= 1, by_cols = down == 1 || rows <= 1;
    const int trans = by_cols && (!by_rows || (down == 1 && along > 1));
    const int64_t length = trans ? rows : cols, step = trans ? along : down;

    *out = (struct peer_matrix){ t->start, step > length ? step : length, t->rank > 2 ? t->stride[0] : 0,
                                 trans, operand };
    if (out->ld < 1)
        out->ld = 1;
    return by_rows || by_cols ? 0 : -1;
}

static void turn(struct peer_blas *g)
{
    const struct peer_blas was = *g;

    *g = (struct peer_blas){ was.n, was.m, was.k, was.batch, was.b, was.a, was.c };
    g->a.trans = !g->a.trans;
    g->b.trans = !g->b.trans;
    g->c.trans = 0;
}

int peer_blas(struct peer_blas *out, const struct problem *p, const struct operands *o,
              char *why, size_t why_size)
{
    static const struct op *const gemm[] = { &op_gemm, NULL };
    const struct gemm_problem *const of = gemm_of(p);
    struct peer_blas g;

    if (peer_operation(gemm, p, "it has gemm alone", why, why_size) < 0)
        return -1;
    g = (struct peer_blas){ .m = of->m, .n = of->n, .k = of->k, .batch = of->batch };
    if (of->to_f32 || of->residual || of->scale)
        return peer_refuse(why, why_size, "its gemm has one type, no scale, and no residual but C");
    if (p->bias != NO_BIAS || p->act != VN_IDENTITY)
        return peer_refuse(why, why_size, "its gemm has no bias and no activation");
    if (matrix(&g.a, &o->t[0], 0) || matrix(&g.b, &o->t[1], 1) || matrix(&g.c, &o->t[2], 2))
        return peer_refuse(why, why_size, "its gemm needs elements of a row or of a column side by side");
    if (g.c.trans)
        turn(&g);
    *out = g;
    return 0;
}
