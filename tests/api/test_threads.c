/* SPDX-License-Identifier: Apache-2.0
 *
 * test_threads.c - one device, many threads, each with its own queue.
 *
 * All start at once on a device that has built no kernel yet, nor has one on disk, read the same inputs, and
 * open and close queues, buffers and events as they go.  Every result must have the bits
 * of every other.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../disk.h"
#include "../start.h"
#include "../trial.h"

enum { THREADS = 16, CALLS = 640, BYTES = 1 << 14 };

static const char *const texts[] = {
    "gemm:17x33x40:f32:nn",
    "gemm:31x9x64:f16:tn:bias=row:act=gelu",
    "gemm:8x8x8:bf16:nt:batch=3",
    "conv:n2c5h9w9k7r3s3:f32:pad=1:nchw:forward",
    "conv:n1c4h8w8k6r3s3:f16:pad=1:nhwc:backward-data",
    "conv:n2c3h8w8k4r3s3:f32:nchw:backward-filter",
    "softmax:13x257:f32",
    "softmax:9x64:f32:backward",
};
enum { TRIALS = sizeof texts / sizeof texts[0] };

static vn_device        *device;
static struct trial      trials[TRIALS];
static pthread_barrier_t gate;

struct worker {
    pthread_t     thread;
    int           id;
    long          calls, failures;
    char          why[256];
    unsigned char first[TRIALS][BYTES];           /* what came of each trial the first time */
    int           has[TRIALS];
};

static void fail(struct worker *w, const char *what)
{
    if (w->failures++ == 0)
        snprintf(w->why, sizeof w->why, "%s: %.200s", what, vn_last_error());
}

static void call(struct worker *w, int which, vn_queue *q, vn_buffer *output)
{
    unsigned char result[BYTES];

    w->calls++;
    if (trial_run(result, &trials[which], q, output))
        fail(w, texts[which]);
    else if (!w->has[which]) {
        memcpy(w->first[which], result, trials[which].bytes);
        w->has[which] = 1;
    } else if (memcmp(w->first[which], result, trials[which].bytes))
        fail(w, "other bits than before");
}

/* A queue waits for an event of another. */
static void cross(struct worker *w, vn_queue *q)
{
    vn_queue *other = NULL;
    vn_event *e = NULL;

    if (vn_queue_open(&other, device) || vn_event_record(&e, other) || vn_queue_wait(q, e))
        fail(w, "waiting for another queue");
    vn_event_close(e);
    vn_queue_close(other);
}

static void *work(void *context)
{
    struct worker *w = context;
    vn_queue  *q = NULL;
    vn_buffer *output = NULL;

    pthread_barrier_wait(&gate);
    for (int i = 0; i < CALLS; i++) {
        if (i % 16 == 0) {
            vn_queue_close(q);
            vn_buffer_close(output);
            if (vn_queue_open(&q, device) || vn_buffer_open(&output, device, BYTES)) {
                fail(w, "opening");
                return NULL;
            }
        }
        call(w, (w->id + i) % TRIALS, q, output);
        if (i % 64 == 7)
            cross(w, q);
    }
    vn_queue_close(q);
    vn_buffer_close(output);
    return NULL;
}

static long compare(const struct worker *all)
{
    long differ = 0;

    for (int t = 0; t < TRIALS; t++)
        for (int i = 1; i < THREADS; i++)
            if (!all[i].has[t] || memcmp(all[0].first[t], all[i].first[t], trials[t].bytes)) {
                differ++;
                printf("not ok: %s: thread %d has other bits than thread 0\n", texts[t], i);
            }
    return differ;
}

int main(void)
{
    struct worker *all = calloc(THREADS, sizeof *all);
    long calls = 0, failures = 0;
    char base[PATH];
    vn_queue *q;
    int status;

    start_cold(base);
    setenv("POCL_MAX_PTHREAD_COUNT", "16", 1);    /* as many commands at once, also on few cores */
    status = start(&device, &q);
    if (status || !all) {
        wipe(base);
        return status ? status : 1;
    }
    for (int t = 0; t < TRIALS; t++)
        if (trial_open(&trials[t], device, q, texts[t]) || trials[t].bytes > BYTES)
            return 1;
    pthread_barrier_init(&gate, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        all[i].id = i;
        if (pthread_create(&all[i].thread, NULL, work, &all[i])) {
            printf("cannot start: no thread\n");
            return 1;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(all[i].thread, NULL);
        calls    += all[i].calls;
        failures += all[i].failures;
        if (all[i].failures)
            printf("not ok: thread %d, %ld times: %s\n", i, all[i].failures, all[i].why);
    }
    failures += compare(all);
    for (int t = 0; t < TRIALS; t++)
        trial_close(&trials[t]);
    vn_queue_close(q);
    vn_device_close(device);
    wipe(base);
    free(all);
    printf("%ld calls in %d threads, %ld failed\nCOUNT threads %ld\n", calls, THREADS, failures, calls);
    return failures != 0;
}
