/* SPDX-License-Identifier: Apache-2.0
 *
 * suite_jobs.c - the groups of several operations and problems, one after another or on several threads.
 *
 * The threads share the device and its kernels; a queue and memory each has for itself.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "suite.h"

enum { ALL = 0, NONE = -1 };                      /* of suite.only */

/* What the threads share, under the lock. */
struct pool {
    pthread_mutex_t          lock;
    struct suite            *to;                  /* who asked, and is told of each group */
    const struct suite_part *parts;
    int                      part_count;
    int                      all;                 /* groups, of which others may run some */
    int                      first, step;         /* of the order: group first + k step, modulo all */
};

struct worker { pthread_t thread; struct suite *suite; };

static void run_part(struct suite *s, const struct suite_part *part, int only)
{
    s->met  = 0;
    s->only = only;
    if (part->problem)
        suite_problem(s, part->problem);
    else
        part->op->cases(s);
    s->only = ALL;
}

/* ---- the order ---- */

static int divisor(int a, int b)
{
    return b ? divisor(b, a % b) : a;
}

/* The multiples of the golden ratio lie evenly on a circle, however many of them (Knuth, The Art of Computer
 * Programming, volume 3, section 6.4); a step without a common divisor with all meets each group once.    */
static void spread(struct pool *pool)
{
    struct random r = { pool->to->seed };

    pool->first = (int)random_below(&r, pool->all);
    pool->step  = (int)lround(pool->all * 0.6180339887498949);
    while (pool->step < 1 || divisor(pool->step, pool->all) > 1)
        pool->step++;
}

/* Shard i has the groups i, i + shards, ... of the order. */
static int of_shard(const struct suite *s, int all)
{
    const int shards = s->shards > 1 ? s->shards : 1;

    return all > s->shard ? (all - s->shard + shards - 1) / shards : 0;
}

/* ---- threads ---- */

static void tell_begun(const struct suite *s, const struct suite_group *g)
{
    struct pool *const pool = s->context;

    pthread_mutex_lock(&pool->lock);
    if (pool->to->group_begun)
        pool->to->group_begun(pool->to, g);
    pthread_mutex_unlock(&pool->lock);
}

static void tell_done(const struct suite *s, const struct suite_group *g)
{
    struct pool *const pool = s->context;

    pthread_mutex_lock(&pool->lock);
    pool->to->reported++;
    if (pool->to->group_done)
        pool->to->group_done(pool->to, g);
    pthread_mutex_unlock(&pool->lock);
}

/* The number of the next group from 1; 0: none is left, or the time is over. */
static int take(struct pool *pool)
{
    struct suite *const to = pool->to;
    int taken = 0;

    pthread_mutex_lock(&pool->lock);
    if (to->handed < to->planned && !(to->stop && *to->stop) &&
        !(to->handed && to->deadline && vn__seconds() > to->deadline))
        taken = 1 + (int)((pool->first + (int64_t)pool->step * (to->shard + (int64_t)to->handed++ *
                           (to->shards > 1 ? to->shards : 1))) % pool->all);
    pthread_mutex_unlock(&pool->lock);
    return taken;
}

static void run_group(struct suite *s, const struct pool *pool, int number)
{
    for (int i = 0; i < pool->part_count && number > 0; i++) {
        run_part(s, &pool->parts[i], number);
        number -= s->met;
    }
}

static void work_through(struct suite *s, struct pool *pool)
{
    int number;

    while ((number = take(pool)))
        run_group(s, pool, number);
}

static void *work(void *suite)
{
    struct suite *const s = suite;

    work_through(s, s->context);
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
    to->ran         += from->ran;
    to->failed      += from->failed;
    to->passed_over += from->passed_over;
    to->refused     += from->refused;
    to->vacuous     += from->vacuous;
    for (int kind = 0; kind < KIND_COUNT; kind++)
        to->count[kind] += from->count[kind];
    for (int t = 0; t < VN_TYPE_COUNT; t++)
        to->worst[t] = from->worst[t] > to->worst[t] ? from->worst[t] : to->worst[t];
}

static vn_status run_threads(struct pool *pool, int jobs)
{
    struct suite *const s = pool->to;
    struct worker *const w = calloc((size_t)jobs, sizeof *w);
    vn_status status = VN_OK;
    int n = 0;

    if (!w)
        return VN_NO_MEMORY;
    while (n < jobs && !(status = suite_open_beside(&w[n].suite, s))) {
        w[n].suite->context     = pool;
        w[n].suite->group_begun = tell_begun;
        w[n].suite->group_done  = tell_done;
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
    free(w);
    return n ? VN_OK : status;                    /* some threads are enough */
}

vn_status suite_run(struct suite *s, const struct suite_part *parts, int count, int jobs)
{
    struct pool pool = { .to = s, .parts = parts, .part_count = count, .step = 1 };
    vn_status status = VN_OK;

    s->handed = 0;
    for (int i = 0; i < count; i++) {
        run_part(s, &parts[i], NONE);
        pool.all += s->met;
    }
    s->planned = of_shard(s, pool.all);
    if (s->planned && (jobs > 1 || s->deadline || s->shards > 1))
        spread(&pool);
    pthread_mutex_init(&pool.lock, NULL);
    if (jobs > 1)
        status = run_threads(&pool, jobs);
    else
        work_through(s, &pool);
    pthread_mutex_destroy(&pool.lock);
    return status;
}
