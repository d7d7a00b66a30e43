/* SPDX-License-Identifier: Apache-2.0
 *
 * test_again.c - a call that is made again launches what it did, without choosing, on what the buffers
 * hold by then; and what is another call is chosen for anew.  Each function of each operation.
 *
 * Each problem is run twice in a row; on other data; after others have made the workspace move; and with
 * no workspace.  The same call on a queue that never saw it says each time what is right, by bits.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "gemm/gemm.h"
#include "check/oracle.h"
#include "../start.h"
#include "check/suite.h"
#include "problem/attention.h"
#include "problem/cross_entropy.h"
#include "problem/softmax.h"
#include "../trial.h"

static const char *const texts[] = {
    "gemm:32x32x32:f32:nn",
    "gemm:300x40x500:f32:nt",
    "gemm:8x200x2000:f32:nn",
    "gemm:1x300x300:f32:nt",
    "gemm:300x2x700:f32:nn",
    "gemm:64x64x4096:f32:tn",
    "gemm:600x520x300:f32:nn",
    "gemm:20x24x28:f32:tt:bias=row:act=gelu:batch=3",
    "gemm:20x24x28:f32:nn:alpha=0.5:gap=4",
    "gemm:136x264x104:f16:nt",
    "gemm:4x64x512:bf16:nt",
    "conv:n2c8h9w9k16r3s3:f32:nchw:forward",
    "conv:n2c8h9w9k16r3s3:f32:nchw:backward-data:stride=2:pad=1",
    "conv:n4c8h32w32k8r3s3:f32:nchw:backward-filter:pad=1",
    "conv:n1c16h12w12k16r3s3:f32:nhwc:forward:groups=16:bias=row:act=relu",
    "conv:n2c8w40k16s5:f16:nchw:forward:dil=2",
    "softmax:64x1000:f32:forward",
    "softmax:64x1000:f32:backward",
    "softmax:1x200000:f32:forward",
    "softmax:48x100:f16:forward:mask=row:scale=0.5",
    "softmax:32x33:f32:backward:log:causal",
    "attention:b1h4s40d24:f32:hk=2:causal",
    "cross-entropy:7x40:f32:weights:smoothing=0.1",
    "cross-entropy:5x33:bf16:lse:targets=i64",
    "attention:b2h1s33d20:f16:sk=70:lse",
    "attention:b1h4s40d24:f32:backward:hk=2:causal",
};
enum { COUNT = sizeof texts / sizeof *texts };

static vn_device *device;
static vn_queue  *queue;
static struct trial trial[COUNT];
static long cases, failures;

static void check(int right, const char *text, const char *what)
{
    cases++;
    if (right)
        return;
    failures++;
    printf("not ok: %s, %s (%s)\n", text, what, vn_last_error());
}

/* ---- what a call does -------------------------------------------------------------- */

enum { LAUNCHES = 16 };

static struct {
    const struct vn_operation *operation;
    int         function, chosen, launches;
    const struct vn_choice *choice[LAUNCHES];
    int         kernel[LAUNCHES];
    int64_t     groups[LAUNCHES][3];
} seen;
static const char *variant;                 /* that each call asks for; NULL: what the problem says */

vn_status __real_vn__operate(vn_queue *q, struct vn_call *call);
vn_status __wrap_vn__operate(vn_queue *q, struct vn_call *call);

vn_status __wrap_vn__operate(vn_queue *q, struct vn_call *call)
{
    memset(&seen, 0, sizeof seen);
    seen.operation = call->operation;
    seen.function = call->function;
    if (variant)
        call->variant = variant;
    return __real_vn__operate(q, call);
}

vn_status __real_vn__choose(const struct vn_choice **out, const struct vn_plan **plan, vn_queue *q,
                            const struct vn_variant *table, const void *problem, size_t size,
                            const char *forced);
vn_status __wrap_vn__choose(const struct vn_choice **out, const struct vn_plan **plan, vn_queue *q,
                            const struct vn_variant *table, const void *problem, size_t size,
                            const char *forced);

vn_status __wrap_vn__choose(const struct vn_choice **out, const struct vn_plan **plan, vn_queue *q,
                            const struct vn_variant *table, const void *problem, size_t size,
                            const char *forced)
{
    seen.chosen++;
    return __real_vn__choose(out, plan, q, table, problem, size, forced);
}

vn_status __real_vn__launch(vn_queue *q, const struct vn_choice *it, int kernel, struct vn_launch *l);
vn_status __wrap_vn__launch(vn_queue *q, const struct vn_choice *it, int kernel, struct vn_launch *l);

vn_status __wrap_vn__launch(vn_queue *q, const struct vn_choice *it, int kernel, struct vn_launch *l)
{
    const int at = q == queue ? seen.launches++ : LAUNCHES;     /* not those of a variant's trial */

    if (at < LAUNCHES) {
        seen.choice[at] = it;
        seen.kernel[at] = kernel;
        memcpy(seen.groups[at], l->groups, sizeof l->groups);
    }
    return __real_vn__launch(q, it, kernel, l);
}

/* ---- one problem --------------------------------------------------------------------- */

/* What comes out of the very same call on a queue that is new; and what it explains. */
static vn_status expect(void *out, char **explained, const struct trial *t, size_t limit)
{
    vn_queue *q;
    vn_status s;

    if ((s = vn_queue_open(&q, device)))
        return s;
    if ((s = vn_queue_limit_workspace(q, limit)) == VN_OK && (s = trial_run(out, t, q, NULL)) == VN_OK)
        *explained = strdup(vn_queue_explain(q));
    vn_queue_close(q);
    return s;
}

/* Other bytes where the result goes. */
static vn_status spoil(const struct trial *t)
{
    void *const host = malloc(t->bytes);
    vn_status s;

    if (!host)
        return VN_NO_MEMORY;
    memset(host, 0x5a, t->bytes);
    s = vn_write(queue, t->o.t[t->o.output].buffer, 0, host, t->bytes);
    free(host);
    return s;
}

/* At once again: the same launches, nothing chosen.  What vendors' libraries launch is not noted. */
static void warm(const struct trial *t, const void *wanted, void *got, const char *text)
{
    char *const explained = strdup(vn_queue_explain(queue));
    const int is_ours = queue->last->choice->variant->texts != NULL;
    __typeof__(seen) before = seen;

    check(!is_ours || (before.launches > 0 && before.launches <= LAUNCHES), text, "how many launches");
    check(!is_ours || queue->last->call_size == seen.operation->call_size, text, "the call is not noted");
    check(!trial_run(got, t, queue, NULL) && !memcmp(wanted, got, t->bytes), text, "at once again");
    before.chosen = 0;
    check(!is_ours || !memcmp(&before, &seen, sizeof seen), text, "other launches, or chosen for again");
    check(explained && !strcmp(explained, vn_queue_explain(queue)), text, "what it explains, at once again");
    free(explained);
}

static void again(const struct trial *t, const char *text, const char *what, size_t limit)
{
    void *const wanted = malloc(t->bytes), *const got = malloc(t->bytes);
    char *explained = NULL;

    if (!wanted || !got || spoil(t) || expect(wanted, &explained, t, limit) || !explained || spoil(t) ||
        trial_run(got, t, queue, NULL))
        check(0, text, what);
    else {
        check(!memcmp(wanted, got, t->bytes), text, what);
        check(!strcmp(explained, vn_queue_explain(queue)), text, "what it explains");
        check(!spoil(t), text, "other bytes");
        warm(t, wanted, got, text);
    }
    free(wanted);
    free(got);
    free(explained);
}

/* Other numbers in the first operand. */
static vn_status change(const struct trial *t)
{
    struct random r = { 7 };
    const size_t bytes = (size_t)t->o.elements[0] * vn_type_bytes(t->p.type);
    void *const host = malloc(bytes);
    vn_status s;

    if (!host)
        return VN_NO_MEMORY;
    for (int64_t i = 0; i < t->o.elements[0]; i++)
        oracle_store(t->p.type, host, i, random_real(&r, -1, 1));
    s = vn_write(queue, t->buffers[0], 0, host, bytes);
    free(host);
    return s;
}

static void test_all(const char *what, size_t limit)
{
    for (int i = 0; i < COUNT; i++)
        again(&trial[i], texts[i], what, limit);
}

/* The caller's buffer as workspace: large enough for all, then too small for any. */
static void test_lent(void)
{
    enum { LARGE = 64 << 20, SMALL = 64 };
    vn_buffer *large = NULL, *small = NULL;

    check(!vn_buffer_open(&large, device, LARGE) && !vn_buffer_open(&small, device, SMALL), "",
          "buffers to lend");
    check(!vn_queue_use_workspace(queue, large) && vn_queue_workspace(queue) == LARGE, "",
          "a lent workspace");
    for (int i = 0; i < COUNT; i += 3)
        again(&trial[i], texts[i], "in the caller's workspace", LARGE);
    check(!vn_queue_limit_workspace(queue, SIZE_MAX) && vn_queue_workspace(queue) == LARGE, "",
          "no other limit");
    check(!vn_queue_use_workspace(queue, small) && vn_queue_workspace(queue) == SMALL, "",
          "a small workspace");
    for (int i = 0; i < COUNT; i += 8)
        again(&trial[i], texts[i], "in the caller's small workspace", SMALL);
    check(vn_gemm(queue, 1, vn_matrix(small, VN_F32, 2, 2), vn_matrix(large, VN_F32, 2, 2), 0,
                  vn_matrix(large, VN_F32, 2, 2), NULL) == VN_INVALID &&
              strstr(vn_last_error(), "workspace"),
          "", "an operand in the workspace");
    check(vn_queue_use_workspace(queue, (vn_buffer *)queue) == VN_INVALID, "", "no buffer");
    vn_buffer_close(small);
    check(!vn_queue_use_workspace(queue, NULL) && !vn_queue_workspace(queue), "", "its own workspace");
    vn_buffer_close(large);
}

/* On a queue that is new, a prepared call changes no byte; the same call then only launches. */
static void test_prepared(int i)
{
    const struct trial *const t = &trial[i];
    void *const wanted = malloc(t->bytes), *const got = malloc(t->bytes), *const before = malloc(t->bytes);
    vn_queue *const usual = queue, *q = NULL;
    char *explained = NULL;
    int is_ours;

    if (!wanted || !got || !before || spoil(t) || expect(wanted, &explained, t, SIZE_MAX) || spoil(t) ||
        vn_queue_open(&q, device) || vn_queue_prepare(q, 1))
        check(0, texts[i], "a queue to prepare on");
    else {
        queue = q;
        check(!problem_run(q, &t->p, &t->o) && seen.chosen == 1, texts[i], "prepared");
        check(!strcmp(explained, vn_queue_explain(q)), texts[i], "what it explains, prepared");
        memset(before, 0x5a, t->bytes);
        check(!vn_read(q, got, t->o.t[t->o.output].buffer, 0, t->bytes) && !memcmp(before, got, t->bytes),
              texts[i], "preparing changes the output");
        is_ours = q->last->choice->variant->texts != NULL;
        check(!problem_run(q, &t->p, &t->o) && !(is_ours && seen.chosen), texts[i], "prepared twice");
        check(!vn_queue_prepare(q, 0) && !trial_run(got, t, q, NULL) && !memcmp(wanted, got, t->bytes) &&
              !(is_ours && seen.chosen), texts[i], "the first call after preparing");
        queue = usual;
    }
    vn_queue_close(q);
    free(wanted);
    free(got);
    free(before);
    free(explained);
}

/* ---- what is another call --------------------------------------------------------------- */

/* An option, whichever the operation has of these; and then as before. */
static void test_options(int i)
{
    static const struct op *const attention[] = { &op_attention, NULL };
    static const struct op *const entropy[] = { &op_cross_entropy, NULL };
    static const struct op *const softmax[] = { &op_softmax, NULL };
    struct trial t = trial[i];

    t.p.act = VN_TANH;
    if (op_place(softmax, t.p.op) == 0)
        softmax_of(&t.p)->log = !softmax_of(&t.p)->log;
    if (op_place(attention, t.p.op) == 0)
        attention_of(&t.p)->scale = 0.25;
    if (op_place(entropy, t.p.op) == 0)
        cross_entropy_of(&t.p)->z_loss = 0.5;
    check(!problem_run(queue, &trial[i].p, &trial[i].o), texts[i], "before its options change");
    check(!problem_run(queue, &t.p, &t.o) && seen.chosen == 1, texts[i], "other options, chosen for anew");
    again(&t, texts[i], "other options", SIZE_MAX);
    again(&trial[i], texts[i], "the old options", SIZE_MAX);
}

static void test_buffer(int i)
{
    struct trial t = trial[i];
    vn_buffer **const out = &t.o.t[t.o.output].buffer, *b;

    if (vn_buffer_open(&b, device, t.bytes)) {
        check(0, texts[i], "a buffer");
        return;
    }
    *out = b;
    check(!problem_run(queue, &trial[i].p, &trial[i].o), texts[i], "before its output changes");
    check(!problem_run(queue, &t.p, &t.o) && seen.chosen == 1, texts[i], "another output, chosen for anew");
    again(&t, texts[i], "another output", SIZE_MAX);
    vn_buffer_close(b);
    check(problem_run(queue, &t.p, &t.o) == VN_INVALID && !seen.launches, texts[i], "its output is closed");
}

static int runs(int i, const char *name)
{
    return !problem_run(queue, &trial[i].p, &trial[i].o) && !strcmp(queue->last->choice->variant->name, name);
}

/* Likewise, without choosing; what vendors' libraries launch is not noted. */
static int runs_warm(int i, const char *name)
{
    return runs(i, name) && (!seen.chosen || !queue->last->choice->variant->texts);
}

/* One buffer with one name after the other; the last of a table is one that always fits. */
static void test_variants(int i)
{
    const struct vn_variant *last = trial[i].p.op->operation->variants;
    const char *names[2], *const text = texts[i];
    char buffer[64] = "", other[64];

    variant = buffer;
    check(!problem_run(queue, &trial[i].p, &trial[i].o), text, "variant \"\"");
    names[0] = queue->last->choice->variant->name;
    while (last[1].name)
        last++;
    names[1] = last->name;
    for (int k = 0; k < 4; k++) {
        const char *const name = names[k % 2];

        snprintf(buffer, sizeof buffer, "%s", name);
        snprintf(other, sizeof other, "%s", name);
        check(runs(i, name), text, "a variant by name");
        check(k || seen.chosen == 1, text, "a name in the place of \"\": chosen for anew");
        variant = other;
        check(runs_warm(i, name), text, "its name in another place");
        variant = buffer;
        check(runs_warm(i, name), text, "a variant by name, again");
    }
    strcpy(buffer, "no_such_variant");
    check(problem_run(queue, &trial[i].p, &trial[i].o) == VN_INVALID && !seen.launches, text,
          "no such variant");
    strcpy(buffer, "");
    check(runs(i, names[0]), text, "variant \"\" after others");
    variant = NULL;
}

/* ---- all operations ------------------------------------------------------------------------ */

/* The first text that calls this function; -1: none. */
static int text_of(const struct vn_operation *o, int function)
{
    for (int i = 0; i < COUNT; i++)
        if (!problem_run(queue, &trial[i].p, &trial[i].o) && seen.operation == o && seen.function == function)
            return i;
    return -1;
}

static void test_functions(void)
{
    for (const struct vn_operation *const *o = vn__operations; *o; o++)
        for (int f = 0; f < VN_FUNCTIONS && (*o)->functions[f]; f++) {
            const int i = text_of(*o, f);

            check(i >= 0, (*o)->functions[f], "this test has no text for it");
            if (i < 0)
                continue;
            test_options(i);
            test_buffer(i);
            test_variants(i);
        }
}

/* ---- an operation whose call and problem are large -------------------------------------------- */

/* A product whose operands come last: two calls differ long after what is hashed of them. */
enum { BULK = 2048 };
struct bulky_call { struct vn_call head; char bulk[BULK]; vn_tensor a, b, c; double alpha; };
struct bulky      { struct gemm gemm; char bulk[BULK]; };

static vn_status pose(void *problem, int *done, const vn_queue *q, const void *given)
{
    const struct bulky_call *const call = given;
    struct bulky *const b = problem;
    struct gemm *const g = &b->gemm;

    (void)q;
    *g = (struct gemm){ .head = { .op = "bulky", .type = call->c.type }, .alpha = call->alpha, .batches = 1,
                        .a = call->a, .b = call->b, .c = call->c };
    g->m = g->c.extent[0];
    g->n = g->c.extent[1];
    g->k = g->a.extent[1];
    vn__gemm_size_up(g);
    memcpy(b->bulk, call->bulk, sizeof b->bulk);
    *done = 0;
    return VN_OK;
}

static const struct vn_operation bulky = {
    .name = "bulky", .functions = { "bulky" }, .variants = vn__gemm_variants,
    .call_size = sizeof(struct bulky_call), .problem_size = sizeof(struct bulky), .pose = pose,
};

/* Its result beside that of vn_gemm() on another queue, `others`, which notes calls for itself. */
static int bulky_is_right(const struct trial *t, double alpha, int chosen, vn_queue *others)
{
    struct bulky_call call = { .head = { .operation = &bulky }, .a = t->o.t[0], .b = t->o.t[1],
                               .c = t->o.t[2], .alpha = alpha };
    struct trial like = *t;
    void *const wanted = malloc(t->bytes), *const got = malloc(t->bytes);
    int right;

    like.p.alpha = alpha;
    right = wanted && got && !spoil(t) && !__wrap_vn__operate(queue, &call.head) && seen.chosen == chosen &&
            !vn_read(queue, got, t->buffers[2], 0, t->bytes);
    if (right && !chosen)
        right = queue->last->call_size > BULK && queue->last->problem_size > BULK;
    right = right && !spoil(t) && !vn_queue_finish(queue) && !trial_run(wanted, &like, others, NULL) &&
            !memcmp(wanted, got, t->bytes);
    free(wanted);
    free(got);
    return right;
}

/* On a queue of their own: another call might have the place beside theirs, by its operands' addresses. */
static void test_bulky(void)
{
    const struct trial *const t = &trial[0];
    const char *const text = "a call of more than 2 KiB";
    vn_queue *const shared = queue;

    if (vn_queue_open(&queue, device)) {
        check(0, text, "a queue of its own");
        queue = shared;
        return;
    }
    check(bulky_is_right(t, 1, 1, shared), text, "first");
    check(bulky_is_right(t, 1, 0, shared), text, "again");
    check(bulky_is_right(t, 2, 1, shared), text, "another alpha");
    check(bulky_is_right(t, 2, 0, shared), text, "another alpha, again");
    check(bulky_is_right(t, 1, 0, shared), text, "the old alpha, noted beside it");
    check(bulky_is_right(t, 3, 1, shared), text, "a third alpha, in the place of one of them");
    vn_queue_close(queue);
    queue = shared;
}

/* ---- the whole ------------------------------------------------------------------------------------ */

/* Last, since it closes what others need. */
static void test_closed(void)
{
    for (int i = 0; i < COUNT; i++) {
        again(&trial[i], texts[i], "before an operand is closed", SIZE_MAX);
        vn_buffer_close(trial[i].buffers[0]);
        trial[i].buffers[0] = NULL;
        check(problem_run(queue, &trial[i].p, &trial[i].o) == VN_INVALID && !seen.launches, texts[i],
              "an operand is closed");
    }
}

int main(void)
{
    const int status = start_unoptimised(&device, &queue);

    if (status)
        return status;
    for (int i = 0; i < COUNT; i++)
        if (trial_open(&trial[i], device, queue, texts[i]))
            return 1;
    test_all("first", SIZE_MAX);
    test_all("again", SIZE_MAX);
    for (int i = 0; i < COUNT; i++) {
        check(!change(&trial[i]), texts[i], "other data");
        again(&trial[i], texts[i], "again, on other data", SIZE_MAX);
    }
    check(!vn_queue_limit_workspace(queue, 0), "", "a limit");
    test_all("first, without workspace", 0);
    test_all("again, without workspace", 0);
    check(!vn_queue_limit_workspace(queue, SIZE_MAX), "", "no limit");
    test_all("first, with workspace again", SIZE_MAX);
    for (int i = COUNT - 1; i >= 0; i--)
        again(&trial[i], texts[i], "again, backwards", SIZE_MAX);
    test_lent();
    for (int i = 0; i < COUNT; i++)
        test_prepared(i);
    test_functions();
    test_bulky();
    test_closed();
    for (int i = 0; i < COUNT; i++)
        trial_close(&trial[i]);
    vn_queue_close(queue);
    vn_device_close(device);
    printf("%ld cases, %ld failed\n", cases, failures);
    return failures != 0;
}
