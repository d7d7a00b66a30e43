/* SPDX-License-Identifier: Apache-2.0
 *
 * softmax.h - the problem of softmax.c, for the files that solve it in a way of their own.
 *
 * Every variant sees rows: the axis comes last, and before it as few row dimensions as the
 * views allow.  Forward and backward are one problem of three views:
 *
 *     forward    X is x     W is the mask (or x again, not looked at)    Y is y
 *     backward   X is y     W is dy                                      Y is dx
 */
#ifndef VN_SOFTMAX_H
#define VN_SOFTMAX_H

#include "core.h"

enum { X, W, Y, VIEWS };

struct softmax {                  /* the problem, as variants see it */
    struct vn_problem head;
    vn_tensor t[VIEWS];           /* axis last */
    int64_t   rows, n;
    double    scale;
    int       backward, log, causal, has_w;
    int       whole;              /* rows begin at, and are, multiples of 16 bytes if their buffers do */
    int       across;             /* rows lie side by side, and elements of a row do not */
    int       units;              /* of the device */
};

/* A row in parts of `span` elements, a multiple of `grain`: those of all rows are enough to fill the device.
 * places: its elements, and of a row that may begin off a multiple of 16 bytes, those before. */
struct parts { int64_t span, count; };
struct parts vn__softmax_parts(const struct softmax *s, int64_t places, int64_t grain);
int64_t      vn__softmax_places(const struct softmax *s);
size_t       vn__softmax_pairs_bytes(const struct softmax *s, int64_t parts);
/* The arguments that all kernels begin with; `each` is how much a group takes. */
void         vn__softmax_begin(struct vn_launch *l, const struct softmax *s, int64_t each);

vn_status    vn__run_softmax_parts(vn_queue *q, const struct vn_choice *it, const struct softmax *s,
                                   struct parts parts, int items);

/* rows.c: any device */
const char *vn__plan_softmax_rows(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                  const struct vn_site *site);
const char *vn__plan_softmax_split(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                   const struct vn_site *site);
vn_status   vn__run_softmax_split(vn_queue *q, const struct vn_choice *it, const void *problem,
                                  const struct vn_plan *plan);
const char *vn__plan_softmax_team(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                  const struct vn_site *site);
vn_status   vn__run_softmax_team(vn_queue *q, const struct vn_choice *it, const void *problem,
                                 const struct vn_plan *plan);
vn_status   vn__run_softmax(vn_queue *q, const struct vn_choice *it, const void *problem,
                            const struct vn_plan *plan);

/* cpu.c: CPUs, through vectors written out */
const char *vn__plan_softmax_cpu_split(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                       const struct vn_site *site);
vn_status   vn__run_softmax_cpu_split(vn_queue *q, const struct vn_choice *it, const void *problem,
                                      const struct vn_plan *plan);
vn_status   vn__run_softmax_cpu(vn_queue *q, const struct vn_choice *it, const void *problem,
                                const struct vn_plan *plan);
#endif
