/* SPDX-License-Identifier: Apache-2.0
 *
 * peer.c - the table of peers, and what they share: loading, copies, and gemm as BLAS says it.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "peer.h"

extern const struct peer peer_onednn, peer_openblas, peer_clblast;
const struct peer *const peers[] = { &peer_onednn, &peer_openblas, &peer_clblast, NULL };

const struct peer *peer_named(const char *name)
{
    const struct peer *const *it = peers;

    while (*it && strcmp((*it)->name, name))
        it++;
    return *it;
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

static void read_dimension(char *to, const char *from, const vn_tensor *t, int d, size_t bytes)
{
    const size_t step = (size_t)(d < t->rank ? t->stride[d] : 0) * bytes;
    int64_t i;

    if (d == t->rank)
        memcpy(to, from, bytes);
    else if (d == t->rank - 1 && step == bytes)
        memcpy(to, from, (size_t)t->extent[d] * bytes);
    else
        for (i = 0; i < t->extent[d]; i++)
            read_dimension(to + (size_t)i * step, from + (size_t)i * step, t, d + 1, bytes);
}

void peer_read(void *to, const void *from, const vn_tensor *layout)
{
    const size_t bytes = vn_type_bytes(layout->type), start = (size_t)layout->start * bytes;

    read_dimension((char *)to + start, (const char *)from + start, layout, 0, bytes);
}

/* The smallest leading dimension that BLAS takes is the row's length: a single row has any. */
static int leading(int64_t *ld, int *trans, const vn_tensor *t)
{
    const int64_t rows = t->extent[t->rank - 2], cols = t->extent[t->rank - 1];
    const int64_t down = t->stride[t->rank - 2], along = t->stride[t->rank - 1];

    *trans = !(along == 1 || cols <= 1) || (down == 1 && along > 1);
    *ld = *trans ? along : down;
    if ((*trans ? down != 1 && rows > 1 : along != 1 && cols > 1))
        return -1;
    if ((*trans ? cols : rows) <= 1)
        *ld = *trans ? rows : cols;
    if (*ld < 1)
        *ld = 1;
    return 0;
}

int peer_blas(struct peer_blas *out, const struct problem *p, const struct operands *o,
              char *why, size_t why_size)
{
    const vn_tensor *a = &o->t[0], *b = &o->t[1], *c = &o->t[2];
    struct peer_blas g = { p->m, p->n, p->k, p->batch > 0 ? p->batch : 1,
                           { a->start, 0, a->rank > 2 ? a->stride[0] : 0, 0 },
                           { b->start, 0, b->rank > 2 ? b->stride[0] : 0, 0 },
                           { c->start, 0, c->rank > 2 ? c->stride[0] : 0, 0 } };

    if (p->op != GEMM)
        return peer_refuse(why, why_size, "it has gemm alone");
    if (p->bias != NO_BIAS || p->act != VN_IDENTITY)
        return peer_refuse(why, why_size, "its gemm has no bias and no activation");
    if (leading(&g.a.ld, &g.a.trans, a) || leading(&g.b.ld, &g.b.trans, b)
        || leading(&g.c.ld, &g.c.trans, c) || g.c.trans)
        return peer_refuse(why, why_size, "its gemm needs elements of a row or of a column side by side");
    *out = g;
    return 0;
}

/* Pools of threads spin for a while after their work in case more follows: libgomp for some
 * milliseconds, OpenBLAS for 25, Intel's OpenMP for 200.  When runs of several libraries alternate
 * on the same cores, that is time stolen from the next one.  Sleeping at once would be as unfair,
 * since waking costs a small problem dearly.  So they may spin for a fraction of a millisecond,
 * longer than the gap between two runs of one library; peer_settle() waits until that is over.
 * The libraries read these once, when loaded; what the user has set stays.                        */
void peer_calm(void)
{
    static const char *const settings[][2] = {
        { "GOMP_SPINCOUNT",          "20000" },     /* turns of a loop with a pause */
        { "OPENBLAS_THREAD_TIMEOUT", "20" },        /* two to this power cycles */
        { "KMP_BLOCKTIME",           "1" },         /* milliseconds */
    };
    size_t i;

    for (i = 0; i < sizeof settings / sizeof *settings; i++)
        setenv(settings[i][0], settings[i][1], 0);
}

void peer_settle(void)
{
    const struct timespec while_they_spin = { 0, 3000000 };

    nanosleep(&while_they_spin, NULL);
}
