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

/* What a command is to work on: its WHAT..., and the options that choose among or change problems. */
enum { WORK_MOST = 256 };
struct work {
    const char *what[WORK_MOST];
    int         whats;
    struct workload_options options;
};
#define WORK_UNSAID { .options = { .type = -1, .direction = -1 } }

/* A child of the command's own parser; its input, which that one passes on, is a struct work. */
extern const struct argp work_argp;
#endif
