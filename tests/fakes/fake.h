/* SPDX-License-Identifier: Apache-2.0
 *
 * fake.h - NVIDIA's libraries without a GPU: what the fakes and the test that loads them share.
 *
 * A fake executes nothing, but for convolutions by cuDNN's graphs.  It counts what is open, checks its
 * arguments, and fails when told to.  Memory is the host's.  The panel is the test's own: the fakes find it
 * in the program.
 */
#ifndef FAKE_H
#define FAKE_H

#include <stddef.h>

#pragma GCC visibility push(default)      /* the test shows these to the fakes */

enum { FAKE_ENGINES = 4 };

struct fake {
    long  calls;                        /* that could have failed */
    long  fail_at;                      /* the call, counted from 1, that does; 0: none */
    int   persistent;                   /* and each one after it */
    const char *failed;                 /* the first that did */

    int   contexts, depth, streams, events, modules, buffers, programs, handles, descriptors;     /* open */
    int   launches, foreign, compiled, loaded, searches;
    int   slow;                     /* of the foreign ones: by an algorithm that is not the fastest */

    float clock;                        /* milliseconds that work has taken */
    float older;                        /* those of a convolution by cuDNN's functions */
    int   older_ran;                    /* how many there were, without an epilogue */
    struct fake_engine {                /* of cuDNN's graphs, as its heuristics name them */
        int   note;                     /* numerical */
        float milliseconds;
        int   refuses, fails;           /* has no plan; cannot be run */
        int   ran;                      /* how often, failures included */
    } engine[FAKE_ENGINES];
    int   engines;
    int   groups, tf32;                 /* that convolutions may have */

    int   driver_version, devices, cublas_major, cublaslt_major;
    size_t cudnn_version;
    int   compile_error;                /* NVRTC finds one */
    int   out_of_memory;                /* of the device */
    int   large_local;                  /* bytes for each kernel whose text has LARGE_LOCAL; 0: none has */
    int   shared_asked, shared_given;   /* by an attribute, by a launch of such a kernel */

    int   complaints;                   /* wrong arguments */
    char  complaint[128];               /* the first */
};
extern struct fake fake;

/* Should this call fail?  Also counts it. */
int  fake_fails(const char *call);
void fake_complain(const char *call, const char *what);

#pragma GCC visibility pop

/* In a function of a fake: an argument that must be right. */
#define FAKE_NEEDS(it) do { if (!(it)) fake_complain(__func__, #it); } while (0)
#endif
