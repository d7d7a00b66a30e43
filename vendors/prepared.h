/* SPDX-License-Identifier: Apache-2.0
 *
 * prepared.h - what a vendor's library prepared for a problem (descriptors, an algorithm), kept on a queue.
 */
#ifndef VN_PREPARED_H
#define VN_PREPARED_H

#include <stddef.h>

struct vn_prepared {              /* the first member of each */
    struct vn_prepared *next;
    const void         *key;      /* inside it; without padding, since keys are compared as bytes */
};

struct vn_prepared_list {
    struct vn_prepared *first;    /* most recently used first */
    int                 count;
    size_t              key_bytes;
    void              (*close)(struct vn_prepared *p);
};

/* NULL: there is none. */
struct vn_prepared *vn__prepared_find(struct vn_prepared_list *all, const void *key);
/* Drops the least recently used one when there are many. */
void                vn__prepared_add(struct vn_prepared_list *all, struct vn_prepared *p);
void                vn__prepared_close(struct vn_prepared_list *all);
#endif
