/* SPDX-License-Identifier: Apache-2.0
 *
 * operation.c - the way that every call of every operation takes: a call that was made before launches
 * the same again; any other is checked, posed as a problem, chosen for, run and noted.
 */
#include <stdlib.h>
#include <string.h>

#include "core.h"

/* Two calls may have one pointer and other characters there, or one name in two places.  A known name
 * becomes the table's own, so that equal bytes are equal calls.  An unknown one stays: no call with
 * it is ever noted, since vn__choose() refuses it.                                                */
static void name_variant(struct vn_call *call)
{
    const char *const name = call->variant;

    if (!name)
        return;
    if (!*name)
        call->variant = NULL;
    for (const struct vn_variant *v = call->operation->variants; *name && v->name; v++)
        if (vn__is_named(v, name)) {
            call->variant = v->name;
            return;
        }
}

static vn_status solve(vn_queue *q, const struct vn_call *call, void *problem)
{
    const struct vn_operation *const o = call->operation;
    const struct vn_choice *it;
    const struct vn_plan *plan;
    int done = 0;
    vn_status s = o->pose(problem, &done, q, call);

    if (s || done)
        return s;
    if ((s = vn__choose(&it, &plan, q, o->variants, problem, o->problem_size, call->variant)))
        return s;
    return vn__call(q, it, plan, problem, call, o->call_size);
}

static vn_status operate(vn_queue *q, struct vn_call *call)
{
    const struct vn_operation *const o = call->operation;
    void *problem;
    vn_status s;

    if ((s = vn__handle_check(q, VN_QUEUE, "queue")))
        return s;
    name_variant(call);
    if (vn__call_again(&s, q, call, o->call_size))
        return s;
    if (!(problem = calloc(1, o->problem_size)))
        return vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes for a problem", o->problem_size);
    s = solve(q, call, problem);
    free(problem);
    return s;
}

vn_status vn__operate(vn_queue *q, struct vn_call *call)
{
    const vn_status s = vn__enter(call->operation->functions[call->function]);

    return s ? s : vn__leave(operate(q, call));
}
