/* SPDX-License-Identifier: Apache-2.0
 *
 * backend.h - what a backend must do. This page is the whole contract.
 *
 * lib/ owns every handle; a backend keeps its own data in `impl`. Every function is required; none may
 * be NULL. What a device lacks is said by its facts, not by a missing function. Every open has a close,
 * which is called once for each open that returned VN_OK. `native` is the caller's own cl_mem,
 * CUstream...; with NULL a new one is created. A function that fails says why with vn__fail().
 */
#ifndef VN_BACKEND_H
#define VN_BACKEND_H

#include "vernier.h"

enum { VN_ARGS = 40, VN_ENTRIES = 4 };

struct vn_facts {                 /* all that operations may know of a device */
    char     backend[16];         /* "opencl", "cuda": what vendors' libraries depend on */
    char     name[128];
    char     family[16];          /* "nvidia", "amd", "intel", "cpu", "other": selects the atoms */
    char     arch[32];            /* "sm_90", "gfx942"; of a CPU, its vectors: "f32x16" */
    char     toolchain[544];      /* whatever decides whether a binary that was built elsewhere
                                     works here: platform, device, versions, driver, options */
    int      units;               /* compute units */
    int      items;               /* largest work-group */
    int      vector;              /* floats in a native vector where kernels must use explicit
                                     vectors (CPUs), else 1 */
    size_t   local_bytes;         /* local memory of a work-group */
    size_t   buffer_bytes;        /* the largest buffer */
    unsigned types;               /* 1 << vn_type, for each type that operations may use */
    unsigned engines;             /* matrix engines that passed their trial */
};

/* A device in a backend's list. */
struct vn_listing {
    vn_device_info info;
    double         rank;          /* an estimate of its speed; the highest is the default device */
};

/* The first member of each handle. A closed handle keeps its memory, so that its use is detected. */
struct vn_handle { unsigned magic; unsigned kind; struct vn_handle *next; };

struct vn_device {
    struct vn_handle         head;
    const struct vn_backend *backend;
    void                    *impl;
    struct vn_facts          facts;
    vn_device_info           info;
    struct vn_choices       *choices;       /* choose.c */
    int                      uses;          /* itself, and each open queue, buffer and event */
};

struct vn_buffer {
    struct vn_handle  head;
    vn_device        *device;
    void             *impl;
    size_t            bytes;

    /* Filled where other buffers may lie in the same memory: what it is a part of (NULL: nothing else is),
     * at which byte it begins there, and what kernels are given, which two buffers may have in common.   */
    const void       *memory, *native;
    int64_t           at;
    int               read_only;  /* kernels must not write to it */
};

struct vn_event {
    struct vn_handle  head;
    vn_device        *device;
    void             *impl;
};

struct vn_arg {
    size_t     size;              /* of value, in bytes; 0: the argument is the buffer */
    vn_buffer *buffer;
    union { int32_t i; int64_t l; float f; double d; int64_t view[8]; } value;
};

struct vn_launch {
    int64_t groups[3];            /* work-groups along each dimension */
    int     items;                /* work-items in each, along the first */
    int     nargs;
    struct vn_arg args[VN_ARGS];

    /* Of vn__arg_maps(): the first of two arguments, 0 where there are none; and a hash of all that the
     * tensor maps depend on, 0 until it is launched. */
    int      maps_at;
    uint64_t maps_key;
};

struct vn_backend {
    const char *name;             /* "opencl": the prefix of the specs of its devices */

    int       (*count)        (void);
    vn_status (*list)         (struct vn_listing *out, int index);

    /* Fills d->impl, d->facts (not facts.backend) and d->info (not info.spec). */
    vn_status (*open)         (vn_device *d, int index, void *const native[2]);
    void      (*close)        (vn_device *d);

    vn_status (*queue_open)   (vn_queue *q, void *native);
    void      (*queue_close)  (vn_queue *q);
    vn_status (*finish)       (vn_queue *q);
    vn_status (*flush)        (vn_queue *q);

    vn_status (*event_record) (vn_event *e, vn_queue *q);
    vn_status (*event_wait)   (vn_queue *q, vn_event *e);
    vn_status (*event_finish) (vn_event *e);
    vn_status (*event_seconds)(double *out, vn_event *from, vn_event *to);
    void      (*event_close)  (vn_event *e);

    vn_status (*buffer_open)  (vn_buffer *b, size_t bytes, void *native);   /* fills b->bytes if native */
    /* A buffer that is the host's memory itself; VN_UNSUPPORTED where kernels cannot work in that. */
    vn_status (*buffer_host)  (vn_buffer *b, void *memory, size_t bytes);
    void      (*buffer_close) (vn_buffer *b);
    /* waits: until the host's memory may be used again. */
    vn_status (*write)        (vn_queue *q, vn_buffer *to, size_t at, const void *from, size_t bytes,
                               int waits);
    vn_status (*read)         (vn_queue *q, void *to, const vn_buffer *from, size_t at, size_t bytes,
                               int waits);
    vn_status (*copy)         (vn_queue *q, vn_buffer *to, size_t to_at, const vn_buffer *from,
                               size_t from_at, size_t bytes);
    /* size: of the pattern, 1, 2, 4 or 8, of which `at` and `bytes` are multiples. */
    vn_status (*fill)         (vn_queue *q, vn_buffer *to, size_t at, size_t bytes, const void *pattern,
                               size_t size);

    vn_status (*program_build)(void **out, vn_device *d, const char *text);
    vn_status (*program_load) (void **out, vn_device *d, const void *blob, size_t bytes);
    vn_status (*program_save) (void *program, void **blob, size_t *bytes);  /* malloc'd for the caller */
    void      (*program_close)(void *program);
    vn_status (*kernel_open)  (void **out, vn_device *d, void *program, const char *entry);
    void      (*kernel_close) (void *kernel);

    /* Thread-safe on one kernel. */
    vn_status (*launch)       (vn_queue *q, void *kernel, const struct vn_launch *l);
};

extern const struct vn_backend vn__opencl, vn__cuda;
extern const struct vn_backend *const vn__backends[];     /* ends with NULL */

/* What a function's sentence and its values are is checked as of printf(), in the standard's formats. */
#if defined __MINGW32__
#define VN_SENTENCE(at, values) __attribute__((format(gnu_printf, at, values)))
#elif defined __GNUC__
#define VN_SENTENCE(at, values) __attribute__((format(printf, at, values)))
#else
#define VN_SENTENCE(at, values)
#endif

/* Sets the sentence of vn_last_error(), and returns s. */
vn_status vn__fail(vn_status s, const char *sentence, ...) VN_SENTENCE(2, 3);
#endif
