/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c - all plans for a problem, and the cheapest.
 *
 * Each variant that fits makes a plan with each of its tune rows: in what time, by the rates of the device
 * and the costs of the row.  A pin in a tune file names the one to be used for problems of a shape,
 * whatever it costs.
 */
#include <stdlib.h>
#include <string.h>

#include "choices.h"

/* The rows for this variant and problem; NULL, with vn__fail(), where there are none. */
static const struct vn_rows *rows_of(struct vn_choices *c, const vn_device *d, const struct vn_variant *v,
                                  const struct vn_problem *head)
{
    struct vn_row found[VN_ROWS];
    struct vn_rows *r;
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
    *r = (struct vn_rows){ .variant = v, .type = (int)head->type, .bucket = (int)head->bucket,
                           .count = count };
    memcpy(r->row, found, (size_t)count * sizeof *found);
    pthread_mutex_lock(&c->lock);
    r->next = c->rows;                          /* another thread may add the same: that does no harm */
    c->rows = r;
    pthread_mutex_unlock(&c->lock);
    return r;
}

static const char *plan(struct vn_plan *out, const struct vn_variant *v, const void *problem,
                        const struct vn_row *row, const struct vn_site *site)
{
    *out = (struct vn_plan){ 0 };
    return v->plan ? v->plan(out, problem, row, site) : NULL;
}

/* A choice has its row's parameters; the costs are those of the row that has the same.  A row that no file
 * has, as a tuner tries it, has the costs of the first: so it will when it is written.                    */
vn_status vn__plan(struct vn_plan *out, vn_queue *q, const struct vn_choice *it, const void *problem)
{
    struct vn_row row = { .source = it->source };
    const struct vn_rows *rows;
    struct vn_choices *c;
    vn_status s = vn__choices_of(&c, q->device);
    const struct vn_site site = { &q->device->facts, s ? NULL : &c->rates, q, 0 };

    if (s)
        return s;
    rows = it->variant->params ? rows_of(c, q->device, it->variant, problem) : NULL;
    if (rows) {
        int same = 0;

        while (same < rows->count && memcmp(rows->row[same].p, it->p, sizeof it->p))
            same++;
        row = rows->row[same < rows->count ? same : 0];
    }
    memcpy(row.p, it->p, sizeof row.p);
    plan(out, it->variant, problem, &row, &site);
    return out->seconds < 0 ? vn__fail(VN_UNSUPPORTED, "%s cannot solve a problem of this size",
                                       it->variant->name)
                            : VN_OK;
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
    const struct vn_rows *rows = NULL;
    const char *why;

    /* A vendor's library is not even loaded unless it is asked for, or its row prefers it. */
    if (!v->texts && !forced &&
        (!(rows = rows_of(c, site->queue->device, v, problem)) || !rows->row->p[v->preferred]))
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
        it->unfit = it->plan.seconds < 0;
    }
    return 1;
}

static vn_status list_all(struct list *l, const struct vn_variant *table, const void *problem,
                          const struct vn_site *site, const char *forced)
{
    struct vn_choices *c;
    vn_status s = vn__choices_of(&c, site->queue->device);

    for (const struct vn_variant *v = table; v->name && s == VN_OK; v++)
        if ((!forced || vn__is_named(v, forced)) && !add_variant(l, c, v, problem, site, forced != NULL))
            s = VN_NO_MEMORY;
    return s;
}

vn_status vn__candidates(struct vn_candidate **out, int *count, vn_queue *q, const struct vn_variant *table,
                         const void *problem, const char *forced, int depth)
{
    struct list l = { 0 };
    struct vn_choices *c;
    vn_status s = vn__choices_of(&c, q->device);

    if (s == VN_OK)
        s = list_all(&l, table, problem, &(struct vn_site){ &q->device->facts, &c->rates, q, depth }, forced);
    if (s) {
        free(l.at);
        l = (struct list){ 0 };
    }
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
            (!it->why == !list[best].why && it->plan.seconds > 0 &&
             it->plan.seconds < list[best].plan.seconds))
            best = i;
    }
    return best;
}

double vn__part_seconds(const struct vn_site *site, const struct vn_variant *table, const void *part,
                        size_t *workspace)
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

/* The candidate that a pin names: its index, or -1.  Values of a pin that no row has make a
 * row of their own.                                                                      */
int vn__pinned(struct vn_candidate *list, int count, vn_queue *q, const void *problem)
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
        if (best < 0 ||
            (values ? !memcmp(it->row.p, row.p, sizeof row.p) : it->plan.seconds < list[best].plan.seconds))
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
