/* SPDX-License-Identifier: Apache-2.0
 *
 * choose.c - from a problem to a variant, and from a variant to built kernels.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "choices.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- the kernels built so far, by a hash of what they depend on --------------- */

struct key {
    const struct vn_variant *variant;
    int type, wide, p[VN_PARAMS], c[VN_CONSTANTS];      /* no padding: the key is hashed as bytes */
    struct vn_epilogue epilogue;
};

struct entry {
    struct key       key;
    struct vn_choice choice;
    void            *program;
    int              failed;                /* its trial: not to be used */
};

static size_t slot_of(const struct vn_choices *c, const struct key *key)
{
    size_t i = (size_t)XXH3_64bits(key, sizeof *key) & (c->size - 1);

    while (c->slots[i] && memcmp(&c->slots[i]->key, key, sizeof *key))
        i = (i + 1) & (c->size - 1);
    return i;
}

static const struct entry *lookup(struct vn_choices *c, const struct key *key)
{
    const struct entry *e;

    pthread_mutex_lock(&c->lock);
    e = c->size ? c->slots[slot_of(c, key)] : NULL;
    pthread_mutex_unlock(&c->lock);
    return e;
}

static vn_status grow(struct vn_choices *c)
{
    struct vn_choices larger = { .size = c->size ? 2 * c->size : 64 };

    if (!(larger.slots = calloc(larger.size, sizeof *larger.slots)))
        return vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes for the table of choices",
                        larger.size * sizeof *larger.slots);
    for (size_t i = 0; i < c->size; i++)
        if (c->slots[i])
            larger.slots[slot_of(&larger, &c->slots[i]->key)] = c->slots[i];
    free(c->slots);
    c->slots = larger.slots;
    c->size = larger.size;
    return VN_OK;
}

static vn_status insert(struct vn_choices *c, struct entry *e)
{
    vn_status s = VN_OK;

    pthread_mutex_lock(&c->lock);
    if (2 * (c->used + 1) > c->size)
        s = grow(c);
    if (s == VN_OK) {
        c->slots[slot_of(c, &e->key)] = e;
        c->used++;
    }
    pthread_mutex_unlock(&c->lock);
    return s;
}

vn_status vn__choices_of(struct vn_choices **out, vn_device *d)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct vn_choices *c;
    vn_status s = VN_OK;

    if ((*out = __atomic_load_n(&d->choices, __ATOMIC_ACQUIRE)))
        return VN_OK;
    pthread_mutex_lock(&lock);
    if (!(c = d->choices) && (c = calloc(1, sizeof *c))) {
        pthread_mutex_init(&c->lock, NULL);
        pthread_mutex_init(&c->building, NULL);
        s = vn__tune_rates(&c->rates, d);
        __atomic_store_n(&d->choices, c, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    *out = c;
    return c ? s : vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes for the choices", sizeof *c);
}

static void entry_close(vn_device *d, struct entry *e)
{
    vn__choice_close(&e->choice, e->program, d);
    free(e);
}

void vn__choices_close(vn_device *d)
{
    struct vn_choices *c = d->choices;

    if (!c)
        return;
    for (size_t i = 0; i < c->size; i++)
        if (c->slots[i])
            entry_close(d, c->slots[i]);
    free(c->slots);
    for (struct vn_rows *r = c->rows, *next; r; r = next) {
        next = r->next;
        free(r);
    }
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->building);
    free(c);
    d->choices = NULL;
}

/* ---- building ------------------------------------------------------------------ */

vn_status vn__choice_open(struct vn_choice *it, void **program, int *proved, vn_device *d, vn_type type,
                          int wide)
{
    const struct vn_variant *v = it->variant;
    char *text, name[64];
    vn_status s;

    memset(it->kernel, 0, sizeof it->kernel);
    *program = NULL;
    if (!(text = vn__assemble(d->backend->name, v, it->p, it->c, type, wide, &it->epilogue)))
        return vn__fail(VN_NO_MEMORY, "host memory ran out for the text of %s", v->name);
    s = vn__cache_build(program, proved, d, text);
    free(text);
    for (int i = 0; s == VN_OK && vn__word_at(name, v->entries, i); i++)
        s = d->backend->kernel_open(&it->kernel[i], d, *program, name);
    return s;
}

void vn__choice_close(struct vn_choice *it, void *program, vn_device *d)
{
    if (!program)
        return;
    for (int i = 0; i < VN_ENTRIES && it->kernel[i]; i++)
        d->backend->kernel_close(it->kernel[i]);
    vn__cache_close(d, program);
}

/* On a queue of its own: the caller's may be waiting for something. */
static vn_status try_out(struct entry *e, vn_device *d)
{
    vn_queue *q;
    vn_status s = vn__queue_open(&q, d, NULL);

    if (s == VN_OK) {
        s = e->key.variant->trial(q, &e->choice, (vn_type)e->key.type);
        vn__queue_close(q);
    }
    return s;
}

static vn_status make(const struct entry **out, vn_device *d, struct vn_choices *c, const struct key *key,
                      const char *source)
{
    struct entry *e = calloc(1, sizeof *e);
    vn_status s = VN_OK;
    int proved = 0;

    if (!e)
        return vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes for a choice", sizeof *e);
    e->key = *key;
    e->choice.variant = key->variant;
    e->choice.source = source;
    memcpy(e->choice.p, key->p, sizeof e->choice.p);
    memcpy(e->choice.c, key->c, sizeof e->choice.c);
    e->choice.epilogue = key->epilogue;
    if (key->variant->texts)
        s = vn__choice_open(&e->choice, &e->program, key->variant->trial ? &proved : NULL, d,
                            (vn_type)key->type, key->wide);
    if (s == VN_OK && key->variant->trial && !proved)
        s = try_out(e, d);
    if (key->variant->trial && (s == VN_FAILED || s == VN_UNSUPPORTED)) {
        vn__log(VN_LOG_CHOOSE, "%s failed its trial on %s: %s", key->variant->name, d->info.spec,
                vn_last_error());
        if (e->program)
            vn__cache_forget(d, e->program);
        e->failed = 1;
        s = VN_OK;
    }
    if (s == VN_OK)
        s = insert(c, e);
    if (s) {
        entry_close(d, e);
        return s;
    }
    *out = e;
    return VN_OK;
}

/* ---- a variant made ready ------------------------------------------------------- */

static vn_status workspace_fits(const vn_queue *q, const struct vn_variant *v, size_t bytes)
{
    if (bytes <= q->workspace_limit)
        return VN_OK;
    return vn__fail(VN_UNSUPPORTED, "%s needs %zu bytes of workspace, above the queue's limit of %zu",
                    v->name, bytes, q->workspace_limit);
}

int vn__fast_act(vn_math math, vn_type type, const struct vn_facts *f)
{
    if (math == VN_MATH_BITWISE || type == VN_F64 || !strcmp(f->family, "cpu"))
        return 0;
    if (!strcmp(f->family, "nvidia"))
        return VN_FAST_PTX;
    return type != VN_F32 || !strcmp(f->family, "amd") ? VN_FAST_WORDS : 0;
}

/* Rows of C^T are columns of C. */
static int turned(int side)
{
    return side == VN_SAME_ROWS ? VN_SAME_COLUMNS : side == VN_SAME_COLUMNS ? VN_SAME_ROWS : side;
}

struct vn_epilogue vn__epilogue_of(const struct vn_variant *v, const void *problem)
{
    const struct vn_problem *const head = problem;
    struct vn_epilogue e = head->epilogue;

    if (v->turns && v->turns(problem)) {
        e.scale = turned(e.scale);
        e.residual = turned(e.residual);
        e.bias = turned(e.bias);
    }
    return e;
}

/* The variant with this row, its kernels built at first use;
 * VN_UNSUPPORTED or VN_FAILED where they cannot be.       */
static vn_status ready(const struct vn_choice **out, vn_queue *q, const struct vn_variant *v,
                       const struct vn_row *row, const void *problem)
{
    const struct vn_problem *head = problem;
    struct key key = { .variant = v, .type = (int)head->type, .wide = head->wide };
    const struct entry *e;
    struct vn_choices *c;
    vn_status s;

    memcpy(key.p, row->p, sizeof key.p);
    key.epilogue = vn__epilogue_of(v, problem);
    if (v->constants_of)
        v->constants_of(key.c, problem);
    if ((s = vn__choices_of(&c, q->device)))
        return s;
    if (!(e = lookup(c, &key))) {
        pthread_mutex_lock(&c->building);
        if (!(e = lookup(c, &key)))         /* another thread may have been quicker */
            s = make(&e, q->device, c, &key, row->source);
        pthread_mutex_unlock(&c->building);
    }
    if (s)
        return s;
    *out = &e->choice;
    return e->failed ? vn__fail(VN_UNSUPPORTED, "variant %s failed its trial on %s", v->name,
                                q->device->facts.name)
                     : VN_OK;
}

vn_status vn__candidate_ready(const struct vn_choice **out, vn_queue *q, const struct vn_candidate *it,
                              const void *problem)
{
    const vn_status s = workspace_fits(q, it->variant, it->plan.workspace);

    return s ? s : ready(out, q, it->variant, &it->row, problem);
}

static vn_status no_such_variant(const struct vn_variant *table, const char *forced)
{
    char names[512] = "";
    size_t n = 0;

    for (const struct vn_variant *v = table; v->name && n < sizeof names; v++) {
        const struct vn_variant *first = table;

        while (strcmp(first->name, v->name))
            first++;
        if (first == v)
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", v->name);
    }
    return vn__fail(VN_INVALID, "options.variant is \"%.64s%s\"; it needs NULL or one of %s", forced,
                    strlen(forced) > 64 ? "..." : "", names);
}

/* ---- choosing ---------------------------------------------------------------------- */

/* The cheapest of those that can be made ready; by name, that variant or none.  depth: 1 of a part. */
static vn_status search(const struct vn_choice **out, struct vn_plan *the_plan, vn_queue *q,
                        const struct vn_variant *table, const void *problem, const char *forced, int depth)
{
    const struct vn_candidate *last = NULL;
    struct vn_candidate *list;
    int count, best;
    vn_status s = vn__candidates(&list, &count, q, table, problem, forced, depth);

    if (s)
        return s;
    if (!count)
        return no_such_variant(table, forced ? forced : "");
    best = forced || depth ? -1 : vn__pinned(list, count, q, problem);
    if (best < 0 && (best = vn__cheapest(list, count, forced != NULL)) < 0)
        s = vn__fail(VN_UNSUPPORTED, "variant %s does not fit: %s", list[count - 1].variant->name,
                     list[count - 1].why);
    while (best >= 0) {
        struct vn_candidate *const it = &list[best];

        *the_plan = it->plan;
        if ((s = vn__candidate_ready(out, q, it, problem)) == VN_OK || s == VN_NO_MEMORY)
            break;
        vn__log(VN_LOG_CHOOSE, "%s passed over: %s", it->variant->name, vn_last_error());
        it->unfit = 1;
        last = it->variant->trial && last ? last : it;
        best = vn__cheapest(list, count, forced != NULL);
    }
    if (s && last)                              /* what is expected of no trial says most */
        s = vn__candidate_ready(out, q, last, problem);
    free(list);
    return s;
}

vn_status vn__choose(const struct vn_choice **out, const struct vn_plan **the_plan, vn_queue *q,
                     const struct vn_variant *table, const void *problem, size_t size, const char *forced)
{
    struct vn_plan found;
    struct vn_memo *m;
    vn_status s;

    if (forced && !*forced)
        forced = NULL;
    if (!(m = vn__memo_of(q, problem, size)))
        return VN_NO_MEMORY;
    if (forced || !vn__memo_holds(m, table, problem, size)) {
        if ((s = search(out, &found, q, table, problem, forced, 0)) ||
            (s = vn__memo_set(m, q, table, *out, &found, problem, size, forced != NULL)))
            return s;
    }
    vn__memo_use(q, m);
    *out = m->choice;
    *the_plan = &m->plan;
    return VN_OK;
}

/* Its engine is that of its own parts. */
static int is_of_parts(const struct vn_choice *c)
{
    return c->variant->engine && !*c->variant->engine;
}

vn_status vn__choose_part(const struct vn_choice **out, struct vn_plan *the_plan, vn_queue *q,
                          const struct vn_variant *table, const void *problem)
{
    const vn_status s = search(out, the_plan, q, table, problem, NULL, 1);

    if (!s && q->last && (!q->last->part || is_of_parts(q->last->part)))
        q->last->part = *out;
    return s;
}
