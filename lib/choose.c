/* SPDX-License-Identifier: Apache-2.0
 *
 * choose.c - from a problem to a variant, and from a variant to built kernels.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

const struct vn_variant *const vn__tables[] = { vn__gemm_variants, vn__conv_variants, vn__softmax_variants, NULL };

/* ---- the choices made so far, by a hash of what they depend on --------------- */

struct key {
    const struct vn_variant *variant;
    int type, bucket, wide, unused;         /* no padding: the key is hashed as bytes */
};

struct entry {
    struct key       key;
    struct vn_choice choice;
    void            *program;               /* NULL: the kernels are another entry's */
    int              failed;                /* its trial: not to be used */
};

struct vn_choices {
    pthread_mutex_t lock;                   /* of the table; held for a moment */
    pthread_mutex_t building;               /* held while a driver compiles */
    struct entry  **slots;
    size_t          size, used;             /* size: a power of two */
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

/* Made at the first operation: a device that only holds buffers needs none. */
static vn_status choices_of(struct vn_choices **out, vn_device *d)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct vn_choices *c;

    if ((*out = __atomic_load_n(&d->choices, __ATOMIC_ACQUIRE)))
        return VN_OK;
    pthread_mutex_lock(&lock);
    if (!(c = d->choices) && (c = calloc(1, sizeof *c))) {
        pthread_mutex_init(&c->lock, NULL);
        pthread_mutex_init(&c->building, NULL);
        __atomic_store_n(&d->choices, c, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    *out = c;
    return c ? VN_OK : vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes for the choices", sizeof *c);
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
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->building);
    free(c);
    d->choices = NULL;
}

/* ---- the text of a kernel ----------------------------------------------------- */

struct builder { char *text; size_t length, size; int failed; };

static void add(struct builder *b, const char *s, size_t n)
{
    if (b->length + n + 1 > b->size) {
        const size_t size = 2 * (b->length + n + 1);
        char *text = realloc(b->text, size);

        if (!text) {
            b->failed = 1;
            return;
        }
        b->text = text;
        b->size = size;
    }
    memcpy(b->text + b->length, s, n);
    b->length += n;
    b->text[b->length] = '\0';
}

static void add_define(struct builder *b, const char *name, int value)
{
    char line[128];

    add(b, line, (size_t)snprintf(line, sizeof line, "#define %s %d\n", name, value));
}

/* Compilers report lines as file:line of our sources. */
static void add_file(struct builder *b, const char *path)
{
    const struct vn_text *t = vn__text_find(path);
    char line[128];

    if (!t) {
        b->failed = 1;
        return;
    }
    add(b, line, (size_t)snprintf(line, sizeof line, "#line 1 \"%s\"\n", path));
    add(b, t->text, t->length);
}

/* The i-th word of a list separated by spaces; 0 past its end. */
static int word_at(char word[64], const char *list, int i)
{
    for (; list; i--) {
        list += strspn(list, " ");

        const size_t n = strcspn(list, " ");

        if (n == 0 || n >= 64)
            return 0;
        memcpy(word, list, n);
        word[n] = '\0';
        if (i == 0)
            return 1;
        list += n;
    }
    return 0;
}

char *vn__assemble(const char *backend, const struct vn_variant *v, const int *p, vn_type type, int wide)
{
    struct builder b = { 0 };
    char word[64];

    add_file(&b, strcmp(backend, "cuda") ? "cl/words.h" : "cuda/words.h");
    add_define(&b, "TYPE", (int)type);
    add_define(&b, "WIDE", wide);
    add_file(&b, "cl/types.h");
    for (int i = 0; word_at(word, v->params, i); i++)
        add_define(&b, word, p[i]);
    if (v->defines)
        add(&b, v->defines, strlen(v->defines));
    for (int i = 0; word_at(word, v->texts, i); i++)
        add_file(&b, word);
    if (b.failed) {
        free(b.text);
        return NULL;
    }
    return b.text;
}

/* ---- building ------------------------------------------------------------------ */

/* Another bucket may have found the same row: its kernels serve here too. */
static const struct entry *same_kernels(struct vn_choices *c, const struct entry *e)
{
    const struct entry *twin = NULL;

    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < c->size && !twin; i++) {
        const struct entry *o = c->slots[i];

        if (o && o->key.variant == e->key.variant && o->key.type == e->key.type && o->key.wide == e->key.wide &&
            !memcmp(o->choice.p, e->choice.p, sizeof e->choice.p))
            twin = o;
    }
    pthread_mutex_unlock(&c->lock);
    return twin;
}

vn_status vn__choice_open(struct vn_choice *it, void **program, vn_device *d, vn_type type, int wide)
{
    const struct vn_variant *v = it->variant;
    char *text, name[64];
    vn_status s;

    memset(it->kernel, 0, sizeof it->kernel);
    *program = NULL;
    if (!(text = vn__assemble(d->backend->name, v, it->p, type, wide)))
        return vn__fail(VN_NO_MEMORY, "host memory ran out for the text of %s", v->name);
    s = vn__cache_build(program, d, text);
    free(text);
    for (int i = 0; s == VN_OK && word_at(name, v->entries, i); i++)
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
                      const int *p, const char *source)
{
    struct entry *e = calloc(1, sizeof *e);
    const struct entry *twin;
    vn_status s = VN_OK;

    if (!e)
        return vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes for a choice", sizeof *e);
    e->key = *key;
    e->choice.variant = key->variant;
    e->choice.source = source;
    memcpy(e->choice.p, p, sizeof e->choice.p);
    if ((twin = same_kernels(c, e))) {
        memcpy(e->choice.kernel, twin->choice.kernel, sizeof e->choice.kernel);
        e->failed = twin->failed;
    } else {
        if (key->variant->texts)
            s = vn__choice_open(&e->choice, &e->program, d, (vn_type)key->type, key->wide);
        if (s == VN_OK && key->variant->trial)
            s = try_out(e, d);
        if (key->variant->trial && (s == VN_FAILED || s == VN_UNSUPPORTED)) {
            vn__log(VN_LOG_CHOOSE, "%s failed its trial on %s: %s", key->variant->name, d->info.spec, vn_last_error());
            e->failed = 1;
            s = VN_OK;
        }
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

static vn_status workspace_fits(const vn_queue *q, const struct vn_variant *v, const void *problem, const int *p)
{
    const size_t bytes = v->workspace ? v->workspace(problem, p) : 0;

    if (bytes <= q->workspace_limit)
        return VN_OK;
    return vn__fail(VN_UNSUPPORTED, "%s needs %zu bytes of workspace, above the queue's limit of %zu", v->name,
                    bytes, q->workspace_limit);
}

/* What is known of this variant for problems of this kind, its kernels built at first use. */
static vn_status entry_for(const struct entry **out, vn_queue *q, const struct vn_variant *v, const void *problem)
{
    const struct vn_problem *head = problem;
    const struct key key = { v, (int)head->type, (int)head->bucket, head->wide, 0 };
    struct vn_choices *c;
    const char *source;
    int p[VN_PARAMS];
    vn_status s;

    if ((s = choices_of(&c, q->device)) || (*out = lookup(c, &key)))
        return s;
    if ((s = vn__tune_find(p, &source, q->device, v, head->type, head->bucket)) ||
        (s = workspace_fits(q, v, problem, p)))
        return s;
    pthread_mutex_lock(&c->building);
    if (!(*out = lookup(c, &key)))          /* another thread may have been quicker */
        s = make(out, q->device, c, &key, p, source);
    pthread_mutex_unlock(&c->building);
    return s;
}

/* The variant made ready; VN_UNSUPPORTED or VN_FAILED where it cannot be. */
static vn_status ready(const struct vn_choice **out, vn_queue *q, const struct vn_variant *v, const void *problem)
{
    const struct entry *e;
    const vn_status s = entry_for(&e, q, v, problem);

    if (s)
        return s;
    *out = &e->choice;
    if (e->failed)
        return vn__fail(VN_UNSUPPORTED, "variant %s failed its trial on %s", v->name, q->device->facts.name);
    return workspace_fits(q, v, problem, e->choice.p);
}

static vn_status no_such_variant(const struct vn_variant *table, const char *forced)
{
    char names[256] = "";
    size_t n = 0;

    for (const struct vn_variant *v = table; v->name && n < sizeof names; v++)
        if (v == table || strcmp(v->name, v[-1].name))
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", v->name);
    return vn__fail(VN_INVALID, "variant is \"%s\"; it needs NULL or one of %s", forced, names);
}

/* ---- choosing ---------------------------------------------------------------------- */

/* A vendor's library is not even loaded unless it is asked for, or its row prefers it. */
static const char *not_preferred(vn_queue *q, const struct vn_variant *v, const void *problem)
{
    const struct entry *e;

    return !v->texts && (entry_for(&e, q, v, problem) || !e->choice.p[v->preferred])
         ? "no tune row says that it is the faster one here" : NULL;
}

/* NULL if this variant can and, where nobody asked for it by name, should do the problem. */
static const char *why_not(vn_queue *q, const struct vn_variant *v, const void *problem, int forced)
{
    const struct vn_facts *f = &q->device->facts;
    const char *why = forced ? NULL : not_preferred(q, v, problem);

    if (!why)
        why = v->fits(problem, f);
    return why || forced || !v->pays ? why : v->pays(problem, f);
}

/* The first variant of the table that will do; by name, that one or none. */
static vn_status search(const struct vn_choice **out, vn_queue *q, const struct vn_variant *table,
                        const void *problem, const char *forced)
{
    const struct vn_variant *unfit = NULL;      /* the last one looked at, if it did not fit */
    const char *why = NULL;
    vn_status s = VN_INVALID;
    int known = 0;

    for (const struct vn_variant *v = table; v->name; v++) {
        if (forced && strcmp(forced, v->name))
            continue;
        known = 1;
        if ((why = why_not(q, v, problem, forced != NULL))) {
            unfit = v;
            continue;
        }
        unfit = NULL;
        if ((s = ready(out, q, v, problem)) == VN_OK)
            return VN_OK;
        vn__log(VN_LOG_CHOOSE, "%s passed over: %s", v->name, vn_last_error());
        if (s == VN_NO_MEMORY || forced)
            return s;
    }
    if (unfit)
        return vn__fail(VN_UNSUPPORTED, "variant %s does not fit: %s", unfit->name, why);
    return known ? s : no_such_variant(table, forced ? forced : "");
}

static vn_status run_nothing(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    (void)q;
    (void)it;
    (void)problem;
    return VN_OK;
}

static const struct vn_variant nothing = { .name = "nothing", .run = run_nothing };
static const struct vn_choice  choice_of_nothing = { .variant = &nothing };

vn_status vn__choose(const struct vn_choice **out, vn_queue *q, const struct vn_variant *table,
                     const void *problem, size_t size, const char *forced)
{
    struct vn_memo *m;
    vn_status s;

    if (forced && !*forced)
        forced = NULL;
    if (size > sizeof m->problem)
        return vn__fail(VN_FAILED, "a problem has %zu bytes; a memo holds %zu", size, sizeof m->problem);
    if (!(m = vn__memo_of(q, problem, size)))
        return VN_NO_MEMORY;
    if (forced || !vn__memo_holds(m, table, problem, size)) {
        if ((s = search(out, q, table, problem, forced)))
            return s;
        vn__memo_set(m, q, table, *out, problem, size, forced != NULL);
    }
    if (!q->only_choose)
        vn__memo_use(q, m);
    *out = q->only_choose ? &choice_of_nothing : m->choice;
    return VN_OK;
}

vn_status vn__choose_part(const struct vn_choice **out, vn_queue *q, const struct vn_variant *table,
                          const void *problem)
{
    return search(out, q, table, problem, NULL);
}

/* ---- explaining ------------------------------------------------------------------ */

static void add_text(struct builder *b, const char *s)
{
    add(b, s, strlen(s));
}

static void add_string(struct builder *b, const char *s)
{
    add(b, "\"", 1);
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            add(b, (char[]){ '\\', *s }, 2);
        else if ((unsigned char)*s >= ' ')
            add(b, s, 1);
    add(b, "\"", 1);
}

static void add_member(struct builder *b, const char *name, const char *value)
{
    add_text(b, b->length > 1 ? ", " : "");
    add_string(b, name);
    add_text(b, ": ");
    add_string(b, value);
}

static void add_number(struct builder *b, const char *name, double value)
{
    char number[32];

    snprintf(number, sizeof number, "%.17g", value);
    add_text(b, b->length > 1 ? ", " : "");
    add_string(b, name);
    add_text(b, ": ");
    add_text(b, number);
}

static void add_parameters(struct builder *b, const struct vn_choice *it)
{
    char name[64], number[32];

    add_text(b, ", \"parameters\": {");
    for (int i = 0; word_at(name, it->variant->params, i); i++) {
        add_text(b, i ? ", " : "");
        add_string(b, name);
        add(b, number, (size_t)snprintf(number, sizeof number, ": %d", it->p[i]));
    }
    add_text(b, "}");
}

/* Why each variant before the chosen one was not it. */
static void add_passed_over(struct builder *b, vn_queue *q)
{
    add_text(b, ", \"passed_over\": [");
    for (const struct vn_variant *v = q->last->table; v->name && v != q->last->choice->variant; v++) {
        const char *why = why_not(q, v, q->last->problem, 0);

        add_text(b, v == q->last->table ? "{\"variant\": " : ", {\"variant\": ");
        add_string(b, v->name);
        add_text(b, ", \"why\": ");
        add_string(b, why ? why : "its workspace is above the limit, its kernel did not build, or another was asked for");
        add_text(b, "}");
    }
    add_text(b, "]");
}

const char *vn_queue_explain(vn_queue *q)
{
    struct builder b = { 0 };
    const struct vn_problem *head;

    if (vn__enter("vn_queue_explain") || vn__handle_check(q, VN_QUEUE, "queue") || !q->last)
        return "{}";
    head = (const struct vn_problem *)q->last->problem;
    add_text(&b, "{");
    add_member(&b, "op", head->op);
    add_member(&b, "type", vn_type_name(head->type));
    add_member(&b, "device", q->device->info.spec);
    add_member(&b, "device_name", q->device->facts.name);
    add_member(&b, "variant", q->last->choice->variant->name);
    add_member(&b, "row", q->last->choice->source);
    add_parameters(&b, q->last->choice);
    add_number(&b, "flops", head->flops);
    add_number(&b, "bytes", head->bytes);
    add_number(&b, "workspace", (double)q->workspace_used);
    add_number(&b, "packed", (double)q->packed_used);
    add_passed_over(&b, q);
    add_text(&b, "}");
    if (b.failed) {
        free(b.text);
        vn__fail(VN_NO_MEMORY, "host memory ran out for the explanation");
        return "{}";
    }
    free(q->explain);
    return q->explain = b.text;
}
