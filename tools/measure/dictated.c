/* SPDX-License-Identifier: Apache-2.0
 *
 * dictated.c - stands before vn__tune_find(), vn__choose() and vn__call_again().
 */
#include <string.h>
#include "dictated.h"

/* ---- rows ---- */

static const vn_device *device;
static struct vn_choice choice;

void row_dictate(const vn_device *d, const struct vn_choice *it)
{
    device = d;
    if (d)
        choice = *it;
}

vn_status __real_vn__tune_find(struct vn_row *out, int *count, const vn_device *d, const struct vn_variant *v,
                               vn_type type, enum vn_bucket bucket);
vn_status __wrap_vn__tune_find(struct vn_row *out, int *count, const vn_device *d, const struct vn_variant *v,
                               vn_type type, enum vn_bucket bucket);

vn_status __wrap_vn__tune_find(struct vn_row *out, int *count, const vn_device *d, const struct vn_variant *v,
                               vn_type type, enum vn_bucket bucket)
{
    vn_status s;

    if ((s = __real_vn__tune_find(out, count, d, v, type, bucket)) || !device || d != device
        || v != choice.variant)
        return s;
    memcpy(out->p, choice.p, sizeof choice.p);
    out->source = "dictated";
    *count = 1;
    return VN_OK;
}

/* ---- choices ---- */

static const vn_device *obedient;
static const struct vn_choice *dictated;
static choice_of *dictated_of;            /* NULL: what is dictated is for the problems that come */
static void      *of_what;
static struct vn_variant shown;           /* the dictated one, but for its `run` */
static struct vn_choice shown_choice;
static struct asked *asked;
static int repeats;                       /* a call that is made again only launches */
static int within;                        /* a variant that is at work chooses for its parts as ever */
static struct vn_plan plan;

/* What the last dictated call launched, for those that are made again. */
static struct {
    struct vn_memo          memo;
    vn_queue               *queue;        /* NULL: nothing is noted */
    const struct vn_choice *by;
    struct vn_choice        as;           /* what it said by then */
    struct vn_memo         *before;       /* the last of the queue when nobody dictated */
} noted;

static vn_status run_dictated(vn_queue *q, const struct vn_choice *it, const void *problem,
                              const struct vn_plan *p)
{
    vn_status s;

    (void)it;
    within++;
    s = dictated->variant->run(q, dictated, problem, p);
    within--;
    return s;
}

static void show(const struct vn_choice *it)
{
    shown = *it->variant;
    shown.run = run_dictated;
    shown_choice = *it;
    shown_choice.variant = &shown;
}

void choice_dictate(const vn_device *d, const struct vn_choice *it)
{
    if (!d && repeats && noted.queue && noted.queue->last == &noted.memo)
        noted.queue->last = noted.before;
    repeats = 0;
    dictated_of = NULL;
    obedient = d;
    dictated = it;
    if (d)
        show(it);
}

void choice_dictate_row(const vn_device *d, const struct vn_choice *it, choice_of *of, void *state)
{
    choice_dictate(d, it);
    dictated_of = of;
    of_what = state;
}

void choice_repeat(const vn_device *d, const struct vn_choice *it)
{
    choice_dictate(d, it);
    repeats = 1;
}

void choice_ask(struct asked *out)
{
    asked = out;
    if (out)
        out->variant = NULL;
}

/* vn__call() notes the launches of the queue's last memo, if that has the choice. */
static void note(vn_queue *q)
{
    if (q->last != &noted.memo)
        noted.before = q->last;
    noted.queue = q;
    noted.by = dictated;
    noted.as = *dictated;
    noted.memo.choice = &shown_choice;
    noted.memo.plan = plan;
    noted.memo.part = NULL;
    q->last = &noted.memo;
    q->workspace_used = q->packed_used = 0;
}

static int is_noted(const vn_queue *q)
{
    return repeats && q == noted.queue && dictated == noted.by &&
           !memcmp(&noted.as, dictated, sizeof noted.as);
}

/* As choose.c does with a variant that was asked for by name. */
static vn_status obey(const struct vn_choice **out, vn_queue *q, const void *problem)
{
    const struct vn_variant *const v = dictated->variant;
    const char *const why = v->fits(problem, &q->device->facts);
    vn_status s;

    if (why)
        return vn__fail(VN_UNSUPPORTED, "variant %s does not fit: %s", v->name, why);
    if (dictated_of) {
        const struct vn_choice *const it = dictated_of(of_what, problem);

        if (!it)
            return vn__fail(VN_UNSUPPORTED, "the kernels of variant %s do not build", v->name);
        dictated = it;
        show(it);
    }
    if ((s = vn__plan(&plan, q, dictated, problem)))
        return s;
    if (plan.workspace > q->workspace_limit)
        return vn__fail(VN_UNSUPPORTED, "%s needs %zu bytes of workspace, above the queue's limit of %zu",
                        v->name, plan.workspace, q->workspace_limit);
    *out = &shown_choice;
    if (repeats)
        note(q);
    return VN_OK;
}

vn_status __real_vn__choose(const struct vn_choice **out, const struct vn_plan **the_plan, vn_queue *q,
                            const struct vn_variant *table, const void *problem, size_t problem_size,
                            const char *forced);
vn_status __wrap_vn__choose(const struct vn_choice **out, const struct vn_plan **the_plan, vn_queue *q,
                            const struct vn_variant *table, const void *problem, size_t problem_size,
                            const char *forced);

vn_status __wrap_vn__choose(const struct vn_choice **out, const struct vn_plan **the_plan, vn_queue *q,
                            const struct vn_variant *table, const void *problem, size_t problem_size,
                            const char *forced)
{
    vn_status s;

    *the_plan = &plan;
    if (obedient && q->device == obedient && !within)
        return obey(out, q, problem);
    within++;
    s = __real_vn__choose(out, the_plan, q, table, problem, problem_size, forced);
    within--;
    if (s || within || !asked)
        return s;
    asked->variant = (*out)->variant;
    asked->problem = *(const struct vn_problem *)problem;
    asked->source  = (*out)->source;
    asked->epilogue = (*out)->epilogue;
    memcpy(asked->p, (*out)->p, sizeof asked->p);
    memcpy(asked->c, (*out)->c, sizeof asked->c);
    return vn__fail(VN_UNSUPPORTED, "it was only asked");
}

int __real_vn__call_again(vn_status *out, vn_queue *q, const void *call, size_t size);
int __wrap_vn__call_again(vn_status *out, vn_queue *q, const void *call, size_t size);

/* What was chosen before does not bind who dictates, unless the same was dictated; nor does that bind the
 * library; and who asks wants to hear it again.                                                         */
int __wrap_vn__call_again(vn_status *out, vn_queue *q, const void *call, size_t size)
{
    if (asked || (obedient && !is_noted(q)))
        return 0;
    if (!obedient) {                      /* the library's own may take the place of what is noted */
        noted.queue = NULL;
        noted.memo.call_size = 0;
    }
    return __real_vn__call_again(out, q, call, size);
}
