/* SPDX-License-Identifier: Apache-2.0
 *
 * disk.h - what the tests of the cache do to files.
 */
#ifndef DISK_H
#define DISK_H

#include <stddef.h>

enum { PATH = 512 };

void   make_base(char base[PATH]);                            /* a new directory, in memory if there is one */
void   start_cold(char base[PATH]);                           /* the same, and the caches are in there */
void   wipe(const char *path);                                /* whatever it is, and all below */
void   put (const char *path, const void *bytes, size_t n);   /* a new file in its place */
size_t get (const char *path, void *bytes, size_t n);
void   age (const char *path, long seconds);
int    look(const char *where, char *one);                    /* how many files; one[PATH] gets the last */

#endif
