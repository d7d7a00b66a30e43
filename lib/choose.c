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

/* ---- the kernels built so far, by a hash of what they depend on --------------- */

struct key {
    const struct vn_variant *variant;
    int type, wide, p[VN_PARAMS], c[VN_CONSTANTS];      /* no padding: the key is hashed as bytes */
};

struct entry {
    struct key       key;
    struct vn_choice choice;
    void            *program;
    int              failed;                /* its trial: not to be used */
};

/* The rows that the tune files have for a variant, a type and a bucket. */
struct rows {
    struct rows             *next;
    const struct vn_variant *variant;
    int                      type, bucket, count;
    struct vn_row            row[];
};

struct vn_choices {
    pthread_mutex_t lock;                   /* of the table and the rows; held for a moment */
    pthread_mutex_t building;               /* held while a driver compiles */
    struct entry  **slots;
    size_t          size, used;             /* size: a power of two */
    struct rows    *rows;
    struct vn_rates rates;
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
    for (struct rows *r = c->rows, *next; r; r = next) {
        next = r->next;
        free(r);
    }
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

int vn__word_at(char word[64], const char *list, int i)
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

int vn__constants_at(int *c, const struct vn_variant *v, int i)
{
    const char *at = v->constants ? v->constants : "";
    char word[64];
    int n = -1, count = 0, first = 0, all = 1;

    memset(c, 0, VN_CONSTANTS * sizeof *c);
    for (int w = 0; ; w++) {
        const int there = vn__word_at(word, at, w);
        const int is_value = there && (*word == '-' || (*word >= '0' && *word <= '9'));

        if (is_value)
            count++;
        if (is_value)
            continue;
        if (n >= 0) {                           /* the values of the n-th are words `first` to w - 1 */
            vn__word_at(word, at, first + i / all % count);
            c[n] = atoi(word);
            all *= count;
        }
        if (!there)
            return i < all;
        n++;
        first = w + 1;
        count = 0;
    }
}

static void add_constants(struct builder *b, const struct vn_variant *v, const int *c)
{
    char word[64];

    for (int w = 0, n = 0; v->constants && vn__word_at(word, v->constants, w); w++)
        if (*word != '-' && (*word < '0' || *word > '9'))
            add_define(b, word, c[n++]);
}

char *vn__assemble(const char *backend, const struct vn_variant *v, const int *p, const int *c, vn_type type, int wide)
{
    struct builder b = { 0 };
    char word[64];

    add_file(&b, strcmp(backend, "cuda") ? "cl/words.h" : "cuda/words.h");
    add_define(&b, "TYPE", (int)type);
    add_define(&b, "WIDE", wide);
    add_file(&b, "cl/types.h");
    for (int i = 0; vn__word_at(word, v->params, i); i++)
        add_define(&b, word, p[i]);
    add_constants(&b, v, c);
    if (v->defines)
        add(&b, v->defines, strlen(v->defines));
    for (int i = 0; vn__word_at(word, v->texts, i); i++)
        add_file(&b, word);
    if (b.failed) {
        free(b.text);
        return NULL;
    }
    return b.text;
}

/* ---- building ------------------------------------------------------------------ */

vn_status vn__choice_open(struct vn_choice *it, void **program, vn_device *d, vn_type type, int wide)
{
    const struct vn_variant *v = it->variant;
    char *text, name[64];
    vn_status s;

    memset(it->kernel, 0, sizeof it->kernel);
    *program = NULL;
    if (!(text = vn__assemble(d->backend->name, v, it->p, it->c, type, wide)))
        return vn__fail(VN_NO_MEMORY, "host memory ran out for the text of %s", v->name);
    s = vn__cache_build(program, d, text);
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

    if (!e)
        return vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes for a choice", sizeof *e);
    e->key = *key;
    e->choice.variant = key->variant;
    e->choice.source = source;
    memcpy(e->choice.p, key->p, sizeof e->choice.p);
    memcpy(e->choice.c, key->c, sizeof e->choice.c);
    if (key->variant->texts)
        s = vn__choice_open(&e->choice, &e->program, d, (vn_type)key->type, key->wide);
    if (s == VN_OK && key->variant->trial)
        s = try_out(e, d);
    if (key->variant->trial && (s == VN_FAILED || s == VN_UNSUPPORTED)) {
        vn__log(VN_LOG_CHOOSE, "%s failed its trial on %s: %s", key->variant->name, d->info.spec, vn_last_error());
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
    return vn__fail(VN_UNSUPPORTED, "%s needs %zu bytes of workspace, above the queue's limit of %zu", v->name,
                    bytes, q->workspace_limit);
}

/* The variant with this row, its kernels built at first use; VN_UNSUPPORTED or VN_FAILED where they cannot be. */
static vn_status ready(const struct vn_choice **out, vn_queue *q, const struct vn_variant *v, const struct vn_row *row,
                       const void *problem)
{
    const struct vn_problem *head = problem;
    struct key key = { .variant = v, .type = (int)head->type, .wide = head->wide };
    const struct entry *e;
    struct vn_choices *c;
    vn_status s;

    memcpy(key.p, row->p, sizeof key.p);
    if (v->constants_of)
        v->constants_of(key.c, problem);
    if ((s = choices_of(&c, q->device)))
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
    return e->failed ? vn__fail(VN_UNSUPPORTED, "variant %s failed its trial on %s", v->name, q->device->facts.name)
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
    char names[256] = "";
    size_t n = 0;

    for (const struct vn_variant *v = table; v->name && n < sizeof names; v++)
        if (v == table || strcmp(v->name, v[-1].name))
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", v->name);
    return vn__fail(VN_INVALID, "variant is \"%s\"; it needs NULL or one of %s", forced, names);
}

/* ---- plans ------------------------------------------------------------------------- */

/* The rows for this variant and problem; NULL, with vn__fail(), where there are none. */
static const struct rows *rows_of(struct vn_choices *c, const vn_device *d, const struct vn_variant *v,
                                  const struct vn_problem *head)
{
    struct vn_row found[VN_ROWS];
    struct rows *r;
    int count;

    pthread_mutex_lock(&c->lock);
    for (r = c->rows; r; r = r->next)
        if (r->variant == v && r->type == (int)head->type && r->bucket == (int)head->bucket)
            break;
    pthread_mutex_unlock(&c->lock);
    if (r || vn__tune_find(found, &count, d, v, head->type, head->bucket))
        return r;
    if (!(r = malloc(sizeof *r + (size_t)count * sizeof *found))) {
        vn__fail(VN_NO_MEMORY, "host memory ran out for the rows of %s", v->name);
        return NULL;
    }
    *r = (struct rows){ .variant = v, .type = (int)head->type, .bucket = (int)head->bucket, .count = count };
    memcpy(r->row, found, (size_t)count * sizeof *found);
    pthread_mutex_lock(&c->lock);
    r->next = c->rows;                          /* another thread may add the same: that does no harm */
    c->rows = r;
    pthread_mutex_unlock(&c->lock);
    return r;
}

static const char *plan(struct vn_plan *out, const struct vn_variant *v, const void *problem, const struct vn_row *row,
                        const struct vn_site *site)
{
    *out = (struct vn_plan){ 0 };
    return v->plan ? v->plan(out, problem, row, site) : NULL;
}

vn_status vn__plan(struct vn_plan *out, vn_queue *q, const struct vn_choice *it, const void *problem)
{
    struct vn_row row = { .source = it->source };
    struct vn_choices *c;
    const vn_status s = choices_of(&c, q->device);
    const struct vn_site site = { &q->device->facts, s ? NULL : &c->rates, q, 0 };

    memcpy(row.p, it->p, sizeof row.p);
    if (s == VN_OK)
        plan(out, it->variant, problem, &row, &site);
    return s;
}

struct list { struct vn_candidate *at; int count, room; };

static struct vn_candidate *append(struct list *l)
{
    if (l->count == l->room) {
        const int room = l->room ? 2 * l->room : 64;
        struct vn_candidate *const at = realloc(l->at, (size_t)room * sizeof *at);

        if (!at) {
            vn__fail(VN_NO_MEMORY, "host memory ran out for %d plans", room);
            return NULL;
        }
        l->at = at;
        l->room = room;
    }
    return memset(&l->at[l->count++], 0, sizeof *l->at);
}

static int add_unfit(struct list *l, const struct vn_variant *v, const char *why)
{
    struct vn_candidate *const it = append(l);

    if (it) {
        it->variant = v;
        it->why = why;
        it->unfit = 1;
    }
    return it != NULL;
}

/* 0: memory ran out. */
static int add_variant(struct list *l, struct vn_choices *c, const struct vn_variant *v, const void *problem,
                       const struct vn_site *site, int forced)
{
    const struct rows *rows = NULL;
    const char *why;

    /* A vendor's library is not even loaded unless it is asked for, or its row prefers it. */
    if (!v->texts && !forced && (!(rows = rows_of(c, site->queue->device, v, problem)) || !rows->row->p[v->preferred]))
        return add_unfit(l, v, "no tune row says that it is the faster one here");
    if ((why = v->fits(problem, site->facts)))
        return add_unfit(l, v, why);
    if (!rows && !(rows = rows_of(c, site->queue->device, v, problem)))
        return add_unfit(l, v, "there is no tune row of it for this device and type");
    for (int i = 0; i < rows->count; i++) {
        struct vn_candidate *const it = append(l);

        if (!it)
            return 0;
        it->variant = v;
        it->row = rows->row[i];
        it->why = plan(&it->plan, v, problem, &it->row, site);
    }
    return 1;
}

static vn_status list_all(struct list *l, const struct vn_variant *table, const void *problem,
                          const struct vn_site *site, const char *forced)
{
    struct vn_choices *c;
    vn_status s = choices_of(&c, site->queue->device);

    for (const struct vn_variant *v = table; v->name && s == VN_OK; v++)
        if ((!forced || vn__is_named(v, forced)) && !add_variant(l, c, v, problem, site, forced != NULL))
            s = VN_NO_MEMORY;
    return s;
}

static vn_status candidates(struct list *l, vn_queue *q, const struct vn_variant *table, const void *problem,
                            const char *forced, int depth)
{
    struct vn_choices *c;
    vn_status s = choices_of(&c, q->device);

    *l = (struct list){ 0 };
    if (s == VN_OK)
        s = list_all(l, table, problem, &(struct vn_site){ &q->device->facts, &c->rates, q, depth }, forced);
    if (s) {
        free(l->at);
        *l = (struct list){ 0 };
    }
    return s;
}

vn_status vn__candidates(struct vn_candidate **out, int *count, vn_queue *q, const struct vn_variant *table,
                         const void *problem, const char *forced)
{
    struct list l;
    const vn_status s = candidates(&l, q, table, problem, forced, 0);

    *out = l.at;
    *count = l.count;
    return s;
}

/* Asked for by name, a plan that would not pay will do, if there is no other. */
int vn__cheapest(const struct vn_candidate *list, int count, int forced)
{
    int best = -1;

    for (int i = 0; i < count; i++) {
        const struct vn_candidate *const it = &list[i];

        if (it->unfit || (it->why && !forced))
            continue;
        if (best < 0 || (!it->why && list[best].why) ||
            (!it->why == !list[best].why && it->plan.seconds > 0 && it->plan.seconds < list[best].plan.seconds))
            best = i;
    }
    return best;
}

double vn__part_seconds(const struct vn_site *site, const struct vn_variant *table, const void *part, size_t *workspace)
{
    const struct vn_site deeper = { site->facts, site->rates, site->queue, site->depth + 1 };
    struct list l = { 0 };
    const vn_status s = list_all(&l, table, part, &deeper, NULL);
    const int best = s ? -1 : vn__cheapest(l.at, l.count, 0);
    const double seconds = best < 0 ? 0 : l.at[best].plan.seconds;

    *workspace = best < 0 ? 0 : l.at[best].plan.workspace;
    free(l.at);
    return seconds;
}

/* ---- choosing ---------------------------------------------------------------------- */

/* The candidate that a pin names: its index, or -1.  Values of a pin that no row has make a row of their own. */
static int pinned(struct vn_candidate *list, int count, vn_queue *q, const void *problem)
{
    const struct vn_problem *head = problem;
    struct vn_row row = { .source = NULL };
    char shape[128], variant[64];
    int values = 0, best = -1;

    if (!head->shape)
        return -1;
    head->shape(shape, sizeof shape, problem);
    if (!vn__tune_pin(variant, &row, &values, q->device, head->op, shape, head->type))
        return -1;
    for (int i = 0; i < count; i++) {
        struct vn_candidate *const it = &list[i];

        if (it->unfit || strcmp(it->variant->name, variant) ||
            (values && best >= 0 && !memcmp(list[best].row.p, row.p, sizeof row.p)))
            continue;
        if (best < 0 || (values ? !memcmp(it->row.p, row.p, sizeof row.p) : it->plan.seconds < list[best].plan.seconds))
            best = i;
    }
    if (best >= 0 && values && memcmp(list[best].row.p, row.p, sizeof row.p)) {
        struct vn_choices *c = q->device->choices;

        memcpy(list[best].row.p, row.p, sizeof row.p);
        plan(&list[best].plan, list[best].variant, problem, &list[best].row,
             &(struct vn_site){ &q->device->facts, &c->rates, q, 0 });
    }
    if (best >= 0) {
        list[best].row.source = row.source;
        list[best].why = NULL;
    }
    return best;
}

/* The cheapest of those that can be made ready; by name, that variant or none.  depth: 1 of a part. */
static vn_status search(const struct vn_choice **out, struct vn_plan *the_plan, vn_queue *q,
                        const struct vn_variant *table, const void *problem, const char *forced, int depth)
{
    const struct vn_candidate *last = NULL;
    struct list l;
    int best;
    vn_status s = candidates(&l, q, table, problem, forced, depth);

    if (s)
        return s;
    if (!l.count)
        return no_such_variant(table, forced ? forced : "");
    best = forced || depth ? -1 : pinned(l.at, l.count, q, problem);
    if (best < 0 && (best = vn__cheapest(l.at, l.count, forced != NULL)) < 0)
        s = vn__fail(VN_UNSUPPORTED, "variant %s does not fit: %s", l.at[l.count - 1].variant->name,
                     l.at[l.count - 1].why);
    while (best >= 0) {
        struct vn_candidate *const it = &l.at[best];

        *the_plan = it->plan;
        if ((s = vn__candidate_ready(out, q, it, problem)) == VN_OK || s == VN_NO_MEMORY)
            break;
        vn__log(VN_LOG_CHOOSE, "%s passed over: %s", it->variant->name, vn_last_error());
        it->unfit = 1;
        last = it->variant->trial && last ? last : it;
        best = vn__cheapest(l.at, l.count, forced != NULL);
    }
    if (s && last)                              /* what is expected of no trial says most */
        s = vn__candidate_ready(out, q, last, problem);
    free(l.at);
    return s;
}

static vn_status run_nothing(vn_queue *q, const struct vn_choice *it, const void *problem, const struct vn_plan *none)
{
    (void)q;
    (void)it;
    (void)problem;
    (void)none;
    return VN_OK;
}

static const struct vn_variant nothing = { .name = "nothing", .run = run_nothing };
static const struct vn_choice  choice_of_nothing = { .variant = &nothing };

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
    if (!q->only_choose)
        vn__memo_use(q, m);
    *out = q->only_choose ? &choice_of_nothing : m->choice;
    *the_plan = &m->plan;
    return VN_OK;
}

vn_status vn__choose_part(const struct vn_choice **out, struct vn_plan *the_plan, vn_queue *q,
                          const struct vn_variant *table, const void *problem)
{
    return search(out, the_plan, q, table, problem, NULL, 1);
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

static void add_parameters(struct builder *b, const struct vn_variant *v, const int *p)
{
    char name[64], number[32];

    add_text(b, ", \"parameters\": {");
    for (int i = 0; vn__word_at(name, v->params, i); i++) {
        add_text(b, i ? ", " : "");
        add_string(b, name);
        add(b, number, (size_t)snprintf(number, sizeof number, ": %d", p[i]));
    }
    add_text(b, "}");
}

static int is_chosen(const struct vn_candidate *it, const struct vn_choice *chosen)
{
    return it->variant == chosen->variant && !it->unfit && !memcmp(it->row.p, chosen->p, sizeof chosen->p);
}

static void add_candidate(struct builder *b, const struct vn_candidate *it)
{
    const char *const why = it->why ? it->why
                          : it->plan.seconds > 0 ? "another plan costs less"
                          : "a variant before it in the table is used, or another was asked for";

    add_text(b, "{\"variant\": ");
    add_string(b, it->variant->name);
    if (!it->unfit)
        add_parameters(b, it->variant, it->row.p);
    if (it->plan.seconds > 0)
        add_number(b, "estimate", it->plan.seconds);
    add_member(b, "why", why);
    add_text(b, "}");
}

/* All other plans, and why none of them is used. */
static void add_passed_over(struct builder *b, vn_queue *q)
{
    struct vn_candidate *list;
    int count, some = 0;

    add_text(b, ", \"passed_over\": [");
    if (vn__candidates(&list, &count, q, q->last->table, q->last->problem, NULL))
        count = 0;
    for (int i = 0; i < count; i++) {
        if (is_chosen(&list[i], q->last->choice))
            continue;
        add_text(b, some++ ? ", " : "");
        add_candidate(b, &list[i]);
    }
    free(list);
    add_text(b, "]");
}

const char *vn_queue_explain(vn_queue *q)
{
    struct builder b = { 0 };
    const struct vn_problem *head;

    if (vn__enter("vn_queue_explain") || vn__handle_check(q, VN_QUEUE, "queue") || !q->last)
        return "{}";
    head = q->last->problem;
    add_text(&b, "{");
    add_member(&b, "op", head->op);
    add_member(&b, "type", vn_type_name(head->type));
    add_member(&b, "device", q->device->info.spec);
    add_member(&b, "device_name", q->device->facts.name);
    add_member(&b, "variant", q->last->choice->variant->name);
    add_member(&b, "row", q->last->choice->source);
    add_parameters(&b, q->last->choice->variant, q->last->choice->p);
    if (q->last->plan.seconds > 0)
        add_number(&b, "estimate", q->last->plan.seconds);
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
