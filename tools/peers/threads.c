/* SPDX-License-Identifier: Apache-2.0
 *
 * threads.c - several libraries with thread pools, measured in turns on the same cores.
 *
 * Two things go wrong if they are left alone.  After its work a pool spins for a while in case
 * more follows (libgomp for 15 ms, OpenBLAS for 25, Intel's OpenMP for 200): time stolen from
 * whoever runs next.  And where the caller spins for its own workers, the kernel may wake a
 * worker on the caller's core and leave it there, so that both share one core for good: half
 * the speed, or a whole time slice for a run of 5 us.
 *
 * So each worker is tied to a CPU, those of an OpenCL driver as those of a library, the caller to
 * the first one while the turn is theirs, and pools spin for a tenth of a millisecond: longer than
 * the gap between two runs of a turn.  (To sleep at once would be unfair as well: waking costs a
 * small problem dearly.)
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "peer.h"

/* The libraries read these once, when they are loaded; what the user has set stays. */
void peer_calm(void)
{
    static const char *const settings[][2] = {
        { "GOMP_SPINCOUNT",          "2000" },      /* turns of a loop with a pause */
        { "OPENBLAS_THREAD_TIMEOUT", "18" },        /* two to this power cycles */
        { "KMP_BLOCKTIME",           "1" },         /* milliseconds, the least but 0 */
    };
    size_t i;

    for (i = 0; i < sizeof settings / sizeof *settings; i++)
        setenv(settings[i][0], settings[i][1], 0);
}

void peer_threads_note(struct peer_threads *out)
{
    const int room = sizeof out->id / sizeof *out->id;
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *it;

    out->count = 0;
    while (tasks && out->count < room && (it = readdir(tasks)))
        if (it->d_name[0] != '.')
            out->id[out->count++] = atoi(it->d_name);
    if (tasks)
        closedir(tasks);
}

int peers_are_named(const char *list)
{
    return *list && strcmp(list, "none");
}

static int noted(const struct peer_threads *t, int id)
{
    int i;

    for (i = 0; i < t->count; i++)
        if (t->id[i] == id)
            return 1;
    return 0;
}

/* The CPU after this one, of those that the process may use; from -1, the first. */
static int next_cpu(const cpu_set_t *all, int cpu)
{
    int i;

    for (i = 1; i <= CPU_SETSIZE; i++)
        if (CPU_ISSET((cpu + i) % CPU_SETSIZE, all))
            return (cpu + i) % CPU_SETSIZE;
    return 0;
}

static void tie(int id, int cpu)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(id, sizeof one, &one);        /* where it may not, the threads stay free */
}

void peer_threads_tie(const struct peer_threads *before)
{
    struct peer_threads after;
    cpu_set_t all;
    int i, cpu;

    if (sched_getaffinity(0, sizeof all, &all))
        return;
    peer_threads_note(&after);
    cpu = next_cpu(&all, -1);
    for (i = 0; i < after.count; i++)
        if (!noted(before, after.id[i])) {
            cpu = next_cpu(&all, cpu);
            tie(after.id[i], cpu);
        }
}

void peer_turn(const struct peer *next)
{
    static cpu_set_t all;                           /* the caller's, before we touched it */
    static int known;
    const struct timespec while_they_spin = { 0, 1500000 };

    if (!known && sched_getaffinity(0, sizeof all, &all))
        return;
    known = 1;
    nanosleep(&while_they_spin, NULL);
    if (next && next->threads)
        tie(0, next_cpu(&all, -1));
    else
        sched_setaffinity(0, sizeof all, &all);
}
