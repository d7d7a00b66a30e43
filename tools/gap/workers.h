/* SPDX-License-Identifier: Apache-2.0
 *
 * workers.h - processes that measure the same rows, and one row of theirs.
 *
 * Times of one process scatter less than those of two: where its memory lies, what a driver set up for its
 * contexts, and which algorithm a library found, stay as they are while it runs.  So a row is measured in
 * several processes, and its interval is that of their medians.
 *
 * Source: T. Kalibera and R. Jones, "Rigorous benchmarking in reasonable time", ISMM 2013.
 */
#ifndef VERNIER_WORKERS_H
#define VERNIER_WORKERS_H

#include <jansson.h>
#include <stdio.h>
#include <sys/types.h>

#include "measure/statistics.h"

struct workers {
    struct worker { pid_t pid; FILE *to, *from; int told; } it[SAMPLES];    /* told: it is interrupted */
    int           count;
};

/* Answers questions from `from` on `to` until it reads no more; the status that its process exits with. */
typedef int service(void *context, int which, FILE *from, FILE *to);

/* Before anything is opened that cannot be used on both sides of a fork().  0, or -1 with none left. */
int     workers_open (struct workers *w, int count, service *serve, void *context);
void    workers_close(struct workers *w);
/* Another process in the place of one. */
int     worker_renew (struct workers *w, int which, service *serve, void *context);
/* One of them.  worker_hear: the answer, NULL where it is gone.  Once the command is interrupted, so is what
 * it does.  worker_ask: both.                                                                            */
void    worker_tell  (struct workers *w, int which, json_t *question);
json_t *worker_hear  (struct workers *w, int which);
json_t *worker_ask   (struct workers *w, int which, json_t *question);
/* For a service: the next question, or NULL; an answer. */
json_t *worker_asked (FILE *from);
void    worker_answer(FILE *to, json_t *answer);

/* The row that those of several processes make together: medians of their medians, with the intervals that
 * these have.  What is no figure, and the roofs, are those of the first.                              */
json_t *rows_join(json_t *const *row, int count);
#endif
