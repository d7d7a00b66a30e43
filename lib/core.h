/* SPDX-License-Identifier: Apache-2.0
 *
 * core.h - what the files of lib/ share: variants, choices, launches, checks.
 */
#ifndef VN_CORE_H
#define VN_CORE_H

#include "backend.h"

/* ---- problems, variants, choices (choose.c) ------------------------------- */

enum vn_bucket { VN_SMALL, VN_MEDIUM, VN_LARGE, VN_BUCKET_COUNT };   /* coarse shape, for tune rows */

/* What becomes of sums of products on their way to C: #defines of the kernels that compute them, so that what
 * is not asked for is not compiled in (cl/tile/epilogue.h has their meaning).                              */
enum { VN_NONE, VN_SAME_ROWS, VN_SAME_COLUMNS, VN_FULL };
enum { VN_FAST_WORDS = 1, VN_FAST_PTX = 2 };    /* of fast_act: how */
struct vn_epilogue { int act, fast_act, scale, residual, bias, type_c, type_residual, type_bias; };

/* Whether an epilogue needs registers beside the accumulators: ROLE_EPILOGUE of cl/tile/roles.h. */
static inline int vn__takes_registers(const struct vn_epilogue *e)
{
    return e->residual > VN_SAME_COLUMNS || e->act > VN_RELU;
}

/* Begins each operation's problem: what one call asks, as the variants see it. */
struct vn_problem {
    const char    *op;            /* "gemm" */
    vn_type        type;
    enum vn_bucket bucket;
    int            wide;          /* an offset in it needs 64 bits */
    struct vn_epilogue epilogue;
    double         flops, bytes;  /* the least that must be computed and moved */
    void         (*shape)(char *out, size_t size, const void *problem);   /* names it in `pin` lines;
                                                                             NULL: none do */
};

struct vn_choice;

/* A packed layout of an operand: pack() writes it to `to` from byte `at` on; lines: tells one layout of a
 * packer from another, as the width of panels does; bytes: its size, 0 where the operand is used as it is. */
typedef vn_status vn_packer(vn_queue *q, const struct vn_choice *it, const void *problem, vn_buffer *to,
                            size_t at);
struct vn_layout { vn_packer *pack; int64_t lines; size_t bytes; };

static inline int vn__same_layout(const struct vn_layout *a, const struct vn_layout *b)
{
    return a->pack == b->pack && a->lines == b->lines && a->bytes == b->bytes;
}

enum { VN_PARAMS = 16, VN_COSTS = 13, VN_CONSTANTS = 6, VN_ROWS = 16, VN_PLAN = 12 };

/* A row of a tune file: a value for each of its variant's params, and for each of its costs. */
struct vn_row {
    int         p[VN_PARAMS];
    int         cost[VN_COSTS];
    const char *source;           /* where it is from: "user", "shipped", "nearest", "default" */
};

/* What a device does in a second, from the `rates` lines of the tune files (tune.c has their names). */
struct vn_rates {
    double gbps, l2_gbps, l2_mb;  /* of its memory; of its second-level cache, and how much that keeps */
    double lines;                 /* of 128 bytes, that its second-level cache sends in a nanosecond */
    double launch_ns;             /* a launch that waits for the one before */
    double batch_ns;              /* the divisions by which a work-group finds its matrix of a batch */
    double waves;                 /* of a partial last wave, the share that is lost: 1 if units keep step */
    double readers;               /* the share of its compute units that can read all that the memory gives */
    double local_kib;             /* local memory of a compute unit */
    double fma32, fma64;          /* GFLOP/s of a compute unit: multiply-adds */
    double mma16, mma32, mma64;   /* and its matrix engine: f16 and bf16, tf32, f64 */
};

/* Where a plan is made. */
struct vn_site {
    const struct vn_facts *facts;
    const struct vn_rates *rates;
    vn_queue              *queue;
    int                    depth; /* 1: for a part of a problem that is being planned */
};

/* How one row would solve a problem: in what time, with what workspace, and the variant's own numbers. */
struct vn_plan {
    double  seconds;              /* 0: nobody has a model of it */
    size_t  workspace;
    int64_t v[VN_PLAN];
};

/* One way to do an operation.  An operation lists its variants in a table that ends with a NULL name.  Of the
 * plans that all rows of all variants make for a problem, the one of the least seconds is used; what nobody
 * has a model for keeps the order of the table.  The last variant but that always fits.                    */
struct vn_variant {
    const char *name;             /* "gemm_cpu": for options, tune rows, explain */
    const char *was;              /* "gemm_old gemm_older": names that it is asked for by, too; NULL: none */

    /* Can this kernel do it at all: NULL, or why not ("the device is no CPU"). */
    const char *(*fits)(const void *problem, const struct vn_facts *f);
    /* How a row would do it: arithmetic alone.  NULL, or why that row cannot, or should not unless
     * its variant is asked for by name (then *out is complete).  The hook may be NULL: there is
     * nothing to plan.                                                                         */
    const char *(*plan)(struct vn_plan *out, const void *problem, const struct vn_row *row,
                        const struct vn_site *site);
    vn_status   (*run) (vn_queue *q, const struct vn_choice *it, const void *problem,
                        const struct vn_plan *plan);
    struct vn_layout (*layout)(const void *problem, const int *p); /* of what a vn_pack holds;
                                                                      NULL: of nothing */

    /* Of a variant that rests on more than the language promises: solves a small problem
     * whose answer is known.  Where that, or its build, fails, this kernel is not used on
     * this device again.  NULL: it needs no proof.                                       */
    vn_status   (*trial)(vn_queue *q, const struct vn_choice *it, vn_type type);

    /* kernels of ours; all NULL where `run` calls a vendor's library */
    const char *texts;            /* "cl/tile/fma.h cl/gemm/tiled.cl": after words, types and atoms */
    const char *entries;          /* "pack gemm_cpu": at most VN_ENTRIES */
    const char *params;           /* "BLK_M BLK_N": #defines, and the columns of its tune rows */
    const char *costs;            /* "EFF TILE_NS": columns behind `|`, for plan() alone; NULL: none */
    const char *constants;        /* "MN_MAJOR_A 0 1  MN_MAJOR_B 0 1": #defines that follow from the problem,
                                     and the values that each may have; NULL: none */
    void      (*constants_of)(int *c, const void *problem);    /* one for each; NULL if there are none */
    const char *defines;          /* further #define lines, fixed: "#define DIRECTION 1\n"; or NULL */
    const char *engine;           /* the matrix instructions it computes with, "HGMMA"; NULL: multiply-adds;
                                     "": those of the variants that solve its parts */
    const char *engine_f32;       /* and with the precision, if that is not the type's: "HGMMA bf16 x 3" */

    int       (*turns)(const void *problem);    /* whether it computes C^T instead; NULL: never */
    int         preferred;        /* of a vendor's library: which of its params is 1 where it is the
                                     faster one, so that it is used without being asked for */
};

/* A variant made ready for one device and one kind of problem. */
struct vn_choice {
    const struct vn_variant *variant;
    void       *kernel[VN_ENTRIES];   /* one for each name in entries */
    int         p[VN_PARAMS];         /* one for each name in params */
    int         c[VN_CONSTANTS];      /* one for each name in constants */
    struct vn_epilogue epilogue;
    const char *source;               /* where the row came from */
};

/* One of the ways to solve a problem: a variant, and one of its rows.  why: NULL, or why it is out of the
 * question; of a variant that does not fit there is one, without a row.                                */
struct vn_candidate {
    const struct vn_variant *variant;
    struct vn_row  row;
    struct vn_plan plan;
    const char    *why;
    int            unfit;             /* not even by name */
};

/* All of them, in the order of the table; malloc'd, to be freed by the caller.  forced: NULL, or a variant's
 * name; depth: 1 for a part of a problem.                                                                 */
vn_status vn__candidates(struct vn_candidate **out, int *count, vn_queue *q, const struct vn_variant *table,
                         const void *problem, const char *forced, int depth);
/* The one that would be used: its index, or -1. */
int       vn__cheapest(const struct vn_candidate *list, int count, int forced);
/* The one that a pin names: its index, or -1.  Values of a pin that no row has make a row of their own. */
int       vn__pinned(struct vn_candidate *list, int count, vn_queue *q, const void *problem);
/* Its kernels, built at first use. */
vn_status vn__candidate_ready(const struct vn_choice **out, vn_queue *q, const struct vn_candidate *it,
                              const void *problem);
/* Makes the plan of a choice for a problem. */
vn_status vn__plan(struct vn_plan *out, vn_queue *q, const struct vn_choice *it, const void *problem);
/* The time of the cheapest plan for a part of a problem that is being planned; 0: nobody has a model,
 * or none fits.                                                                                    */
double    vn__part_seconds(const struct vn_site *site, const struct vn_variant *table, const void *part,
                           size_t *workspace);

/* Finds the variant and its kernels, building them at first use, and notes the problem
 * (whose first member is a struct vn_problem) for explain.  forced: NULL, or a name.    */
vn_status vn__choose(const struct vn_choice **out, const struct vn_plan **plan, vn_queue *q,
                     const struct vn_variant *table, const void *problem, size_t problem_size,
                     const char *forced);
/* For a part of a problem that is being run: nothing is noted, explain goes on to tell of the whole. */
vn_status vn__choose_part(const struct vn_choice **out, struct vn_plan *plan, vn_queue *q,
                          const struct vn_variant *table, const void *problem);
void      vn__choices_close(vn_device *d);

/* How activations of results of a type may be computed: a value of fast_act.  f32 takes more of a device's
 * instructions (cl/tile/activation.h): those of NVIDIA and AMD are documented to be as good.            */
int vn__fast_act(vn_math math, vn_type type, const struct vn_facts *f);
/* The epilogue that this variant's kernels are built with for a problem. */
struct vn_epilogue vn__epilogue_of(const struct vn_variant *v, const void *problem);
/* Builds the kernels of it->variant with the row it->p, `proved` as of vn__cache_build(); and closes them,
 * also where that failed.                                                                          */
vn_status vn__choice_open (struct vn_choice *it, void **program, int *proved, vn_device *d, vn_type type,
                           int wide);
void      vn__choice_close(struct vn_choice *it, void *program, vn_device *d);

/* The whole text of a variant's kernels: words, #defines, types, texts; malloc'd, or NULL.
 * backend is "opencl" or "cuda"; e: NULL for a plain C = alpha A B.                    */
char *vn__assemble(const char *backend, const struct vn_variant *v, const int *p, const int *c, vn_type type,
                   int wide, const struct vn_epilogue *e);
/* Whether `name` is the variant's, or was. */
int   vn__is_named(const struct vn_variant *v, const char *name);
/* The name of the i-th constant; 0 past the last. */
int   vn__constant_at(char word[64], const struct vn_variant *v, int i);
/* Whether a kernel with these constants can do a problem that has those: one without VECTORS does all. */
int   vn__constants_suit(const struct vn_variant *v, const int *kernel, const int *problem);
/* The i-th combination of the constants' values: 0 past the last. */
int   vn__constants_at(int *c, const struct vn_variant *v, int i);
/* The i-th word of a list separated by spaces; 0 past its end. */
int   vn__word_at(char word[64], const char *list, int i);

extern const struct vn_variant vn__gemm_variants[], vn__conv_variants[], vn__softmax_variants[];

/* ---- operations (operation.c, operations.c) ---------------------------------- */

/* Begins each operation's call: all that a public function was given.  Calls are hashed and compared as
 * bytes, the first of them hashed: a call has no padding, and begins with what tells it from others. */
struct vn_call {
    const struct vn_operation *operation;
    const char *variant;          /* what the options ask for; or NULL */
    int         function;         /* which of the operation's */
    int         unused;           /* 0 */
};

enum { VN_FUNCTIONS = 4 };

struct vn_operation {
    const char *name;                           /* "conv" */
    const char *functions[VN_FUNCTIONS];        /* "vn_conv_forward"...: its public ones; NULL
                                                   past their end */
    const struct vn_variant *variants;
    size_t      call_size, problem_size;

    /* Checks the call, and poses the problem, whose bytes are 0 before.  *done is set where there is
     * nothing to compute.                                                                        */
    vn_status (*pose)(void *problem, int *done, const vn_queue *q, const void *call);
};

/* What a public function does once it has filled in its call. */
vn_status vn__operate(vn_queue *q, struct vn_call *call);

#define OPERATION(name) extern const struct vn_operation vn__##name;
#include "operations.h"
#undef OPERATION
extern const struct vn_operation *const vn__operations[];     /* all of them; ends with NULL */

/* ---- queues (queue.c) ----------------------------------------------------- */

/* What a vendor's library keeps for a queue: its handle, its plans.  Made at first use, it is
 * closed with the queue; `owner` tells one library's from another's.                        */
struct vn_attachment {
    struct vn_attachment *next;
    const void           *owner;
    void                (*close)(vn_queue *q, struct vn_attachment *it);
};

/* What a queue was asked and what was chosen, so that choosing is done once; explain looks back at
 * the last.                                                                                      */
struct vn_memo {
    const struct vn_variant *table;   /* NULL: nothing is noted here */
    const struct vn_choice  *choice;
    struct vn_plan           plan;
    const struct vn_choice  *part;    /* what solves its first part that has none itself; NULL: no parts */
    int                      forced;  /* asked for by name */
    void                    *problem; /* a copy, begins with a struct vn_problem */
    size_t                   problem_size, problem_room;      /* room: what is allocated */

    void                    *call;            /* a copy of the call that posed it last */
    size_t                   call_size, call_room;            /* call_size 0: none is noted */
    uint64_t                 closed;          /* vn__handles_closed() by then */
    struct vn_noted         *launches;        /* that it made */
    size_t                   workspace_used, packed_used;
};

struct vn_queue {
    struct vn_handle  head;
    vn_device        *device;
    void             *impl;
    int               borrowed;       /* the caller's own: not ours to finish */
    vn_buffer        *workspace;      /* NULL until an operation needs some */
    vn_buffer        *counters;       /* likewise, one that counts */
    vn_buffer        *slots;          /* likewise, one for what work-groups hand over */
    vn_buffer        *maps;           /* likewise, one for tensor maps */
    uint64_t         *maps_keys;      /* of the launches that had each eight of them last; or NULL */
    int               lent;           /* the workspace is the caller's, and stays as it is */
    size_t            workspace_limit;
    size_t            workspace_used; /* by the last operation */
    size_t            packed_used;    /* likewise, of a vn_pack */
    int               preparing;      /* operations check, choose and build, and queue nothing */
    struct vn_attachment *attached;   /* a list */
    void             *trace;          /* log.c */
    char             *explain;
    size_t            explain_size;
    struct vn_memos  *memos;          /* NULL before the first operation */
    struct vn_memo   *last;           /* NULL likewise */
    struct vn_memo   *noting;         /* whose launches are being noted; or NULL */
    uint64_t          again;          /* 0, or the number of a launch that is made again as it was: one
                                         kernel, the same arguments, no buffer closed meanwhile */
};

void vn__event_close(vn_event *e);

/* At least `bytes` of scratch memory, aligned for any vector. */
vn_status vn__workspace(vn_buffer **out, vn_queue *q, size_t bytes);
/* So many ints that are 0 whenever no kernel runs: who counts with them leaves them so.  Behind them are
 * gemm_strip's, 0 at first: so many lines of a cache, and one for each unit of the device.       */
enum { VN_COUNTERS = 1024, VN_SEAT_LINES = 65, VN_SEAT_LINE = 16 };
vn_status vn__counters(vn_buffer **out, vn_queue *q);
/* So many numbers of 64 bits that are 0 whenever no kernel runs. */
enum { VN_SLOTS = 1 << 19 };
vn_status vn__slots(vn_buffer **out, vn_queue *q);
/* Room for so many tensor maps, where kernels find those of earlier launches: nothing else is written there.
 * vn__arg_maps() adds it to a launch, and two arguments that vn__launch() sets:
 *
 *     the number of the first of eight maps, which depends on all other arguments; a launch with others may
 *     get the same eight, and writes them anew;
 *
 *     1 where the launch that had the eight before was the same, and no handle was closed since: its maps are
 *     those that this one would make.  It is 0 on a queue of the caller, whose launches may be recorded, and
 *     run in another order.                                                                              */
enum { VN_MAPS = 16384, VN_MAPS_EACH = 8, VN_MAP_BYTES = 128 };
vn_status vn__arg_maps(struct vn_launch *l, vn_queue *q);

/* team.c: rows of `places` elements, each in PARTS parts of SPAN places, a multiple of 16 bytes.  The
 * parameters are ITEMS, VALUES and ROOM, the costs ALONE and PARTS.  The launch adds the arguments of
 * cl/tile/team.h, which come last. */
enum { VN_TEAM_ITEMS };
enum { VN_TEAM_PARTS, VN_TEAM_SPAN };           /* of a plan */
#define VN_TEAM .params = "ITEMS VALUES ROOM", .costs = "ALONE PARTS"
const char *vn__plan_team(struct vn_plan *out, int64_t rows, int64_t places, vn_type type,
                          const struct vn_row *row);
vn_status vn__launch_team(vn_queue *q, const struct vn_choice *it, struct vn_launch *l, int64_t rows,
                          const struct vn_plan *plan);
/* Whether a work-group for each row keeps the device at work. */
int       vn__rows_fill(int64_t rows, const struct vn_site *site);

vn_status vn__launch(vn_queue *q, const struct vn_choice *it, int kernel, struct vn_launch *l);
/* Calls a vendor's library, which queues work, with the log line and the trace of a launch. */
vn_status vn__launch_foreign(vn_queue *q, const struct vn_choice *it, const void *problem,
                             vn_status (*call)(vn_queue *q, const void *problem));

struct vn_attachment *vn__attached(const vn_queue *q, const void *owner);     /* NULL: there is none */
void                  vn__attach(vn_queue *q, struct vn_attachment *it);

void vn__arg_int   (struct vn_launch *l, int64_t v);            /* a 32-bit int; v must fit */
void vn__arg_real  (struct vn_launch *l, vn_type t, double v);  /* float, or double for f64 */
void vn__arg_buffer(struct vn_launch *l, vn_buffer *b);
/* A tensor is two arguments: its buffer, then its VIEW: start, and strides with the last
 * dimension at s6, the one before at s5...  vn__arg_extents gives the extents likewise
 * (1 where there is no dimension).                                                     */
void vn__arg_tensor (struct vn_launch *l, const vn_tensor *t);
void vn__arg_strides(struct vn_launch *l, const vn_tensor *t);  /* the VIEW alone */
void vn__arg_extents(struct vn_launch *l, const vn_tensor *t);
void vn__arg_view   (struct vn_launch *l, const int64_t v[8]);
/* d, from 1 to 2^31 - 1, as a prepared divisor for divided() of cl/types.h: a factor of 32 bits and, above
 * it, a shift.  Of d < 1 it is that of 1. */
int64_t vn__divisor(int64_t d);
/* The VIEW of schedule_by(), cl/tile/scheduler.h. */
void vn__arg_tiles  (struct vn_launch *l, int64_t tiles_m, int64_t tiles_n, int64_t raster, int64_t batches);

/* The instructions that a variant computes with there: "HGMMA f16", "HGMMA bf16 x 3", "DMMA", "FFMA", "MFMA
 * bf16", "FMA f32"; "" of a vendor's library.                                                          */
enum { VN_ENGINE = 32 };
const char *vn__engine(char out[VN_ENGINE], const struct vn_variant *v, vn_type type, const char *family);

/* ---- what was asked before (memo.c) ----------------------------------------- */

/* Where the problem is noted, or will be; NULL if there is no memory. */
struct vn_memo *vn__memo_of(vn_queue *q, const void *problem, size_t size);
int  vn__memo_holds(const struct vn_memo *m, const struct vn_variant *table, const void *problem,
                    size_t size);
vn_status vn__memo_set(struct vn_memo *m, vn_queue *q, const struct vn_variant *table,
                       const struct vn_choice *it, const struct vn_plan *plan, const void *problem,
                       size_t size, int forced);
/* It is the queue's last from here on. */
void vn__memo_use(vn_queue *q, struct vn_memo *m);
void vn__memos_forget(vn_queue *q);           /* what was chosen for it may not hold any more */

/* Runs what was chosen last, and notes what the call that led there launches.  The bytes of `call` are
 * all that it says; a variant's launches may depend on nothing else but that and the handles it names. */
vn_status vn__call(vn_queue *q, const struct vn_choice *it, const struct vn_plan *plan, const void *problem,
                   const void *call, size_t size);
/* Launches the same again, and returns 1, if the call is noted and no handle has been closed since: all
 * checks would pass again, and lead to the same.                                                     */
int  vn__call_again(vn_status *out, vn_queue *q, const void *call, size_t size);
void vn__note_launch(vn_queue *q, const struct vn_choice *it, int kernel, const struct vn_launch *l);

/* ---- devices (device.c) ---------------------------------------------------- */

/* VN_INVALID unless `name`, an object of d, goes with one of `with`, called so. */
vn_status vn__check_device(const vn_device *d, const char *name, const vn_device *with,
                           const char *with_name);

/* A device lives until it is closed and so is all that was opened on it. */
void      vn__device_keep(vn_device *d);
void      vn__device_drop(vn_device *d);
vn_status vn__device_open(vn_device **out, const struct vn_backend *b, int index, void *const native[2],
                          const char *spec);
vn_status vn__queue_open (vn_queue **out, vn_device *d, void *native);
void      vn__queue_close(vn_queue *q);
vn_status vn__buffer_open(vn_buffer **out, vn_device *d, size_t bytes, void *native);
void      vn__buffer_close(vn_buffer *b);         /* takes NULL */

/* NVIDIA's architecture as a number: 90 of sm_90; 0 of another device. */
int       vn__sm(const struct vn_facts *f);
/* NULL, or why the device has no matrix engine "MFMA", "WMMA" or "DPAS", or none for the type. */
const char *vn__lacks_engine(const struct vn_facts *f, const char *engine, vn_type type);
/* For a table of variants: a device of any kind; a CPU that asks for explicit vectors; PTX of sm_80. */
const char *vn__fits_any    (const void *problem, const struct vn_facts *f);
const char *vn__fits_vectors(const void *problem, const struct vn_facts *f);
const char *vn__fits_warps  (const void *problem, const struct vn_facts *f);
/* Of a CPU: what its caches hold, about, several times the second-level caches of all cores (one core alone
 * has more of what they share); and whether an output is larger, so that a store past the caches saves that
 * its lines are read first, and displaces no operand. */
double      vn__cache_bytes(const vn_queue *q);
int         vn__is_past_caches(const vn_queue *q, const vn_tensor *out);

/* ---- tune rows (tune.c) --------------------------------------------------- */

/* The rows of this variant for a device, type and bucket: alternatives, the first VN_ROWS of them. */
vn_status vn__tune_find(struct vn_row *out, int *count, const vn_device *d, const struct vn_variant *v,
                        vn_type type, enum vn_bucket bucket);
/* The same, without the user's file. */
vn_status vn__tune_shipped(struct vn_row *out, int *count, const vn_device *d, const struct vn_variant *v,
                           vn_type type, enum vn_bucket bucket);
/* What the `rates` lines say of a device. */
vn_status vn__tune_rates(struct vn_rates *out, const vn_device *d);
/* The same, without the user's file. */
vn_status vn__tune_shipped_rates(struct vn_rates *out, const vn_device *d);
struct vn_rate { const char *name; size_t at; };                /* at: of its double in struct vn_rates */
extern const struct vn_rate vn__rates[];                        /* ends with a NULL name */
/* Which variant and row are pinned for a problem of this shape ("1024x512x64:nt"): 1, and the
 * variant's name, and in *row its values; 0: none.  *values: whether the line says values;
 * else the cheapest row of the variant is used.                                            */
int       vn__tune_pin(char variant[64], struct vn_row *row, int *values, const vn_device *d, const char *op,
                       const char *shape, vn_type type);
/* The values of a parameter that are worth trying; returns how many. */
int       vn__tune_space(int *values, int most, const struct vn_variant *v, const char *param);
/* The user's file: 0 if the environment names none; its text, malloc'd, or NULL. */
int       vn__tune_path(char *path, size_t size);
char     *vn__tune_read(const char *path);
/* 0, or -1 with a sentence that names the first wrong line. */
int       vn__tune_check(char *why, size_t why_size, const char *path, const char *text);
extern const char *const vn__bucket_names[VN_BUCKET_COUNT];

/* ---- built kernels on disk (cache.c) --------------------------------------- */

/* Builds `text` for the device, or takes what an earlier process built.  proved: NULL, or the program must
 * pass a trial; *proved is then 1 where it was taken from what passed in an earlier process.            */
vn_status vn__cache_build(void **program, int *proved, vn_device *d, const char *text);
/* Called when work has finished: stores what this thread has built and by now also run.
 * Not sooner, for some drivers (PoCL) compile at the first launch, and only then have it. */
void      vn__cache_settle(vn_device *d);
/* The program is not to be stored: it failed its trial. */
void      vn__cache_forget(vn_device *d, void *program);
/* Stores the program if it is not yet, and closes it. */
void      vn__cache_close(vn_device *d, void *program);

/* What is kept, for `vernier cache`: the least recently used first; *out is malloc'd. */
struct vn_cached {
    char     name[48];
    uint64_t bytes;
    int64_t  used;                            /* seconds since 1970 */
    int      current;                         /* of this version of the library, and whole */
    char     backend[16], toolchain[544];     /* what it was built for; "" where that cannot be read */
};
const char *vn__cache_directory(void);        /* "": there is none */
vn_status vn__cache_list(struct vn_cached **out, size_t *count);
int       vn__cache_remove(const char *name); /* 0, or an errno */

/* ---- the texts inside the library (texts.c, generated) -------------------- */

struct vn_text { const char *path, *text; size_t length; };
extern const struct vn_text vn__texts[];                        /* ends with a NULL path */
const struct vn_text *vn__text_find(const char *path);          /* NULL if there is none */

/* ---- handles, status (status.c) ------------------------------------------- */

enum vn_kind { VN_DEVICE = 1, VN_QUEUE, VN_BUFFER, VN_EVENT, VN_PACK, VN_KIND_COUNT };

/* Each public function begins with this: clears the last error, names itself for the
 * sentences of vn__fail(), refuses in a fork'd child.                              */
vn_status vn__enter(const char *function);
/* Called before a driver is, whose threads do not survive a fork: from here on, children are refused. */
void      vn__use_drivers(void);
/* Clears the last error at the end, so that it says nothing after success. */
vn_status vn__leave(vn_status s);

void     *vn__handle_open (enum vn_kind kind, size_t bytes);    /* zeroed; NULL if out of memory */
void      vn__handle_mark (void *handle);   /* closed for the caller; its memory still in use */
void      vn__handle_close(void *handle);
/* How many there were so far, but for events: while it stands still, handles are what they were. */
uint64_t  vn__handles_closed(void);
/* VN_INVALID naming `argument` if it is NULL, closed or of another kind. */
vn_status vn__handle_check(const void *handle, enum vn_kind kind, const char *argument);

/* ---- packs (pack.c) -------------------------------------------------------- */

struct vn_pack {
    struct vn_handle head;
    vn_device       *device;
    vn_tensor        of;              /* what it was made of */
    vn_buffer       *buffer;          /* NULL: that is read as it lies */
    struct vn_layout layout;
};

/* VN_INVALID unless it is a pack of the queue's device. */
vn_status vn__pack_check(const vn_pack *p, const vn_queue *q, const char *argument);
/* Of the operand `of`, called `name` in sentences, as the variant chosen for the problem wants it.  it: NULL
 * where there is nothing to compute.                                                                     */
vn_status vn__pack_open(vn_pack **out, vn_queue *q, const vn_tensor *of, const char *name,
                        const struct vn_choice *it, const void *problem);

/* ---- views (tensor.c) ------------------------------------------------------ */

int       vn__given(const vn_tensor *t);            /* an optional tensor that is there */
/* Known type, rank in [low, high], extents and strides not negative, all inside its
 * buffer, on q's device, of a type the device has.  `output`: nothing may repeat.   */
vn_status vn__check_tensor(const vn_tensor *t, const char *name, const vn_queue *q,
                           int low, int high, int output);
/* overlap.c: VN_INVALID if an element of the one may share memory with one of the other, both inside
 * their buffers; and if two elements of one view may.                                             */
vn_status vn__check_overlap(const vn_tensor *a, const char *a_name,
                            const vn_tensor *b, const char *b_name);
vn_status vn__check_distinct(const vn_tensor *t, const char *name);
vn_status vn__check_enum(int v, int count, const char *name);
/* Sets the stride of each extent of 1 to 0 and takes over the extents of `like`: a
 * broadcast view.  VN_INVALID if some extent is neither 1 nor that of `like`.       */
vn_status vn__broadcast(vn_tensor *t, const char *name, const vn_tensor *like, const char *like_name);
/* One integer for `each` of count: of 4 bytes, or also of 8 where `wide`. */
vn_status vn__check_ints(const vn_ints *t, const char *name, const vn_queue *q, int64_t count,
                         const char *each, int wide);
/* Integers as a view, to see what they share memory with. */
vn_tensor vn__ints_view(const vn_ints *t);
int       vn__same_view(const vn_tensor *a, const vn_tensor *b);
/* An offset of it, or its element count, needs more than 31 bits. */
int       vn__is_wide(const vn_tensor *t);
int64_t   vn__elements(const vn_tensor *t);
/* Whether rows of t are whole 16-byte vectors, in order; its dimensions row and col are so numbered; step:
 * from one matrix to the next.                                                                            */
int       vn__in_vectors(const vn_tensor *t, int row, int col, int64_t step, int64_t columns);
/* 0 if it overflows 63 bits. */
int       vn__mul(int64_t *out, int64_t a, int64_t b);
int       vn__add(int64_t *out, int64_t a, int64_t b);
int64_t   vn__common_divisor(int64_t a, int64_t b);     /* the greatest */
/* Of a modulo n, which have no common divisor; n > 0. */
int64_t   vn__inverse(int64_t a, int64_t n);

/* ---- elements of trials (trial.c) -------------------------------------------- */

/* v, from -2 to 2, as element `at`; and an element that is finite and, if of f16, normal or 0. */
/* Zeros, to be freed: what is thread-local would be taken off the stack of each thread of the process. */
vn_status vn__trial_room(void **out, size_t bytes);
void   vn__trial_encode(void *to, vn_type type, size_t at, int v);
double vn__trial_decode(const void *from, vn_type type, size_t at);
/* Whether y is the activation of an integer x.  Of activations other than ReLU only what they are far from 0
 * is looked at: this is no test of them.                                                                  */
int    vn__trial_is_right(int act, double y, double x);

/* ---- log lines and the trace (log.c) --------------------------------------- */

enum vn_topic { VN_LOG_CHOOSE = 1, VN_LOG_BUILD = 2, VN_LOG_LAUNCH = 4, VN_LOG_CACHE = 8 };
int  vn__logs(enum vn_topic topic);
void vn__log(enum vn_topic topic, const char *sentence, ...) VN_SENTENCE(2, 3);
void vn__trace_launch(vn_queue *q, const char *variant, vn_event *from, vn_event *to);
int  vn__traces(void);
void vn__trace_flush(vn_queue *q);
void vn__trace_span(const char *category, const char *name, double from, double to);
double vn__seconds(void);             /* a steady clock */

#define VN_CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
#endif
