/* SPDX-License-Identifier: Apache-2.0
 *
 * gap.h - what the files of `vernier gap` share.
 *
 * What is measured becomes JSON at once; the table, the CSV and the HTML are made from that
 * alone, so that a report can be drawn again, and tested, without a device.
 */
#ifndef VERNIER_GAP_H
#define VERNIER_GAP_H

#include <jansson.h>
#include "bench/bench.h"

/* The two devices of a pair; and each once more, where the other one's rows are dictated to it.  side & 1
 * is the device.                                                                                        */
enum { FIRST, SECOND, FIRST_TWIN, SECOND_TWIN, SIDES };
enum { LIBRARIES = 8 };

struct side {
    vn_device      *device;
    vn_queue       *queue;
    vn_device_info  info;
    struct roofline roofline;
    int             by_events;            /* its event times are times */
    struct hold    *hold;                 /* or NULL */
};

/* A vendor's library: a variant of ours on one of the devices, or else a peer. */
struct library {
    const char        *name;
    const struct peer *peer;
    char               why[SENTENCE];     /* it is left out */
};

struct gap {
    struct side    side[SIDES];
    struct library library[LIBRARIES];
    int            libraries, peers;
    double         budget;                /* seconds of a row */
    int            pinned;                /* each thread that computes is tied to a CPU */
    json_t        *kernels;               /* what the compilers made of each, by variant and row */
    int            lost;                  /* a device went away: there is no going on */
    int            processes;             /* that measure each row */
    int            repeats;               /* what another process measures: no roofs, no machine code */
};

/* ---- gap_pair.c ---- */

/* Opens the pair that the words of the command line mean; an exit status after a sentence. */
int     pair_open  (struct gap *g, const char *gpu, const char *pair);
void    pair_close (struct gap *g);
/* A device once more, at its first use. */
int     twin_open  (struct gap *g, int side);
json_t *pair_json  (const struct gap *g);

/* ---- gap_row.c ---- */

/* One problem on a pair; NULL where host memory ran out.  of: "", or the problem whose second row, by
 * multiply-adds, w is.  Both have to live as long.                                                       */
struct contest *gap_row_open   (struct gap *g, const struct workload *w, const char *of);
/* Values, programs and first runs of ours, where all processes may do that side by side: none is timed. */
void            gap_row_prepare(struct contest *t);
/* The row of the report.  *failed is set where something went wrong.  fma: "", or of an f32 problem that is
 * not solved by multiply-adds the variant that would be: a row of its own, with that variant in w.       */
json_t         *gap_row_measure(struct contest *t, char fma[32], int *failed);
void            gap_row_close  (struct contest *t);

/* ---- gap_once.c: what is measured once for each pair ---- */

/* {"launch": [...], "transfer": [...], "build": [...]}; each entry has name, unit, first, second. */
json_t *gap_once(struct gap *g);
/* Are the times between events on this device times?  (rusticl 22.3 says 1 ns.) */
int     events_are_times(struct side *s);

/* ---- gap_report.c: arithmetic and the table ---- */

/* "at parity", "device 1 slower", "device 1 faster": the band is 0.9 to 1.1. */
const char *parity_words(double toolchain_gap);
/* "FFMA", "DFMA", "FMA f32": not a matrix engine's */
int         engine_is_fma(const char *engine);
/* The same precision, and both or neither by a matrix engine.  Of "", which is unknown, it is believed that
 * f32 is computed by multiply-adds.                                                                      */
int         engines_are_like(const char *a, const char *b);
/* Of a row's gaps: "toolchain", "toolchain_wall", "best", or "library", which has one for each. */
json_t     *gap_named(const json_t *row, const char *name);
/* The report's vernier.geomean: of toolchain_gap, best_gap and library_gap.NAME, over all rows and over
 * those of each operation ("gemm", "gemm:f32") whose engines are alike; and, by themselves, over those whose
 * engines are not ("gemm:f32 as chosen"), and over second rows ("gemm:f32 by FMA").                       */
json_t *gap_geomeans(const json_t *benchmarks);
/* {"rows", "within", "slower", "faster"} */
json_t *gap_parity(const json_t *benchmarks);

/* The table: a head, a row as soon as it is measured, and what sums them up. */
struct gap_sheet { struct table table; const char *library[LIBRARIES]; int libraries; };
void    gap_sheet_open(struct gap_sheet *s, FILE *to, const struct gap *g, const struct workloads *w);
void    gap_sheet_row (struct gap_sheet *s, const json_t *row);
void    gap_summary   (FILE *to, const json_t *report);
/* gap_html.c */
/* path: a file, or NULL; svg: a folder for its figures, or NULL */
int     gap_html      (const char *path, const char *svg, const json_t *report);
#endif
