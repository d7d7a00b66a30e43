/* SPDX-License-Identifier: Apache-2.0
 *
 * bench.h - what the files of `vernier bench` share.
 */
#ifndef VERNIER_BENCH_H
#define VERNIER_BENCH_H

#include <jansson.h>
#include "measure/timing.h"
#include "peers/peer.h"
#include "report/report.h"
#include "core.h"
#include "roofline.h"
#include "problem/workloads.h"

enum { BENCH_PEERS = 7, SENTENCE = 200 };

struct bench {
    vn_device         *device;
    vn_queue          *queue;
    vn_device_info     info;
    struct roofline    roofline;
    struct hold       *hold;              /* or NULL */
    const struct peer *peer[BENCH_PEERS];
    int                peers;
    double             budget;            /* seconds of a row */
    int                sustained;         /* without rests: as a device at its power limit goes on */
    int                pinned;            /* each thread that computes is tied to a CPU, ours and theirs */
};

struct layer { char variant[32], engine[VN_ENGINE]; };

/* What was measured of one problem, or of the layers of a sequence as one. */
struct row {
    char   variant[32], engine[VN_ENGINE];
    int    layers;                        /* 1, or how many problems a sequence has */
    struct layer *layer;                  /* how each of them ran */
    double seconds;                       /* median; 0: not measured, and note says why */
    double flops, bytes;
    double least, roofline;               /* seconds of the roof, and the share reached */
    double copy;                          /* seconds of a copy of as many bytes; 0: not bound by memory */
    struct timing  ours;
    struct watched watched;               /* its machine: NULL where nothing was measured */
    int    failed;                        /* as opposed to skipped */
    char   note[SENTENCE];
    struct {
        struct timing t;                  /* no samples: not measured, and note says why */
        struct ratio  ratio;              /* its time over ours */
        char   note[SENTENCE];
    } peer[BENCH_PEERS];
};

/* ours' time is better than the roofline's where data stays in a cache; 0 of a sequence */
int    row_is_bound_by_memory(const struct bench *b, const struct workload *w);
/* The problem at `it`; or count of them, run one after the other without a wait between. */
void   row_measure(struct row *out, struct bench *b, const struct workload *it, int count);
double row_ratio(const struct row *r, int peer);          /* 0: none */
void   row_close(struct row *r);

/* A peer that takes turns: theirs_run() is the `run` of its runner. */
struct theirs {
    const struct peer *peer;
    void *const       *state;             /* of each problem, in a row */
    int                count;
    int                by_device;         /* its own device time counts */
};
int    theirs_run(void *state, int repeats, double *seconds);
/* Runs it once: does it know its device time, if that is what counts? */
int    theirs_by_device(const struct theirs *them, int by_events);

/* A member of what the queue explains: "variant", "engine". */
void   explained(char out[32], vn_queue *q, const char *member);

/* ---- bench_report.c ---- */

struct means { double log_sum[BENCH_PEERS]; int count[BENCH_PEERS]; };

struct sheet {
    struct table table;
    int gflops, gbytes;                   /* has the column */
};

void    sheet_open (struct sheet *s, const struct bench *b, const struct workloads *w, FILE *to);
void    sheet_row  (struct sheet *s, const struct bench *b, const struct workload *w, const struct row *r);
void    sheet_means(struct sheet *s, const struct bench *b, const struct means *m);

void    means_add(struct means *m, const struct bench *b, const struct row *r);

json_t *json_row     (const struct bench *b, const struct workload *w, const struct row *r);
json_t *json_means   (const struct bench *b, const struct means *m);
json_t *json_roofline(const struct roofline *r);
/* The roof of a problem, and whether a run of so many seconds passes it because a cache holds its data. */
json_t *json_roof    (const struct roofline *r, const struct problem *p, double seconds);
/* Gives each row what compare.py of Google Benchmark reads of it: a time of the CPU, which is not measured
 * but set to real_time; where it has no time at all, "run_type": "aggregate", which makes it passed over. */
void    json_rows_settle (json_t *benchmarks);
/* Sets "roof" and "roofline" of rows that were measured while the roofs still rose. */
void    json_roofs_settle(json_t *benchmarks, const struct roofline *r);

/* ---- context.c ---- */

json_t *json_context(const struct bench *b, const char *program);

/* The report as a page and as figures: html is a file, or NULL, and svg a folder, or NULL.  0, or -1 after a
 * sentence on stderr.                                                                                      */
int     bench_html   (const char *html, const char *svg, const json_t *report);

/* ---- overhead.c, startup.c: what a call and a start cost ---- */

struct call_cost { double ours, bare; };  /* seconds of one call */

struct overhead {
    struct call_cost enqueue, finish;     /* the latter with a wait after each call */
    double           library;             /* of enqueue, spent in the library itself */
    long             allocations;         /* in OVERHEAD_CALLS calls */
    int              launches, arguments;
};
enum { OVERHEAD_CALLS = 1000 };

/* 0, or -1 after a sentence on stderr. */
int    overhead_measure(struct overhead *out, const char *spec);

/* Seconds of the first vn_gemm() until it is finished, and of the process from its opening the device to
 * there.                                                                                               */
struct start { double call, whole; };

/* With empty caches, and with what that left there; 0, or -1 after a sentence on stderr. */
int    startup_measure(struct start *cold, struct start *warm, const char *spec);

/* Print their tables to `to` and add their benchmarks to the JSON array; an exit status. */
int    overhead_bench(const struct bench *b, FILE *to, json_t *benchmarks);
int    startup_bench (const struct bench *b, FILE *to, json_t *benchmarks);
/* What the second process of startup_bench() does; an exit status. */
int    startup_first_call(const char *spec);
#endif
