/* SPDX-License-Identifier: Apache-2.0
 *
 * explain.c - how the last operation of a queue was solved, and why not otherwise, as JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "text.h"

static void add_text(struct vn_builder *b, const char *s)
{
    vn__text_add(b, s, strlen(s));
}

static void add_string(struct vn_builder *b, const char *s)
{
    vn__text_add(b, "\"", 1);
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            vn__text_add(b, (char[]){ '\\', *s }, 2);
        else if ((unsigned char)*s >= ' ')
            vn__text_add(b, s, 1);
    vn__text_add(b, "\"", 1);
}

static void add_member(struct vn_builder *b, const char *name, const char *value)
{
    add_text(b, b->length > 1 ? ", " : "");
    add_string(b, name);
    add_text(b, ": ");
    add_string(b, value);
}

static void add_number(struct vn_builder *b, const char *name, double value)
{
    char number[32];

    snprintf(number, sizeof number, "%.17g", value);
    add_text(b, b->length > 1 ? ", " : "");
    add_string(b, name);
    add_text(b, ": ");
    add_text(b, number);
}

/* Multiply-adds of 16-bit types are of f32. */
static const char *fma_of(vn_type type, const char *family)
{
    const int is_f64 = type == VN_F64;

    return strcmp(family, "nvidia") ? is_f64 ? "FMA f64" : "FMA f32" : is_f64 ? "DFMA" : "FFMA";
}

const char *vn__engine(char out[VN_ENGINE], const struct vn_variant *v, vn_type type, const char *family)
{
    if (!v->texts || (v->engine && !*v->engine))
        *out = '\0';
    else if (!v->engine)
        snprintf(out, VN_ENGINE, "%s", fma_of(type, family));
    else if (type == VN_F32 && v->engine_f32)
        snprintf(out, VN_ENGINE, "%s", v->engine_f32);
    else if (type == VN_F64 && !strcmp(v->engine, "HMMA"))
        snprintf(out, VN_ENGINE, "DMMA");
    else
        snprintf(out, VN_ENGINE, "%s %s", v->engine, vn_type_name(type));
    return out;
}

static void add_engine(struct vn_builder *b, const vn_queue *q, vn_type type)
{
    const struct vn_choice *const it = q->last->part ? q->last->part : q->last->choice;
    char engine[VN_ENGINE];

    add_member(b, "engine", vn__engine(engine, it->variant, type, q->device->facts.family));
}

static void add_parameters(struct vn_builder *b, const struct vn_variant *v, const int *p)
{
    char name[64], number[32];

    add_text(b, ", \"parameters\": {");
    for (int i = 0; vn__word_at(name, v->params, i); i++) {
        add_text(b, i ? ", " : "");
        add_string(b, name);
        vn__text_add(b, number, (size_t)snprintf(number, sizeof number, ": %d", p[i]));
    }
    add_text(b, "}");
}

static int is_chosen(const struct vn_candidate *it, const struct vn_choice *chosen)
{
    return it->variant == chosen->variant && !it->unfit && !memcmp(it->row.p, chosen->p, sizeof chosen->p);
}

static void add_candidate(struct vn_builder *b, const struct vn_candidate *it)
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

/* One name may serve several directions, by a variant each: one that does not fit is told of once, and only
 * where none of its name fits.                                                                        */
static int is_told(const struct vn_candidate *list, int count, int at, const struct vn_choice *chosen)
{
    const char *const name = list[at].variant->name;

    if (is_chosen(&list[at], chosen) || (list[at].unfit && !strcmp(name, chosen->variant->name)))
        return 0;
    for (int i = 0; i < count && list[at].unfit; i++)
        if (i != at && !strcmp(name, list[i].variant->name) && (i < at || !list[i].unfit))
            return 0;
    return 1;
}

/* All other plans, and why none of them is used. */
static void add_passed_over(struct vn_builder *b, vn_queue *q)
{
    struct vn_candidate *list;
    int count, some = 0;

    add_text(b, ", \"passed_over\": [");
    if (vn__candidates(&list, &count, q, q->last->table, q->last->problem, NULL, 0))
        count = 0;
    for (int i = 0; i < count; i++) {
        if (!is_told(list, count, i, q->last->choice))
            continue;
        add_text(b, some++ ? ", " : "");
        add_candidate(b, &list[i]);
    }
    free(list);
    add_text(b, "]");
}

const char *vn_queue_explain(vn_queue *q)
{
    struct vn_builder b = { 0 };
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
    add_engine(&b, q, head->type);
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
