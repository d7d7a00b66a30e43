/* SPDX-License-Identifier: Apache-2.0
 *
 * errors.h - the command's own words on stderr, and those of others.
 *
 * Drivers and the compilers within them print to descriptor 2 when they like, which is the terminal that a
 * table is on.  What they print is kept back until the command ends.
 */
#ifndef VERNIER_ERRORS_H
#define VERNIER_ERRORS_H

#include <stdio.h>

/* Once, before the first driver is loaded.  With VERNIER_LOG, whose lines say when something was printed,
 * nothing is kept back.                                                                                */
void  errors_keep(void);
/* Before the process ends: where the command failed, all that was kept back, else a sentence about it.  If
 * the process dies or exits without this, all of it is written.                                          */
void  errors_tell(int failed);
/* stderr, as it was at first. */
FILE *errors_stream(void);

/* Puts '?' in the place of control characters, which a terminal would obey, but newlines and tabs; returns
 * text.                                                                                              */
char *errors_clean(char *text);
#endif
