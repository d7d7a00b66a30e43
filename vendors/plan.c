/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c - a short list of plans, the most recently used first.
 */
#include <string.h>

#include "plan.h"

enum { MOST = 256 };              /* more than the layers of a network */

static void push(struct vn_plans *all, struct vn_plan *p)
{
    p->next = all->first;
    all->first = p;
}

struct vn_plan *vn__plan_find(struct vn_plans *all, const void *key)
{
    for (struct vn_plan **at = &all->first; *at; at = &(*at)->next)
        if (!memcmp((*at)->key, key, all->key_bytes)) {
            struct vn_plan *p = *at;

            *at = p->next;
            push(all, p);
            return p;
        }
    return NULL;
}

static void drop_last(struct vn_plans *all)
{
    struct vn_plan **at = &all->first, *last;

    while ((*at)->next)
        at = &(*at)->next;
    last = *at;
    *at = NULL;
    all->close(last);
    all->count--;
}

void vn__plan_add(struct vn_plans *all, struct vn_plan *p)
{
    if (all->count == MOST)
        drop_last(all);
    push(all, p);
    all->count++;
}

void vn__plans_close(struct vn_plans *all)
{
    while (all->first)
        drop_last(all);
}
