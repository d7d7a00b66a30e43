/* SPDX-License-Identifier: Apache-2.0
 *
 * test_fork.c - what a forked child gets: an error, never a hang; unless it was
 * forked before the library was used, or execs.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../start.h"
#include "../trial.h"

enum { PATIENCE = 600 };                          /* seconds, after which a child hangs */

static const char *const text = "gemm:7x8x9:f32:nn";
static const char *self;
static vn_device  *device;
static vn_queue   *queue;
static struct trial trial;
static int cases, failures;

/* ---- what a child may do ----------------------------------------------------- */

/* 0 if all works from the start. */
static int use_library(void)
{
    unsigned char result[4096];
    vn_device   *d;
    vn_queue    *q;
    struct trial t;
    int          bad;

    if (vn_device_open(&d, NULL) || vn_queue_open(&q, d) || trial_open(&t, d, q, text))
        return 1;
    bad = t.bytes > sizeof result || trial_run(result, &t, q, NULL);
    trial_close(&t);
    vn_queue_close(q);
    vn_device_close(d);
    return bad;
}

/* 0 if every call fails as it should, naming the fork. */
static int all_refused(void)
{
    unsigned char  byte = 0;
    vn_device_info info;
    vn_device *d;
    vn_queue  *q;
    vn_buffer *b;
    vn_event  *e;
    double     seconds;
    const vn_status got[] = {
        vn_device_open(&d, NULL), vn_device_get(&info, 0), vn_device_describe(&info, device),
        vn_queue_open(&q, device), vn_queue_finish(queue), vn_event_record(&e, queue),
        vn_queue_wait(queue, NULL), vn_event_seconds(&seconds, NULL, NULL),
        vn_queue_limit_workspace(queue, 0), vn_queue_use_workspace(queue, NULL), vn_queue_prepare(queue, 1),
        vn_buffer_open(&b, device, 64),
        vn_write(queue, trial.buffers[0], 0, &byte, 1), vn_read(queue, &byte, trial.buffers[0], 0, 1),
        problem_run(queue, &trial.p, &trial.o) };

    for (size_t i = 0; i < sizeof got / sizeof got[0]; i++)
        if (got[i] != VN_FAILED || !strstr(vn_last_error(), "fork"))
            return 1 + (int)i;
    if (vn_device_count() != 0 || strcmp(vn_queue_explain(queue), "{}") || vn_queue_workspace(queue))
        return 100;
    trial_close(&trial);                          /* harmless */
    vn_queue_close(queue);
    vn_device_close(device);
    return 0;
}

/* The same, where the parent has only listed devices. */
static int open_refused(void)
{
    vn_device *d;

    return vn_device_open(&d, NULL) != VN_FAILED || !strstr(vn_last_error(), "fork") ||
           vn_device_count() != 0;
}

static int refused_to_grandchild(void)
{
    const pid_t pid = fork();
    int status = 1;

    if (pid == 0)
        _exit(all_refused());
    return waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ? 101 : WEXITSTATUS(status);
}

static int exec_self(void)
{
    execl(self, self, "--child", (char *)NULL);
    return 102;
}

/* ---- cases --------------------------------------------------------------------- */

static void try_child(const char *what, int (*in_child)(void), int by_exit)
{
    int   status = 0;
    pid_t pid;

    fflush(NULL);
    if ((pid = fork()) == 0) {
        alarm(PATIENCE);                          /* a hang ends as a signal */

        const int result = in_child();

        if (by_exit)
            exit(result);
        _exit(result);
    }
    cases++;
    if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    failures++;
    printf("not ok: %s: %s %d\n", what, WIFSIGNALED(status) ? "signal" : "status",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static volatile int stop;

static void *keep_busy(void *result)
{
    vn_queue *q;
    vn_buffer *output;

    if (vn_queue_open(&q, device))
        return NULL;
    if (vn_buffer_open(&output, device, 4096) == VN_OK)
        while (!stop)
            trial_run(result, &trial, q, output);
    vn_buffer_close(output);
    vn_queue_close(q);
    return NULL;
}

static void try_while_busy(void)
{
    static unsigned char result[4096];
    pthread_t thread;

    if (pthread_create(&thread, NULL, keep_busy, result))
        return;
    for (int i = 0; i < 10; i++)
        try_child("forked while another thread works", all_refused, 0);
    stop = 1;
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    unsigned char before[4096], after[4096];
    int status;

    self = argv[0];
    if (argc > 1 && !strcmp(argv[1], "--child"))
        return use_library();
    try_child("forked before the first use", use_library, 0);
    vn_device_count();
    try_child("forked after vn_device_count() alone", open_refused, 0);
    if ((status = start(&device, &queue)))
        return status;
    if (trial_open(&trial, device, queue, text) || trial_run(before, &trial, queue, NULL)) {
        printf("cannot start: %s\n", vn_last_error());
        return 1;
    }
    try_child("forked after use", all_refused, 0);
    try_child("forked after use, ends by exit()", all_refused, 1);
    try_child("forked twice", refused_to_grandchild, 0);
    try_child("forked, then exec", exec_self, 0);
    try_while_busy();

    cases++;
    if (trial_run(after, &trial, queue, NULL) || memcmp(before, after, trial.bytes)) {
        failures++;
        printf("not ok: the parent, afterwards: %s\n", vn_last_error());
    }
    trial_close(&trial);
    vn_queue_close(queue);
    vn_device_close(device);
    printf("%d cases, %d failed\nCOUNT fork %d\n", cases, failures, cases);
    return failures != 0;
}
