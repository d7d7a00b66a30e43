/* SPDX-License-Identifier: Apache-2.0
 *
 * prepared.c - a short list, the most recently used first.
 */
#include <string.h>

#include "prepared.h"

enum { MOST = 256 };              /* more than a network has layers */

static void push(struct vn_prepared_list *all, struct vn_prepared *p)
{
    p->next = all->first;
    all->first = p;
}

struct vn_prepared *vn__prepared_find(struct vn_prepared_list *all, const void *key)
{
    for (struct vn_prepared **at = &all->first; *at; at = &(*at)->next)
        if (!memcmp((*at)->key, key, all->key_bytes)) {
            struct vn_prepared *p = *at;

            *at = p->next;
            push(all, p);
            return p;
        }
    return NULL;
}

static void drop_last(struct vn_prepared_list *all)
{
    struct vn_prepared **at = &all->first, *last;

    while ((*at)->next)
        at = &(*at)->next;
    last = *at;
    *at = NULL;
    all->close(last);
    all->count--;
}

void vn__prepared_add(struct vn_prepared_list *all, struct vn_prepared *p)
{
    if (all->count == MOST)
        drop_last(all);
    push(all, p);
    all->count++;
}

void vn__prepared_close(struct vn_prepared_list *all)
{
    while (all->first)
        drop_last(all);
}
