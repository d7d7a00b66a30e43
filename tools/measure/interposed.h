/* SPDX-License-Identifier: Apache-2.0
 *
 * interposed.h - watches what the library calls: allocations, and kernels enqueued.
 *
 * The command is linked with --wrap, which turns calls made by our own objects (and by
 * nobody else, so not by the driver) to the functions of interposed.c.
 */
#ifndef VERNIER_INTERPOSED_H
#define VERNIER_INTERPOSED_H

/* Calls of malloc and its like since the last start. */
void allocations_start(void);
long allocations_stop(void);

/* Notes the kernels that calls launch, and makes the bare calls again: one for each backend. */
struct recorder {
    const char *backend;              /* begins the specs of its devices */
    void (*open)  (void);             /* before the first call on a device */
    void (*close) (void);

    void (*start) (void);
    int  (*stop)  (void);             /* the number of launches since; -1 if it could not hold them */
    int  (*arguments)(void);          /* of these launches */

    int  (*replay)(void);             /* 0, or -1, as finish */
    int  (*finish)(void);

    /* While on, no launch reaches the driver: what is left is the library's own time. */
    void (*mute)  (int on);
};
extern const struct recorder opencl_recorder, cuda_recorder;
#endif
