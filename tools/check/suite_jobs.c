/* SPDX-License-Identifier: Apache-2.0
 *
 * suite_jobs.c - the cases of an operation on several threads, each with a variant at a time.
 *
 * The threads share the device and its kernels; a queue and memory each has for itself.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

/* What the threads share, under the lock. */
struct pool {
    pthread_mutex_t          lock;
    struct suite            *to;                  /* who asked, and is told of each group */
    const struct op         *op;
    const char              *next;                /* the variant whose turn it is; NULL: none is left */
};

struct worker { pthread_t thread; struct suite *suite; };

static void tell(const struct suite *s, const struct suite_group *g)
{
    struct pool *const pool = s->context;

    pthread_mutex_lock(&pool->lock);
    pool->to->reported++;
    if (pool->to->group_done)
        pool->to->group_done(pool->to, g);
    pthread_mutex_unlock(&pool->lock);
}

static const char *take_variant(struct pool *pool)
{
    const char *taken;

    pthread_mutex_lock(&pool->lock);
    if ((taken = pool->next))
        pool->next = suite_next_variant(pool->to, pool->op, taken);
    pthread_mutex_unlock(&pool->lock);
    return taken;
}

static void *work(void *suite)
{
    struct suite *const s = suite;
    struct pool  *const pool = s->context;

    while ((s->variant = take_variant(pool))) {
        s->specials = 0;                          /* which of them run must not depend on who runs them */
        pool->op->cases(s);
    }
    return NULL;
}

/* What one thread counted, to the rest. */
static void add(struct suite *to, struct suite *from)
{
    struct suite_group *const all = realloc(to->groups,
                                            (size_t)(to->group_count + from->group_count + 1) * sizeof *all);

    if (!all)
        abort();                                  /* a test program without a few kilobytes */
    memcpy(all + to->group_count, from->groups, (size_t)from->group_count * sizeof *all);
    to->groups       = all;
    to->group_count += from->group_count;
    to->failed      += from->failed;
    to->passed_over += from->passed_over;
    to->refused     += from->refused;
    to->vacuous     += from->vacuous;
    for (int kind = 0; kind < KIND_COUNT; kind++)
        to->count[kind] += from->count[kind];
    for (int t = 0; t < VN_TYPE_COUNT; t++)
        to->worst[t] = from->worst[t] > to->worst[t] ? from->worst[t] : to->worst[t];
}

vn_status suite_run(struct suite *s, const struct op *op, int jobs)
{
    struct pool    pool = { .to = s, .op = op, .next = suite_next_variant(s, op, NULL) };
    struct worker *w;
    vn_status      status = VN_OK;
    int            n = 0;

    if (jobs < 2) {
        op->cases(s);
        return VN_OK;
    }
    if (!(w = calloc((size_t)jobs, sizeof *w)))
        return VN_NO_MEMORY;
    pthread_mutex_init(&pool.lock, NULL);
    while (n < jobs && !(status = suite_open_beside(&w[n].suite, s))) {
        w[n].suite->context    = &pool;
        w[n].suite->group_done = tell;
        if (pthread_create(&w[n].thread, NULL, work, w[n].suite)) {
            suite_close(w[n].suite);
            status = VN_FAILED;
            break;
        }
        n++;
    }
    for (int i = 0; i < n; i++) {
        pthread_join(w[i].thread, NULL);
        add(s, w[i].suite);
        suite_close(w[i].suite);
    }
    pthread_mutex_destroy(&pool.lock);
    free(w);
    return n ? VN_OK : status;                    /* some threads are enough */
}
