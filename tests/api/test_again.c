/* SPDX-License-Identifier: Apache-2.0
 *
 * test_again.c - a call that is made again launches what it did, on what the buffers hold by then.
 *
 * Each product is made twice; on other data; after others have made the workspace move; and with
 * no workspace.  The same call on a queue that never saw it says each time what is right, by bits.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "check/oracle.h"
#include "../start.h"
#include "check/suite.h"
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

static void again(int i, const char *what, size_t limit)
{
    const struct trial *const t = &trial[i];
    void *const wanted = malloc(t->bytes), *const got = malloc(t->bytes);
    char *explained = NULL;

    if (!wanted || !got || expect(wanted, &explained, t, limit) || !explained || trial_run(got, t, queue, NULL))
        check(0, texts[i], what);
    else {
        check(!memcmp(wanted, got, t->bytes), texts[i], what);
        check(!strcmp(explained, vn_queue_explain(queue)), texts[i], "what it explains");
        check(queue->last->call_size > 0, texts[i], "the call is not noted");
    }
    free(wanted);
    free(got);
    free(explained);
}

/* Other numbers in A. */
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
        again(i, what, limit);
}

int main(void)
{
    const int status = start(&device, &queue);

    if (status)
        return status;
    for (int i = 0; i < COUNT; i++)
        if (trial_open(&trial[i], device, queue, texts[i]))
            return 1;
    test_all("first", SIZE_MAX);
    test_all("again", SIZE_MAX);
    for (int i = 0; i < COUNT; i++) {
        check(!change(&trial[i]), texts[i], "other data");
        again(i, "again, on other data", SIZE_MAX);
    }
    check(!vn_queue_limit_workspace(queue, 0), "", "a limit");
    test_all("first, without workspace", 0);
    test_all("again, without workspace", 0);
    check(!vn_queue_limit_workspace(queue, SIZE_MAX), "", "no limit");
    test_all("first, with workspace again", SIZE_MAX);
    for (int i = COUNT - 1; i >= 0; i--)
        again(i, "again, backwards", SIZE_MAX);
    for (int i = 0; i < COUNT; i++)
        trial_close(&trial[i]);
    vn_queue_close(queue);
    vn_device_close(device);
    printf("%ld cases, %ld failed\n", cases, failures);
    return failures != 0;
}
