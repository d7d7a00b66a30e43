/* SPDX-License-Identifier: Apache-2.0
 *
 * suite.h - the conformance suite: `make check` and `vernier check` run the same cases.
 *
 * A case is a problem and a kind.  Its operands lie between guards, and what no element
 * of a view lies on is filled with NaNs whose payloads tell where they are; afterwards
 * every byte but the output's elements must be as before.
 *
 *   exact    small integers, chosen so that every intermediate is exact: tolerance 0
 *   real     random numbers, within the rounding bound of oracle.c
 *   special  random numbers and a NaN, an infinity, a denormal, a large one or -0 in some
 *            place; nothing to do (a size of 0); alpha 0 and K 0, which read nothing
 */
#ifndef VERNIER_SUITE_H
#define VERNIER_SUITE_H

#include "problem/op.h"

extern const char *const suite_kinds[KIND_COUNT];

/* How much: small is for simulators (no dimension above 24), quick for a first look. */
enum suite_extent { SUITE_SMALL, SUITE_QUICK, SUITE_USUAL, SUITE_FULL };

/* Cases that belong together: an operation, a kind, a type, a variant. */
struct suite_group {
    char   name[96];
    long   cases, failed, passed_over;            /* passed over: the variant cannot do that */
    double worst;                                 /* share of the bound */
    double seconds;
    int    cut;                                   /* stopped before its last case */
    char   failures[4096];                        /* the first of them, each two lines */
};

struct suite {
    vn_device         *device;
    vn_queue          *queue;
    vn_device_info     info;
    uint64_t           seed;
    enum suite_extent  extent;
    const char        *variant;                   /* only this one; NULL: all */
    int                shard, shards;             /* of several processes this one, from 0; 0: there is one */
    long               count[KIND_COUNT], failed, passed_over, refused, vacuous;
    long               specials;                  /* met so far; short suites run one in 3 or 6 */
    int                met, only;                 /* groups met; run this one (from 1), 0: all, -1: none */
    int                planned, handed, ran;      /* groups: of suite_run(), begun there, in all that ran */
    const volatile int *stop;                     /* not 0: no more cases; may be NULL */
    double             deadline;                  /* of vn__seconds(), at which the same; 0: none */
    double             worst[VN_TYPE_COUNT];
    struct suite_group *groups;
    int                group_count, reported;     /* reported: those in which something ran */
    void             (*group_begun)(const struct suite *s, const struct suite_group *g);  /* may be NULL */
    void             (*group_done)(const struct suite *s, const struct suite_group *g);   /* likewise */
    void              *context;                   /* for these two */
    struct arena      *arenas;
    const struct suite *lender;                   /* whose device it is; NULL: our own */
};

enum { SUITE_SEED = 1 };

/* VN_NO_DEVICE if there is none of that spec. */
vn_status suite_open(struct suite **out, const char *spec);
/* Another on the device of one that stays open longer, with a queue and memory of its own. */
vn_status suite_open_beside(struct suite **out, const struct suite *lender);
void      suite_close(struct suite *s);
/* Turns the library's cache off for this process where the driver has one of its own, before anything is
 * built; VERNIER_CACHE=1 keeps it on. */
void      suite_spare_cache(const vn_device_info *i);

/* All cases of an operation; or those of one problem, if that is not NULL. */
struct suite_part { const struct op *op; const struct problem *problem; };

/* suite_jobs.c: the groups of these parts, `jobs` at a time.  Several at a time, or with a deadline, they
 * come in an order of which each beginning is spread evenly over all groups; the seed says which is first. */
vn_status suite_run(struct suite *s, const struct suite_part *parts, int count, int jobs);

/* One problem, in every kind. */
void suite_problem(struct suite *s, const struct problem *p);

/* For the operations. */
/* 0 if the group is not to run; then there is no suite_end(). */
int  suite_begin(struct suite *s, const char *name, ...) __attribute__((format(printf, 2, 3)));
void suite_case (struct suite *s, const struct problem *p, enum kind kind);
void suite_end  (struct suite *s);
void suite_fault(struct suite *s, const char *sentence, ...) __attribute__((format(printf, 2, 3)));

/* The next name after `before` (NULL: the first) among the variants of an operation that
 * this device can try; "" is the library's own choice and comes first (not where the suite is
 * small); NULL at the end.                                                                */
const char *suite_next_variant(const struct suite *s, const struct op *op, const char *before);

/* Epilogues are compiled into kernels, which takes its time: the cases of a group share a few, the first of
 * which is plain.  Each variant draws others, by a seed of its own for each `group`.                       */
enum { SUITE_EPILOGUES = 4 };
int      suite_epilogues(const struct suite *s);            /* how many: fewer in short suites */
uint64_t suite_seed(const struct suite *s, const char *variant, int group);
/* How many cases to draw where the usual is `usual`. */
int      suite_times(const struct suite *s, int usual);

/* 0 if all passed and few were vacuous. */
int  suite_status(const struct suite *s);
/* "COUNT exact 20480" and so on. */
void suite_report(const struct suite *s, FILE *to);

/* ---- random numbers: splitmix64 --------------------------------------------- */

struct random { uint64_t state; };

uint64_t random_bits(struct random *r);
int64_t  random_below(struct random *r, int64_t n);
double   random_real(struct random *r, double low, double high);
int      random_chance(struct random *r, double p);
#define  RANDOM_OF(r, table) ((table)[random_below(r, (int64_t)(sizeof(table) / sizeof(table)[0]))])
#endif
