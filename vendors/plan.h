/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.h - what a vendor's library found out about a problem, remembered on a queue.
 */
#ifndef VN_PLAN_H
#define VN_PLAN_H

#include <stddef.h>

struct vn_plan {                  /* begins each plan */
    struct vn_plan *next;
    const void     *key;          /* inside the plan; no padding: keys are compared as bytes */
};

struct vn_plans {
    struct vn_plan *first;        /* the one used last comes first */
    int             count;
    size_t          key_bytes;
    void          (*close)(struct vn_plan *p);
};

struct vn_plan *vn__plan_find(struct vn_plans *all, const void *key);    /* NULL: there is none */
/* The least recently used one goes when there are many. */
void            vn__plan_add(struct vn_plans *all, struct vn_plan *p);
void            vn__plans_close(struct vn_plans *all);
#endif
