/* SPDX-License-Identifier: Apache-2.0
 *
 * model.c - opens a device to measure on, and times the plans of problem after problem.
 */
#include <stdlib.h>
#include "commands.h"
#include "model.h"

int model_open(struct model *m, const char *device)
{
    struct bench *const b = &m->bench;
    const int status = device_open(&b->device, &b->queue, device);

    if (status)
        return status;
    vn_device_describe(&b->info, b->device);
    if (!b->info.is_cpu && hold_open(&b->hold, b->queue))
        b->hold = NULL;                         /* short runs go without */
    return 0;
}

void model_close(struct model *m)
{
    hold_close(m->bench.hold);
    vn_queue_close(m->bench.queue);
    vn_device_close(m->bench.device);
}

int model_each(struct model *m, int samples, model_take *take, void *state)
{
    struct candidates *const c = malloc(sizeof *c);
    char shown[PROBLEM_TEXT];
    struct progress progress;
    int status = 0, failed = 0;

    if (!c) {
        complain("host memory ran out");
        return EXIT_FAILURE;
    }
    progress_open(&progress, m->work->count);
    for (int i = 0; i < m->work->count && !interrupted && !status; i++) {
        const struct workload *const w = &m->work->it[i];

        progress_show(&progress, i, w->text);
        candidates_measure(c, &m->bench, &w->problem, samples, 0);
        progress_clear(&progress);
        if (*c->note)
            fprintf(m->to, "%s: %s\n", problem_shown(shown, w->text), c->note);
        else
            status = take(m, state, w, c);
        failed |= c->failed;
        candidates_close(c);
        fflush(m->to);
    }
    free(c);
    return status ? status : failed || interrupted ? EXIT_FAILURE : 0;
}
