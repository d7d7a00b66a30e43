/* SPDX-License-Identifier: Apache-2.0
 *
 * session.h - what one process of `vernier gap` has open, and how several measure the same rows.
 */
#ifndef VERNIER_SESSION_H
#define VERNIER_SESSION_H

#include "gap.h"
#include "options.h"
#include "workers.h"

struct request {
    struct common common;                /* its json, compare and budget */
    const char *gpu, *pair, *csv, *html, *svg, *from, *resume;
    int64_t     processes;
    int         rows_only;               /* nothing is measured once for the pair */
    struct work work;
};

struct session {
    struct gap       gap;
    struct request  *request;
    const char      *program;
    char            *compare;            /* the libraries' names, which strsep() takes apart */
    struct workloads w;
    FILE            *to;
    json_t          *benchmarks;
    struct progress  progress;
    int              failures;
    struct workers   workers;            /* who measure, where others than this process do */
    struct contest  *row;                /* of a process: the one in work, and what it is of */
    struct workload  row_of;
    char             row_first[PROBLEM_TEXT];
    json_t          *first;              /* what the first of several processes said when it opened */
    json_t          *earlier;            /* the report that is resumed, or NULL */
    int              taken_over;         /* rows of it */
    double           saved;              /* when the rows until then were written */
};

/* is_first: it measures the roofs, too, and says what the pair is.  0, or an exit status. */
int     session_open (struct session *s, int is_first);
void    session_close(struct session *s);
/* One row: variant is "", or that of a second one, and `of` then the problem of the first. */
void    session_row  (struct session *s, int at, const char *variant, const char *of);
/* ... measured and closed; fma and failed are those of gap_row_measure(). */
json_t *session_measure(struct session *s, char fma[32], int *failed);
/* The report without its rows; once: with what is measured once for the pair. */
json_t *session_frame(struct session *s, int once);

/* ---- processes.c ---- */

enum { PROCESSES_USUAL = 6 };            /* the least of which order statistics cover 95 % */

/* Starts them; the session has what the table needs.  0, or an exit status. */
int     processes_open (struct session *s);
void    processes_close(struct session *s);
/* The row that they make together; where it takes more than 50 us, and their toolchain gaps lie more than 2 %
 * apart, together with others, twice at most.                                                             */
json_t *processes_row  (struct session *s, int at, const char *variant, const char *of, char fma[32],
                        int *failed);
json_t *processes_frame(struct session *s, int once);

/* ---- resumed.c: rows of an earlier run ---- */

/* Was it measured with what `report` is?  0, or an exit status after a sentence. */
int     resumed_check(const json_t *earlier, const char *path, const json_t *report);
/* That of a problem, and its second one, by multiply-adds; none where they are to be measured again. */
json_t *resumed_rows (const json_t *earlier, const char *problem);
/* What else the earlier report has goes to `report`: machine code, and roofs that were higher. */
void    resumed_join (json_t *report, const json_t *earlier, int rows);
#endif
