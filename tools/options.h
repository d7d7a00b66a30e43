/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h - words of the command line that several commands read alike.
 *
 * Both end the command with a sentence about --`option` where the word is wrong.
 */
#ifndef VERNIER_OPTIONS_H
#define VERNIER_OPTIONS_H

#include <argp.h>
#include <stdint.h>

#include "problem/workloads.h"

int64_t option_count(const struct argp_state *state, const char *option, const char *arg);
double  option_amount(const struct argp_state *state, const char *option, const char *arg);    /* above 0 */
int     option_type (const struct argp_state *state, const char *arg);          /* a vn_type */
double  option_seconds(const struct argp_state *state, const char *option, const char *arg);

/* What several commands are told in the same words; each takes the children that it has a use for. */
struct common {
    const char *device, *json;               /* NULL: not said */
    char        compare[128];                /* "" likewise */
    double      budget;                      /* seconds of a row */
};
enum { BUDGET_USUAL = 2 };

/* Children of a command's own parser; the input of each is a struct common. */
extern const struct argp device_argp, json_argp, compare_argp, budget_argp;

/* What a command is to work on: its WHAT..., and the options that choose among or change problems. */
enum { WORK_MOST = 256 };
struct work {
    const char *what[WORK_MOST];
    int         whats;
    struct workload_options options;
};
#define WORK_UNSAID { .options = { .type = -1, .direction = -1 } }

/* A child of the command's own parser; its input is a struct work. */
extern const struct argp work_argp;

/* On ARGP_KEY_INIT: gives the children their inputs.  work: NULL where work_argp is none of them. */
void options_begin(struct argp_state *state, const struct argp_child *children, struct common *common,
                   struct work *work);

#define OPTIONS_CHILD(argp) { &argp, 0, NULL, 0 }
#define OPTIONS_END         { NULL, 0, NULL, 0 }
#endif
