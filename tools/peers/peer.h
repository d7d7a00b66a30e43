/* SPDX-License-Identifier: Apache-2.0
 *
 * peer.h - another library that solves the same problem, to be measured beside ours.
 *
 * Peers are found with dlopen() when asked for and are never linked; each source declares
 * the few functions it uses, so building needs none of their headers.  A peer is measured
 * at its best: prepare() puts the data where the peer likes it and makes its plan, and only
 * run() is timed.  Use:
 *
 *     const struct peer *peer = peer_named("onednn");
 *     void *run;
 *
 *     if (peer->open(&context, why, sizeof why) || peer->prepare(&run, &problem, &values, why, sizeof why))
 *         puts(why);
 *     else { peer->run(run); peer->read(run, 2, y); peer->finish(run); }
 *     peer->close();
 *
 * Call peer_calm() before the first OpenCL or peer call of the process; peer_turn() when timing.
 */
#ifndef VERNIER_PEER_H
#define VERNIER_PEER_H

#include "problem/op.h"
#include "problem/values.h"

/* The device that ours runs on, as vn_device_describe() tells it. */
struct peer_context {
    int         is_cpu;
    const char *platform, *device;           /* vn_device_info's platform and name, */
    const char *uuid, *pci;                  /* and of a GPU where it is; or "" */
};

/* Functions that return int: 0, or -1 with a sentence in why[]. */
struct peer {
    const char *name;
    int         threads;                     /* it computes on its own threads and the caller's */

    /* Loads the library and finds the device; again is harmless. */
    int         (*open)   (const struct peer_context *c, char *why, size_t why_size);
    const char *(*version)(void);            /* "oneDNN 2.6.3", once open */

    /* Of the data on the host; the outputs' is read only if beta is not 0.  -1 also when the peer has no
     * such operation: why[] says what it lacks.                                                        */
    int         (*prepare)(void **out, const struct problem *p, const struct values *data,
                           char *why, size_t why_size);
    /* One complete run, finished on return; 0, or the peer's own error.  Runs of several
     * peers and problems may alternate.  Where beta is not 0, each run adds to the last. */
    int         (*run)    (void *state);
    /* NULL, or: seconds that the device spent on so many runs of all these states in their order, queued
     * one after the other as ours are; below 0 if not known.                                            */
    double      (*timed)  (void *const *state, int count, int repeats);
    /* Writes the elements of operand i, an output, into a buffer of the problem's layout and type;
     * gaps and start are left as they are.                                                       */
    int         (*read)   (void *state, int i, void *out);
    void        (*finish) (void *state);     /* takes NULL */

    void        (*close)  (void);            /* harmless if not open */

    /* NULL, or, once open: whether it rounds to the type what op->rounded tells. */
    int         (*rounds) (void);
};

extern const struct peer *const peers[];     /* ends with NULL */
const struct peer *peer_named(const char *name);     /* NULL: there is none */
/* All outputs after a run; whatever stood between their elements stays. */
int peer_results(const struct peer *peer, void *state, const struct results *to, const struct operands *o);

/* Makes the thread pools of several libraries in one process leave each other's cores alone. */
void peer_calm(void);
/* Before another contender's turn on the clock, with NULL before ours: waits until the threads
 * of the last one sleep, and gives the calling thread the CPUs it needs next.  A turn is a few
 * runs that are not measured, to wake the threads, and some that are.  After the last turn,
 * NULL again: threads made meanwhile would inherit the one CPU.                                */
void peer_turn(const struct peer *next);

/* "onednn,openblas", and not "" or "none" */
int  peers_are_named(const char *list);
/* Between the two calls a library, or a device's driver, makes its threads: each is then tied to a CPU of
 * its own.  Where peers compute on CPUs, ours are tied as theirs are.                                    */
struct peer_threads { int count, id[1024]; };
void peer_threads_note(struct peer_threads *out);
void peer_threads_tie(const struct peer_threads *before);

/* ---- for the peers themselves ---- */

struct peer_symbol { const char *name; void *to; };  /* to: where the function pointer goes */

/* Opens the first of sonames (ends with NULL); -1: why[] names the package to install. */
int  peer_load(void **out, const char *const *sonames, const char *package, char *why, size_t why_size);
/* Fills each symbol's pointer (a table that ends with a NULL name); -1: why[] names the missing one. */
int  peer_symbols(void *library, const struct peer_symbol *symbols, char *why, size_t why_size);
int  peer_refuse(char *why, size_t why_size, const char *sentence, ...)       /* returns -1 */
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;
/* Which of the operations that the peer has (a list that ends with NULL) p is; -1: none, and why[] is
 * `lacks`.                                                                                           */
int  peer_operation(const struct op *const has[], const struct problem *p, const char *lacks,
                    char *why, size_t why_size);
/* An aligned copy of a buffer, or fresh zeros where from is NULL; NULL: out of memory. */
void *peer_copy(const void *from, int64_t elements, vn_type type);
/* Copies the elements of a tensor from a buffer of one layout to one of another; or of the same. */
void  peer_place(void *to, const vn_tensor *layout, const void *from, const vn_tensor *from_layout);
void peer_read(void *to, const void *from, const vn_tensor *layout);

/* A gemm as BLAS says it: row-major, with transposes and leading dimensions.  Where C lies
 * transposed, it is C^T := B^T A^T: operand tells whose data each matrix is.               */
struct peer_matrix { int64_t start, ld, step; int trans, operand; };     /* step: to the next of the batch */
struct peer_blas {
    int64_t m, n, k, batch;
    struct peer_matrix a, b, c;
};
/* -1: not a gemm that BLAS can express, and why.  For a peer that has gemm alone. */
int  peer_blas(struct peer_blas *out, const struct problem *p, const struct operands *o,
               char *why, size_t why_size);
#endif
