/* SPDX-License-Identifier: Apache-2.0
 *
 * prepared.h - what a vendor's library found out about a problem, remembered on a queue.
 */
#ifndef VN_PREPARED_H
#define VN_PREPARED_H

#include <stddef.h>

struct vn_prepared {                  /* begins each */
    struct vn_prepared *next;
    const void     *key;          /* inside it; no padding: keys are compared as bytes */
};

struct vn_prepared_list {
    struct vn_prepared *first;        /* the one used last comes first */
    int             count;
    size_t          key_bytes;
    void          (*close)(struct vn_prepared *p);
};

struct vn_prepared *vn__prepared_find(struct vn_prepared_list *all, const void *key);    /* NULL: there is none */
/* The least recently used one goes when there are many. */
void            vn__prepared_add(struct vn_prepared_list *all, struct vn_prepared *p);
void            vn__prepared_close(struct vn_prepared_list *all);
#endif
