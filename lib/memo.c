/* SPDX-License-Identifier: Apache-2.0
 *
 * memo.c - what a queue was asked before, what was chosen for it, and what that launched.
 *
 * A program asks the same again and again.  A problem that is posed again is not chosen for again;
 * and a call that is made again, byte for byte, just makes the launches that it made: all else that
 * its checks look at are handles, and those are the same as long as none has been closed.
 */
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { MEMOS = 1024 };      /* a network has many layers; those that are not used take no memory */
enum { PROBLEM_HASHED = 240, CALL_HASHED = 168 };   /* bytes: what mostly differs; XXH3 slows
                                                       down above 240 */

struct vn_memos {
    struct vn_memo  by_problem[MEMOS];
    struct vn_memo *by_call[MEMOS];         /* NULL, or one of these */
};

/* One of what a call launched, in order. */
struct vn_noted {
    struct vn_noted        *next;
    const struct vn_choice *choice;
    int                     kernel;
    uint64_t                number;         /* no other has it, of any queue */
    struct vn_launch        launch;
};

/* A copy of the bytes, in memory that is allocated again only where it is too small. */
static int keep(void **to, size_t *size, size_t *room, const void *bytes, size_t count)
{
    *size = 0;
    if (count > *room) {
        free(*to);
        *to = malloc(count);
        *room = *to ? count : 0;
        if (!*to)
            return 0;
    }
    memcpy(*to, bytes, count);
    *size = count;
    return 1;
}

static size_t place_of(const void *bytes, size_t size, size_t hashed)
{
    return XXH3_64bits(bytes, size < hashed ? size : hashed) % MEMOS;
}

/* ---- problems ------------------------------------------------------------------------ */

static int is_of(const struct vn_memo *m, const void *problem, size_t size)
{
    return m->table && m->problem_size == size && !memcmp(m->problem, problem, size);
}

/* Its place, or the one beside that if another problem has it. */
struct vn_memo *vn__memo_of(vn_queue *q, const void *problem, size_t size)
{
    size_t place;

    if (!q->memos && !(q->memos = calloc(1, sizeof *q->memos))) {
        vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes for what was chosen", sizeof *q->memos);
        return NULL;
    }
    place = place_of(problem, size, PROBLEM_HASHED);
    if (is_of(&q->memos->by_problem[place ^ 1], problem, size) ||
        (q->memos->by_problem[place].table && !is_of(&q->memos->by_problem[place], problem, size) &&
         !q->memos->by_problem[place ^ 1].table))
        place ^= 1;
    return &q->memos->by_problem[place];
}

int vn__memo_holds(const struct vn_memo *m, const struct vn_variant *table, const void *problem, size_t size)
{
    return m->table == table && !m->forced && m->problem_size == size && !memcmp(m->problem, problem, size);
}

static void forget_call(struct vn_memo *m)
{
    for (struct vn_noted *it = m->launches, *next; it; it = next) {
        next = it->next;
        free(it);
    }
    m->launches  = NULL;
    m->call_size = 0;
}

vn_status vn__memo_set(struct vn_memo *m, vn_queue *q, const struct vn_variant *table,
                       const struct vn_choice *it, const struct vn_plan *plan, const void *problem,
                       size_t size, int forced)
{
    if (m == q->noting)                     /* a part of its own problem takes its place */
        q->noting = NULL;
    forget_call(m);
    m->table = NULL;
    if (!keep(&m->problem, &m->problem_size, &m->problem_room, problem, size)) {
        if (q->last == m)
            q->last = NULL;
        return vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes for a problem", size);
    }
    m->table = table;
    m->choice = it;
    m->plan = *plan;
    m->part = NULL;
    m->forced = forced;
    return VN_OK;
}

void vn__memo_use(vn_queue *q, struct vn_memo *m)
{
    const struct vn_problem *const head = m->problem;

    q->last = m;
    q->workspace_used = q->packed_used = 0;
    if (vn__logs(VN_LOG_CHOOSE))
        vn__log(VN_LOG_CHOOSE, "%s on %s: %s (%s row)", head->op, q->device->info.spec,
                m->choice->variant->name, m->choice->source);
}

void vn__memos_forget(vn_queue *q)
{
    for (int i = 0; q->memos && i < MEMOS; i++) {
        forget_call(&q->memos->by_problem[i]);
        free(q->memos->by_problem[i].problem);
        free(q->memos->by_problem[i].call);
    }
    free(q->memos);
    q->memos = NULL;
    q->last = NULL;
}

/* ---- calls --------------------------------------------------------------------------- */

static int is_call(const struct vn_memo *m, const void *call, size_t size)
{
    return m && m->call_size == size && !memcmp(m->call, call, size);
}

/* Where a call is noted, or is to be: its place, or the one beside that if another call has it. */
static struct vn_memo **noted_at(vn_queue *q, const void *call, size_t size)
{
    struct vn_memo **const at = q->memos->by_call, **const first = &at[place_of(call, size, CALL_HASHED)];
    struct vn_memo **const second = &at[(size_t)(first - at) ^ 1];

    if (is_call(*first, call, size))
        return first;
    return is_call(*second, call, size) || (*first && !*second) ? second : first;
}

int vn__call_again(vn_status *out, vn_queue *q, const void *call, size_t size)
{
    struct vn_memo *m;

    if (!q->memos)
        return 0;
    m = *noted_at(q, call, size);
    if (!is_call(m, call, size) || m->closed != vn__handles_closed())
        return 0;
    vn__memo_use(q, m);
    q->workspace_used = m->workspace_used;
    q->packed_used = m->packed_used;
    *out = VN_OK;
    for (struct vn_noted *it = m->launches; it && *out == VN_OK; it = it->next) {
        q->again = it->number;
        *out = vn__launch(q, it->choice, it->kernel, &it->launch);
    }
    q->again = 0;
    return 1;
}

void vn__note_launch(vn_queue *q, const struct vn_choice *it, int kernel, const struct vn_launch *l)
{
    static uint64_t numbers;
    struct vn_noted *const noted = q->noting ? malloc(sizeof *noted) : NULL;
    struct vn_noted **end;

    if (!noted) {
        q->noting = NULL;
        return;
    }
    for (end = &q->noting->launches; *end; end = &(*end)->next)
        ;
    noted->next   = NULL;
    noted->choice = it;
    noted->kernel = kernel;
    noted->number = __atomic_add_fetch(&numbers, 1, __ATOMIC_RELAXED);
    noted->launch = *l;
    *end = noted;
}

vn_status vn__call(vn_queue *q, const struct vn_choice *it, const struct vn_plan *plan, const void *problem,
                   const void *call, size_t size)
{
    struct vn_memo *const m = q->last;
    vn_status s;

    if (!m || m->choice != it)
        return it->variant->run(q, it, problem, plan);
    forget_call(m);
    q->noting = m;
    s = it->variant->run(q, it, problem, plan);
    if (s == VN_OK && q->noting && keep(&m->call, &m->call_size, &m->call_room, call, size)) {
        m->workspace_used = q->workspace_used;
        m->packed_used = q->packed_used;
        m->closed = vn__handles_closed();
        *noted_at(q, call, size) = m;
    }
    q->noting = NULL;
    return s;
}
