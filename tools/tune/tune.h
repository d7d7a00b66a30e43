/* SPDX-License-Identifier: Apache-2.0
 *
 * tune.h - what the files of `vernier tune` share.
 *
 * A row is keyed by variant, device, backend, type and bucket; so the problems that were
 * named are tuned together where they share a row: each such group is a race.
 */
#ifndef VERNIER_TUNE_H
#define VERNIER_TUNE_H

#include "core.h"
#include "check/suite.h"
#include "problem/values.h"

enum { TUNE_VALUES = 32, TUNE_TOP = 3, TUNE_PATH = 4096, TUNE_WHY = 512 };

/* ---- tune_space.c: the rows there are, and which to try next ---- */

/* What the rows of a variant may be; values ascend. */
struct space {
    int  params;
    char name[VN_PARAMS][32];
    int  count[VN_PARAMS], value[VN_PARAMS][TUNE_VALUES];
};

/* The values of the "space" lines, and those of the row p. */
void   space_open(struct space *out, const struct vn_variant *v);
void   space_admit(struct space *s, const int *p);
double space_size(const struct space *s);
/* How many rows are one value away from a row in the middle, at most two along a parameter. */
int    space_neighbours(const struct space *s);

/* The score of a row: less is better, INFINITY is illegal.  Returns 0, or -1 to end the search. */
typedef int row_score(double *out, void *state, const int *p);

struct scored { int p[VN_PARAMS]; double score; };

/* From *best on, which has its score; leaves the best there.  0, or -1 where host memory ran out. */
int    search_space(struct scored *best, const struct space *s, row_score *score, void *state);

/* ---- tune_journal.c: what was measured, kept while it is ---- */

struct measurement {
    uint64_t key;                     /* of device, driver and the whole text of the kernel */
    char     problem[PROBLEM_TEXT];
    double   ratio;                   /* to the shipped row's time; INFINITY: illegal; 0: not ended */
    double   seconds;
    int      begun;
};

struct journal { int fd; char path[TUNE_PATH]; struct measurement *it; int count, room; };

/* Of that file; 0, or -1 with a sentence: it cannot be written, or another tuner holds it. */
int    journal_open(struct journal *out, const char *path, char *why, size_t why_size);
void   journal_close(struct journal *j);
const struct measurement *journal_find(const struct journal *j, uint64_t key, const char *problem);
/* Each is on disk when this returns; 0, or -1 with errno.  note: for people. */
int    journal_begin(struct journal *j, uint64_t key, const char *problem);
int    journal_end(struct journal *j, const struct measurement *m, const char *note);

/* ---- tune_file.c: the user's file ---- */

/* A row, or several that are alternatives. */
struct row_line {
    const struct vn_variant *variant;
    const struct vn_device  *device;
    vn_type                  type;
    int                      bucket;  /* VN_BUCKET_COUNT: they are for each */
    const struct vn_row     *row;     /* the best first */
    int                      count;
    const char              *comment; /* on the first */
};

/* Lines of one kind that belong together. */
struct user_lines {
    const char *key;                  /* the first words of those that they replace */
    const char *kind;                 /* the first word of those that might hide them: they go before these */
    const char *head;                 /* a line to go before them where there is none of that kind; or NULL */
    const char *text;                 /* each ends with a newline */
};

enum { PATTERN = 256 };

/* Where rows go: an existing file's own name, if that was a link.  0, or -1 with a sentence: it is
 * nothing to write to, or has a wrong line.                                                      */
int    user_file_open(char path[TUNE_PATH], char *why, size_t why_size);
/* Puts the rows in the place of those with their key (of all buckets, where they are for each), or before
 * what would hide them.  The file is the old one or the new one, whole, whatever happens.                */
int    user_file_put(const char *path, const struct row_line *rows, char *why, size_t why_size);
/* The same with other lines. */
int    user_file_put_lines(const char *path, const struct user_lines *lines, char *why, size_t why_size);
/* Does the line begin with the words of the key?  used: how many characters of it those are. */
int    user_line_has(const char *line, const char *key, size_t *used);
/* The pattern in tune files that this device alone matches. */
void   device_pattern(char out[PATTERN], const struct vn_device *d);

/* ---- tune_check.c ---- */

/* Runs small problems like p on integers, by the oracle; 0, or -1 with a sentence.  What is dictated
 * to the device does them.                                                                        */
int    check_exactly(struct suite *s, const struct problem *p, char *why, size_t why_size);

/* ---- tune_race.c: one row of the user's file, and the problems it is for ---- */

/* What a row's kernels are built for. */
struct build {
    const struct vn_variant *variant; /* of the race's name: one stands for several directions or layouts */
    int                wide, c[VN_CONSTANTS];
    struct vn_epilogue epilogue;
};

struct entrant {
    struct problem problem;
    char           text[PROBLEM_TEXT];
    struct build   build;
    struct values  values;
    int            takes_part;
    struct results reference;         /* what the shipped row made of it, if it takes part */
    double         shipped;           /* seconds */
    double         current, winner;   /* of the last contest */
};

struct race {
    struct suite            *suite;
    struct journal          *journal;
    const struct vn_variant *variant;                     /* of the first entrant */
    vn_type                  type;
    enum vn_bucket           bucket;
    struct entrant          *it;
    int                      count;
    struct space             space;
    double                   began, seconds;              /* the time it has */
    int                      shipped[VN_PARAMS], current[VN_PARAMS];
    const char              *current_source;              /* "user", or as of the shipped row */
    struct scored            best, top[TUNE_TOP];
    double                   gain;                        /* the winner's speed over the current row's */
    int                      measured, illegal, wrong, known;
    void                   (*progress)(const struct race *r);     /* after each row */
    volatile const int      *interrupted;
    char                     why[TUNE_WHY];
};

/* Measures the shipped row and searches for better ones; 0, or -1 with why. */
int    race_run(struct race *r);
/* Runs the current row, the shipped one and the first few in turns once more; r->best is then the
 * fastest.  1 if that is really faster than the current row, 0 if not, -1 with why.               */
int    race_decide(struct race *r);
void   race_close(struct race *r);
#endif
