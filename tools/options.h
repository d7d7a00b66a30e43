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

int64_t option_count(const struct argp_state *state, const char *option, const char *arg);
int     option_type (const struct argp_state *state, const char *arg);          /* a vn_type */
double  option_seconds(const struct argp_state *state, const char *option, const char *arg);
#endif
