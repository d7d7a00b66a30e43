/* SPDX-License-Identifier: Apache-2.0
 *
 * commands.h - the subcommands of vernier, and what they share.
 *
 * A subcommand gets its own words as argv, argv[0] being "vernier bench", and returns
 * the exit status: 0, EXIT_FAILURE if something went wrong, EXIT_USAGE if nothing
 * could be tried (bad usage, no device).
 */
#ifndef VERNIER_COMMANDS_H
#define VERNIER_COMMANDS_H

#include <argp.h>
#include "vernier.h"

enum { EXIT_USAGE = 2 };

/* Each has a parser, which says its options, and what runs it. */
extern const struct argp bench_parser, cache_parser, check_parser, choice_parser, compare_parser,
                         completion_parser, devices_parser, explain_parser, gap_parser, tune_parser,
                         warm_parser;

int bench_main  (int argc, char **argv);
int cache_main  (int argc, char **argv);
int check_main  (int argc, char **argv);
int choice_main (int argc, char **argv);
int compare_main(int argc, char **argv);
int completion_main(int argc, char **argv);
int devices_main(int argc, char **argv);
int explain_main(int argc, char **argv);
int gap_main    (int argc, char **argv);
int tune_main   (int argc, char **argv);
int warm_main   (int argc, char **argv);

struct command {
    const char        *name, *title;              /* "bench", "vernier bench" */
    const struct argp *parser;
    int              (*run)(int argc, char **argv);
};
extern const struct command commands[];           /* ends with a NULL name */

/* "vernier: " and the sentence, on stderr. */
void complain(const char *sentence, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 1, 2)))
#endif
    ;

/* 0, or the exit status after a sentence on stderr; queue may be NULL. */
int  device_open(vn_device **out, vn_queue **queue, const char *spec);
#endif
